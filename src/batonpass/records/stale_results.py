"""The results of a tree that no longer stand, and the work that was built on them.

A verdict is about one attempt at one handoff. All that the attempt recorded, attached and reported shares its fate. A
handoff that was offered with such an item, and was not told, delivered a stale result; all results built on that are
stale too, and so on. An item that came along to a later session shares the fate of its original.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.content_names import BRIEF, EVIDENCE
from batonpass.model.base.ids import RUN, AgentId, ContentId, ReceiptId, RunId
from batonpass.model.base.kinds import Carried, CarriedFate, ItemFate, Part
from batonpass.model.base.lifecycle import DELIVERED, State
from batonpass.model.baton.baton import INHERITED
from batonpass.model.baton.item_fate import KnownFate, Refutation
from batonpass.model.baton.items import Artifact, Claim, Report
from batonpass.model.bodies.body import HandoffRevised, VerificationFailed
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.remark import RemarkKind
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.inheritance import find_earlier_roots, find_later_roots, find_origins
from batonpass.records.item import find_value
from batonpass.records.lineage import get_offer
from batonpass.records.revision import Travelling, find_revisions, known_to, travelling
from batonpass.records.text import read_receipt, read_texts
from batonpass.store.port import LedgerView
from batonpass.wire.documents import decode_brief, decode_item

_WORKED_ON: Final = frozenset({State.RUNNING, State.COMPLETED, State.VERIFIED})
_DEAD: Final = frozenset({State.CANCELLED, State.EXPIRED, State.DENIED})  # nothing of these will ever be used
_LONGEST: Final = 80
_WORDS: Final = ("what", "text", "sentence")  # where items have their words
_NAMED: Final = frozenset({Part.ARTIFACT, Part.UNTRUSTED, Part.CLAIM})  # what `inputs` of a brief can name


def find_refutations(view: LedgerView, root: RunId) -> Iterator[Refutation]:
    """Yield the verdicts against results of a tree, the latest first."""
    for remark in view.find_remarks(RemarkKind.REFUTED, root):
        if (refutation := _read_refutation(view, remark.receipt)) is not None:
            yield refutation


def read_fates(view: LedgerView, fates: Iterable[CarriedFate]) -> dict[ContentId, KnownFate]:
    """Return the fates of items in an offer that no longer stand, with the verdicts that it names."""
    verdicts: dict[ReceiptId, Refutation | None] = {}
    known = {}
    for one in fates:
        if one.verdict not in verdicts:
            verdicts[one.verdict] = _read_refutation(view, one.verdict)
        refutation = verdicts[one.verdict]
        if refutation is not None:
            known[one.item] = KnownFate(fate=one.fate, refutation=refutation)
    return known


def _read_refutation(view: LedgerView, verdict: ReceiptId) -> Refutation | None:
    receipt = read_receipt(view.get_receipt(verdict))
    body = receipt.body
    if not isinstance(body, VerificationFailed):
        return None
    evidence = read_texts(view, receipt).get(EVIDENCE)
    return Refutation(
        receipt=receipt.id,
        handoff=body.handoff,
        attempt=body.attempt,
        agent=_agent_of(view, body),
        by=body.by,
        at=receipt.at,
        reason="" if evidence is None else evidence.words or "",
    )


class TreeFates:
    """The fates of everything that was recorded in one tree, as they are now."""

    def __init__(self, view: LedgerView, root: RunId, ledger: "LedgerFates | None" = None) -> None:
        self._view = view
        self._root = root
        self._ledger = ledger
        self._refuted = {(one.handoff, one.attempt): one for one in find_refutations(view, root)}
        self._of_runs: dict[RunId, KnownFate | None] = {}
        self._came_along: dict[ContentId, KnownFate] | None = None

    def __bool__(self) -> bool:
        """Return whether anything in the tree may no longer stand."""
        return bool(self._refuted) or bool(self.inherited)

    @property
    def refutations(self) -> int:
        """Return how many results of the tree were refuted."""
        return len(self._refuted)

    @property
    def inherited(self) -> Mapping[ContentId, KnownFate]:
        """Return the items that the root began with, and whose results in earlier trees no longer stand."""
        if self._came_along is None:
            # Said before it is known: in an edited ledger, sessions may go on from each other in a circle.
            self._came_along = {}
            self._came_along = dict(self._find_inherited())
        return self._came_along

    def _find_inherited(self) -> Iterator[tuple[ContentId, KnownFate]]:
        if not find_earlier_roots(self._view, self._root):
            return
        ledger = self._ledger or LedgerFates(self._view)
        if not ledger:
            return
        for item, part, source in find_origins(self._view, self._root):
            known = ledger.find_of_item(source)
            # What somebody has tried stays tried, also if it was made from what no longer stands.
            if known is not None and not (part is Part.REJECTED and known.fate is ItemFate.STALE):
                yield item, known

    def find(self, item: ContentId) -> KnownFate | None:
        """Return the fate of an item; None while the result that it belongs to stands, or if it belongs to none."""
        if not self:
            return None
        if item in self.inherited:
            return self.inherited[item]
        try:
            introduced = self._view.get_content(item).receipt
        except NotFoundError:
            return None
        if introduced is None:
            return None
        stream = self._view.get_receipt(introduced).stream
        return self.find_of_run(RunId(stream)) if stream.startswith(RUN) else None

    def find_of_run(self, run: RunId) -> KnownFate | None:
        """Return the fate of a run's result; None while it stands."""
        if run not in self._of_runs:
            # Said before it is known: in an edited ledger, results may have been made from each other in a circle.
            self._of_runs[run] = None
            self._of_runs[run] = self._judge(self._view.get_run(run))
        return self._of_runs[run]

    def find_inputs(self, handoff: Handoff, run: RunId | None = None) -> Iterator[tuple[Carried, KnownFate]]:
        """Yield the items that a handoff stands on, and that no longer stand although its attempt does not know it.

        Of an attempt that works or has delivered, this is the latest one or `run`. An attempt that has yet to begin
        will know all that was told since.
        """
        if not self:
            return
        working = run or (handoff.run if handoff.state in _WORKED_ON else None)
        offer, now = self._read(handoff, working)
        told = {fate.item for fate in now.fates}
        for ref in _find_inputs(self._view, offer, now.carries):
            if ref.item not in told and (fate := self.find(ref.item)) is not None:
                yield ref, fate

    def find_news(self, handoff: Handoff) -> Iterator[tuple[Carried, KnownFate]]:
        """Yield the items that a handoff stands on, whose fate is another one than the latest revision says."""
        if not self:
            return
        offer, now = self._read(handoff, None)
        told = {fate.item: fate.fate for fate in now.fates}
        for ref in _find_inputs(self._view, offer, now.carries):
            if (fate := self.find(ref.item)) is not None and told.get(ref.item) is not fate.fate:
                yield ref, fate

    def _read(self, handoff: Handoff, run: RunId | None) -> tuple[Receipt, Travelling]:
        """Return an offer, and the items that travel with it: as the run knows them, or now."""
        offer, initiated = get_offer(self._view, handoff)
        revisions = tuple(find_revisions(self._view, handoff))
        if run is not None and revisions:
            _, last = known_to(self._view, run, revisions)
            revisions = tuple(one for one in revisions if one.number <= last)
        return offer, travelling(initiated, (one.body for one in revisions))

    def _judge(self, run: Run) -> KnownFate | None:
        if run.handoff is None:
            return None  # nobody judges a root's result
        handoff = self._view.get_handoff(run.handoff)
        refutation = self._refuted.get((run.handoff, run.attempt))
        if refutation is not None:
            redone = handoff.attempt > run.attempt and handoff.state in DELIVERED
            return KnownFate(fate=ItemFate.SUPERSEDED if redone else ItemFate.REFUTED, refutation=refutation)
        below = next((fate for _, fate in self.find_inputs(handoff, run.id)), None)
        return None if below is None else KnownFate(fate=ItemFate.STALE, refutation=below.refutation)


