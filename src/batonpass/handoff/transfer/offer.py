"""Offering a task: the whole baton and the state in one commit, before anything of the child runs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from batonpass.errors import (
    BudgetExhaustedError,
    GrantError,
    HandoffEndedError,
    HandoffRefusedError,
    KeyReusedError,
    NotFoundError,
    OfferedAlreadyError,
    PolicyRefusedError,
)
from batonpass.guard.completeness import require_complete, required_parts
from batonpass.guard.gates import Decision
from batonpass.guard.hops import Lineage, require_hop, requires_lineage
from batonpass.guard.trust import require_verified
from batonpass.handoff.bounds import TERMS
from batonpass.handoff.calls.begin import MESSAGE
from batonpass.handoff.calls.limits import revocations, revoked
from batonpass.handoff.calls.policy_gates import hold_takes_proof, hold_until, judge_offer
from batonpass.handoff.calls.receipts import fill_gap
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding, ref_of
from batonpass.handoff.starting import find_statements
from batonpass.handoff.transfer.asked import Asked
from batonpass.handoff.transfer.free_text import take_context
from batonpass.handoff.transfer.grant_terms import WOULD_DENY, kept, terms_of_offer
from batonpass.handoff.transfer.lineage import read_lineage
from batonpass.handoff.transfer.read_offer import BRIEF, TASK, Offer, author_of, read_offer
from batonpass.handoff.transfer.verdict import find_unverified
from batonpass.ledger.standing import TRIED_OUT
from batonpass.model.baton import Baton, Brief, missing_parts
from batonpass.model.bodies import Gate, HandoffFailed, HandoffInitiated, Part
from batonpass.model.charge import whole_of
from batonpass.model.content import Content
from batonpass.model.grant import Signed, Terms
from batonpass.model.ids import Digest, HandoffId, new_handoff_id
from batonpass.model.items import Item
from batonpass.model.label import Label, SourceType, named_sources
from batonpass.model.lifecycle import WAITING, State
from batonpass.model.policy import UNRULED, HandoffPolicy
from batonpass.model.receipt import SignedReceipt
from batonpass.model.run import Handoff
from batonpass.wire.canonical import encode
from batonpass.wire.documents import encode_brief, to_document

# A key that is taken by one of these is free again: nothing of it will ever run.
_DEAD: Final = frozenset({State.CANCELLED, State.EXPIRED, State.DENIED})
_GENERATIONS: Final = 1000

# Among the missing parts: the sender knows more items than travel by themselves; `carry` selects others.
ABRIDGED: Final = "older-items"

SAID: Final = "what is said besides"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A handoff that was offered, now or before under the same key."""

    handoff: Handoff
    offer: Offer
    again: bool = False


def offer_task(desk: Desk, holding: Holding, asked: Asked) -> Offered:
    """Offer a task; the same key in the same scope is the same handoff.

    Raises `KeyReusedError` if the key was used for something else, `PolicyRefusedError` where a policy says so, and a
    `GrantError` where the sender cannot give what is asked for; both are recorded.
    """
    fingerprint = desk.secrets.digest(holding.root, b"offer", encode(asked.fields()))
    for generation in range(_GENERATIONS):
        key = _key(desk, holding, asked, fingerprint, generation)
        try:
            if holding.replaying:
                _recall(desk, holding, key)
            return _offer(desk, holding, asked, fingerprint, key)
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


def _offer(desk: Desk, holding: Holding, asked: Asked, fingerprint: Digest, key: Digest) -> Offered:
    policies = _policies(desk, asked)
    noted = [desk.item(value, author_of(holding.agent), number) for number, value in enumerate(asked.said, 1)]
    unverified: tuple[HandoffId, ...] = ()
    lineage = None
    with desk.store.view() as view:
        statements = tuple(find_statements(view, holding.root, holding.notes))
        if holding.watched:
            unverified = tuple(find_unverified(view, holding.watched))
        if any(map(requires_lineage, policies)):
            lineage = read_lineage(view, holding.working.run)
    holding.add(*statements)
    context = take_context(
        desk,
        holding,
        asked.task,
        asked.context,
        policies=policies,
        statements=statements,
        number=len(noted) + 1,
    )
    said = (*(item for item, _ in noted), *(() if context.item is None else (context.item,)))
    items = (*statements, *holding.carried(asked.carry), *said)
    required = (part for policy in policies for part in required_parts(asked.relation, policy))
    wanted = dict.fromkeys((*required, *desk.gates.minimum(asked.relation)))
    missing = missing_parts(asked.relation, asked.brief, items, wanted)
    handoff = new_handoff_id(desk.clock.now())
    try:
        decision, flags = _judge(
            desk,
            holding,
            asked,
            policies=policies,
            lineage=lineage,
            items=items,
            missing=missing,
            unverified=unverified,
        )
        terms, told = _grant(desk, holding, asked, handoff)
    except (PolicyRefusedError, GrantError) as refusal:
        _record_refusal(desk, holding, asked, refusal)
        raise
    if holding.is_abridged(asked.carry):
        missing = (*missing, ABRIDGED)
    state = WAITING[asked.carrier] if decision is None and not asked.hold else State.HELD
    contents = (
        desk.text(TASK, asked.task),
        *(content for _, content in noted),
        *context.contents,
        *_besides(desk, asked, terms),
    )
    body = HandoffInitiated(
        handoff=handoff,
        run=holding.id,
        to=asked.to,
        carrier=asked.carrier,
        state=state,
        relation=asked.relation,
        scope=holding.scope,
        key=key,
        fingerprint=fingerprint,
        deadline=asked.deadline,
        carries=tuple(ref_of(item) for item in items),
        missing=missing,
        unverified=unverified,
        flags=(*flags, *told),
        rule=None if decision is None else decision.rule,
        gate=None if decision is None else decision.gate,
        until=hold_until(desk) if state is State.HELD else None,
        proven=state is State.HELD and hold_takes_proof(desk, Gate.NONE if decision is None else decision.gate),
        approvals=1 if decision is None else decision.approvals,
        terms=None if terms is None else terms.digest,
    )
    with holding.taint.lock:
        body = _labelled(holding, body)
        fill_gap(desk, holding)
        signed = _record_offer(desk, holding, asked, body, contents)
    if context.found or (context.item is not None and context.scanned):
        desk.recording.record(holding.working, context.body(handoff, holding))
    # Said once: a lead with a thousand children does not say it a thousand times.
    holding.watched.difference_update(unverified)
    holding.handed_off.add(handoff)
    opened = Handoff(
        id=handoff,
        root=holding.root,
        parent=holding.id,
        to=asked.to,
        carrier=asked.carrier,
        state=state,
        attempt=0,
        run=None,
        initiated=signed.digest,
        seq=signed.receipt.seq,
        scope=holding.scope,
        key=key,
        deadline=asked.deadline,
    )
    offer = Offer(
        handoff=opened,
        initiated=body,
        revision=signed.digest,
        baton=_baton(holding, asked, body, items),
        receipt=signed.receipt.id,
        taint=body.taint,
        terms=terms,
    )
    return Offered(handoff=opened, offer=offer)


