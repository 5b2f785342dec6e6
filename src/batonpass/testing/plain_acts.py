"""Minimal runs, handoffs and calls, for tests of ledgers and stores."""

from batonpass.handoff.transfer.attempt_receipts import Acceptance, accepted, close_out, take_over
from batonpass.ledger.act_receipts import AttemptOpening, Recording, Standing
from batonpass.ledger.position import UNGRANTED, Granting, Working, need
from batonpass.model.base.ids import AgentId, CallId, HandoffId, PrincipalId, SessionId, new_call_id, new_handoff_id
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import WAITING, Carrier
from batonpass.model.bodies.body import (
    Body,
    HandoffCancelled,
    HandoffInitiated,
    HandoffLapsed,
    Outcome,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
)
from batonpass.model.ledger.content import Content, new_content


class PlainRecording(Recording):
    """Records acts without any check: no policy, no baton, no grant."""

    def offer(self, parent: Working, to: str, task: str, *, carrier: Carrier = Carrier.CALLER) -> HandoffId:
        """Offer one task to an agent, with an otherwise empty baton."""
        at = self._clock.now()
        handoff = new_handoff_id(at)
        body = HandoffInitiated(
            handoff=handoff,
            run=parent.run.id,
            to=AgentId(to),
            carrier=carrier,
            state=WAITING[carrier],
        )
        self.record(parent, body, (new_content("task", task, at),))
        return handoff

    def accept(
        self,
        handoff: HandoffId,
        *,
        mode: Mode = Mode.OBSERVED,
        session: SessionId | None = None,
        acceptance: Acceptance | None = None,
        known: Standing | None = None,
        contents: tuple[Content, ...] = (),
        granting: Granting | None = None,
        token: int | None = None,
    ) -> Working:
        """Start the next attempt at a handoff."""
        said = acceptance or Acceptance()

        def opens(opening: AttemptOpening) -> tuple[Body, tuple[Content, ...]]:
            granted = UNGRANTED if granting is None else granting(opening.run, opening.key)
            return accepted(opening, said, granted), (*contents, *granted.contents)

        return self.open_attempt(handoff, opens, mode=mode, session=session, token=token, known=known)

    def request(self, working: Working, tool: str, arguments: str) -> CallId:
        """Record that a run is about to call a tool."""
        call = new_call_id(self._clock.now())
        content = new_content("arguments", arguments, self._clock.now(), media_type="application/json")
        self.record(working, ToolRequested(run=working.run.id, call=call, tool=tool), (content,))
        return call

    def finish(self, working: Working, call: CallId, result: str | bytes) -> None:
        """Record the result of a call."""
        body = ToolCompleted(run=working.run.id, call=call)
        self.record(working, body, (new_content("result", result, self._clock.now()),))

    def fail_call(self, working: Working, call: CallId, error: str, message: str) -> None:
        """Record the failure of a call."""
        failed = ToolFailed(run=working.run.id, call=call, error=error)
        self.record(working, failed, (new_content("message", message, self._clock.now()),))

    def close(self, working: Working, outcome: Outcome = Outcome.COMPLETED, *, report: str | None = None) -> None:
        """Close a run. Its last receipt lists every child's head, so that the root proves the whole tree."""
        said = () if report is None else (new_content("report", report, self._clock.now()),)
        self.end(working, close_out(working.run, outcome, self.children(working.run.id)), said)

    def lapse(self, handoff: HandoffId) -> None:
        """Record that a worker's attempt lapsed; its run accepts no more receipts."""
        self.act(
            handoff,
            lambda known, ended: HandoffLapsed(handoff=handoff, attempt=known.attempt, ended=need(ended, known)),
        )

    def cancel(self, handoff: HandoffId, *, by: str, reason: str) -> None:
        """Cancel a handoff; a run that works on it is fenced."""
        contents = (new_content("reason", reason, self._clock.now()),)
        self.act(handoff, lambda _, ended: HandoffCancelled(handoff=handoff, by=PrincipalId(by), ended=ended), contents)

    def take_over(self, handoff: HandoffId, *, by: str, reason: str) -> None:
        """End the attempt of a caller that is gone, and offer the handoff again."""
        take_over(self, handoff, (new_content("message", reason, self._clock.now()),), by=by)


def plainly(recording: Recording) -> PlainRecording:
    """Return a plain recording that writes into the same ledger, with the same keys."""
    parts = recording._store, recording._ledger, recording._run_keys, recording._clock  # noqa: SLF001 - its own kind
    return PlainRecording(*parts)
