"""The acts that a ledger records about runs and handoffs: each is one receipt, or a few that stand or fall together."""

from dataclasses import dataclass

from batonpass.clock import Clock
from batonpass.errors import NotFoundError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import Ledger
from batonpass.model.bodies import (
    Body,
    ChildHead,
    HandoffAccepted,
    HandoffCancelled,
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    HandoffLapsed,
    Outcome,
    RunClosed,
    RunRekeyed,
    RunStarted,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
)
from batonpass.model.content import Content, new_content
from batonpass.model.ids import (
    AgentId,
    CallId,
    Digest,
    HandoffId,
    PrincipalId,
    RunId,
    SessionId,
    StreamId,
    new_call_id,
    new_handoff_id,
    new_run_id,
)
from batonpass.model.key import RunKeys
from batonpass.model.lifecycle import WAITING, Carrier, State
from batonpass.model.projection import project
from batonpass.model.receipt import Mode, SignedReceipt
from batonpass.model.run import Handoff, Run
from batonpass.model.stream import Stream
from batonpass.store.port import LedgerStore, LedgerView


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """A run that this process works on: what every one of its receipts repeats."""

    run: Run
    mode: Mode = Mode.OBSERVED
    session: SessionId | None = None


class Recording:
    """Records what happens to runs and handoffs. The relay calls it; agents never do."""

    def __init__(self, store: LedgerStore, ledger: Ledger, run_keys: RunKeys, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._run_keys = run_keys
        self._clock = clock
        self._known_genesis: Digest | None = None

    def start(
        self,
        intent: str,
        *,
        agent: str,
        by: str,
        mode: Mode = Mode.OBSERVED,
        session: SessionId | None = None,
    ) -> Working:
        """Begin a root run for a principal's intent."""
        at = self._clock.now()
        run = new_run_id(at)
        signer = self._run_keys.new()
        (signed,) = self._ledger.append(
            Draft(
                stream=StreamId(run),
                body=RunStarted(run=run, agent=AgentId(agent), principal=PrincipalId(by), run_key=signer.public_key),
                root=run,
                anchor=self._genesis(),
                new=True,
                cosigner=signer,
                contents=(new_content("intent", intent, at),),
                mode=mode,
                session=session,
            ),
        )
        self._run_keys.keep(run, 1, signer)
        return _opened(signed)

    def offer(self, parent: Working, to: str, task: str, *, carrier: Carrier = Carrier.CALLER) -> HandoffId:
        """Hand one task to an agent: durable before anything of the child runs."""
        at = self._clock.now()
        handoff = new_handoff_id(at)
        body = HandoffInitiated(
            handoff=handoff,
            run=parent.run.id,
            to=AgentId(to),
            carrier=carrier,
            state=WAITING[carrier],
        )
        self._record(parent, body, (new_content("task", task, at),), cosigned=False)
        return handoff

    def accept(self, handoff: HandoffId, *, mode: Mode = Mode.OBSERVED, session: SessionId | None = None) -> Working:
        """Begin the next attempt at a handoff: its run hangs from the last thing that happened to the handoff."""
        with self._store.view() as view:
            offered, anchor = _standing(view, handoff)
            parent = view.get_run(offered.parent)
        run = new_run_id(self._clock.now())
        signer = self._run_keys.new()
        (signed,) = self._ledger.append(
            Draft(
                stream=StreamId(run),
                body=HandoffAccepted(
                    handoff=handoff,
                    parent=offered.parent,
                    run=run,
                    attempt=offered.attempt + 1,
                    agent=offered.to,
                    principal=parent.principal,
                    run_key=signer.public_key,
                ),
                root=offered.root,
                anchor=anchor,
                new=True,
                cosigner=signer,
                mode=mode,
                session=session,
            ),
        )
        self._run_keys.keep(run, 1, signer)
        return _opened(signed)

    def request(self, working: Working, tool: str, arguments: str) -> CallId:
        """Record that a run is about to call a tool."""
        at = self._clock.now()
        call = new_call_id(at)
        body = ToolRequested(run=working.run.id, call=call, tool=tool)
        self._record(working, body, (new_content("arguments", arguments, at, media_type="application/json"),))
        return call

    def finish(self, working: Working, call: CallId, result: str | bytes) -> None:
        """Record what a call returned."""
        content = new_content("result", result, self._clock.now())
        self._record(working, ToolCompleted(run=working.run.id, call=call), (content,))

    def fail_call(self, working: Working, call: CallId, error: str, message: str) -> None:
        """Record how a call failed."""
        content = new_content("message", message, self._clock.now())
        self._record(working, ToolFailed(run=working.run.id, call=call, error=error), (content,))

    def close(self, working: Working, outcome: Outcome = Outcome.COMPLETED, *, report: str | None = None) -> None:
        """End a run: its last receipt lists every child's head, so that the root proves the whole tree."""
        run = working.run
        contents = () if report is None else (new_content("report", report, self._clock.now()),)
        children = self._children(run.id)
        body: Body
        if run.handoff is None or run.parent is None:
            body = RunClosed(run=run.id, outcome=outcome, children=children)
        else:
            kind = HandoffCompleted if outcome is Outcome.COMPLETED else HandoffFailed
            body = kind(
                handoff=run.handoff,
                parent=run.parent,
                run=run.id,
                attempt=run.attempt,
                children=children,
            )
        self._record(working, body, contents)
        self._run_keys.drop(run.id)

    def lapse(self, handoff: HandoffId) -> None:
        """Record that a worker's attempt is over without an end of its own; its run takes nothing more."""
        with self._store.view() as view:
            known, anchor = _standing(view, handoff)
            ended = _head_of(view, known)
        body = HandoffLapsed(handoff=handoff, attempt=known.attempt, ended=ended)
        self._ledger.append(Draft(stream=StreamId(handoff), body=body, root=known.root, anchor=anchor))

    def cancel(self, handoff: HandoffId, *, by: str, reason: str) -> None:
        """Withdraw a handoff; a run that works on it is fenced."""
        with self._store.view() as view:
            known, anchor = _standing(view, handoff)
            ended = _head_of(view, known) if known.state is State.RUNNING else None
        body = HandoffCancelled(handoff=handoff, by=PrincipalId(by), ended=ended)
        contents = (new_content("reason", reason, self._clock.now()),)
        self._ledger.append(
            Draft(
                stream=StreamId(handoff),
                body=body,
                root=known.root,
                anchor=anchor,
                contents=contents,
            ),
        )

    def rekey(self, run: RunId, *, mode: Mode = Mode.OBSERVED, session: SessionId | None = None) -> Working:
        """Go on with a run whose key is lost: a new key in the next epoch, which fences whoever held the old one."""
        with self._store.view() as view:
            known = view.get_run(run)
            epoch = view.get_stream(StreamId(run)).epoch
        signer = self._run_keys.new()
        self._ledger.append(
            Draft(
                stream=StreamId(run),
                body=RunRekeyed(run=run, run_key=signer.public_key),
                root=known.root,
                epoch=epoch,
                cosigner=signer,
                mode=mode,
                session=session,
            ),
        )
        self._run_keys.keep(run, epoch + 1, signer)
        return Working(run=known, mode=mode, session=session)

    def _record(
        self,
        working: Working,
        body: Body,
        contents: tuple[Content, ...],
        *,
        cosigned: bool = True,
    ) -> SignedReceipt:
        signer, epoch = self._run_keys.get(working.run.id)
        (signed,) = self._ledger.append(
            Draft(
                stream=StreamId(working.run.id),
                body=body,
                root=working.run.root,
                epoch=epoch,
                cosigner=signer if cosigned else None,
                contents=contents,
                mode=working.mode,
                session=working.session,
            ),
        )
        return signed

    def _genesis(self) -> Digest:
        if self._known_genesis is None:
            with self._store.view() as view:
                self._known_genesis = view.info().genesis
        return self._known_genesis

    def _children(self, run: RunId) -> tuple[ChildHead, ...]:
        with self._store.view() as view:
            children = sorted(child.id for child in view.find_runs(parent=run))
            return tuple(_child_head(view.get_stream(StreamId(child))) for child in children)


def _opened(signed: SignedReceipt) -> Working:
    run = project(signed.receipt, signed.digest).run_opened
    if run is None:
        raise AssertionError("only receipts that open a run come here")
    return Working(run=run, mode=signed.receipt.mode, session=signed.receipt.session)


def _child_head(stream: Stream) -> ChildHead:
    return ChildHead(run=RunId(stream.id), seq=stream.seq, head=stream.head)


def _head_of(view: LedgerView, handoff: Handoff) -> ChildHead:
    if handoff.run is None:
        raise NotFoundError("attempt at handoff", handoff.id)
    return _child_head(view.get_stream(StreamId(handoff.run)))


def _standing(view: LedgerView, handoff: HandoffId) -> tuple[Handoff, Digest]:
    """Return a handoff and the receipt from which the next thing that happens to it hangs."""
    known = view.get_handoff(handoff)
    try:
        return known, view.get_stream(StreamId(handoff)).head
    except NotFoundError:
        return known, known.initiated
