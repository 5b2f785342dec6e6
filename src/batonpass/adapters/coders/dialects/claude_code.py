"""Claude Code's own wording: the one that most others took over."""

from collections.abc import Mapping
from typing import Any

from batonpass.adapters.coders.dialects.dialect import Dialect, LinkKind, read_like_claude
from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.tool_kinds import Coder


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event of Claude Code; None if it is not recorded. Raises `InvalidValueError` for an unknown form."""
    return read_like_claude(raw, Coder.CLAUDE_CODE)


CLAUDE_CODE = Dialect(
    coder=Coder.CLAUDE_CODE,
    title="Claude Code",
    read=read_event,
    changes_prompts=True,
    tells_ends=False,
    links=(LinkKind.ID, LinkKind.FILE, LinkKind.INFERRED),
)
