"""Carriage: whether binding items arrived at every hop, and which other items were left behind, from receipts alone.

Intent, constraints and exclusions bind every run below: if one of them is missing, it was lost. Senders may leave out
decisions, files and other items; then this tells who left out which.

A receipt names an item by id and digest. So following the offers down from the root shows which items each sender had,
handed on, added, or was released from. A sender has the items of the baton it accepted, and those its own stream
recorded before the offer. Streams have no common order until they are sequenced, and none is needed here.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from batonpass.errors import EditedError, NotFoundError
from batonpass.model.base.content_names import REPORT
from batonpass.model.base.ids import AgentId, ContentId, Digest, HandoffId, PrincipalId, ReceiptId, RunId, StreamId
from batonpass.model.base.lifecycle import DELIVERED
from batonpass.model.baton.baton import ABRIDGED, INHERITED
from batonpass.model.bodies.body import (
    Carried,
    HandoffAccepted,
    HandoffCompleted,
    HandoffInitiated,
    Part,
    RunRecorded,
    RunRelaxed,
    RunStarted,
)
from batonpass.model.ledger.content import Place, content_digest
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff
from batonpass.records.revision import find_revisions
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import digest

_NOTES: Final = "run"  # the family of run.recorded and run.relaxed


class CarriageFault(StrEnum):
    """The ways in which carriage can go wrong."""

    LOST = "lost"
    CHANGED = "changed"
    UNRECORDED = "unrecorded"
    NOT_ENTITLED = "not-entitled"
    ALTERED = "altered"
    OTHER_BATON = "other-baton"


class CarriedWords(StrEnum):
    """Whether the text of an item is still there, unchanged."""

    KEPT = "kept"  # there, with the digest that was signed
    ERASED = "erased"
    ABSENT = "absent"  # not in a bundle without contents; else verification reports it as missing
    ALTERED = "altered"


class Origin(Struct, frozen=True, kw_only=True):
    """The first record of an item."""

    receipt: ReceiptId
    run: RunId
    by: PrincipalId
    at_hop: int | None  # the hop whose sender recorded it; None if it was recorded elsewhere in the tree


class Passenger(Struct, frozen=True, kw_only=True):
    """One item on the way down: its origin, whether it arrived, and its text."""

    ref: Carried
    origin: Origin | None  # None if nobody recorded it
    arrived: bool
    words: CarriedWords
    body: bytes | None


class Relaxed(Struct, frozen=True, kw_only=True):
    """A constraint or exclusion that no longer binds from some hop on."""

    ref: Carried
    receipt: ReceiptId
    by: PrincipalId


class CarriageFinding(Struct, frozen=True, kw_only=True):
    """One fault, and where it is."""

    fault: CarriageFault
    hop: int
    ref: Carried | None
    receipt: ReceiptId


class CarriageHop(Struct, frozen=True, kw_only=True):
    """One offer on the way down: the items of its sender, and those that it handed on."""

    number: int
    handoff: HandoffId
    sender: AgentId
    run: RunId
    to: AgentId
    receipt: ReceiptId  # of the offer
    carried: tuple[Carried, ...]  # items that bind everybody further down
    same: int  # how many of them have the same id and digest as one hop before
    added: tuple[Carried, ...]  # the others: recorded by the sender, added with the offer, or said elsewhere since
    relaxed: tuple[Relaxed, ...]
    accepted: ReceiptId | None
    attempt: int | None  # the attempt that leads further down; at the last hop, the latest
    countersigned: bool  # that attempt signed for this very baton
    left: tuple[Carried, ...] = ()  # non-binding items that the sender had and did not hand on
    abridged: bool = False  # left out because there were too many, not by choice
    had: int = 0  # how many items the sender had, binding or not
    passed: int = 0  # how many of them it handed on unchanged

    @property
    def dropped(self) -> int:
        """Return how many items the sender had and left out by choice, or lost."""
        return self.had - self.passed - self.cut

    @property
    def cut(self) -> int:
        """Return how many items were left out because there were too many."""
        return len(self.left) if self.abridged else 0

    @property
    def fidelity(self) -> float:
        """Return the share of the sender's items that it handed on unchanged; 1 if it had none."""
        return self.passed / self.had if self.had else 1.0


