"""The outline of a receipt: its place and the contents that it names, read without the rest of its bytes.

Use it only for bytes that are proven to be the same that were verified before. All others are read by `decode_receipt`.
"""

from typing import Final

import msgspec

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import ContentId, Digest, PublicKey, ReceiptId, RunId, StreamId
from batonpass.wire.versions import require_known_version


class OutlinedContent(msgspec.Struct):
    """A content as a receipt names it."""

    id: ContentId
    digest: Digest
    size: int


class _Body(msgspec.Struct):
    run_key: PublicKey | None = None


class _Predicate(msgspec.Struct):
    id: ReceiptId
    kind: str
    seq: int
    body: _Body
    root: RunId | None = None
    content: dict[str, OutlinedContent] = {}


class _Subject(msgspec.Struct):
    name: StreamId
    digest: dict[str, Digest]


class _Statement(msgspec.Struct):
    type: str = msgspec.field(name="_type")
    predicate_type: str = msgspec.field(name="predicateType")
    subject: tuple[_Subject]
    predicate: _Predicate


class Outline(msgspec.Struct, frozen=True):
    """The place of a receipt, the contents that it names, and the key of a run that it introduces."""

    id: ReceiptId
    kind: str
    stream: StreamId
    seq: int
    previous: Digest
    root: RunId | None
    content: dict[str, OutlinedContent]
    run_key: PublicKey | None


_STATEMENTS: Final = msgspec.json.Decoder(_Statement)


def outline_receipt(payload: bytes) -> Outline:
    """Return the outline of signed bytes. Raises `InvalidValueError` and `NewerVersionError`."""
    try:
        statement = _STATEMENTS.decode(payload)
        (subject,) = statement.subject
        previous = subject.digest["sha256"]
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidValueError("payload", str(error)) from None
    except KeyError:
        raise InvalidValueError("subject", "has no previous sha256 digest") from None
    require_known_version(statement.type, statement.predicate_type)
    predicate = statement.predicate
    return Outline(
        id=predicate.id,
        kind=predicate.kind,
        stream=subject.name,
        seq=predicate.seq,
        previous=previous,
        root=predicate.root,
        content=predicate.content,
        run_key=predicate.body.run_key,
    )
