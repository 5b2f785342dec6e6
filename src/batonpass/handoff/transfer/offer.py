"""Offering a task: the whole baton and the state in one commit, before anything of the child runs."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from batonpass.errors import (
    BudgetExhaustedError,
    GrantError,
    HandoffEndedError,
    HandoffRefusedError,
    InputsChangedError,
    KeyReusedError,
    NotFoundError,
    OfferedAlreadyError,
    PolicyRefusedError,
    PremiseError,
)
from batonpass.guard.baton.gaps import require_complete, required_parts
from batonpass.guard.policy.hops import require_hop, requires_lineage
from batonpass.guard.policy.trust import require_verified
from batonpass.handoff.approvals.gate_facts import hold_takes_proof, hold_until
from batonpass.handoff.grants.limit_use import revocations, revoked
from batonpass.handoff.grants.terms import give, kept
from batonpass.handoff.history.lineage import read_lineage
from batonpass.handoff.history.offers import Offer, author_of, find_statements, read_offer
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.transfer.free_text import take_context
from batonpass.handoff.transfer.handoff_gates import judge_offer
from batonpass.handoff.transfer.inputs import find_fallen, find_renewed
from batonpass.handoff.transfer.offer_request import OfferRequest
from batonpass.handoff.transfer.pending_offer import PendingOffer
from batonpass.handoff.transfer.reasoning import keep_thought, point_to
from batonpass.handoff.transfer.verdict import find_unverified
from batonpass.model.base.content_names import BRIEF, TASK, TERMS
from batonpass.model.base.ids import Digest, HandoffId, new_handoff_id
from batonpass.model.base.kinds import CarriedFate
from batonpass.model.base.label import Label, Source, SourceType, named_sources
from batonpass.model.base.lifecycle import WAITING, State
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.baton.baton import ABRIDGED, Baton, Brief, missing_parts
from batonpass.model.baton.items import Item
from batonpass.model.bodies.body import Gate, HandoffInitiated, Part
from batonpass.model.grants.charge import whole_of
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Premise
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.handoff_policy import UNRULED, HandoffPolicy
from batonpass.model.policy.offer_options import ChangedInputs
from batonpass.records.fate import TreeFates
from batonpass.store.port import LedgerView
from batonpass.wire.documents import encode_brief, to_document

# A key that is taken by one of these is free again: nothing of it will ever run.
_DEAD: Final = frozenset({State.CANCELLED, State.EXPIRED, State.DENIED})
# These have a result, or are tried again when they are taken: then it matters what they were offered with.
_OVER: Final = frozenset({State.COMPLETED, State.VERIFIED, State.FAILED, State.DECLINED, State.REFUTED})
_GENERATIONS: Final = 1000
# Each time somebody said more between looking and writing; so many times in a row is a fault, not a race.
_TRIES: Final = 64


_handoff: Final = unchecked_maker(Handoff)  # it repeats what its receipt says, which was checked
_initiated_plainly: Final = unchecked_maker(HandoffInitiated)  # of an offer that goes on, with nothing odd about it
_NOTHING_SAID: Final = Brief()

SAID: Final = "what is said besides"


class OfferedHandoff(Struct, frozen=True, kw_only=True):
    """A handoff that was offered, now or before under the same key."""

    handoff: Handoff
    offer: Offer
    again: bool = False


def offer_task(
    desk: Desk, holding: Holding, asked: OfferRequest, *, beside: tuple[Content, ...] = ()
) -> OfferedHandoff:
    """Offer a task; the same key in the same scope is the same handoff.

    Every door comes here, and adds contents of its own with `beside`. Raises `KeyReusedError` if the key was used for
    something else, `PolicyRefusedError` where a policy says so, and a `GrantError` where the sender cannot give what is
    asked for; both are recorded.
    """
    fingerprint = desk.secrets.digest(holding.root, b"offer", asked.described())
    replaces: HandoffId | None = None
    for generation in range(_GENERATIONS):
        key = _key(desk, holding, asked, fingerprint, generation)
        try:
            if holding.replaying:
                _recall(desk, holding, key)
            pending = PendingOffer(
                desk=desk,
                holding=holding,
                asked=asked,
                fingerprint=fingerprint,
                key=key,
                handoff=new_handoff_id(desk.clock.now()),
                policies=_policies(desk.gates.handoffs, asked.policy),
                beside=beside,
                replaces=replaces,
            )
            return _pass_in_time(pending)
        except OfferedAlreadyError as taken:
            with desk.store.view() as view:
                known = view.get_handoff(HandoffId(taken.handoff))
                if known.state in _DEAD:
                    continue
                offer = read_offer(view, known)
                changed = _find_changed(view, holding, asked, offer)
            if offer.initiated.fingerprint != fingerprint:
                # What is not found in the fields is in what was said besides: less of it, or in another order.
                differences = tuple(_differences(asked, offer)) or (SAID,)
                raise KeyReusedError(known.id, differences) from None
            if changed:
                if asked.key is not None and asked.inputs is not ChangedInputs.FRESH:
                    raise InputsChangedError(known.id, changed) from None
                # Its result is about other inputs. Nobody named it by a key, so the same words ask for a new one.
                replaces = known.id
                continue
            holding.handed_off.add(known.id)
            return OfferedHandoff(handoff=known, offer=offer, again=True)
    raise NotFoundError("free key", str(asked.key))


def _find_changed(view: LedgerView, holding: Holding, asked: OfferRequest, offer: Offer) -> tuple[str, ...]:
    """Return which inputs of a handoff that is over have changed since it was offered, in words."""
    if offer.handoff.state not in _OVER or asked.inputs is ChangedInputs.SAME or holding.replaying:
        return ()
    return (*find_fallen(view, offer.handoff), *find_renewed(holding, offer.baton))


def _policies(ruled: HandoffPolicy, own: HandoffPolicy | None) -> tuple[HandoffPolicy, ...]:
    """Return all that an offer is held to; a relay that was given no policy adds nothing to the caller's."""
    if own is None:
        return (ruled,)
    return (own,) if ruled == UNRULED else (ruled, own)


