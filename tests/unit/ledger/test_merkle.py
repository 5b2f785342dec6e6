"""The Merkle tree: published vectors, the recursive definition, and proofs that a single bit spoils."""

from collections.abc import Sequence
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.errors import InvalidValueError, SealError
from batonpass.ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root_from_inclusion,
    verify_consistency,
)

# The test tree that the implementations of Certificate Transparency share: its inputs, and its root at each size.
INPUTS = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAVES = [leaf_hash(data) for data in INPUTS]

SIZES = st.integers(min_value=0, max_value=70)


def some_leaves(count: int) -> list[bytes]:
    """Return the leaf hashes of that many different receipts."""
    return [leaf_hash(sha256(b"receipt %d" % number).digest()) for number in range(count)]


def frontier_over(leaves: Sequence[bytes]) -> Frontier:
    """Return the frontier after these leaf hashes."""
    frontier = Frontier.empty()
    for leaf in leaves:
        frontier.append(leaf)
    return frontier


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root over these leaf hashes."""
    return frontier_over(leaves).root()


def root_by_definition(leaves: Sequence[bytes]) -> bytes:
    """Return the root as RFC 6962 defines it, by recursion."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return node_hash(root_by_definition(leaves[:split]), root_by_definition(leaves[split:]))


def with_flipped_bit(data: bytes, bit: int) -> bytes:
    """Return data with one bit changed."""
    return (int.from_bytes(data) ^ 1 << bit).to_bytes(len(data))


@pytest.mark.parametrize("size", range(len(ROOTS)))
def test_roots_are_the_published_ones(size: int) -> None:
    """The tree over the first leaves of the shared example has the root that others computed."""
    assert ROOTS[size] == root_of(LEAVES[:size]).hex()


