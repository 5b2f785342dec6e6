"""Offers, read back from receipts and contents alone: the baton as its receiver sees it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.content_names import ANSWER, BRIEF, POLICY, QUESTION, REPORT, TASK
from batonpass.model.base.ids import AgentId, ContentId, Digest, PrincipalId, ReceiptId, RunId, StreamId
from batonpass.model.base.kinds import Kind
from batonpass.model.base.label import Source
from batonpass.model.baton.baton import Answer, Baton, Brief
from batonpass.model.baton.items import Item, ItemValue, Report, Statement
from batonpass.model.bodies.body import (
    Carried,
    HandoffAnswered,
    HandoffAsked,
    HandoffEndorsed,
    HandoffInitiated,
    HandoffRevised,
    Part,
    RunRecorded,
)
from batonpass.model.grants.grant import Signed, Terms
from batonpass.model.ledger.content import ContentRef, StoredContent, content_digest
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.receipt_taint import offered_taint
from batonpass.model.ledger.run import Handoff, Run, Stated
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.records.revision import travelling
from batonpass.records.stale_results import read_fates
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.canonical import digest
from batonpass.wire.documents import decode_brief, decode_item, decode_policy, decode_report, decode_work, is_report
from batonpass.wire.receipt_codec import decode_receipt

GONE: Final = "(erased)"

_REVISIONS: Final = (HandoffAnswered, HandoffRevised)  # each makes the next revision of the baton
_READ: Final = frozenset({TASK, BRIEF, POLICY, QUESTION, ANSWER})


class Offer(Struct, frozen=True, kw_only=True):
    """An offer as it was recorded, with all later revisions of its baton."""

    handoff: Handoff
    initiated: HandoffInitiated
    revision: Digest  # the receipt of the latest revision
    baton: Baton
    asked: tuple[HandoffAsked, ...] = ()
    broken: frozenset[ContentId] = frozenset()  # contents that do not match the digest in their receipt
    open_question: str | None = None  # asked and not yet answered
    receipt: ReceiptId | None = None  # of the offer itself
    offered: Receipt | None = None  # that receipt, if it was read back
    parent: Run | None = None  # the run that made the offer, if it was read back
    taint: tuple[Source, ...] = ()  # sources that came with the offer or with an answer
    endorsed: frozenset[Source] = frozenset()  # those that people endorsed on the handoff
    terms: Signed[Terms] | None = None  # its terms, if this process made it
    policy: HandoffPolicy | None = None  # the demands of its sender, besides the policy of the relay
    tampered: bool = False  # its task, its brief or an answer does not match the digest in its receipt


def read_offer(view: LedgerView, handoff: Handoff) -> Offer:
    """Return an offer and its baton. Raises `NotFoundError` if there is no such handoff."""
    receipt = decode_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq).payload)
    body = receipt.body
    if not isinstance(body, HandoffInitiated):
        raise InvalidValueError("handoff", f"{handoff.id} does not begin with an offer; run `batonpass ledger verify`")
    parent = view.get_run(handoff.parent)
    history = _history(view, handoff)
    now = travelling(body, (known.body for known, _ in history))
    contents = _contents(view, [receipt, *(known for known, _ in history)], now.carries)
    items, broken = read_items(view, now.carries, contents, receipt)
    answers = tuple(_answers([known for known, _ in history], contents))
    revisions = [(known, at) for known, at in history if isinstance(known.body, _REVISIONS)]
    brief = _brief(receipt.content.get(BRIEF), contents)
    return Offer(
        handoff=handoff,
        initiated=body,
        revision=revisions[-1][1] if revisions else handoff.initiated,
        baton=Baton(
            handoff=handoff.id,
            root=handoff.root,
            parent=handoff.parent,
            sender=parent.agent,
            principal=parent.principal,
            to=handoff.to,
            relation=body.relation,
            revision=len(revisions),
            task=_words(receipt.content.get(TASK), contents),
            brief=brief,
            items=items,
            fates=read_fates(view, now.fates),
            answers=answers,
            missing=body.missing,
            deadline=body.deadline,
            suspect=frozenset(body.suspect).union(
                *(known.body.suspect for known, _ in history if isinstance(known.body, HandoffAnswered))
            ),
        ),
        asked=tuple(known.body for known, _ in history if isinstance(known.body, HandoffAsked)),
        broken=broken,
        open_question=_open_question([known for known, _ in history], contents),
        receipt=receipt.id,
        offered=receipt,
        parent=parent,
        taint=tuple(dict.fromkeys((*offered_taint(body), *_answered_taint(history)))),
        endorsed=frozenset(known.body.source for known, _ in history if isinstance(known.body, HandoffEndorsed)),
        policy=_policy(receipt.content[POLICY], contents) if POLICY in receipt.content else None,
        tampered=any(_is_tampered(known, contents) for known in (receipt, *(known for known, _ in history))),
    )


def read_items(
    view: LedgerView,
    carried: Sequence[Carried],
    contents: dict[ContentId, StoredContent],
    receipt: Receipt | None = None,
) -> tuple[tuple[Item, ...], frozenset[ContentId]]:
    """Return the items behind some references, and which of their contents do not match their digest."""
    stated = {statement.item: statement for statement in _statements(view, carried, receipt)}
    items, broken = [], set()
    for ref in carried:
        stored = contents.get(ref.item)
        intact = is_intact(stored, ref.digest)
        if stored is not None and stored.body is not None and not intact:
            broken.add(ref.item)
        if (statement := stated.get(ref.item)) is not None:
            items.append(statement_item(statement, stored if intact else None))
        else:
            items.append(_item(ref, stored if intact else None, view))
    return tuple(items), frozenset(broken)


def statement_item(statement: Stated, stored: StoredContent | None) -> Item:
    """Return the words of a human as an item."""
    value = None if stored is None or stored.body is None else Statement(stored.body.decode())
    return Item(
        id=statement.item,
        digest=statement.digest,
        part=Part.INTENT,
        by=statement.by,
        at=statement.at,
        value=value,
    )


def is_intact(stored: StoredContent | None, expected: Digest) -> bool:
    """Return whether a content exists and matches the digest in its receipt."""
    if stored is None or stored.salt is None or stored.body is None:
        return False
    return content_digest(stored.salt, stored.body) == expected


def read_report(view: LedgerView, handoff: Handoff) -> Report | None:
    """Return the report of the latest attempt; None without an attempt or a report, or if it was erased."""
    return None if handoff.run is None else read_report_of(view, handoff.run)


def read_report_of(view: LedgerView, run: RunId) -> Report | None:
    """Return the report in the last receipt of a run; None if there is none, or if it was erased."""
    stream = view.get_stream(StreamId(run))
    receipt = decode_receipt(view.get_receipt_at(stream.id, stream.seq).payload)
    ref = receipt.content.get(REPORT)
    if ref is None:
        return None
    stored = view.get_content(ref.id)
    if stored.body is None:
        return None
    return decode_report(stored.body) if ref.media_type == "application/json" else Report(result=stored.body.decode())


def read_words(view: LedgerView, ref: ContentRef | None) -> str:
    """Return a text that a receipt names, or a note that it was erased."""
    return "" if ref is None else _words(ref, {ref.id: view.get_content(ref.id)})


def _answered_taint(history: Sequence[tuple[Receipt, Digest]]) -> Iterator[Source]:
    for known, _ in history:
        if isinstance(known.body, _REVISIONS):
            yield from known.body.taint


def _history(view: LedgerView, handoff: Handoff) -> list[tuple[Receipt, Digest]]:
    """Return the receipts in the stream of a handoff."""
    try:
        view.get_stream(StreamId(handoff.id))
    except NotFoundError:
        return []
    # Retries say nothing about the offer, and there may be hundreds.
    found = view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), but=(Kind.HANDOFF_RETRIED,)))
    return [(decode_receipt(stored.payload), digest(stored.payload)) for stored in found]


def _is_tampered(receipt: Receipt, contents: dict[ContentId, StoredContent]) -> bool:
    for name, ref in receipt.content.items():
        stored = contents.get(ref.id) if name in _READ else None
        if stored is not None and stored.body is not None and not is_intact(stored, ref.digest):
            return True
    return False


def _contents(
    view: LedgerView,
    receipts: Sequence[Receipt],
    carried: Sequence[Carried],
) -> dict[ContentId, StoredContent]:
    wanted = {ref.id for receipt in receipts for name, ref in receipt.content.items() if name in _READ}
    wanted.update(ref.item for ref in carried)
    return {content.id: content for content in view.find_contents(sorted(wanted))}


def _statements(view: LedgerView, carried: Sequence[Carried], receipt: Receipt | None) -> Iterator[Stated]:
    if receipt is not None and receipt.root is not None and any(ref.part is Part.INTENT for ref in carried):
        yield from view.find_statements(receipt.root)


def _item(ref: Carried, stored: StoredContent | None, view: LedgerView) -> Item:
    if stored is None or stored.body is None:
        by, at = _origin(view, ref.item)
        return Item(id=ref.item, digest=ref.digest, part=ref.part, by=by, at=at, value=None)
    if ref.part is Part.COMPLETED and is_report(stored.body):
        by, at = _origin(view, ref.item)
        value: ItemValue = decode_report(stored.body)
    else:
        value, by, at = decode_item(stored.body)
    role, phase = decode_work(stored.body)
    return Item(id=ref.item, digest=ref.digest, part=ref.part, by=by, at=at, value=value, role=role, phase=phase)


def _origin(view: LedgerView, item: ContentId) -> tuple[PrincipalId, datetime]:
    """Return who recorded an item whose words were erased, and when."""
    introduced = view.get_content(item).receipt
    if introduced is None:
        raise NotFoundError("receipt of content", item)
    receipt = decode_receipt(view.get_receipt(introduced).payload)
    match receipt.body:
        case RunRecorded() | HandoffRevised() as body:
            return body.by, receipt.at
        case _:
            return author_of(view.get_run(RunId(receipt.stream)).agent), receipt.at


def _answers(history: Sequence[Receipt], contents: dict[ContentId, StoredContent]) -> Iterator[Answer]:
    question = ""
    for receipt in history:
        match receipt.body:
            case HandoffAsked():
                question = _words(receipt.content.get(QUESTION), contents)
            case HandoffAnswered() as body:
                answer = _words(receipt.content.get(ANSWER), contents)
                waives = body.waives is not None
                yield Answer(
                    question=question,
                    answer=answer,
                    by=body.by,
                    at=receipt.at,
                    waives=waives,
                    suspect=ANSWER in body.suspect,
                )
            case _:
                continue


def _open_question(history: Sequence[Receipt], contents: dict[ContentId, StoredContent]) -> str | None:
    question = None
    for receipt in history:
        if isinstance(receipt.body, HandoffAsked):
            question = _words(receipt.content.get(QUESTION), contents)
        elif isinstance(receipt.body, HandoffAnswered):
            question = None
    return question


def _brief(ref: ContentRef | None, contents: dict[ContentId, StoredContent]) -> Brief:
    stored = None if ref is None else contents.get(ref.id)
    return Brief() if stored is None or stored.body is None else decode_brief(stored.body)


def _policy(ref: ContentRef, contents: dict[ContentId, StoredContent]) -> HandoffPolicy | None:
    stored = contents.get(ref.id)
    return None if stored is None or stored.body is None else decode_policy(stored.body)


def read_brief(view: LedgerView, offered: Receipt) -> Brief:
    """Return the brief of an offer: everything about the task besides the task itself."""
    ref = offered.content.get(BRIEF)
    return Brief() if ref is None else _brief(ref, {ref.id: view.get_content(ref.id)})


def read_policy(view: LedgerView, offered: Receipt) -> HandoffPolicy | None:
    """Return the policy that the sender of an offer brought along."""
    ref = offered.content.get(POLICY)
    return None if ref is None else _policy(ref, {ref.id: view.get_content(ref.id)})


def _words(ref: ContentRef | None, contents: dict[ContentId, StoredContent]) -> str:
    stored = None if ref is None else contents.get(ref.id)
    if stored is None or stored.body is None:
        return GONE
    return stored.body.decode("utf-8", "replace")


def author_of(agent: AgentId) -> PrincipalId:
    """Return an agent as the author of the items it recorded."""
    return PrincipalId(f"agent:{agent}")


def find_statements(view: LedgerView, root: RunId, known: dict[ContentId, Item]) -> Iterator[Item]:
    """Yield everything that humans said in a tree so far. Items in `known` are not read again."""
    stated = list(view.find_statements(root))
    unread = [statement.item for statement in stated if statement.item not in known]
    contents = {content.id: content for content in view.find_contents(unread)} if unread else {}
    for statement in stated:
        yield known.get(statement.item) or statement_item(statement, contents.get(statement.item))
