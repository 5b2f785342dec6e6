"""What a run knows of its own taint: which content from outside reached it, by which receipt, and what is endorsed.

It is kept at hand, so that a call costs the same however long its run is. All of it can be read again from receipts.
"""

import threading
from _thread import RLock
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from batonpass.model.base.ids import ReceiptId
from batonpass.model.base.label import PLAIN, Label, Source, SourceType
from batonpass.model.grants.permit import Permit
from batonpass.scan.passages import Passages

MOST_NAMED: Final = 3  # sources in a sentence

# An agent's own words, which everybody may read.
OWN: Final = PLAIN[SourceType.LLM_GENERATED]


class Taint(Struct):
    """What came from outside to a run and stands; what somebody endorsed; and what it made of all else it knows."""

    entered: dict[Source, ReceiptId | None] = field(default_factory=dict)  # by which receipt it reached this run
    endorsed: set[Source] = field(default_factory=set)
    base: Label = OWN  # of all that it knows, what came from outside left aside
    learned: tuple[Label, Label] | None = None  # what was joined last, and what it made of all else
    terms: tuple[Permit, ...] | None = None  # those older than the taint, once somebody asked
    passages: Passages[Source] = field(default_factory=Passages)
    unread: set[Source] = field(default_factory=set)  # texts that were not looked into yet
    _first: tuple[Source, ...] | None = ()  # the first of what stands, by name; None: to be worked out
    # Held while a label is worked out and written: what comes in meanwhile is written after it, or is in it.
    lock: threading.RLock = field(default_factory=RLock)

    def __bool__(self) -> bool:
        return bool(self.entered)

    @property
    def label(self) -> Label:
        """Return the label of all that the run knows."""
        return self.base.joined(PLAIN[SourceType.EXTERNAL]) if self.entered else self.base

    def enter(self, sources: Iterable[Source], receipt: ReceiptId | None) -> None:
        """Take in what came from outside, unless somebody endorsed it."""
        with self.lock:
            for source in sources:
                if source in self.endorsed or source in self.entered:
                    continue
                self.entered[source] = receipt
                # Ids begin with their time, so what comes in is mostly behind the first of what stands.
                if self._first is not None and (len(self._first) < MOST_NAMED or source < self._first[-1]):
                    self._first = tuple(sorted((*self._first, source))[:MOST_NAMED])

    def endorse(self, source: Source) -> None:
        """Lift the taint that came from a source, and no other."""
        with self.lock:
            self.endorsed.add(source)
            self.entered.pop(source, None)
            self._first = None

    @property
    def first(self) -> tuple[Source, ...]:
        """Return the first of what came from outside and stands, by name, as many as are named in a sentence."""
        with self.lock:
            if self._first is None:
                self._first = tuple(sorted(self.entered)[:MOST_NAMED])
            return self._first

    def learn(self, label: Label | None) -> None:
        """Join what the run knows with something else; of what came from outside the sources are kept, not this."""
        # What was joined last and is known since adds nothing; a tool has one label for all that it returns.
        if label is None or label == self.base or self.learned == (label, self.base):
            return
        self.base = self.base.joined(Label(SourceType.TOOL_OUTPUT, label.readers) if label.is_external else label)
        self.learned = label, self.base

    def unknown(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Yield those of some sources that neither stand nor are endorsed."""
        return (source for source in sources if source not in self.entered and source not in self.endorsed)
