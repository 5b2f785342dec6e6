"""Offer a task: gather the baton, check policy, gates and grant, and write everything in one commit.

The offer is durable before anything of the receiver runs. The same key is the same handoff, so that a program that is
run again after a crash finds its handoffs instead of making new ones.
"""

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
    TaskInFlightError,
)
from batonpass.errors.handoff import TaskInFlightWarning
from batonpass.guard.baton.gaps import require_complete, required_parts
from batonpass.guard.baton.placeholder import find_hollow
from batonpass.guard.policy.hops import require_hop, requires_lineage
from batonpass.guard.policy.unverified_results import require_verified
from batonpass.handoff.approvals.gate_facts import hold_takes_proof, hold_until
from batonpass.handoff.grants.limit_use import revocations, revoked
from batonpass.handoff.grants.terms import give, kept
from batonpass.handoff.history.baton_revision import LOOK_EVERY
from batonpass.handoff.history.lineage import read_lineage
from batonpass.handoff.history.offers import Offer, author_of, find_statements, read_offer
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.known_agent import require_known
from batonpass.handoff.runtime.reasoning import keep_thought, point_to
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_state import Holding, Work
from batonpass.handoff.transfer.free_text import take_context
from batonpass.handoff.transfer.handoff_gates import judge_offer
from batonpass.handoff.transfer.inputs import find_fallen, find_renewed
from batonpass.handoff.transfer.offer_request import OfferRequest
from batonpass.handoff.transfer.pending_offer import PendingOffer
from batonpass.handoff.transfer.verdict import find_unverified
from batonpass.ledger.trace_scope import current_trace
from batonpass.model.base.content_names import BRIEF, POLICY, TASK, TERMS
from batonpass.model.base.ids import Digest, HandoffId, new_handoff_id
from batonpass.model.base.kinds import CarriedFate, Mode
from batonpass.model.base.label import Label, Source, SourceType, named_sources
from batonpass.model.base.lifecycle import WAITING, Carrier, State
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.baton.baton import ABRIDGED, Baton, Brief, missing_parts
from batonpass.model.baton.items import Item
from batonpass.model.bodies.body import Gate, HandoffInitiated, Part
from batonpass.model.grants.charge import whole_of
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Premise
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.offer_options import ChangedInputs
from batonpass.records.handoff import OPEN
from batonpass.records.stale_results import TreeFates
from batonpass.store.port import LedgerView
from batonpass.wire.documents import encode_brief, encode_policy, to_document

# A handoff in one of these states frees its key: nothing of it will ever run.
_DEAD: Final = frozenset({State.CANCELLED, State.EXPIRED, State.DENIED})
# A handoff in one of these states has a result, or is tried again when it is accepted. So its inputs matter.
_OVER: Final = frozenset({State.COMPLETED, State.VERIFIED, State.FAILED, State.DECLINED, State.REFUTED})
_GENERATIONS: Final = 1000
# We try again each time that somebody adds something between our look and our commit. So many times in a row is a
# fault and no race.
_TRIES: Final = 64


_handoff: Final = unchecked_maker(Handoff)  # it repeats its receipt, which was checked
_initiated_plainly: Final = unchecked_maker(HandoffInitiated)  # for an offer without flags that is not held
_NOTHING_SAID: Final = Brief()

IN_FLIGHT: Final = "would_deny.in_flight"
SAID: Final = "what is said besides"


class OfferedHandoff(Struct, frozen=True, kw_only=True):
    """A handoff that was offered: now, or before under the same key (`again`)."""

    handoff: Handoff
    offer: Offer
    again: bool = False
    in_flight: Handoff | None = None  # the same task, handed off by an earlier session and not over


def offer_task(
    desk: Desk, holding: Holding, asked: OfferRequest, *, beside: tuple[Content, ...] = ()
) -> OfferedHandoff:
    """Offer a task, or return the handoff that was offered before under the same key in the same scope.

    Every door comes here, and adds its own contents with `beside`. Raises `KeyReusedError` if the key was used for
    another task, `InputsChangedError` if it was used for this task with other inputs, `PolicyRefusedError` if a policy
    refuses the handoff, and a `GrantError` if the sender cannot give the grant. The last two are recorded first.
    """
    fingerprint = desk.secrets.digest(holding.root, b"offer", asked.described())
    replaces: HandoffId | None = None
    # A key can be used again once its handoff is dead, or its inputs have changed. Each new use is a generation, which
    # goes into the digest, so that the store can still refuse two handoffs under one key.
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
                policy=desk.policy_with(asked.policy),
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
                # If no field differs, the items do: some are missing, or their order is another.
                differences = tuple(_differences(asked, offer)) or (SAID,)
                raise KeyReusedError(known.id, differences) from None
            if changed:
                if asked.key is not None and asked.inputs is not ChangedInputs.FRESH:
                    raise InputsChangedError(known.id, changed) from None
                # Its result is about other inputs, and the caller insists on no key: this is a new handoff.
                replaces = known.id
                continue
            holding.handed_off.add(known.id)
            return OfferedHandoff(handoff=known, offer=offer, again=True)
    raise NotFoundError("free key", str(asked.key))


