"""Where the work of a framework's agent belongs: a root run of its own, a handoff, or one that goes on."""

import itertools
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from batonpass.adapters.frameworks.agent_work import AgentWork, Makeup
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.audit.short_ids import LAST
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.handoff.history.offers import read_offer
from batonpass.handoff.live.current_run import find_current
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.runtime.bounds import read_terms
from batonpass.ledger.position import mode_of_child
from batonpass.model.base.ids import AgentId, PrincipalId, SessionId, as_agent, require_principal, session_named
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.ledger.run import RunState

_TRIED_AGAIN: Final = frozenset({State.FAILED, State.REFUTED, State.DECLINED})
_GO_ON: Final = _TRIED_AGAIN | {State.OFFERED}
_LEFT: Final = _GO_ON | {State.RUNNING, State.HELD}
_LATEST: Final = 8  # so many roots of a conversation are looked at


class ThreadTurn(Struct, frozen=True, kw_only=True):
    """One turn of a conversation that a framework keeps by itself: the same root run in every process."""

    thread: str  # the name of the conversation: it is the session
    name: str  # of the turn in it

    @property
    def session(self) -> SessionId:
        """Return the session of its conversation."""
        return session_named(self.thread)


def begin_work(
    ledger: FrameworkLedger, agent: str, words: str, *, user: str | None = None, turn: ThreadTurn | None = None
) -> AgentWork:
    """Return the work of an agent that a program calls, which has not begun.

    Inside a current run, it is that run itself if the run is the agent's own, else a handoff from it. Otherwise it is a
    root run of its own, and the words are the intent of its principal: the one that the program named, else the user
    that the framework knows. If that run was begun in the same turn and is not over, it goes on.
    """
    name = as_agent(agent)
    current = find_current()
    if isinstance(current, LiveRun):
        return _within(ledger, current, name, words)
    by = ledger.by if ledger.by is not None or user is None else require_principal("by", PrincipalId(f"user:{user}"))
    if by is None:
        raise InvalidValueError(
            "by", "the principal of the agents is unknown: pass by=… once, or work within a `start`"
        )
    grant = ledger.grants.get(name)
    if grant is None and turn is not None and ledger.enforces:
        grant = ledger.attempt(lambda: _granted_before(ledger, turn, name))

    def start(session: SessionId | None = None, key: str | None = None) -> LiveRun:
        return ledger.relay.start(
            words,
            by=by,
            agent=name,
            items=ledger.items,
            session=session,
            mode=ledger.mode,
            grant=grant,
            key=key,
        )

    enforced = ledger.mode is Mode.ENFORCED or (grant is not None and ledger.mode is None)

    def begin(_: Makeup | None) -> LiveRun:
        return start() if turn is None else _once(ledger, turn, name, start)

    return AgentWork(ledger, name, begin, enforced=enforced)


def _granted_before(ledger: FrameworkLedger, turn: ThreadTurn, agent: AgentId) -> GrantRequest | None:
    """Return the grant of an agent earlier in this conversation: the person's next words go to the same agent.

    Otherwise an agent that is held to the grant of its sender would be free of it one turn later.
    """
    with ledger.relay.store.view() as view:
        for root in view.find_runs(session=turn.session, roots=True, limit=_LATEST):
            known = next(view.find_handoffs(root=root.id, to=agent), None)
            offered = None if known is None else read_offer(view, known).offered
            terms = None if offered is None else read_terms(view, offered)
            if terms is not None:
                said = terms.said
                return GrantRequest(
                    may=said.may.lines,
                    may_delegate=said.may_delegate.lines,
                    limits=said.limits,
                    until=said.until,
                    max_depth=said.max_depth,
                )
    return None


def _once(
    ledger: FrameworkLedger, turn: ThreadTurn, agent: AgentId, start: Callable[[SessionId, str], LiveRun]
) -> LiveRun:
    """Start the run of an agent in a turn, or go on with it. One that is over, or at work here, is not the one."""
    for number in itertools.count():
        key = "\n".join((turn.thread, turn.name, agent, str(number)))
        with ledger.turns_lock:
            known = ledger.turns.get(key)
            if known is not None and not known._closed:  # noqa: SLF001 - a door of the same run
                continue
            run = start(turn.session, key)
            # Who goes back to an earlier point of a conversation does everything anew.
            if run._holding.replaying:  # noqa: SLF001 - as above
                continue
            ledger.turns[key] = run
            if not run._holding.resumed:  # noqa: SLF001 - as above
                _end_abandoned(ledger, turn, agent)
            return run
    raise AssertionError  # pragma: no cover - numbers do not end


def _end_abandoned(ledger: FrameworkLedger, turn: ThreadTurn, agent: AgentId) -> None:
    """End the runs of earlier turns that were left open: the conversation went on, so nobody goes on with them."""
    here = {run.id for run in ledger.turns.values()}
    with ledger.relay.store.view() as view:
        latest = [*view.find_runs(session=turn.session, roots=True, limit=_LATEST)]
    for known in latest:
        if known.state is RunState.OPEN and known.agent == agent and known.id not in here:
            ledger.relay.resume(known.id).fail(InterruptedError("the conversation went on with other words"))


