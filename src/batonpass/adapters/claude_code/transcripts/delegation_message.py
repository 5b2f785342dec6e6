"""Finds the message in a transcript that started a sub-agent: the model's reasoning when it delegated."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from batonpass.adapters.claude_code.transcripts.transcript_lines import PlacedLine, find_last_placed, find_placed
from batonpass.adapters.tool_kinds import DELEGATES
from batonpass.handoff.tools.json_values import readable
from batonpass.model.base.ids import Digest
from batonpass.model.bodies.reasoning import ReasoningPlace

# The line is written just before the hook is called, so it is near the end.
_TAIL: Final = 512 * 1024
_CALLED: Final = b'"tool_use"'
_LONGEST_NAME: Final = 256  # a longer id is not valid


def find_message(path: Path | None, call: str, *, or_last: bool = False) -> ReasoningPlace | None:
    """Return the place of the message with a call, near the end of a transcript; None if it is not there.

    Claude Code may report a call before it has written it. With `or_last`, the model's last message counts instead: it
    is the reasoning up to then.
    """
    if path is None:
        return None
    last: PlacedLine | None = None
    for placed in find_last_placed(path, _TAIL):
        if placed.line.type == "assistant":
            last = placed
            if call in _calls(placed):
                return _place(path, placed)
    return _place(path, last) if or_last and last is not None else None


def find_messages(paths: Iterable[Path]) -> dict[str, ReasoningPlace]:
    """Return the places of the messages that started sub-agents, by the ids of their calls."""
    return {
        call: _place(path, placed)
        for path in paths
        for placed in find_placed(path, _CALLED)
        if placed.line.type == "assistant"
        for call in _calls(placed, delegating=True)
    }


def _calls(placed: PlacedLine, *, delegating: bool = False) -> Iterator[str]:
    message = placed.line.message
    for block in () if message is None or isinstance(message.content, str) else message.content:
        match block:
            case {"type": "tool_use", "id": str(call), "name": str(tool)} if not delegating or tool in DELEGATES:
                yield call
            case _:
                continue


def _place(path: Path, placed: PlacedLine) -> ReasoningPlace:
    uuid = placed.line.uuid or ""
    return ReasoningPlace(
        sha256=Digest(sha256(placed.data).hexdigest()),
        line=placed.number,
        offset=placed.offset,
        path=readable(str(path)),
        uuid=uuid if 0 < len(uuid.strip()) <= _LONGEST_NAME else None,
    )
