"""What people mean by the id of something that waits: a handoff, or a call of a run that goes on."""

from collections.abc import Iterator

from batonpass.audit.lookup import LAST, ending, get_handoff, read_receipt
from batonpass.errors import AmbiguousIdError, NotFoundError
from batonpass.model.bodies import ToolHeld
from batonpass.model.ids import CALL, RunId
from batonpass.model.run import Handoff, HeldCall
from batonpass.store.port import LedgerView


def get_waiting(view: LedgerView, given: str) -> Handoff | HeldCall:
    """Return the handoff or the held call that is meant; a name is an agent's, or the tool of a waiting call.

    Raises `NotFoundError` or `AmbiguousIdError`.
    """
    wanted = given.strip().removeprefix("…").lower()
    named = bool(wanted) and wanted != LAST
    calls = [held for held in view.find_held_calls() if named and held.call.endswith(wanted)]
    calls += [held for held in view.find_waiting_calls() if named and _tool(view, held) == given.strip()]
    if wanted.startswith(f"{CALL}_"):
        if not calls:
            raise NotFoundError("held call", given)
        return calls[0]
    try:
        handoff = get_handoff(view, given)
    except NotFoundError:
        if not calls:
            raise
    else:
        if not calls:
            return handoff
        lines = (f"{ending(handoff.id, 6)} · handoff to {handoff.to}", *(_line(view, held) for held in calls))
        raise AmbiguousIdError("thing", given, lines)
    if len(calls) > 1:
        raise AmbiguousIdError("held call", given, tuple(_line(view, held) for held in calls))
    return calls[0]


def find_waiting_calls(view: LedgerView, *, root: RunId | None = None) -> Iterator[HeldCall]:
    """Yield the calls of open runs that wait for somebody, the latest first; of one tree, or of all."""
    found = [held for held in view.find_waiting_calls() if root is None or view.get_run(held.run).root == root]
    return iter(reversed(found))


def _tool(view: LedgerView, held: HeldCall) -> str | None:
    body = read_receipt(view.get_receipt(held.receipt)).body
    return body.tool if isinstance(body, ToolHeld) else None


def _line(view: LedgerView, held: HeldCall) -> str:
    return f"{ending(held.call, 6)} · call of {view.get_run(held.run).agent} {ending(held.run)}"