def _pass_in_time(pending: PendingOffer) -> OfferedHandoff:
    """Let an offer pass as the tree stands when it is written; while others speak in it, gather once more."""
    for _ in range(_TRIES):
        try:
            return _pass(pending)
        except PremiseError:
            pending = pending.again()
    raise PremiseError(pending.holding.root)


def _pass(pending: PendingOffer) -> OfferedHandoff:
    """Gather what travels, ask one question after the other, and record the offer before anything of it runs.

    Raises `PremiseError` if something was taken for granted that is not so, or that decides about the offer.
    """
    _gather(pending)
    try:
        _check_policies(pending)
        _pass_gates(pending)
        _grant(pending)
    except (PolicyRefusedError, GrantError) as refusal:
        if not pending.looked:
            raise PremiseError(pending.holding.root) from None  # nobody is refused for what was not looked at
        pending.refuse(refusal)
    return _write(pending)


def _recall(desk: Desk, holding: Holding, key: Digest) -> None:
    """Refuse what a finished run never handed off; raise `OfferedAlreadyError` for what it did."""
    with desk.store.view() as view:
        try:
            known = view.get_offer(holding.scope, key)
        except NotFoundError:
            raise HandoffEndedError(holding.id, "finished, and never handed this off") from None
    raise OfferedAlreadyError(known.id)


def _key(desk: Desk, holding: Holding, asked: OfferRequest, fingerprint: Digest, generation: int) -> Digest:
    if asked.key is None and generation == 0:
        return fingerprint
    given = fingerprint if asked.key is None else asked.key
    return desk.secrets.digest(holding.root, b"key", given.encode(), str(generation).encode())


def _gather(pending: PendingOffer) -> None:
    """Find all that travels with an offer: what humans said, what the sender knows, what is said besides."""
    desk, holding, asked = pending.desk, pending.holding, pending.asked
    items: list[Item] = []
    contents: list[Content] = []
    for number, value in enumerate(asked.said, 1):
        item, content = desk.item(value, author_of(holding.agent), number)
        items.append(item)
        contents.append(content)
    statements = _look(pending)
    if asked.context is not None or True in [policy.sanitize_context for policy in pending.policies]:
        pending.context = context = take_context(
            desk,
            holding,
            asked.task,
            asked.context,
            policies=pending.policies,
            statements=statements,
            number=len(items) + 1,
        )
        if context.item is not None:
            items.append(context.item)
        contents += context.contents
    pending.items = (*statements, *holding.carried(asked.carry), *items)
    pending.contents = tuple(contents)
    wanted: list[str] = []
    for policy in pending.policies:
        if policy.require:
            wanted += required_parts(asked.relation, policy)
    wanted += desk.gates.minimum(asked.relation)
    pending.missing = missing_parts(asked.relation, asked.brief, pending.items, wanted)