def _find_changed(view: LedgerView, holding: Holding, asked: OfferRequest, offer: Offer) -> tuple[str, ...]:
    """Return the inputs of a handoff that have changed since it was offered, in words; none unless it is over."""
    if offer.handoff.state not in _OVER or asked.inputs is ChangedInputs.SAME or holding.replaying:
        return ()
    return (*find_fallen(view, offer.handoff), *find_renewed(holding, offer.baton))


def _pass_in_time(pending: PendingOffer) -> OfferedHandoff:
    """Write an offer that is true at the moment of its commit. If the tree changed meanwhile, gather again.

    Raises `PremiseError` if the tree changes again and again.
    """
    for _ in range(_TRIES):
        try:
            return _pass(pending)
        except PremiseError:
            pending = pending.again()
    raise PremiseError(pending.holding.root)


def _pass(pending: PendingOffer) -> OfferedHandoff:
    """Gather the baton, run the checks one after the other, and record the offer.

    Raises `PremiseError` if we assumed something about the tree that is not true, or on which a refusal depends.
    """
    _gather(pending)
    try:
        _check_policies(pending)
        _check_in_flight(pending)
        _pass_gates(pending)
        _grant(pending)
    except (PolicyRefusedError, GrantError) as refusal:
        if not pending.looked:
            raise PremiseError(pending.holding.root) from None  # do not refuse on an assumption: look first
        pending.refuse(refusal)
    return _write(pending)


def _recall(desk: Desk, holding: Holding, key: Digest) -> None:
    """Find a handoff of a finished run. Raises `OfferedAlreadyError` if it exists, and `HandoffEndedError` if not."""
    with desk.store.view() as view:
        try:
            known = view.get_offer(holding.scope, key)
        except NotFoundError:
            raise HandoffEndedError(holding.id, "finished, and never handed this off") from None
    raise OfferedAlreadyError(known.id)


def _key(desk: Desk, holding: Holding, asked: OfferRequest, fingerprint: Digest, generation: int) -> Digest:
    if asked.key is None and generation == 0 and asked.again == 0:
        return fingerprint
    given = fingerprint if asked.key is None else asked.key
    repeated = (str(asked.again).encode(),) if asked.again else ()
    return desk.secrets.digest(holding.root, b"key", given.encode(), str(generation).encode(), *repeated)


def _gather(pending: PendingOffer) -> None:
    """Collect the items of the baton: statements of humans, items of the sender, and those given with this offer."""
    desk, holding, asked = pending.desk, pending.holding, pending.asked
    items: list[Item] = []
    contents: list[Content] = []
    for number, value in enumerate(asked.said, 1):
        item, content = desk.item(value, author_of(holding.agent), number, work=_work(holding, asked))
        items.append(item)
        contents.append(content)
    statements = _look(pending)
    known = holding.carried(asked.carry)
    policy = pending.policy
    if asked.context is not None or policy.sanitize_context:
        pending.context = context = take_context(
            desk,
            holding,
            asked,
            policy=policy,
            statements=statements,
            items=(*known, *items),
            number=len(items) + 1,
        )
        if context.item is not None:
            items.append(context.item)
        contents += context.contents
    pending.items = (*statements, *known, *items)
    pending.contents = tuple(contents)
    wanted = desk.gates.minimum(asked.relation)
    if policy.require:
        wanted = (*required_parts(asked.relation, policy), *wanted)
    hollow = find_hollow(asked.task, asked.brief, [item.value for item in pending.items])
    pending.missing = missing_parts(asked.relation, asked.brief, pending.items, wanted, hollow=hollow)


