"""The Merkle tree of RFC 6962 over the receipts of a ledger, in the order of their positions.

All functions work on *leaf hashes*: `leaf_hash(digest)` of each receipt's 32-byte digest. The receipt at position p has
the leaf with index p - 1. docs/spec/seal.md has the specification and a worked example.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, Self

from batonpass.errors import InvalidValueError, SealError

HASH_LENGTH: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()

# Leaves and nodes have different prefixes. Without them, the two children of a node could pass for the data of a leaf.
LEAF_PREFIX: Final = b"\x00"
NODE_PREFIX: Final = b"\x01"


def leaf_hash(data: bytes) -> bytes:
    """Return the leaf hash of data. For a receipt, data is its 32-byte digest."""
    return sha256(LEAF_PREFIX + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of the node with these two subtrees."""
    return sha256(NODE_PREFIX + left + right).digest()


class Frontier:
    """All state that is needed to append to a tree: the roots of the complete subtrees along its right edge.

    A tree of n leaves has one such subtree for every 1 in the binary form of n, the largest first.
    """

    __slots__ = ("_roots", "_size")

    def __init__(self, size: int, roots: Sequence[bytes]) -> None:
        if size < 0 or len(roots) != size.bit_count():
            raise InvalidValueError("frontier", f"a tree of {size} leaves cannot have {len(roots)} complete subtrees")
        for root in roots:
            _require_hash("frontier", root)
        self._size = size
        self._roots = list(roots)

    @classmethod
    def empty(cls) -> Self:
        """Return the frontier of the tree without leaves."""
        return cls(0, ())

    @classmethod
    def from_bytes(cls, size: int, data: bytes) -> Self:
        """Return the frontier that `to_bytes` gave at this size.

        Raises `InvalidValueError` if data does not have the number of hashes that the size requires.
        """
        return cls(size, [data[at : at + HASH_LENGTH] for at in range(0, len(data), HASH_LENGTH)])

    @property
    def size(self) -> int:
        """How many leaves the tree has."""
        return self._size

    def append(self, leaf: bytes) -> None:
        """Add one leaf hash at the right. Raises `InvalidValueError` unless it has 32 bytes."""
        # This is the hot loop of sealing and verifying. `node_hash` and `_require_hash` are inlined, because the calls
        # cost as much as the hashing.
        if len(leaf) != HASH_LENGTH:
            raise InvalidValueError("leaf", f"a hash has {HASH_LENGTH} bytes, this one {len(leaf)}")
        roots = self._roots
        carry = self._size
        # Adding a leaf is adding one in binary: each trailing 1 is a complete subtree, which becomes the left half of a
        # larger one.
        while carry & 1:
            leaf = sha256(NODE_PREFIX + roots.pop() + leaf).digest()
            carry >>= 1
        roots.append(leaf)
        self._size += 1

    def root(self) -> bytes:
        """Return the root hash of the tree as it is now."""
        if not self._roots:
            return EMPTY_ROOT
        *lefts, root = self._roots
        # From right to left: the smallest subtree is the right child of its neighbour. That gives the shape of RFC 6962
        # for a size that is no power of two.
        for left in reversed(lefts):
            root = node_hash(left, root)
        return root

    def to_bytes(self) -> bytes:
        """Return the roots of the subtrees, the largest first. Together with `size` this is the whole state."""
        return b"".join(self._roots)


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes from the leaf at this index up to the root over all leaf hashes, the lowest first.

    Raises `InvalidValueError` if there is no such leaf.
    """
    return [_root_of(leaves, span) for span in _siblings(index, len(leaves))]


def root_from_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """Return the root of a tree of this size in which the leaf hash is at this index, computed with the proof.

    It proves nothing until it is compared with a trusted root. Raises `InvalidValueError` if the proof does not have
    exactly the hashes that the path needs.
    """
    _require_hash("leaf", leaf)
    path = _siblings(index, size)
    _require_proof(proof, length=len(path))
    root = leaf
    for span, sibling in zip(path, proof, strict=True):
        root = node_hash(sibling, root) if span.stop <= index else node_hash(root, sibling)
    return root


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> list[bytes]:
    """Return the hashes that prove that the tree over all leaf hashes extends the tree of the first old_size.

    Raises `InvalidValueError` if there are fewer leaves than that.
    """
    _require_growth(old_size, len(leaves))
    if old_size == 0:
        return []
    edge, above = _edge(old_size, len(leaves))
    # If the subtree is the whole old tree, its root is the old root, which the verifier has. So it is not sent.
    return [_root_of(leaves, span) for span in ([edge, *above] if edge.start else above)]


def verify_consistency(
    *, old_size: int, old_root: bytes, new_size: int, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Return if the new tree begins with exactly the leaves of the old one. Every tree extends the empty one.

    Raises `InvalidValueError` if the proof does not have the number of hashes that these sizes require, and `SealError`
    if it leads to other roots.
    """
    _require_growth(old_size, new_size)
    if old_size == 0:
        _require_proof(proof, length=0)
        _require_same_root("old", expected=EMPTY_ROOT, found=old_root)
        if new_size == 0:
            _require_same_root("new", expected=EMPTY_ROOT, found=new_root)
        return
    edge, above = _edge(old_size, new_size)
    _require_proof(proof, length=len(above) + (edge.start > 0))
    first, *siblings = proof if edge.start else [old_root, *proof]
    # Both roots are computed along the same path. A sibling on the left belongs to both trees. A sibling on the right
    # has only leaves that are new.
    old = new = first
    for span, sibling in zip(above, siblings, strict=True):
        if span.stop <= edge.start:
            old = node_hash(sibling, old)
            new = node_hash(sibling, new)
        else:
            new = node_hash(new, sibling)
    _require_same_root("old", expected=old, found=old_root)
    _require_same_root("new", expected=new, found=new_root)


