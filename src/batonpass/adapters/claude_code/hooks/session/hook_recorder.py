"""Recording a session of Claude Code while it happens: what its hooks are told becomes receipts.

Nothing here decides what may be done: whoever is asked to judge does. Errors are raised; what they mean for the session
is for whoever called.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from batonpass.adapters.claude_code.hooks.events import HookEvent, read_event, session_of
from batonpass.adapters.claude_code.hooks.rules.directory_policy import DirectoryPolicy, Ruled
from batonpass.adapters.claude_code.hooks.session.background_tasks import find_ended_task
from batonpass.adapters.claude_code.hooks.session.changed_files import Changing, WatchedTree
from batonpass.adapters.claude_code.hooks.session.delegation import Delegating
from batonpass.adapters.claude_code.hooks.session.event_receipts import Following, RefusedCall, answer_with
from batonpass.adapters.claude_code.hooks.session.recovery import remember_session
from batonpass.adapters.claude_code.hooks.session.state import Going, HookSession, MadeCall
from batonpass.adapters.claude_code.importer.transcript_import import principal_of
from batonpass.attribution.changes.sides import find_root
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.errors import (
    CallError,
    CallOutcomeError,
    FencedError,
    InvalidValueError,
    KeyMissingError,
    PolicyFileError,
    StreamClosedError,
)
from batonpass.model.base.ids import PrincipalId, RunId, require_principal
from batonpass.model.base.kinds import Mode
from batonpass.relay import Relay, desk_of
from batonpass.store.home import HOME_NAME

# Sessions that are not over are kept in mind; of more than so many, the ledger is asked again.
_MOST_SESSIONS: Final = 256


class _Session:
    """A session, and the lock under which what is known of it changes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.state: HookSession | None = None


