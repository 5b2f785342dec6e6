"""Runs, handoffs and held calls as synchronous programs see them."""

import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from msgspec import structs

from batonpass.errors import (
    FencedError,
    HandoffAskedError,
    HandoffError,
    InvalidValueError,
    StreamClosedError,
)
from batonpass.errors.handoff import ReusedResultWarning
from batonpass.handoff.approvals.decision import decide_handoff
from batonpass.handoff.approvals.decision_sheet import Material, show_handoff
from batonpass.handoff.calls.call_proof import prove_call
from batonpass.handoff.calls.call_receipts import deny_call
from batonpass.handoff.calls.unexplained import watch_by_default
from batonpass.handoff.grants.effective_grant import effective_grant
from batonpass.handoff.history.offers import Offer
from batonpass.handoff.live.run_calls import RunCalls
from batonpass.handoff.live.run_scope import RunScope, get_current
from batonpass.handoff.programs.runners import Runner, run_to_end
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.sessions.agent_memory import remember
from batonpass.handoff.sessions.session_state import save_session
from batonpass.handoff.taint.intake import endorse, take_in
from batonpass.handoff.transfer import accept as accepting
from batonpass.handoff.transfer import retry as retries
from batonpass.handoff.transfer import verdict as verdict_of
from batonpass.handoff.transfer.close import close_run
from batonpass.handoff.transfer.endorsement import endorse_in_handoff
from batonpass.handoff.transfer.offer import offer_task
from batonpass.handoff.transfer.offer_request import GivenItem, asked_for
from batonpass.handoff.transfer.result import DELIVERED, Result, learn, learn_own, read_result, take_words
from batonpass.handoff.transfer.retry import settle_own
from batonpass.handoff.transfer.run_items import (
    attach,
    checkpoint,
    note_message,
    read_artifact,
    read_messages,
    record_items,
    relax,
    state_intent,
)
from batonpass.model.base.checks import as_member, require_codes
from batonpass.model.base.durations import moment_after
from batonpass.model.base.ids import AgentId, CallId, ContentId, HandoffId, SessionId
from batonpass.model.base.label import Label, Source, named_sources
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.baton.items import (
    Assumption,
    Claim,
    Decision,
    Item,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    Report,
    WorkItem,
)
from batonpass.model.bodies.body import Method, Outcome, Settlement
from batonpass.model.grants.call import Call
from batonpass.model.grants.effective_grant import EffectiveGrant
from batonpass.model.grants.grant_request import GrantRequest, grant_asked
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.offer_options import Answerer, ChangedInputs, Handling
from batonpass.signing.approver_key import Approver

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
        reused: bool = False,
        repeated: AgentId | None = None,
    ) -> None:
        self._answerer = answerer
        self._reused = reused
        self._repeated = repeated  # the agent, if the same run asks for a result that it has
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
        return f"<Handoff {self.id}>"

    def state(self) -> State:
        """Return where it is now."""
        return self.info().state

    def info(self) -> Handoff:
        """Return the handoff as it stands now: to whom, its state, the attempt, the deadline."""
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
        return structs.replace(result, reused=True) if self._reused else result

    def __enter__(self) -> "LiveRun":
        self._child = self.accept()
        return self._child.__enter__()

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
        self._warn_if_repeated()
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
            with child.as_current():
                run_to_end(chosen, child)
        return self._learned()

    def wait(self, timeout: timedelta | None = None) -> Result:
        """Return what came of it: run it here if it is ours to run, else wait until it ended or needs somebody.

        Raises `TimeoutError`; nothing is lost by that.
        """
        self._warn_if_repeated()
        runner = self._find_own()
        if runner is not None and (result := self.run(runner)).settled:
            return result
        for pause in pauses(timeout):
            time.sleep(pause)
            if (settled := self._find_settled()) is not None:
                return settled
        raise TimeoutError(f"{self.id} is {self.state()} after {timeout}")

    def _warn_if_repeated(self) -> None:
        # Not where it is only looked at or judged: that is what the same words are good for.
        if self._repeated is not None:
            warnings.warn(ReusedResultWarning(self._repeated), stacklevel=3)
            self._repeated = None

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
        if judged.state is State.VERIFIED and self._parent is not None and who != f"agent:{judged.to}":
            self._parent.watched.discard(self.id)  # nothing ever makes it unverified again
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
        evidence = verdict_of.VerdictEvidence(passed=False, method=Method.VERDICT, words=reason)
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
        inputs: ChangedInputs | str | None = None,
    ) -> retries.NextAttempt:
        """Let it be tried once more; `repeat` and `skip` settle calls in doubt.

        Raises `InputsChangedError` if results that it was offered with were refuted since, unless `inputs` says `same`
        or `fresh`: a fresh attempt gets what was delivered in their place, and keeps no call that read them.
        """
        return retries.retry(
            self._desk,
            self.id,
            by=by or self._caller(),
            reason=reason,
            repeat=repeat,
            skip=skip,
            inputs=None if inputs is None else as_member("inputs", inputs, ChangedInputs),
        )

    def replace(
        self,
        to: str,
        *,
        by: str | None = None,
        reason: str | None = None,
        repeat: Iterable[CallId] = (),
        skip: Iterable[CallId] = (),
        inputs: ChangedInputs | str | None = None,
    ) -> retries.NextAttempt:
        """Let another agent try, with the same baton; `inputs` is as for a retry."""
        return retries.replace_agent(
            self._desk,
            self.id,
            to,
            by=by or self._caller(),
            reason=reason,
            repeat=repeat,
            skip=skip,
            inputs=None if inputs is None else as_member("inputs", inputs, ChangedInputs),
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
        chosen = runner or self._runner or self._runners.get(self.info().to)
        if chosen is None:
            raise InvalidValueError("runner", f"nobody here runs {self.info().to}; register it, or pass run=")
        return chosen

    def _find_own(self) -> Runner | None:
        """Return who is to work on it here while somebody waits for it; None if that is not ours to do."""
        known = self.info()
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
    ) -> verdict_of.VerdictEvidence:
        given = [part for part in (command, check, verdict) if part is not None]
        if len(given) > 1:
            raise InvalidValueError("evidence", "is one of command, check and verdict")
        if check is not None:
            return verdict_of.run_check(check)
        if verdict is not None:
            return verdict_of.VerdictEvidence(passed=True, method=Method.VERDICT, words=verdict)
        chosen = command or self.baton().brief.verify_by
        if not chosen:
            raise InvalidValueError(
                "evidence", "is needed: a command, a check or a verdict; the offer names no command"
            )
        return verdict_of.run_command(chosen, cwd=cwd)


