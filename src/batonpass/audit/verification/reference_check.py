"""References between receipts: a receipt must agree with the receipts that it refers to.

Pure; step 8 of verification.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from msgspec import Struct, field

from batonpass.audit.verification.carried_items import CarriedItems
from batonpass.audit.verification.ruling_check import DECISIONS, Holds, require_decision
from batonpass.audit.verification.taint_check import Taints
from batonpass.errors import UnlinkedError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.model.base.ids import (
    AgentId,
    CallId,
    ContentId,
    Digest,
    HandoffId,
    KeyId,
    PublicKey,
    ReceiptId,
    RelayId,
    RunId,
    StreamId,
    TokenId,
    WebhookId,
)
from batonpass.model.base.kinds import WebhookChange
from batonpass.model.bodies.body import (
    AlarmAcknowledged,
    AlarmCleared,
    AlarmRaised,
    ApproverEnrolled,
    ApproverRevoked,
    ChildHead,
    ContentErased,
    FindingAcknowledged,
    HandoffAccepted,
    HandoffAnswered,
    HandoffCompleted,
    HandoffContextSanitized,
    HandoffFailed,
    HandoffHeld,
    HandoffInitiated,
    HandoffLate,
    HandoffResumed,
    HandoffRevised,
    RelayRevoked,
    RelayRotated,
    RunAcknowledged,
    RunClosed,
    RunRecorded,
    RunRelaxed,
    SessionPruned,
    SessionResumed,
    SessionSaved,
    TokenAdded,
    TokenRevoked,
    ToolCached,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
    WebhookChanged,
)
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.ruling import Decided
from batonpass.model.ledger.run import Run
from batonpass.store.derived_rows import Derived


class ReceiptMemory(Struct):
    """The facts from earlier receipts that later ones are compared with, besides the derived rows."""

    history: dict[StreamId, list[bytes]] = field(default_factory=dict)  # digests of run receipts, by seq
    run_keys: dict[RunId, PublicKey] = field(default_factory=dict)
    anchors: dict[HandoffId, set[Digest]] = field(default_factory=dict)  # where the next attempt may hang from
    batons: dict[HandoffId, tuple[Digest, int]] = field(default_factory=dict)  # the latest revision, and its number
    revisions: dict[tuple[HandoffId, int], Digest] = field(default_factory=dict)  # those after the offer, by number
    items: CarriedItems = field(default_factory=CarriedItems)
    taints: Taints = field(default_factory=Taints)
    calls: dict[RunId, set[CallId]] = field(default_factory=dict)  # requested, no outcome yet
    checkpoints: dict[ReceiptId, RunId] = field(default_factory=dict)
    erased: dict[ContentId, ReceiptId] = field(default_factory=dict)
    public_keys: dict[KeyId, bytes] = field(default_factory=dict)
    in_flight: dict[RunId, tuple[HandoffId, ...]] = field(default_factory=dict)  # by root, at its start
    holds: Holds = field(default_factory=Holds)
    tokens: set[TokenId] = field(default_factory=set)  # that were added
    webhooks: set[WebhookId] = field(default_factory=set)  # as above, and not removed
    alarms: set[tuple[AgentId, str]] = field(default_factory=set)  # that were raised
    whole: bool = True  # False in a bundle: other trees are not available for comparison

    def take_call(self, body: ToolRequested | ToolCompleted | ToolFailed) -> None:
        """Remember which calls of a run have no outcome yet."""
        if isinstance(body, ToolRequested):
            self.calls.setdefault(body.run, set()).add(body.call)
        else:
            self.calls[body.run].discard(body.call)

    def take_of_relay(
        self, body: ContentErased | TokenAdded | WebhookChanged | AlarmRaised, receipt: ReceiptId
    ) -> None:
        """Remember erased contents with their receipts, and which tokens, webhooks and alarms there are."""
        if isinstance(body, TokenAdded):
            self.tokens.add(body.token)
        elif isinstance(body, AlarmRaised):
            self.alarms.add((body.agent, body.alarm))
        elif isinstance(body, WebhookChanged):
            if body.change is WebhookChange.REMOVED:
                self.webhooks.discard(body.webhook)
            else:
                self.webhooks.add(body.webhook)
        else:
            self.erased.update(dict.fromkeys(body.contents, receipt))

    def take_baton(
        self, body: HandoffInitiated | HandoffAnswered | HandoffRevised | SessionResumed, digest: Digest
    ) -> None:
        """Remember the latest revision of a baton, and the handoffs that were in flight when a root began."""
        if isinstance(body, SessionResumed):
            self.in_flight[body.run] = body.in_flight
        elif isinstance(body, HandoffInitiated):
            self.anchors[body.handoff] = {digest}
            self.batons[body.handoff] = (digest, 0)
        else:
            self.batons[body.handoff] = (digest, body.revision)
            self.revisions[body.handoff, body.revision] = digest


class Facts(Struct, frozen=True):
    """The input of a rule: the derived rows, the memory, and the receipt."""

    derived: Derived
    memory: ReceiptMemory
    receipt: Receipt


def _require_call(facts: Facts, body: ToolCompleted | ToolFailed) -> None:
    if body.call not in facts.memory.calls.get(body.run, ()):
        raise UnlinkedError(f"{body.call} was not requested, or has an outcome already", field="call")
    if body.changes or body.effects:
        own = {ref.id for ref in facts.receipt.content.values()}
        named = [*(("changes", one.change) for one in body.changes), *(("effects", one.effect) for one in body.effects)]
        for field, content in named:
            if content not in own:
                raise UnlinkedError(f"{content} is not among its own contents", field=field)


def _require_late(facts: Facts, body: HandoffLate) -> None:
    run = facts.derived.runs.get(body.run)
    if run is None or run.handoff != body.handoff or body.call not in facts.memory.calls.get(body.run, ()):
        raise UnlinkedError(f"{body.call} was not requested by an attempt at this handoff", field="call")


def _require_close_out(facts: Facts, body: HandoffCompleted | HandoffFailed) -> None:
    if isinstance(body, HandoffFailed) and body.is_refusal:
        if body.handoff in facts.derived.handoffs:
            raise UnlinkedError("a handoff that was refused was never offered", field="handoff")
        return
    run = facts.derived.runs.get(body.run)
    if run is None or (run.handoff, run.parent, run.attempt) != (body.handoff, body.parent, body.attempt):
        raise UnlinkedError("the close-out is of another handoff than its run", field="handoff")
    facts.memory.items.require(facts.receipt)
    _require_children(facts, body.run, body.children)


def _require_closed(facts: Facts, body: RunClosed) -> None:
    _require_children(facts, body.run, body.children)


def _require_revision(facts: Facts, body: HandoffAnswered | HandoffRevised) -> None:
    known = facts.memory.batons.get(body.handoff)
    if known is None or body.revision != known[1] + 1:
        raise UnlinkedError(f"revision {body.revision} does not follow the one before it", field="revision")


def _require_revised(facts: Facts, body: HandoffRevised) -> None:
    _require_revision(facts, body)
    facts.memory.items.require(facts.receipt)


def _require_acknowledged(facts: Facts, body: RunAcknowledged) -> None:
    run = facts.derived.runs.get(body.run)
    handoff = None if run is None else run.handoff
    if run is not None and run.parent is None:
        facts.memory.items.require_verdict(run.id, body.baton)
    elif handoff is None or facts.memory.revisions.get((handoff, body.revision)) != body.baton:
        raise UnlinkedError(f"revision {body.revision} of its handoff is another one, or there is none", field="baton")


def _require_sanitised(facts: Facts, body: HandoffContextSanitized) -> None:
    handoff = facts.derived.handoffs.get(body.handoff)
    run = facts.derived.runs.get(body.run)
    reports = run is not None and run.handoff == body.handoff
    if handoff is None or (handoff.parent != body.run and not reports):
        raise UnlinkedError("it is about a handoff that its run neither offered nor works on", field="handoff")


def _require_offer(facts: Facts, body: HandoffInitiated) -> None:
    facts.memory.items.require(facts.receipt)
    if body.replaces is not None and _root_of(facts, body.replaces) != facts.receipt.root:
        raise UnlinkedError(f"{body.replaces} was never offered in this tree", field="replaces")
    if body.reasoning is not None and body.reasoning.checkpoint is not None:
        thinker = facts.memory.checkpoints.get(body.reasoning.checkpoint)
        if thinker is None or not _is_same_work(facts, thinker, body.run):
            raise UnlinkedError("it points to a content that is no checkpoint of its sender", field="reasoning")


def _root_of(facts: Facts, handoff: HandoffId) -> RunId | None:
    known = facts.derived.handoffs.get(handoff)
    return None if known is None else known.root


def _require_items(facts: Facts, _: RunRecorded | RunRelaxed) -> None:
    facts.memory.items.require(facts.receipt)


def _require_saved(facts: Facts, body: SessionSaved) -> None:
    _require_kept(facts, body, {body.run})


def _require_resumed(facts: Facts, body: SessionResumed) -> None:
    """Check a session against the trees that it continues; in a bundle, only if the bundle has them all."""
    roots = {root.run for root in body.roots}
    if not facts.memory.whole and not roots <= facts.derived.runs.keys():
        return
    for root in body.roots:
        run = facts.derived.runs.get(root.run)
        if run is None or run.parent is not None:
            raise UnlinkedError(f"{root.run} is no root that it could come from", field="roots")
        _require_head(facts, root, "roots")
    _require_kept(facts, body, roots)


def _require_kept(facts: Facts, body: SessionSaved | SessionResumed, roots: AbstractSet[RunId]) -> None:
    memory, handoffs = facts.memory, facts.derived.handoffs
    # Handoffs in flight elsewhere when those roots began belong to the session, so their trees count too.
    elsewhere = {handoffs[one].root for root in roots for one in memory.in_flight.get(root, ()) if one in handoffs}
    memory.items.require_inherited(body, frozenset(roots | elsewhere), whole=memory.whole)
    for handoff in body.in_flight:
        if memory.whole and handoff not in handoffs:
            raise UnlinkedError(f"{handoff} was never offered", field="in_flight")


def _require_cached(facts: Facts, body: ToolCached) -> None:
    # Freshness is not checked: the relay decided it just before this was recorded, and clocks differ.
    kept = facts.derived.cached.get(body.made)
    if kept is None and not facts.memory.whole:
        return
    if kept is None or kept.receipt != body.result:
        raise UnlinkedError(f"{body.result} keeps no result of {body.made}", field="result")


def _require_pruned(facts: Facts, body: SessionPruned) -> None:
    run = facts.derived.runs.get(body.root)
    if facts.memory.whole and (run is None or run.parent is not None):
        raise UnlinkedError(f"{body.root} is no root that leaves anything", field="root")
    if not may_endorse(body.by):
        raise UnlinkedError(f"{body.by} is no person, and takes something out of a session", field="by")


def _require_added(facts: Facts, body: TokenRevoked) -> None:
    if facts.memory.whole and body.token not in facts.memory.tokens:
        raise UnlinkedError(f"{body.token} was never added", field="token")


def _require_webhook(facts: Facts, body: WebhookChanged) -> None:
    added = body.change is WebhookChange.ADDED
    if facts.memory.whole and (body.webhook in facts.memory.webhooks) is added:
        raise UnlinkedError(f"{body.webhook} {'was added before' if added else 'is not there'}", field="webhook")


def _require_seen(facts: Facts, body: FindingAcknowledged) -> None:
    run = facts.derived.runs.get(body.root)
    if facts.memory.whole and (run is None or run.parent is not None):
        raise UnlinkedError(f"{body.root} is no root whose tree somebody could review", field="root")
    if not may_endorse(body.by):
        raise UnlinkedError(f"{body.by} is no person, and acknowledges a finding", field="by")


def _require_alarm(facts: Facts, body: AlarmAcknowledged | AlarmCleared) -> None:
    if facts.memory.whole and (body.agent, body.alarm) not in facts.memory.alarms:
        raise UnlinkedError(f"no alarm {body.alarm} about {body.agent} was raised", field="alarm")
    if isinstance(body, AlarmAcknowledged) and not may_endorse(body.by):
        raise UnlinkedError(f"{body.by} is no person, and acknowledges an alarm", field="by")


def _require_rotated(facts: Facts, body: RelayRotated) -> None:
    _require_owner(facts, body.old_key, body.relay)


def _require_revoked(facts: Facts, body: RelayRevoked) -> None:
    _require_owner(facts, body.public_key, body.relay)


def _require_owner(facts: Facts, public_key: PublicKey, relay: RelayId) -> None:
    key = facts.derived.keys.get(key_id(public_key))
    if key is None or key.relay != relay:
        raise UnlinkedError(f"the key that it names is not a key of {relay}", field="relay")


def _require_approver(facts: Facts, body: ApproverEnrolled) -> None:
    # Keys of runs and relays are within reach of agents, so they prove nothing about a person.
    if key_id(body.public_key) in facts.memory.public_keys:
        raise UnlinkedError("the key of an approver is a key of a run, a relay or the ledger", field="public_key")


def _require_approver_revoked(facts: Facts, body: ApproverRevoked) -> None:
    key = facts.derived.keys.get(key_id(body.public_key))
    if key is None or key.principal != body.principal:
        raise UnlinkedError(f"the key that it names is not a key of {body.principal}", field="principal")


def _require_held(facts: Facts, body: HandoffHeld) -> None:
    facts.memory.holds.require_held(body)
    if body.awaits is not None:
        child = facts.derived.handoffs.get(body.awaits)
        if body.call is not None:
            raise UnlinkedError("it waits for a call and for a handoff, and can go on by one of them", field="awaits")
        if child is None or not _is_same_work(facts, child.parent, body.ended.run):
            raise UnlinkedError(f"it waits for {body.awaits}, which it did not hand off", field="awaits")


def _require_wait(facts: Facts, body: HandoffResumed) -> None:
    facts.memory.holds.require_resumed(body)


def _require_decision(facts: Facts, body: Decided) -> None:
    require_decision(facts.memory.holds, facts.derived, body, whole=facts.memory.whole)


def _require_attempt(facts: Facts, body: HandoffAccepted) -> None:
    handoff = facts.derived.handoffs.get(body.handoff)
    if handoff is None:
        raise UnlinkedError("the handoff that it takes was never offered", field="handoff")
    parent = facts.derived.runs.get(body.parent)
    if parent is None or handoff.parent != body.parent:
        raise UnlinkedError("its parent did not offer this handoff", field="parent")
    if handoff.to != body.agent:
        raise UnlinkedError(f"it was offered to {handoff.to} and taken by {body.agent}", field="agent")
    if parent.principal != body.principal:
        raise UnlinkedError("it acts for another principal than its parent", field="principal")
    if body.baton not in {None, facts.memory.batons[body.handoff][0]}:
        raise UnlinkedError("it countersigns another baton than the latest", field="baton")


def _require_children(facts: Facts, parent: RunId, children: tuple[ChildHead, ...]) -> None:
    # With the heads of its children, a close-out commits to the whole tree below it: the last receipts of a child
    # cannot be cut off unnoticed.
    for child in children:
        run = facts.derived.runs.get(child.run)
        if run is None or not _is_child(facts, run, parent):
            raise UnlinkedError(f"it lists {child.run}, which is no child of it", field="children")
        _require_head(facts, child, "children")


def _require_head(facts: Facts, listed: ChildHead, name: str) -> None:
    known = facts.memory.history[StreamId(listed.run)]
    if len(known) < listed.seq or known[listed.seq - 1].hex() != listed.head:
        raise UnlinkedError(f"it lists another head of {listed.run} than there is", field=name)


def _is_child(facts: Facts, run: Run, parent: RunId) -> bool:
    """Return whether a run was handed off by this parent, or by an earlier attempt whose children it took over."""
    return run.parent is not None and _is_same_work(facts, run.parent, parent)


def _is_same_work(facts: Facts, one: RunId, other: RunId) -> bool:
    """Return whether two runs are the same one, or attempts at the same handoff."""
    if one == other:
        return True
    before, known = facts.derived.runs.get(one), facts.derived.runs.get(other)
    if known is None or before is None or known.handoff is None:
        return False
    return known.handoff == before.handoff


RULES: Final[Mapping[type, Callable[[Facts, Any], None]]] = {
    ToolCompleted: _require_call,
    ToolFailed: _require_call,
    HandoffAccepted: _require_attempt,
    HandoffCompleted: _require_close_out,
    HandoffFailed: _require_close_out,
    HandoffInitiated: _require_offer,
    HandoffContextSanitized: _require_sanitised,
    HandoffAnswered: _require_revision,
    HandoffRevised: _require_revised,
    RunAcknowledged: _require_acknowledged,
    SessionPruned: _require_pruned,
    FindingAcknowledged: _require_seen,
    AlarmAcknowledged: _require_alarm,
    AlarmCleared: _require_alarm,
    TokenRevoked: _require_added,
    WebhookChanged: _require_webhook,
    HandoffLate: _require_late,
    RunRecorded: _require_items,
    RunRelaxed: _require_items,
    RunClosed: _require_closed,
    SessionSaved: _require_saved,
    SessionResumed: _require_resumed,
    ToolCached: _require_cached,
    RelayRotated: _require_rotated,
    RelayRevoked: _require_revoked,
    ApproverEnrolled: _require_approver,
    ApproverRevoked: _require_approver_revoked,
    HandoffHeld: _require_held,
    HandoffResumed: _require_wait,
    **dict.fromkeys(DECISIONS, _require_decision),
}
