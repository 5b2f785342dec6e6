"""Whose word counts: keys with an owner, from a reviewed file on the default branch, or from the reader's own.

A note brings its own key, so its signature alone proves nothing. A key counts if one of these files names it, or names
the root key that enrolled it. The files are `batonpass-keys.toml` on the default branch of the remote, as it was last
fetched, and `keys.toml` in the reader's own configuration. The commit that is asked about is never read for keys: its
author could add a key as well as lines.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct, field

from batonpass.attribution.git.git_process import GitSilentError
from batonpass.errors import InvalidValueError, KeyRefusedError, VerificationError
from batonpass.model.base.ids import KeyId, PrincipalId, PublicKey, require_principal
from batonpass.model.bodies.body import RelayEnrolled, RelayRevoked, RelayRotated
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.notes.note_store import NoteRepository
from batonpass.signing.approver_key import find_approvers_home
from batonpass.signing.ed25519 import is_signed, require_strong
from batonpass.signing.ruling_proof import require_usable
from batonpass.wire.receipt_codec import decode_envelope, signing_bytes

KEYS_FILE: Final = "batonpass-keys.toml"
_OWN_FILE: Final = "keys.toml"
_LARGEST: Final = 1024 * 1024
_FIELDS: Final = frozenset({"owner", "key", "since", "until", "revoked"})
_Check: TypeAlias = Callable[[PublicKey], PublicKey]
_TABLES: Final[Mapping[str, _Check]] = {"relay": require_strong, "approver": require_usable}
_DEFAULTS: Final = ("HEAD", "main", "master")


class TrustedKey(Struct, frozen=True, kw_only=True):
    """A key that a file names: whose it is, and for which time its word counts."""

    owner: PrincipalId
    key: PublicKey
    since: datetime | None = None
    until: datetime | None = None
    revoked: str | None = None  # the reason: nothing that it signed counts, whatever time it names

    def objection(self, at: datetime) -> str | None:
        """Return why its signature at this time does not count; None if it counts."""
        if self.revoked is not None:
            return f"the key of {self.owner} was revoked: {self.revoked}"
        if (self.since is not None and at < self.since) or (self.until is not None and at >= self.until):
            return f"the key of {self.owner} was not valid then"
        return None


class TrustedKeys(Struct, frozen=True, kw_only=True):
    """The keys that this reader trusts, and the problem with a file that names some of them."""

    relays: tuple[TrustedKey, ...] = ()
    approvers: tuple[TrustedKey, ...] = ()
    problems: tuple[str, ...] = ()

    def with_more(self, other: "TrustedKeys") -> "TrustedKeys":
        """Return all keys of both."""
        return TrustedKeys(
            relays=(*self.relays, *other.relays),
            approvers=(*self.approvers, *other.approvers),
            problems=(*self.problems, *other.problems),
        )


class KeyVerdict(Struct, frozen=True, kw_only=True):
    """Whether the word of a key counts, and whose word it is."""

    owner: PrincipalId | None = None  # None: nobody vouches for the key
    problem: str | None = None

    @property
    def counts(self) -> bool:
        """Return whether somebody vouches for the key, and it was valid."""
        return self.owner is not None and self.problem is None


class EnrolledKeys(Struct, frozen=True, kw_only=True):
    """The statements of root keys about the keys of relays, as far as their signatures hold."""

    enrolled: Mapping[KeyId, tuple[PublicKey, ...]] = field(default_factory=dict)  # by root: the relays' keys
    revoked: frozenset[tuple[KeyId, PublicKey]] = frozenset()


def judge_key(trusted: TrustedKeys, key: PublicKey, at: datetime, enrolment: EnrolledKeys) -> KeyVerdict:
    """Return whether the word of a relay's key counts, said at this time."""
    objection: KeyVerdict | None = None
    for one in trusted.relays:
        root = key_id(one.key)
        is_enrolled = key in enrolment.enrolled.get(root, ())
        if one.key != key and not is_enrolled:
            continue
        problem = one.objection(at)
        if problem is None and (root, key) in enrolment.revoked:
            problem = f"the ledger of {one.owner} revoked this relay's key"
        if problem is None:
            return KeyVerdict(owner=one.owner)
        objection = KeyVerdict(owner=one.owner, problem=problem)
    return objection or KeyVerdict(problem="nobody vouches for this key")


