"""Content: everything that a person or a model wrote. Receipts commit to it by digest, so it can be erased.

The digest is over 16 random bytes of salt followed by the body. Without the salt, anybody with the receipts could guess
a short text and confirm the guess, even after it was erased.
"""

import os
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    CODE,
    MEDIA_TYPE,
    require_code,
    require_digest,
    require_instance,
    require_integer,
    require_media_type,
)
from batonpass.model.base.ids import CONTENT, ContentId, Digest, ReceiptId, new_id, require_id
from batonpass.model.base.trusted import unchecked_maker

SALT_BYTES: Final = 16


class Place(StrEnum):
    """Where the body of a content is kept."""

    ROW = "row"
    FILE = "file"
    ERASED = "erased"


class ContentRef(Struct, frozen=True, kw_only=True):
    """A receipt's reference to one content: enough to find it, and to prove it."""

    id: ContentId
    digest: Digest
    size: int  # of the body, in bytes
    media_type: str

    def __post_init__(self) -> None:
        require_id("content.id", self.id, CONTENT)
        require_digest("content.digest", self.digest)
        require_integer("content.size", self.size)
        require_media_type("content.media_type", self.media_type)


class Content(Struct, frozen=True, kw_only=True):
    """A body with its salt, and the name by which its receipt refers to it."""

    name: str
    ref: ContentRef
    salt: bytes
    body: bytes

    def __post_init__(self) -> None:
        require_code("content.name", self.name)
        require_instance("content.ref", self.ref, ContentRef)
        require_instance("content.body", self.body, bytes)
        if len(require_instance("content.salt", self.salt, bytes)) != SALT_BYTES:
            raise InvalidValueError("content.salt", f"has {len(self.salt)} bytes, not {SALT_BYTES}")


class StoredContent(Struct, frozen=True, kw_only=True):
    """A content as a store has it now. Salt and body are None after it was erased."""

    id: ContentId
    receipt: ReceiptId | None  # the receipt that refers to it; None if that receipt is not there
    place: Place
    salt: bytes | None
    body: bytes | None


# Salts are drawn ahead, like the random part of ids. After a fork, two processes must not use the same ones.
_SALTS: Final[list[bytes]] = []
_DRAWN_AT_ONCE: Final = 32
os.register_at_fork(after_in_child=_SALTS.clear)

_ref: Final = unchecked_maker(ContentRef)
_content: Final = unchecked_maker(Content)


def content_digest(salt: bytes, body: bytes) -> Digest:
    """Return the digest that commits to a body, and from which nobody can guess it."""
    return Digest(sha256(salt + body).hexdigest())


def _draw_salts() -> bytes:
    drawn = os.urandom(SALT_BYTES * _DRAWN_AT_ONCE)
    _SALTS.extend([drawn[start : start + SALT_BYTES] for start in range(SALT_BYTES, len(drawn), SALT_BYTES)])
    return drawn[:SALT_BYTES]


def new_content(name: str, body: bytes | str, at: datetime, *, media_type: str = "text/plain") -> Content:
    """Return body as content with a fresh salt. Raises `InvalidValueError` for text that is not Unicode."""
    try:
        data = body.encode() if isinstance(body, str) else bytes(body)
    except UnicodeEncodeError as error:
        raise InvalidValueError(name, f"is not Unicode text: {error.reason} at character {error.start}") from None
    try:
        salt = _SALTS.pop()  # atomic: no two threads get the same salt
    except IndexError:
        salt = _draw_salts()
    # The other fields were made right here, and need no check. Nearly all names and types are known: then no call.
    if type(name) is not str or name not in CODE.known:
        require_code("content.name", name)
    if type(media_type) is not str or media_type not in MEDIA_TYPE.known:
        require_media_type("content.media_type", media_type)
    digest = Digest(sha256(salt + data).hexdigest())
    ref = _ref(id=ContentId(new_id(CONTENT, at)), digest=digest, size=len(data), media_type=media_type)
    return _content(name=name, ref=ref, salt=salt, body=data)