def _look(pending: PendingOffer) -> tuple[Item, ...]:
    """Return all that humans said in the tree so far; note which results are unverified, and the lineage if needed.

    Statements are only ever added, and whatever somebody does to a handoff that has delivered stands in its stream. So
    a run that has looked before takes for granted that nothing was added, and the commit sees whether that is so.
    """
    desk, holding = pending.desk, pending.holding
    # In a tree with a refuted result, what stands can change without another verdict: when the redone one is delivered.
    reads = pending.reads or holding.stated is None or holding.refutations > 0
    reads = reads or not holding.acted_on.isdisjoint(holding.watched)
    if holding.stated is not None and not reads and not any(map(requires_lineage, pending.policies)):
        # Nobody is asked: all that a wrong guess costs is that the commit refuses it, and that it is read after all.
        pending.unverified = tuple(sorted(holding.watched))
        pending.premise = Premise(root=holding.root, statements=len(holding.stated), untouched=pending.unverified)
        return holding.stated
    with desk.store.view() as view:
        stated = holding.stated = tuple(find_statements(view, holding.root, holding.notes))
        watched = frozenset(holding.watched)
        pending.unverified = tuple(find_unverified(view, watched))
        # Of what somebody acted on, only a new attempt can be unverified again, and what is verified gets none. The
        # rest is looked at each time: to take for granted that it is untouched would fail at each commit.
        acted_on = watched.difference(pending.unverified)
        verified = {handoff for handoff in acted_on if view.get_handoff(handoff).state is State.VERIFIED}
        holding.acted_on = acted_on - verified
        holding.watched -= verified
        fates = TreeFates(view, holding.root)
        holding.refutations = fates.refutations
        if holding.refutations:
            known = [item.id for item in holding.carried(pending.asked.carry)]
            pending.fates = {item: fate for item in known if (fate := fates.find(item)) is not None}
        if any(map(requires_lineage, pending.policies)):
            pending.lineage = read_lineage(view, holding.working.run)
    holding.add(*stated)
    pending.looked = True
    # Of what was read just now too: until it is written, a human may say more. What became of results was read.
    pending.premise = Premise(root=holding.root, statements=len(stated), refutations=holding.refutations)
    return stated


def _check_policies(pending: PendingOffer) -> None:
    """Refuse a hop that a policy does not allow, or that lacks what it requires. Raises `PolicyRefusedError`."""
    asked = pending.asked
    for policy in pending.policies:
        require_hop(asked.to, asked.task, pending.lineage, policy)
        require_complete(asked.relation, pending.missing, policy)
        require_verified(pending.unverified, policy)


def _pass_gates(pending: PendingOffer) -> None:
    """Note what holds an offer, and what would have, had it been enforced. Raises `PolicyRefusedError`."""
    asked, desk = pending.asked, pending.desk
    decision, flags = judge_offer(
        desk,
        pending.holding,
        to=asked.to,
        relation=asked.relation,
        brief=asked.brief,
        task=asked.task,
        items=pending.items,
        missing=pending.missing,
        unverified=len(pending.unverified),
    )
    if decision is not None and decision.gate is Gate.DENY:
        raise HandoffRefusedError(decision.rule, desk.gates.where(decision.rule), decision.sentence)
    pending.decision = decision
    pending.flags += flags


def _grant(pending: PendingOffer) -> None:
    """Note what is granted; where a grant is only tried out, that it is, or would be refused. Raises `GrantError`."""
    asked = pending.asked
    pending.given = give(
        pending.desk,
        pending.holding,
        asked.grant,
        to=asked.to,
        handoff=pending.handoff,
        deadline=asked.deadline,
    )
    pending.flags += pending.given.flags


def _write(pending: PendingOffer) -> OfferedHandoff:
    """Write an offer with its whole baton and the state in one commit: durable from here, this is the checkpoint.

    Raises `GrantRevokedError` if what it is made under was revoked meanwhile.
    """
    desk, holding, asked = pending.desk, pending.holding, pending.asked
    if holding.is_abridged(asked.carry):
        pending.missing = (*pending.missing, ABRIDGED)
    given = pending.given
    contents = [desk.text(TASK, asked.task), *pending.contents]
    if asked.brief != _NOTHING_SAID:
        contents.append(desk.json(BRIEF, encode_brief(asked.brief)))
    if given.terms is not None:
        contents.append(kept(desk, TERMS, given.terms))
    if given.refusal is not None:
        contents.append(desk.refusal(given.refusal))
    if (thought := asked.thought or holding.thought) is not None:
        contents += keep_thought(desk, thought)
    contents += pending.beside
    # Under the lock from the label to its receipt: what comes in meanwhile is in the label, or comes after it.
    with holding.taint.lock:
        body = _initiated(pending)
        fill_gap(desk, holding)
        signed = _record_offer(pending, body, tuple(contents))
    context = pending.context
    if context is not None and (context.found or (context.item is not None and context.scanned)):
        desk.recording.record(holding.working, context.body(pending.handoff, holding))
    # Said once: a lead with a thousand children does not say it a thousand times.
    holding.watched.difference_update(pending.unverified)
    holding.handed_off.add(pending.handoff)
    opened = _handoff(
        id=pending.handoff,
        root=holding.root,
        parent=holding.id,
        to=asked.to,
        carrier=asked.carrier,
        state=body.state,
        attempt=0,
        run=None,
        initiated=signed.digest,
        seq=signed.receipt.seq,
        scope=holding.scope,
        key=pending.key,
        deadline=asked.deadline,
    )
    offer = Offer(
        handoff=opened,
        initiated=body,
        revision=signed.digest,
        baton=_baton(pending, body),
        receipt=signed.receipt.id,
        taint=body.taint,
        terms=pending.given.terms,
    )
    return OfferedHandoff(handoff=opened, offer=offer)