class Carriage(Struct, frozen=True, kw_only=True):
    """The way of intent, constraints and exclusions from a root to one handoff."""

    handoff: HandoffId
    root: RunId
    principal: PrincipalId
    hops: tuple[CarriageHop, ...]
    items: tuple[Passenger, ...]  # all items on the way, in order of appearance
    later: tuple[Passenger, ...]  # statements of humans in this tree that this handoff does not have
    findings: tuple[CarriageFinding, ...]
    left: tuple[Passenger, ...] = ()  # left behind at some hop, in the order of the hops
    upstream: int = 0  # how many items existed on the way from the root, without those that were relaxed
    kept: int = 0  # how many of them the handoff carries unchanged

    @property
    def fidelity(self) -> float:
        """Return the share of all items on the way from the root that arrived unchanged; 1 if there were none."""
        return self.kept / self.upstream if self.upstream else 1.0

    @property
    def binds(self) -> bool:
        """Return whether every binding item arrived unchanged."""
        return not self.findings

    @property
    def whole(self) -> bool:
        """Return whether every known item arrived: none was lost, and none was left behind."""
        return self.binds and not self.left

    @property
    def arrived(self) -> tuple[Passenger, ...]:
        """Return the items that the handoff carries."""
        return tuple(item for item in self.items if item.arrived)


class _Offer(Struct, frozen=True, kw_only=True):
    receipt: Receipt
    body: HandoffInitiated
    digest: Digest
    opening: Receipt  # the first receipt of the offering run
    notes: tuple[Receipt, ...]  # items it recorded, and releases, before the offer
    results: tuple["_Delivered", ...] = ()  # results that its children had delivered before the offer


class _Delivered(Struct, frozen=True):
    """The close-out of a child, and its agent."""

    receipt: Receipt
    body: HandoffCompleted
    by: AgentId


class _Way(Struct):
    """The state while following the offers down."""

    root: RunId
    principal: PrincipalId
    bound: dict[ContentId, Carried] = field(default_factory=dict)
    given: dict[ContentId, Carried] = field(default_factory=dict)  # non-binding items that the sender had received
    left: dict[ContentId, Carried] = field(default_factory=dict)
    existed: dict[ContentId, Carried] = field(default_factory=dict)  # all that any sender had and was bound by
    seen: dict[ContentId, Carried] = field(default_factory=dict)
    origins: dict[ContentId, Origin] = field(default_factory=dict)
    findings: list[CarriageFinding] = field(default_factory=list)

    def note(self, fault: CarriageFault, hop: int, ref: Carried | None, receipt: ReceiptId) -> None:
        """Note that something is wrong."""
        self.findings.append(CarriageFinding(fault=fault, hop=hop, ref=ref, receipt=receipt))

    def meet(self, ref: Carried, origin: Origin | None) -> None:
        """Remember an item, and its origin if that is new."""
        self.seen.setdefault(ref.item, ref)
        if origin is not None:
            self.origins.setdefault(ref.item, origin)


