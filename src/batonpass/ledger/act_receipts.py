"""Recording acts: each act of a run or on a handoff is one receipt, or a few in one commit.

The packages above make the body of a receipt. This module gives it a place in a stream, keys and a commit.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from batonpass.clock import Clock
from batonpass.errors import FencedError, KeyMissingError, StaleHeadError, StreamClosedError
from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import Ledger
from batonpass.ledger.position import (
    UNGRANTED,
    Granting,
    Working,
    children_of,
    head_of,
    mode_of_child,
    need,
    noted,
    opened,
    standing,
)
from batonpass.ledger.trace_scope import current_trace
from batonpass.model.base.ids import (
    RUN,
    AgentId,
    Digest,
    HandoffId,
    PrincipalId,
    PublicKey,
    RunId,
    SessionId,
    StreamId,
    new_id,
    new_run_id,
)
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Label, SourceType
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import Body, ChildHead, Part, RunRekeyed, RunStarted
from batonpass.model.grants.charge import Within
from batonpass.model.ledger.content import Content, new_content
from batonpass.model.ledger.entry import Premise, Touch
from batonpass.model.ledger.key import RunKeys, Signer
from batonpass.model.ledger.receipt import SIGNED_BY_RUN, SignedReceipt
from batonpass.model.ledger.run import Handoff, Run
from batonpass.store.port import LedgerStore
from batonpass.wire.receipt_codec import decode_receipt

# If a run writes between our read and our write, it made progress. This many times in a row is a fault.
_TRIES: Final = 64

Act: TypeAlias = Callable[[Handoff, ChildHead | None], Body]
Opens: TypeAlias = Callable[["AttemptOpening"], tuple[Body, tuple[Content, ...]]]
Supersedes: TypeAlias = Callable[[Run, tuple[ChildHead, ...]], tuple[Body, Body]]
Standing: TypeAlias = tuple[Handoff, Digest, PrincipalId]  # the digest is what its next attempt follows


class AttemptOpening(Struct, frozen=True, kw_only=True):
    """An attempt that is about to begin: the values that its first receipt needs."""

    handoff: Handoff  # as it is before the attempt
    run: RunId
    attempt: int  # attempt number, from 1
    principal: PrincipalId
    key: PublicKey


class Recording:
    """Records acts of runs and on handoffs. The relay calls it; agents never do."""

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
        upstream: int = 0,
    ) -> Working:
        """Begin a root run for a principal's intent, with the principal's other items, in one commit.

        Without an intent none is recorded. `resumed` gets the run's id and returns the body that lists the inherited
        items.
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
                trace=current_trace(),
                upstream=upstream,
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
        first, *_ = self._ledger.append_entries(drafts)
        self._run_keys.keep(run, 1, signer)
        return opened(first)

    def open_attempt(
        self,
        handoff: HandoffId,
        make: Opens,
        *,
        mode: Mode = Mode.OBSERVED,
        session: SessionId | None = None,
        token: int | None = None,
        known: Standing | None = None,
    ) -> Working:
        """Begin the next attempt at a handoff. Its run's stream follows the handoff's last receipt.

        `make` gets the run's id and key, and returns the body of its first receipt with the contents. With `known`, the
        state of the handoff is not read again. Raises `StaleHeadError` if the handoff has moved on since.
        """
        offered, anchor, principal = known or self._standing(handoff)
        run = RunId(new_id(RUN, self._clock.now()))
        signer = self._run_keys.new()
        body, contents = make(
            AttemptOpening(
                handoff=offered, run=run, attempt=offered.attempt + 1, principal=principal, key=signer.public_key
            )
        )
        draft = Draft(
            stream=StreamId(run),
            body=body,
            root=offered.root,
            anchor=anchor,
            new=True,
            cosigner=signer,
            contents=contents,
            mode=mode,
            session=session,
            token=token,
        )
        (entry,) = self._ledger.append_entries((draft,))
        # Only after the append: if it failed, a kept key would belong to a run that does not exist.
        self._run_keys.keep(run, 1, signer)
        return opened(entry)

    def end(
        self, working: Working, body: Body, contents: tuple[Content, ...], *, again: Body | None = None
    ) -> SignedReceipt:
        """Write the last receipt of a run and forget its key.

        With `again`, the receipt that lets its handoff wait for the next attempt is in the same commit: a crash in
        between would leave the handoff failed.
        """
        drafts = [self._draft(working, body, contents)]
        if again is not None and working.run.handoff is not None:
            with self._store.view() as view:
                _, anchor = standing(view, working.run.handoff)
            stream = StreamId(working.run.handoff)
            repeated: dict[str, Any] = {"root": working.run.root, "mode": working.mode, "session": working.session}
            drafts.append(Draft(stream=stream, body=again, anchor=anchor, **repeated))
        signed = self._ledger.append_entries(drafts)[0].signed
        self._run_keys.drop(working.run.id)
        return signed

    def act(
        self,
        handoff: HandoffId,
        make: Act,
        contents: tuple[Content, ...] = (),
        *,
        token: int | None = None,
        after: Digest | None = None,
        then: Body | None = None,
    ) -> SignedReceipt:
        """Record an act on a handoff in the handoff's own stream.

        `make` gets the handoff and, if an attempt is running, the head of its run. With `after`, the act is recorded
        only if that is the handoff's last receipt. Raises `StaleHeadError` otherwise. With `then`, a second act is in
        the same commit, and the contents are those of it.
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
                contents=contents if then is None else (),
                mode=mode_of_child(offer),
                session=offer.session,
                token=token,
            )
            drafts = [draft]
            if then is not None:
                drafts.append(replace(draft, body=then, contents=contents, after=None, token=None))
            try:
                signed = self._ledger.append_entries(drafts)[0].signed
            except StaleHeadError as stale:
                if ended is None or stale.stream != ended.run:
                    raise
                continue  # the run wrote meanwhile, and must be fenced at its new head
            return signed
        raise StaleHeadError(handoff, 0)

    def rekey(self, run: RunId, *, mode: Mode = Mode.OBSERVED, session: SessionId | None = None) -> Working:
        """Continue a run whose key is lost, with a new key in the next epoch. This fences the holder of the old key."""
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
        premise: Premise | None = None,
    ) -> SignedReceipt:
        """Write one receipt to the stream of a run that this process holds.

        Raises `StreamClosedError` if the run is over, `FencedError` if somebody took it over, `BudgetExhaustedError`,
        and `PremiseError`.
        """
        draft = self._draft(working, body, contents, touches=touches, within=within, premise=premise)
        return self._ledger.append_entries((draft,))[0].signed

    def _draft(
        self,
        working: Working,
        body: Body,
        contents: tuple[Content, ...],
        *,
        touches: tuple[Touch, ...] = (),
        within: tuple[Within, ...] = (),
        premise: Premise | None = None,
    ) -> Draft:
        try:
            signer, epoch = self._run_keys.get(working.run.id)
        except KeyMissingError:
            # A run's key is dropped when the run ends. Then the missing key is not the reason: the run is over.
            with self._store.view() as view:
                if not view.get_stream(StreamId(working.run.id)).open:
                    raise StreamClosedError(working.run.id) from None
            raise
        if working.epoch is not None and working.epoch != epoch:
            # The run was taken over within this process, so the key here is the new holder's. The old holder is fenced.
            raise FencedError(working.run.id, working.epoch, epoch)
        cosigner: Signer | None = signer if body.kind in SIGNED_BY_RUN else None
        return Draft(
            stream=StreamId(working.run.id),
            body=body,
            root=working.run.root,
            epoch=epoch,
            cosigner=cosigner,
            contents=contents,
            touches=touches,
            within=within,
            premise=premise,
            mode=working.mode,
            session=working.session,
        )

    def supersede(self, handoff: HandoffId, make: Supersedes, contents: tuple[Content, ...] = ()) -> None:
        """End the attempt of a holder who is gone, and make the handoff ready for the next one, in one commit.

        The new epoch fences the old holder of the attempt's run. `make` gets the run and the heads of its children, and
        returns two bodies: the last one of the run and the next one of the handoff.
        """
        with self._store.view() as view:
            known, anchor = standing(view, handoff)
            dead = view.get_run(need(head_of(view, known), known).run)
            epoch = view.get_stream(StreamId(dead.id)).epoch
            children = children_of(view, dead.id)
            first = decode_receipt(view.get_receipt_at(StreamId(dead.id), 1).payload)
        repeated: dict[str, Any] = {"root": dead.root, "mode": first.mode, "session": first.session}
        signer = self._run_keys.new()
        last, again = make(dead, children)
        rekeyed = Draft(
            stream=StreamId(dead.id),
            body=RunRekeyed(run=dead.id, run_key=signer.public_key),
            epoch=epoch,
            cosigner=signer,
            **repeated,
        )
        ended = Draft(stream=StreamId(dead.id), body=last, cosigner=signer, contents=contents, **repeated)
        reopened = Draft(stream=StreamId(handoff), body=again, anchor=anchor, **repeated)
        self._ledger.append(rekeyed, ended, reopened)
        self._run_keys.drop(dead.id)

    def note(self, body: Body, contents: tuple[Content, ...] = ()) -> SignedReceipt:
        """Record in this relay's own stream a decision about a run that another process may hold."""
        stream = StreamId(self._ledger.relay)
        (signed,) = self._ledger.append(
            Draft(stream=stream, body=body, anchor=self._genesis(), contents=contents),
        )
        return signed

    def append(self, *drafts: Draft) -> tuple[SignedReceipt, ...]:
        """Record drafts in one commit, or none of them. Used to import records of the past."""
        return self._ledger.append(*drafts)

    def children(self, run: RunId) -> tuple[ChildHead, ...]:
        """Return the heads of the streams of a run's children."""
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
