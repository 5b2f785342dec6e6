"""What a scanner promises: it finds and scores, and changes nothing."""

from typing import Protocol

from msgspec import Struct

from batonpass.model.base.checks import require_code, require_integer


class Finding(Struct, frozen=True, kw_only=True):
    """One rule that a text matched: how often, where first, in which reading of the text, and how much it weighs."""

    rule: str
    count: int
    score: int  # in thousandths: how likely such a match is an attempt, by itself
    form: str  # as it stands, or how it had to be read: decoded, reversed
    start: int  # of the first match, in that form

    def __post_init__(self) -> None:
        require_code("rule", self.rule)
        require_integer("count", self.count, least=1)
        require_integer("score", self.score)
        require_code("form", self.form)
        require_integer("start", self.start)


class Scanner(Protocol):
    """Looks for signs of injected instructions. Safe to use from many threads."""

    def scan(self, text: str) -> tuple[Finding, ...]:
        """Return what was found in a text, the weightiest first; nothing found proves nothing."""
