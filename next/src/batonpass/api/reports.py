"""Acts that answer questions about what was recorded. They are loaded at their first use: most programs only record."""

from typing import Annotated, Final

from msgspec import Meta

from batonpass.api.acts import READ, Caller, Role, Value, act
from batonpass.api.handoffs import OfHandoff, find_row
from batonpass.api.runs import OfRun
from batonpass.errors import NotFoundError
from batonpass.model.lifecycle import RunState
from batonpass.reading.batons import principal_of, read_hops
from batonpass.reading.handoffs import HandoffView, RunPage, RunView, read_handoff, read_run_page, read_run_view
from batonpass.reports.blame import Blame, read_blame
from batonpass.runtime.context import Context, unknown_run
from batonpass.runtime.effects import from_work_tree

_ALL: Final[frozenset[Role]] = READ - {"agent"}  # an agent's token shows what is its principal's


class ListRuns(Value, frozen=True):
    """One page. `after` is what the page before said under `next`."""

    state: RunState | None = None
    agent: str | None = None
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


@act("GET /v1/runs", roles=_ALL)
def list_runs(context: Context, caller: Caller, request: ListRuns) -> RunPage:  # noqa: ARG001 - as every act
    """List runs, the latest first."""
    store = context.recorder.store
    return read_run_page(store, state=request.state, agent=request.agent, after=request.after, limit=request.limit)


@act("GET /v1/runs/{run}", roles=READ)
def show_run(context: Context, caller: Caller, request: OfRun) -> RunView:
    """Show a run with everything that it did."""
    store = context.recorder.store
    row = store.find_stream(request.run)
    if row is None or row.agent is None:
        raise unknown_run(request.run)
    if caller.role == "agent" and caller.principal != principal_of(read_hops(store, row.root or row.id)):
        raise unknown_run(request.run)
    return read_run_view(store, row)


@act("GET /v1/handoffs/{handoff}", roles=READ)
def show_handoff(context: Context, caller: Caller, request: OfHandoff) -> HandoffView:
    """Show a handoff: its task, who gave it and for whom, each attempt with its calls, what is in doubt."""
    return read_handoff(context.recorder.store, find_row(context, caller, request.handoff).id)


class BlameFile(Value, frozen=True):
    """A file, and one of its lines; without one, all of them."""

    path: str
    line: Annotated[int, Meta(ge=1)] | None = None


@act("GET /v1/blame", roles=_ALL)
def blame(context: Context, caller: Caller, request: BlameFile) -> Blame:
    """Say of each line of a file which recorded call wrote it, under which grant, and for whom."""
    tree = context.work_tree
    if caller.principal:
        path = (tree / request.path).resolve()
        if not path.is_relative_to(tree):  # the answer has the text of the lines, and a token is for this tree
            raise NotFoundError(f"there is no file {request.path!r} in this work tree")
    else:
        path = tree / from_work_tree(tree, request.path)
    return read_blame(context.recorder.store, tree, path, request.line)