def _look(pending: PendingOffer) -> tuple[Item, ...]:
    """Return every statement of a human in the tree; note the unverified results, and the lineage if it is needed.

    Statements are only ever added, and everything that happens to a delivered handoff is in its stream. So a run that
    has looked before assumes that nothing was added, and the commit checks this assumption (the premise).
    """
    desk, holding = pending.desk, pending.holding
    if holding.baton is not None and holding.baton.fates:
        pending.fates = holding.baton.fates  # those that it was told itself, also about an earlier session
    # In a tree with a refuted result, the fate of items can change without a new verdict: a redone result is delivered.
    reads = pending.reads or holding.stated is None or holding.refutations > 0
    reads = (
        reads
        or not holding.acted_on.isdisjoint(holding.watched)
        or (bool(holding.session.roots) and _is_due(desk, holding))
    )
    if holding.stated is not None and not reads and not requires_lineage(pending.policy):
        # No read. If the assumption is wrong, the commit refuses the offer, and it is read then.
        pending.unverified = tuple(sorted(holding.watched))
        pending.premise = Premise(root=holding.root, statements=len(holding.stated), untouched=pending.unverified)
        return holding.stated
    with desk.store.view() as view:
        stated = holding.stated = tuple(find_statements(view, holding.root, holding.notes))
        watched = frozenset(holding.watched)
        pending.unverified = tuple(find_unverified(view, watched))
        # A handoff that somebody has acted on can only become unverified again by a new attempt, and a verified one
        # gets none: it is watched no longer. The others are read each time, because the premise that they are
        # untouched would fail at each commit.
        acted_on = watched.difference(pending.unverified)
        verified = {handoff for handoff in acted_on if view.get_handoff(handoff).state is State.VERIFIED}
        holding.acted_on = acted_on - verified
        holding.watched -= verified
        fates = TreeFates(view, holding.root)
        holding.refutations = fates.refutations
        if holding.session.roots:
            holding.inherits_fallen, holding.looked_for_fates = bool(fates.inherited), desk.clock.now()
        if holding.refutations or holding.inherits_fallen:
            known = [item.id for item in holding.carried(pending.asked.carry)]
            found = {item: fate for item in known if (fate := fates.find(item)) is not None}
            pending.fates = {**pending.fates, **found}
        if requires_lineage(pending.policy):
            pending.lineage = read_lineage(view, holding.working.run)
    holding.add(*stated)
    pending.looked = True
    # A premise is needed even now: before the commit, a human may add a statement or refute a result.
    pending.premise = Premise(root=holding.root, statements=len(stated), refutations=holding.refutations)
    return stated


def _is_due(desk: Desk, holding: Holding) -> bool:
    """Return whether an offer of a resumed root must look up the fate of its inherited items.

    No premise tells of a verdict in another tree. So such a root looks every few seconds, and at once if it was refuted
    in this process.
    """
    last = holding.looked_for_fates
    if last is None or holding.inherits_fallen or holding.id in desk.revised:
        return True
    return desk.clock.now() - last >= LOOK_EVERY


def _check_policies(pending: PendingOffer) -> None:
    """Refuse a hop that a policy forbids, or whose baton lacks a required part. Raises `PolicyRefusedError`."""
    asked, policy = pending.asked, pending.policy
    if asked.carrier is Carrier.WORKER and asked.to not in pending.desk.cards:
        require_known(pending.desk, asked.to, refuses=policy.known_agents)
    require_hop(asked.to, asked.task, pending.lineage, policy)
    require_complete(asked.relation, pending.missing, policy)
    require_verified(pending.unverified, policy)


def _check_in_flight(pending: PendingOffer) -> None:
    """Note whether an earlier session has handed off the same task, and it is not over. Raises `TaskInFlightError`.

    A sender who gives it a key, or says that it is a repetition, has thought of it.
    """
    asked, holding = pending.asked, pending.holding
    if not holding.session.in_flight or asked.key is not None or asked.again:
        return
    same = [one.handoff for one in holding.session.in_flight if (one.to, one.task) == (asked.to, asked.task)]
    if not same:
        return
    with pending.desk.store.view() as view:
        known = next((found for one in same if (found := view.get_handoff(one)).state in OPEN), None)
    if known is None:
        return
    if holding.working.mode is Mode.ENFORCED:
        raise TaskInFlightError(known.id, known.to, known.state)
    pending.in_flight = known
    pending.flags.append(IN_FLIGHT)


