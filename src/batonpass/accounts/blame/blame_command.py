"""The command behind a call, and how its changes are told: as its work, or as what happened while it ran."""

from collections.abc import Iterable
from typing import Final

from batonpass.attribution.changes.change import Certainty, FileChange
from batonpass.records.call import CallRecord, read_arguments
from batonpass.store.port import LedgerView

_LONGEST: Final = 60
_COMMANDS: Final = ("command", "line")  # as Claude Code's shells and `run.shell` call it


def read_command(view: LedgerView, call: CallRecord) -> str | None:
    """Return what a shell was told; None if the call was none, or the words are gone."""
    given = read_arguments(view, call) or {}
    known = (given.get(name) for name in _COMMANDS)
    return next((one for one in known if isinstance(one, str) and one.strip()), None)


def shown_command(command: str, *, full: bool = False) -> str:
    """Return a command as an answer names it: the first line, and not all of a long one."""
    words = command.strip()
    if full:
        return f"`{words}`"
    line = words.partition("\n")[0]
    short = line if len(line) <= _LONGEST else f"{line[:_LONGEST].rstrip()}"
    return f"`{short}{'…' * (short != words)}`"


def is_meanwhile(changes: Iterable[FileChange]) -> bool:
    """Return whether a call is no more than a candidate for any of these changes, of which there must be one."""
    certainties = {change.certainty for change in changes}
    return Certainty.CANDIDATE in certainties and Certainty.CERTAIN not in certainties


def told_change(change: FileChange) -> str:
    """Return what a call has to do with a change, in words."""
    done = "deleted" if change.is_deletion else "changed"
    match change.certainty:
        case Certainty.CANDIDATE:
            return f"{change.path} was {done} while it ran"
        case Certainty.BROUGHT:
            return f"git brought {change.path}" if not change.is_deletion else f"git took away {change.path}"
        case Certainty.CERTAIN:
            return f"{done} {change.path}"
