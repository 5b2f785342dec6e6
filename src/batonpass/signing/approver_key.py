"""Keys of approvers: at rest in a file that a passphrase protects, in memory for one ruling.

A file is one line of ASCII; docs/spec/keys.md has the format. The public fields come first, so that a key can be found
without its passphrase: the owner, the public key, and the cost of opening it.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import Struct
from nacl.exceptions import CryptoError
from nacl.exceptions import RuntimeError as SodiumError
from nacl.pwhash import argon2id
from nacl.secret import SecretBox
from nacl.utils import random

from batonpass.errors import InvalidValueError, KeyFailedError, KeyMissingError, KeyRefusedError
from batonpass.model.base.checks import require_digest
from batonpass.model.base.ids import KeyId, PrincipalId, PublicKey, require_principal
from batonpass.model.bodies.body import PasskeyAnswer, RulingProof
from batonpass.model.ledger.key import Signer
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.ruling import Ruling
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.signing.keyfile import read_private, write_private
from batonpass.signing.ruling_proof import find_objection
from batonpass.wire.receipt_codec import signing_bytes
from batonpass.wire.ruling import encode_ruling

SHORTEST_PASSPHRASE: Final = 8

_FORMAT: Final = "batonpass-approver-v1"
_DERIVATION: Final = "argon2id"
_SUFFIX: Final = ".key"
_NAMED: Final = 16
_MOST_MEMORY: Final = 4 * argon2id.MEMLIMIT_MODERATE
_MOST_PASSES: Final = 4 * argon2id.OPSLIMIT_MODERATE


def find_approvers_home(environment: Mapping[str, str] | None = None) -> Path:
    """Return the directory of approvers' keys. It belongs to the person, and to no ledger or project."""
    environment = os.environ if environment is None else environment
    given = environment.get("XDG_CONFIG_HOME", "")
    # The XDG standard says that a relative path must be ignored.
    base = Path(given) if given and Path(given).is_absolute() else Path(os.path.expanduser("~/.config"))  # noqa: PTH111 - without an error, where nobody has a home
    return base / "batonpass" / "approvers"


class Cost(Struct, frozen=True, kw_only=True):
    """The cost of each guess of a passphrase: passes over an amount of memory.

    Raises `KeyRefusedError` if one of them is out of range.
    """

    passes: int = argon2id.OPSLIMIT_MODERATE
    memory: int = argon2id.MEMLIMIT_MODERATE

    def __post_init__(self) -> None:
        # A file that somebody else prepared must not make us use all memory.
        if not argon2id.OPSLIMIT_MIN <= self.passes <= _MOST_PASSES:
            raise KeyRefusedError(f"{self.passes} passes are not from {argon2id.OPSLIMIT_MIN} to {_MOST_PASSES}")
        if not argon2id.MEMLIMIT_MIN <= self.memory <= _MOST_MEMORY:
            raise KeyRefusedError(f"{self.memory} bytes are not from {argon2id.MEMLIMIT_MIN} to {_MOST_MEMORY}")


MODERATE: Final = Cost()


