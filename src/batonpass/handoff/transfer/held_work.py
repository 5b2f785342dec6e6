"""Held calls and handoffs of a run that goes on: those that wait for a person, and those decided since."""

import json
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from batonpass.errors import CallSuspendedError, HandoffHeldError
from batonpass.handoff.approvals.decision import refuse_overdue
from batonpass.handoff.history.offers import read_offer, read_words
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.base.content_names import ARGUMENTS
from batonpass.model.base.ids import CallId, HandoffId, PrincipalId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import HandoffApproved, HandoffDenied, HandoffResumed, ToolApproved, ToolHeld
from batonpass.model.ledger.run import Handoff
from batonpass.records.hold import find_decision
from batonpass.records.text import read_receipt
from batonpass.records.wait import find_blocker
from batonpass.store.port import LedgerView, ReceiptQuery

_RULINGS: Final = (HandoffApproved, HandoffDenied, HandoffResumed)


class HeldWork(Struct, frozen=True, kw_only=True):
    """A call or a handoff of a run that was held and has not been made or begun since."""

    id: CallId | HandoffId  # that a person decides about: the call, the handoff, or a handoff below it
    name: str  # of the tool, or of the agent
    words: str  # the arguments of the call as JSON, or the task of the handoff
    handoff: HandoffId | None = None  # of the run itself; None for a call
    rule: str = ""  # that holds the call
    approved: bool | None = None  # None: nobody has decided yet
    by: PrincipalId | None = None  # who decided; None: nobody, or somebody further below

    @property
    def command(self) -> str:
        """Return the command with which a person approves it."""
        return f"batonpass handoff approve {self.id[-6:]}"

    @property
    def error(self) -> CallSuspendedError | HandoffHeldError:
        """Return the error that says that its run waits for it."""
        if self.handoff is not None:
            return HandoffHeldError(self.handoff)
        return CallSuspendedError(self.name, self.id, self.rule, f"{self.name} waits for a person", None)


def find_held_work(desk: Desk, holding: Holding) -> tuple[HeldWork, ...]:
    """Return the held calls and handoffs of a run that were not made or begun since, decided or not.

    A hold that is out of time is denied first. A run of which nothing was held and that handed nothing off costs no
    look at the store.
    """
    found = [*_find_calls(desk, holding)]
    if holding.handed_off or holding.unsure_offers or holding.resumption.children:
        with desk.store.view() as view:
            made = {child.id for child in (*view.find_handoffs(parent=holding.id), *holding.resumption.children)}
            held = (_held_handoff(view, view.get_handoff(child)) for child in sorted(made | holding.handed_off))
            found += [one for one in held if one is not None]
    return tuple(found)


def _find_calls(desk: Desk, holding: Holding) -> Iterator[HeldWork]:
    for held, _ in holding.resumption.approved.values():
        if held.key not in holding.used_up:
            # It ended an earlier attempt, and this one began because somebody approved it.
            yield HeldWork(id=held.call, name=held.tool, words=_arguments(desk, held), rule=held.rule, approved=True)
    own = (*holding.resumption.held.values(), *holding.held.values())
    latest = {held.key: held for held in own if held.run == holding.id and held.key not in holding.used_up}
    for held in latest.values():
        refuse_overdue(desk, held.call)
        with desk.store.view() as view:
            ruling = find_decision(view, held.call)
        body = None if ruling is None else ruling[1]
        yield HeldWork(
            id=held.call,
            name=held.tool,
            words=_arguments(desk, held),
            rule=held.rule,
            approved=None if body is None else isinstance(body, ToolApproved),
            by=None if body is None else body.by,
        )


def _arguments(desk: Desk, held: ToolHeld) -> str:
    """Return the arguments of a held call as they were recorded, in JSON."""
    with desk.store.view() as view:
        for stored in view.find_receipts(ReceiptQuery(stream=StreamId(held.run), kind=Kind.TOOL_HELD)):
            receipt = read_receipt(stored)
            if isinstance(receipt.body, ToolHeld) and receipt.body.call == held.call:
                told: Any = json.loads(read_words(view, receipt.content.get(ARGUMENTS)) or "{}")
                return json.dumps(told.get("arguments", told), ensure_ascii=False)
    return "{}"


def _held_handoff(view: LedgerView, child: Handoff) -> HeldWork | None:
    """Return a handoff if it waits for a person, or waited, and its caller has not gone on with it since."""
    blocker = find_blocker(view, child)
    if blocker is not None and blocker.state is State.HELD:
        return HeldWork(id=blocker.id, name=child.to, words=_task(view, child), handoff=child.id)
    is_open = child.state is State.OFFERED and child.carrier is Carrier.CALLER
    if not is_open and child.state is not State.DENIED:
        return None
    said = [read_receipt(stored).body for stored in view.find_receipts(ReceiptQuery(stream=StreamId(child.id)))]
    ruling = next((body for body in reversed(said) if isinstance(body, _RULINGS)), None)
    if ruling is None:
        return None
    by = None if isinstance(ruling, HandoffResumed) else ruling.by
    return HeldWork(id=child.id, name=child.to, words=_task(view, child), handoff=child.id, approved=is_open, by=by)


def _task(view: LedgerView, handoff: Handoff) -> str:
    return read_offer(view, handoff).baton.task