def _pass_gates(pending: PendingOffer) -> None:
    """Note the decision that holds an offer, and flags of decisions that would have. Raises `PolicyRefusedError`."""
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
    """Note the grant of the offer, or if grants are only tried out, that it would be refused. Raises `GrantError`."""
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
    """Write an offer with its whole baton and its state in one commit. From here on it is durable.

    Raises `GrantRevokedError` if the grant of the sender was revoked meanwhile, and `PremiseError` if the tree changed.
    """
    desk, holding, asked = pending.desk, pending.holding, pending.asked
    if holding.is_abridged(asked.carry):
        pending.missing = (*pending.missing, ABRIDGED)
    given = pending.given
    contents = [desk.text(TASK, asked.task), *pending.contents]
    if asked.brief != _NOTHING_SAID:
        contents.append(desk.json(BRIEF, encode_brief(asked.brief)))
    if asked.policy is not None and asked.policy.binds_receiver:
        contents.append(desk.json(POLICY, encode_policy(asked.policy)))
    if given.terms is not None:
        contents.append(kept(desk, TERMS, given.terms))
    if given.refusal is not None:
        contents.append(desk.refusal(given.refusal))
    elif (known := pending.in_flight) is not None:
        contents.append(desk.refusal(str(TaskInFlightWarning(known.id, known.to, known.state))))
    if (thought := asked.thought or holding.thought) is not None:
        contents += keep_thought(desk, thought)
    contents += pending.beside
    # The lock is held from reading the label until the receipt is written. So content that arrives meanwhile is either
    # in the label, or its receipt comes after this one.
    with holding.taint.lock:
        body = _initiated(pending)
        fill_gap(desk, holding)
        # Before the commit: Ctrl-C may come between the commit and our note of it, and the close must find it then.
        holding.unsure_offers.add(pending.handoff)
        signed = _record_offer(pending, body, tuple(contents))
    context = pending.context
    if context is not None and (context.found or (context.item is not None and context.scanned)):
        desk.recording.record(holding.working, context.body(pending.handoff, holding.id))
    # Each unverified result is named once: a lead with a thousand children does not name it a thousand times.
    holding.watched.difference_update(pending.unverified)
    holding.handed_off.add(pending.handoff)
    holding.unsure_offers.discard(pending.handoff)
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
        policy=asked.policy,
    )
    return OfferedHandoff(handoff=opened, offer=offer, in_flight=pending.in_flight)


def _initiated(pending: PendingOffer) -> HandoffInitiated:
    """Return the receipt body of an offer, with the label of everything that its sender knows, and its taint."""
    desk, holding, asked, decision = pending.desk, pending.holding, pending.asked, pending.decision
    held = decision is not None or asked.hold
    taint = holding.taint
    entered: set[Source] = set(taint.entered)
    for item in pending.items:
        if item.part is Part.UNTRUSTED and item.id not in taint.endorsed:
            entered.add(item.id)
    sources = named_sources(holding.id, entered) if entered else ()
    # The short way skips the checks of the fields: ids, digests and enumerations were made here or checked in the
    # request. Names of rules come from the policy file, so an offer with flags or a hold is checked.
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
        retries=asked.retries,
        carries=holding.refs(pending.items),
        missing=pending.missing,
        unverified=pending.unverified,
        fates=tuple(_carried_fates(pending)),
        replaces=pending.replaces,
        flags=tuple(pending.flags),
        rule=None if decision is None else decision.rule,
        gate=None if decision is None else decision.gate,
        until=hold_until(desk) if held else None,
        proven=held and hold_takes_proof(desk, holding.working.mode, decision),
        approvals=1 if decision is None else decision.approvals,
        terms=None if pending.given.terms is None else pending.given.terms.digest,
        label=taint.base.joined(Label(SourceType.EXTERNAL)) if sources else taint.base,
        taint=sources,
        reasoning=point_to(desk, holding.root, asked.thought or holding.thought, holding.last_checkpoint),
        suspect=() if pending.context is None else pending.context.suspect,
        trace=current_trace(),
    )


def _carried_fates(pending: PendingOffer) -> Iterator[CarriedFate]:
    for item in pending.items if pending.fates else ():
        if (known := pending.fates.get(item.id)) is not None:
            yield CarriedFate(item=item.id, fate=known.fate, verdict=known.refutation.receipt)


def _record_offer(pending: PendingOffer, body: HandoffInitiated, contents: tuple[Content, ...]) -> SignedReceipt:
    """Record an offer, unless a grant of the sender or above it was revoked. Raises `GrantRevokedError`."""
    bounds = pending.holding.bounds
    # A grant that is only tried out stops nobody, even if it was revoked.
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
        suspect=frozenset(body.suspect),
        deadline=asked.deadline,
    )


def _work(holding: Holding, asked: OfferRequest) -> Work:
    """Return the role and the phase of the sender: as it gives them with this offer, or as they were given to it."""
    role, phase = holding.work
    return asked.brief.role or role, asked.brief.phase or phase


def _differences(asked: OfferRequest, offer: Offer) -> Iterator[str]:
    """Yield the fields of the request that differ from an earlier offer under the same key."""
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
