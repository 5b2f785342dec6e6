"""Errors of the ledger and its store: something was not written."""

from pathlib import Path

from batonpass.errors.base import BatonpassError


class LedgerError(BatonpassError):
    """An append was refused; nothing was written."""


class StaleHeadError(LedgerError):
    """Another receipt came first: the stream's head is no longer the one this receipt was built on."""

    code = "ledger.stale_head"

    def __init__(self, stream: str, seq: int) -> None:
        super().__init__(f"{stream} already has a receipt {seq}; read its head and append again")
        self.stream = stream
        self.seq = seq


class PremiseError(LedgerError):
    """Something happened in a tree that whoever made this receipt did not know of yet."""

    code = "ledger.premise"

    def __init__(self, root: str) -> None:
        super().__init__(f"somebody said or decided something in {root} meanwhile; read it, and append again")
        self.root = root


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

    def __init__(self, stream: str, expected: int, found: int, *, remembered: Path | None = None) -> None:
        on_purpose = "" if remembered is None else f"; if you restored it on purpose, remove {remembered}"
        super().__init__(
            f"{stream} had {expected} receipts and the store now holds {found}: the ledger was replaced or restored; "
            f"stop all writers and run `batonpass ledger verify` with the last seal{on_purpose}",
        )
        self.stream = stream
        self.expected = expected
        self.found = found


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


class OfferedAlreadyError(LedgerError):
    """Another handoff was offered under this key in this scope; it is the one to go on with."""

    code = "ledger.offered"

    def __init__(self, handoff: str) -> None:
        super().__init__(f"{handoff} was offered under this key already; go on with it")
        self.handoff = handoff


class LeaseLostError(LedgerError):
    """The lease ran out and another took the work, or it was taken back."""

    code = "ledger.lease_lost"

    def __init__(self, handoff: str) -> None:
        super().__init__(f"the lease on {handoff} is lost: stop working on it; what was finished is kept")
        self.handoff = handoff


class BudgetExhaustedError(LedgerError):
    """Something would use more than is left of a limit; nothing of it was written, and nothing was counted."""

    code = "ledger.budget_exhausted"

    def __init__(self, account: str, unit: str, used: int, most: int) -> None:
        super().__init__(
            f"{account} and what is below it may use {most} {unit}, and this would make it {used}; "
            "go on without it, or have the limit raised",
        )
        self.account = account
        self.unit = unit
        self.used = used
        self.most = most


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


class UnknownApproverError(LedgerError):
    """The key that signed a decision is not an approver's, or no longer is."""

    code = "ledger.unknown_approver"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"key {key[:16]} is not an active approver's key of this ledger, so nothing was decided; "
            "`batonpass approver list` shows whose keys are"
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


class NoLedgerError(StoreUnavailableError):
    """There is no ledger here, and whoever only reads does not make one."""

    code = "store.no_ledger"


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


class StoreAlteredError(StoreError):
    """Somebody changed the store's tables, indexes or triggers; what we write there may be lost or changed."""

    code = "store.altered"


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
