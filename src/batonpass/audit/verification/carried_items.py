"""The items that travel with handoffs: checked by id and digest at every hop, from receipts alone."""

from msgspec import Struct, field

from batonpass.errors import UnlinkedError
from batonpass.model.base.ids import ContentId, Digest, HandoffId, ReceiptId, RunId
from batonpass.model.base.kinds import CarriedFate
from batonpass.model.baton.baton import INHERITED
from batonpass.model.bodies.body import (
    Carried,
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    HandoffRevised,
    Part,
    RunClosed,
    RunRecorded,
    RunRelaxed,
    RunStarted,
    SessionResumed,
    SessionSaved,
    VerificationFailed,
)
from batonpass.model.ledger.receipt import Receipt


class CarriedItems(Struct):
    """The known items and their origin, and the items that each run must hand on."""

    known: dict[ContentId, tuple[RunId | None, Digest, Part]] = field(default_factory=dict)  # root, digest and part
    binding: dict[RunId, dict[ContentId, Carried]] = field(default_factory=dict)  # constraints and exclusions, by run
    refuted: dict[ReceiptId, RunId | None] = field(default_factory=dict)  # refuting verdicts, with their tree
    refuting: dict[Digest, RunId | None] = field(default_factory=dict)  # the same, by the digest of the receipt
    earlier: dict[RunId, frozenset[RunId]] = field(default_factory=dict)  # the trees that a root goes on from
    offers: dict[HandoffId, tuple[Carried, ...]] = field(default_factory=dict)
    whole: bool = True  # False in a bundle: trees of earlier sessions are missing

    def require(self, receipt: Receipt) -> None:
        """Refuse a receipt that names an item which was not recorded with this digest and part.

        Raises `UnlinkedError`.
        """
        match receipt.body:
            case RunRecorded() as body:
                self._require(receipt, body.items, "items", anew=True)
            case HandoffInitiated() | HandoffRevised() as body:
                self._require(receipt, body.carries, "carries")
                self._require_verdicts(receipt, body.fates)
            case HandoffCompleted() | HandoffFailed() as body:
                self._require(receipt, body.gives, "gives")
            case RunRelaxed() as body if body.item not in self.binding.get(body.run, {}):
                raise UnlinkedError(f"{body.item} does not bind this run", field="item")

    def require_inherited(self, body: SessionSaved | SessionResumed, trees: frozenset[RunId], *, whole: bool) -> None:
        """Refuse a session that keeps an item which these trees did not record. Raises `UnlinkedError`.

        If not `whole`, an unknown item passes, because its tree may be missing.
        """
        for item in body.kept:
            tree, *recorded = self.known.get(item.item, (None, None, None))
            if (tree is not None or whole) and (tree not in trees or recorded != [item.digest, item.part]):
                raise UnlinkedError(f"it names {item.item}, which nobody recorded so", field="kept")
        for revisited in body.revisit:
            tree = self.known.get(revisited, (None,))[0]
            if (tree is not None or whole) and tree not in trees:
                raise UnlinkedError(f"it names {revisited}, which nobody recorded there", field="revisit")

    def _require(self, receipt: Receipt, items: tuple[Carried, ...], name: str, *, anew: bool = False) -> None:
        own = {ref.id: ref.digest for ref in receipt.content.values()}
        for item in items:
            if own.get(item.item) != item.digest and (anew or not self._is_known(receipt, item)):
                raise UnlinkedError(f"it names {item.item}, which nobody recorded so", field=name)

    def _require_verdicts(self, receipt: Receipt, fates: tuple[CarriedFate, ...]) -> None:
        for fate in fates:
            if not self._is_verdict_for(receipt.root, self.refuted.get(fate.verdict)):
                raise UnlinkedError(f"{fate.verdict} refutes no result of this tree", field="fates")

    def require_verdict(self, root: RunId, verdict: Digest) -> None:
        """Refuse the acknowledgement of a root unless it is of a verdict on inherited items. Raises `UnlinkedError`."""
        tree = self.refuting.get(verdict)
        if tree == root or not self._is_verdict_for(root, tree):
            raise UnlinkedError("it acknowledges no verdict on a result of an earlier session", field="baton")

    def _is_verdict_for(self, root: RunId | None, tree: RunId | None) -> bool:
        """Return whether a verdict in one tree, or an unknown one, can be about something in another."""
        earlier = frozenset() if root is None else self.earlier.get(root, frozenset())
        if tree is None:
            return not self.whole and bool(earlier)
        return tree == root or tree in earlier

    def remember(self, receipt: Receipt, digest: Digest) -> None:
        """Remember the items of a receipt, and which verdicts refute them."""
        match receipt.body:
            case RunStarted():
                self._know(receipt, Part.INTENT, Part.INTENT)
            case RunRecorded() as body:
                self._learn(receipt, body.items)
                self._bind(body.run, body.items)
            case RunRelaxed() as body:
                self.binding.get(body.run, {}).pop(body.item, None)
            case HandoffInitiated() as body:
                self._learn(receipt, body.carries)
                self.offers[body.handoff] = body.carries
            case HandoffRevised() as body:
                # It can bring new items along: those that came with an answer.
                self._learn(receipt, body.carries)
                self.offers[body.handoff] = (*self.offers.get(body.handoff, ()), *body.carries)
            case HandoffAccepted() as body:
                self._bind(body.run, self.offers.get(body.handoff, ()))
            case HandoffCompleted() | HandoffFailed() | RunClosed():
                self._know(receipt, "report", Part.COMPLETED)
            case VerificationFailed():
                self.refuted[receipt.id] = self.refuting[digest] = receipt.root
            case SessionResumed() as body:
                roots = [RunId(head.run) for head in body.roots]
                before = (self.earlier.get(root, frozenset()) for root in roots)
                self.earlier[body.run] = frozenset(roots).union(*before)

    def _is_known(self, receipt: Receipt, item: Carried) -> bool:
        return self.known.get(item.item) == (receipt.root, item.digest, item.part)

    def _know(self, receipt: Receipt, name: str, part: Part) -> None:
        if (ref := receipt.content.get(name)) is not None:
            self.known[ref.id] = (receipt.root, ref.digest, part)

    def _learn(self, receipt: Receipt, items: tuple[Carried, ...]) -> None:
        self.known.update((item.item, (receipt.root, item.digest, item.part)) for item in items)

    def _bind(self, run: RunId, items: tuple[Carried, ...]) -> None:
        bound = self.binding.setdefault(run, {})
        bound.update((item.item, item) for item in items if item.part in INHERITED and item.part is not Part.INTENT)