def prove_carriage(view: LedgerView, handoff: Handoff) -> Carriage:
    """Follow intent, constraints and exclusions from the root down to a handoff.

    Raises `EditedError` if the receipts do not lead up to a root.
    """
    offers = list(_offers(view, handoff))[::-1]
    start = offers[0].opening.body
    if not isinstance(start, RunStarted):
        raise EditedError("the run begins with neither a start nor an acceptance", stream=offers[0].receipt.stream)
    way = _Way(root=start.run, principal=start.principal)
    hops = tuple(
        _hop(view, way, number, offer, _acceptance(view, handoff, offers, number))
        for number, offer in enumerate(offers, 1)
    )
    arrived = {ref.item for ref in hops[-1].carried}
    offered = {ref.item: ref for ref in offers[-1].body.carries}
    kept = sum(offered.get(item) == ref for item, ref in way.existed.items())
    items = tuple(_passengers(view, way, way.seen, arrived=arrived))
    for item in items:
        if item.words is CarriedWords.ALTERED and item.origin is not None:
            place = item.origin.at_hop or len(hops)
            way.note(CarriageFault.ALTERED, place, item.ref, item.origin.receipt)
    return Carriage(
        handoff=handoff.id,
        root=way.root,
        principal=way.principal,
        hops=hops,
        items=items,
        later=tuple(_later(view, way)),
        findings=tuple(way.findings),
        left=tuple(_passengers(view, way, way.left, arrived=arrived)),
        upstream=len(way.existed),
        kept=kept,
    )


def _offers(view: LedgerView, handoff: Handoff) -> Iterator[_Offer]:
    """Yield the offer of a handoff, the offer that its sender accepted, and so on up to the root."""
    seen: set[StreamId] = set()
    # A derived row only says where to look; the receipt there must be the expected one.
    stream, seq, wanted = StreamId(handoff.parent), handoff.seq, handoff.id
    while True:
        stored = view.get_receipt_at(stream, seq)
        receipt = read_receipt(stored)
        body = receipt.body
        if not isinstance(body, HandoffInitiated) or body.handoff != wanted:
            raise EditedError(f"the offer of {wanted} should be here", stream=stream, seq=seq, field="handoff")
        if stream in seen:
            raise EditedError("the run is its own ancestor", stream=stream, field="parent")
        seen.add(stream)
        opening = read_receipt(view.get_receipt_at(stream, 1))
        noted = map(read_receipt, view.find_receipts(ReceiptQuery(stream=stream, kind=_NOTES)))
        notes = sorted((note for note in noted if note.seq < seq), key=lambda note: note.seq)
        yield _Offer(
            receipt=receipt,
            body=body,
            digest=digest(stored.payload),
            opening=opening,
            notes=tuple(notes),
            results=tuple(_results(view, RunId(stream), receipt)),
        )
        if not isinstance(opening.body, HandoffAccepted):
            return
        stream, wanted = StreamId(opening.body.parent), opening.body.handoff
        seq = view.get_handoff(wanted).seq


def _results(view: LedgerView, run: RunId, offer: Receipt) -> Iterator[_Delivered]:
    """Yield the results of the children of a run at the time of an offer, the first child first."""
    for child in sorted(view.find_handoffs(parent=run), key=lambda child: child.seq):
        if child.run is None or child.seq >= offer.seq:
            continue
        # A run may have many children: of each, only the last receipt is read.
        head = view.get_stream(StreamId(child.run))
        closing = read_receipt(view.get_receipt_at(head.id, head.seq))
        if isinstance(closing.body, HandoffCompleted) and closing.at <= offer.at:
            # Once it was given to somebody else, the handoff names another agent than the run that delivered.
            by = child.to if child.state in DELIVERED else view.get_run(child.run).agent
            yield _Delivered(closing, closing.body, by)


def _acceptance(view: LedgerView, handoff: Handoff, offers: list[_Offer], number: int) -> Receipt | None:
    """Return the receipt that began the attempt leading on from a hop; None if nobody accepted the last offer."""
    if number < len(offers):
        return offers[number].opening
    return None if handoff.run is None else read_receipt(view.get_receipt_at(StreamId(handoff.run), 1))


