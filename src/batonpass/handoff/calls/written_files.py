"""Files that commands changed, each as the call that a grant would have to cover: to write it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from batonpass.attribution.change import FileChange
from batonpass.attribution.documents import decode_change
from batonpass.audit.lookup import read_texts
from batonpass.errors import InvalidValueError
from batonpass.handoff.calls.tools import WRITE
from batonpass.model.bodies import ToolCompleted, ToolFailed
from batonpass.model.call import Call
from batonpass.model.receipt import Receipt
from batonpass.store.port import LedgerView

SHELL: Final = "shell"
_CHANGE: Final = "change."


def files_of(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """Return each file that was changed once, from the root of the repository; of a renamed one, both names."""
    return tuple(
        dict.fromkeys(path for change in changes for path in (change.path, change.renamed_from) if path is not None)
    )


def read_written(view: LedgerView, outcome: Receipt, lead: Callable[[str], str]) -> Iterator[Call]:
    """Yield what a command wrote, from the receipt of its outcome, unless it was erased or nothing could grant it.

    `lead` says where the path of a file, from the root of its repository, leads to in the work tree.
    """
    if not isinstance(outcome.body, ToolCompleted | ToolFailed):
        return
    changes = [
        decode_change(text.body, call=outcome.body.call, run=outcome.body.run, at=outcome.at)
        for name, text in read_texts(view, outcome).items()
        if name.startswith(_CHANGE) and text.body is not None
    ]
    for path in files_of(changes):
        try:
            call = Call(SHELL, WRITE, lead(path))
            call.place  # noqa: B018 - it is read to see whether it can be
        except InvalidValueError:
            continue
        yield call
