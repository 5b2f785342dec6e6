"""An offer between the request of a door and its first receipt: the request, its baton, and the decisions so far."""

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
from batonpass.model.base.ids import AgentId, ContentId, Digest, HandoffId, new_handoff_id
from batonpass.model.baton.item_fate import KnownFate
from batonpass.model.baton.items import Item
from batonpass.model.bodies.body import HandoffFailed
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.entry import Premise
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.handoff_policy import HandoffPolicy


class PendingOffer(Struct, kw_only=True):
    """One handoff between the moment that a door asks for it and its first receipt."""

    desk: Desk
    holding: Holding
    asked: OfferRequest
    fingerprint: Digest
    key: Digest
    handoff: HandoffId
    policy: HandoffPolicy  # that it has to meet
    beside: tuple[Content, ...] = ()  # contents that its door adds to its receipts, such as the hook event

    reads: bool = False  # read the tree, and assume nothing about it
    looked: bool = False  # the tree was read
    premise: Premise | None = None  # must still be true at the commit

    items: tuple[Item, ...] = ()  # everything that travels with it
    contents: tuple[Content, ...] = ()  # contents of the items that are new
    context: Context | None = None  # the free text of the sender
    missing: tuple[str, ...] = ()
    unverified: tuple[HandoffId, ...] = ()  # results that it builds on and that nobody verified
    fates: Mapping[ContentId, KnownFate] = field(default_factory=dict)  # of items that no longer stand
    replaces: HandoffId | None = None  # the handoff with the same task and other inputs
    in_flight: Handoff | None = None  # the same task, handed off by an earlier session and not over
    lineage: Lineage | None = None  # read only if a policy needs it
    decision: GateDecision | None = None  # the decision that holds it
    given: Given = NOTHING_GIVEN  # the grant that goes with it
    flags: list[str] = field(default_factory=list)  # codes of the rules that would have stopped it if it were enforced

    def again(self) -> "PendingOffer":
        """Return the same offer at its beginning. This time the tree is read."""
        return PendingOffer(
            desk=self.desk,
            holding=self.holding,
            asked=self.asked,
            fingerprint=self.fingerprint,
            key=self.key,
            handoff=self.handoff,
            policy=self.policy,
            replaces=self.replaces,
            beside=self.beside,
            reads=True,
        )

    def refuse(self, refusal: PolicyRefusedError | GrantError) -> NoReturn:
        """Record that a policy or a grant refused it, with task and reason; then raise the refusal."""
        refuse_offer(self.desk, self.holding, self.asked.to, self.asked.task, refusal, beside=self.beside)


def refuse_offer(
    desk: Desk,
    holding: Holding,
    to: AgentId,
    task: str,
    refusal: PolicyRefusedError | GrantError,
    *,
    beside: tuple[Content, ...] = (),
) -> NoReturn:
    """Record that an offer was refused, with its task and the reason; then raise the refusal."""
    refused = HandoffFailed(
        handoff=new_handoff_id(desk.clock.now()),
        parent=holding.id,
        run=holding.id,
        attempt=0,
        to=to,
        error=refusal.code,
    )
    if not holding.replaying:
        fill_gap(desk, holding)
        contents = (desk.text(TASK, task), desk.text(MESSAGE, str(refusal)), *beside)
        desk.recording.record(holding.working, refused, contents)
    raise refusal
