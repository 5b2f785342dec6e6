"""Texts behind receipts: the contents that a receipt names, as far as they still exist."""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from batonpass.errors import EditedError, InvalidValueError
from batonpass.model.base.ids import ContentId, StreamId
from batonpass.model.ledger.content import ContentRef, Place, StoredContent
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

_WORDS: Final = 60
_CHUNK: Final = 500


class Found(StrEnum):
    """Whether a content still exists."""

    KEPT = "kept"
    ERASED = "erased"
    MISSING = "missing"  # gone, though no receipt says it was erased: verification reports it


class Text(Struct, frozen=True, kw_only=True):
    """A content that a receipt names, as far as it still exists."""

    name: str
    ref: ContentRef
    found: Found
    body: bytes | None

    @property
    def words(self) -> str | None:
        """Return the body as text; None if it is gone or is not text."""
        try:
            return None if self.body is None else self.body.decode()
        except UnicodeDecodeError:
            return None

    @property
    def first_line(self) -> str:
        """Return its first non-empty line, quoted and short enough for a list; or why it is not available."""
        if self.found is not Found.KEPT:
            return str(self.found)
        if self.words is None:
            return f"{self.ref.size:,} bytes of {self.ref.media_type}"
        line = next((line.strip() for line in self.words.splitlines() if line.strip()), "")
        return f'"{line}"' if len(line) <= _WORDS else f'"{line[: _WORDS - 1].rstrip()}…"'


def read_receipt(stored: StoredReceipt) -> Receipt:
    """Return a stored receipt, decoded. Raises `EditedError` if its bytes cannot be read."""
    try:
        return decode_receipt(stored.payload)
    except InvalidValueError as error:
        raise EditedError(
            f"the stored bytes cannot be read: {error.problem}", stream=stored.stream, seq=stored.seq, field=error.field
        ) from None


@lru_cache(maxsize=512)
def _read_before(payload: bytes) -> Receipt:
    return decode_receipt(payload)


def read_receipt_again(stored: StoredReceipt) -> Receipt:
    """Return a stored receipt that is asked for again and again: its bytes are decoded once. Raises as `read_receipt`.

    The bytes are the key of the cache, so a receipt that was changed in the ledger is decoded anew.
    """
    try:
        return _read_before(stored.payload)
    except InvalidValueError:
        return read_receipt(stored)


def read_stream(view: LedgerView, stream: StreamId) -> list[Receipt]:
    """Return all receipts of a stream, in order."""
    return [read_receipt(stored) for stored in view.find_receipts(ReceiptQuery(stream=stream))]


def find_in_chunks(view: LedgerView, contents: Sequence[ContentId]) -> Iterator[StoredContent]:
    """Yield contents that may be many, so that never all of them are in memory at once."""
    for start in range(0, len(contents), _CHUNK):
        yield from view.find_contents(contents[start : start + _CHUNK])


def texts_in(value: Any) -> Iterator[str]:  # noqa: ANN401 - whatever JSON can hold
    """Yield all texts in a JSON document, without its names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_in(inner)


def names_in(body: bytes) -> tuple[str, ...]:
    """Return the names in a content that is a JSON list of them; none if it is something else."""
    try:
        found = json.loads(body)
    except ValueError:
        return ()
    return tuple(name for name in found if isinstance(name, str)) if isinstance(found, list) else ()


def read_texts(view: LedgerView, receipt: Receipt) -> dict[str, Text]:
    """Return the contents of a receipt by name, including erased and missing ones."""
    return read_contents(view, receipt.content)


def read_contents(view: LedgerView, refs: Mapping[str, ContentRef]) -> dict[str, Text]:
    """Return contents by name, read at once, including erased and missing ones."""
    stored = {content.id: content for content in view.find_contents([ref.id for ref in refs.values()])}
    texts = {}
    for name, ref in refs.items():
        content = stored.get(ref.id)
        if content is not None and content.place is Place.ERASED:
            texts[name] = Text(name=name, ref=ref, found=Found.ERASED, body=None)
        elif content is None or content.body is None:
            texts[name] = Text(name=name, ref=ref, found=Found.MISSING, body=None)
        else:
            texts[name] = Text(name=name, ref=ref, found=Found.KEPT, body=content.body)
    return texts
