"""A handoff as synchronous programs see it: to take it, to wait for it, to judge it, to try it again."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeAlias

from batonpass.errors import FencedError, HandoffAskedError, HandoffError, InvalidValueError, StreamClosedError
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.noting import record_items
from batonpass.handoff.running import Runner, run_to_end
from batonpass.handoff.transfer import accept as accepting
from batonpass.handoff.transfer import retry as retries
from batonpass.handoff.transfer import verdict as verdict_of
from batonpass.handoff.transfer.decision import decide_handoff
from batonpass.handoff.transfer.decision_sheet import Material, show_handoff
from batonpass.handoff.transfer.read_offer import Offer
from batonpass.handoff.transfer.result import DELIVERED, Result, learn, learn_own, read_result, take_words
from batonpass.handoff.transfer.taint_received import endorse_in_handoff
from batonpass.model.baton import Baton
from batonpass.model.bodies import Method, Settlement
from batonpass.model.checks import as_member
from batonpass.model.ids import AgentId, CallId, HandoffId
from batonpass.model.items import WorkItem
from batonpass.model.label import Source, named_sources
from batonpass.model.lease import Lease
from batonpass.model.lifecycle import Carrier, State
from batonpass.model.run import Handoff
from batonpass.signing.approver import Approver

if TYPE_CHECKING:
    from batonpass.handoff.run import LiveRun

Answerer: TypeAlias = Callable[[str], str | None]  # a question, and what to say to it; None leaves it to others

__all__ = ["LiveHandoff", "Result", "Runner", "pauses"]

_FIRST_LOOK: Final = 0.002
_LAST_LOOK: Final = 0.25


def pauses(timeout: timedelta | None) -> Iterator[float]:
    """Yield how many seconds to pause before each look; no more once the time is up. The first look is at once."""
    until = math.inf if timeout is None else time.monotonic() + timeout.total_seconds()
    pause = 0.0
    while True:
        yield pause
        left = until - time.monotonic()
        if left <= 0:
            return
        pause = min(max(_FIRST_LOOK, pause * 2), _LAST_LOOK, left)


class LiveHandoff:
    """One task that was handed to an agent. Use it as a context to work on it here."""

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
    ) -> None:
        self._answerer = answerer
        self._desk = desk
        self._opener = opener
        self._runners = runners
        self._parent = parent
        self._written_here = offer
        self._runner = runner
        self._child: LiveRun | None = None
        self._taken: Holding | None = None
        self.id = handoff

    @property
    def state(self) -> State:
        """Return where it is now."""
        return self.look().state

    def look(self) -> Handoff:
        """Return the handoff as it stands now."""
        with self._desk.store.view() as view:
            return view.get_handoff(self.id)

    def baton(self) -> Baton:
        """Return what travels with it, in its latest revision."""
        return accepting.examine(self._desk, self.id).offer.baton

    def result(self) -> Result:
        """Return what has come of it so far."""
        with self._desk.store.view() as view:
            result = read_result(view, view.get_handoff(self.id))
        if result.delivered:
            # Whoever has seen it may build on it, however they came to see it.
            self._learn()
        if self._parent is not None and result.sources:
            # Also a question, or why it was declined, failed or refuted: a model goes on with whatever it reads.
            take_words(self._desk, self._parent, result)
        return result

    def __enter__(self) -> "LiveRun":
        self._child = self.accept()
        return self._child

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._child is None:
            return
        # One that was closed inside may have been judged since; then the record is asked.
        just_ended = self._taken if self._taken is not None and self._taken.ended is None else None
        try:
            self._child.__exit__(kind, error, trace)
        except (FencedError, StreamClosedError):
            # Somebody ended the attempt meanwhile. What went wrong inside says more than that.
            if error is None:
                raise
        if self._parent is None or just_ended is None or not learn_own(self._desk, self._parent, just_ended):
            self._learn()

    def accept(self, *, lease: Lease | None = None) -> "LiveRun":
        """Take it: validated first, then countersigned; its next attempt begins.

        Raises `HandoffAskedError` if validation has to ask, `HandoffHeldError` and `HandoffEndedError`.
        """
        try:
            holding = accepting.accept(
                self._desk,
                self.id,
                lease=lease,
                parent=self._parent,
                written_here=self._written_here,
            )
        except HandoffAskedError as asked:
            self.result()  # the question is in the error: whoever reads that has read it
            told = None if self._answerer is None else self._answerer(asked.question)
            if told is None:
                raise
            self.answer(told)
            # Every question is asked once, and the policy says how many there may be: this comes to an end.
            return self.accept(lease=lease)
        self._taken = holding
        return self._opener(holding)

    def run(self, runner: Runner | None = None, *, lease: Lease | None = None) -> Result:
        """Take it, let a runner work on it, and close it; whatever the runner does, return what came of it."""
        chosen = self._choose(runner)
        try:
            child = self.accept(lease=lease)
        except HandoffError:
            return self.result()
        if not child._holding.replaying:  # noqa: SLF001 - one that is finished has its result: nobody works for it again
            run_to_end(chosen, child)
        return self._learned()

    def wait(self, timeout: timedelta | None = None) -> Result:
        """Return what came of it: run it here if it is ours to run, else wait until it ended or needs somebody.

        Raises `TimeoutError`; nothing is lost by that.
        """
        runner = self._find_own()
        if runner is not None and (result := self.run(runner)).settled:
            return result
        for pause in pauses(timeout):
            time.sleep(pause)
            if (settled := self._find_settled()) is not None:
                return settled
        raise TimeoutError(f"{self.id} is {self.state} after {timeout}")

    def ask(self, question: str, *, by: str | None = None, lease: Lease | None = None) -> None:
        """Ask whoever handed off one closed question before acting."""
        accepting.ask(self._desk, self.id, question, by=by, lease=lease)

    def answer(self, text: str, *, by: str | None = None) -> None:
        """Answer what its receiver asked: the next revision of the baton."""
        taint = () if self._parent is None else named_sources(self._parent.id, self._parent.taint.entered)
        accepting.answer(self._desk, self.id, text, by=by or self._caller(), taint=taint)

    def decline(
        self, reason: str, *, code: str = "declined", by: str | None = None, lease: Lease | None = None
    ) -> None:
        """Do not take it, and say why."""
        accepting.decline(self._desk, self.id, reason, code=code, by=by, lease=lease)

    def material(self) -> Material:
        """Return what somebody has to be shown before they decide. Raises `HandoffEndedError` if it is not held."""
        return show_handoff(self._desk, self.id)

    def approve(
        self,
        *,
        by: str | Approver,
        reason: str | None = None,
        shown: Material | None = None,
        looked_ms: int | None = None,
    ) -> None:
        """Let it go on if it is held. An `Approver` signs that; of anybody else it is taken as said, and unproven."""
        self._decide(approved=True, by=by, reason=reason, shown=shown, looked_ms=looked_ms)

    def deny(
        self,
        *,
        by: str | Approver,
        reason: str,
        shown: Material | None = None,
        looked_ms: int | None = None,
    ) -> None:
        """Do not let it go on if it is held."""
        self._decide(approved=False, by=by, reason=reason, shown=shown, looked_ms=looked_ms)

    def endorse(self, source: Source, *, by: str, reason: str) -> None:
        """Let content from outside be treated as somebody's own by every attempt at it from now on.

        Raises `NotPersonError`, and `NotFoundError` if that content reached no attempt at it.
        """
        endorse_in_handoff(self._desk, self.id, source, by=by, reason=reason)

    def verify(
        self,
        *,
        by: str | None = None,
        command: Sequence[str] | None = None,
        check: Callable[[], object] | None = None,
        verdict: str | None = None,
        cwd: Path | None = None,
    ) -> bool:
        """Judge what was delivered by exactly one kind of evidence; return whether it holds.

        A command decides by its exit code, a check by what it returns, a verdict by whoever gives it. Without any,
        the command that the offer named is run.
        """
        evidence = self._evidence(command, check, verdict, cwd)
        who = by or self._caller()
        judged = verdict_of.judge(self._desk, self.id, evidence, by=who)
        if judged.state is State.VERIFIED and evidence.passed and self._parent is not None:
            done = WorkItem(
                self.baton().task,
                verified_by=who,
                how=" ".join(evidence.command) or evidence.words,
                evidence=self.id,
            )
            record_items(self._desk, self._parent, (done,))
        return evidence.passed

    def refute(self, reason: str, *, by: str | None = None) -> None:
        """Say that what was delivered does not hold."""
        evidence = verdict_of.Evidence(passed=False, method=Method.VERDICT, words=reason)
        verdict_of.judge(self._desk, self.id, evidence, by=by or self._caller())

    def accept_unverified(self, reason: str, *, by: str | None = None) -> None:
        """Go on with what was delivered although nobody verified it, for a reason that is recorded."""
        verdict_of.waive(self._desk, self.id, by=by or self._caller(), reason=reason)

    def retry(
        self,
        *,
        by: str | None = None,
        reason: str | None = None,
        repeat: Iterable[CallId] = (),
        skip: Iterable[CallId] = (),
    ) -> retries.Again:
        """Let it be tried once more; `repeat` and `skip` settle calls in doubt."""
        return retries.retry(
            self._desk,
            self.id,
            by=by or self._caller(),
            reason=reason,
            repeat=repeat,
            skip=skip,
        )

    def replace(
        self,
        to: str,
        *,
        by: str | None = None,
        reason: str | None = None,
        repeat: Iterable[CallId] = (),
        skip: Iterable[CallId] = (),
    ) -> retries.Again:
        """Let another agent try, with the same baton."""
        return retries.replace_agent(
            self._desk,
            self.id,
            to,
            by=by or self._caller(),
            reason=reason,
            repeat=repeat,
            skip=skip,
        )

    def settle(
        self, call: CallId, settlement: Settlement | str, *, by: str | None = None, reason: str | None = None
    ) -> None:
        """Decide what becomes of a call in doubt: repeat it, or take it as done."""
        retries.settle(
            self._desk,
            self.id,
            call,
            as_member("settlement", settlement, Settlement),
            by=by or self._caller(),
            reason=reason,
        )

    def cancel(self, *, by: str | None = None, reason: str) -> None:
        """Withdraw it, and all that was handed off below it."""
        retries.cancel(self._desk, self.id, by=by or self._caller(), reason=reason)

    def _decide(
        self, *, approved: bool, by: str | Approver, reason: str | None, shown: Material | None, looked_ms: int | None
    ) -> None:
        decide_handoff(self._desk, self.id, approved=approved, by=by, reason=reason, shown=shown, looked_ms=looked_ms)

    def _caller(self) -> str:
        if self._parent is None:
            raise InvalidValueError("by", "say who decides this, such as user:ana")
        return f"agent:{self._parent.agent}"

    def _choose(self, runner: Runner | None) -> Runner:
        """Return who is to work on it: who was given, else who is known here for its agent."""
        chosen = runner or self._runner or self._runners.get(self.look().to)
        if chosen is None:
            raise InvalidValueError("runner", f"nobody here runs {self.look().to}; register it, or pass run=")
        return chosen

    def _find_own(self) -> Runner | None:
        """Return who is to work on it here while somebody waits for it; None if that is not ours to do."""
        known = self.look()
        ours = known.carrier is Carrier.CALLER and known.state not in DELIVERED
        return (self._runner or self._runners.get(known.to)) if ours else None

    def _find_settled(self) -> Result | None:
        """Return what came of it, once waiting longer would change nothing."""
        return self._learned() if self.result().settled else None

    def _learned(self) -> Result:
        self._learn()
        return self.result()

    def _learn(self) -> None:
        """Let the parent know what came back: it travels on with what is handed off next."""
        if self._parent is not None:
            learn(self._desk, self._parent, self.id)

    def _evidence(
        self,
        command: Sequence[str] | None,
        check: Callable[[], object] | None,
        verdict: str | None,
        cwd: Path | None,
    ) -> verdict_of.Evidence:
        given = [part for part in (command, check, verdict) if part is not None]
        if len(given) > 1:
            raise InvalidValueError("evidence", "is one of command, check and verdict")
        if check is not None:
            return verdict_of.run_check(check)
        if verdict is not None:
            return verdict_of.Evidence(passed=True, method=Method.VERDICT, words=verdict)
        chosen = command or self.baton().brief.verify_by
        if not chosen:
            raise InvalidValueError(
                "evidence", "is needed: a command, a check or a verdict; the offer names no command"
            )
        return verdict_of.run_command(chosen, cwd=cwd)
