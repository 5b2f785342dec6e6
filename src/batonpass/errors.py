"""Every error that Batonpass raises on purpose.

    BatonpassError
    ├── InvalidValueError          value.invalid
    │   └── UnknownFieldError      value.unknown_field
    ├── IllegalTransitionError     lifecycle.illegal
    ├── LookupFailedError
    │   ├── NotFoundError          id.not_found
    │   └── AmbiguousIdError       id.ambiguous
    ├── ContentTooLargeError       content.too_large
    ├── ContentErasedError         content.erased
    ├── KeyFailedError
    │   ├── KeyRefusedError        key.refused
    │   └── KeyMissingError        key.missing
    ├── LedgerError
    │   ├── StaleHeadError         ledger.stale_head
    │   ├── FencedError            ledger.fenced
    │   ├── StreamClosedError      ledger.stream_closed
    │   ├── RewoundError           ledger.rewound
    │   ├── DuplicateReceiptError  ledger.duplicate
    │   ├── LedgerExistsError      ledger.exists
    │   └── UnknownRelayError      ledger.unknown_relay
    ├── StoreError
    │   ├── StoreBusyError         store.busy
    │   ├── StoreUnavailableError  store.unavailable
    │   ├── StoreRefusedError      store.refused
    │   ├── StoreReadOnlyError     store.read_only
    │   ├── StoreFullError         store.full
    │   ├── NotALedgerError        store.not_a_ledger
    │   ├── SchemaError            store.schema
    │   ├── NewerSchemaError       store.newer_schema
    │   ├── ForkedError            store.forked
    │   ├── StoreShutError         store.shut
    │   └── OutcomeUnknownError    store.outcome_unknown
    └── VerificationError          verify.* (one code for each thing that can be wrong)

The code is stable and belongs to machines; the sentence is for people and ends with what to do about it.
Exit codes and HTTP statuses are the doors' business and are not written here.
"""

from typing import ClassVar


class BatonpassError(Exception):
    """Something that Batonpass refuses or cannot do, in one sentence, with a stable `code`."""

    code: ClassVar[str] = "batonpass.error"


class InvalidValueError(BatonpassError):
    """A value was constructed or received with a field that cannot be right."""

    code = "value.invalid"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class UnknownFieldError(InvalidValueError):
    """An input has a field that its schema does not know; inputs are closed."""

    code = "value.unknown_field"

    def __init__(self, field: str) -> None:
        super().__init__(field, "there is no such field; was it written by a newer version?")


class IllegalTransitionError(BatonpassError):
    """A handoff cannot go where an event would take it from the state it is in."""

    code = "lifecycle.illegal"

    def __init__(self, state: str, event: str, carrier: str) -> None:
        super().__init__(f"a {carrier}-carried handoff that is {state} cannot {event}")
        self.state = state
        self.event = event


class LookupFailedError(BatonpassError):
    """Something was asked for and not exactly one thing answers."""


class NotFoundError(LookupFailedError):
    """Nothing has this id."""

    code = "id.not_found"

    def __init__(self, what: str, given: str) -> None:
        super().__init__(f"no {what} {given!r} in this ledger")
        self.what = what
        self.given = given


class AmbiguousIdError(LookupFailedError):
    """Several things have an id that ends like this."""

    code = "id.ambiguous"

    def __init__(self, what: str, given: str, candidates: tuple[str, ...]) -> None:
        shown = "\n".join(f"  {candidate}" for candidate in candidates)
        super().__init__(f"{given!r} could be any of these {what}s; give more of its last characters:\n{shown}")
        self.candidates = candidates


class ContentTooLargeError(BatonpassError):
    """A text or file is larger than this store takes."""

    code = "content.too_large"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the content has {size:,} bytes and this store takes at most {limit:,}; "
            "keep it in a file or an object store and attach its digest",
        )
        self.size = size
        self.limit = limit


class ContentErasedError(BatonpassError):
    """The content was there, and was erased on purpose."""

    code = "content.erased"

    def __init__(self, content: str) -> None:
        super().__init__(f"{content} was erased; its receipt still proves that it existed")


class KeyFailedError(BatonpassError):
    """A key cannot be used."""


class KeyRefusedError(KeyFailedError):
    """A key is malformed, weak, readable by others, or not entitled to what it was used for."""

    code = "key.refused"


class KeyMissingError(KeyFailedError):
    """A key that is needed here is not on this machine."""

    code = "key.missing"


class LedgerError(BatonpassError):
    """An append was refused; nothing was written."""


class StaleHeadError(LedgerError):
    """Another receipt came first: the stream's head is no longer the one this receipt was built on."""

    code = "ledger.stale_head"

    def __init__(self, stream: str, seq: int) -> None:
        super().__init__(f"{stream} already has a receipt {seq}; read its head and append again")
        self.stream = stream
        self.seq = seq


class FencedError(LedgerError):
    """The writer's epoch has passed: somebody else took over this stream."""

    code = "ledger.fenced"

    def __init__(self, stream: str, held: int, current: int) -> None:
        super().__init__(
            f"{stream} is in epoch {current} and this writer holds epoch {held}: it was taken over; stop this writer",
        )
        self.stream = stream


