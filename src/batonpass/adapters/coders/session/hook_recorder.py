"""Records sessions of coding agents live: events of their hooks become receipts.

Nothing here decides whether a call may be made; the checks that all doors share do. Errors are raised, and the caller
decides what they mean for the session.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from batonpass.adapters.coders.caller import find_caller
from batonpass.adapters.coders.dialects.dialect import Dialect
from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.events import HookEvent, find_ended_task, id_in
from batonpass.adapters.coders.families import Families
from batonpass.adapters.coders.heard_events import HeardEvents
from batonpass.adapters.coders.rules.directory_policy import DirectoryPolicy, Ruled
from batonpass.adapters.coders.session.call_names import forget_name, with_name
from batonpass.adapters.coders.session.changed_files import Changing
from batonpass.adapters.coders.session.delegation import Delegating
from batonpass.adapters.coders.session.event_receipts import Following, RefusedCall
from batonpass.adapters.coders.session.hook_session import Going, HookSession, MadeCall
from batonpass.adapters.coders.session.recovery import remember_session
from batonpass.adapters.coders.session.silent_end import REASON, find_silent
from batonpass.adapters.coders.session.sub_agent_link import nested_name
from batonpass.adapters.importer.session_import import principal_of
from batonpass.adapters.tool_kinds import Coder
from batonpass.attribution.changes.sides import find_root
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.config import find_settings
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
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay, desk_of
from batonpass.store.home import HOME_NAME

# Open sessions that are kept in memory; others are read from the ledger again.
_MOST_SESSIONS: Final = 256


class _Session:
    """A session, and the lock for its state."""

    def __init__(self, coder: Coder) -> None:
        self.coder = coder
        self.lock = threading.Lock()
        self.state: HookSession | None = None


class HookRecorder:
    """Records the events of coding agents' hooks in one project. Thread-safe.

    Only the checks that all doors share refuse anything: in an observed session, tampering with the record, and calls
    that a policy with `enforce = true` denies. `policy` returns the present policy: the project's file, or the relay's
    own policy if there is none. A session belongs to one recorder at a time: two recorders that get the same events
    record them twice.
    """

    def __init__(
        self,
        relay: Relay,
        project: Path,
        *,
        mode: Mode = Mode.OBSERVED,
        work_tree: WorkTree | None = None,
        by: str | None = None,
        policy: Callable[[], Ruled] | None = None,
        owned: bool = False,
    ) -> None:
        self._project = project.absolute()
        self._mode = mode
        self._relay = relay
        self._owned = owned
        tree = work_tree or WorkTree(find_root(self._project), environment=dict(os.environ), without=(HOME_NAME,))
        self._changing = Changing(self._project, tree)
        principal = principal_of(self._project) if by is None else require_principal("by", PrincipalId(by))
        self._writer = Delegating(relay, self._project, self._mode)
        self._policy = policy or DirectoryPolicy(self._project)
        self._following = Following(self._writer, self._changing, principal)
        self._lock = threading.Lock()
        self._families = Families()
        self._heard = HeardEvents()
        self._sessions: dict[tuple[Coder, str], _Session] = {}
        self._lost: set[RunId] = set()  # open roots that we cannot write to
        self._missed: list[str] = []  # gaps of unknown sessions

    def handle(
        self,
        event: Mapping[str, Any],
        hook_of: Coder = Coder.CLAUDE_CODE,
        marks: frozenset[str] = frozenset(),
    ) -> dict[str, Any]:
        """Record an event; return the answer for the agent that sent it; an empty answer means: go on.

        `hook_of` is the agent whose hook was called, and `marks` are names in the environment of that hook; both only
        help to tell whose event it is.

        When this returns, the record is durable. Raises our own errors; then it is not certain that anything of the
        event was recorded, and `note_gap` must be called.
        """
        dialect = DIALECTS[find_caller(event, hook_of, marks)]
        told = dialect.read(event)
        if told is None:
            return dict(dialect.go_on)
        known = told if told.coder is Coder.CLAUDE_CODE else self._families.place(told, dialect)
        if not dialect.has_call_ids and (answer := self._heard.find(known)) is not None:
            return answer  # the agent ran the hooks of two files, and told both the same
        self._follow_policy()
        answer = self._handle_safely(known, dialect)
        return answer if dialect.has_call_ids else self._heard.keep(known, answer)

    def _handle_safely(self, known: HookEvent, dialect: Dialect) -> dict[str, Any]:
        try:
            return self._handle(known, dialect)
        except (FencedError, KeyMissingError, StreamClosedError) as error:
            # Another process ended or took over the run, or its key is gone. Read the state from the ledger again; a
            # root that cannot be written to is continued by a new one.
            self._let_go(known, error)
            return self._handle(known, dialect)

    def _follow_policy(self) -> None:
        """Apply the present policy file. If it is invalid, an enforced session makes no call."""
        try:
            self._writer.follow(self._policy())
        except PolicyFileError as error:
            # An observed session goes on with the last valid policy.
            if self._mode is Mode.ENFORCED:
                self._writer.wrong = error

    def note_gap(self, event: Mapping[str, Any] | None, reason: str, hook_of: Coder = Coder.CLAUDE_CODE) -> None:
        """Record that an event was missed: in its session, or with the next event if the session is unknown.

        Raises our own errors if the gap cannot be recorded either.
        """
        sentence = f"{'event' if event is None else event.get('hook_event_name')}: {reason}"
        coder = hook_of if event is None else find_caller(event, hook_of)
        name = None if event is None else _session_in(event, DIALECTS[coder])
        if name is None:
            with self._lock:
                self._missed.append(sentence)
            return
        session = self._session(coder, name)
        with session.lock:
            state = self._state(session, name)
            self._recover_words(state, event or {})
            self._writer.write_gap(state, self._following.root(state), [sentence])

    def close(self) -> None:
        """Release the work tree, and the relay if it is owned. Sessions stay open."""
        self._changing.close()
        if self._owned:
            self._relay.close()

    def _recover_words(self, state: HookSession, event: Mapping[str, Any]) -> None:
        """Record the human's words in a missed event: they are available, and said only once."""
        with contextlib.suppress(InvalidValueError):
            known = DIALECTS[state.coder].read(event)
            if known is not None and known.name == "UserPromptSubmit" and known.by_human:
                self._following.say(state, known)

    def _handle(self, event: HookEvent, dialect: Dialect) -> dict[str, Any]:
        if not dialect.tells_session_ends and (event.coder, event.session) not in self._sessions:
            self._end_silent(event.coder, event.session)
        session = self._session(event.coder, event.session)
        if event.inferred or dialect.nested:
            event = self._completed(session, event, dialect)
        match event.name:
            case "PreToolUse":
                return self._ask(session, event, dialect)
            case "PostToolUse" | "PostToolUseFailure" if not event.delegates:
                try:
                    self._finish(session, event)
                except (CallError, CallOutcomeError) as error:
                    return dict(dialect.regret(str(error)))  # it is recorded; the model learns that it was wrong
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
        return dict(dialect.go_on)

    def _ask(self, session: _Session, event: HookEvent, dialect: Dialect) -> dict[str, Any]:
        """Record a call before it is made, and return whether it may be."""
        if event.delegates:
            with session.lock:
                prompt = self._following.offer(self._state(session, event.session), event)
            if isinstance(prompt, RefusedCall):
                return self._denied(session, event, dialect, prompt)
            return _answer_with(prompt, event) or dict(dialect.go_on)
        with session.lock:
            made = self._following.request(self._state(session, event.session), event)
        if isinstance(made, RefusedCall):
            return self._denied(session, event, dialect, made)
        self._changing.begin(event, made, self._now())
        return dict(dialect.go_on)

    def _denied(self, session: _Session, event: HookEvent, dialect: Dialect, refused: RefusedCall) -> dict[str, Any]:
        if event.inferred:
            with session.lock:
                forget_name(self._state(session, event.session), event)
        return dialect.answer_denied(refused.sentence)

    def _completed(self, session: _Session, event: HookEvent, dialect: Dialect) -> HookEvent:
        """Return an event with facts that its agent leaves out: a name for its call, and the caller."""
        with session.lock:
            state = self._state(session, event.session)
            event = with_name(state, event)
            if not dialect.nested or not event.call or event.delegates:
                return event
            made = state.calls.get(event.call)
            if made is not None:
                track = state.runs.get(made.run)
                return event if track is None else replace(event, agent=track.agent)
            under_way = [offer for offer in state.offers.values() if offer.call is not None and not offer.ended]
            if len(under_way) == 1:
                return replace(event, agent=nested_name(str(under_way[0].call)))
            return replace(event, among=len(under_way))

    def _follow(self, state: HookSession, event: HookEvent) -> None:
        match event.name:
            case "UserPromptSubmit":
                if event.by_human:
                    self._following.say(state, event)
                elif event.agent is not None:
                    self._following.take_task(state, event)
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
        # Without the lock: looking at a large work tree is slow, and other calls must be able to begin.
        looked = _looked_for(event, made, asked)
        if asked is not None and looked is not asked:
            self._changing.forget([asked.id])
        found = self._changing.end(event, looked, self._now())
        changes = tuple(replace(change, call=made.id) for change in found.changes)
        with session.lock:
            state = self._state(session, event.session)
            self._following.finish(state, event, made, replace(found, changes=changes), looked)

    def _finish_background(self, session: _Session, event: HookEvent, over: Callable[[str, Going], bool]) -> None:
        """Record the changes that finished background commands made after they returned."""
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
            self._sessions.pop((event.coder, event.session), None)

    def _end_silent(self, coder: Coder, beginning: str) -> None:
        """End the sessions of an agent that does not tell it, when another one begins and nothing of them goes on."""
        if not self._relay.store.founded():
            return
        with self._relay.store.view() as view:
            silent = list(find_silent(view, coder, self._now(), besides=beginning))
        for run, name in silent:
            session = self._session(coder, name)
            with session.lock:
                state = self._state(session, name)
                under_way = any(made.open for made in state.calls.values()) or any(state.open_offers())
            if not under_way and state.root is not None and state.root.id == run:
                with contextlib.suppress(FencedError, KeyMissingError, StreamClosedError):  # somebody else's to end
                    self._end(session, HookEvent(name="SessionEnd", session=name, coder=coder, reason=REASON))

    def _session(self, coder: Coder, name: str) -> _Session:
        with self._lock:
            session = self._sessions.pop((coder, name), None) or _Session(coder)
            self._sessions[coder, name] = session  # the most recently used is last
            while len(self._sessions) > _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return session

    def _state(self, session: _Session, name: str) -> HookSession:
        """Return the state of a session. The caller holds its lock."""
        if session.state is None:
            desk_of(self._relay)  # creates the ledger or joins it
            with self._relay.store.view() as view:
                session.state = remember_session(
                    view,
                    name,
                    mode=self._mode,
                    place=desk_of(self._relay).files.root,
                    lost=self._lost,
                    coder=session.coder,
                )
            going = [made for made in session.state.calls.values() if made.open]
            self._changing.resume(session.coder, going, self._now())
        if self._missed and session.state.root is not None:
            with self._lock:
                missed, self._missed = self._missed, []
            if missed:
                self._writer.write_gap(session.state, session.state.root, missed)
        return session.state

    def _let_go(self, event: HookEvent, error: FencedError | KeyMissingError | StreamClosedError) -> None:
        session = self._session(event.coder, event.session)
        with session.lock:
            root = None if session.state is None else session.state.root
            if root is not None and (isinstance(error, KeyMissingError) or error.stream == root.id):
                self._lost.add(root.id)
            session.state = None

    def _now(self) -> datetime:
        return desk_of(self._relay).clock.now()


