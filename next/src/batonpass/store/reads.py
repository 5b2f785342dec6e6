"""What both stores read in the same words: the queries of `shared.sql`, as rows and receipts."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import ValidationError, convert

from batonpass.errors import StoreError, VerificationError
from batonpass.model.receipt import Signed
from batonpass.model.rows import HandoffRow, OpenCallRow, StreamRow
from batonpass.system import System
from batonpass.wire.statements import read_signed

Row = tuple[Any, ...]
T = TypeVar("T")


def _read_row(row: object, kind: type[T]) -> T:
    """Return a row as a value. Raises `StoreError`: a database may be made to keep any type in any column."""
    try:
        return convert(row, kind)
    except ValidationError as error:
        raise StoreError(f"a row of the ledger was changed by others: {error}; verify the ledger") from None


def _read_at(row: Row, stream: str, seq: int) -> Signed:
    """Return a receipt that stands where it was signed for: one that is missing or moved is never read as another."""
    signed = read_signed(*row)
    if (signed.stream, signed.receipt.seq) != (stream, seq):
        raise VerificationError(f"number {seq} of {stream} is missing, or another receipt", code="verify.order")
    return signed


class Reads(ABC):
    """The reads of a store, each of what is committed. They are the rows for who explains a refusal as well."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._process = system.pid()

    def _is_own(self) -> bool:
        return self._system.pid() == self._process

    def _require_own(self) -> None:
        """Raise `StoreError` after a fork: files and connections are the parent's."""
        if not self._is_own():
            detail = "a ledger does not survive a fork: open it again in the child process"
            raise StoreError(detail, code="store.forked")

    @abstractmethod
    def _all(self, query: str, **values: object) -> list[Row]:
        """Return the rows of a query. Raises `StoreError`."""

    def first_receipt(self) -> Signed | None:
        """Return the receipt at position 1, which founds the ledger; None while it is empty."""
        rows = self._all("first_receipt")
        return read_signed(*rows[0]) if rows else None

    def genesis(self) -> str | None:
        """Return what this ledger hangs from; None while it is empty."""
        rows = self._all("get_genesis")
        return _read_row(rows[0][0], str) if rows else None

    def find_stream(self, stream: str) -> StreamRow | None:
        """Return the row of a stream, if there is one."""
        rows = self._all("get_stream", id=stream)
        return _read_row(rows[0], StreamRow) if rows else None

    def find_handoff(self, handoff: str) -> HandoffRow | None:
        """Return the row of a handoff, if there is one."""
        rows = self._all("get_handoff", id=handoff)
        return _read_row(rows[0], HandoffRow) if rows else None

    def receipts(self, stream: str, after: int = 0) -> list[Signed]:
        """Return the receipts of a stream, from the one after `after` on."""
        rows = self._all("stream_receipts", stream=stream, after=after)
        return [_read_at(row, stream, seq) for seq, row in enumerate(rows, after + 1)]

    def receipt(self, stream: str, seq: int) -> Signed | None:
        """Return one receipt."""
        rows = self._all("get_receipt", stream=stream, seq=seq)
        return _read_at(rows[0], stream, seq) if rows else None

    def find_request(self, request: str) -> list[Signed]:
        """Return the receipts that a request with an idempotency key caused, in their order."""
        return [read_signed(*row) for row in self._all("find_request", request=request)]

    def has_request(self, request: str, part: str) -> bool:
        """Return whether a request caused this part already."""
        return bool(self._all("has_request", request=request, part=part))

    def heads(self, handoffs: Sequence[str]) -> list[StreamRow]:
        """Return the latest attempt's stream of each handoff that has one."""
        return [_read_row(row, StreamRow) for handoff in handoffs for row in self._all("get_head", id=handoff)]

    def is_revoked(self, account: str) -> bool:
        """Return whether a grant has ended."""
        return bool(self._all("is_revoked", account=account))

    def find_open_call(self, call: str) -> OpenCallRow | None:
        """Return a call that has no outcome."""
        rows = self._all("get_open_call", id=call)
        return _read_row(rows[0], OpenCallRow) if rows else None

    def open_calls(self, run: str) -> list[OpenCallRow]:
        """Return the calls of a run that have no outcome."""
        return [_read_row(row, OpenCallRow) for row in self._all("list_open_calls", run=run)]

    def touching(self, target: str) -> list[Signed]:
        """Return the receipts of calls that changed a target, the first one first."""
        return [read_signed(*row) for row in self._all("list_touching", target=target)]

    def find_by_ending(self, table: str, ending: str, limit: int) -> list[str]:
        """Return ids that end so, the latest first. `table` is `runs` or `handoffs`."""
        return [_read_row(row[0], str) for row in self._all(f"{table}_by_ending", ending=ending, limit=limit)]

    def find_by_agent(self, table: str, agent: str, limit: int) -> list[str]:
        """Return ids of an agent's runs, or of handoffs to it, the latest first."""
        return [_read_row(row[0], str) for row in self._all(f"{table}_by_agent", agent=agent, limit=limit)]

    def list_runs(self, *, state: str | None, agent: str | None, before: str | None, limit: int) -> list[StreamRow]:
        """Return runs, the latest first, from the one before `before` on."""
        rows = self._all("list_runs", state=state, agent=agent, before=before or "run_~", limit=limit)
        return [_read_row(row, StreamRow) for row in rows]

    def runs_of_tree(self, root: str) -> list[StreamRow]:
        """Return the runs of a tree, the root first."""
        return [_read_row(row, StreamRow) for row in self._all("runs_of_tree", root=root)]
