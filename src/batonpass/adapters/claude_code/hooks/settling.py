"""Calls of which no hook was told the end: refused by the program's own rules or by the human. The transcript tells."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from batonpass.adapters.claude_code.records import ToolResult
from batonpass.adapters.claude_code.transcripts import find_last_results

# Enough for many turns; a call whose end lies further back stays in doubt, and is found when the session is imported.
_TAIL: Final = 512 * 1024


def find_outcomes(transcript: Path | None, calls: Collection[str]) -> dict[str, ToolResult]:
    """Return what the end of a transcript says about calls; nothing about those that it does not mention."""
    if transcript is None or not calls:
        return {}
    return {
        result.tool_use_id: result for result in find_last_results(transcript, _TAIL) if result.tool_use_id in calls
    }
