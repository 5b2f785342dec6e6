"""Imported receipts: which program they come from, and when things happened according to it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from batonpass.errors import NotFoundError
from batonpass.model.base.content_names import SOURCE
from batonpass.model.base.ids import ContentId, StreamId
from batonpass.model.ledger.content import StoredContent
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.records.text import find_in_chunks, read_receipt
from batonpass.store.port import LedgerView

IMPORTED: Final = "imported, unsigned"
PARTLY: Final = "partly imported, unsigned"

_NEAR: Final = 8  # receipts at either end of a stream; one of them has a time


class Source(Struct, frozen=True, kw_only=True):
    """The origin of a receipt that was not recorded by the act itself."""

    program: str | None = None
    session: str | None = None
    key: str | None = None  # its id there
    at: datetime | None = None  # when it happened, according to the source
    imported: bool = False  # from a transcript, which nobody signed
    link: str | None = None
    subagent: str | None = None
    model: str | None = None  # the one that made the call, as its program says
    teller: str = "a transcript"  # if it was imported: from where


class Timed(Struct, frozen=True, kw_only=True):
    """Receipts with the times at which things happened, and how many of them were imported."""

    receipts: tuple[Receipt, ...]
    imported: int

    @property
    def mark(self) -> str | None:
        """Return the mark for imported receipts; None if none were imported."""
        if not self.imported:
            return None
        return IMPORTED if self.imported == len(self.receipts) else PARTLY


def timed(view: LedgerView, receipts: Sequence[Receipt]) -> Timed:
    """Return receipts with the times from their sources; the recorded time is only that of the import."""
    wanted = [receipt.content[SOURCE].id for receipt in receipts if SOURCE in receipt.content]
    contents = {content.id: content for content in find_in_chunks(view, wanted)}
    sources = [source_of(receipt, contents) for receipt in receipts]
    times = [None if source is None or not source.imported else source.at for source in sources]
    for order in (range(len(receipts)), reversed(range(len(receipts)))):
        # An imported receipt without a time gets that of its neighbour in the stream.
        latest: dict[StreamId, datetime] = {}
        for number in order:
            source, stream = sources[number], receipts[number].stream
            if source is not None and source.imported and times[number] is None:
                times[number] = latest.get(stream)
            if (known := times[number]) is not None:
                latest[stream] = known
    return Timed(
        receipts=tuple(
            receipt if at is None else replace(receipt, at=at) for receipt, at in zip(receipts, times, strict=True)
        ),
        imported=sum(source is not None and source.imported for source in sources),
    )


def timed_run(view: LedgerView, run: Run) -> tuple[Run, str | None]:
    """Return a run with the times from its sources, and a mark if its beginning was imported."""
    stream = StreamId(run.id)
    try:
        if SOURCE not in read_receipt(view.get_receipt_at(stream, 1)).content:
            return run, None
        last = view.get_stream(stream).seq
        seqs = sorted({*range(1, min(last, _NEAR) + 1), *range(max(1, last - _NEAR), last + 1)})
        found = timed(view, [read_receipt(view.get_receipt_at(stream, seq)) for seq in seqs])
    except NotFoundError:
        return run, None  # a receipt was deleted; verification reports it
    return run_between(run, found.receipts[0], found.receipts[-1]), found.mark and IMPORTED


def run_between(run: Run, first: Receipt, last: Receipt) -> Run:
    """Return a run with the times of its first and last receipt, if it was imported."""
    if SOURCE not in first.content:
        return run
    return replace(run, started_at=first.at, ended_at=None if run.ended_at is None else max(first.at, last.at))


def read_source(view: LedgerView, receipt: Receipt) -> Source | None:
    """Return the source of a receipt; None if the act itself recorded it."""
    if SOURCE not in receipt.content:
        return None
    return source_of(receipt, {content.id: content for content in view.find_contents([receipt.content[SOURCE].id])})


def when(view: LedgerView, receipt: Receipt) -> datetime:
    """Return when something happened: according to its source, else when it was recorded."""
    return happened_at(receipt, read_source(view, receipt))


def happened_at(receipt: Receipt, source: Source | None) -> datetime:
    """Return when something happened, given its source."""
    return receipt.at if source is None or source.at is None else source.at


def source_of(receipt: Receipt, contents: Mapping[ContentId, StoredContent]) -> Source | None:
    """Return the source of a receipt, from contents that were read already."""
    if SOURCE not in receipt.content:
        return None
    held = contents.get(receipt.content[SOURCE].id)
    try:
        document = msgspec.json.decode(held.body) if held is not None and held.body is not None else None
    except (msgspec.DecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        # The source was erased. We still know that the act itself did not record this.
        return Source(imported=True)
    words = {name: value for name, value in document.items() if isinstance(value, str)}
    return Source(
        program=words.get("source"),
        session=words.get("session"),
        key=words.get("key"),
        at=_moment(words.get("at")),
        imported=document.get("imported") is True,
        link=words.get("link"),
        subagent=words.get("subagent"),
        model=words.get("model"),
    )


def _moment(text: str | None) -> datetime | None:
    try:
        at = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if at is None or at.tzinfo is None else at.astimezone(UTC)
