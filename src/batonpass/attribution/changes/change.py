"""A file change made by a call, and applying hunks to lines.

A file is a list of lines without line ends. A missing newline at the end and Windows carriage returns are ignored:
nobody asks who wrote them.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_digest, require_integer, require_utc
from batonpass.model.base.ids import Digest


class Certainty(StrEnum):
    """How certain it is that a call made a change. No system records who wrote a file; only the call's task tells."""

    CERTAIN = "certain"  # the call was told to write this file, and its content fits that
    CANDIDATE = "candidate"  # the file changed while the call ran; the call or anybody else may have done it
    BROUGHT = (
        "brought"  # git put it there from a commit or stash, on behalf of the call; the author is the author of that
    )


class Hunk(Struct, frozen=True):
    """Lines that were replaced, numbered as in a unified diff: from 1; an empty side names the line before it.

    The position is part of the record: where a blank line was added next to a blank line, the hunk says which one is
    new. Lines that both sides begin or end with are context.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    removed: tuple[str, ...]
    added: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, start, count, lines in (
            ("old", self.old_start, self.old_count, self.removed),
            ("new", self.new_start, self.new_count, self.added),
        ):
            require_integer(f"{name}_start", start, least=1 if count else 0)
            if count != len(lines):
                raise InvalidValueError(f"{name}_count", f"is {count}, but there are {len(lines)} lines")

    @property
    def old_index(self) -> int:
        """Return the number of old lines before it."""
        return self.old_start - 1 if self.old_count else self.old_start

    @property
    def new_index(self) -> int:
        """Return the number of new lines before it."""
        return self.new_start - 1 if self.new_count else self.new_start


class FileChange(Struct, frozen=True, kw_only=True):
    """The change of one file by one call."""

    call: str
    run: str
    at: datetime
    path: str  # from the root of the repository, with slashes
    before: Digest | None = None  # sha256 of its bytes; None: it did not exist, or is not known
    after: Digest | None = None  # likewise; None with a known `before`: it was deleted
    hunks: tuple[Hunk, ...] | None = None  # None: only the digests are known
    renamed_from: str | None = None
    overlapping: tuple[str, ...] = ()  # calls that ran at the same time and may have made the change instead
    certainty: Certainty = Certainty.CERTAIN

    def __post_init__(self) -> None:
        require_utc("at", self.at)
        for name, value in (("before", self.before), ("after", self.after)):
            if value is not None:
                require_digest(name, value)

    @property
    def is_creation(self) -> bool:
        """Return whether the file certainly did not exist before."""
        return self.before is None and self.after is not None and not any(hunk.removed for hunk in self.hunks or ())

    @property
    def is_deletion(self) -> bool:
        """Return whether the file certainly does not exist afterwards."""
        return self.before is not None and self.after is None


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, as git counts them."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def digest_of(data: bytes) -> Digest:
    """Return the digest that is recorded for a file's bytes."""
    return Digest(hashlib.sha256(data).hexdigest())


def apply_hunks(hunks: Sequence[Hunk], lines: Sequence[str]) -> list[str]:
    """Return the lines after the change. Raises `InvalidValueError` if the hunks do not fit."""
    result = list(lines)
    edge = len(result)
    for hunk in reversed(hunks):
        start = hunk.old_index
        if start + hunk.old_count > edge or tuple(result[start : start + hunk.old_count]) != hunk.removed:
            raise InvalidValueError("hunks", f"line {hunk.old_start} differs from the text that this change began with")
        result[start : start + hunk.old_count] = hunk.added
        edge = start
    return result


def revert_hunks(hunks: Sequence[Hunk], lines: Sequence[str]) -> list[str]:
    """Return the lines before the change. Raises `InvalidValueError` if the hunks do not fit."""
    turned = [
        Hunk(hunk.new_start, hunk.new_count, hunk.old_start, hunk.old_count, hunk.added, hunk.removed) for hunk in hunks
    ]
    return apply_hunks(turned, lines)
