"""A text with its marks: what a file was at one time, and who wrote each of its lines."""

from datetime import datetime

from msgspec import Struct

from batonpass.attribution.mark import Mark
from batonpass.model.ids import Digest


class Text(Struct):
    """The lines of a file at one time, and who wrote each."""

    lines: list[str]
    marks: list[Mark]
    digest: Digest | None
    at: datetime | None
    commit: str | None = None  # the last revision on the way here

    def copy(self) -> "Text":
        """Return a text that does not change with this one."""
        return Text(list(self.lines), list(self.marks), self.digest, self.at, self.commit)
