"""Offering a task: the whole baton and the state in one commit, before anything of the child runs."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from batonpass.errors import (
    BudgetExhaustedError,
    GrantError,
    HandoffEndedError,
    HandoffRefusedError,
    KeyReusedError,
    NotFoundError,
    OfferedAlreadyError,
    PolicyRefusedError,
    StaleHeadError,
)
from batonpass.guard.completeness import require_complete, required_parts
from batonpass.guard.hops import require_hop, requires_lineage
from batonpass.guard.trust import require_verified
from batonpass.handoff.calls.limits import revocations, revoked
from batonpass.handoff.calls.receipts import fill_gap
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding, ref_of
from batonpass.handoff.starting import find_statements
from batonpass.handoff.transfer.asked import Asked
from batonpass.handoff.transfer.free_text import take_context
from batonpass.handoff.transfer.grant_terms import Given, give, kept
from batonpass.handoff.transfer.lineage import read_lineage
from batonpass.handoff.transfer.pending import PendingOffer
from batonpass.handoff.transfer.policy_gates import hold_takes_proof, hold_until, judge_offer
from batonpass.handoff.transfer.read_offer import Offer, author_of, read_offer
from batonpass.handoff.transfer.reasoning import keep_thought, point_to
from batonpass.handoff.transfer.verdict import find_unverified
from batonpass.model.baton import ABRIDGED, Baton, Brief, missing_parts
from batonpass.model.bodies import Gate, HandoffInitiated, Part
from batonpass.model.charge import whole_of
from batonpass.model.content import Content
from batonpass.model.content_names import BRIEF, TASK, TERMS
from batonpass.model.ids import Digest, HandoffId, new_handoff_id
from batonpass.model.items import Item
from batonpass.model.label import Label, SourceType, named_sources
from batonpass.model.lifecycle import WAITING, State
from batonpass.model.policy import UNRULED, HandoffPolicy
from batonpass.model.receipt import SignedReceipt
from batonpass.model.run import Handoff
from batonpass.model.trusted import unchecked_maker
from batonpass.store.port import Sender
from batonpass.wire.documents import encode_brief, to_document

# A key that is taken by one of these is free again: nothing of it will ever run.
_DEAD: Final = frozenset({State.CANCELLED, State.EXPIRED, State.DENIED})
_GENERATIONS: Final = 1000


_handoff: Final = unchecked_maker(Handoff)  # it repeats what its receipt says, which was checked

SAID: Final = "what is said besides"


class Offered(Struct, frozen=True, kw_only=True):
    """A handoff that was offered, now or before under the same key."""

    handoff: Handoff
    offer: Offer
    again: bool = False


def offer_task(desk: Desk, holding: Holding, asked: Asked, *, beside: tuple[Content, ...] = ()) -> Offered:
    """Offer a task; the same key in the same scope is the same handoff.

    Every door comes here, and adds contents of its own with `beside`. Raises `KeyReusedError` if the key was used for
    something else, `PolicyRefusedError` where a policy says so, and a `GrantError` where the sender cannot give what is
    asked for; both are recorded.
    """
    fingerprint = desk.secrets.digest(holding.root, b"offer", asked.described())
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
                policies=_policies(desk.policy, asked.policy),
                beside=beside,
            )
            return _pass(pending)
        except OfferedAlreadyError as taken:
            with desk.store.view() as view:
                known = view.get_handoff(HandoffId(taken.handoff))
                if known.state in _DEAD:
                    continue
                offer = read_offer(view, known)
            if offer.initiated.fingerprint != fingerprint:
                # What is not found in the fields is in what was said besides: less of it, or in another order.
                differences = tuple(_differences(asked, offer)) or (SAID,)
                raise KeyReusedError(known.id, differences) from None
            holding.handed_off.add(known.id)
            return Offered(handoff=known, offer=offer, again=True)
    raise NotFoundError("free key", str(asked.key))


def _policies(ruled: HandoffPolicy, own: HandoffPolicy | None) -> tuple[HandoffPolicy, ...]:
    """Return all that an offer is held to; a relay that was given no policy adds nothing to the caller's."""
    if own is None:
        return (ruled,)
    return (own,) if ruled == UNRULED else (ruled, own)


def _pass(pending: PendingOffer) -> Offered:
    """Gather what travels, ask one question after the other, and record the offer before anything of it runs."""
    _gather(pending)
    try:
        _check_policies(pending)
        _pass_gates(pending)
        _grant(pending)
    except (PolicyRefusedError, GrantError) as refusal:
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


def _key(desk: Desk, holding: Holding, asked: Asked, fingerprint: Digest, generation: int) -> Digest:
    if asked.key is None and generation == 0:
        return fingerprint
    given = fingerprint if asked.key is None else asked.key
    return desk.secrets.digest(holding.root, b"key", given.encode(), str(generation).encode())