class HookRecorder:
    """Records the events of Claude Code's hooks in one project. Safe to use from many threads.

    Nothing is refused but what the one way of calls refuses: in a session that is only observed, tampering with the
    record, and what a policy with `enforce = true` denies. `policy` says what holds now: the file of the project, and
    where there is none, the relay's own policy. A session belongs to one recorder at a time: two that are told of the
    same events record them twice.
    """

    def __init__(
        self,
        relay: Relay,
        project: Path,
        *,
        mode: Mode = Mode.OBSERVED,
        work_tree: WatchedTree | None = None,
        by: str | None = None,
        policy: Callable[[], Ruled] | None = None,
    ) -> None:
        self._project = project.absolute()
        self._mode = mode
        self._relay = relay
        tree = work_tree or WorkTree(find_root(self._project), environment=dict(os.environ), without=(HOME_NAME,))
        self._changing = Changing(self._project, tree)
        principal = principal_of(self._project) if by is None else require_principal("by", PrincipalId(by))
        self._pen = Delegating(relay, self._project, self._mode)
        self._policy = policy or DirectoryPolicy(self._project)
        self._following = Following(self._pen, self._changing, principal)
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._lost: set[RunId] = set()  # roots that are open, and that we cannot write to
        self._missed: list[str] = []  # of sessions that we do not know

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Record an event; return what to answer Claude Code, where nothing means: go on.

        When this returns, what it recorded is durable. Raises our own errors; then nothing of the event is certain to
        be recorded, and `note_gap` is to be told.
        """
        known = read_event(event)
        if known is None:
            return {}
        self._follow_policy()
        try:
            return self._handle(known)
        except (FencedError, KeyMissingError, StreamClosedError) as error:
            # A run was ended or taken over by somebody else, or its key is gone with another process. What the ledger
            # says now decides; a root that cannot be written to is continued by another.
            self._let_go(known.session, error)
            return self._handle(known)

    def _follow_policy(self) -> None:
        """Hold what comes to the file as it is now. Where that is wrong, an enforced session makes no call."""
        try:
            self._pen.follow(self._policy())
        except PolicyFileError as error:
            # One that is only watched goes on under what held before.
            if self._mode is Mode.ENFORCED:
                self._pen.wrong = error

    def note_gap(self, event: Mapping[str, Any] | None, reason: str) -> None:
        """Record that an event was not recorded: in its session, or, if nobody knows which, with whatever comes next.

        Raises our own errors if that cannot be recorded either.
        """
        sentence = f"{'event' if event is None else event.get('hook_event_name')}: {reason}"
        name = None if event is None else session_of(event)
        if name is None:
            with self._lock:
                self._missed.append(sentence)
            return
        session = self._session(name)
        with session.lock:
            state = self._state(session, name)
            self._recover_words(state, event or {})
            self._pen.write_gap(state, self._following.root(state), [sentence])

    def close(self) -> None:
        """Let go of the work tree. Sessions stay open, and the ledger is whoever's who opened it."""
        self._changing.close()

    def _recover_words(self, state: HookSession, event: Mapping[str, Any]) -> None:
        """Record what the human said in an event that was missed: it is at hand, and said once."""
        with contextlib.suppress(InvalidValueError):
            known = read_event(event)
            if known is not None and known.name == "UserPromptSubmit" and known.by_human:
                self._following.say(state, known)

    def _handle(self, event: HookEvent) -> dict[str, Any]:
        session = self._session(event.session)
        match event.name:
            case "PreToolUse" if event.delegates:
                with session.lock:
                    prompt = self._following.offer(self._state(session, event.session), event)
                return denied(prompt.sentence) if isinstance(prompt, RefusedCall) else answer_with(prompt, event.input)
            case "PreToolUse":
                with session.lock:
                    made = self._following.request(self._state(session, event.session), event)
                if isinstance(made, RefusedCall):
                    return denied(made.sentence)
                self._changing.begin(event, made, self._now())
            case "PostToolUse" | "PostToolUseFailure" if not event.delegates:
                try:
                    self._finish(session, event)
                except (CallError, CallOutcomeError) as error:
                    return regretted(str(error))  # it is on record; the model learns that it was not to be
                if (over := find_ended_task(event)) is not None:
                    self._finish_background(session, event, lambda _, going: going.task == over)
            case "SessionStart":
                self._changing.prepare()
            case "UserPromptSubmit" if event.ended_call is not None:
                self._finish_background(session, event, lambda name, _: name == event.ended_call)
            case "SessionEnd":
                self._finish_background(session, event, lambda *_: True)
                self._end(session, event)
            case _:
                with session.lock:
                    self._follow(self._state(session, event.session), event)
        return {}

    def _follow(self, state: HookSession, event: HookEvent) -> None:
        match event.name:
            case "UserPromptSubmit":
                if event.by_human:
                    self._following.say(state, event)
            case "PostToolUse":
                self._following.finish_delegation(state, event)
            case "PostToolUseFailure":
                self._following.fail_delegation(state, event)
            case "SubagentStart":
                self._following.start(state, event)
            case "SubagentStop":
                self._following.stop(state, event)
            case _:
                self._following.answer(state, event)

    def _finish(self, session: _Session, event: HookEvent) -> None:
        with session.lock:
            state = self._state(session, event.session)
            asked = state.calls.get(event.call)
            made = self._following.find_made(state, event)
        if made is None or not made.open:
            return
        # Not under the lock: looking at a large work tree takes longer than writing, and others have calls to begin.
        looked = _looked_for(event, made, asked)
        if asked is not None and looked is not asked:
            self._changing.forget([asked.id])
        found = self._changing.end(event, looked, self._now())
        changes = tuple(replace(change, call=made.id) for change in found.changes)
        with session.lock:
            state = self._state(session, event.session)
            self._following.finish(state, event, made, replace(found, changes=changes), looked)

    def _finish_background(self, session: _Session, event: HookEvent, over: Callable[[str, Going], bool]) -> None:
        """Write down what commands did after they returned, of those that are over by now."""
        with session.lock:
            going = self._state(session, event.session).going
            ended = {name: going.pop(name) for name in [*going] if over(name, going[name])}
        for name, each in ended.items():
            found = self._changing.end_background(each.made, self._now())
            with session.lock:
                self._following.finish_background(self._state(session, event.session), name, each, found)

    def _end(self, session: _Session, event: HookEvent) -> None:
        with session.lock:
            state = self._state(session, event.session)
            self._following.end(state, event)
            self._changing.forget(made.id for made in state.calls.values())
            session.state = None
        with self._lock:
            self._sessions.pop(event.session, None)

    def _session(self, name: str) -> _Session:
        with self._lock:
            session = self._sessions.pop(name, None) or _Session()
            self._sessions[name] = session  # the one that was asked for last stands last
            while len(self._sessions) > _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return session

    def _state(self, session: _Session, name: str) -> HookSession:
        """Return where a session stands. Whoever calls has its lock."""
        if session.state is None:
            desk_of(self._relay)
            with self._relay.store.view() as view:
                session.state = remember_session(
                    view, name, mode=self._mode, place=desk_of(self._relay).files.root, lost=self._lost
                )
            self._changing.resume([made for made in session.state.calls.values() if made.open], self._now())
        if self._missed and session.state.root is not None:
            with self._lock:
                missed, self._missed = self._missed, []
            if missed:
                self._pen.write_gap(session.state, session.state.root, missed)
        return session.state

    def _let_go(self, name: str, error: FencedError | KeyMissingError | StreamClosedError) -> None:
        session = self._session(name)
        with session.lock:
            root = None if session.state is None else session.state.root
            if root is not None and (isinstance(error, KeyMissingError) or error.stream == root.id):
                self._lost.add(root.id)
            session.state = None

    def _now(self) -> datetime:
        return desk_of(self._relay).clock.now()


def _looked_for(event: HookEvent, made: MadeCall, asked: MadeCall | None) -> MadeCall:
    """Return for which call the files were looked at before: for the one that was asked about, if it was let be made.

    Of one that was to edit another file, that file was looked at; then the result says what was edited.
    """
    if asked is None or asked.begun is None:
        return made
    return made if asked is not made and asked.path != event.path else asked


def regretted(sentence: str) -> dict[str, Any]:
    """Return what Claude Code is told of a call that did what it should not have done."""
    return {"decision": "block", "reason": sentence}


def denied(sentence: str) -> dict[str, Any]:
    """Return what Claude Code is told when a call must not be made."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": sentence,
        },
    }