class LedgerFates:
    """The fates of results, in whichever tree they are, as they are now."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        # Most ledgers have no refutation, and then nothing more is read.
        self._trees = frozenset(one.name for one in view.find_remarks(RemarkKind.REFUTED))
        self._read: dict[RunId, TreeFates] = {}

    def __bool__(self) -> bool:
        return bool(self._trees)

    def has(self, root: RunId) -> bool:
        """Return whether a result of this tree was refuted."""
        return root in self._trees

    def find_of_run(self, run: Run) -> KnownFate | None:
        """Return the fate of the result of a run; None while it stands."""
        return self._of(run.root).find_of_run(run.id) if self else None

    def find_of_item(self, item: ContentId) -> KnownFate | None:
        """Return the fate of an item or a report, in whichever tree it was recorded; None while it stands."""
        if not self:
            return None
        with suppress(NotFoundError):  # a tree that was imported alone lacks the others
            introduced = self._view.get_content(item).receipt
            if introduced is not None:
                run = self._view.get_run(RunId(self._view.get_receipt(introduced).stream))
                return self._of(run.root).find(item)
        return None

    def _of(self, root: RunId) -> TreeFates:
        if root not in self._read:
            self._read[root] = TreeFates(self._view, root, self)
        return self._read[root]


class StaleHandoff(Struct, frozen=True, kw_only=True):
    """A handoff that was offered with items which no longer stand, and was not told."""

    handoff: Handoff
    inputs: tuple[tuple[Carried, KnownFate], ...]


def find_stale(view: LedgerView, root: RunId | None = None) -> Iterator[StaleHandoff]:
    """Yield the handoffs of one tree, or of all, that stand on results which no longer stand, the latest first."""
    for tree in [root] if root is not None else _find_doubtful_trees(view):
        fates = TreeFates(view, tree)
        for handoff in view.find_handoffs(root=tree) if fates else ():
            if handoff.state not in _DEAD and (inputs := tuple(fates.find_inputs(handoff))):
                yield StaleHandoff(handoff=handoff, inputs=inputs)


def _find_doubtful_trees(view: LedgerView) -> list[RunId]:
    """Return the trees with a refuted result and the sessions that go on from them, the latest first."""
    refuted = {RunId(one.name) for one in view.find_remarks(RemarkKind.REFUTED)}
    later = {run.id for root in refuted for run in find_later_roots(view, root)}
    return sorted(refuted | later, reverse=True)


def _find_inputs(view: LedgerView, offer: Receipt, carries: tuple[Carried, ...]) -> Iterator[Carried]:
    """Yield the items that a handoff stands on: those that its brief names as inputs, else all that are results.

    An item that binds everybody is no input: it is checked, not built on.
    """
    results = [ref for ref in carries if ref.part not in INHERITED]
    named = _named_inputs(view, offer)
    if not named:
        yield from results
        return
    for ref in results:
        if ref.part in _NAMED and name_of(view, ref.item) in named:
            yield ref


def _named_inputs(view: LedgerView, offer: Receipt) -> frozenset[str]:
    ref = offer.content.get(BRIEF)
    body = None if ref is None else view.get_content(ref.id).body
    return frozenset() if body is None else frozenset(decode_brief(body).inputs)


def name_of(view: LedgerView, item: ContentId) -> str | None:
    """Return the name of a file or the key of a claim; None for anything else, and once its words were erased."""
    body = view.get_content(item).body
    if body is None:
        return None
    try:
        value, _, _ = decode_item(body)
    except InvalidValueError:
        return None
    match value:
        case Artifact():
            return value.name
        case Claim():
            return value.key
        case _:
            return None


def describe_input(view: LedgerView, ref: Carried, known: KnownFate) -> str:
    """Return an item that no longer stands, and why, in words."""
    name = "the report" if ref.part is Part.COMPLETED else name_of(view, ref.item) or f"a {ref.part}"
    verdict = known.refutation
    fate = "was made from it" if known.fate is ItemFate.STALE else f"was {known.fate}"
    return f"{name} {fate} ({verdict.by} refuted the result of {verdict.agent})"


def find_told(view: LedgerView, root: RunId, revised: HandoffRevised) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the news in a revision: each item that no longer stands and why, and the names of the replacements."""
    known = read_fates(view, revised.fates)
    tree = TreeFates(view, root)
    known |= {item: fate for item in revised.drops if (fate := tree.find(item)) is not None}
    fallen = tuple(f"{title_of(view, item)}: {fate.sentence}" for item, fate in known.items())
    return fallen, tuple(dict.fromkeys(title_of(view, ref.item) for ref in revised.carries))


def title_of(view: LedgerView, item: ContentId) -> str:
    """Return the name of a file, the words of another short item, or the kind of the item."""
    value = find_value(view, item)
    match value:
        case None:
            return "an item"
        case Artifact():
            return value.name
        case Report():
            return f"the report {_quoted(value.result)}"
        case _:
            words = next((said for name in _WORDS if isinstance(said := getattr(value, name, None), str)), "")
            kind = type(value).__name__.lower()
            return f"the {kind} {_quoted(words)}" if words else f"a {kind}"


def _quoted(words: str) -> str:
    text = " ".join(words.split())
    return json.dumps(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…", ensure_ascii=False)


def _agent_of(view: LedgerView, body: VerificationFailed) -> AgentId:
    handoff = view.get_handoff(body.handoff)
    attempts = (run.agent for run in view.find_attempts(handoff) if run.attempt == body.attempt)
    return next(attempts, handoff.to)
