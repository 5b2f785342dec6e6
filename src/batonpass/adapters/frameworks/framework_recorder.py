"""Where the work of a framework's agent belongs: a root run of its own, a handoff, or one that goes on."""

from typing import Final

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.adapters.frameworks.framework_ledger import FrameworkLedger
from batonpass.audit.short_ids import LAST
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.live.run_scope import find_current
from batonpass.model.base.ids import AgentId, PrincipalId, as_agent, require_principal
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import State

_TRIED_AGAIN: Final = frozenset({State.FAILED, State.REFUTED, State.DECLINED})
_GO_ON: Final = _TRIED_AGAIN | {State.OFFERED}


def begin_work(ledger: FrameworkLedger, agent: str, words: str, *, user: str | None = None) -> AgentWork:
    """Return the work of an agent that a program calls, which has not begun.

    Inside a current run, it is that run itself if the run is the agent's own, else a handoff from it. Otherwise it is a
    root run of its own, and the words are the intent of its principal: the one that the program named, else the user
    that the framework knows.
    """
    name = as_agent(agent)
    current = find_current()
    if isinstance(current, LiveRun):
        return _within(ledger, current, name, words)
    by = ledger.by if ledger.by is not None or user is None else require_principal("by", PrincipalId(f"user:{user}"))
    if by is None:
        raise InvalidValueError("by", "nobody says for whom the agents work: say by=… once, or work in a `start`")
    grant = ledger.grants.get(name)

    def start() -> LiveRun:
        return ledger.relay.start(words, by=by, agent=name, items=ledger.items, mode=ledger.mode, grant=grant)

    enforced = ledger.mode is Mode.ENFORCED or (grant is not None and ledger.mode is None)
    return AgentWork(ledger, name, start, enforced=enforced)


def _within(ledger: FrameworkLedger, run: LiveRun, agent: AgentId, words: str) -> AgentWork:
    enforced = run._holding.working.mode is Mode.ENFORCED  # noqa: SLF001 - a door of the same run
    here = AgentWork(ledger, run.agent, lambda: run, enforced=enforced, owned=False)
    here.open()
    return here if run.agent == agent else here.offer(agent, words)


def resume_work(ledger: FrameworkLedger, run: LiveRun) -> AgentWork:
    """Return the work of an agent that goes on with a run: a root that was resumed, or the next attempt."""
    handoff = None if run.parent is None else ledger.relay.handoff(run.baton.handoff)
    work = AgentWork(ledger, run.agent, lambda: run, enforced=True, handoff=handoff)
    work.open()
    return work


def reopen(ledger: FrameworkLedger, which: str) -> LiveRun:
    """Return the run that goes on: the next attempt at a handoff, or a root run whose process is gone.

    Name either by its id or the end of its id. The name of an agent means its only handoff that can go on, and `last`
    the latest of all. Raises `NotFoundError`, `AmbiguousIdError`, and `InvalidValueError` if nothing of it can go on.
    """
    relay = ledger.relay
    named = None if which == LAST else AgentId(which)
    with relay.store.view() as view:
        waiting = [one.id for one in view.find_handoffs(states=_GO_ON, to=named)]
    if waiting and (which == LAST or len(waiting) == 1):
        return _next_attempt(ledger, relay.handoff(waiting[0]))
    try:
        handoff = relay.handoff(which)
    except NotFoundError:
        return relay.resume(which)
    return _next_attempt(ledger, handoff)


def _next_attempt(ledger: FrameworkLedger, handoff: LiveHandoff) -> LiveRun:
    state = handoff.state()
    if state not in _GO_ON:
        raise InvalidValueError("which", f"{handoff.id} is {state}: nothing of it can go on")
    if state in _TRIED_AGAIN:
        handoff.retry(by=ledger.by)
    return handoff.accept()