@pytest.mark.parametrize(
    ("index", "size", "expected"),
    [
        pytest.param(0, 1, [], id="the only leaf needs no hashes"),
        pytest.param(
            0,
            8,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
            id="the first of eight",
        ),
        pytest.param(
            5,
            8,
            [
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
            id="the sixth of eight",
        ),
        pytest.param(
            2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"], id="the odd one at the end"
        ),
        pytest.param(
            1,
            5,
            [
                "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
            id="the second of five",
        ),
    ],
)
def test_inclusion_proofs_are_the_published_ones(index: int, size: int, expected: list[str]) -> None:
    """A proof made here is, hash for hash, the one that others made."""
    assert expected == [value.hex() for value in inclusion_proof(LEAVES[:size], index)]


@pytest.mark.parametrize(
    ("old_size", "new_size", "expected"),
    [
        pytest.param(1, 1, [], id="a tree extends itself"),
        pytest.param(
            1,
            8,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
            id="one to eight",
        ),
        pytest.param(
            6,
            8,
            [
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
            id="six to eight",
        ),
        pytest.param(
            2,
            5,
            [
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
            id="two to five",
        ),
    ],
)
def test_consistency_proofs_are_the_published_ones(old_size: int, new_size: int, expected: list[str]) -> None:
    """A proof of extension made here is, hash for hash, the one that others made."""
    assert expected == [value.hex() for value in consistency_proof(LEAVES[:new_size], old_size)]


@given(SIZES)
def test_frontier_agrees_with_the_recursive_definition(size: int) -> None:
    """Appending one by one gives the root that RFC 6962 defines from above."""
    leaves = some_leaves(size)

    frontier = frontier_over(leaves)

    assert (size, root_by_definition(leaves)) == (frontier.size, frontier.root())


@given(SIZES, SIZES)
def test_written_frontier_goes_on_where_it_stopped(before: int, after: int) -> None:
    """A frontier that was stored and read back grows into the same tree."""
    leaves = some_leaves(before + after)
    first = frontier_over(leaves[:before])

    again = Frontier.from_bytes(first.size, first.to_bytes())
    for leaf in leaves[before:]:
        again.append(leaf)

    assert (len(leaves), root_of(leaves)) == (again.size, again.root())


def test_frontier_stays_small() -> None:
    """What is stored for a tree is one hash for every 1 in the binary form of its size."""
    leaves = some_leaves(0b1011)

    expected = root_of(leaves[:8]) + root_of(leaves[8:10]) + leaves[10]
    assert expected == frontier_over(leaves).to_bytes()


@pytest.mark.parametrize(
    ("size", "length"),
    [
        pytest.param(0, 32, id="a hash for the empty tree"),
        pytest.param(3, 32, id="one hash too few"),
        pytest.param(4, 64, id="one hash too many"),
        pytest.param(1, 31, id="a hash that was cut"),
        pytest.param(3, 63, id="a last hash that was cut"),
        pytest.param(-1, 32, id="a negative size"),
    ],
)
def test_frontier_of_the_wrong_length_is_refused(size: int, length: int) -> None:
    """Stored hashes that cannot belong to the stored size are not taken for a tree."""
    with pytest.raises(InvalidValueError, match=r"^frontier: "):
        Frontier.from_bytes(size, bytes(length))


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_leaf_of_the_wrong_length_is_refused(length: int) -> None:
    """Only a hash can be appended, so raw data is never hashed as if it were a node."""
    with pytest.raises(InvalidValueError, match=r"^leaf: "):
        Frontier.empty().append(bytes(length))


def test_leaf_and_node_are_hashed_apart() -> None:
    """Two hashes as the data of a leaf do not make the hash of the node above them."""
    left, right = some_leaves(2)

    assert leaf_hash(left + right) != node_hash(left, right)


@given(st.integers(min_value=1, max_value=70))
def test_every_leaf_can_be_proven(size: int) -> None:
    """The proof of each leaf leads to the root of the whole tree."""
    leaves = some_leaves(size)

    found = {root_from_inclusion(leaf, at, size, inclusion_proof(leaves, at)) for at, leaf in enumerate(leaves)}

    assert {root_of(leaves)} == found


@given(st.data())
def test_inclusion_fails_for_any_flipped_bit(data: st.DataObject) -> None:
    """One flipped bit in the leaf or in any hash of the proof leads to another root."""
    size = data.draw(st.integers(min_value=1, max_value=40))
    index = data.draw(st.integers(min_value=0, max_value=size - 1))
    leaves = some_leaves(size)
    hashes = [leaves[index], *inclusion_proof(leaves, index)]
    at = data.draw(st.integers(min_value=0, max_value=len(hashes) - 1))
    hashes[at] = with_flipped_bit(hashes[at], data.draw(st.integers(min_value=0, max_value=255)))

    assert root_of(leaves) != root_from_inclusion(hashes[0], index, size, hashes[1:])


@given(st.data())
def test_proof_holds_for_its_own_index_only(data: st.DataObject) -> None:
    """A proof cannot be used to move a receipt to another position, even one that is as deep in the tree."""
    size = data.draw(st.sampled_from([2, 4, 8, 16, 32]))
    index, other = data.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=2, unique=True))
    leaves = some_leaves(size)

    assert root_of(leaves) != root_from_inclusion(leaves[index], other, size, inclusion_proof(leaves, index))


@pytest.mark.parametrize(
    ("index", "size", "lengths", "field"),
    [
        pytest.param(0, 0, [], "index", id="the empty tree has no leaf"),
        pytest.param(3, 3, [32], "index", id="behind the last leaf"),
        pytest.param(-1, 3, [32, 32], "index", id="before the first leaf"),
        pytest.param(0, 3, [32], "proof", id="a hash too few"),
        pytest.param(0, 3, [32, 32, 32], "proof", id="a hash too many"),
        pytest.param(0, 3, [32, 31], "proof", id="a hash that was cut"),
    ],
)
def test_malformed_inclusion_proof_is_refused(index: int, size: int, lengths: list[int], field: str) -> None:
    """A proof must have exactly the hashes that its place in the tree needs."""
    with pytest.raises(InvalidValueError) as caught:
        root_from_inclusion(bytes(32), index, size, [bytes(length) for length in lengths])

    assert field == caught.value.field


def test_only_a_hash_is_proven() -> None:
    """What stands for the leaf must be a leaf hash."""
    with pytest.raises(InvalidValueError, match=r"^leaf: "):
        root_from_inclusion(b"data", 0, 1, [])


@given(SIZES, SIZES)
def test_every_extension_can_be_proven(old_size: int, more: int) -> None:
    """A tree is proven to extend each of its own beginnings."""
    leaves = some_leaves(old_size + more)

    verify_consistency(
        old_size=old_size,
        old_root=root_of(leaves[:old_size]),
        new_size=len(leaves),
        new_root=root_of(leaves),
        proof=consistency_proof(leaves, old_size),
    )


@given(st.data())
def test_rewritten_beginning_is_found(data: st.DataObject) -> None:
    """No proof made from a ledger whose old part was changed satisfies the old seal."""
    old_size = data.draw(st.integers(min_value=1, max_value=30))
    leaves = some_leaves(old_size + data.draw(st.integers(min_value=0, max_value=30)))
    old_root = root_of(leaves[:old_size])
    leaves[data.draw(st.integers(min_value=0, max_value=old_size - 1))] = leaf_hash(b"another")

    with pytest.raises(SealError):
        verify_consistency(
            old_size=old_size,
            old_root=old_root,
            new_size=len(leaves),
            new_root=root_of(leaves),
            proof=consistency_proof(leaves, old_size),
        )


@given(st.data())
def test_consistency_fails_for_any_flipped_bit(data: st.DataObject) -> None:
    """One flipped bit in either root or in any hash of the proof is found."""
    old_size = data.draw(st.integers(min_value=1, max_value=30))
    leaves = some_leaves(old_size + data.draw(st.integers(min_value=0, max_value=30)))
    hashes = [root_of(leaves[:old_size]), root_of(leaves), *consistency_proof(leaves, old_size)]
    at = data.draw(st.integers(min_value=0, max_value=len(hashes) - 1))
    hashes[at] = with_flipped_bit(hashes[at], data.draw(st.integers(min_value=0, max_value=255)))

    with pytest.raises(SealError):
        verify_consistency(
            old_size=old_size, old_root=hashes[0], new_size=len(leaves), new_root=hashes[1], proof=hashes[2:]
        )


@pytest.mark.parametrize(
    ("old_root", "new_size", "new_root"),
    [
        pytest.param(bytes(32), 0, EMPTY_ROOT, id="a wrong old root"),
        pytest.param(EMPTY_ROOT, 0, bytes(32), id="a wrong new root"),
        pytest.param(bytes(32), 3, bytes(32), id="a wrong old root under a new tree"),
    ],
)
def test_empty_tree_has_one_root(old_root: bytes, new_size: int, new_root: bytes) -> None:
    """A seal over nothing must say so with the root of the empty tree."""
    with pytest.raises(SealError):
        verify_consistency(old_size=0, old_root=old_root, new_size=new_size, new_root=new_root, proof=[])


@pytest.mark.parametrize(
    ("old_size", "new_size", "lengths", "field"),
    [
        pytest.param(3, 2, [], "old_size", id="a tree cannot shrink"),
        pytest.param(-1, 2, [], "old_size", id="a negative size"),
        pytest.param(0, 2, [32], "proof", id="nothing to prove from the empty tree"),
        pytest.param(2, 2, [32], "proof", id="nothing to prove between equal trees"),
        pytest.param(2, 5, [32], "proof", id="a hash too few"),
        pytest.param(2, 5, [32, 32, 32], "proof", id="a hash too many"),
        pytest.param(2, 5, [32, 33], "proof", id="a hash that is too long"),
    ],
)
def test_malformed_consistency_proof_is_refused(old_size: int, new_size: int, lengths: list[int], field: str) -> None:
    """A proof of extension must have exactly the hashes that the two sizes need."""
    with pytest.raises(InvalidValueError) as caught:
        verify_consistency(
            old_size=old_size,
            old_root=EMPTY_ROOT,
            new_size=new_size,
            new_root=EMPTY_ROOT,
            proof=[bytes(length) for length in lengths],
        )

    assert field == caught.value.field


def test_consistency_proof_needs_the_old_leaves() -> None:
    """From fewer leaves than the old tree had, nothing can be proven: the tail is gone."""
    with pytest.raises(InvalidValueError, match=r"^old_size: "):
        consistency_proof(some_leaves(4), 5)
