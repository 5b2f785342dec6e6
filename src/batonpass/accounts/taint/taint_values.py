"""What there is to tell of content from outside: where it came in, the way that it went, and all that it reached."""

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from batonpass.accounts.trail.first_lines import Words
from batonpass.model.base.ids import ReceiptId, RunId
from batonpass.model.base.label import Source

if TYPE_CHECKING:
    from batonpass.scan.passages import Span
from collections.abc import Iterator
from typing import Final


class Did(StrEnum):
    """What content from outside did, or what was done about it."""

    READ = "read"  # it came to a run first here
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
    KNEW = "knew"  # whatever else a receipt says: its run had it then


class TaintEntry(Struct, frozen=True, kw_only=True):
    """Where a text from outside came in."""

    source: Source
    also: tuple[Source, ...] = ()  # other ways by which the very same text came in
    name: str
    words: Words | None  # its first line
    label: str
    receipt: ReceiptId
    at: datetime
    run: RunId
    by: str  # that run, as people say it


class Quote(Struct, frozen=True, kw_only=True):
    """A text in which words of a source stand, as far as it has room, and which of its characters those are."""

    where: str  # the task, an argument, a file, and so on
    text: str
    spans: "tuple[Span, ...]"
    more: int = 0  # marks that had no room


class TaintHop(Struct, frozen=True, kw_only=True):
    """One receipt that carried content from outside further."""

    did: Did
    receipt: ReceiptId
    at: datetime
    run: RunId | None  # where; None for what somebody did to a handoff
    name: str  # of the run, or of the handoff
    what: str = ""
    id: str | None = None  # of the call or the handoff
    quotes: tuple[Quote, ...] = ()
    unread: tuple[str, ...] = ()  # texts that could not be compared: they were erased
    flagged: bool = False  # the receipt itself says that words of it stand there
    in_quarantine: bool = False  # it travels in the baton itself, as data

    @property
    def is_quoting(self) -> bool:
        """Return whether words of the source stand in it."""
        return bool(self.quotes) or self.flagged


class Way(Struct, frozen=True, kw_only=True):
    """The shortest way of a text from outside to what was asked about; the first hop is where it came in."""

    entry: TaintEntry
    hops: tuple[TaintHop, ...]
    since: tuple[TaintHop, ...] = ()  # what people decided since: about the call it led to, or about the text itself
    readable: bool = True  # False if its words are gone: then none can be found anywhere

    @property
    def is_quoted(self) -> bool:
        """Return whether its words stand anywhere on the way."""
        return any(hop.is_quoting for hop in self.hops)

    @property
    def is_quoted_at_the_end(self) -> bool:
        """Return whether its words stand in what was asked about."""
        return self.hops[-1].is_quoting


class TaintStep(Struct, frozen=True, kw_only=True):
    """One receipt on the map of content from outside."""

    did: Did
    receipt: ReceiptId
    at: datetime
    run: RunId | None  # where; None for what somebody did to a handoff
    name: str  # of the run, or of the handoff
    what: str = ""
    id: str | None = None  # of the call or the handoff
    quoted: bool = False  # its words stand in the arguments, or it travels in the baton itself


class Tracing(Struct, frozen=True, kw_only=True):
    """Where a text from outside entered, and all that it reached."""

    entry: TaintEntry
    steps: tuple[TaintStep, ...]

    def count(self, *did: Did) -> int:
        """Return how many steps are of these kinds."""
        return sum(step.did in did for step in self.steps)

    @property
    def runs(self) -> int:
        """Return how many runs it reached."""
        return len({step.run for step in self.steps if step.run is not None})


OPENS: Final = "»"
CLOSES: Final = "«"
# Whoever writes our marks into a text does not mark anything.
_NOT_OURS: Final = str.maketrans({OPENS: ">", CLOSES: "<", "\n": " ", "\r": " ", "\t": " "})


def marked_parts(quote: Quote) -> Iterator[tuple[str, bool]]:
    """Yield a text in parts, each with whether it stands between marks; the marks are in it."""
    text = quote.text.translate(_NOT_OURS)
    at = 0
    for span in quote.spans:
        yield text[at : span.start], False
        yield f"{OPENS}{text[span.start : span.end]}{CLOSES}", True
        at = span.end
    yield text[at:], False
    if quote.more:
        yield f" · and {quote.more} more", False
