"""The values of a taint answer: where content came in, the way it took, and everything it reached."""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from batonpass.accounts.trail.first_lines import Words
from batonpass.model.base.ids import ReceiptId, RunId
from batonpass.model.base.label import Source

if TYPE_CHECKING:
    from batonpass.scan.passages import Span


class Did(StrEnum):
    """The event by which content from outside went on, or a decision about it."""

    READ = "read"  # it first reached a run here
    CAME_BACK = "came back"  # with a child's words, from a memory, or from a file
    BEGAN_WITH = "began with"
    HANDED_ON = "handed on"
    ANSWERED = "answered"
    CALLED = "called"
    WROTE = "wrote"
    KEPT = "kept"  # for a later run of the same agent
    HELD = "held"
    DENIED = "denied"
    APPROVED = "approved"
    ENDORSED = "endorsed"
    REPORTED = "reported"
    RESUMED = "resumed"
    KNEW = "knew"  # any other receipt of a run that knew it


class TaintEntry(Struct, frozen=True, kw_only=True):
    """Where content from outside came in."""

    source: Source
    also: tuple[Source, ...] = ()  # other sources with the same text
    name: str
    words: Words | None  # its first line
    label: str
    receipt: ReceiptId
    at: datetime
    run: RunId
    by: str  # name of that run


class Quote(Struct, frozen=True, kw_only=True):
    """An excerpt that contains words of a source, and where they are in it."""

    where: str  # the task, an argument, a file, and so on
    text: str
    spans: "tuple[Span, ...]"
    more: int = 0  # marks that did not fit


class TaintHop(Struct, frozen=True, kw_only=True):
    """One receipt on the way of content from outside, or on the map of all that it reached."""

    did: Did
    receipt: ReceiptId
    at: datetime
    run: RunId | None  # None for a ruling on a handoff
    name: str  # of the run or handoff
    what: str = ""
    id: str | None = None  # of the call or handoff
    quotes: tuple[Quote, ...] = ()
    unread: tuple[str, ...] = ()  # erased texts, which could not be compared
    flagged: bool = False  # the receipt itself says that it contains words of the source
    in_quarantine: bool = False  # the baton carries the source itself, as data

    @property
    def quoted(self) -> bool:
        """Return whether the receipt itself says that it has the source, or words of it."""
        return self.flagged or self.in_quarantine

    @property
    def is_quoting(self) -> bool:
        """Return whether it contains words of the source."""
        return bool(self.quotes) or self.flagged


class Way(Struct, frozen=True, kw_only=True):
    """The shortest way of content from outside to something; the first hop is where it came in."""

    entry: TaintEntry
    hops: tuple[TaintHop, ...]
    since: tuple[TaintHop, ...] = ()  # later rulings: on the call it led to, or on the source
    readable: bool = True  # False if its text is gone, so that no words can be found

    @property
    def is_quoted(self) -> bool:
        """Return whether its words appear anywhere on the way."""
        return any(hop.is_quoting for hop in self.hops)

    @property
    def is_quoted_at_the_end(self) -> bool:
        """Return whether its words appear in the call or handoff that was asked about."""
        return self.hops[-1].is_quoting


class Tracing(Struct, frozen=True, kw_only=True):
    """Where content from outside came in, and everything it reached."""

    entry: TaintEntry
    steps: tuple[TaintHop, ...]

    def count(self, *did: Did) -> int:
        """Return how many steps are of these kinds."""
        return sum(step.did in did for step in self.steps)

    @property
    def runs(self) -> int:
        """Return how many runs it reached."""
        return len({step.run for step in self.steps if step.run is not None})


OPENS: Final = "»"
CLOSES: Final = "«"
# Marks inside a quoted text are replaced, so that nobody can forge ours.
_NOT_OURS: Final = str.maketrans({OPENS: ">", CLOSES: "<", "\n": " ", "\r": " ", "\t": " "})


def marked_parts(quote: Quote) -> Iterator[tuple[str, bool]]:
    """Yield a text in parts, each with whether it is marked; the marks are included."""
    text = quote.text.translate(_NOT_OURS)
    at = 0
    for span in quote.spans:
        yield text[at : span.start], False
        yield f"{OPENS}{text[span.start : span.end]}{CLOSES}", True
        at = span.end
    yield text[at:], False
    if quote.more:
        yield f" · and {quote.more} more", False
