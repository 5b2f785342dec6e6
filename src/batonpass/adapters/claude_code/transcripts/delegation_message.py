"""Which message of a transcript started a sub-agent, and where it stands: what a model thought when it handed on."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from batonpass.adapters.claude_code.transcripts.transcript import DELEGATES
from batonpass.adapters.claude_code.transcripts.transcript_lines import PlacedLine, find_last_placed, find_placed
from batonpass.handoff.tools.json_values import readable
from batonpass.model.base.ids import Digest
from batonpass.model.bodies.reasoning import ReasoningPlace

# A line is written just before its call is told of: it stands at the very end, behind at most a few others.
_TAIL: Final = 512 * 1024
_CALLED: Final = b'"tool_use"'
_LONGEST_NAME: Final = 256  # of a message: more is no name, and nobody looks for it


def find_message(path: Path | None, call: str, *, or_last: bool = False) -> ReasoningPlace | None:
    """Return where the message with a call stands, near the end of a transcript; None if it is not there.

    Claude Code may tell of a call before it has written it down: with `or_last` the last message of the model counts
    instead, which is what it had thought until then.
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
    """Return where the messages stand that started sub-agents, by the ids of their calls."""
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
