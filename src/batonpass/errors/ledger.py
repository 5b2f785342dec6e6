"""Errors of the ledger and its store. Nothing was written, unless the error says otherwise."""

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
    """Something was recorded in the tree after the writer last read it."""

    code = "ledger.premise"

    def __init__(self, root: str) -> None:
        super().__init__(f"something was recorded in {root} in the meantime; read it, then append again")
        self.root = root


class FencedError(LedgerError):
    """The writer's epoch is over: somebody else took over this stream."""

    code = "ledger.fenced"

    def __init__(self, stream: str, held: int, current: int) -> None:
        super().__init__(
            f"{stream} is in epoch {current} and this writer has epoch {held}: it was taken over; stop this writer",
        )
        self.stream = stream


class StreamClosedError(LedgerError):
    """The stream already has its last receipt."""

    code = "ledger.stream_closed"

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream} is closed; start a new run to continue")
        self.stream = stream


class RewoundError(LedgerError):
    """The store has fewer receipts than it acknowledged: it was restored from a backup, or replaced."""

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
    """A receipt or content with this id already exists, with different bytes."""

    code = "ledger.duplicate"

    def __init__(self, given: str) -> None:
        super().__init__(f"{given} is already in the ledger, with different bytes")


class LedgerExistsError(LedgerError):
    """A bundle cannot be imported into a ledger that already holds receipts."""

    code = "ledger.exists"

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} already holds a ledger; import into a new one, named with --ledger")


class OfferedAlreadyError(LedgerError):
    """A handoff was already offered under this key; continue with that one."""

    code = "ledger.offered"

    def __init__(self, handoff: str) -> None:
        super().__init__(f"{handoff} was already offered under this key; continue with it")
        self.handoff = handoff


class LeaseLostError(LedgerError):
    """The lease expired and somebody else took the work, or it was taken back."""

    code = "ledger.lease_lost"

    def __init__(self, handoff: str) -> None:
        super().__init__(f"the lease on {handoff} is lost: stop working on it; finished calls are kept")
        self.handoff = handoff


class BudgetExhaustedError(LedgerError):
    """A limit does not have enough left. Nothing was written or counted."""

    code = "ledger.budget_exhausted"

    def __init__(self, account: str, unit: str, used: int, most: int) -> None:
        super().__init__(
            f"{account} and the runs below it may use {most} {unit}, and this would make {used}; "
            "continue without it, or have the limit raised",
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
            "run `batonpass key enroll` where the root key is, with the key that `batonpass key list` shows here",
        )
        self.key = key


class UnknownApproverError(LedgerError):
    """A ruling is signed with a key that is not, or no longer, an approver's."""

    code = "ledger.unknown_approver"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"key {key[:16]} is not an active approver's key in this ledger, so nothing was decided; "
            "`batonpass approver list` shows the active keys"
        )
        self.key = key


class StoreError(BatonpassError):
    """The store failed; nothing was half done."""


class StoreBusyError(StoreError):
    """Another process held the ledger for longer than we wait."""

    code = "store.busy"


class StoreUnavailableError(StoreError):
    """The store cannot be reached."""

    code = "store.unavailable"


class NoLedgerError(StoreUnavailableError):
    """There is no ledger here, and commands that only read do not create one."""

    code = "store.no_ledger"


class ForeignLedgerError(StoreError):
    """The ledger is committed in the repository that is looked at: it says whatever the author of the commits wants."""

    code = "store.foreign"


class StoreRefusedError(StoreError):
    """The store exists and denies access."""

    code = "store.refused"


class StoreReadOnlyError(StoreError):
    """The store can be read but not written."""

    code = "store.read_only"


class StoreFullError(StoreError):
    """There is no space left to write."""

    code = "store.full"


class NotALedgerError(StoreError):
    """The file or database is not a Batonpass ledger."""

    code = "store.not_a_ledger"


class SchemaError(StoreError):
    """The store's schema is older than this program and has to be migrated first."""

    code = "store.schema"


class StoreAlteredError(StoreError):
    """Somebody changed the store's tables, indexes or triggers, so writes could be lost or altered."""

    code = "store.altered"


class NewerSchemaError(StoreError):
    """The store was written by a newer Batonpass."""

    code = "store.newer_schema"


class ForkedError(StoreError):
    """The store was opened in a parent process; a forked process must open its own."""

    code = "store.forked"

    def __init__(self) -> None:
        super().__init__("this store was opened before a fork; open the ledger again in the child process")


class StoreShutError(StoreError):
    """The store was closed, by its owner or because its writer failed."""

    code = "store.shut"


class OutcomeUnknownError(StoreError):
    """The connection broke during a commit, and the store could not be asked for the outcome."""

    code = "store.outcome_unknown"
