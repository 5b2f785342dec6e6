"""Ids of what waits: a held handoff, or a held call of a run that goes on."""

from collections.abc import Iterator

from batonpass.audit.meant_ids import Meant, choose, describe, find_ended, find_named
from batonpass.model.base.ids import HANDOFF, CallId, HandoffId, RunId
from batonpass.model.bodies.body import ToolHeld
from batonpass.model.ledger.run import Handoff, HeldCall
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView


def get_waiting(view: LedgerView, given: str) -> Handoff | HeldCall:
    """Return the handoff or held call that is meant, by id, by agent, or by the tool of a waiting call.

    Raises as `choose` does.
    """
    calls = {held.call: held for held in view.find_held_calls()}

    def ended(end: str) -> Iterator[Meant]:
        yield from find_ended(view, end, (HANDOFF,))
        yield from (_meant(held) for held in calls.values() if held.call.endswith(end))

    meant = choose(
        given,
        "handoff or held call",
        named=lambda name: (*find_named(view, name, (HANDOFF,)), *_using(view, name)),
        ended=lambda end: (
            *find_ended(view, end, (HANDOFF,)),
            *(_meant(held) for held in calls.values() if held.call.endswith(end)),
        ),
        lines=lambda found: describe(view, found),
    )
    return view.get_handoff(HandoffId(meant.id)) if meant.kind == HANDOFF else calls[CallId(meant.id)]


def get_held(view: LedgerView, given: str) -> HeldCall:
    """Return the held call that is meant, decided or not: by its id, or by its tool while it waits.

    Raises as `choose` does.
    """
    calls = {held.call: held for held in view.find_held_calls()}
    meant = choose(
        given,
        "held call",
        named=lambda name: _using(view, name),
        ended=lambda end: (_meant(held) for held in calls.values() if held.call.endswith(end)),
        lines=lambda found: describe(view, found),
    )
    return calls[CallId(meant.id)]


def find_waiting_calls(view: LedgerView, *, root: RunId | None = None) -> Iterator[HeldCall]:
    """Yield the held calls of open runs, the latest first, in one tree or in all."""
    found = [held for held in view.find_waiting_calls() if root is None or view.get_run(held.run).root == root]
    return iter(reversed(found))


def _using(view: LedgerView, tool: str) -> Iterator[Meant]:
    for held in view.find_waiting_calls():
        body = read_receipt(view.get_receipt(held.receipt)).body
        if isinstance(body, ToolHeld) and body.tool == tool:
            yield _meant(held)


def _meant(held: HeldCall) -> Meant:
    return Meant(id=held.call, receipt=held.receipt)
