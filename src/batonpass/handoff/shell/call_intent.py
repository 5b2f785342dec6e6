"""The writes that a call is told to make: read from the text of a command, or from the arguments of any other tool."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from batonpass.attribution.worktree.write_intent import Intent, NamedWrite
from batonpass.handoff.files.edited_files import Watched
from batonpass.handoff.shell.command_intent import shell_intent
from batonpass.handoff.tools.tool_call import ToolCall


def call_intent(call: ToolCall[Any], watched: Watched, root: Path) -> Intent:
    """Return the writes into the work tree below a root that a call is told to make."""
    if not call.declared.scripts:
        # Strings, not Path objects: this runs before every call of a run whose files are watched.
        below = f"{str(root).rstrip('/')}/"
        inside = [path.removeprefix(below) for path in watched.files if path.startswith(below)]
        return Intent(writes=tuple([NamedWrite(path=path) for path in inside]))
    told = [shell_intent(text, call.declared.place or Path.cwd(), root) for text in _scripts(call)]
    return Intent(writes=tuple(write for one in told for write in one.writes), brings=any(one.brings for one in told))


def _scripts(call: ToolCall[Any]) -> Iterator[str]:
    """Yield the texts that a shell executes."""
    for name in call.declared.scripts:
        if isinstance(text := call.mentioned.get(name), str):
            yield text