class StreamClosedError(LedgerError):
    """The stream has its last receipt already."""

    code = "ledger.stream_closed"

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream} is closed; open a new run to go on")
        self.stream = stream


class RewoundError(LedgerError):
    """The store is behind what was acknowledged: it was restored from a backup, or replaced."""

    code = "ledger.rewound"

    def __init__(self, stream: str, expected: int, found: int) -> None:
        super().__init__(
            f"{stream} had {expected} receipts and the store now holds {found}: the ledger was replaced or restored; "
            "stop all writers and run `batonpass ledger verify` with the last seal",
        )
        self.stream = stream


class DuplicateReceiptError(LedgerError):
    """A receipt or content with this id exists already, with other bytes."""

    code = "ledger.duplicate"

    def __init__(self, given: str) -> None:
        super().__init__(f"{given} is in the ledger already, with other bytes")


class LedgerExistsError(LedgerError):
    """A bundle was to be imported where something is recorded already."""

    code = "ledger.exists"

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} holds a ledger already; import into a new one, named with --ledger")


class UnknownRelayError(LedgerError):
    """The receipt is signed by a key that this ledger never enrolled, or has revoked."""

    code = "ledger.unknown_relay"

    def __init__(self, key: str, *, enrolled: bool = False) -> None:
        state = "is no longer active" if enrolled else "is not enrolled"
        super().__init__(
            f"relay key {key[:16]} {state} in this ledger; "
            "where the root key is, run `batonpass key enroll` with what `batonpass key list` shows here",
        )
        self.key = key


class StoreError(BatonpassError):
    """The store could not do what was asked; nothing was half done."""


class StoreBusyError(StoreError):
    """Another process has kept the ledger for longer than we wait."""

    code = "store.busy"


class StoreUnavailableError(StoreError):
    """The store cannot be reached."""

    code = "store.unavailable"


class StoreRefusedError(StoreError):
    """The store is there and does not let us in."""

    code = "store.refused"


class StoreReadOnlyError(StoreError):
    """The store can be read and not written."""

    code = "store.read_only"


class StoreFullError(StoreError):
    """There is no room left to write."""

    code = "store.full"


class NotALedgerError(StoreError):
    """What is there is not a Batonpass ledger."""

    code = "store.not_a_ledger"


class SchemaError(StoreError):
    """The store's schema is older than this program and has to be migrated first."""

    code = "store.schema"


class NewerSchemaError(StoreError):
    """The store was written by a newer Batonpass."""

    code = "store.newer_schema"


class ForkedError(StoreError):
    """The store was opened in a parent process; a fork must open its own."""

    code = "store.forked"

    def __init__(self) -> None:
        super().__init__("this store was opened before a fork; open the ledger again in the child process")


class StoreShutError(StoreError):
    """The store was shut, by its owner or because its writer failed."""

    code = "store.shut"


class OutcomeUnknownError(StoreError):
    """The connection broke during a commit and the store could not be asked what became of it."""

    code = "store.outcome_unknown"


class VerificationError(BatonpassError):
    """The first thing that is wrong with a ledger: what, and where.

    `code` tells what kind of wrong; `stream`, `seq` and `field` tell where, as far as they are known.
    """

    code = "verify.failed"

    def __init__(
        self,
        problem: str,
        *,
        stream: str | None = None,
        seq: int | None = None,
        field: str | None = None,
    ) -> None:
        place = " ".join(
            part
            for part in (stream or "", f"seq {seq}" if seq is not None else "", f"field {field}" if field else "")
            if part
        )
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.stream = stream
        self.seq = seq
        self.field = field


class MissingError(VerificationError):
    """A receipt that another one, a head or a position proves to have existed is not there."""

    code = "verify.missing"


class ChainError(VerificationError):
    """A receipt does not hang from the one before it: reordered, doubled or spliced."""

    code = "verify.chain"


class EditedError(VerificationError):
    """A stored column says something else than the signed bytes, or the bytes cannot be read."""

    code = "verify.edited"


class SignatureError(VerificationError):
    """A signature does not match the bytes it stands under, or is missing."""

    code = "verify.signature"


class UnknownKeyError(VerificationError):
    """A receipt or seal is signed by a key that the root key never enrolled for that."""

    code = "verify.unknown_key"


class RevokedKeyError(VerificationError):
    """A receipt was recorded with a relay key after that key had been revoked or replaced."""

    code = "verify.revoked_key"


class UnlinkedError(VerificationError):
    """A child run, a handoff stream or a close-out does not fit the receipt it must hang from."""

    code = "verify.unlinked"


class ContentMismatchError(VerificationError):
    """Content is missing, surplus, or not what its receipt committed to."""

    code = "verify.content"


class DerivedStateError(VerificationError):
    """A derived row (stream, run, handoff, key) says something that the receipts do not support."""

    code = "verify.derived"


class PositionError(VerificationError):
    """Positions have a gap, a double, or contradict the order of a stream."""

    code = "verify.position"


class SealError(VerificationError):
    """What a seal commits to is not what is here."""

    code = "verify.seal"


class NewerVersionError(VerificationError):
    """A receipt was written in a format that is newer than this program."""

    code = "verify.version"