def read_enrolment(lines: Iterable[str], roots: Iterable[PublicKey]) -> EnrolledKeys:
    """Return which relays' keys these root keys enrolled and revoked, from lines of a proof; others are left out."""
    known = {key_id(root): bytes.fromhex(root) for root in roots}
    enrolled: dict[KeyId, tuple[PublicKey, ...]] = {}
    revoked: set[tuple[KeyId, PublicKey]] = set()
    for line in lines:
        signed = read_receipt_line(line)
        cosigner = None if signed is None else signed.receipt.cosigner
        if signed is None or signed.cosignature is None or cosigner is None or cosigner not in known:
            continue
        if not is_signed(known[cosigner], signing_bytes(signed.payload), signed.cosignature):
            continue
        match signed.receipt.body:
            case RelayEnrolled() | RelayRotated() as body:
                enrolled[cosigner] = (*enrolled.get(cosigner, ()), body.public_key)
            case RelayRevoked() as body:
                revoked.add((cosigner, body.public_key))
            case _:
                continue
    return EnrolledKeys(enrolled=enrolled, revoked=frozenset(revoked))


def read_receipt_line(line: str) -> SignedReceipt | None:
    """Return the receipt in a line of a proof, unverified; None if it is something else."""
    if not line.startswith('{"dsse"'):
        return None
    try:
        return decode_envelope(bytes(_RECEIPTS.decode(line.encode("utf-8", "surrogateescape")).dsse))
    except (msgspec.DecodeError, InvalidValueError, VerificationError, RecursionError, ValueError):
        return None


class _ReceiptLine(Struct):
    dsse: msgspec.Raw


_RECEIPTS: Final = msgspec.json.Decoder(_ReceiptLine)


def find_trusted(repository: NoteRepository) -> TrustedKeys:
    """Return the keys that count here: those of the default branch as it was fetched, and the reader's own."""
    own = find_approvers_home(repository.environment).parent / _OWN_FILE
    found = TrustedKeys()
    data = _own(own)
    if data is not None:
        found = found.with_more(parse_keys(data, str(own)))
    branch = default_branch(repository)
    if branch is not None:
        blobs = repository.blobs([(branch, KEYS_FILE)])
        for _, committed in repository.contents(blobs.values()):
            found = found.with_more(parse_keys(committed, f"{branch.removeprefix('refs/remotes/')}:{KEYS_FILE}"))
    return found


def default_branch(repository: NoteRepository) -> str | None:
    """Return the remote's default branch as it was last fetched; None if there is none to be sure of.

    With several remotes, only `origin` is meant: another may be anybody's fork.
    """
    try:
        remotes = repository.remotes()
        remote = "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else None
        names = () if remote is None else tuple(f"refs/remotes/{remote}/{name}" for name in _DEFAULTS)
        return next((name for name in names if repository.commit_of(name) is not None), None)
    except GitSilentError:
        return None


def parse_keys(data: bytes, source: str) -> TrustedKeys:
    """Return the keys in a file. One with a mistake names none: half of a list may lack the revocations."""
    try:
        relays, approvers = _tables(data)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, InvalidValueError, KeyRefusedError, RecursionError) as error:
        return TrustedKeys(problems=(f"{source} cannot be used: {error}",))
    return TrustedKeys(relays=relays, approvers=approvers)


def _tables(data: bytes) -> tuple[tuple[TrustedKey, ...], ...]:
    if len(data) > _LARGEST:
        raise InvalidValueError("keys", "are too many")
    document = tomllib.loads(data.decode())
    if unknown := set(document) - set(_TABLES):
        raise InvalidValueError(min(unknown), "is not a table of this file")
    return tuple(_keys(document.get(table, []), require) for table, require in _TABLES.items())


def _own(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _keys(tables: Sequence[Mapping[str, Any]], require: _Check) -> tuple[TrustedKey, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InvalidValueError("keys", "are not in tables of the form [[relay]]")
    return tuple(_key(table, require) for table in tables)


def _key(table: Mapping[str, Any], require: _Check) -> TrustedKey:
    if unknown := set(table) - _FIELDS:
        raise InvalidValueError(min(unknown), "is not a field of a key")
    key = table.get("key")
    revoked = table.get("revoked")
    if not isinstance(key, str) or (revoked is not None and not isinstance(revoked, str)):
        raise InvalidValueError("key", "is a public key in hexadecimal, and `revoked` says why in words")
    return TrustedKey(
        owner=require_principal("owner", PrincipalId(table.get("owner", ""))),
        key=require(PublicKey(key)),
        since=_moment("since", table.get("since")),
        until=_moment("until", table.get("until")),
        revoked=revoked,
    )


def _moment(name: str, value: object) -> datetime | None:
    match value:
        case None:
            return None
        case datetime():
            return value.astimezone(UTC) if value.tzinfo is not None else value.replace(tzinfo=UTC)
        case date():
            return datetime.combine(value, time.min, UTC)
        case _:
            raise InvalidValueError(name, "is not a date")
