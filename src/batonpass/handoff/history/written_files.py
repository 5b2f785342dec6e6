"""Files that commands changed, each as the call that a grant would have to cover: a write."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.changes.change_document import read_file_changes
from batonpass.errors import InvalidValueError
from batonpass.handoff.tools.actions import WRITE
from batonpass.model.grants.call import Call
from batonpass.records.call import CallRecord
from batonpass.store.port import LedgerView

SHELL: Final = "shell"
OUTSIDE: Final = "effect.outside-grant"  # the flag of a call that changed files its grant does not cover


def files_of(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """Return each changed file once, from the root of the repository. A renamed file counts with both names."""
    return tuple(
        dict.fromkeys(path for change in changes for path in (change.path, change.renamed_from) if path is not None)
    )


def read_written(view: LedgerView, command: CallRecord, lead: Callable[[str], str]) -> Iterator[Call]:
    """Yield the writes of a command, without those that were erased or that no permit can name.

    `lead` takes the path of a file from the root of its repository, and returns where it leads in the work tree.
    """
    for path in files_of(read_file_changes(view, command)):
        try:
            call = Call(SHELL, WRITE, lead(path))
            call.place  # noqa: B018 - read only to see whether it is valid
        except InvalidValueError:
            continue
        yield call
