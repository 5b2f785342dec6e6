"""Why a receipt may not be written, in the words of the rule that it breaks; and the rows in memory.

The stores compare and set without reading. Only when nothing matched does a store ask here, with the rows as they are,
which expectation failed. The verifier asks the same of every receipt, over `Tables`.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec.structs import astuple, replace

from batonpass.errors import (
    BatonpassError,
    ConflictError,
    FencedError,
    GrantError,
    KeyFailedError,
    NotFoundError,
    StoreError,
)
from batonpass.model.change import Change
from batonpass.model.lifecycle import RunState, State
from batonpass.model.rows import HandoffRow, OpenCallRow, StreamRow

TABLES: Final = ("ledger", "streams", "handoffs", "open_calls", "requests", "revoked", "touches")


class Rows(Protocol):
    """The rows, as the explanation of a refusal reads them."""

    def genesis(self) -> str | None:
        """Return what the ledger hangs from."""
        ...

    def find_stream(self, stream: str) -> StreamRow | None:
        """Return a stream."""
        ...

    def find_handoff(self, handoff: str) -> HandoffRow | None:
        """Return a handoff."""
        ...

    def find_open_call(self, call: str) -> OpenCallRow | None:
        """Return a call that has no outcome."""
        ...

    def is_revoked(self, account: str) -> bool:
        """Return whether a grant has ended."""
        ...

    def has_request(self, request: str, part: str) -> bool:
        """Return whether a request caused this part already."""
        ...


def explain(change: Change, rows: Rows) -> BatonpassError | None:
    """Return why a change is refused, the reason that explains most first; None if it is not."""
    return (
        _explain_stream(change, rows.find_stream(change.stream))
        or _explain_handoff(change, rows)
        or _explain_others(change, rows)
    )


def explain_entry(changes: Sequence[Change], rows: Rows) -> BatonpassError | None:
    """Return why an entry is refused: the first of its changes that the rows, with those before it, do not allow."""
    tables = Tables()
    tables.ledger = rows.genesis()
    for change in changes:
        tables.read(change, rows)
    try:
        for change in changes:
            tables.apply(change)
    except BatonpassError as refusal:
        return refusal
    return None


def _explain_stream(change: Change, row: StreamRow | None) -> BatonpassError | None:
    if change.seq == 1:
        return None if row is None else ConflictError(f"{change.stream} has begun already")
    if row is None:
        detail = f"the ledger has no {change.stream}, of which it acknowledged {change.seq - 1} receipts: restore it"
        return StoreError(detail, code="ledger.rewound")
    # The epoch first: a holder that was taken over must learn that, also when the stream has ended since.
    if change.from_epoch < row.epoch:
        return FencedError(f"{change.stream} was taken over: what it does now is not recorded in its name")
    if row.state != RunState.OPEN:
        return FencedError(f"{change.stream} has ended: it is {row.state}", code="ledger.stream_closed")
    if change.seq - 1 > row.seq:
        detail = f"{change.stream} ends at {row.seq} in the ledger, and {change.seq - 1} was acknowledged: restore it"
        return StoreError(detail, code="ledger.rewound")
    if (change.seq - 1, change.previous, change.from_epoch) != (row.seq, row.head, row.epoch):
        return ConflictError(f"{change.stream} has gone on since it was looked at")
    if change.from_recorder not in {None, row.recorder}:
        return ConflictError(f"{change.stream} is recorded by {row.recorder}", code="ledger.precondition_failed")
    return None


def _explain_handoff(change: Change, rows: Rows) -> BatonpassError | None:
    if change.moves is None:
        return None
    row = rows.find_handoff(change.moves)
    if change.from_states is None:
        if row is None:
            return None
        return ConflictError(f"{row.id} is the same offer", code="handoff.already_offered", facts={"handoff": row.id})
    if row is None:
        return NotFoundError(f"there is no {change.moves} in this ledger")
    is_attempt = change.from_run == change.stream
    if is_attempt and (row.run, row.attempt) != (change.from_run, change.from_attempt):
        return FencedError(f"{row.id} is in attempt {row.attempt} by {row.run or 'nobody'}")
    if row.state not in change.from_states.split():
        return _wrong_state(change, row, is_attempt=is_attempt)
    if change.from_attempt not in {None, row.attempt} or change.from_run not in {None, row.run}:
        return ConflictError(f"{row.id} is in attempt {row.attempt} by {row.run or 'nobody'}")
    if change.from_last not in {None, row.last}:
        return ConflictError(f"{row.id} has moved on since it was looked at")
    if change.from_parent not in {None, row.parent} or change.from_agent not in {None, row.to}:
        detail = f"{row.id} was offered by {row.parent} to {row.to}"
        return ConflictError(detail, code="ledger.precondition_failed")
    return None


def _wrong_state(change: Change, row: HandoffRow, *, is_attempt: bool) -> BatonpassError:
    if is_attempt:
        return FencedError(f"{row.id} is {row.state}: this attempt has ended", code="ledger.stream_closed")
    return ConflictError(f"{row.id} is {row.state}, and this act needs it to be {change.from_states}")


def _explain_others(change: Change, rows: Rows) -> BatonpassError | None:
    if change.recorder != change.stream and rows.find_stream(change.recorder) is None:
        return KeyFailedError(f"{change.recorder} is not enrolled in this ledger: it may not record here")
    if change.genesis is not None:
        own = rows.genesis()
        if own != change.genesis and not (own is None and change.founds):
            return ConflictError(f"{change.stream} does not hang from this ledger", code="ledger.precondition_failed")
    if change.fenced is not None:
        fenced = rows.find_stream(change.fenced)
        if fenced is None or (fenced.seq, fenced.head) != (change.fenced_seq, change.fenced_head):
            return ConflictError(f"{change.fenced} has gone on since it was looked at")
    if change.holder is not None:
        holder = rows.find_stream(change.holder)
        if holder is None or holder.epoch != change.holder_epoch:
            return FencedError(f"{change.holder} was taken over: it withdraws nothing any more")
    return _explain_calls(change, rows)


def _explain_calls(change: Change, rows: Rows) -> BatonpassError | None:
    failed = "ledger.precondition_failed"
    if change.attempt_run is not None:
        attempt = rows.find_stream(change.attempt_run)
        if attempt is None or attempt.handoff != change.moves:
            return ConflictError(f"{change.attempt_run} is no attempt at {change.moves}", code=failed)
    if change.opens_call is not None and rows.find_open_call(change.opens_call) is not None:
        return ConflictError(f"{change.opens_call} was requested before", code=failed)
    opened = None if change.closes_call is None else rows.find_open_call(change.closes_call)
    if change.closes_call is not None and (opened is None or opened.run != change.call_run):
        return ConflictError(f"{change.closes_call} of {change.call_run} is not open: it has its outcome", code=failed)
    for account in (change.charges or "").split():
        if rows.is_revoked(account):
            return GrantError(f"the grant of {account} was revoked", code="grant.revoked", facts={"account": account})
    if change.revokes is not None and rows.is_revoked(change.revokes):
        return ConflictError(f"the grant of {change.revokes} was revoked before", code=failed)
    if change.request is not None and rows.has_request(change.request, change.request_part or ""):
        return ConflictError("this request is being made already", code=failed)
    return None


class Tables:
    """The rows in memory, folded from receipts. The reference for both stores."""

    def __init__(self) -> None:
        self.ledger: str | None = None
        self.streams: dict[str, StreamRow] = {}
        self.handoffs: dict[str, HandoffRow] = {}
        self.open_calls: dict[str, OpenCallRow] = {}
        self.requests: dict[tuple[str, str], tuple[str, str, int]] = {}
        self.revoked: set[str] = set()
        self.touches: set[tuple[str, str, int]] = set()

    def genesis(self) -> str | None:
        """Return what the ledger hangs from."""
        return self.ledger

    def find_stream(self, stream: str) -> StreamRow | None:
        """Return a stream."""
        return self.streams.get(stream)

    def find_handoff(self, handoff: str) -> HandoffRow | None:
        """Return a handoff."""
        return self.handoffs.get(handoff)

    def find_open_call(self, call: str) -> OpenCallRow | None:
        """Return a call that has no outcome."""
        return self.open_calls.get(call)

    def is_revoked(self, account: str) -> bool:
        """Return whether a grant has ended."""
        return account in self.revoked

    def has_request(self, request: str, part: str) -> bool:
        """Return whether a request caused this part already."""
        return (request, part) in self.requests

    def read(self, change: Change, rows: Rows) -> None:
        """Take over the rows that a change compares with."""
        c = change
        for stream in filter(None, (c.stream, c.recorder, c.fenced, c.holder, c.attempt_run)):
            row = rows.find_stream(stream)
            if row is not None:
                self.streams[stream] = row
        handoff = None if c.moves is None else rows.find_handoff(c.moves)
        if handoff is not None:
            self.handoffs[handoff.id] = handoff
        for call in filter(None, (c.opens_call, c.closes_call, c.settles_call)):
            opened = rows.find_open_call(call)
            if opened is not None:
                self.open_calls[call] = opened
        accounts = [*(c.charges or "").split(), *filter(None, (c.revokes,))]
        self.revoked.update(account for account in accounts if rows.is_revoked(account))
        if c.request is not None and rows.has_request(c.request, c.request_part or ""):
            self.requests[c.request, c.request_part or ""] = ("", "", 0)

    def apply(self, change: Change) -> None:
        """Make of the rows what a change makes. Raises what `explain` finds."""
        refusal = explain(change, self)
        if refusal is not None:
            raise refusal
        self._move_stream(change)
        self._move_handoff(change)
        if change.founds and self.ledger is None:
            self.ledger = change.genesis
        if change.fenced is not None:
            fenced = self.streams[change.fenced]
            state = change.fenced_state if fenced.state == RunState.OPEN else fenced.state
            self.streams[fenced.id] = replace(fenced, epoch=fenced.epoch + 1, state=state)
        if change.opens_call is not None:
            row = OpenCallRow(change.opens_call, change.call_run or "", change.call_key or "")
            self.open_calls[row.id] = row
        if change.closes_call is not None:
            del self.open_calls[change.closes_call]
        settled = None if change.settles_call is None else self.open_calls.get(change.settles_call)
        if settled is not None and settled.run == change.call_run:
            del self.open_calls[settled.id]
        if change.request is not None:
            place = (change.fingerprint or "", change.stream, change.seq)
            self.requests[change.request, change.request_part or ""] = place
        if change.revokes is not None:
            self.revoked.add(change.revokes)
        for target in (change.touches or "").split():
            self.touches.add((target, change.stream, change.seq))

    def _move_stream(self, change: Change) -> None:
        if change.seq == 1:
            row = StreamRow(
                change.stream,
                change.root,
                1,
                change.head,
                change.epoch,
                RunState(change.state),
                change.recorder,
                change.at,
                change.at,
                change.agent,
                change.principal,
                change.handoff,
                change.attempt,
            )
        else:
            row = replace(
                self.streams[change.stream],
                seq=change.seq,
                head=change.head,
                epoch=change.epoch,
                state=change.state,
                recorder=change.recorder,
                last_at=change.at,
            )
        self.streams[row.id] = row

    def _move_handoff(self, change: Change) -> None:
        if change.moves is None:
            return
        if change.from_states is None:
            self.handoffs[change.moves] = HandoffRow(
                change.moves,
                change.stream,
                change.root or "",
                change.seq,
                change.to_agent or "",
                State(change.to_state or ""),
                0,
                None,
                change.to_last or "",
                change.at,
            )
            return
        row = self.handoffs[change.moves]
        changed = {
            "state": change.to_state,
            "attempt": change.to_attempt,
            "run": change.to_run,
            "last": change.to_last,
        }
        self.handoffs[row.id] = replace(row, **{name: value for name, value in changed.items() if value is not None})

    def rows(self, table: str) -> list[tuple[object, ...]]:
        """Return the rows of a table by its key, as a store yields them."""
        if table == "ledger":
            return [] if self.ledger is None else [(self.ledger,)]
        if table == "requests":
            return sorted((*key, *place) for key, place in self.requests.items())
        if table == "revoked":
            return sorted((account,) for account in self.revoked)
        if table == "touches":
            return sorted(self.touches)
        rows: dict[str, StreamRow | HandoffRow | OpenCallRow] = getattr(self, table)
        return [astuple(row) for _, row in sorted(rows.items())]
