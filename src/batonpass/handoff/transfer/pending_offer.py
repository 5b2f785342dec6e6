"""An offer on its way: who hands what to whom, all that travels with it, and what was decided about it so far."""

from collections.abc import Mapping
from typing import NoReturn

from msgspec import Struct, field

from batonpass.errors import GrantError, PolicyRefusedError
from batonpass.guard.policy.gates import GateDecision
from batonpass.guard.policy.hops import Lineage
from batonpass.handoff.grants.terms import NOTHING_GIVEN, Given
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.transfer.free_text import Context
from batonpass.handoff.transfer.offer_request import OfferRequest
from batonpass.model.base.content_names import MESSAGE, TASK
from batonpass.model.base.ids import ContentId, Digest, HandoffId, new_handoff_id
from batonpass.model.baton.fate import KnownFate
from batonpass.model.baton.items import Item
from batonpass.model.bodies.body import HandoffFailed
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Premise
from batonpass.model.policy.handoff_policy import HandoffPolicy


class PendingOffer(Struct, kw_only=True):
    """One handoff between the moment that a door asks for it and its first receipt."""

    desk: Desk
    holding: Holding
    asked: OfferRequest
    fingerprint: Digest
    key: Digest
    handoff: HandoffId
    policies: tuple[HandoffPolicy, ...]  # all that it is held to
    beside: tuple[Content, ...] = ()  # what its door adds to its receipts, such as where it heard of the handoff

    reads: bool = False  # what happened in the tree is read, and not taken for granted
    looked: bool = False  # it was read
    premise: Premise | None = None  # what has to be so when it is written

    items: tuple[Item, ...] = ()  # all that travels with it
    contents: tuple[Content, ...] = ()  # the words of what is new among that
    context: Context | None = None  # what is said besides, as free text
    missing: tuple[str, ...] = ()
    unverified: tuple[HandoffId, ...] = ()  # results that it builds on and nobody verified
    fates: Mapping[ContentId, KnownFate] = field(default_factory=dict)  # of items whose result no longer stands
    replaces: HandoffId | None = None  # the same task, offered before with other inputs
    lineage: Lineage | None = None  # read only where a policy asks for it
    decision: GateDecision | None = None  # what holds it
    given: Given = NOTHING_GIVEN  # what is granted with it
    flags: list[str] = field(default_factory=list)  # what would have stopped it, were it enforced

    def again(self) -> "PendingOffer":
        """Return the same offer from its beginning, with nothing taken for granted."""
        return PendingOffer(
            desk=self.desk,
            holding=self.holding,
            asked=self.asked,
            fingerprint=self.fingerprint,
            key=self.key,
            handoff=self.handoff,
            policies=self.policies,
            replaces=self.replaces,
            beside=self.beside,
            reads=True,
        )

    def refuse(self, refusal: PolicyRefusedError | GrantError) -> NoReturn:
        """Record that a policy or a grant did not let it go: the task, and why. Nothing of it runs. Then raise that."""
        refused = HandoffFailed(
            handoff=new_handoff_id(self.desk.clock.now()),
            parent=self.holding.id,
            run=self.holding.id,
            attempt=0,
            to=self.asked.to,
            error=refusal.code,
        )
        fill_gap(self.desk, self.holding)
        contents = (self.desk.text(TASK, self.asked.task), self.desk.text(MESSAGE, str(refusal)), *self.beside)
        self.desk.recording.record(self.holding.working, refused, contents)
        raise refusal