def _siblings(index: int, size: int) -> list[range]:
    """Return the subtrees beside the path from a leaf up to the root, as ranges of leaves, the lowest first."""
    if not 0 <= index < size:
        raise InvalidValueError("index", f"a tree of {size} leaves has no leaf {index}")
    beside: list[range] = []
    start, stop = 0, size
    while stop - start > 1:
        # RFC 6962, 2.1: the left subtree has the largest power of two of leaves that is less than their number.
        middle = start + (1 << (stop - start - 1).bit_length() - 1)
        if index < middle:
            beside.append(range(middle, stop))
            stop = middle
        else:
            beside.append(range(start, middle))
            start = middle
    beside.reverse()
    return beside


def _edge(old_size: int, new_size: int) -> tuple[range, list[range]]:
    """Return the largest subtree of the new tree that ends where the old tree ended, and the siblings above it."""
    above = _siblings(old_size - 1, new_size)
    start = old_size - 1
    height = 0
    # Joined with a left neighbour, the subtree still ends at old_size. Joined with a right one, it does not.
    while height < len(above) and above[height].stop == start:
        start = above[height].start
        height += 1
    return range(start, old_size), above[height:]


def _root_of(leaves: Sequence[bytes], span: range) -> bytes:
    frontier = Frontier.empty()
    for leaf in leaves[span.start : span.stop]:
        frontier.append(leaf)
    return frontier.root()


def _require_growth(old_size: int, new_size: int) -> None:
    if not 0 <= old_size <= new_size:
        raise InvalidValueError("old_size", f"a tree of {new_size} leaves cannot extend one of {old_size}")


def _require_hash(field: str, value: bytes) -> None:
    if len(value) != HASH_LENGTH:
        raise InvalidValueError(field, f"a hash has {HASH_LENGTH} bytes, this one {len(value)}")


def _require_proof(proof: Sequence[bytes], *, length: int) -> None:
    if len(proof) != length:
        raise InvalidValueError("proof", f"needs exactly {length} hashes, has {len(proof)}")
    for value in proof:
        _require_hash("proof", value)


def _require_same_root(which: str, *, expected: bytes, found: bytes) -> None:
    if expected != found:
        raise SealError(f"the proof leads to the {which} root {expected.hex()}, the seal says {found.hex()}")
