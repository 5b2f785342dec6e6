"""What a store of receipts does. It knows rows and receipts, and decides nothing: every rule comes with a `Change`."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from batonpass.model.receipt import Signed
from batonpass.model.rows import HandoffRow, OpenCallRow, StreamRow

Stored = tuple[int, str, int, bytes, bytes, bytes | None, bytes | None]
"""position, stream, seq, payload, signature, cosignature, contents"""


class View(Protocol):
    """The ledger at one moment, however long it is looked at and whatever is written meanwhile."""

    def receipts(self) -> Iterator[Stored]:
        """Yield every receipt, by position."""
        ...

    def damage(self) -> str | None:
        """Return what the database itself finds wrong, an index that is not its table's say; None if nothing."""
        ...

    def rows(self, table: str) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a derived table, by its key. `admission.TABLES` names them."""
        ...


class Store(Protocol):
    """Keeps receipts. Every thread of a process may use it at once; after a fork it refuses."""

    url: str

    def append(self, entry: Sequence[Signed], /) -> None:
        """Write an entry, all of it or nothing, and return when it is durable.

        Raises `ConflictError` if another came first, `FencedError` if its run was taken over or has ended, `GrantError`
        if a grant that it needs was revoked, `OutcomeUnknownError` if nobody can tell whether it was written, and
        `StoreError` if it was not.
        """
        ...

    def first_receipt(self) -> Signed | None:
        """Return the receipt at position 1, which founds the ledger; None while it is empty."""
        ...

    def genesis(self) -> str | None:
        """Return what this ledger hangs from; None while it is empty."""
        ...

    def find_stream(self, stream: str) -> StreamRow | None:
        """Return the row of a stream, if there is one."""
        ...

    def find_handoff(self, handoff: str) -> HandoffRow | None:
        """Return the row of a handoff, if there is one."""
        ...

    def receipts(self, stream: str, after: int = 0) -> list[Signed]:
        """Return the receipts of a stream, from the one after `after` on."""
        ...

    def receipt(self, stream: str, seq: int) -> Signed | None:
        """Return one receipt."""
        ...

    def find_request(self, request: str) -> list[Signed]:
        """Return the receipts that a request with an idempotency key caused, in their order."""
        ...

    def heads(self, handoffs: Sequence[str]) -> list[StreamRow]:
        """Return the latest attempt's stream of each handoff that has one."""
        ...

    def is_revoked(self, account: str) -> bool:
        """Return whether a grant has ended."""
        ...

    def open_calls(self, run: str) -> list[OpenCallRow]:
        """Return the calls of a run that have no outcome."""
        ...

    def touching(self, target: str) -> list[Signed]:
        """Return the receipts of calls that changed a target, the first one first."""
        ...

    def find_by_ending(self, table: str, ending: str, limit: int) -> list[str]:
        """Return ids that end so, the latest first. `table` is `runs` or `handoffs`."""
        ...

    def find_by_agent(self, table: str, agent: str, limit: int) -> list[str]:
        """Return ids of an agent's runs, or of handoffs to it, the latest first."""
        ...

    def list_runs(self, *, state: str | None, agent: str | None, before: str | None, limit: int) -> list[StreamRow]:
        """Return runs, the latest first, from the one before `before` on."""
        ...

    def runs_of_tree(self, root: str) -> list[StreamRow]:
        """Return the runs of a tree, the root first."""
        ...

    def view(self) -> AbstractContextManager[View]:
        """Return the ledger at one moment."""
        ...

    def close(self) -> None:
        """Close the files or connections."""
        ...
