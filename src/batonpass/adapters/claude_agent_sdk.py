"""Records sessions of the Claude Agent SDK with callbacks, which get the same events as Claude Code's hook command.

    with record_hooks(project=".") as hooks:
        options = ClaudeAgentOptions(hooks=hooks, ...)

docs/spec/claude-code.md lists the receipt of each event. The SDK is imported only when this is called.
"""

import asyncio
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from batonpass.adapters.coders.dialects.dialect import deny_like_claude as denied
from batonpass.adapters.coders.events import EVENTS
from batonpass.adapters.coders.session.hook_recorder import HookRecorder, open_recorder
from batonpass.errors import BatonpassError
from batonpass.relay import Relay

# More than any event takes; a ledger that is locked for so long is broken.
_SECONDS: Final = 60.0


def record_hooks(
    relay: Relay | None = None,
    project: str | Path = ".",
    *,
    enforce: bool = False,
    by: str | None = None,
) -> "Hooks":
    """Return hooks for `ClaudeAgentOptions` that record every session, by default in the project's own ledger.

    Two things are refused: tampering with the ledger, and calls that a policy with `enforce = true` denies or holds. An
    error of the recorder stops nothing; it leaves a gap in the record. With `enforce`, the rules and grants of
    `batonpass.toml` apply, and a call that cannot be recorded is not made. A given `relay` is not closed here, and its
    policy applies if the project has no file. Merge other hooks event by event: each event has a list. A session must
    not also load settings with our hook command, or it is recorded twice.
    """
    matcher = importlib.import_module("claude_agent_sdk").HookMatcher
    place = Path(project).absolute()
    callback = _Callback(open_recorder(place, enforce=enforce, relay=relay, by=by), enforce=enforce)
    on_failure = "block" if enforce else "continue"
    made = {event: [matcher(hooks=[callback], timeout=_SECONDS, on_failure=on_failure)] for event in EVENTS}
    return Hooks(made, callback)


class Hooks(dict[Any, list[Any]]):
    """Hooks for the SDK. The SDK does not report the end of a session; leaving this context does.

    A session that nobody ends stays open, as after a crash, and continues when it is resumed.
    """

    def __init__(self, made: dict[Any, list[Any]], callback: "_Callback") -> None:
        super().__init__(made)
        self._callback = callback

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the recorded sessions, and close the ledger if it was opened here."""
        self._callback.close()


class _Callback:
    """Hands events to a recorder in a thread, so that the program's event loop does not wait for the disk."""

    def __init__(self, recorder: HookRecorder, *, enforce: bool) -> None:
        self._recorder = recorder
        self._enforce = enforce
        self._sessions: set[str] = set()

    async def __call__(self, event: Mapping[str, Any], _: str | None, __: Any) -> dict[str, Any]:  # noqa: ANN401 - the SDK's context
        # Shielded: an event is recorded completely, even if nobody waits for the answer any more.
        return await asyncio.shield(asyncio.to_thread(self.answer, event))

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Record an event and return the answer for the SDK. Never raises."""
        if isinstance(session := event.get("session_id"), str):
            self._sessions.add(session)
        try:
            return self._recorder.handle(event)
        except Exception as error:  # noqa: BLE001 - an error of the recorder must not end the session
            return self._missed(event, error)

    def close(self) -> None:
        """End all sessions."""
        for session in sorted(self._sessions):
            self.answer({"hook_event_name": "SessionEnd", "session_id": session, "reason": "closed"})
        self._sessions.clear()
        self._recorder.close()

    def _missed(self, event: Mapping[str, Any], error: Exception) -> dict[str, Any]:
        reason = str(error) if isinstance(error, BatonpassError) else f"{type(error).__name__}: {error}"
        try:
            self._recorder.note_gap(event, reason)
        except Exception:  # noqa: BLE001 - as above; the gap is recorded with the next event
            self._recorder.note_gap(None, reason)
        if self._enforce and event.get("hook_event_name") == "PreToolUse":
            return denied(f"Batonpass could not record this call, and unrecorded calls are not allowed here: {reason}")
        return {}
