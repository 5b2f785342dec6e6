"""What somebody wrote, read back: a receipt's contents by their names, as far as they are still there."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from batonpass.errors import EditedError, InvalidValueError
from batonpass.model.ledger.content import ContentRef, Place
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.store.port import LedgerView
from batonpass.wire.codec import decode_receipt

_WORDS: Final = 60


class Found(StrEnum):
    """What became of a content that a receipt names."""

    KEPT = "kept"
    ERASED = "erased"
    MISSING = "missing"  # no receipt says that it was erased: `verify` will say so


class Text(Struct, frozen=True, kw_only=True):
    """A content under the name by which its receipt refers to it, as far as it is still there."""

    name: str
    ref: ContentRef
    found: Found
    body: bytes | None

    @property
    def words(self) -> str | None:
        """Return the body as text; None if it is gone, or is not text."""
        try:
            return None if self.body is None else self.body.decode()
        except UnicodeDecodeError:
            return None

    @property
    def first_line(self) -> str:
        """Return what fits into a list: the first line with something in it, quoted, or what became of it."""
        if self.found is not Found.KEPT:
            return str(self.found)
        if self.words is None:
            return f"{self.ref.size:,} bytes of {self.ref.media_type}"
        line = next((line.strip() for line in self.words.splitlines() if line.strip()), "")
        return f'"{line}"' if len(line) <= _WORDS else f'"{line[: _WORDS - 1].rstrip()}…"'


def read_receipt(stored: StoredReceipt) -> Receipt:
    """Return what a stored receipt says. Raises `EditedError` if its bytes cannot be read."""
    try:
        return decode_receipt(stored.payload)
    except InvalidValueError as error:
        raise EditedError(
            f"the stored bytes cannot be read: {error.problem}",
            stream=stored.stream,
            seq=stored.seq,
            field=error.field,
        ) from None


def read_texts(view: LedgerView, receipt: Receipt) -> dict[str, Text]:
    """Return the contents of a receipt, by name; erased and missing ones too."""
    return read_contents(view, receipt.content)


def read_contents(view: LedgerView, refs: Mapping[str, ContentRef]) -> dict[str, Text]:
    """Return contents that receipts name, in one go; erased and missing ones too."""
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
