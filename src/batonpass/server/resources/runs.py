"""Runs, and their attachments."""

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta

from batonpass.accounts.run_facts import run_facts
from batonpass.errors import ContentErasedError, NotFoundError
from batonpass.model.base.ids import AgentId, ContentId, RunId, StreamId
from batonpass.model.ledger.run import Run, RunState
from batonpass.records.json_shapes import Shape, run_shape
from batonpass.records.lineage import Tasks
from batonpass.records.source import run_between, timed
from batonpass.records.text import Text, read_receipt, read_stream, read_texts
from batonpass.server.endpoint import EVERYBODY, ApiRequest, Endpoint, RawAnswer
from batonpass.server.reach import CallerReach
from batonpass.server.resources.page import CursorQuery, PageQuery, paged
from batonpass.server.shape_types import ArtifactShape, Page, RunDetailShape, RunShape
from batonpass.store.port import LedgerView, ReceiptQuery

_ARTIFACT_TYPE: Final = "application/octet-stream"


class RunQuery(PageQuery, frozen=True, kw_only=True):
    """Which runs are asked for."""

    agent: Annotated[str, Meta(description="Only runs of this agent.")] | None = None
    state: RunState | None = None
    root: Annotated[str, Meta(description="Only runs of the tree of this root run.")] | None = None
    parent: Annotated[str, Meta(description="Only runs that this run handed off to.")] | None = None
    before: Annotated[str, Meta(description="Only runs older than this one: the cursor.")] | None = None


def list_runs(asked: ApiRequest) -> Shape:
    """Return runs, the latest first. An agent gets its own run and those below it."""
    query: RunQuery = asked.query
    with asked.looking() as (view, reach):
        tasks = Tasks(view)
        return paged(
            _find(view, reach, query),
            query.limit,
            shape=lambda run: run_shape(run, tasks.find(run)),
            cursor=lambda run: run.id,
        )


def _find(view: LedgerView, reach: CallerReach, query: RunQuery) -> Iterator[Run]:
    found = view.find_runs(
        agent=None if query.agent is None else AgentId(query.agent),
        states=() if query.state is None else (query.state,),
        root=reach.own.root if reach.is_limited else None if query.root is None else RunId(query.root),
        parent=None if query.parent is None else RunId(query.parent),
        before=None if query.before is None else RunId(query.before),
        limit=None if reach.is_limited else query.limit + 1,
    )
    wanted = query.root if reach.is_limited else None
    return (run for run in found if reach.covers(run) and wanted in {None, run.root})


def show_run(asked: ApiRequest) -> Shape:
    """Return a run with its calls, children and report."""
    with asked.looking() as (view, reach):
        run = reach.run(asked.names["run"])
        told = timed(view, read_stream(view, StreamId(run.id)))
        if told.receipts:
            run = run_between(run, told.receipts[0], told.receipts[-1])
        facts = run_facts(view, run, told.receipts, told.mark)
        if reach.is_limited:
            # Who is above an agent's own run, and what they were asked to do, is not its business.
            facts["ancestors"] = []
        return facts


def list_artifacts(asked: ApiRequest) -> Shape:
    """Return the contents that the receipts of a run name."""
    query: CursorQuery = asked.query
    with asked.looking() as (view, reach):
        run = reach.run(asked.names["run"])
        found = [
            (receipt.id, text)
            for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run.id)))
            for receipt in (read_receipt(stored),)
            for text in read_texts(view, receipt).values()
        ]
    return paged(
        found, query.limit, shape=lambda one: _artifact(*one), cursor=lambda one: one[1].ref.id, after=query.after
    )


def _artifact(receipt: str, text: Text) -> Shape:
    return {
        "receipt": receipt,
        "name": text.name,
        "content": text.ref.id,
        "digest": text.ref.digest,
        "size": text.ref.size,
        "media_type": text.ref.media_type,
        "state": text.found,
    }


def read_artifact(asked: ApiRequest) -> RawAnswer:
    """Return the bytes of a content that a receipt of a run names. They are never served as a page."""
    content = ContentId(asked.names["content"])
    with asked.looking() as (view, reach):
        run = reach.run(asked.names["run"])
        for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run.id))):
            receipt = read_receipt(stored)
            if any(ref.id == content for ref in receipt.content.values()):
                body = view.get_content(content).body
                if body is None:
                    raise ContentErasedError(content)
                return RawAnswer(body=body, media_type=_ARTIFACT_TYPE)
    raise NotFoundError("artifact", content)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/runs",
        name="listRuns",
        about="List runs, the latest first.",
        roles=EVERYBODY,
        act=list_runs,
        answers=Page[RunShape],
        query=RunQuery,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{run}",
        name="showRun",
        about="Show a run: its task, calls, children and report.",
        roles=EVERYBODY,
        act=show_run,
        answers=RunDetailShape,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/artifacts",
        name="listArtifacts",
        about="List the contents that the receipts of a run name.",
        roles=EVERYBODY,
        act=list_artifacts,
        answers=Page[ArtifactShape],
        query=CursorQuery,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/artifacts/{content}",
        name="readArtifact",
        about="Read the bytes of a content of a run.",
        roles=EVERYBODY,
        act=read_artifact,
        answers=bytes,
    ),
)
