"""The taint of a run: which sources reached it, by which receipt, and which of them were endorsed.

It is kept in memory, so that a call costs the same however long its run is. All of it can be read again from receipts.
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

MOST_NAMED: Final = 3  # how many sources a sentence names

# The label of an agent's own words, which everybody may read.
OWN: Final = PLAIN[SourceType.LLM_GENERATED]


class Taint(Struct):
    """The sources that taint a run, those that were endorsed, and the label of everything else that it knows."""

    entered: dict[Source, ReceiptId | None] = field(default_factory=dict)  # each with the receipt that brought it
    endorsed: set[Source] = field(default_factory=set)
    base: Label = OWN  # of everything that it knows except for these sources
    learned: tuple[Label, Label] | None = None  # the last label joined, and the base after that
    terms: tuple[Permit, ...] | None = None  # permits that are older than the taint, once read
    passages: Passages[Source] = field(default_factory=Passages)
    unread: set[Source] = field(default_factory=set)  # sources whose texts were not read yet
    _first: tuple[Source, ...] | None = ()  # the first sources by name; None: not computed
    # Held from computing a label until its receipt is written. So a source that arrives meanwhile is either in the
    # label, or its receipt comes later.
    lock: threading.RLock = field(default_factory=RLock)

    def __bool__(self) -> bool:
        return bool(self.entered)

    @property
    def label(self) -> Label:
        """Return the label of everything that the run knows."""
        return self.base.joined(PLAIN[SourceType.EXTERNAL]) if self.entered else self.base

    def enter(self, sources: Iterable[Source], receipt: ReceiptId | None) -> None:
        """Add sources to the taint, except for those that were endorsed."""
        with self.lock:
            for source in sources:
                if source in self.endorsed or source in self.entered:
                    continue
                self.entered[source] = receipt
                # Ids begin with their time, so a new source is mostly behind the first ones by name.
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
        """Return the first sources by name, as many as a sentence names."""
        with self.lock:
            if self._first is None:
                self._first = tuple(sorted(self.entered)[:MOST_NAMED])
            return self._first

    def learn(self, label: Label | None) -> None:
        """Join the base with a label. An external one is joined as tool output, because its source is in `entered`."""
        # To join the same label twice adds nothing. That is the usual case: a tool has one label for all its results.
        if label is None or label == self.base or self.learned == (label, self.base):
            return
        self.base = self.base.joined(Label(SourceType.TOOL_OUTPUT, label.readers) if label.is_external else label)
        self.learned = label, self.base

    def unknown(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Yield the sources that are new: neither in the taint nor endorsed."""
        return (source for source in sources if source not in self.entered and source not in self.endorsed)
