"""What a call changed in a file: values, and applying them to lines.

A file is a list of lines without their ends. A missing newline at the end and the carriage returns of Windows are not
seen here, because neither has an author anybody asks for.
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
    """How it is known that a call made a change. No system tells who wrote a file; only what the call was told does."""

    CERTAIN = "certain"  # it was told to write this file, and what is there now fits that
    CANDIDATE = "candidate"  # the file changed while it ran; it may have done that, or anybody else
    BROUGHT = "brought"  # it had git put there what a commit or a stash has: whoever wrote that wrote it


class Hunk(Struct, frozen=True):
    """Lines that were replaced by others, as a unified diff says it: from 1, and with no lines, the line before.

    The place counts as recorded: where a blank line was added next to a blank line, the hunk says which of them is new.
    Lines that begin or end both sides alike are context.
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
                raise InvalidValueError(f"{name}_count", f"says {count}, and there are {len(lines)} lines")

    @property
    def old_index(self) -> int:
        """Return how many old lines stand before it."""
        return self.old_start - 1 if self.old_count else self.old_start

    @property
    def new_index(self) -> int:
        """Return how many new lines stand before it."""
        return self.new_start - 1 if self.new_count else self.new_start


class FileChange(Struct, frozen=True, kw_only=True):
    """One call changed one file."""

    call: str
    run: str
    at: datetime
    path: str  # from the root of the repository, with slashes
    before: Digest | None = None  # sha256 of its bytes; None: it did not exist, or nobody looked
    after: Digest | None = None  # likewise; None beside a known `before`: it was deleted
    hunks: tuple[Hunk, ...] | None = None  # None: only the digests are known
    renamed_from: str | None = None
    overlapping: tuple[str, ...] = ()  # calls that ran at the same time, and may have done it instead
    certainty: Certainty = Certainty.CERTAIN

    def __post_init__(self) -> None:
        require_utc("at", self.at)
        for name, value in (("before", self.before), ("after", self.after)):
            if value is not None:
                require_digest(name, value)

    @property
    def is_creation(self) -> bool:
        """Return whether the file is known not to have been there before."""
        return self.before is None and self.after is not None and not any(hunk.removed for hunk in self.hunks or ())

    @property
    def is_deletion(self) -> bool:
        """Return whether the file is known not to be there afterwards."""
        return self.before is not None and self.after is None


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, as git counts them."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def digest_of(data: bytes) -> Digest:
    """Return what a recorder notes of a file's bytes."""
    return Digest(hashlib.sha256(data).hexdigest())


def apply_hunks(hunks: Sequence[Hunk], lines: Sequence[str]) -> list[str]:
    """Return the lines after the change. Raises `InvalidValueError` if the hunks do not fit."""
    result = list(lines)
    edge = len(result)
    for hunk in reversed(hunks):
        start = hunk.old_index
        if start + hunk.old_count > edge or tuple(result[start : start + hunk.old_count]) != hunk.removed:
            raise InvalidValueError("hunks", f"line {hunk.old_start} is not as it was before this change")
        result[start : start + hunk.old_count] = hunk.added
        edge = start
    return result


def revert_hunks(hunks: Sequence[Hunk], lines: Sequence[str]) -> list[str]:
    """Return the lines before the change. Raises `InvalidValueError` if the hunks do not fit."""
    turned = [
        Hunk(hunk.new_start, hunk.new_count, hunk.old_start, hunk.old_count, hunk.added, hunk.removed) for hunk in hunks
    ]
    return apply_hunks(turned, lines)


def verify_change(change: FileChange, before: bytes | None, after: bytes | None) -> None:
    """Check that a change made exactly this of that. Raises `InvalidValueError`, naming what does not fit."""
    for name, digest, data in (("before", change.before, before), ("after", change.after, after)):
        if digest is not None and (data is None or digest_of(data) != digest):
            raise InvalidValueError(name, "these are not the bytes that the change names")
    if change.hunks is not None and apply_hunks(change.hunks, _decoded(before)) != _decoded(after):
        raise InvalidValueError("hunks", "they lead to other lines than those that are there afterwards")


def _decoded(data: bytes | None) -> list[str]:
    return [] if data is None else lines_of(data.decode("utf-8", "surrogateescape"))
