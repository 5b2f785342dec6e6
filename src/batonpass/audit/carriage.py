"""Whether what binds everybody has arrived, and what was left behind: hop by hop, from receipts alone.

Intent, constraints and exclusions bind everybody further down: one that is not there was lost. Decisions, files and
whatever else a sender knows it may leave behind; then who did so is told, and what.

A receipt names an item by its id and by the digest of its words. So whoever follows the offers from the root down sees
what each sender had, what it handed on, what it added, and what somebody entitled to it took away. What each sender had
is what the baton that it accepted held, and what its own stream recorded before the offer: streams have no common order
before they are sequenced, and need none for this.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from batonpass.errors import EditedError, NotFoundError
from batonpass.model.base.ids import AgentId, ContentId, Digest, HandoffId, PrincipalId, ReceiptId, RunId, StreamId
from batonpass.model.baton.baton import ABRIDGED, INHERITED
from batonpass.model.bodies.body import (
    Carried,
    HandoffAccepted,
    HandoffInitiated,
    Kind,
    Part,
    RunRecorded,
    RunRelaxed,
    RunStarted,
)
from batonpass.model.ledger.content import Place, content_digest
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import digest

_NOTES: Final = (Kind.RUN_RECORDED, Kind.RUN_RELAXED)


class CarriageFault(StrEnum):
    """What can be wrong with how items were carried."""

    LOST = "lost"
    CHANGED = "changed"
    UNRECORDED = "unrecorded"
    NOT_ENTITLED = "not-entitled"
    ALTERED = "altered"
    OTHER_BATON = "other-baton"


class CarriedWords(StrEnum):
    """What became of the words of an item."""

    KEPT = "kept"  # they are there, and are what was committed to
    ERASED = "erased"
    ABSENT = "absent"  # a bundle without words; else `verify` will say that they are missing
    ALTERED = "altered"


class Origin(Struct, frozen=True, kw_only=True):
    """Where an item was recorded first."""

    receipt: ReceiptId
    run: RunId
    by: PrincipalId
    at_hop: int | None  # the hop whose sender recorded it; None for what was said elsewhere in the tree


class Passenger(Struct, frozen=True, kw_only=True):
    """An item that was on the way: where it came from, whether it arrived, and its words."""

    ref: Carried
    origin: Origin | None  # None if nobody recorded it
    arrived: bool
    words: CarriedWords
    body: bytes | None


class Relaxed(Struct, frozen=True, kw_only=True):
    """A constraint or an exclusion that stopped binding from some hop on."""

    ref: Carried
    receipt: ReceiptId
    by: PrincipalId


class CarriageFinding(Struct, frozen=True, kw_only=True):
    """Something that is wrong, and where."""

    fault: CarriageFault
    hop: int
    ref: Carried | None
    receipt: ReceiptId


class CarriageHop(Struct, frozen=True, kw_only=True):
    """One offer on the way down: what its sender had, and what it handed on."""

    number: int
    handoff: HandoffId
    sender: AgentId
    run: RunId
    to: AgentId
    receipt: ReceiptId  # of the offer
    carried: tuple[Carried, ...]  # what is inherited by everybody further down
    same: int  # so many of them have the id and the digest that they had one hop before
    added: tuple[Carried, ...]  # the others: recorded by the sender, said with the offer, or said elsewhere since
    relaxed: tuple[Relaxed, ...]
    accepted: ReceiptId | None
    attempt: int | None  # which of its attempts leads on; at the last hop, the latest
    countersigned: bool  # that attempt signed for exactly this baton
    left: tuple[Carried, ...] = ()  # what its sender knew, does not bind anybody, and was not handed on
    abridged: bool = False  # they were left because there were too many, and not because somebody chose


class Carriage(Struct, frozen=True, kw_only=True):
    """How intent, constraints and exclusions travelled from a root to one handoff."""

    handoff: HandoffId
    root: RunId
    principal: PrincipalId
    hops: tuple[CarriageHop, ...]
    items: tuple[Passenger, ...]  # all that ever were on the way, in the order in which they came
    later: tuple[Passenger, ...]  # what humans said in this tree and this handoff does not know of
    findings: tuple[CarriageFinding, ...]
    left: tuple[Passenger, ...] = ()  # what was left behind at some hop, in the order of the hops

    @property
    def binds(self) -> bool:
        """Return whether everything arrived that had to, byte for byte: what binds everybody."""
        return not self.findings

    @property
    def whole(self) -> bool:
        """Return whether everything arrived that anybody on the way knew: nothing was lost, and nothing left behind."""
        return self.binds and not self.left

    @property
    def arrived(self) -> tuple[Passenger, ...]:
        """Return what the handoff carries."""
        return tuple(item for item in self.items if item.arrived)


class _Offer(Struct, frozen=True, kw_only=True):
    receipt: Receipt
    body: HandoffInitiated
    digest: Digest
    opening: Receipt  # the first receipt of the run that offers
    notes: tuple[Receipt, ...]  # what that run recorded and was released from, before the offer


class _Way(Struct):
    """What is known on the way down."""

    root: RunId
    principal: PrincipalId
    bound: dict[ContentId, Carried] = field(default_factory=dict)
    given: dict[ContentId, Carried] = field(default_factory=dict)  # what the sender was handed and binds nobody
    left: dict[ContentId, Carried] = field(default_factory=dict)
    seen: dict[ContentId, Carried] = field(default_factory=dict)
    origins: dict[ContentId, Origin] = field(default_factory=dict)
    findings: list[CarriageFinding] = field(default_factory=list)

    def meet(self, ref: Carried, origin: Origin | None) -> None:
        """Remember an item, and where it came from if that is new."""
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
    items = tuple(_passengers(view, way, way.seen, arrived=arrived))
    for item in items:
        if item.words is CarriedWords.ALTERED and item.origin is not None:
            place = item.origin.at_hop or len(hops)
            way.findings.append(
                CarriageFinding(fault=CarriageFault.ALTERED, hop=place, ref=item.ref, receipt=item.origin.receipt)
            )
    return Carriage(
        handoff=handoff.id,
        root=way.root,
        principal=way.principal,
        hops=hops,
        items=items,
        later=tuple(_later(view, way)),
        findings=tuple(way.findings),
        left=tuple(_passengers(view, way, way.left, arrived=arrived)),
    )


def _offers(view: LedgerView, handoff: Handoff) -> Iterator[_Offer]:
    """Yield the offer of a handoff, the offer that its sender accepted, and so on up to the root's."""
    seen: set[StreamId] = set()
    # A derived row says only where to look; what stands there has to be what is looked for.
    stream, seq, wanted = StreamId(handoff.parent), handoff.seq, handoff.id
    while True:
        stored = view.get_receipt_at(stream, seq)
        receipt = read_receipt(stored)
        body = receipt.body
        if not isinstance(body, HandoffInitiated) or body.handoff != wanted:
            raise EditedError(f"here should stand the offer of {wanted}", stream=stream, seq=seq, field="handoff")
        if stream in seen:
            raise EditedError("the run is its own ancestor", stream=stream, field="parent")
        seen.add(stream)
        opening = read_receipt(view.get_receipt_at(stream, 1))
        notes = sorted(
            (
                note
                for kind in _NOTES
                for note in map(read_receipt, view.find_receipts(ReceiptQuery(stream=stream, kind=kind)))
                if note.seq < seq
            ),
            key=lambda note: note.seq,
        )
        yield _Offer(receipt=receipt, body=body, digest=digest(stored.payload), opening=opening, notes=tuple(notes))
        if not isinstance(opening.body, HandoffAccepted):
            return
        stream, wanted = StreamId(opening.body.parent), opening.body.handoff
        seq = view.get_handoff(wanted).seq


