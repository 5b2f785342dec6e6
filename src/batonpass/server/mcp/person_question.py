"""Questions for the person at a client: whether something that is held may go on, or the question of a receiver.

Only an answer that the client brought from its person counts. A model has no tool with which it could give one.
"""

from typing import Any, Final, Literal

from msgspec import Struct

from batonpass.errors import BatonpassError, CallSuspendedError, HandoffAskedError, HandoffHeldError
from batonpass.model.base.ids import HANDOFF
from batonpass.model.base.lifecycle import State
from batonpass.model.base.visible import visible
from batonpass.records.json_shapes import Shape
from batonpass.server.acts.decision_acts import RulingMessage
from batonpass.server.acts.handoff_acts import AnswerMessage
from batonpass.server.mcp.mcp_caller import McpCaller
from batonpass.server.mcp.tool import answered, endpoint_named

ASKED: Final = "batonpass"  # the key of our question among those that a client answers
_SHEET: Final = endpoint_named("showSheet")
_RULE: Final = endpoint_named("rule")
_ANSWER: Final = endpoint_named("answer")
_REASON: Final = {
    "type": "object",
    "properties": {"reason": {"type": "string", "title": "Reason", "description": "Why; it is recorded."}},
}
_REPLY: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Answer", "description": "It travels with the task."}},
    "required": ["answer"],
}


class WaitingFor(Struct, frozen=True):
    """Something that waits for somebody: a hold, or a question."""

    kind: Literal["hold", "question"]
    id: str
    words: str = ""
    ends_attempt: bool = False  # the attempt stopped to wait; the next one goes on


class PersonQuestion(Struct, frozen=True, kw_only=True):
    """A question for the person at the client."""

    waits: WaitingFor
    message: str
    schema: dict[str, Any]
    shown: str | None = None  # the digest of the sheet in the message


def waits_because(error: BatonpassError) -> WaitingFor | None:
    """Return the wait behind an error; None if it does not wait."""
    if isinstance(error, CallSuspendedError):
        # In an attempt at a handoff it is the handoff that waits, so that no worker does.
        return WaitingFor("hold", error.handoff or error.call, ends_attempt=error.handoff is not None)
    if isinstance(error, HandoffHeldError):
        return WaitingFor("hold", error.handoff)
    if isinstance(error, HandoffAskedError):
        return WaitingFor("question", error.handoff, error.question)
    return None


def waits_in(answer: Shape) -> WaitingFor | None:
    """Return the wait of a handoff in an answer; None if it does not wait."""
    named, state = str(answer.get("handoff") or answer.get("id") or ""), answer.get("state")
    if not named.startswith(f"{HANDOFF}_"):
        return None
    if state == State.HELD:
        return WaitingFor("hold", named)
    if state == State.ASKED:
        return WaitingFor("question", named, str(answer.get("question") or ""))
    return None


def question_for(caller: McpCaller, waits: WaitingFor) -> PersonQuestion | None:
    """Return the question for the person; None if nobody here may answer it, or only with a key of their own."""
    if caller.person is None:
        return None
    if waits.kind == "question":
        said = f"Before it takes the task, the receiver of {waits.id} asks:\n\n{visible(waits.words)}"
        return PersonQuestion(waits=waits, message=said, schema=_REPLY)
    sheet = answered(_SHEET, caller.decision(_SHEET, names={"held": waits.id}))
    if sheet["proven"]:
        return None
    return PersonQuestion(waits=waits, message=str(sheet["text"]), schema=_REASON, shown=str(sheet["shown"]))


class PersonReply(Struct, frozen=True, kw_only=True):
    """The reply of the person: accepted, declined, or nothing."""

    action: str
    content: dict[str, Any]


def settle(caller: McpCaller, asked: PersonQuestion, reply: PersonReply, looked_ms: int) -> bool:
    """Record the reply of the person. Return whether they decided at all. Raises the errors of the decision."""
    if reply.action not in {"accept", "decline"}:
        return False
    if asked.waits.kind == "question":
        told = reply.content.get("answer")
        if reply.action == "decline" or not isinstance(told, str) or not told.strip():
            return False
        _ANSWER.act(caller.decision(_ANSWER, names={"handoff": asked.waits.id}, body=AnswerMessage(text=told)))
        return True
    reason = reply.content.get("reason")
    ruling = RulingMessage(
        approved=reply.action == "accept",
        reason=reason if isinstance(reason, str) and reason.strip() else None,
        shown=asked.shown,
        looked_ms=looked_ms,
    )
    _RULE.act(caller.decision(_RULE, names={"held": asked.waits.id}, body=ruling))
    return True
