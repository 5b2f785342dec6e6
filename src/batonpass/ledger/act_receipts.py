"""How runs and handoffs are written about: each act is one receipt, or a few that stand or fall together.

What a receipt about a call or a handoff says is made above: this gives it its place, its keys and its commit.
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
from batonpass.wire.codec import decode_receipt

# Each time a run moved on between reading and fencing it, it made progress; so many times in a row is a fault.
_TRIES: Final = 64

Act: TypeAlias = Callable[[Handoff, ChildHead | None], Body]
Opens: TypeAlias = Callable[["AttemptOpening"], tuple[Body, tuple[Content, ...]]]
Supersedes: TypeAlias = Callable[[Run, tuple[ChildHead, ...]], tuple[Body, Body]]
Standing: TypeAlias = tuple[Handoff, Digest, PrincipalId]  # a handoff, what its next attempt hangs from, and for whom


class AttemptOpening(Struct, frozen=True, kw_only=True):
    """An attempt that is about to be opened: what its first receipt has to name."""

    handoff: Handoff  # as it stands before
    run: RunId
    attempt: int  # its number, from 1
    principal: PrincipalId
    key: PublicKey


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
        """Begin the next attempt at a handoff: its run hangs from the last thing that happened to the handoff.

        `make` says of the run, which has its id and its key now, what its first receipt says. With `known`, it is not
        read where the handoff stands; if it has moved on, `StaleHeadError` says so.
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
        # Only now: a key that is kept for a run of which nothing is durable would outlive the attempt.
        self._run_keys.keep(run, 1, signer)
        return opened(entry)

    def end(self, working: Working, body: Body, contents: tuple[Content, ...]) -> SignedReceipt:
        """Write a run's last receipt and forget its key."""
        signed = self.record(working, body, contents)
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
        premise: Premise | None = None,
    ) -> SignedReceipt:
        """Write one receipt into the stream of a run that this process holds.

        Raises `StreamClosedError` if the run is over, `BudgetExhaustedError`, and `PremiseError`.
        """
        try:
            signer, epoch = self._run_keys.get(working.run.id)
        except KeyMissingError:
            # The key of a run is forgotten when the run ends: that it is over is the reason, and no key would help.
            with self._store.view() as view:
                if not view.get_stream(StreamId(working.run.id)).open:
                    raise StreamClosedError(working.run.id) from None
            raise
        if working.epoch is not None and working.epoch != epoch:
            # Taken up again in this very process: the key is the new one's, and this one is over all the same.
            raise FencedError(working.run.id, working.epoch, epoch)
        cosigner: Signer | None = signer if body.kind in SIGNED_BY_RUN else None
        draft = Draft(
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
        return self._ledger.append_entries((draft,))[0].signed

    def supersede(self, handoff: HandoffId, make: Supersedes, contents: tuple[Content, ...] = ()) -> None:
        """End the attempt of somebody who is gone and let the next one begin, in one commit.

        Whoever still holds the attempt's run is fenced by its new epoch. `make` gets the run and where its children
        stand, and returns its last receipt and the next one of the handoff.
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
