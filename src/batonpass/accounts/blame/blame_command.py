"""The command behind a call, and how its changes are described: as its work, or as made while it ran."""

from collections.abc import Iterable
from typing import Final

from batonpass.attribution.changes.change import Certainty, FileChange
from batonpass.records.call import CallRecord, read_arguments
from batonpass.store.port import LedgerView

_LONGEST: Final = 60
_COMMANDS: Final = ("command", "line")  # the argument's name in Claude Code's shells and in `run.shell`


def read_command(view: LedgerView, call: CallRecord) -> str | None:
    """Return the command of a shell call; None if it is not one, or the command is gone."""
    given = read_arguments(view, call) or {}
    known = (given.get(name) for name in _COMMANDS)
    return next((one for one in known if isinstance(one, str) and one.strip()), None)


def shown_command(command: str, *, full: bool = False) -> str:
    """Return a command as answers show it: its first line, shortened."""
    words = command.strip()
    if full:
        return f"`{words}`"
    line = words.partition("\n")[0]
    short = line if len(line) <= _LONGEST else f"{line[:_LONGEST].rstrip()}"
    return f"`{short}{'…' * (short != words)}`"


def is_meanwhile(changes: Iterable[FileChange]) -> bool:
    """Return whether a call is only a candidate for all of these changes; False if there are none."""
    certainties = {change.certainty for change in changes}
    return Certainty.CANDIDATE in certainties and Certainty.CERTAIN not in certainties


def told_change(change: FileChange) -> str:
    """Return how a call relates to a change, in words."""
    done = "deleted" if change.is_deletion else "changed"
    match change.certainty:
        case Certainty.CANDIDATE:
            return f"{change.path} was {done} while it ran"
        case Certainty.BROUGHT:
            return f"git brought {change.path}" if not change.is_deletion else f"git took away {change.path}"
        case Certainty.CERTAIN:
            return f"{done} {change.path}"
