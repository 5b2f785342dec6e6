"""The worker: it runs waiting handoffs, one at a time, and ends the attempts of dead workers."""

import os
import platform
import random
import re
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from batonpass.dispatch.heartbeat import Heart
from batonpass.dispatch.side_work import side_work
from batonpass.dispatch.sweeper import Sweeper
from batonpass.errors import (
    ContentErasedError,
    GrantError,
    HandoffError,
    IllegalTransitionError,
    InvalidValueError,
    LeaseLostError,
    NotFoundError,
    OutcomeUnknownError,
    StaleHeadError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.programs.runners import Runner, config_of, configured, run_to_end
from batonpass.handoff.transfer.result import Result, completed_here
from batonpass.model.base.durations import as_duration
from batonpass.model.base.ids import AgentId, HandoffId, RunId, require_agent
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay
from batonpass.store.port import Wake

LEASE_FOR: Final = timedelta(seconds=30)
POLL: Final = timedelta(seconds=1)
TOLD_POLL: Final = timedelta(seconds=15)

_FIRST_PAUSE: Final = 0.01
_NOT_BEGUN: Final = frozenset({State.READY, State.CLAIMED})
# These errors pass: a server starts or fails over, somebody frees the disk. A worker that died of them would only be
# started again, and one that nobody starts again would not come back with its store.
_PASSING: Final = (StoreBusyError, StoreUnavailableError, StoreFullError, StoreReadOnlyError, OutcomeUnknownError)
# No worker can ever accept such an offer. As the oldest, it would block all others, so it is declined.
_UNREADABLE: Final = (ContentErasedError, InvalidValueError, NotFoundError)


class Worked(Struct, frozen=True, kw_only=True):
    """The outcome of one claim."""

    handoff: HandoffId
    agent: AgentId
    state: State | RunState  # of the handoff; or of our attempt, if somebody else ended it
    attempt: int
    took: timedelta
    error: str | None = None  # the code: why it failed or was declined
    reason: str = ""  # the first line of the reason in words


class Worker:
    """Claims waiting handoffs under a lease and runs them, for the agents that are registered with a relay."""

    def __init__(
        self,
        relay: Relay,
        *,
        name: str | None = None,
        agents: Collection[str] | None = None,
        lease_for: timedelta | str = LEASE_FOR,
        finished: Callable[[Worked], None] | None = None,
        troubled: Callable[[StoreError | GrantError], None] | None = None,
    ) -> None:
        lasts = as_duration("lease_for", lease_for)
        if lasts <= timedelta(0):
            raise InvalidValueError("lease_for", "a lease lasts for a while")
        self.name = require_agent("name", name or _own_name())
        self._relay = relay
        self._agents = agents
        self._lease_for = lasts
        self._heart = Heart(relay, lasts)
        self._finished = finished
        self._troubled = troubled

    def __repr__(self) -> str:
        return f"<Worker {self.name} for {', '.join(sorted(self._served())) or 'no agent'}, on {self._relay!r}>"

    def work_one(self) -> bool:
        """Run the oldest waiting handoff. Return whether there was one."""
        agents = self._served()
        if not agents:
            return False
        lease = self._relay.claim(holder=self.name, lease_for=self._lease_for, agents=agents)
        if lease is None:
            return False
        began = time.monotonic()
        worked = self._work(lease, began)
        if worked is not None and self._finished is not None:
            self._finished(worked)
        return True

    def run_until(self, stop: threading.Event, *, poll: timedelta | str = POLL) -> None:
        """Sweep and work until `stop` is set. Work that is under way is finished first.

        A thread of its own sweeps while this one works: a fleet whose workers are all busy with long tasks would not
        notice otherwise that one of them has died.
        A claim can fail although something waits, so it looks again after a pause that grows up to `poll`. A store that
        announces work wakes it earlier; then it looks at least every `TOLD_POLL`.
        """
        longest = as_duration("poll", poll).total_seconds()
        sweeper = Sweeper(self._relay, self.name, every=longest, troubled=self._tell)
        with side_work(sweeper.sweep_until, "sweeper"):
            self._work_until(stop, sweeper, longest)

    def _work_until(self, stop: threading.Event, sweeper: Sweeper, longest: float) -> None:
        pause = _FIRST_PAUSE
        while not stop.is_set():
            told = Wake.UNTOLD
            try:
                sweeper.sweep_if_due()
                if self.work_one():
                    pause = _FIRST_PAUSE
                    continue
                told = self._relay.store.await_work(self._served(), at_most=TOLD_POLL, stop=stop)
            except _PASSING as error:
                self._tell(error)
            if told is Wake.DUE:
                sweeper.hurry()
            if told in {Wake.DUE, Wake.NOTHING}:
                pause = _FIRST_PAUSE
                continue
            # A worker that is woken and finds the work already taken pauses too, instead of looking again and again.
            if told is Wake.UNTOLD or pause > _FIRST_PAUSE:
                # A random pause, or workers that were started together would ask at the same moment for ever.
                stop.wait(random.uniform(pause / 2, pause))  # noqa: S311 - no secret
            pause = min(pause * 2, longest)

    def _tell(self, error: StoreError | GrantError) -> None:
        if self._troubled is not None:
            self._troubled(error)

    def _served(self) -> list[AgentId]:
        return [agent for agent in self._relay.runners if self._agents is None or agent in self._agents]

    def _work(self, lease: Lease, began: float) -> Worked | None:
        """Work on a claimed handoff. Return the outcome; None if somebody else has the handoff now."""
        begun: list[LiveRun] = []

        def begin(run: LiveRun) -> Any:  # noqa: ANN401 - whatever a runner returns
            begun.append(run)
            return self._relay.runners[run.agent](run)

        try:
            handoff = self._relay.handoff(lease)
            with self._heart.hold(lease, ended=self._troubled):
                result = self._run(handoff, configured(begin, self._config_for(handoff)), lease, begun)
            agent = begun[0].agent if begun else handoff.info().to
        except (LeaseLostError, IllegalTransitionError, StaleHeadError):
            self._give_back(lease)  # the handoff was withdrawn, or somebody else has it
            return None
        except BaseException:
            self._give_back(lease)
            raise
        if result.state in _NOT_BEGUN:
            self._give_back(lease)
        state, attempt = self._ended(result, begun)
        took = timedelta(seconds=time.monotonic() - began)
        # If somebody else ended our attempt, the reason of the handoff is not the reason of our attempt.
        why = (result.error, result.reason.partition("\n")[0]) if state == result.state else (None, "")
        return Worked(
            handoff=lease.handoff, agent=agent, state=state, attempt=attempt, took=took, error=why[0], reason=why[1]
        )

    def _config_for(self, handoff: LiveHandoff) -> Mapping[str, Any] | None:
        """Return the makeup of the agent, if its runner says so."""
        said = {agent: config for agent, runner in self._relay.runners.items() if (config := config_of(runner))}
        return said.get(handoff.info().to) if said else None  # most runners say nothing: then nothing is looked up

    def _run(
        self,
        handoff: LiveHandoff,
        runner: Callable[[LiveRun], Any],
        lease: Lease,
        begun: list[LiveRun],
    ) -> Result:
        try:
            return _take_and_run(handoff, runner, lease)
        except _UNREADABLE as error:
            if begun:
                raise
            handoff.decline(f"it cannot be read: {error}", code="unreadable", lease=lease)
            return handoff.result()
        except GrantError as error:
            if begun:
                raise
            handoff.decline(f"its grant does not hold: {error}", code=error.code, lease=lease)
            return handoff.result()

    def _ended(self, result: Result, begun: list[LiveRun]) -> tuple[State | RunState, int]:
        ours = begun[0] if begun else None
        if ours is None or (ours.id == result.run and result.state not in _NOT_BEGUN):
            return result.state, result.attempt
        return self._state_of(ours.id), ours.attempt

    def _state_of(self, run: RunId) -> RunState:
        with self._relay.store.view() as view:
            return view.get_run(run).state

    def _give_back(self, lease: Lease) -> None:
        # Only what was not begun: without a lease, nobody would ever notice that an attempt has died. If the store does
        # not answer, the lease runs out by itself.
        with suppress(StoreError):
            if self._relay.handoff(lease.handoff).state() in _NOT_BEGUN:
                self._relay.release(lease)


def _take_and_run(handoff: LiveHandoff, runner: Runner, lease: Lease) -> Result:
    """Do the same as `handoff.run`, but do not read a result again that was closed here: a worker needs no report."""
    try:
        child = handoff.accept(lease=lease, config=config_of(runner))
    except HandoffError:
        return handoff.result()
    holding = child._holding  # noqa: SLF001 - what we hold here
    if not holding.replaying:  # a finished handoff has its result: nobody works on it again
        with child.as_current():
            run_to_end(runner, child)
    return completed_here(holding) or handoff.result()


def _own_name() -> str:
    node = re.sub(r"[^A-Za-z0-9.-]", "-", platform.node())[:64]
    return f"worker:{node}:{os.getpid()}:{secrets.token_hex(2)}"
