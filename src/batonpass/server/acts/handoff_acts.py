"""The acts on a handoff: of the run that made it, or of a person who decides."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from msgspec import Struct

from batonpass.errors import OutOfReachError
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.handoff.programs.program_requests import tell_result
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.ids import AgentId, CallId, HandoffId
from batonpass.model.bodies.body import HandoffAccepted
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.policy.offer_options import ChangedInputs
from batonpass.records.json_shapes import Shape, handoff_shape
from batonpass.records.lineage import read_task
from batonpass.server.acts.own_run import begun, in_whose_name, own_handoff
from batonpass.server.acts.worker_acts import LeaseMessage, held_lease
from batonpass.server.endpoint import AGENTS, DECIDERS, EVERYBODY, ApiRequest, Endpoint
from batonpass.server.shape_types import BegunShape, HandoffShape, ResultShape

Told = TypeVar("Told")

_CREATED: Final = 201
_MADE_IT: Final = AGENTS | DECIDERS


class NoMessage(Struct, frozen=True, kw_only=True):
    """Nothing has to be said."""


class QuestionMessage(Struct, frozen=True, kw_only=True):
    """One closed question to the sender, before acting."""

    question: str


class AnswerMessage(Struct, frozen=True, kw_only=True):
    """The answer to the question of a receiver."""

    text: str
    by: str | None = None


class DeclineMessage(Struct, frozen=True, kw_only=True):
    """Why a handoff is not taken."""

    reason: str
    code: str = "declined"
    lease: LeaseMessage | None = None  # of a worker


class RetryMessage(Struct, frozen=True, kw_only=True):
    """The reason for trying a handoff again, and the settlement of calls in doubt."""

    reason: str | None = None
    repeat: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    inputs: ChangedInputs | None = None
    by: str | None = None


class CancelMessage(Struct, frozen=True, kw_only=True):
    """Why a handoff is withdrawn."""

    reason: str
    by: str | None = None


class VerdictMessage(Struct, frozen=True, kw_only=True):
    """Whether a result holds, and why."""

    holds: bool
    words: str
    by: str | None = None


class AcceptMessage(Struct, frozen=True, kw_only=True):
    """A handoff to take: by the run that made it, or by a worker under its lease."""

    lease: LeaseMessage | None = None
    config: dict[str, Any] | None = None  # what the agent is made of: model, prompt, tools


def accept(asked: ApiRequest) -> Shape:
    """Take a handoff that the caller's own run made, or that it claimed, and begin its next attempt."""
    said: AcceptMessage = asked.body
    if said.lease is not None:
        lease = held_lease(asked, HandoffId(asked.names["handoff"]), said.lease)
        return begun(asked, asked.plane.relay.handoff(lease).accept(lease=lease, config=said.config))
    handoff = own_handoff(asked)
    if not asked.caller.may_work_as(handoff.to):
        raise OutOfReachError(handoff.id)
    with asked.plane.runs.turn_of(handoff.parent) as parent:
        child = parent.live.handoff(handoff.id).accept(config=said.config)
    return begun(asked, child)


def recall_accept(asked: ApiRequest, receipt: Receipt) -> Shape | None:
    """Return the earlier answer of `accept`: the attempt that was begun."""
    body = receipt.body
    said: AcceptMessage = asked.body
    wanted = asked.names["handoff"] if said.lease is not None else own_handoff(asked).id
    if not isinstance(body, HandoffAccepted) or body.handoff != wanted:
        return None
    return asked.plane.runs.act(body.run, lambda run: begun(asked, run.live))


def take_result(asked: ApiRequest) -> Shape:
    """Return the result so far. The run takes it in, with its taint: from now on it may build on it."""
    return _shape(_in_parent(asked, LiveHandoff.result))


def _shape(result: Result) -> Shape:
    more = {"run": result.run, "error": result.error, "blocked_by": result.blocked_by}
    return {**tell_result(result), **more}


def read_result(asked: ApiRequest) -> Shape:
    """Return the result so far to somebody who only reads it."""
    return _shape(asked.plane.relay.handoff(asked.readable_handoff().id).result())


def ask(asked: ApiRequest) -> Shape:
    """Ask the sender one question before acting."""
    said: QuestionMessage = asked.body
    return _told(asked, lambda handoff: handoff.ask(said.question))


def decline(asked: ApiRequest) -> Shape:
    """Decline the handoff."""
    said: DeclineMessage = asked.body
    if said.lease is not None:
        lease = held_lease(asked, HandoffId(asked.names["handoff"]), said.lease)
        asked.plane.relay.handoff(lease).decline(said.reason, code=said.code, by=f"agent:{_to(asked)}", lease=lease)
        return _now(asked, lease.handoff)
    return _told(asked, lambda handoff: handoff.decline(said.reason, code=said.code))