@dataclass(frozen=True, slots=True)
class Approver:
    """An approver with their key. Give it as `by` to approve or deny with proof."""

    principal: PrincipalId
    signer: Signer = field(repr=False)
    at: datetime | None = field(default=None, repr=False)  # when a passkey was asked, which has signed
    answer: PasskeyAnswer | None = field(default=None, repr=False)  # of a passkey

    def __post_init__(self) -> None:
        require_principal("principal", self.principal)

    def prove(self, ruling: Ruling) -> RulingProof:
        """Return the proof of a ruling: its signature with this key."""
        signature = self.signer.sign(signing_bytes(encode_ruling(ruling)))
        return RulingProof(key=self.signer.key, at=ruling.at, signature=signature.hex(), passkey=self.answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproverFile:
    """An approver's key at rest: its owner, and the parameters to open it."""

    path: Path
    principal: PrincipalId
    public_key: PublicKey
    cost: Cost
    salt: bytes
    sealed: bytes = field(repr=False)

    @property
    def key(self) -> KeyId:
        """Return the id of the key."""
        return key_id(self.public_key)

    def unlock(self, passphrase: str) -> Approver:
        """Return the approver with their key. Raises `KeyRefusedError` if the passphrase is wrong.

        Raises it too if the file has another key than it says: somebody changed the file.
        """
        try:
            seed = _box(passphrase, self.salt, self.cost).decrypt(self.sealed)
        except CryptoError:
            raise KeyRefusedError(f"that passphrase does not open {self.path}; nothing was signed") from None
        signer = Ed25519Signer(seed)
        if signer.public_key != self.public_key:
            raise KeyRefusedError(f"{self.path} holds another key than it says; revoke it, and add another")
        return Approver(self.principal, signer)


def make_approver(
    directory: Path, principal: PrincipalId, passphrase: str, *, cost: Cost | None = None
) -> ApproverFile:
    """Make a key for an approver, and write it to a new file that the passphrase protects.

    Raises `KeyRefusedError` for a passphrase that is too short.
    """
    require_principal("principal", principal)
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise KeyRefusedError(f"a passphrase has at least {SHORTEST_PASSPHRASE} characters; no key was made")
    signer = Ed25519Signer.generate()
    chosen, salt = cost or MODERATE, random(argon2id.SALTBYTES)
    sealed = bytes(_box(passphrase, salt, chosen).encrypt(signer.seed))
    path = path_of(directory, signer.key)
    words = (_FORMAT, principal, signer.public_key, _DERIVATION, chosen.passes, chosen.memory, salt.hex(), sealed.hex())
    write_private(path, " ".join(map(str, words)) + "\n")
    return ApproverFile(
        path=path, principal=principal, public_key=signer.public_key, cost=chosen, salt=salt, sealed=sealed
    )


def read_approver(path: Path) -> ApproverFile:
    """Return a key at rest. Raises `KeyMissingError`.

    Raises `KeyRefusedError` if others can read the file, or if it is not an approver's key.
    """
    words = read_private(path).split()
    try:
        kind, principal, public_key, derivation, passes, memory, salt, sealed = words
        if (kind, derivation) != (_FORMAT, _DERIVATION):
            raise KeyRefusedError(f"{path} is not an approver's key of a format that this program knows")
        return ApproverFile(
            path=path,
            principal=require_principal("principal", PrincipalId(principal)),
            public_key=require_digest("public_key", PublicKey(public_key)),
            cost=Cost(passes=int(passes), memory=int(memory)),
            salt=bytes.fromhex(salt),
            sealed=bytes.fromhex(sealed),
        )
    except (ValueError, InvalidValueError):
        raise KeyRefusedError(f"{path} is not an approver's key file") from None


def find_approver(directory: Path, key: KeyId) -> ApproverFile | None:
    """Return the key with this id, or None. Raises `KeyRefusedError` if its file cannot be trusted."""
    try:
        found = read_approver(path_of(directory, key))
    except KeyMissingError:
        return None
    return found if found.key == key else None


def find_approvers(directory: Path, principal: PrincipalId) -> Iterator[ApproverFile]:
    """Yield the keys of a principal in a directory. Files that cannot be trusted are skipped."""
    for path in sorted(directory.glob(f"*{_SUFFIX}")) if directory.is_dir() else ():
        with suppress(KeyFailedError):
            found = read_approver(path)
            if found.principal == principal:
                yield found


def path_of(directory: Path, key: KeyId) -> Path:
    """Return the path of a key's file: its name is the first 16 digits of the key's id."""
    return directory / f"{key[:_NAMED]}{_SUFFIX}"


def is_proof(proof: RulingProof, ruling: Ruling, public_key: PublicKey) -> bool:
    """Return whether a key signed exactly this ruling."""
    payload = encode_ruling(ruling)
    return find_objection(public_key, payload, bytes.fromhex(proof.signature), proof.passkey) is None


def _box(passphrase: str, salt: bytes, cost: Cost) -> SecretBox:
    try:
        secret = argon2id.kdf(
            SecretBox.KEY_SIZE,
            passphrase.encode("utf-8", "surrogateescape"),
            salt,
            opslimit=cost.passes,
            memlimit=cost.memory,
        )
    except (SodiumError, ValueError) as error:
        raise KeyRefusedError(f"cannot derive a key from that passphrase: {error}") from None
    return SecretBox(secret)