def _hop(view: LedgerView, way: _Way, number: int, offer: _Offer, acceptance: Receipt | None) -> CarriageHop:
    above = set(way.bound)
    relaxed = tuple(_take_notes(way, number, offer))
    before = above if number > 1 else set(way.bound)  # for the root, its own items are the starting point
    carried = {ref.item: ref for ref in offer.body.carries}
    for bound in way.bound.values():
        if carried.get(bound.item) != bound:
            fault = CarriageFault.CHANGED if bound.item in carried else CarriageFault.LOST
            way.note(fault, number, bound, offer.receipt.id)
    same = sum(carried.get(item) == bound for item, bound in way.bound.items() if item in before)
    had, passed = len(way.bound), sum(carried.get(item) == bound for item, bound in way.bound.items())
    for each in relaxed:
        way.existed.pop(each.ref.item, None)
    way.existed |= way.bound
    inherited = {item: ref for item, ref in carried.items() if ref.part in INHERITED}
    for ref in inherited.values():
        if ref.item not in way.seen:
            _take_new(view, way, number, offer, ref)
    way.bound = inherited
    known = _known(way, number, offer)
    way.given = {item: ref for item, ref in carried.items() if ref.part not in INHERITED}
    left = {item: ref for item, ref in known.items() if item not in carried}
    way.left |= left
    way.existed |= known
    countersigned = acceptance is not None and _is_countersigned(view, offer, acceptance)
    if acceptance is not None and _baton(acceptance) is not None and not countersigned:
        way.note(CarriageFault.OTHER_BATON, number, None, acceptance.id)
    return CarriageHop(
        number=number,
        handoff=offer.body.handoff,
        sender=_agent(offer.opening),
        run=offer.body.run,
        to=_agent(acceptance) if acceptance is not None else offer.body.to,
        receipt=offer.receipt.id,
        carried=tuple(inherited.values()),
        same=same,
        added=tuple(ref for item, ref in inherited.items() if item not in before),
        relaxed=relaxed,
        accepted=None if acceptance is None else acceptance.id,
        attempt=acceptance.body.attempt
        if acceptance is not None and isinstance(acceptance.body, HandoffAccepted)
        else None,
        countersigned=countersigned,
        left=tuple(left.values()),
        abridged=ABRIDGED in offer.body.missing,
        had=had + len(known),
        passed=passed + len(known) - len(left),
    )


def _known(way: _Way, number: int, offer: _Offer) -> dict[ContentId, Carried]:
    """Return the non-binding items that a sender had: given to it, recorded by it, or delivered by its children."""
    known = dict(way.given)
    for note in offer.notes:
        if isinstance(note.body, RunRecorded):
            for ref in note.body.items:
                if ref.part not in INHERITED:
                    known[ref.item] = ref
                    way.origins.setdefault(ref.item, _origin(note, note.body.by, number))
    for one in offer.results:
        report = one.receipt.content.get(REPORT)
        given = () if report is None else (Carried(item=report.id, digest=report.digest, part=Part.COMPLETED),)
        for ref in (*one.body.gives, *given):
            known[ref.item] = ref
            way.origins.setdefault(ref.item, _origin(one.receipt, PrincipalId(f"agent:{one.by}"), number))
    return known


def _take_notes(way: _Way, number: int, offer: _Offer) -> Iterator[Relaxed]:
    """Add the items that a run recorded before its offer, and yield the constraints that were relaxed."""
    opening = offer.opening
    if isinstance(opening.body, RunStarted) and (intent := opening.content.get(Part.INTENT)) is not None:
        ref = Carried(item=intent.id, digest=intent.digest, part=Part.INTENT)
        way.bound[ref.item] = ref
        way.meet(ref, _origin(opening, opening.body.principal, number))
    for note in offer.notes:
        match note.body:
            case RunRecorded() as body:
                for ref in body.items:
                    if ref.part in INHERITED:
                        way.bound[ref.item] = ref
                        way.meet(ref, _origin(note, body.by, number))
            case RunRelaxed() as body if body.item in way.bound:
                ref = way.bound.pop(body.item)
                author = way.origins.get(ref.item)
                if ref.part is Part.INTENT or body.by not in {way.principal, None if author is None else author.by}:
                    way.note(CarriageFault.NOT_ENTITLED, number, ref, note.id)
                yield Relaxed(ref=ref, receipt=note.id, by=body.by)