def find_left(ledger: FrameworkLedger, turn: ThreadTurn, agent: AgentId, words: str) -> LiveHandoff | None:
    """Return the handoff to an agent that the last root of a conversation left undone, if it was for these words.

    The words are the task, or the last thing that a person had said.
    """
    with ledger.relay.store.view() as view:
        root = next(view.find_runs(session=turn.session, roots=True, limit=1), None)
        left = () if root is None else view.find_handoffs(root=root.id, to=agent)
        found = [one.id for one in left if one.state in _LEFT]
    for handoff in map(ledger.relay.handoff, found):
        baton = handoff.baton()
        if words in (baton.task, baton.intent[-1].text if baton.intent else None):
            return handoff
    return None


def resume_senders(ledger: FrameworkLedger, handoff: LiveHandoff) -> list[AgentWork]:
    """Resume the runs above a handoff that were left open, and return their work, the nearest first."""
    with ledger.relay.store.view() as view:
        known = view.get_handoff(handoff.id)
        above = [view.get_run(known.parent)]
        while above[-1].handoff is not None:
            above.append(view.get_run(view.get_handoff(above[-1].handoff).parent))
    left = itertools.takewhile(lambda run: run.state is RunState.OPEN, above)
    return [resume_work(ledger, ledger.relay.resume(run.id)) for run in left]


def take_up(ledger: FrameworkLedger, handoff: LiveHandoff, sender: AgentWork | None = None) -> AgentWork:
    """Return the work on a handoff that was left undone: its next attempt, or the one whose process is gone.

    Its sender gets the result, if it still works.
    """
    with ledger.relay.store.view() as view:
        known = view.get_handoff(handoff.id)
        offered = read_offer(view, known).offered
    enforced = offered is None or mode_of_child(offered) is Mode.ENFORCED

    given = handoff if sender is None or sender.run is None else sender.run.handoff(handoff.id)

    def begin(made_of: Makeup | None) -> LiveRun:
        if sender is None and known.run and known.state is State.RUNNING:
            return ledger.relay.resume(known.run)
        return _next(ledger, given, made_of)

    return AgentWork(ledger, known.to, begin, enforced=enforced, parent=sender, handoff=given)


def _within(ledger: FrameworkLedger, run: LiveRun, agent: AgentId, words: str) -> AgentWork:
    enforced = run._holding.working.mode is Mode.ENFORCED  # noqa: SLF001 - a door of the same run
    here = AgentWork(ledger, run.agent, lambda _: run, enforced=enforced, owned=False)
    here.open()
    return here if run.agent == agent else here.offer(agent, words)


def resume_work(ledger: FrameworkLedger, run: LiveRun) -> AgentWork:
    """Return the work of an agent that goes on with a run: a root that was resumed, or the next attempt."""
    handoff = None if run.parent is None else ledger.relay.handoff(run.baton.handoff)
    work = AgentWork(ledger, run.agent, lambda _: run, enforced=True, handoff=handoff)
    work.resumed = True
    work.open()
    return work


def reopen(ledger: FrameworkLedger, which: str) -> LiveRun:
    """Return the run that goes on: the next attempt at a handoff, or a root run whose process is gone.

    Name either by its id or the end of its id. The name of an agent means its only handoff that can go on, and `last`
    the latest of all. An attempt that is still open is taken over: by asking, the caller says that its process is gone.
    Raises `NotFoundError`, `AmbiguousIdError`, and `InvalidValueError` if nothing of it can go on.
    """
    relay = ledger.relay
    named = None if which == LAST else AgentId(which)
    with relay.store.view() as view:
        waiting = [one.id for one in view.find_handoffs(states=_GO_ON, to=named)]
        if not waiting and named is not None:
            running = view.find_handoffs(states={State.RUNNING}, to=named)
            waiting = [one.id for one in running if one.carrier is Carrier.CALLER]
    if waiting and (which == LAST or len(waiting) == 1):
        return _next_attempt(ledger, relay.handoff(waiting[0]))
    try:
        handoff = relay.handoff(which)
    except NotFoundError:
        return relay.resume(which)
    return _next_attempt(ledger, handoff)


def _next_attempt(ledger: FrameworkLedger, handoff: LiveHandoff) -> LiveRun:
    state = handoff.state()
    if state is State.RUNNING:
        # Only who handed it off can take it over, so that one is resumed; a process that still holds it is fenced.
        return ledger.relay.resume(handoff.info().parent).handoff(handoff.id).accept()
    if state not in _GO_ON:
        raise InvalidValueError("which", f"{handoff.id} is {state}: nothing of it can go on")
    return _next(ledger, handoff)


def _next(ledger: FrameworkLedger, handoff: LiveHandoff, made_of: Makeup | None = None) -> LiveRun:
    if handoff.state() in _TRIED_AGAIN:
        handoff.retry(by=ledger.by)
    return handoff.accept(config=made_of)
