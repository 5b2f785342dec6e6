"""The contract of a scanner: it finds and scores, and changes nothing."""

from typing import Protocol

from msgspec import Struct

from batonpass.model.base.checks import require_code, require_integer


class ScanMatch(Struct, frozen=True, kw_only=True):
    """A rule that matched: how often, where first, in which form of the text, and its score."""

    rule: str
    count: int
    score: int  # in thousandths: how likely one match is an attack
    form: str  # plain, or how the text was transformed: decoded, reversed
    start: int  # of the first match, in that form

    def __post_init__(self) -> None:
        require_code("rule", self.rule)
        require_integer("count", self.count, least=1)
        require_integer("score", self.score)
        require_code("form", self.form)
        require_integer("start", self.start)


class Scanner(Protocol):
    """Looks for signs of injected instructions. Must be thread-safe."""

    def scan(self, text: str) -> tuple[ScanMatch, ...]:
        """Return the findings, highest score first. An empty result proves nothing."""
