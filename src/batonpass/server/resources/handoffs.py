"""Handoffs, and the grants of runs and handoffs."""

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta, Struct

from batonpass.accounts.handoff.grant_chain import read_chain
from batonpass.accounts.handoff.grant_facts import chain_facts, mode_of
from batonpass.accounts.handoff.handoff_briefing import brief_handoff, read_deferred
from batonpass.errors import NotFoundError
from batonpass.model.base.ids import HANDOFF, AgentId, HandoffId, RunId, StreamId
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import Handoff
from batonpass.records.handoff import read_handoff
from batonpass.records.json_shapes import Shape, handoff_shape, hold_shape, run_shape, verdict_shape
from batonpass.records.lineage import Tasks, read_task
from batonpass.server.endpoint import EVERYBODY, ApiRequest, Endpoint
from batonpass.server.reach import CallerReach
from batonpass.server.resources.page import PageQuery, paged
from batonpass.server.shape_types import BriefingShape, ExcerptShape, GrantShape, HandoffDetailShape, HandoffShape, Page
from batonpass.store.port import LedgerView


class HandoffQuery(PageQuery, frozen=True, kw_only=True):
    """Which handoffs are asked for."""

    to: Annotated[str, Meta(description="Only handoffs to this agent.")] | None = None
    state: State | None = None
    root: Annotated[str, Meta(description="Only handoffs of the tree of this root run.")] | None = None
    parent: Annotated[str, Meta(description="Only handoffs of this run.")] | None = None
    before: Annotated[str, Meta(description="Only handoffs older than this one: the cursor.")] | None = None


def list_handoffs(asked: ApiRequest) -> Shape:
    """Return handoffs, the latest first. An agent gets those of its own run and of runs below it."""
    query: HandoffQuery = asked.query
    with asked.looking() as (view, reach):
        return paged(
            _find(view, reach, query),
            query.limit,
            shape=lambda one: handoff_shape(one, read_task(view, one)),
            cursor=lambda one: one.id,
        )


def _find(view: LedgerView, reach: CallerReach, query: HandoffQuery) -> Iterator[Handoff]:
    found = view.find_handoffs(
        to=None if query.to is None else AgentId(query.to),
        states=() if query.state is None else (query.state,),
        root=reach.own.root if reach.is_limited else None if query.root is None else RunId(query.root),
        parent=None if query.parent is None else RunId(query.parent),
        before=None if query.before is None else HandoffId(query.before),
        limit=None if reach.is_limited else query.limit + 1,
    )
    if not reach.is_limited:
        return found
    return (one for one in found if query.root in {None, one.root} and reach.covers(view.get_run(one.parent)))


def show_handoff(asked: ApiRequest) -> Shape:
    """Return a handoff with its attempts, holds and verdicts."""
    handoff = asked.readable_handoff()
    with asked.plane.relay.store.view() as view:
        record, tasks = read_handoff(view, handoff), Tasks(view)
        attempts = list(view.find_attempts(handoff))
        return {
            **handoff_shape(handoff, read_task(view, handoff)),
            "mode": mode_of(view, StreamId(handoff.id)),
            "attempts": [run_shape(run, tasks.find(run)) for run in attempts],
            "holds": [hold_shape(one) for one in record.holds],
            "verdicts": [verdict_shape(one) for run in attempts for one in record.verdicts(run.attempt)],
            "acts": [receipt.id for receipt in record.acts],
        }


def show_grant(asked: ApiRequest) -> Shape:
    """Return the grant of a run or a handoff, every hop from the root down; an empty chain if there is none."""
    given = asked.names["account"]
    with asked.looking() as (view, reach):
        if given.startswith(f"{HANDOFF}_"):
            account = StreamId(reach.readable_handoff(given).id)
        else:
            run = reach.run(given)
            account = StreamId(run.handoff or run.id)
        try:
            chain = read_chain(view, account)
        except NotFoundError:
            chain = ()
        if reach.is_limited:
            # What others were granted above an agent's own run is not its business; what binds it is.
            chain = chain[-1:]
        return {"account": account, "mode": mode_of(view, account), "chain": chain_facts(chain)}


class TextQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which text of a briefing is asked for."""

    ref: Annotated[str, Meta(min_length=1, max_length=300, description="The reference, as the briefing gives it.")]
    start: Annotated[int, Meta(ge=0, le=2**53 - 1, description="How many characters to skip.")] = 0


def show_briefing(asked: ApiRequest) -> Shape:
    """Return the briefing of a handoff's receiver: the instructions, and apart from them the data from outside."""
    with asked.looking() as (view, reach):
        handoff = reach.readable_handoff(asked.names["handoff"])
        briefing, _ = brief_handoff(view, handoff, asked.plane.clock.now(), can_ask=False)
    return {
        "handoff": handoff.id,
        "instructions": briefing.instructions,
        "data": briefing.data,
        "deferred": list(briefing.deferred),
    }


def read_text(asked: ApiRequest) -> Shape:
    """Return a part of a text that the briefing of a handoff gives by reference."""
    query: TextQuery = asked.query
    with asked.looking() as (view, reach):
        handoff = reach.readable_handoff(asked.names["handoff"])
        excerpt = read_deferred(view, handoff, query.ref, query.start)
    return {"ref": query.ref, "text": excerpt.text, "start": excerpt.start, "rest": excerpt.rest}


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/handoffs",
        name="listHandoffs",
        about="List handoffs, the latest first.",
        roles=EVERYBODY,
        act=list_handoffs,
        answers=Page[HandoffShape],
        query=HandoffQuery,
    ),
    Endpoint(
        method="GET",
        path="/v1/handoffs/{handoff}",
        name="showHandoff",
        about="Show a handoff: its attempts, holds and verdicts.",
        roles=EVERYBODY,
        act=show_handoff,
        answers=HandoffDetailShape,
    ),
    Endpoint(
        method="GET",
        path="/v1/handoffs/{handoff}/briefing",
        name="showBriefing",
        about="Show what the receiver of a handoff is told.",
        roles=EVERYBODY,
        act=show_briefing,
        answers=BriefingShape,
    ),
    Endpoint(
        method="GET",
        path="/v1/handoffs/{handoff}/texts",
        name="readText",
        about="Read a text that the briefing of a handoff gives by reference.",
        roles=EVERYBODY,
        act=read_text,
        answers=ExcerptShape,
        query=TextQuery,
    ),
    Endpoint(
        method="GET",
        path="/v1/grants/{account}",
        name="showGrant",
        about="Show the grant of a run or a handoff.",
        roles=EVERYBODY,
        act=show_grant,
        answers=GrantShape,
    ),
)
