"""Which model made a call: the transcript says so, message by message, and the hooks of Claude Code do not."""

from pathlib import Path
from typing import Final

from batonpass.adapters.claude_code.transcripts.transcript_lines import find_last_lines

_TAIL: Final = 256 * 1024


def find_model(path: Path | None, call: str) -> str | None:
    """Return the model of the message with a call, near the end of a transcript; None if it is not there."""
    for line in () if path is None else find_last_lines(path, _TAIL):
        message = line.message
        if line.type != "assistant" or message is None or isinstance(message.content, str):
            continue
        if any(block.get("type") == "tool_use" and block.get("id") == call for block in message.content):
            return message.model
    return None
