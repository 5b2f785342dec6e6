"""The sources known to each run, with the fewest receipts in between, while receipts are read in order.

A run may learn of a source in several ways. Receipts come in the order of time, so one pass is enough: whatever a run
hands on reached it by earlier receipts, and the shortest ways there are known already.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from batonpass.accounts.taint.taint_values import Did
from batonpass.model.base.ids import RUN, CallId, ContentId, HandoffId, RunId
from batonpass.model.base.label import Source
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffAnswered,
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    Part,
    RunRecorded,
    RunStarted,
    RunTainted,
    SessionResumed,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.receipt_taint import brought_by, endorsed_by, is_made_of_outside, offered_taint
from batonpass.records.call import Ended


class SpreadLink(Struct, frozen=True):
    """One receipt that carried a source, and the link before it."""

    did: Did
    receipt: Receipt
    before: "SpreadLink | None" = None
    length: int = 1

    def then(self, did: Did, receipt: Receipt) -> "SpreadLink":
        """Return this way, continued by another receipt."""
        return SpreadLink(did, receipt, self, self.length + 1)

    def hops(self) -> list["SpreadLink"]:
        """Return the whole way, from where it came in."""
        way = [self]
        while (before := way[-1].before) is not None:
            way.append(before)
        return way[::-1]


Ways = dict[Source, SpreadLink]
Named = Mapping[Source, SpreadLink | None]  # None if the way there is unknown


class Spread(Struct):
    """The sources that every run knew, with the shortest way of each; receipts must come in the order of time."""

    now: dict[RunId, Ways] = field(default_factory=dict)  # still tainted: not endorsed
    ever: dict[RunId, Ways] = field(default_factory=dict)
    offered: dict[HandoffId, Ways] = field(default_factory=dict)
    endorsed: dict[RunId, dict[Source, Receipt]] = field(default_factory=dict)  # by root
    _reported: dict[HandoffId, Ways] = field(default_factory=dict)
    _wrote: dict[CallId, Ways] = field(default_factory=dict)
    _kept: dict[ContentId, Ways] = field(default_factory=dict)  # items recorded by tainted runs
    _attempts: dict[HandoffId, list[RunId]] = field(default_factory=dict)
    _trees: dict[RunId, list[RunId]] = field(default_factory=dict)

    def take(self, receipt: Receipt) -> None:
        """Add the sources that a receipt carries, and the endorsements in it."""
        body = receipt.body
        match body:
            case RunStarted():
                self._trees.setdefault(body.run, []).append(body.run)
            case HandoffInitiated():
                named = self._named(offered_taint(body), self.now.get(body.run, {}))
                self.offered[body.handoff] = _on(named, Did.HANDED_ON, receipt)
            case HandoffAnswered() if body.taint:
                named = self._named(body.taint, self._anywhere(body.taint))
                _join(self.offered.setdefault(body.handoff, {}), _on(named, Did.ANSWERED, receipt))
            case HandoffAccepted():
                self._accept(receipt, body)
            case HandoffCompleted() | HandoffFailed():
                known = self.now.get(body.run, {})
                self._reported[body.handoff] = _on(known, Did.REPORTED, receipt)
            case _:
                self._learn(receipt)
        if (source := endorsed_by(receipt)) is not None:
            self._lift(receipt, source)

    def _accept(self, receipt: Receipt, body: HandoffAccepted) -> None:
        """Start an attempt with the sources of its offer and of earlier attempts."""
        self._trees.setdefault(receipt.root or body.run, []).append(body.run)
        begins = dict(self.offered.get(body.handoff, {}))
        for run in self._attempts.setdefault(body.handoff, []):
            _join(begins, self.now.get(run, {}))
        self._attempts[body.handoff].append(body.run)
        self._reach(receipt, body.run, _on(begins, Did.BEGAN_WITH, receipt))

    def _learn(self, receipt: Receipt) -> None:
        body = receipt.body
        run = RunId(receipt.stream)
        match body:
            case _ if isinstance(body, Ended):
                self._reach(receipt, run, {source: SpreadLink(Did.READ, receipt) for source in brought_by(receipt)})
                if body.changes and body.taint:
                    named = self._named(body.taint, self.now.get(run, {}))
                    self._wrote[body.call] = _on(named, Did.WROTE, receipt)
            case RunRecorded():
                if is_made_of_outside(receipt) or any(item.part is Part.UNTRUSTED for item in body.items):
                    kept = _on(self.now.get(run, {}), Did.KEPT, receipt)
                    self._kept.update((item.item, kept) for item in body.items)
                self._reach(receipt, run, {source: SpreadLink(Did.READ, receipt) for source in brought_by(receipt)})
            case RunTainted():
                self._reach(receipt, run, _on(self._came_back(body), Did.CAME_BACK, receipt))
            case SessionResumed() if body.taint:
                carried = [*(item.item for item in body.kept), *body.revisit]
                came: Ways = {}
                for item in carried:
                    _join(came, self._kept.get(item, {}))
                found = _on(came, Did.RESUMED, receipt)
                self._reach(receipt, run, found or {source: SpreadLink(Did.RESUMED, receipt) for source in body.taint})
            case _:
                pass

    def _came_back(self, body: RunTainted) -> Named:
        """Return the ways of sources that reached a run without a call or an offer."""
        if body.wrote is not None and body.wrote in self._wrote:
            return self._named(body.sources, self._wrote[body.wrote])
        ways: Ways = {}
        if body.handoff is not None:
            _join(ways, self._reported.get(body.handoff, {}))
            if not ways:  # a question or a reason: its words came without a result
                for run in self._attempts.get(body.handoff, ()):
                    _join(ways, self.ever.get(run, {}))
            return self._named(body.sources, ways)
        remembered = [source for source in body.sources if self._kept.get(ContentId(source))]
        others = [source for source in body.sources if source not in remembered]
        named = self._named(others, self._anywhere(others))
        for source in remembered:  # a memory: what counts is what it was made of
            named = {**named, **{one: link for one, link in self._kept[ContentId(source)].items() if one not in named}}
        return named

    def _anywhere(self, sources: Iterable[Source]) -> Ways:
        """Return the shortest ways of some sources to any run."""
        ways: Ways = {}
        wanted = set(sources)
        for known in self.ever.values():
            _join(ways, {source: link for source, link in known.items() if source in wanted})
        return ways

    def _named(self, sources: Iterable[Source], known: Mapping[Source, SpreadLink]) -> Named:
        """Return the ways of the listed sources; a run in the list stands for all sources it knew.

        A source without a known way begins with the receipt that names it.
        """
        ways: Ways = {}
        unknown: dict[Source, None] = {}
        for source in sources:
            if source in known:
                _join(ways, {source: known[source]})
            elif source.startswith(f"{RUN}_") and source in self.ever:
                _join(ways, {one: known.get(one, link) for one, link in self.ever[RunId(source)].items()})
            else:
                unknown[source] = None
        return {**unknown, **ways}

    def _reach(self, receipt: Receipt, run: RunId, ways: Ways) -> None:
        endorsed = self.endorsed.get(receipt.root or run, {})
        new = {source: link for source, link in ways.items() if source not in endorsed}
        _join(self.now.setdefault(run, {}), new)
        _join(self.ever.setdefault(run, {}), new)

    def _lift(self, receipt: Receipt, source: Source) -> None:
        root = receipt.root or RunId(receipt.stream)
        self.endorsed.setdefault(root, {})[source] = receipt
        for run in self._trees.get(root, ()):
            self.now.get(run, {}).pop(source, None)


def _join(ways: Ways, others: Mapping[Source, SpreadLink]) -> None:
    # The fewest receipts win. Of two equally short ways the first stays: it was there earlier.
    for source, link in others.items():
        if source not in ways or link.length < ways[source].length:
            ways[source] = link


def _on(ways: Named, did: Did, receipt: Receipt) -> Ways:
    """Return ways continued by a receipt; a source without a way begins with it."""
    return {
        source: SpreadLink(did, receipt) if link is None else link.then(did, receipt) for source, link in ways.items()
    }


def linked_trees(receipt: Receipt) -> Iterator[Source | ContentId | RunId | CallId]:
    """Yield the ids in a receipt that may belong to another tree."""
    match receipt.body:
        case RunTainted(sources=sources, wrote=wrote):
            yield from sources
            if wrote is not None:
                yield wrote
        case SessionResumed(kept=kept, revisit=revisit, taint=taint) if taint:
            yield from (item.item for item in kept)
            yield from revisit
        case _:
            return
