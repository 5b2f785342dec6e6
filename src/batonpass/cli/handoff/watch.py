"""`batonpass handoff list --watch`: one line for each change of a handoff."""

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final

from batonpass.accounts.held_calls import WaitingCall, read_waiting_calls, waiting_facts
from batonpass.audit.feed import Feed
from batonpass.audit.short_ids import ending
from batonpass.cli.output.list_rows import handoff_state_of
from batonpass.cli.output.terminal import paint, say, say_json
from batonpass.cli.output.units import moment
from batonpass.cli.trail.live_events import repeat
from batonpass.model.base.ids import HANDOFF, HandoffId, RunId, time_of
from batonpass.model.bodies.body import HandoffFailed, Kind
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.run import Handoff
from batonpass.records.call import call_of
from batonpass.records.json_shapes import exact, handoff_shape
from batonpass.records.lineage import read_task
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerStore, LedgerView

# Other receipts in the streams of runs name handoffs without changing them.
_CHANGING: Final = frozenset({"handoff.initiated", "handoff.accepted", "handoff.completed", "handoff.failed"})


class HandoffWatch:
    """Prints each wanted handoff, and prints it again whenever its state or attempt changes."""

    def __init__(
        self, root: RunId | None, wanted: Callable[[Handoff], bool], *, limit: int, calls: bool, as_json: bool
    ) -> None:
        self._root = root
        self._wanted = wanted
        self._limit = limit
        self._calls = calls
        self._as_json = as_json
        self._told: dict[HandoffId, tuple[str, int]] = {}

    def run(self, store: LedgerStore) -> None:
        """Print the current handoffs, then every change until an interrupt."""
        repeat(store, Feed(store, root=self._root), self._look, self._begin)

    def _begin(self, view: LedgerView) -> None:
        latest = list(islice(filter(self._wanted, view.find_handoffs(root=self._root)), self._limit))
        for handoff in reversed(latest):
            self._tell(view, handoff, time_of(handoff.id))
        for call in reversed(read_waiting_calls(view, self._root)) if self._calls else ():
            _say_held(call, as_json=self._as_json)

    def _look(self, view: LedgerView, found: Iterator[StoredReceipt]) -> None:
        for stored in found:
            receipt = read_receipt(stored)
            if self._calls and receipt.kind == Kind.TOOL_HELD:
                for call in read_waiting_calls(view, self._root):
                    if call.held.id == call_of(receipt):
                        _say_held(call, as_json=self._as_json)
            if (named := _handoff_of(receipt)) is not None:
                self._tell(view, view.get_handoff(named), receipt.at)

    def _tell(self, view: LedgerView, handoff: Handoff, at: datetime) -> None:
        stands, is_wanted = (handoff.state, handoff.attempt), self._wanted(handoff)
        # A handoff that is no longer wanted is printed once more: the reader wants to know that it is over.
        if self._told.get(handoff.id) == stands or not (is_wanted or handoff.id in self._told):
            return
        _say_handoff(view, handoff, at, as_json=self._as_json)
        if is_wanted:
            self._told[handoff.id] = stands
        else:
            del self._told[handoff.id]


def _handoff_of(receipt: Receipt) -> HandoffId | None:
    if receipt.stream.startswith(f"{HANDOFF}_"):
        return HandoffId(receipt.stream)
    if isinstance(receipt.body, HandoffFailed) and receipt.body.to is not None:
        return None  # a refused offer names a handoff that does not exist
    named: HandoffId | None = getattr(receipt.body, "handoff", None)
    return named if receipt.kind in _CHANGING else None


def _say_handoff(view: LedgerView, handoff: Handoff, at: datetime, *, as_json: bool) -> None:
    task = read_task(view, handoff)
    if as_json:
        say_json({**handoff_shape(handoff, task, at), "at": exact(at)}, line=True)
        return
    attempt = f"  attempt {handoff.attempt}" if handoff.attempt > 1 else ""
    words = "unknown" if task is None else task.first_line
    say(
        paint(f"{moment(at)}  ", dim=True),
        f"{handoff.to} {ending(handoff.id)}  ",
        handoff_state_of(handoff.state),
        f"{attempt}  {words}",
    )


def _say_held(waiting: WaitingCall, *, as_json: bool) -> None:
    if as_json:
        say_json(waiting_facts(waiting), line=True)
        return
    held = waiting.held
    say(
        paint(f"{moment(waiting.at)}  ", dim=True),
        f"call {ending(held.id)}  ",
        paint("held", "yellow"),
        f"  {waiting.run.agent} {ending(held.run)}: {held.tool} {waiting.target or ''}".rstrip(),
    )