def _grant(
    desk: Desk, holding: Holding, asked: Asked, handoff: HandoffId
) -> tuple[Signed[Terms] | None, tuple[str, ...]]:
    """Return what is granted with an offer, and where a grant is only tried out, that it is, or would be refused."""
    tried_out = (TRIED_OUT,) if holding.bounds.tried_out else ()
    try:
        terms = terms_of_offer(desk, holding, asked.grant, to=asked.to, handoff=handoff, deadline=asked.deadline)
    except GrantError:
        if not tried_out:
            raise
        return None, (*tried_out, WOULD_DENY)
    return terms, tried_out


def _labelled(holding: Holding, body: HandoffInitiated) -> HandoffInitiated:
    """Return an offer with the label of all that its sender knows, and with what of that came from outside."""
    taint = holding.taint
    outside = (item.item for item in body.carries if item.part is Part.UNTRUSTED and item.item not in taint.endorsed)
    sources = named_sources(holding.id, (*taint.entered, *outside))
    label = taint.base.joined(Label(SourceType.EXTERNAL)) if sources else taint.base
    return replace(body, label=label, taint=sources)


def _besides(desk: Desk, asked: Asked, terms: Signed[Terms] | None) -> Iterator[Content]:
    """Yield what an offer says of its task beyond the task, and what it grants."""
    if asked.brief != Brief():
        yield desk.json(BRIEF, encode_brief(asked.brief))
    if terms is not None:
        yield kept(desk, TERMS, terms)


def _record_offer(
    desk: Desk, holding: Holding, asked: Asked, body: HandoffInitiated, contents: tuple[Content, ...]
) -> SignedReceipt:
    """Record an offer, unless the grant that it is made under was revoked. Raises `GrantRevokedError`."""
    line = holding.bounds.line if holding.bounds.chain else ()
    try:
        return desk.recording.record(holding.working, body, contents, within=revocations(line))
    except BudgetExhaustedError as refused:
        refusal = revoked(holding.bounds, whole_of(refused.account))
        _record_refusal(desk, holding, asked, refusal)
        raise refusal from None


def _judge(
    desk: Desk,
    holding: Holding,
    asked: Asked,
    *,
    policies: tuple[HandoffPolicy, ...],
    lineage: Lineage | None,
    items: tuple[Item, ...],
    missing: tuple[str, ...],
    unverified: tuple[HandoffId, ...],
) -> tuple[Decision | None, tuple[str, ...]]:
    """Return what holds an offer, and what would have, had it been enforced. Raises `PolicyRefusedError`."""
    for policy in policies:
        require_hop(asked.to, asked.task, lineage, policy)
        require_complete(asked.relation, missing, policy)
        require_verified(unverified, policy)
    decision, flags = judge_offer(
        desk,
        holding,
        to=asked.to,
        relation=asked.relation,
        brief=asked.brief,
        task=asked.task,
        items=items,
        missing=missing,
        unverified=len(unverified),
    )
    if decision is not None and decision.gate is Gate.DENY:
        raise HandoffRefusedError(decision.rule, desk.gates.where(decision.rule), decision.sentence)
    return decision, flags


def _policies(desk: Desk, asked: Asked) -> tuple[HandoffPolicy, ...]:
    """Return the policies that an offer is held to; a relay that was given none adds nothing to the caller's."""
    if asked.policy is None:
        return (desk.policy,)
    return (asked.policy,) if desk.policy == UNRULED else (desk.policy, asked.policy)


def _record_refusal(desk: Desk, holding: Holding, asked: Asked, refusal: PolicyRefusedError | GrantError) -> None:
    """Record that a policy or a grant did not let a handoff go: the task, and why. Nothing of it runs."""
    refused = HandoffFailed(
        handoff=new_handoff_id(desk.clock.now()),
        parent=holding.id,
        run=holding.id,
        attempt=0,
        to=asked.to,
        error=refusal.code,
    )
    fill_gap(desk, holding)
    contents = (desk.text(TASK, asked.task), desk.text(MESSAGE, str(refusal)))
    desk.recording.record(holding.working, refused, contents)


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