def _acceptance(view: LedgerView, handoff: Handoff, offers: list[_Offer], number: int) -> Receipt | None:
    """Return the receipt with which the attempt began that leads on from a hop; None if nobody took the last one."""
    if number < len(offers):
        return offers[number].opening
    return None if handoff.run is None else read_receipt(view.get_receipt_at(StreamId(handoff.run), 1))


def _hop(view: LedgerView, way: _Way, number: int, offer: _Offer, acceptance: Receipt | None) -> CarriageHop:
    above = set(way.bound)
    relaxed = tuple(_take_notes(way, number, offer))
    before = above if number > 1 else set(way.bound)  # what the root itself recorded is where everything begins
    carried = {ref.item: ref for ref in offer.body.carries}
    for bound in way.bound.values():
        if carried.get(bound.item) != bound:
            fault = CarriageFault.CHANGED if bound.item in carried else CarriageFault.LOST
            way.findings.append(CarriageFinding(fault=fault, hop=number, ref=bound, receipt=offer.receipt.id))
    same = sum(carried.get(item) == bound for item, bound in way.bound.items() if item in before)
    inherited = {item: ref for item, ref in carried.items() if ref.part in INHERITED}
    for ref in inherited.values():
        if ref.item not in way.seen:
            _take_new(view, way, number, offer, ref)
    way.bound = inherited
    left = _leave(way, number, offer, carried)
    countersigned = acceptance is not None and _is_countersigned(view, offer, acceptance)
    if acceptance is not None and _baton(acceptance) is not None and not countersigned:
        way.findings.append(
            CarriageFinding(fault=CarriageFault.OTHER_BATON, hop=number, ref=None, receipt=acceptance.id)
        )
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
        left=left,
        abridged=ABRIDGED in offer.body.missing,
    )