def _take_new(view: LedgerView, way: _Way, number: int, offer: _Offer, ref: Carried) -> None:
    """Find the origin of an item that the sender received from nobody above."""
    own = {content.id: content.digest for content in offer.receipt.content.values()}
    if own.get(ref.item) == ref.digest:
        origin: Origin | None = _origin(offer.receipt, PrincipalId(f"agent:{_agent(offer.opening)}"), number)
    else:
        origin = _find_origin(view, way.root, ref)
    way.meet(ref, origin)
    if origin is None:
        way.note(CarriageFault.UNRECORDED, number, ref, offer.receipt.id)


def _find_origin(view: LedgerView, root: RunId, ref: Carried) -> Origin | None:
    """Return the origin of an item elsewhere in the tree: every offer carries all statements of humans so far."""
    stored = next(iter(view.find_contents([ref.item])), None)
    if stored is None or stored.receipt is None:
        return None
    try:
        receipt = read_receipt(view.get_receipt(stored.receipt))
    except NotFoundError:
        return None
    if receipt.root != root or not isinstance(receipt.body, RunRecorded) or ref not in receipt.body.items:
        return None
    return _origin(receipt, receipt.body.by, None)


def _passengers(
    view: LedgerView, way: _Way, refs: Mapping[ContentId, Carried], *, arrived: set[ContentId]
) -> Iterator[Passenger]:
    stored = {content.id: content for content in view.find_contents(list(refs))}
    for ref in refs.values():
        content = stored.get(ref.item)
        if content is None or (content.body is None and content.place is not Place.ERASED):
            words = CarriedWords.ABSENT
        elif content.body is None or content.salt is None:
            words = CarriedWords.ERASED
        else:
            words = (
                CarriedWords.KEPT if content_digest(content.salt, content.body) == ref.digest else CarriedWords.ALTERED
            )
        yield Passenger(
            ref=ref,
            origin=way.origins.get(ref.item),
            arrived=ref.item in arrived,
            words=words,
            body=content.body if content is not None and words is CarriedWords.KEPT else None,
        )


def _later(view: LedgerView, way: _Way) -> Iterator[Passenger]:
    """Yield the statements of humans in this tree that nobody on the way knew."""
    said = [
        Carried(item=stated.item, digest=stated.digest, part=Part.INTENT) for stated in view.find_statements(way.root)
    ]
    unknown = {ref.item: ref for ref in said if ref.item not in way.seen}
    for ref in unknown.values():
        if (origin := _find_origin(view, way.root, ref)) is not None:
            way.origins[ref.item] = origin
    yield from _passengers(view, way, unknown, arrived=set())


def _is_countersigned(view: LedgerView, offer: _Offer, acceptance: Receipt) -> bool:
    baton = _baton(acceptance)
    if baton is None or baton == offer.digest:
        return baton is not None
    # An answer makes the next revision of a baton, and so do results that no longer stand.
    revisions = find_revisions(view, view.get_handoff(offer.body.handoff))
    return any(baton == revision.digest for revision in revisions)


def _baton(acceptance: Receipt) -> Digest | None:
    return acceptance.body.baton if isinstance(acceptance.body, HandoffAccepted) else None


def _agent(opening: Receipt) -> AgentId:
    if isinstance(opening.body, RunStarted | HandoffAccepted):
        return opening.body.agent
    raise EditedError("the run begins with neither a start nor an acceptance", stream=opening.stream, seq=1)


def _origin(receipt: Receipt, by: PrincipalId, hop: int | None) -> Origin:
    return Origin(receipt=receipt.id, run=RunId(receipt.stream), by=by, at_hop=hop)
