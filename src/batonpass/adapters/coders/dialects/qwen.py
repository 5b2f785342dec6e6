"""Qwen Code: Claude Code's names and JSON. The id of a sub-agent ends with the id of the call that started it."""

from collections.abc import Mapping
from typing import Any

from batonpass.adapters.coders.dialects.dialect import Dialect, LinkKind, read_like_claude
from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.tool_kinds import Coder


def read_event(raw: Mapping[str, Any]) -> HookEvent | None:
    """Return an event of Qwen Code; None if it is not recorded. Raises `InvalidValueError` for an unknown form."""
    # `tool_use_id` is new in every event; `tool_call_id` is the one that the model and the sub-agents know. `prompt` is
    # also told after each result, then without anything submitted.
    return read_like_claude(raw, Coder.QWEN, call="tool_call_id", prompt="submitted_prompt")


QWEN = Dialect(
    coder=Coder.QWEN,
    title="Qwen Code",
    read=read_event,
    second=1000,
    links=(LinkKind.ID, LinkKind.INFERRED),
    tells_session_ends=False,
    cannot=(
        "`qwen -p` does not tell the end of a session: a later one closes its run, ten minutes after its last event",
    ),
)
