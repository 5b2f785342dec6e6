"""Questions about the files of this machine: the command line answers, because it knows where they are."""

from typing import Protocol

from msgspec import Struct

from batonpass.records.json_shapes import Shape


class DirectoryAnswer(Struct, frozen=True, kw_only=True):
    """An answer: facts for programs, and lines for people and models. Both quote others' texts."""

    facts: Shape
    lines: tuple[str, ...]


class DirectoryAnswers(Protocol):
    """Answers questions about the files in one directory, and refuses to look outside of it."""

    def blame(self, where: str) -> DirectoryAnswer:
        """Return who wrote a file, lines of it, or the hunks of a diff. Raises `InvalidValueError`, `NotFoundError`."""

    def review(self, of: str | None) -> DirectoryAnswer:
        """Return the things to look at after a run, a handoff or a session; by default after the latest tree."""

    def review_diff(self, span: str) -> DirectoryAnswer:
        """Return whose work each hunk of a pull request is, and the findings of the runs behind it."""