def _initiated(pending: PendingOffer) -> HandoffInitiated:
    """Return an offer as its receipt says it, with the label of all that its sender knows and what of it taints."""
    desk, holding, asked, decision = pending.desk, pending.holding, pending.asked, pending.decision
    held = decision is not None or asked.hold
    taint = holding.taint
    entered: set[Source] = set(taint.entered)
    for item in pending.items:
        if item.part is Part.UNTRUSTED and item.id not in taint.endorsed:
            entered.add(item.id)
    sources = named_sources(holding.id, entered) if entered else ()
    # Ids, digests and members of enumerations, each made here or checked in what was asked for. Names of rules are
    # other people's: what has a flag, or is held, is checked.
    make = HandoffInitiated if held or pending.flags else _initiated_plainly
    return make(
        handoff=pending.handoff,
        run=holding.id,
        to=asked.to,
        carrier=asked.carrier,
        state=State.HELD if held else WAITING[asked.carrier],
        relation=asked.relation,
        scope=holding.scope,
        key=pending.key,
        fingerprint=pending.fingerprint,
        deadline=asked.deadline,
        carries=holding.refs(pending.items),
        missing=pending.missing,
        unverified=pending.unverified,
        fates=tuple(_carried_fates(pending)),
        replaces=pending.replaces,
        flags=tuple(pending.flags),
        rule=None if decision is None else decision.rule,
        gate=None if decision is None else decision.gate,
        until=hold_until(desk) if held else None,
        proven=held and hold_takes_proof(desk, Gate.NONE if decision is None else decision.gate),
        approvals=1 if decision is None else decision.approvals,
        terms=None if pending.given.terms is None else pending.given.terms.digest,
        label=taint.base.joined(Label(SourceType.EXTERNAL)) if sources else taint.base,
        taint=sources,
        reasoning=point_to(desk, holding.root, asked.thought or holding.thought, holding.last_checkpoint),
    )


def _carried_fates(pending: PendingOffer) -> Iterator[CarriedFate]:
    for item in pending.items if pending.fates else ():
        if (known := pending.fates.get(item.id)) is not None:
            yield CarriedFate(item=item.id, fate=known.fate, verdict=known.refutation.receipt)


def _record_offer(pending: PendingOffer, body: HandoffInitiated, contents: tuple[Content, ...]) -> SignedReceipt:
    """Record an offer, unless the grant that it is made under was revoked. Raises `GrantRevokedError`."""
    bounds = pending.holding.bounds
    # A grant that is only tried out stops nobody, revoked or not.
    line = bounds.line if bounds.chain and not bounds.tried_out else ()
    try:
        return pending.desk.recording.record(
            pending.holding.working, body, contents, within=revocations(line), premise=pending.premise
        )
    except BudgetExhaustedError as refused:
        pending.refuse(revoked(bounds, whole_of(refused.account)))


def _baton(pending: PendingOffer, body: HandoffInitiated) -> Baton:
    holding, asked = pending.holding, pending.asked
    return Baton(
        handoff=body.handoff,
        root=holding.root,
        parent=holding.id,
        sender=holding.agent,
        principal=holding.principal,
        to=asked.to,
        relation=asked.relation,
        revision=0,
        task=asked.task,
        brief=asked.brief,
        items=pending.items,
        fates=pending.fates,
        missing=body.missing,
        deadline=asked.deadline,
    )


def _differences(asked: OfferRequest, offer: Offer) -> Iterator[str]:
    """Yield which of the caller's fields differ from those of an earlier offer."""
    baton = offer.baton
    if asked.to != baton.to:
        yield f"to ({baton.to}, now {asked.to})"
    if asked.task != baton.task:
        yield "task"
    if asked.relation is not baton.relation:
        yield f"relation ({baton.relation}, now {asked.relation})"
    before, now = to_document(baton.brief), to_document(asked.brief)
    yield from sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    carried = [item.value for item in baton.items]
    if any(value not in carried for value in asked.said):
        yield SAID