class LiveRun(RunCalls):
    """One agent working once on one task, in this process. Use it as a context: leaving it closes the run."""

    def __init__(self, desk: Desk, holding: Holding, runners: Mapping[AgentId, Runner]) -> None:
        self._desk = desk
        self._holding = holding
        self._runners = runners
        self._closed = False
        self._asked_for: set[HandoffId] = set()  # handed off through this very object
        self._scope = RunScope(self)  # for as long as it is entered
        watch_by_default(desk, holding)

    def __repr__(self) -> str:
        holding = self._holding
        return f"<Run {holding.id} of {holding.agent} for {holding.principal}, {holding.working.mode}>"

    def record(self, *items: ItemValue, by: str | None = None) -> tuple[Item, ...]:
        """Write items down; they travel with everything that is handed off from now on."""
        return record_items(self._desk, self._holding, items, by=by)

    def add_intent(self, text: str, *, by: str | None = None) -> tuple[HandoffId, ...]:
        """Write down what the human says now; return the running handoffs that do not know of it."""
        return state_intent(self._desk, self._holding, text, by=by)[1]

    def relax(self, item: Item | ContentId, *, by: str, reason: str) -> None:
        """Release this run, and whom it hands off to, from a constraint or an exclusion.

        Raises `NotEntitledError` unless its author or the root's principal says so.
        """
        relax(self._desk, self._holding, item.id if isinstance(item, Item) else item, by=by, reason=reason)

    def attach(
        self,
        name: str,
        body: bytes | str,
        *,
        media_type: str | None = None,
        source: str | None = None,
        untrusted: bool = False,
    ) -> Item:
        """Keep a file or a result; it travels by digest. What came from outside is `untrusted`: data, not words."""
        return attach(
            self._desk,
            self._holding,
            name,
            body,
            media_type=media_type,
            source=source,
            untrusted=untrusted,
        )

    def read(self, name: str) -> bytes:
        """Return the bytes of an artifact by its name, if they are what was attached."""
        return read_artifact(self._desk, self._holding, name)

    def checkpoint(self, messages: object) -> None:
        """Keep what the next attempt needs to go on from here: a model's messages, or any JSON."""
        checkpoint(self._desk, self._holding, messages)

    def note_message(self, message: object, *, number: int | None = None) -> None:
        """Remember the message that this run's model wrote last: what is handed off from now on points to it.

        It is any JSON, and `number` its place in the conversation, from 1. It is written down with an offer, and only
        then.
        """
        note_message(self._holding, message, number)

    def messages(self) -> object | None:
        """Return what the last checkpoint of an earlier attempt kept; None if there is none."""
        return read_messages(self._desk, self._holding)

    def prove(self, call: Call, *, audience: str) -> str:
        """Return what to send along with a call, so that its audience can tell, knowing only the root key, that it may.

        Raises a `GrantError` if the grant does not cover it, and `NotFoundError` if there is none.
        """
        return prove_call(self._desk, self._holding, call, audience=audience)

    def save_session(self) -> SessionId:
        """Mark this point of the session, to come back to with `relay.resume_session`; return the session's id.

        What comes along is derived from receipts: a root that died without saving can be resumed all the same.
        """
        return save_session(self._desk, self._holding)

    def grant(self) -> EffectiveGrant:
        """Return what this run may do now: its permits, what is left of each limit, until when, and who granted it.

        It is counted each time: others who share a limit use it up too. Without a grant it says so, and of a run that
        is only observed, that nothing is blocked.
        """
        return effective_grant(self._desk, self._holding)

    @property
    def label(self) -> Label:
        """Return how far all that it knows is trusted, and who may read it."""
        return self._holding.taint.label

    @property
    def taint(self) -> tuple[Source, ...]:
        """Return what came to it from outside, and nobody endorsed."""
        return tuple(self._holding.taint.entered)

    def note_untrusted(self, *sources: Source) -> None:
        """Record that content from outside reached this run by another way than a call, a baton or a result."""
        take_in(self._desk, self._holding, sources)

    def endorse(self, what: Item | Source, *, by: str, reason: str) -> None:
        """Let content from outside be treated as a person's own, here and in whatever comes of it from now on.

        Raises `NotPersonError`, and `NotFoundError` if it does not taint this run.
        """
        endorse(self._desk, self._holding, what.id if isinstance(what, Item) else what, by=by, reason=reason)

    def deny(self, tool: str, arguments: object, *, rule: str) -> None:
        """Write down that a call was refused before it was made: malformed arguments, a rule of the caller's."""
        deny_call(self._desk, self._holding, tool, arguments, rule=rule)

    def remember(self, text: str) -> Item:
        """Keep something for later runs of this agent, labelled by where it came from. It travels with no handoff."""
        return remember(self._desk, self._holding, text)

    def settle(
        self, call: CallId, settlement: Settlement | str, *, by: str | None = None, reason: str | None = None
    ) -> None:
        """Decide what becomes of a call that an earlier attempt left in doubt: repeat it, or take it as done."""
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
        """Hand one task to an agent, with everything this run knows; durable when this returns.

        Use what it returns as a context to work on the task right here, or `wait()` for whoever does. The same task
        with the same brief, items and grant is the same handoff.

        `may` is what the child may use, and `grant` says more: what it may delegate, limits, an end. It is given out of
        what this run may delegate, and the child is held to it. `criteria` say when it is done well, and `brief` says
        whatever else there is to say about the task. `items` travel besides what this run has recorded. `deadline` is
        a moment, or how long it is until then: a timedelta, or a text such as "10m". With `hold` somebody has to let it
        go on. `run` works on it in this process, and `carrier="worker"` leaves it to whichever worker takes it.
        `handling` says how it is treated: under which key and policy, what travels, who answers.

        Raises `PolicyRefusedError` and, if this run cannot give what is asked for, a `GrantError`.
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
        reused = offered.again and offered.handoff.state in DELIVERED
        # After a crash a program asks for what it has. Twice within one run it most likely wants a second result.
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

    def _open(self, holding: Holding) -> "LiveRun":
        return LiveRun(self._desk, holding, self._runners)

    def report(
        self,
        result: str | Report = "",
        *,
        value: str | None = None,
        completed: Iterable[WorkItem | str] = (),
        open_questions: Iterable[OpenQuestion | str] = (),
        rejected_paths: Iterable[RejectedPath | str] = (),
        decisions: Iterable[Decision | str] = (),
        assumptions: Iterable[Assumption | str] = (),
        claims: Iterable[Claim | str] = (),
        confidence: int | None = None,
        none: Sequence[str] = (),
        flags: Sequence[str] = (),
    ) -> None:
        """Say what comes of the task: results, what stays open, what was rejected and decided, how sure it is.

        Or pass a `Report` that was made elsewhere. `flags` say in codes what is wrong with it. Raises
        `InvalidValueError`, also for a `value` that is no JSON, and for parts beside a `Report`.
        """
        parts: dict[str, Any] = {
            "value": value,
            "completed": completed,
            "open_questions": open_questions,
            "rejected_paths": rejected_paths,
            "decisions": decisions,
            "assumptions": assumptions,
            "claims": claims,
            "confidence": confidence,
            "none": none,
        }
        if not isinstance(result, Report):
            made = Report(result=result, **parts)
        elif given := [name for name, part in parts.items() if part not in (None, ())]:
            raise InvalidValueError("report", f"has its parts already; {', '.join(given)} cannot be said beside it")
        else:
            made = result
        if made.value is not None:
            try:
                json.loads(made.value)
            except ValueError as error:
                raise InvalidValueError("value", f"is not JSON: {error}") from None
        found = tuple(flags)
        require_codes("flags", found)
        self._holding.report, self._holding.flags = made, found

    @property
    def reported(self) -> Report | None:
        """Return what was reported so far; None if nothing was."""
        return self._holding.report

    def close(self, outcome: Outcome = Outcome.COMPLETED) -> None:
        """End the run; what it handed off and is not over is withdrawn."""
        self._end(outcome, None)

    def fail(self, error: BaseException) -> None:
        """End the run without delivering."""
        self._end(Outcome.FAILED, error)

    def _end(self, outcome: Outcome, error: BaseException | None) -> None:
        if not self._closed:
            close_run(self._desk, self._holding, outcome, error=error)
            self._closed = True

    def as_current(self) -> RunScope:
        """Return a context in which `current_run` returns this run; leaving it closes nothing."""
        return RunScope(self)

    def __enter__(self) -> Self:
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
            self._scope.__exit__()


def current_run() -> LiveRun:
    """Return the run that this code works for, as it was entered as a context.

    Raises `InvalidValueError` if there is none.
    """
    return cast("LiveRun", get_current())
