"""What a run does: it begins, writes down, attaches, hands off, reports and closes."""

from datetime import datetime
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from batonpass.errors import OutOfReachError
from batonpass.guard.grants.token_limit import within_ceiling
from batonpass.handoff.programs.program_requests import (
    AttachMessage,
    CheckpointMessage,
    HandoffMessage,
    ProgramError,
    RecordMessage,
    ReportMessage,
    attach_to,
    item_of,
    offer_of,
    report_of,
)
from batonpass.model.base.ids import AgentId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import Constraint, Exclusion
from batonpass.model.bodies.body import Outcome
from batonpass.model.grants.grant_request import GrantRequest, grant_unless_nothing
from batonpass.records.lineage import read_task
from batonpass.records.shape import Shape, handoff_shape
from batonpass.server.acts.own_run import begun, in_whose_name, own_run
from batonpass.server.endpoint import AGENTS, ApiRequest, Endpoint
from batonpass.server.shape_types import BegunShape, ClosedShape, DoneShape, HandoffShape, RecordedShape

_CREATED: Final = 201


class StartMessage(Struct, frozen=True, kw_only=True):
    """A root run to start: what its principal wants, in their own words, and what it may use and delegate.

    Without `may` and `may_delegate` the run gets all of the token's ceiling.
    """

    intent: Annotated[str, Meta(min_length=1)]
    agent: str = "lead"
    by: str | None = None  # the token's principal, or nobody
    may: tuple[str, ...] = ()
    may_delegate: tuple[str, ...] = ()
    limits: str | None = None
    until: datetime | None = None
    constraints: tuple[Constraint | str, ...] = ()
    exclusions: tuple[Exclusion | str, ...] = ()


class FaultMessage(Struct, frozen=True, kw_only=True):
    """Why something failed: a code for programs, and words for people."""

    code: str
    message: str = ""


class CloseMessage(Struct, frozen=True, kw_only=True):
    """How a run ends."""

    outcome: Outcome = Outcome.COMPLETED
    error: FaultMessage | None = None


def start(asked: ApiRequest) -> Shape:
    """Start a root run of the token's principal, enforced and within the token's ceiling."""
    said: StartMessage = asked.body
    token = asked.caller.token
    if not asked.caller.may_work_as(AgentId(said.agent)):
        raise OutOfReachError(said.agent)
    grant = grant_unless_nothing(said.may, said.may_delegate, said.limits)
    now = asked.plane.clock.now()
    ceiling = GrantRequest(may=token.may, may_delegate=token.may_delegate, limits=said.limits)
    within_ceiling(f"the token of {token.principal}", ceiling.at(now), None if grant is None else grant.at(now))
    chosen = grant or ceiling
    live = asked.plane.relay.start(
        said.intent,
        by=in_whose_name(asked, said.by),
        agent=said.agent,
        items=(*said_items(said.constraints, Constraint), *said_items(said.exclusions, Exclusion)),
        mode=Mode.ENFORCED,
        grant=GrantRequest(may=chosen.may, may_delegate=chosen.may_delegate, limits=said.limits, until=said.until),
        key=None if asked.key is None else f"http/{token.id}/{asked.key}",
    )
    return begun(asked, live)


def said_items(given: tuple[Any, ...], kind: type[Any]) -> tuple[Any, ...]:
    """Return items; a text is one of this kind."""
    return tuple(kind(one) if isinstance(one, str) else one for one in given)


def hand_off(asked: ApiRequest) -> Shape:
    """Hand off a task in the name of the run. It is durable when this is answered."""
    said: HandoffMessage = asked.body
    given = offer_of(said)
    if said.key is None and asked.key is not None:
        given = offer_of(HandoffMessage(**{**_fields(said), "key": f"http/{asked.key}"}))
    handoff = asked.plane.runs.act(own_run(asked), lambda run: run.live.hand_off(**given))
    with asked.plane.relay.store.view() as view:
        known = view.get_handoff(handoff.id)
        return handoff_shape(known, read_task(view, known))


def _fields(said: Struct) -> dict[str, Any]:
    return {name: getattr(said, name) for name in said.__struct_fields__}


def record(asked: ApiRequest) -> Shape:
    """Write something down in the run."""
    item = item_of(asked.body)
    (written,) = asked.plane.runs.act(own_run(asked), lambda run: run.live.record(item))
    return {"item": written.id}


def attach(asked: ApiRequest) -> Shape:
    """Attach a file or a text to the run."""
    return {"item": asked.plane.runs.act(own_run(asked), lambda run: attach_to(run.live, asked.body)).id}


def checkpoint(asked: ApiRequest) -> Shape:
    """Save what the next attempt needs to go on from here."""
    asked.plane.runs.act(own_run(asked), lambda run: run.live.checkpoint(asked.body.messages))
    return {"done": True}


def report(asked: ApiRequest) -> Shape:
    """Set the report of the run. It is given back when the run closes."""
    said = report_of(asked.body)
    asked.plane.runs.act(own_run(asked), lambda run: run.live.report(said))
    return {"done": True}


def close(asked: ApiRequest) -> Shape:
    """End the run."""
    said: CloseMessage = asked.body
    run = own_run(asked)
    with asked.plane.runs.turn_of(run) as opened:
        if said.outcome is Outcome.FAILED:
            why = said.error or FaultMessage(code="failed")
            opened.live.fail(ProgramError(why.code, why.message))
        else:
            opened.live.close(said.outcome)
    asked.plane.runs.forget(run)
    with asked.plane.relay.store.view() as view:
        return {"run": run, "state": view.get_run(RunId(run)).state}


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/runs",
        name="startRun",
        about="Start a root run of the token's principal, within the token's ceiling.",
        roles=AGENTS,
        act=start,
        answers=BegunShape,
        body=StartMessage,
        status=_CREATED,
        needs_proof=False,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/handoffs",
        name="handOff",
        about="Hand off a task to an agent.",
        roles=AGENTS,
        act=hand_off,
        answers=HandoffShape,
        body=HandoffMessage,
        status=_CREATED,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/items",
        name="recordItem",
        about="Write down a decision, a constraint, a claim; it travels with every handoff.",
        roles=AGENTS,
        act=record,
        answers=RecordedShape,
        body=RecordMessage,
        status=_CREATED,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/artifacts",
        name="attach",
        about="Attach a file or a text to the run.",
        roles=AGENTS,
        act=attach,
        answers=RecordedShape,
        body=AttachMessage,
        status=_CREATED,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/checkpoints",
        name="saveCheckpoint",
        about="Save what the next attempt needs to go on from here.",
        roles=AGENTS,
        act=checkpoint,
        answers=DoneShape,
        body=CheckpointMessage,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/report",
        name="report",
        about="Set the report of the run.",
        roles=AGENTS,
        act=report,
        answers=DoneShape,
        body=ReportMessage,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/close",
        name="closeRun",
        about="End the run.",
        roles=AGENTS,
        act=close,
        answers=ClosedShape,
        body=CloseMessage,
    ),
)
