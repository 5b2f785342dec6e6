"""Runs and handoffs as synchronous programs use them.

These classes only connect: the rules are in `transfer`, `calls` and `approvals`, and the async faces use the same.
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, NoReturn, Self, cast

from batonpass.errors import (
    AmbiguousIdError,
    FencedError,
    HandoffAskedError,
    HandoffError,
    InvalidValueError,
    NotFoundError,
    PolicyRefusedError,
    StreamClosedError,
)
from batonpass.errors.handoff import ReusedResultWarning, TaskInFlightWarning
from batonpass.handoff.calls.call_proof import prove_call
from batonpass.handoff.calls.call_receipts import deny_call
from batonpass.handoff.calls.unexplained import watch_by_default
from batonpass.handoff.grants.effective_grant import effective_grant
from batonpass.handoff.history.offers import Offer
from batonpass.handoff.live.current_run import RunScope, get_current
from batonpass.handoff.live.handoff_acts import HandoffActs
from batonpass.handoff.live.run_calls import RunCalls
from batonpass.handoff.live.run_notes import RunNotes
from batonpass.handoff.programs.runners import Runner, config_of, run_to_end
from batonpass.handoff.runtime.caller_warning import warn_caller
from batonpass.handoff.runtime.deadlines import is_overdue
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.sessions.session_state import save_session
from batonpass.handoff.transfer import accept as accepting
from batonpass.handoff.transfer.close import close_run, end_overdue
from batonpass.handoff.transfer.held_work import HeldWork, find_held_work
from batonpass.handoff.transfer.offer import offer_task
from batonpass.handoff.transfer.offer_request import GivenItem, asked_for
from batonpass.handoff.transfer.pending_offer import refuse_offer
from batonpass.handoff.transfer.result import Result, learn_own
from batonpass.handoff.transfer.retry import settle_own
from batonpass.handoff.transfer.wait import leave, suspend
from batonpass.model.base.checks import as_member
from batonpass.model.base.content_names import CONFIG
from batonpass.model.base.durations import as_duration, moment_after
from batonpass.model.base.ids import AgentId, CallId, HandoffId, RunId, SessionId, require_agent
from batonpass.model.base.kinds import WaitUntil
from batonpass.model.base.lifecycle import DELIVERED, Carrier, State
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.bodies.body import Outcome, Settlement
from batonpass.model.grants.call import Call
from batonpass.model.grants.effective_grant import EffectiveGrant
from batonpass.model.grants.grant_request import GrantRequest, grant_asked
from batonpass.model.ledger.lease import Lease
from batonpass.model.policy.offer_options import Answerer, Handling
from batonpass.records.wait import is_wait_over
from batonpass.store.port import LedgerView
from batonpass.telemetry.trace_place import traceparent_of

_MOST_ROOTS: Final = 64  # of a session, in which a handoff is looked for
_FIRST_LOOK: Final = 0.002
_LAST_LOOK: Final = 0.25


def pauses(timeout: timedelta | str | None) -> Iterator[float]:
    """Yield the seconds to pause before each look, until the time is up. The first look is at once."""
    until = math.inf if timeout is None else time.monotonic() + as_duration("timeout", timeout).total_seconds()
    pause = 0.0
    while True:
        yield pause
        left = until - time.monotonic()
        if left <= 0:
            return
        pause = min(max(_FIRST_LOOK, pause * 2), _LAST_LOOK, left)


class LiveHandoff(HandoffActs):
    """One handoff. Use it as a context to work on its task here."""

    def __init__(
        self,
        desk: Desk,
        handoff: HandoffId,
        opener: "Callable[[Holding], LiveRun]",
        *,
        runners: Mapping[AgentId, Runner],
        parent: Holding | None = None,
        offer: Offer | None = None,
        runner: Runner | None = None,
        answerer: Answerer | None = None,
        reused: bool = False,
        repeated: AgentId | None = None,
    ) -> None:
        self._answerer = answerer
        self._config: Mapping[str, Any] | None = None  # of the agent, if whoever hands off knows it
        self._reused = reused
        self._repeated = repeated  # the agent, if the same run asks again for a result that it has
        self._desk = desk
        self._opener = opener
        self._runners = runners
        self._parent = parent
        self._written_here = offer
        self._runner = runner
        self._child: LiveRun | None = None
        self._taken: Holding | None = None
        self.id = handoff

    def __repr__(self) -> str:
        # A debugger may print it at any time, so only what is known without asking the ledger.
        return f"<Handoff {self.id}{'' if self._written_here is None else f' to {self._written_here.baton.to}'}>"

    def __enter__(self) -> "LiveRun":
        self._child = self.accept()
        if self._taken is not None:
            self._taken.attempts_allowed = None  # whoever works in a block tries again by entering another
        return self._child.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._child is None:
            return
        # If the run was closed inside the context, somebody may have judged it since: then read the record.
        just_ended = self._taken if self._taken is not None and self._taken.ended is None else None
        try:
            self._child.__exit__(kind, error, trace)
        except (FencedError, StreamClosedError):
            # Somebody else ended the attempt. If the program raised an error of its own, that one says more.
            if error is None:
                raise
        if self._parent is None or just_ended is None or not learn_own(self._desk, self._parent, just_ended):
            self._learn()

    def accept(self, *, lease: Lease | None = None, config: Mapping[str, Any] | None = None) -> "LiveRun":
        """Accept it: the offer is validated, and the next attempt begins.

        `config` has the parts of the agent, such as model, prompt and tools. It is recorded, and drift compares only
        work with the same `config`.

        Raises `HandoffAskedError` if there is a question and nobody answers it, `HandoffHeldError`,
        `HandoffDeclinedError` and `HandoffEndedError`.
        """
        self._warn_if_repeated()
        config = self._config if config is None else config
        try:
            holding = accepting.accept(
                self._desk,
                self.id,
                lease=lease,
                parent=self._parent,
                written_here=self._written_here if config is None else None,
                beside=() if config is None else (self._desk.text(CONFIG, json.dumps(config, sort_keys=True)),),
            )
        except HandoffAskedError as asked:
            self.result()  # the error shows the question, so the parent takes its taint
            # Somebody whose answer settled nothing is not asked again: it waits for one who can settle it.
            told = None if self._answerer is None or asked.again else self._answerer(asked.question)
            if told is None:
                raise
            self.answer(told)
            # This ends: each question is put to the answerer once, and a baton has only so many problems.
            return self.accept(lease=lease, config=config)
        self._taken = holding
        return self._opener(holding)

    def run(self, runner: Runner | None = None, *, lease: Lease | None = None) -> Result:
        """Accept it, let a runner work on it, and close it. Return the result, even if the runner fails.

        Raises `InvalidValueError` if nobody here runs its agent.
        """
        chosen = self._choose(runner)
        while True:
            try:
                child = self.accept(lease=lease, config=config_of(chosen))
            except HandoffError:
                return self.result()
            holding = child._holding  # noqa: SLF001 - a finished one has its result: nobody works on it again
            if not holding.replaying:
                with child.as_current():
                    run_to_end(chosen, child)
            if holding.tried_again_after is None or lease is not None:
                return self._learned()
            time.sleep(holding.tried_again_after.total_seconds())

    def wait(self, timeout: timedelta | str | None = None, *, until: WaitUntil | str = WaitUntil.SETTLED) -> Result:
        """Return its result: run it here if its caller has to run it, else wait until it ended or needs somebody.

        With `until="decided"` it also waits while somebody has to approve or answer, and goes on after that. Raises
        `TimeoutError`. The handoff goes on then, and can be waited for again. Raises `HandoffSuspendedError` in a run
        that a worker carries, if a worker has to run this one too: the attempt ends here, and no worker waits. The next
        attempt reaches this point from the record, and gets the result. With a timeout, the worker waits.
        """
        self._warn_if_repeated()
        until = as_member("until", until, WaitUntil)
        # Read before anything runs: a word that is no duration would be refused after the work was done.
        at_most = None if timeout is None else as_duration("timeout", timeout)
        runner = self._find_own()
        if runner is not None and (result := self.run(runner)).is_over(until):
            return result
        if timeout is None and runner is None:
            if (settled := self._find_settled(until)) is not None:
                return settled
            self._suspend(until)
        for pause in pauses(at_most):
            time.sleep(pause)
            if runner is not None and self.state() is State.OFFERED:
                self.run(runner)  # somebody has approved it, or answered
            if (settled := self._find_settled(until)) is not None:
                return settled
        raise TimeoutError(f"{self.id} is {self.state()} after {timeout}")

    def _warn_if_repeated(self) -> None:
        # Only when the result is taken. Asking again in order to look at a handoff or to judge it is legitimate.
        if self._repeated is not None:
            warn_caller(ReusedResultWarning(self._repeated))
            self._repeated = None

    def _choose(self, runner: Runner | None) -> Runner:
        """Return the runner for it: the given one, or else the one that is registered for its agent."""
        chosen = runner or self._runner or self._runners.get(self.info().to)
        if chosen is None:
            raise InvalidValueError("runner", f"nobody here runs {self.info().to}; register it, or pass run=")
        return chosen

    def _find_own(self) -> Runner | None:
        """Return the runner if the waiting caller has to run it; None if it is finished or a worker runs it."""
        known = self.info()
        ours = known.carrier is Carrier.CALLER and known.state not in DELIVERED
        return (self._runner or self._runners.get(known.to)) if ours else None

    def _suspend(self, until: WaitUntil) -> None:
        """Stop the attempt that waits, if workers carry both: those who wait could keep all workers from the rest."""
        waits = self._parent
        if waits is None or waits.lease is None or self.info().carrier is not Carrier.WORKER:
            return
        raise suspend(self._desk, waits, self.id, until)

    def _find_settled(self, until: WaitUntil) -> Result | None:
        """Return its result if waiting longer would change nothing; else None."""
        with self._desk.store.view() as view:
            known = view.get_handoff(self.id)
            over = is_wait_over(view, known, until)
        # Nobody may be sweeping: whoever waits ends it at its deadline, and waits no longer.
        if not over and is_overdue(self._desk, self.id, known.deadline):
            end_overdue(self._desk, self.id)
            over = True
        return self._learned() if over else None


class LiveRun(RunCalls, RunNotes):
    """A run in this process. Use it as a context: leaving the context closes the run."""

    def __init__(self, desk: Desk, holding: Holding, runners: Mapping[AgentId, Runner]) -> None:
        self._desk = desk
        self._holding = holding
        self._runners = runners
        self._closed = False
        self._asked_for: set[HandoffId] = set()  # handed off through this object
        self._scope: RunScope | None = None  # while it is entered; kept longer, the two would name each other for ever
        watch_by_default(desk, holding)

    def __repr__(self) -> str:
        holding = self._holding
        return f"<Run {holding.id} of {holding.agent} for {holding.principal}, {holding.working.mode}>"

    def held_work(self) -> tuple[HeldWork, ...]:
        """Return its calls and handoffs that were held and not made or begun since: decided, or still waiting."""
        return find_held_work(self._desk, self._holding)

    def prove(self, call: Call, *, audience: str) -> str:
        """Return a token to send with a call: its audience can verify the authorisation with only the root key.

        Raises a `GrantError` if the grant does not cover the call, and `NotFoundError` if there is no grant.
        """
        return prove_call(self._desk, self._holding, call, audience=audience)

    def save_session(self) -> SessionId:
        """Mark this point of the session, and return the id for `relay.resume_session`.

        The state of a session is read from receipts, so a root run that died without saving can be resumed too.
        """
        return save_session(self._desk, self._holding)

    def traceparent(self) -> str:
        """Return the `traceparent` header for requests that this run makes."""
        with self._desk.store.view() as view:
            return traceparent_of(view, self.id)

    def grant(self) -> EffectiveGrant:
        """Return the present rights of this run: its permits, the rest of each limit, the end, and who granted it.

        It is counted each time, because others use the same limits. It also says if there is no grant, or if the run is
        observed and nothing is blocked.
        """
        return effective_grant(self._desk, self._holding)

    def deny(self, tool: str, arguments: object, *, rule: str) -> None:
        """Record that the caller itself denied a call before making it, for instance because of malformed arguments."""
        deny_call(self._desk, self._holding, tool, arguments, rule=rule)

    def settle(
        self, call: CallId, settlement: Settlement | str, *, by: str | None = None, reason: str | None = None
    ) -> None:
        """Settle a call that an earlier attempt left in doubt: repeat it or skip it as done. Raises `NotFoundError`."""
        who = by or f"agent:{self.agent}"
        settle_own(
            self._desk, self._holding, call, as_member("settlement", settlement, Settlement), by=who, reason=reason
        )

    def hand_off(
        self,
        to: str,
        task: str,
        *,
        may: Sequence[str] = (),
        grant: GrantRequest | None = None,
        criteria: Sequence[str] = (),
        brief: BriefRequest | None = None,
        items: Iterable[GivenItem] = (),
        deadline: datetime | timedelta | str | None = None,
        carrier: Carrier | str = Carrier.CALLER,
        hold: bool = False,
        run: Runner | None = None,
        handling: Handling | None = None,
    ) -> LiveHandoff:
        """Hand off one task to an agent, with the notes of this run. The handoff is durable when this returns.

        Use the returned handoff as a context to work on the task here, or call `wait()` for the result. The same task
        with the same brief, items and grant is the same handoff.

        `may` lists the permits of the child. `grant` says more: permits to delegate, limits, an end. It must lie within
        the rights that this run may delegate. `criteria` say when the task is done well, and `brief` has the other
        parts of the brief. `items` travel in addition to the notes of this run. `deadline` is a moment, or the time
        until then: a timedelta, or a text such as "10m". With `hold`, the handoff waits for an approval. `run` is the
        runner that works on it in this process; `carrier="worker"` leaves it to a worker. `handling` has the options:
        key, policy, selected items, who answers questions.

        Raises `PolicyRefusedError` if a policy refuses it, a `GrantError` if this run cannot give the grant,
        `KeyReusedError` if its key was used for another task, and `InputsChangedError` if for other inputs.
        """
        now = self._desk.clock.now()
        asked = asked_for(
            to,
            task,
            now=now,
            deadline=moment_after("deadline", deadline, now),
            carrier=carrier,
            hold=hold,
            grant=grant_asked(may, grant),
            brief=brief,
            criteria=criteria,
            items=items,
            handling=handling,
        )
        offered = offer_task(self._desk, self._holding, asked)
        if (known := offered.in_flight) is not None:
            warn_caller(TaskInFlightWarning(known.id, known.to, known.state))
        reused = offered.again and offered.handoff.state in DELIVERED
        # After a crash, a program should get its old result. Twice within one run, it likely wants a second one.
        repeated = offered.handoff.to if reused and offered.handoff.id in self._asked_for else None
        self._asked_for.add(offered.handoff.id)
        return LiveHandoff(
            self._desk,
            offered.handoff.id,
            self._open,
            runners=self._runners,
            parent=self._holding,
            offer=None if offered.again else offered.offer,
            runner=run,
            answerer=None if handling is None else handling.answer,
            reused=reused,
            repeated=repeated,
        )

    def refuse_handoff(self, to: str, task: str, refusal: PolicyRefusedError) -> NoReturn:
        """Record that the caller itself refuses a handoff, for instance to an agent that it does not know; raise why.

        Nothing is offered. It does for handoffs the same as `deny` for calls.
        """
        refuse_offer(self._desk, self._holding, require_agent("to", AgentId(to)), task, refusal)

    def handoff(self, handoff: str) -> LiveHandoff:
        """Return a handoff that this run or an earlier one of its session made, to judge it or have it done again.

        Name it by its id, the end of its id, or its agent. Raises `NotFoundError` and `AmbiguousIdError`.
        """
        holding = self._holding
        # Handoffs of an earlier attempt, or an earlier process, are its own too.
        made = holding.handed_off.union(child.id for child in holding.resumption.children)
        if handoff in made:  # a whole id is that of one handoff: the others need not be read
            return self._made(HandoffId(handoff))
        with self._desk.store.view() as view:
            own = [view.get_handoff(one) for one in sorted(made)]
            own += [one for root in self._earlier_roots(view) for one in view.find_handoffs(parent=root)]
        found = [one for one in own if one.to == handoff or (handoff and one.id.endswith(handoff))]
        if not found:
            raise NotFoundError("handoff of this run", handoff)
        if len(found) > 1:
            raise AmbiguousIdError("handoff", handoff, tuple(one.id for one in found))
        if found[0].id in made:
            return self._made(found[0].id)
        return LiveHandoff(self._desk, found[0].id, self._open, runners=self._runners, parent=holding)

    def _made(self, handoff: HandoffId) -> LiveHandoff:
        self._holding.handed_off.add(handoff)
        return LiveHandoff(self._desk, handoff, self._open, runners=self._runners, parent=self._holding)

    def _earlier_roots(self, view: LedgerView) -> Iterable[RunId]:
        """Return the roots that this one goes on from: all of its session, or else those whose state it inherited."""
        session = self._holding.working.session
        if session is None or self.parent is not None:
            return self._holding.session.roots
        latest = view.find_runs(session=session, roots=True, limit=_MOST_ROOTS)
        return [root.id for root in latest if root.id != self.id]

    def _open(self, holding: Holding) -> "LiveRun":
        return LiveRun(self._desk, holding, self._runners)

    def close(self, outcome: Outcome = Outcome.COMPLETED) -> None:
        """End the run, and withdraw its handoffs that are not over."""
        self._end(outcome, None)

    def fail(self, error: BaseException) -> None:
        """End the run as failed, with the error. If the error says that somebody has to decide, the run waits."""
        self._end(Outcome.FAILED, error)

    def _end(self, outcome: Outcome, error: BaseException | None) -> None:
        if not self._closed:
            if error is None or not leave(self._desk, self._holding, error):
                close_run(self._desk, self._holding, outcome, error=error)
            self._closed = True

    def as_current(self) -> RunScope:
        """Return a context in which `current_run` returns this run. Leaving it does not close the run."""
        return RunScope(self)

    def __enter__(self) -> Self:
        self._scope = RunScope(self)
        self._scope.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.close()
            else:
                self.fail(error)
        finally:
            if self._scope is not None:
                self._scope.__exit__()
                self._scope = None


def current_run() -> LiveRun:
    """Return the current run: the one that was entered as a context, here or where this thread or task was started.

    Raises `InvalidValueError` if there is none, and `StreamClosedError` if it has ended.
    """
    return cast("LiveRun", get_current())
