"""Pointers to the sender's reasoning at a handoff: the signed part, and where the text can be read."""

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_digest, require_integer, require_text
from batonpass.model.base.ids import RECEIPT, Digest, ReceiptId, require_id


class ReasoningPointer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sender's last checkpoint, and the message with which it handed off. Ids, digests and numbers, no words."""

    checkpoint: ReceiptId | None = None  # the last one of the run, or of the attempt that the run continues
    digest: Digest | None = None  # of the message, keyed with the tree's secret, so nobody else can confirm a guess
    message: int | None = None  # its number in the conversation, from 1
    line: int | None = None  # its line in a transcript, from 1
    offset: int | None = None  # where that line begins, in bytes

    def __post_init__(self) -> None:
        if self.checkpoint is None and self.digest is None:
            raise InvalidValueError("reasoning", "points to nothing")
        if self.checkpoint is not None:
            require_id("reasoning.checkpoint", self.checkpoint, RECEIPT)
        if self.digest is not None:
            require_digest("reasoning.digest", self.digest)
        _require_place(self.message, self.line, self.offset)
        if self.digest is None and (self.message, self.line, self.offset) != (None, None, None):
            raise InvalidValueError("reasoning.digest", "is missing: a place alone does not say what stands there")


class ReasoningPlace(Struct, frozen=True, kw_only=True):
    """The place of the message with which a sender hands off, as the program that keeps it gives it."""

    sha256: Digest  # of the message's bytes, or of its line without the line end
    message: int | None = None  # its number in the conversation, from 1
    line: int | None = None  # its line in a transcript, from 1
    offset: int | None = None  # where that line begins, in bytes
    path: str | None = None  # of the transcript
    uuid: str | None = None  # that program's id of the message

    def __post_init__(self) -> None:
        require_digest("reasoning.sha256", self.sha256)
        _require_place(self.message, self.line, self.offset)
        for name in ("path", "uuid"):
            if (given := getattr(self, name)) is not None:
                require_text(f"reasoning.{name}", given)


class Thought(Struct, frozen=True, kw_only=True):
    """The last message of a run's model: its place, and its bytes if nobody else keeps them."""

    place: ReasoningPlace
    body: bytes | None = None


def _require_place(message: int | None, line: int | None, offset: int | None) -> None:
    for name, given, least in (("message", message, 1), ("line", line, 1), ("offset", offset, 0)):
        if given is not None:
            require_integer(f"reasoning.{name}", given, least=least)
