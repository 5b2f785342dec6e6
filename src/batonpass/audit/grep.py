"""Search in receipts: their signed fields, and the contents they name."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Self

import msgspec
import re2
from msgspec import Struct

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.ids import HANDOFF, RELAY, RUN, HandoffId, ReceiptId, RunId, StreamId
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.records.text import Text, read_receipt, read_texts
from batonpass.store.port import LedgerView, ReceiptQuery

# Ids and digests contain short words by chance: a match in them must be this long and touch an end.
_LEAST_OF_ID: Final = 4
_AROUND: Final = 60
_STREAMS_KEPT: Final = 10_000
_OPAQUE: Final = frozenset(
    {
        "call",
        "children.head",
        "children.run",
        "contents",
        "cosigner",
        "ended.head",
        "ended.run",
        "handoff",
        "id",
        "old_key",
        "parent",
        "previous",
        "public_key",
        "recorder.key",
        "recorder.relay",
        "relay",
        "root",
        "run",
        "run_key",
        "session",
        "stream",
    }
)


class Match(Struct, frozen=True, kw_only=True):
    """One match."""

    receipt: ReceiptId
    stream: StreamId
    seq: int
    kind: str
    at: datetime
    agent: str
    field: str  # a field of the signed bytes, or `content.` and a name
    line: int | None  # in a content; None in a signed field
    before: str
    found: str
    after: str


class SearchPattern:
    """A regular expression with linear running time for every pattern and text. Raises `InvalidValueError`."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        options = re2.Options()
        options.log_errors = False
        options.case_sensitive = not ignore_case
        try:
            self._compiled = re2.compile(pattern, options)
        except re2.error as error:
            reason = error.args[0]
            problem = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise InvalidValueError("pattern", f"is not a regular expression of RE2: {problem}") from None

    @classmethod
    def of_words(cls, words: str) -> Self:
        """Return the pattern of words as they are, in upper or lower case."""
        return cls(re2.escape(words), ignore_case=True)

    def find(self, text: str) -> tuple[int, int] | None:
        """Return the start and end of the first match."""
        found = self._compiled.search(text)
        return None if found is None else (found.start(), found.end())


def find_matches(view: LedgerView, pattern: SearchPattern, query: ReceiptQuery) -> Iterator[Match]:
    """Yield every match in the receipts of a query, in order, one at a time."""

    @lru_cache(_STREAMS_KEPT)
    def known_agent(stream: StreamId) -> str:
        return agent_of(view, stream)

    for stored in view.find_receipts(query):
        yield from find_in_receipt(view, pattern, stored, known_agent(stored.stream))


def find_in_receipt(view: LedgerView, pattern: SearchPattern, stored: StoredReceipt, agent: str) -> Iterator[Match]:
    """Yield every match in one receipt of an agent: in its signed fields, then in the contents that it names."""
    receipt = read_receipt(stored)
    for field, line, text, (start, end) in _places(view, pattern, stored, receipt):
        yield Match(
            receipt=stored.id,
            stream=stored.stream,
            seq=stored.seq,
            kind=stored.kind,
            at=receipt.at,
            agent=agent,
            field=field,
            line=line,
            before=text[max(0, start - _AROUND) : start],
            found=text[start:end],
            after=text[end : end + _AROUND],
        )


def _places(
    view: LedgerView, pattern: SearchPattern, stored: StoredReceipt, receipt: Receipt
) -> Iterator[tuple[str, int | None, str, tuple[int, int]]]:
    for field, value in _signed_fields(stored.payload):
        if (span := pattern.find(value)) is not None and _counts(field, value, span):
            yield field, None, value, span
    for name, text in read_texts(view, receipt).items():
        for number, line in enumerate(_lines(text), 1):
            if (span := pattern.find(line)) is not None:
                yield f"content.{name}", number, line, span


def _lines(text: Text) -> list[str]:
    return [] if text.body is None else text.body.decode(errors="replace").split("\n")


def _counts(field: str, value: str, span: tuple[int, int]) -> bool:
    if field.removeprefix("body.") not in _OPAQUE:
        return True
    start, end = span
    return end - start >= _LEAST_OF_ID and (start == 0 or end == len(value))


def _signed_fields(payload: bytes) -> Iterator[tuple[str, str]]:
    """Yield every signed value with its place, including those that this version does not know."""
    statement: Mapping[str, Any] = msgspec.json.decode(payload)
    for subject in statement["subject"]:
        yield "stream", subject["name"]
        yield "previous", subject["digest"]["sha256"]
    for name, value in statement["predicate"].items():
        # For contents, a receipt has only digests; the contents themselves are searched as text.
        if name != "content":
            yield from _leaves(name, value)


def _leaves(place: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - whatever JSON can hold
    match value:
        case dict():
            for name, inner in value.items():
                yield from _leaves(f"{place}.{name}", inner)
        case list():
            for inner in value:
                yield from _leaves(place, inner)
        case None:
            return
        case _:
            yield place, str(value)


def agent_of(view: LedgerView, stream: StreamId) -> str:
    """Return the agent whose stream it is: the one that runs, or to which something was handed off."""
    kind = stream.partition("_")[0]
    try:
        if kind == RUN:
            return view.get_run(RunId(stream)).agent
        if kind == HANDOFF:
            return view.get_handoff(HandoffId(stream)).to
    except NotFoundError:
        pass
    return RELAY if kind == RELAY else "unknown"
