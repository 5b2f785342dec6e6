"""Approvals and questions that wait for somebody."""

from typing import Final

from batonpass.accounts.held_calls import WaitingCall, read_waiting_calls
from batonpass.model.base.content_names import QUESTION
from batonpass.model.base.ids import CALL, HandoffId, time_of
from batonpass.model.base.kinds import Kind
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import Handoff
from batonpass.records.handoff import read_handoff
from batonpass.records.json_shapes import Shape, exact, text_shape
from batonpass.records.text import read_texts
from batonpass.server.endpoint import PEOPLE, ApiRequest, Endpoint
from batonpass.server.resources.page import CursorQuery, paged
from batonpass.server.shape_types import ApprovalShape, Page, QuestionShape
from batonpass.store.port import LedgerView


def list_approvals(asked: ApiRequest) -> Shape:
    """Return everything that waits for an approval, held handoffs first."""
    query: CursorQuery = asked.query
    with asked.looking() as (view, _):
        waiting: list[Handoff | WaitingCall] = [*view.find_held(), *read_waiting_calls(view)]
        # Whoever decides about one page and asks for the next has taken the cursor off the list.
        rest = (one for one in waiting if query.after is None or _comes_after(_id(one), query.after))
        return paged(
            rest,
            query.limit,
            shape=lambda one: _held_handoff(view, one) if isinstance(one, Handoff) else _held_call(one),
            cursor=_id,
        )


def _id(one: Handoff | WaitingCall) -> str:
    return one.id if isinstance(one, Handoff) else one.held.id


def _comes_after(given: str, cursor: str) -> bool:
    """Return the order of the list: handoffs, the oldest first, and then calls, the latest first."""
    is_call, was_call = (one.startswith(f"{CALL}_") for one in (given, cursor))
    if is_call != was_call:
        return is_call
    return given < cursor if is_call else given > cursor


def _held_handoff(view: LedgerView, handoff: Handoff) -> Shape:
    holds = read_handoff(view, handoff).holds
    hold = holds[-1].hold if holds else None
    return {
        "id": handoff.id,
        "kind": "handoff",
        "run": handoff.parent,
        "agent": handoff.to,
        "rule": None if hold is None else hold.rule,
        "gate": None if hold is None else hold.gate,
        "people": None if hold is None else hold.approvals,
        "proven": hold is not None and hold.proven,
        "tool": None,
        "target": None,
        "since": exact(holds[-1].receipt.at if holds else time_of(handoff.id)),
    }


def _held_call(one: WaitingCall) -> Shape:
    held = one.held
    return {
        "id": held.id,
        "kind": "call",
        "run": held.run,
        "agent": one.run.agent,
        "rule": held.rule,
        "gate": held.gate,
        "people": held.takes_people,
        "proven": held.takes_proof,
        "tool": held.tool,
        "target": one.target,
        "since": exact(one.at),
    }


def list_questions(asked: ApiRequest) -> Shape:
    """Return the questions that nobody has answered, the latest first."""
    query: CursorQuery = asked.query
    with asked.looking() as (view, _):
        before = None if query.after is None else HandoffId(query.after)
        asking = view.find_handoffs(states=(State.ASKED,), before=before, limit=query.limit + 1)
        return paged(asking, query.limit, shape=lambda one: _question(view, one), cursor=lambda one: one.id)


def _question(view: LedgerView, handoff: Handoff) -> Shape:
    acts = read_handoff(view, handoff).acts
    last = next((one for one in reversed(acts) if one.kind == Kind.HANDOFF_ASKED), None)
    return {
        "handoff": handoff.id,
        "run": handoff.parent,
        "agent": handoff.to,
        "question": None if last is None else text_shape(read_texts(view, last).get(QUESTION)),
        "asked_at": exact(time_of(handoff.id) if last is None else last.at),
    }


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/approvals",
        name="listApprovals",
        about="List what waits for an approval.",
        roles=PEOPLE,
        act=list_approvals,
        answers=Page[ApprovalShape],
        query=CursorQuery,
    ),
    Endpoint(
        method="GET",
        path="/v1/questions",
        name="listQuestions",
        about="List the questions that nobody has answered.",
        roles=PEOPLE,
        act=list_questions,
        answers=Page[QuestionShape],
        query=CursorQuery,
    ),
)