def open_recorder(
    project: Path,
    *,
    enforce: bool,
    relay: Relay | None = None,
    ledger: str | None = None,
    environment: Mapping[str, str] | None = None,
    create: bool = True,
    by: str | None = None,
) -> HookRecorder:
    """Return a recorder for a project. Without a relay it opens the project's ledger, and closes it at the end."""
    settings = find_settings(ledger, directory=project, environment=environment)
    # Keys in files, because the next event of a session may be handled by another process. An empty policy, because
    # the file is read for each event: if it is wrong, the model is told.
    opened = relay or Relay.open(
        settings.ledger, home=settings.home, keys_in_files=True, create=create, policy=Policy(), work_tree=project
    )
    mode = Mode.ENFORCED if enforce else Mode.OBSERVED
    policy = DirectoryPolicy(project, settings.policy)
    return HookRecorder(opened, project, mode=mode, by=by, policy=policy, owned=relay is None)


def _answer_with(prompt: str | None, event: HookEvent) -> dict[str, Any]:
    """Return the answer that starts a sub-agent with another prompt; nothing if the prompt stays."""
    form = event.form
    if prompt is None or form is None or form.task is None:
        return {}
    changed = {**event.input, form.task: prompt}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": changed}}


def _session_in(event: Mapping[str, Any], dialect: Dialect) -> str | None:
    """Return the session of an event, even if the rest is invalid; None if it is missing."""
    with contextlib.suppress(InvalidValueError):
        return id_in(event, dialect.session_key)
    return None


def _looked_for(event: HookEvent, made: MadeCall, asked: MadeCall | None) -> MadeCall:
    """Return the call for which the files were looked at before: the one that was asked about, if it was allowed.

    If that call was to edit another file, only that file was looked at; then the result names the edited file.
    """
    if asked is None or asked.begun is None:
        return made
    return made if asked is not made and asked.path != event.path else asked