def _leave(way: _Way, number: int, offer: _Offer, carried: Mapping[ContentId, Carried]) -> tuple[Carried, ...]:
    """Return what a sender knew before it offered, binds nobody, and is not in the offer."""
    known = dict(way.given)
    for note in offer.notes:
        if isinstance(note.body, RunRecorded):
            for ref in note.body.items:
                if ref.part not in INHERITED:
                    known[ref.item] = ref
                    way.origins.setdefault(ref.item, _origin(note, note.body.by, number))
    way.given = {item: ref for item, ref in carried.items() if ref.part not in INHERITED}
    left = {item: ref for item, ref in known.items() if item not in carried}
    way.left |= left
    return tuple(left.values())


def _take_notes(way: _Way, number: int, offer: _Offer) -> Iterator[Relaxed]:
    """Add what a run recorded before it offered, and yield what it was released from."""
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
                    way.findings.append(
                        CarriageFinding(fault=CarriageFault.NOT_ENTITLED, hop=number, ref=ref, receipt=note.id)
                    )
                yield Relaxed(ref=ref, receipt=note.id, by=body.by)


def _take_new(view: LedgerView, way: _Way, number: int, offer: _Offer, ref: Carried) -> None:
    """Find out where something came from that the sender had from nobody above it."""
    own = {content.id: content.digest for content in offer.receipt.content.values()}
    if own.get(ref.item) == ref.digest:
        origin: Origin | None = _origin(offer.receipt, _author(_agent(offer.opening)), number)
    else:
        origin = _find_origin(view, way.root, ref)
    way.meet(ref, origin)
    if origin is None:
        way.findings.append(
            CarriageFinding(fault=CarriageFault.UNRECORDED, hop=number, ref=ref, receipt=offer.receipt.id)
        )


def _find_origin(view: LedgerView, root: RunId, ref: Carried) -> Origin | None:
    """Return where something was recorded elsewhere in the tree: every offer carries all that humans said so far."""
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
    view: LedgerView,
    way: _Way,
    refs: Mapping[ContentId, Carried],
    *,
    arrived: set[ContentId],
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
    """Yield what humans said in the tree and nobody on the way knew when it handed off."""
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
    # An answer is the next revision of a baton, and carries the same items.
    answers = view.find_receipts(ReceiptQuery(stream=StreamId(offer.body.handoff), kind=Kind.HANDOFF_ANSWERED))
    return any(baton == digest(answer.payload) for answer in answers)


def _baton(acceptance: Receipt) -> Digest | None:
    return acceptance.body.baton if isinstance(acceptance.body, HandoffAccepted) else None


def _agent(opening: Receipt) -> AgentId:
    if isinstance(opening.body, RunStarted | HandoffAccepted):
        return opening.body.agent
    raise EditedError("the run begins with neither a start nor an acceptance", stream=opening.stream, seq=1)


def _author(agent: AgentId) -> PrincipalId:
    return PrincipalId(f"agent:{agent}")


def _origin(receipt: Receipt, by: PrincipalId, hop: int | None) -> Origin:
    return Origin(receipt=receipt.id, run=RunId(receipt.stream), by=by, at_hop=hop)
