"""The acts that a ledger records about runs and handoffs: each is one receipt, or a few that stand or fall together."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from batonpass.clock import Clock
from batonpass.errors import FencedError, StaleHeadError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import Ledger
from batonpass.ledger.standing import (
    UNGRANTED,
    Acceptance,
    Granting,
    Working,
    children_of,
    close_out,
    head_of,
    mode_of_child,
    need,
    noted,
    opened,
    standing,
)
from batonpass.model.bodies import (
    Body,
    ChildHead,
    HandoffAccepted,
    HandoffCancelled,
    HandoffInitiated,
    HandoffLapsed,
    HandoffRetried,
    Outcome,
    Part,
    RunRekeyed,
    RunStarted,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
)
from batonpass.model.charge import Within
from batonpass.model.content import Content, new_content
from batonpass.model.entry import Touch
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
from batonpass.model.key import RunKeys, Signer
from batonpass.model.label import Label, SourceType
from batonpass.model.lifecycle import WAITING, Carrier, State
from batonpass.model.receipt import SIGNED_BY_RUN, Mode, SignedReceipt
from batonpass.model.run import Handoff
from batonpass.store.port import LedgerStore
from batonpass.wire.codec import decode_receipt

# Each time a run moved on between reading and fencing it, it made progress; so many times in a row is a fault.
_TRIES: Final = 64

Act: TypeAlias = Callable[[Handoff, ChildHead | None], Body]
Standing: TypeAlias = tuple[Handoff, Digest, PrincipalId]  # a handoff, what its next attempt hangs from, and for whom


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
        intent: str | None,
        *,
        agent: str,
        by: str,
        mode: Mode = Mode.OBSERVED,
        session: SessionId | None = None,
        continues: RunId | None = None,
        series: str | None = None,
        policy: Digest | None = None,
        label: Label | None = None,
        contents: tuple[Content, ...] = (),
        items: tuple[tuple[Part, Content], ...] = (),
        items_label: Label | None = None,
        items_from_outside: tuple[tuple[Part, Content], ...] = (),
        resumed: Callable[[RunId], Body] | None = None,
        granting: Granting | None = None,
    ) -> Working:
        """Begin a root run for a principal's intent, with what the principal says besides, in one commit.

        Without an intent, nobody says one instead. `resumed` says of a run's id what comes along from earlier ones.
        """
        at = self._clock.now()
        run = new_run_id(at)
        signer = self._run_keys.new()
        principal = PrincipalId(by)
        grant = UNGRANTED if granting is None else granting(run, signer.public_key)
        started = Draft(
            stream=StreamId(run),
            body=RunStarted(
                run=run,
                agent=AgentId(agent),
                principal=principal,
                run_key=signer.public_key,
                continues=continues,
                series=series,
                policy=policy,
                label=label,
                terms=grant.terms,
                certificate=grant.certificate,
            ),
            root=run,
            anchor=self._genesis(),
            new=True,
            cosigner=signer,
            contents=(*(() if intent is None else (new_content(Part.INTENT, intent, at),)), *contents, *grant.contents),
            mode=mode,
            session=session,
        )
        drafts = [started]
        if resumed is not None:
            drafts.append(replace(started, new=False, body=resumed(run), contents=()))
        for given, whose in ((items, items_label), (items_from_outside, Label(SourceType.EXTERNAL))):
            drafts += noted(started, run, principal, given, whose)
        signed, *_ = self._ledger.append(*drafts)
        self._run_keys.keep(run, 1, signer)
        return opened(signed)

    def offer(self, parent: Working, to: str, task: str, *, carrier: Carrier = Carrier.CALLER) -> HandoffId:
        """Hand one task to an agent and nothing with it: durable before anything of the child runs."""
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
    ) -> Working:
        """Begin the next attempt at a handoff: its run hangs from the last thing that happened to the handoff.

        With `known`, it is not read where the handoff stands; if it has moved on, `StaleHeadError` says so.
        """
        said = acceptance or Acceptance()
        offered, anchor, principal = known or self._standing(handoff)
        run = new_run_id(self._clock.now())
        signer = self._run_keys.new()
        granted = UNGRANTED if granting is None else granting(run, signer.public_key)
        (signed,) = self._ledger.append(
            Draft(
                stream=StreamId(run),
                body=HandoffAccepted(
                    handoff=handoff,
                    parent=offered.parent,
                    run=run,
                    attempt=offered.attempt + 1,
                    agent=offered.to,
                    principal=principal,
                    run_key=signer.public_key,
                    baton=said.baton,
                    problems=said.problems,
                    would_ask=said.would_ask,
                    policy=said.policy,
                    label=said.label,
                    certificate=granted.certificate,
                ),
                root=offered.root,
                anchor=anchor,
                new=True,
                cosigner=signer,
                contents=(*contents, *granted.contents),
                mode=mode,
                session=session,
                token=said.token,
            ),
        )
        self._run_keys.keep(run, 1, signer)
        return opened(signed)

    def request(self, working: Working, tool: str, arguments: str) -> CallId:
        """Record that a run is about to call a tool."""
        call = new_call_id(self._clock.now())
        content = new_content("arguments", arguments, self._clock.now(), media_type="application/json")
        self.record(working, ToolRequested(run=working.run.id, call=call, tool=tool), (content,))
        return call

    def finish(self, working: Working, call: CallId, result: str | bytes) -> None:
        """Record what a call returned."""
        body = ToolCompleted(run=working.run.id, call=call)
        self.record(working, body, (new_content("result", result, self._clock.now()),))

    def fail_call(self, working: Working, call: CallId, error: str, message: str) -> None:
        """Record how a call failed."""
        failed = ToolFailed(run=working.run.id, call=call, error=error)
        self.record(working, failed, (new_content("message", message, self._clock.now()),))

    def close(self, working: Working, outcome: Outcome = Outcome.COMPLETED, *, report: str | None = None) -> None:
        """End a run: its last receipt lists every child's head, so that the root proves the whole tree."""
        said = () if report is None else (new_content("report", report, self._clock.now()),)
        self.end(working, close_out(working.run, outcome, self.children(working.run.id)), said)

    def end(self, working: Working, body: Body, contents: tuple[Content, ...]) -> SignedReceipt:
        """Write a run's last receipt and forget its key."""
        signed = self.record(working, body, contents)
        self._run_keys.drop(working.run.id)
        return signed

    def lapse(self, handoff: HandoffId) -> None:
        """Record that a worker's attempt is over without an end of its own; its run takes nothing more."""
        self.act(
            handoff,
            lambda known, ended: HandoffLapsed(handoff=handoff, attempt=known.attempt, ended=need(ended, known)),
        )

    def cancel(self, handoff: HandoffId, *, by: str, reason: str) -> None:
        """Withdraw a handoff; a run that works on it is fenced."""
        contents = (new_content("reason", reason, self._clock.now()),)
        self.act(handoff, lambda _, ended: HandoffCancelled(handoff=handoff, by=PrincipalId(by), ended=ended), contents)

    def act(
        self,
        handoff: HandoffId,
        make: Act,
        contents: tuple[Content, ...] = (),
        *,
        token: int | None = None,
        after: Digest | None = None,
    ) -> SignedReceipt:
        """Record in a handoff's own stream what somebody did to it.

        `make` gets the handoff as it stands and, if an attempt is running, where its run stands. With `after`, that is
        the last thing that happened to the handoff; if it is not, `StaleHeadError` says so.
        """
        for _ in range(_TRIES):
            with self._store.view() as view:
                known, anchor = standing(view, handoff)
                ended = head_of(view, known) if known.state is State.RUNNING else None
                offer = decode_receipt(view.get_receipt_at(StreamId(known.parent), known.seq).payload)
            body = make(known, ended)
            draft = Draft(
                stream=StreamId(handoff),
                body=body,
                root=known.root,
                anchor=anchor,
                after=after,
                contents=contents,
                mode=mode_of_child(offer),
                session=offer.session,
                token=token,
            )
            try:
                (signed,) = self._ledger.append(draft)
            except StaleHeadError as stale:
                if ended is None or stale.stream != ended.run:
                    raise
                continue  # the run wrote on while we read: it is to be fenced where it stands now
            return signed
        raise StaleHeadError(handoff, 0)

    def take_over(self, handoff: HandoffId, *, by: str, reason: str) -> None:
        """End the attempt of a caller that is gone and offer the handoff again, in one commit.

        Whoever still holds the attempt's run is fenced by its new epoch.
        """
        with self._store.view() as view:
            known, anchor = standing(view, handoff)
            dead = view.get_run(need(head_of(view, known), known).run)
            epoch = view.get_stream(StreamId(dead.id)).epoch
            children = children_of(view, dead.id)
            first = decode_receipt(view.get_receipt_at(StreamId(dead.id), 1).payload)
        repeated: dict[str, Any] = {"root": dead.root, "mode": first.mode, "session": first.session}
        signer = self._run_keys.new()
        at = self._clock.now()
        rekeyed = Draft(
            stream=StreamId(dead.id),
            body=RunRekeyed(run=dead.id, run_key=signer.public_key),
            epoch=epoch,
            cosigner=signer,
            **repeated,
        )
        failed = Draft(
            stream=StreamId(dead.id),
            body=close_out(dead, Outcome.FAILED, children, error="caller.lost"),
            cosigner=signer,
            contents=(new_content("message", reason, at),),
            **repeated,
        )
        retried = Draft(
            stream=StreamId(handoff),
            body=HandoffRetried(handoff=handoff, by=PrincipalId(by)),
            anchor=anchor,
            **repeated,
        )
        self._ledger.append(rekeyed, failed, retried)
        self._run_keys.drop(dead.id)

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
        return Working(run=known, mode=mode, session=session, epoch=epoch + 1)

    def record(
        self,
        working: Working,
        body: Body,
        contents: tuple[Content, ...] = (),
        *,
        touches: tuple[Touch, ...] = (),
        within: tuple[Within, ...] = (),
    ) -> SignedReceipt:
        """Write one receipt into the stream of a run that this process holds. Raises `BudgetExhaustedError`."""
        signer, epoch = self._run_keys.get(working.run.id)
        if working.epoch not in {None, epoch}:
            # Taken up again in this very process: the key is the new one's, and this one is over all the same.
            raise FencedError(working.run.id, working.epoch or 0, epoch)
        cosigner: Signer | None = signer if body.kind in SIGNED_BY_RUN else None
        (signed,) = self._ledger.append(
            Draft(
                stream=StreamId(working.run.id),
                body=body,
                root=working.run.root,
                epoch=epoch,
                cosigner=cosigner,
                contents=contents,
                touches=touches,
                within=within,
                mode=working.mode,
                session=working.session,
            ),
        )
        return signed

    def note(self, body: Body, contents: tuple[Content, ...] = ()) -> SignedReceipt:
        """Record in this relay's own stream what somebody decided about a run that another process may hold."""
        stream = StreamId(self._ledger.relay)
        (signed,) = self._ledger.append(
            Draft(stream=stream, body=body, anchor=self._genesis(), contents=contents),
        )
        return signed

    def append(self, *drafts: Draft) -> tuple[SignedReceipt, ...]:
        """Record drafts in one commit, or none of them: for whoever tells what happened long ago, all at once."""
        return self._ledger.append(*drafts)

    def children(self, run: RunId) -> tuple[ChildHead, ...]:
        """Return where the streams of a run's children stand."""
        with self._store.view() as view:
            return children_of(view, run)

    def _standing(self, handoff: HandoffId) -> Standing:
        with self._store.view() as view:
            known, anchor = standing(view, handoff)
            return known, anchor, view.get_run(known.parent).principal

    def _genesis(self) -> Digest:
        if self._known_genesis is None:
            with self._store.view() as view:
                self._known_genesis = view.info().genesis
        return self._known_genesis