def _gather(pending: PendingOffer) -> None:
    """Find all that travels with an offer: what humans said, what the sender knows, what is said besides."""
    desk, holding, asked = pending.desk, pending.holding, pending.asked
    noted = [desk.item(value, author_of(holding.agent), number) for number, value in enumerate(asked.said, 1)]
    try:
        statements = _look_around(pending, Sender(root=holding.root, watched=tuple(holding.watched)))
    except StaleHeadError:
        statements = _look_around(pending)
    holding.add(*statements)
    pending.context = take_context(
        desk,
        holding,
        asked.task,
        asked.context,
        policies=pending.policies,
        statements=statements,
        number=len(noted) + 1,
    )
    free = () if pending.context.item is None else (pending.context.item,)
    pending.items = (*statements, *holding.carried(asked.carry), *(item for item, _ in noted), *free)
    pending.contents = (*(content for _, content in noted), *pending.context.contents)
    required = [part for policy in pending.policies for part in required_parts(asked.relation, policy)]
    wanted = dict.fromkeys((*required, *desk.gates.minimum(asked.relation)))
    pending.missing = missing_parts(asked.relation, asked.brief, pending.items, wanted)


def _look_around(pending: PendingOffer, about: Sender | None = None) -> tuple[Item, ...]:
    """Read what an offer depends on, in one moment; return what humans said. Raises `StaleHeadError`, with `about`."""
    holding = pending.holding
    with pending.desk.store.view(about) as view:
        statements = tuple(find_statements(view, holding.root, holding.notes))
        if holding.watched:
            pending.unverified = tuple(find_unverified(view, holding.watched))
        if any(map(requires_lineage, pending.policies)):
            pending.lineage = read_lineage(view, holding.working.run)
    return statements


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


def _write(pending: PendingOffer) -> Offered:
    """Write an offer with its whole baton and the state in one commit: durable from here, this is the checkpoint.

    Raises `GrantRevokedError` if what it is made under was revoked meanwhile.
    """
    desk, holding, asked = pending.desk, pending.holding, pending.asked
    if holding.is_abridged(asked.carry):
        pending.missing = (*pending.missing, ABRIDGED)
    contents = (
        desk.text(TASK, asked.task),
        *pending.contents,
        *_besides(desk, asked, pending.given),
        *keep_thought(desk, asked.thought or holding.thought),
        *pending.beside,
    )
    # Under the lock from the label to its receipt: what comes in meanwhile is in the label, or comes after it.
    with holding.taint.lock:
        body = _initiated(pending)
        fill_gap(desk, holding)
        signed = _record_offer(pending, body, contents)
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
        baton=_baton(holding, asked, body, pending.items),
        receipt=signed.receipt.id,
        taint=body.taint,
        terms=pending.given.terms,
    )
    return Offered(handoff=opened, offer=offer)


def _initiated(pending: PendingOffer) -> HandoffInitiated:
    """Return an offer as its receipt says it, with the label of all that its sender knows and what of it taints."""
    desk, holding, asked, decision = pending.desk, pending.holding, pending.asked, pending.decision
    held = decision is not None or asked.hold
    taint = holding.taint
    untrusted = (item.id for item in pending.items if item.part is Part.UNTRUSTED and item.id not in taint.endorsed)
    sources = named_sources(holding.id, (*taint.entered, *untrusted))
    return HandoffInitiated(
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
        carries=tuple(map(ref_of, pending.items)),
        missing=pending.missing,
        unverified=pending.unverified,
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


def _besides(desk: Desk, asked: Asked, given: Given) -> Iterator[Content]:
    """Yield what an offer says of its task beyond the task, and what it grants, or would have been refused."""
    if asked.brief != Brief():
        yield desk.json(BRIEF, encode_brief(asked.brief))
    if given.terms is not None:
        yield kept(desk, TERMS, given.terms)
    if given.refusal is not None:
        yield desk.refusal(given.refusal)


def _record_offer(pending: PendingOffer, body: HandoffInitiated, contents: tuple[Content, ...]) -> SignedReceipt:
    """Record an offer, unless the grant that it is made under was revoked. Raises `GrantRevokedError`."""
    bounds = pending.holding.bounds
    # A grant that is only tried out stops nobody, revoked or not.
    line = bounds.line if bounds.chain and not bounds.tried_out else ()
    try:
        return pending.desk.recording.record(pending.holding.working, body, contents, within=revocations(line))
    except BudgetExhaustedError as refused:
        pending.refuse(revoked(bounds, whole_of(refused.account)))


def _baton(holding: Holding, asked: Asked, body: HandoffInitiated, items: tuple[Item, ...]) -> Baton:
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
        items=items,
        missing=body.missing,
        deadline=asked.deadline,
    )


def _differences(asked: Asked, offer: Offer) -> Iterator[str]:
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
