"""Taint, checked from receipts alone: which sources reached which run, and whether every label admits it. Pure.

A label may claim less trust than necessary, because two threads of a run may learn something at once. It may never
claim more.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from batonpass.errors import UnlinkedError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.model.base.content_names import REPORT
from batonpass.model.base.ids import ContentId, HandoffId, PrincipalId, ReceiptId, RunId
from batonpass.model.base.label import Label, Source
from batonpass.model.bodies.body import (
    CheckpointSaved,
    FileEndorsed,
    HandoffAccepted,
    HandoffAnswered,
    HandoffCompleted,
    HandoffEndorsed,
    HandoffFailed,
    HandoffInitiated,
    HandoffRevised,
    Part,
    RunClosed,
    RunEndorsed,
    RunStarted,
    SessionResumed,
    ToolCompleted,
    ToolFailed,
    ToolHeld,
    ToolRequested,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.receipt_taint import brought_by, endorsed_by, is_made_of_outside, offered_taint

# Most receipts are of these kinds. They bring a source only if their label says so.
_CALLS: Final = (ToolRequested, ToolCompleted, ToolFailed)


class Taints(Struct):
    """The untrusted sources known to each run, and which of them were endorsed."""

    standing: dict[RunId, dict[Source, ReceiptId]] = field(default_factory=dict)  # with the receipt that brought it
    labelled: set[RunId] = field(default_factory=set)  # runs that record labels; others claim nothing
    endorsed: dict[RunId, set[Source]] = field(default_factory=dict)  # by root
    _trees: dict[RunId, list[RunId]] = field(default_factory=dict)
    _offers: dict[HandoffId, tuple[dict[Source, ReceiptId], bool]] = field(default_factory=dict)  # and if labelled
    _attempts: dict[HandoffId, list[RunId]] = field(default_factory=dict)
    _carriers: dict[ContentId, tuple[Source, ...]] = field(default_factory=dict)  # of tainted runs
    _outside: set[ContentId] = field(default_factory=set)  # contents written by tainted runs

    def require(self, receipt: Receipt) -> None:
        """Refuse a receipt that claims trust for tainted content. Raises `UnlinkedError`."""
        body = receipt.body
        if not isinstance(body, _CALLS):
            self._require_other(receipt)
        elif body.run in self.labelled:
            self._require_labelled(receipt, self.standing.get(body.run, {}))

    def _require_other(self, receipt: Receipt) -> None:
        body = receipt.body
        match body:
            case HandoffAccepted():
                reached, labelled = self._begins_with(receipt, body)
                if labelled:
                    _require_label(body.label, reached, "the handoff that it takes")
            case RunEndorsed() | HandoffEndorsed():
                self._require_endorsement(receipt, body)
            case HandoffRevised():
                self._require_named(RunId(""), body.taint, self._carried(receipt, body))
            case FileEndorsed():
                _require_person(body.by)
            case SessionResumed():
                outside = (*(item.item for item in body.kept), *body.revisit)
                if not body.taint and any(item in self._outside for item in outside):
                    raise UnlinkedError("it keeps words of a tainted run, and is not tainted", field="taint")
            case _ if (run := getattr(body, "run", None)) in self.labelled:
                self._require_labelled(receipt, self.standing.get(run, {}))

    def _require_labelled(self, receipt: Receipt, reached: Mapping[Source, ReceiptId]) -> None:
        body = receipt.body
        match body:
            case ToolRequested() | ToolHeld() | CheckpointSaved() | RunClosed():
                _require_label(body.label, reached, "its run")
            case ToolCompleted() | ToolFailed() if body.taint is not None and body.changes:
                # Later readers rely on this list: they would trust a source that is left out.
                self._require_named(body.run, body.taint, [*reached, *brought_by(receipt)])
            case HandoffInitiated():
                carried = [*reached, *self._carried(receipt, body)]
                _require_label(body.label, carried, "its run, or stands in its baton")
                self._require_named(body.run, body.taint, carried)
            case HandoffCompleted() | HandoffFailed() if body.gives or REPORT in receipt.content:
                _require_label(body.label, reached, "its run")
                self._require_named(body.run, body.taint, reached)

    def _require_endorsement(self, receipt: Receipt, body: RunEndorsed | HandoffEndorsed) -> None:
        _require_person(body.by)
        runs = [body.run] if isinstance(body, RunEndorsed) else self._attempts.get(body.handoff, [])
        known = {source for run in runs for source in self.standing.get(run, {})}
        if isinstance(body, HandoffEndorsed):
            known.update(self._offers.get(body.handoff, ({}, False))[0])
        if body.source not in known and body.source not in self.endorsed.get(receipt.root or RunId(""), ()):
            raise UnlinkedError(f"{body.source} did not come from outside to it", field="source")

    def _require_named(self, run: RunId, named: tuple[Source, ...], reached: Iterable[Source]) -> None:
        """Refuse a list that leaves out a source. A run in the list stands for all sources that reached it."""
        if run in named:
            return
        for source in reached:
            if source not in named and not self.stands_for(named, source):
                said = f"it does not name {source}, which came from outside and nobody endorsed"
                raise UnlinkedError(said, field="taint")

    def stands_for(self, named: Iterable[Source], source: Source) -> bool:
        """Return whether a listed run knew the source, directly or through another listed run."""
        pending: list[Source] = list(named)
        seen: set[Source] = set()
        while pending:
            reached = self.standing.get(RunId(pending.pop()), {})
            if source in reached:
                return True
            pending += [one for one in reached if one not in seen]
            seen.update(reached)
        return False

    def _carried(self, receipt: Receipt, body: HandoffInitiated | HandoffRevised) -> Iterable[Source]:
        """Yield the unendorsed sources in a baton: carried directly, or in contents that tainted runs made."""
        endorsed = self.endorsed.get(receipt.root or RunId(receipt.stream), set())
        for item in body.carries:
            sources = (item.item,) if item.part is Part.UNTRUSTED else self._carriers.get(item.item, ())
            yield from (source for source in sources if source not in endorsed)

    def _begins_with(self, receipt: Receipt, body: HandoffAccepted) -> tuple[dict[Source, ReceiptId], bool]:
        offered, labelled = self._offers.get(body.handoff, ({}, False))
        reached = dict(offered)
        # The next attempt gets the results of finished calls and the checkpoint of this one, and with them its sources.
        for run in self._attempts.get(body.handoff, ()):
            for source, entered in self.standing.get(run, {}).items():
                reached.setdefault(source, entered)
        endorsed = self.endorsed.get(receipt.root or body.run, set())
        return {source: entered for source, entered in reached.items() if source not in endorsed}, labelled

    def remember(self, receipt: Receipt) -> None:
        """Add the sources and endorsements of a receipt."""
        body = receipt.body
        if isinstance(body, _CALLS) and (body.label is None or not body.label.is_external):
            return
        match body:
            case RunStarted():
                self._trees[body.run] = [body.run]
                self._begin(body.run, body.label)
            case HandoffAccepted():
                reached, _ = self._begins_with(receipt, body)
                if reached:
                    self.standing[body.run] = reached
                self._trees.setdefault(receipt.root or body.run, []).append(body.run)
                self._attempts.setdefault(body.handoff, []).append(body.run)
                self._begin(body.run, body.label)
            case HandoffInitiated():
                taint = dict.fromkeys(offered_taint(body), receipt.id)
                self._offers[body.handoff] = taint, body.label is not None
            case HandoffAnswered() | HandoffRevised() if body.handoff in self._offers:
                self._offers[body.handoff][0].update(dict.fromkeys(body.taint, receipt.id))
            case HandoffCompleted() | HandoffFailed() if body.taint:
                given = [item.item for item in body.gives if item.part is not Part.UNTRUSTED]
                report = receipt.content.get(REPORT)
                own = given if report is None else [*given, report.id]
                self._carriers.update(dict.fromkeys(own, body.taint))
        self._enter(receipt)
        if (source := endorsed_by(receipt)) is not None:
            self._lift(receipt, source)
        if is_made_of_outside(receipt):
            self._outside.update(ref.id for ref in receipt.content.values())

    def _begin(self, run: RunId, label: Label | None) -> None:
        if label is not None:
            self.labelled.add(run)

    def _enter(self, receipt: Receipt) -> None:
        brought = brought_by(receipt)
        run = getattr(receipt.body, "run", None)
        if not brought or run is None:
            return
        endorsed = self.endorsed.get(receipt.root or run, set())
        for source in brought:
            if source not in endorsed:
                self.standing.setdefault(run, {}).setdefault(source, receipt.id)

    def _lift(self, receipt: Receipt, source: Source) -> None:
        root = receipt.root or RunId(receipt.stream)
        self.endorsed.setdefault(root, set()).add(source)
        for run in self._trees.get(root, ()):
            self.standing.get(run, {}).pop(source, None)


def _require_person(by: PrincipalId) -> None:
    if not may_endorse(by):
        raise UnlinkedError(f"{by} is no person and endorses what came from outside", field="by")


def _require_label(label: Label | None, reached: Iterable[Source], where: str) -> None:
    source = next(iter(reached), None)
    if source is None:
        return
    if label is None:
        raise UnlinkedError(f"it has no label, and {source} came from outside to {where} before", field="label")
    if not label.is_external:
        raise UnlinkedError(
            f"it is labelled {label.integrity}, and {source} came from outside to {where} before", field="label"
        )
