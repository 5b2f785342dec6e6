"""Acts that answer questions about what was recorded."""

from typing import Annotated

from msgspec import Meta

from batonpass.api.acts import Caller, Value, act
from batonpass.errors import NotFoundError
from batonpass.reports.blame import Blame, read_blame
from batonpass.runtime.context import Context
from batonpass.runtime.effects import from_work_tree


class BlameFile(Value, frozen=True):
    """A file, and one of its lines; without one, all of them."""

    path: str
    line: Annotated[int, Meta(ge=1)] | None = None


@act("GET /v1/blame", roles=frozenset({"process", "operator", "auditor"}))
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