def answer(asked: ApiRequest) -> Shape:
    """Answer the question of the receiver."""
    said: AnswerMessage = asked.body
    return _told(asked, lambda handoff: handoff.answer(said.text, by=_by(asked, said.by)))


def retry(asked: ApiRequest) -> Shape:
    """Let the handoff be tried again."""
    said: RetryMessage = asked.body

    def act(handoff: LiveHandoff) -> None:
        handoff.retry(
            by=_by(asked, said.by),
            reason=said.reason,
            repeat=[CallId(one) for one in said.repeat],
            skip=[CallId(one) for one in said.skip],
            inputs=said.inputs,
        )

    return _told(asked, act)


def cancel(asked: ApiRequest) -> Shape:
    """Withdraw the handoff, and every handoff below it."""
    said: CancelMessage = asked.body
    return _told(asked, lambda handoff: handoff.cancel(by=_by(asked, said.by), reason=said.reason))


def judge(asked: ApiRequest) -> Shape:
    """Verify or refute the result, with the words that say why."""
    said: VerdictMessage = asked.body

    def act(handoff: LiveHandoff) -> None:
        if said.holds:
            handoff.verify(by=_by(asked, said.by), verdict=said.words)
        else:
            handoff.refute(said.words, by=_by(asked, said.by))

    return _told(asked, act)


def _by(asked: ApiRequest, given: str | None) -> str | None:
    """Return who decides: a person by the token, an agent as itself, which the use case says."""
    named = in_whose_name(asked, given)
    return None if asked.caller.is_agent else named


def _to(asked: ApiRequest) -> AgentId:
    with asked.plane.relay.store.view() as view:
        return view.get_handoff(HandoffId(asked.names["handoff"])).to


def _told(asked: ApiRequest, act: Callable[[LiveHandoff], object]) -> Shape:
    _in_parent(asked, act)
    return _now(asked, own_handoff(asked).id)


def _now(asked: ApiRequest, handoff: HandoffId) -> Shape:
    with asked.plane.relay.store.view() as view:
        known = view.get_handoff(handoff)
        return handoff_shape(known, read_task(view, known))


def _in_parent(asked: ApiRequest, act: Callable[[LiveHandoff], Told]) -> Told:
    """Do something with the handoff: an agent in the name of the run that made it, a person in their own."""
    handoff = own_handoff(asked)
    if not asked.caller.is_agent:
        return act(asked.plane.relay.handoff(handoff.id))
    return asked.plane.runs.act(handoff.parent, lambda run: act(run.live.handoff(handoff.id)))


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/attempts",
        name="acceptHandoff",
        about="Take a handoff of the run, and begin its next attempt.",
        roles=AGENTS,
        act=accept,
        recall=recall_accept,
        answers=BegunShape,
        body=AcceptMessage,
        status=_CREATED,
    ),
    Endpoint(
        method="GET",
        path="/v1/handoffs/{handoff}/result",
        name="readResult",
        about="Read the result of a handoff so far; nobody takes it in.",
        roles=EVERYBODY,
        act=read_result,
        answers=ResultShape,
    ),
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/result",
        name="takeResult",
        about="Take the result of a handoff so far.",
        roles=AGENTS,
        act=take_result,
        answers=ResultShape,
        body=NoMessage,
        status=200,
    ),
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/question",
        name="ask",
        about="Ask the sender one closed question before acting.",
        roles=AGENTS,
        act=ask,
        answers=HandoffShape,
        body=QuestionMessage,
        status=200,
    ),
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/decline",
        name="declineHandoff",
        about="Decline a handoff, with a reason.",
        roles=AGENTS,
        act=decline,
        answers=HandoffShape,
        body=DeclineMessage,
        status=200,
    ),
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/answer",
        name="answer",
        about="Answer the question of the receiver.",
        roles=_MADE_IT,
        act=answer,
        answers=HandoffShape,
        body=AnswerMessage,
        status=200,
    ),
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/retry",
        name="retryHandoff",
        about="Let a handoff be tried again.",
        roles=_MADE_IT,
        act=retry,
        answers=HandoffShape,
        body=RetryMessage,
        status=200,
    ),
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/cancel",
        name="cancelHandoff",
        about="Withdraw a handoff, and every handoff below it.",
        roles=_MADE_IT,
        act=cancel,
        answers=HandoffShape,
        body=CancelMessage,
        status=200,
    ),
    Endpoint(
        method="POST",
        path="/v1/handoffs/{handoff}/verdict",
        name="judgeResult",
        about="Verify or refute the result of a handoff.",
        roles=_MADE_IT,
        act=judge,
        answers=HandoffShape,
        body=VerdictMessage,
        status=200,
    ),
)
