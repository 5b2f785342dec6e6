"""The Claude Agent SDK: the events that Claude Code's hook command gets, as callbacks in the program's own process.

    with record_hooks(project=".") as hooks:
        options = ClaudeAgentOptions(hooks=hooks, ...)

What each event becomes is in docs/spec/claude-code.md. The SDK is imported when this is called, and not before.
"""

import asyncio
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from batonpass.adapters.claude_code.hooks.events import EVENTS
from batonpass.adapters.claude_code.hooks.rules.directory_policy import DirectoryPolicy
from batonpass.adapters.claude_code.hooks.session.hook_recorder import HookRecorder, denied
from batonpass.config import find_settings
from batonpass.errors import BatonpassError
from batonpass.model.base.kinds import Mode
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay

# Longer than anything of ours takes; a ledger that is locked for so long is broken.
_SECONDS: Final = 60.0


def record_hooks(
    relay: Relay | None = None,
    project: str | Path = ".",
    *,
    enforce: bool = False,
    by: str | None = None,
) -> "Hooks":
    """Return the hooks that record every session of a `ClaudeAgentOptions`; by default in the project's own ledger.

    Nothing is refused but tampering with the ledger and what a policy with `enforce = true` denies or holds, and an
    error of ours stops nothing: it leaves a gap in the record. With `enforce`, the rules and grants of
    `batonpass.toml` hold, and a call that cannot be recorded is not made. A `relay` that is given stays its owner's:
    where the project has no file, the policy that it was opened with holds, and it is not closed here. Merge
    other hooks event by event: each has a list. A session must not load settings that name our hook command as well: it
    would be recorded twice.
    """
    matcher = importlib.import_module("claude_agent_sdk").HookMatcher
    place = Path(project).absolute()
    settings = find_settings(directory=place)
    # Whoever goes on with a session may be another process: its keys are where that finds them.
    opened = relay or Relay.open(
        settings.ledger, home=settings.home, keys_in_files=True, policy=Policy(), work_tree=place
    )
    mode = Mode.ENFORCED if enforce else Mode.OBSERVED
    policy = DirectoryPolicy(place, settings.policy)
    callback = _Callback(HookRecorder(opened, place, mode=mode, by=by, policy=policy), enforce=enforce)
    on_failure = "block" if enforce else "continue"
    made = {event: [matcher(hooks=[callback], timeout=_SECONDS, on_failure=on_failure)] for event in EVENTS}
    return Hooks(made, callback, opened if relay is None else None)


class Hooks(dict[Any, list[Any]]):
    """Hooks for the SDK, which tells nobody when a session is over: leaving this context does.

    A session that nobody ends stays open, as after a crash, and goes on when it is resumed.
    """

    def __init__(self, made: dict[Any, list[Any]], callback: "_Callback", opened: Relay | None) -> None:
        super().__init__(made)
        self._callback = callback
        self._opened = opened

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the sessions that were recorded, and let go of the ledger if it was opened here."""
        self._callback.close()
        if self._opened is not None:
            self._opened.close()


class _Callback:
    """Hands events to a recorder, in a thread: the program's own loop does not wait for a disk."""

    def __init__(self, recorder: HookRecorder, *, enforce: bool) -> None:
        self._recorder = recorder
        self._enforce = enforce
        self._sessions: set[str] = set()

    async def __call__(self, event: Mapping[str, Any], _: str | None, __: Any) -> dict[str, Any]:  # noqa: ANN401 - the SDK's context
        # Not to be cancelled half-way: what was begun is recorded, whether or not anybody waits for the answer.
        return await asyncio.shield(asyncio.to_thread(self.answer, event))

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Record an event and return what the SDK is told; nothing that goes wrong gets out of here."""
        if isinstance(session := event.get("session_id"), str):
            self._sessions.add(session)
        try:
            return self._recorder.handle(event)
        except Exception as error:  # noqa: BLE001 - whatever it is, the session must not be ended by who watches it
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
        except Exception:  # noqa: BLE001 - as above; it is noted with the next event that can be recorded
            self._recorder.note_gap(None, reason)
        if self._enforce and event.get("hook_event_name") == "PreToolUse":
            return denied(f"This call could not be recorded, and nothing is done here that is not: {reason}")
        return {}
