"""The acts of a parent and of people on a handoff: read, answer, decide, judge, retry and cancel it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike

from msgspec import structs

from batonpass.errors import (
    InvalidValueError,
)
from batonpass.guard.baton.problem import Problem
from batonpass.guard.baton.receiver_question import find_unsettled, is_settled
from batonpass.handoff.approvals.decision import decide_handoff
from batonpass.handoff.approvals.decision_sheet import Material, show_handoff
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_items import (
    record_items,
)
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.transfer import accept as accepting
from batonpass.handoff.transfer import retry as retries
from batonpass.handoff.transfer import verdict as verdict_of
from batonpass.handoff.transfer.question import Enclosed, answer, ask, chosen_problem, waive
from batonpass.handoff.transfer.result import Result, learn, read_result, take_words
from batonpass.handoff.transfer.wait import resume_above
from batonpass.model.base.checks import as_member
from batonpass.model.base.ids import CallId, HandoffId
from batonpass.model.base.label import Source, named_sources
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import (
    Item,
    ItemValue,
    WorkItem,
)
from batonpass.model.bodies.body import Method, Settlement
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.offer_options import ChangedInputs
from batonpass.signing.approver_key import Approver


class HandoffActs:
    """A handoff in the ledger. Everything here can be done by somebody who does not work on its task."""

    id: HandoffId
    _desk: Desk
    _parent: Holding | None
    _reused: bool

    def state(self) -> State:
        """Return its state now."""
        return self.info().state

    def info(self) -> Handoff:
        """Return the handoff as it is now: its agent, state, attempt number and deadline."""
        with self._desk.store.view() as view:
            return view.get_handoff(self.id)

    def baton(self) -> Baton:
        """Return its baton in the latest revision."""
        return accepting.examine(self._desk, self.id).offer.baton

    def result(self) -> Result:
        """Return its result so far. The parent takes it in, with its taint."""
        with self._desk.store.view() as view:
            result = read_result(view, view.get_handoff(self.id))
        if result.delivered:
            # Whoever has seen a result may build on it, whichever way they got it.
            self._learn()
        if self._parent is not None and result.sources:
            # A question or a reason taints too: a model goes on with whatever it reads.
            take_words(self._desk, self._parent, result)
        return structs.replace(result, reused=True) if self._reused else result

    def ask(self, question: str, *, by: str | None = None, lease: Lease | None = None) -> None:
        """Ask the sender one closed question before acting."""
        ask(self._desk, self.id, question, by=by, lease=lease)

    def answer(
        self,
        text: str,
        *,
        by: str | None = None,
        items: Iterable[Item | ItemValue] = (),
        files: Mapping[str, bytes | str] | None = None,
    ) -> None:
        """Answer the question of the receiver; the answer becomes part of the baton, with the items and files given.

        A file replaces the one of the same name. Raises `HandoffEndedError` if nothing was asked.
        """
        enclosed = Enclosed(items=tuple(items), files=files or {})
        answer(self._desk, self.id, text, by=by or self._caller(), taint=self._taint(), enclosed=enclosed)
        resume_above(self._desk, self.id)

    def problems(self) -> tuple[Problem, ...]:
        """Return the unsettled problems of its baton, blocking ones first. Nothing is recorded."""
        examined = accepting.examine(self._desk, self.id)
        return tuple(one for one in examined.problems if not is_settled(one, examined.offer.baton.answers))

    def waive(self, reason: str, *, check: str | None = None, by: str | None = None) -> None:
        """Let it go on although a problem is not settled, with a reason that is recorded.

        `check` names the problem; without it, the one that was asked about is meant. Raises `NotEntitledError` for
        anybody but its sender, its principal and people, and `InvalidValueError` if there is no such problem.
        """
        examined = accepting.examine(self._desk, self.id)
        unsettled = find_unsettled(examined.problems, examined.offer.baton.answers)
        problem = chosen_problem(unsettled, check, examined.offer.open_question)
        waive(self._desk, examined.offer, problem, reason, by=by or self._caller(), taint=self._taint())
        resume_above(self._desk, self.id)

    def _taint(self) -> tuple[Source, ...]:
        return () if self._parent is None else named_sources(self._parent.id, self._parent.taint.entered)

    def decline(
        self, reason: str, *, code: str = "declined", by: str | None = None, lease: Lease | None = None
    ) -> None:
        """Decline it, with a reason."""
        accepting.decline(self._desk, self.id, reason, code=code, by=by, lease=lease)

    def material(self) -> Material:
        """Return the decision sheet that an approver reads first. Raises `HandoffEndedError` if it is not held."""
        return show_handoff(self._desk, self.id)

    def approve(
        self,
        *,
        by: str | Approver,
        reason: str | None = None,
        shown: Material | None = None,
        looked_ms: int | None = None,
    ) -> None:
        """Approve it if it is held. An `Approver` signs the ruling; from anybody else it is recorded as unproven."""
        self._decide(approved=True, by=by, reason=reason, shown=shown, looked_ms=looked_ms)

    def deny(
        self,
        *,
        by: str | Approver,
        reason: str,
        shown: Material | None = None,
        looked_ms: int | None = None,
    ) -> None:
        """Deny it if it is held."""
        self._decide(approved=False, by=by, reason=reason, shown=shown, looked_ms=looked_ms)

    def endorse(self, source: Source, *, by: str, reason: str) -> None:
        """Endorse a source as a person: from now on, it taints no attempt at this handoff.

        Raises `NotPersonError` if `by` is not a person, and `NotFoundError` if the source reached no attempt.
        """
        verdict_of.endorse_in_handoff(self._desk, self.id, source, by=by, reason=reason)

    def verify(
        self,
        *,
        by: str | None = None,
        command: Sequence[str] | None = None,
        check: Callable[[], object] | None = None,
        verdict: str | None = None,
        cwd: str | PathLike[str] | None = None,
    ) -> bool:
        """Judge the result with one kind of evidence, and return whether it holds.

        A command decides by its exit code, and a check by its return value. A `verdict` is a text that says why the
        result holds. Without any of them, the command in the brief is run. Raises `InvalidValueError` for more than one
        kind or none at all, and `HandoffEndedError` if nothing was delivered.
        """
        evidence = self._evidence(command, check, verdict, cwd)
        who = by or self._caller()
        judged = verdict_of.judge(self._desk, self.id, evidence, by=who)
        if judged.state is State.VERIFIED and self._parent is not None and who != f"agent:{judged.to}":
            self._parent.watched.discard(self.id)  # a verified result never becomes unverified again
        own = who == f"agent:{judged.to}"  # recorded, and it does not count
        if judged.state is State.VERIFIED and evidence.passed and self._parent is not None and not own:
            done = WorkItem(
                self.baton().task,
                verified_by=who,
                how=" ".join(evidence.command) or evidence.words,
                evidence=self.id,
            )
            record_items(self._desk, self._parent, (done,))
        return evidence.passed

    def refute(self, reason: str, *, by: str | None = None) -> None:
        """Refute the result, with a reason. Raises `HandoffEndedError` if nothing was delivered."""
        evidence = verdict_of.VerdictEvidence(passed=False, method=Method.VERDICT, words=reason)
        verdict_of.judge(self._desk, self.id, evidence, by=by or self._caller())

    def accept_unverified(self, reason: str, *, by: str | None = None) -> None:
        """Waive the check: accept the unverified result, with a reason that is recorded. Raises `HandoffEndedError`."""
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
        """Try it again: it waits for its next attempt. `repeat` and `skip` settle calls in doubt.

        Raises `InputsChangedError` if results in its baton no longer stand, unless `inputs` says `same` or `fresh`. A
        fresh attempt gets the results that were delivered in their place, and keeps no call that read the old ones.
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
        """Give it to another agent, with the same baton; the options are those of `retry`."""
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
        """Settle a call in doubt: repeat it, or skip it as done. Raises `NotFoundError` if it is not in doubt."""
        retries.settle(
            self._desk,
            self.id,
            call,
            as_member("settlement", settlement, Settlement),
            by=by or self._caller(),
            reason=reason,
        )

    def cancel(self, *, by: str | None = None, reason: str) -> None:
        """Cancel it, and every handoff below it; runs that work on them are fenced."""
        retries.cancel(self._desk, self.id, by=by or self._caller(), reason=reason)
        resume_above(self._desk, self.id)

    def _decide(
        self, *, approved: bool, by: str | Approver, reason: str | None, shown: Material | None, looked_ms: int | None
    ) -> None:
        decide_handoff(self._desk, self.id, approved=approved, by=by, reason=reason, shown=shown, looked_ms=looked_ms)
        resume_above(self._desk, self.id)

    def _caller(self) -> str:
        if self._parent is None:
            raise InvalidValueError("by", "say who decides this, such as user:ana")
        return f"agent:{self._parent.agent}"

    def _learned(self) -> Result:
        self._learn()
        return self.result()

    def _learn(self) -> None:
        """Add the result to the notes of the parent, so that it travels with its next handoffs."""
        if self._parent is not None:
            learn(self._desk, self._parent, self.id)

    def _evidence(
        self,
        command: Sequence[str] | None,
        check: Callable[[], object] | None,
        verdict: str | None,
        cwd: str | PathLike[str] | None,
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
