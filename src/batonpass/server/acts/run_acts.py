"""The acts of a run: it begins, writes down, attaches, hands off, reports and closes."""

from datetime import datetime
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

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
from batonpass.model.base.ids import AgentId, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import Constraint, Exclusion, Item
from batonpass.model.bodies.body import (
    Body,
    CheckpointSaved,
    HandoffCompleted,
    HandoffFailed,
    Outcome,
    RunClosed,
    RunRecorded,
    RunSuspended,
)
from batonpass.model.grants.grant_request import GrantRequest, grant_unless_nothing
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.policy.offer_options import ChangedInputs, Handling
from batonpass.records.json_shapes import Shape, exact, handoff_shape
from batonpass.records.lineage import read_task
from batonpass.server.acts.own_run import begun, in_whose_name, own_run
from batonpass.server.endpoint import AGENTS, ApiRequest, Endpoint, RawAnswer
from batonpass.server.shape_types import BegunShape, ClosedShape, DoneShape, OfferedShape, RecordedShape

_CREATED: Final = 201


class StartMessage(Struct, frozen=True, kw_only=True):
    """A root run to start: the intent of its principal, in their own words, and the scope that it may use and delegate.

    Without `may` and `may_delegate` the run gets all of the token's ceiling.
    """

    intent: Annotated[str, Meta(min_length=1)]
    agent: str = "lead"
    by: str | None = None  # the token's principal, or nobody
    may: tuple[str, ...] = ()
    may_delegate: tuple[str, ...] = ()
    limits: str | None = None
    until: datetime | None = None
    key: str | None = None  # the same key is the same run; by default the Idempotency-Key
    constraints: tuple[Constraint | str, ...] = ()
    exclusions: tuple[Exclusion | str, ...] = ()


class OfferMessage(HandoffMessage, frozen=True, kw_only=True):
    """A task to hand off, with all that may be said about it: also the rest of its grant, and how often it is tried."""

    may_delegate: tuple[str, ...] = ()
    limits: str | None = None
    until: datetime | None = None
    context: str | None = None
    retries: int | None = None
    changed_inputs: ChangedInputs | None = None


class FaultMessage(Struct, frozen=True, kw_only=True):
    """Why something failed: a code for programs, and words for people."""

    code: str
    message: str = ""


class CloseMessage(Struct, frozen=True, kw_only=True):
    """How a run ends."""

    outcome: Outcome = Outcome.COMPLETED
    error: FaultMessage | None = None
    report: ReportMessage | None = None  # instead of the one before; a server that restarted has forgotten that


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
        key=None if (said.key or asked.key) is None else f"http/{token.id}/{said.key or asked.key}",
    )
    return begun(asked, live)


def said_items(given: tuple[Any, ...], kind: type[Any]) -> tuple[Any, ...]:
    """Return items; a text is one of this kind."""
    return tuple(kind(one) if isinstance(one, str) else one for one in given)


def hand_off(asked: ApiRequest) -> Shape:
    """Hand off a task in the name of the run. It is durable when this is answered."""
    said: OfferMessage = asked.body
    # A client that signs has keys of its own for requests; the key of its handoff is in what it says.
    named = None if asked.key is None or asked.signs else f"http/{asked.key}"
    given = _offered(said, key=said.key or named)
    handoff = asked.plane.runs.act(own_run(asked), lambda run: run.live.hand_off(**given))
    with asked.plane.relay.store.view() as view:
        known = view.get_handoff(handoff.id)
        return {**handoff_shape(known, read_task(view, known)), "reused": handoff._reused}  # noqa: SLF001 - a door inside the package


def _offered(said: OfferMessage, *, key: str | None) -> dict[str, Any]:
    given = offer_of(said)
    handling = Handling(key=key, again=said.again, retries=said.retries, inputs=said.changed_inputs)
    given |= {"handling": handling, "brief": replace(given["brief"], context=said.context)}
    if said.may_delegate or said.limits is not None or said.until is not None:
        more = GrantRequest(may=said.may, may_delegate=said.may_delegate, limits=said.limits, until=said.until)
        given |= {"may": (), "grant": more}
    return given


def record(asked: ApiRequest) -> Shape:
    """Write something down in the run."""
    item = item_of(asked.body)
    (written,) = asked.plane.runs.act(own_run(asked), lambda run: run.live.record(item))
    return _written(written)


def _written(item: Item) -> Shape:
    return {"item": item.id, "digest": item.digest, "by": item.by, "at": exact(item.at)}


def attach(asked: ApiRequest) -> Shape:
    """Attach a file or a text to the run."""
    return _written(asked.plane.runs.act(own_run(asked), lambda run: attach_to(run.live, asked.body)))


def read_attached(asked: ApiRequest) -> RawAnswer:
    """Return the bytes of a file that the run or somebody above it attached, by its name."""
    found = asked.plane.runs.find(own_run(asked)).live.read(asked.names["name"])
    return RawAnswer(body=found, media_type="application/octet-stream")


def checkpoint(asked: ApiRequest) -> Shape:
    """Save the state from which the next attempt goes on."""
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
        if said.report is not None:
            opened.live.report(report_of(said.report))
        if said.outcome is Outcome.FAILED:
            why = said.error or FaultMessage(code="failed")
            opened.live.fail(ProgramError(why.code, why.message))
        else:
            opened.live.close(said.outcome)
        again = opened.live._holding.tried_again_after  # noqa: SLF001 - a door inside the package
    return {**_closed(asked, run), "again_after": None if again is None else again.total_seconds()}


def _closed(asked: ApiRequest, run: RunId) -> Shape:
    asked.plane.runs.forget(run)
    with asked.plane.relay.store.view() as view:
        return {"run": run, "state": view.get_run(RunId(run)).state, "again_after": None}


def _own(asked: ApiRequest, receipt: Receipt, *kinds: type[Body]) -> Any:  # noqa: ANN401 - a body of one of these kinds
    """Return the body of a receipt in the caller's own run, if it is of one of these kinds."""
    run = own_run(asked)
    return receipt.body if receipt.stream == StreamId(run) and isinstance(receipt.body, kinds) else None


def recall_record(asked: ApiRequest, receipt: Receipt) -> Shape | None:
    """Return the earlier answer of `record` or `attach`."""
    body = _own(asked, receipt, RunRecorded)
    if body is None:
        return None
    item = body.items[-1]
    return {"item": item.item, "digest": item.digest, "by": body.by, "at": exact(receipt.at)}


def recall_checkpoint(asked: ApiRequest, receipt: Receipt) -> Shape | None:
    """Return the earlier answer of `checkpoint`."""
    return None if _own(asked, receipt, CheckpointSaved) is None else {"done": True}


def recall_close(asked: ApiRequest, receipt: Receipt) -> Shape | None:
    """Return the earlier answer of `close`."""
    body = _own(asked, receipt, RunClosed, RunSuspended, HandoffCompleted, HandoffFailed)
    return None if body is None else _closed(asked, body.run)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/attached/{name}",
        name="readAttached",
        about="Read what the run or somebody above it attached, by its name.",
        roles=AGENTS,
        act=read_attached,
        answers=bytes,
    ),
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
        answers=OfferedShape,
        body=OfferMessage,
        status=_CREATED,
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/items",
        name="recordItem",
        about="Write down a decision, a constraint, a claim; it travels with every handoff.",
        roles=AGENTS,
        act=record,
        recall=recall_record,
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
        recall=recall_record,
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
        recall=recall_checkpoint,
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
        recall=recall_close,
        answers=ClosedShape,
        body=CloseMessage,
    ),
)
