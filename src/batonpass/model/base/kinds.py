"""The kinds of receipt, and small values that several kinds share."""

from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.checks import (
    require_code,
    require_digest,
    require_integer,
    require_member,
)
from batonpass.model.base.ids import CONTENT, RECEIPT, RUN, ContentId, Digest, ReceiptId, RunId, require_id


class Kind(StrEnum):
    """The kinds of receipt. The text is stored and signed, so it is forever."""

    RUN_STARTED = "run.started"
    RUN_REKEYED = "run.rekeyed"
    RUN_RECORDED = "run.recorded"
    RUN_RELAXED = "run.relaxed"
    RUN_SETTLED = "run.settled"
    RUN_ACKNOWLEDGED = "run.acknowledged"
    RUN_TAINTED = "run.tainted"
    RUN_ENDORSED = "run.endorsed"
    RUN_GAP = "run.gap"
    RUN_SPENT = "run.spent"
    RUN_SUSPENDED = "run.suspended"
    RUN_CLOSED = "run.closed"
    CHECKPOINT_SAVED = "checkpoint.saved"
    HANDOFF_INITIATED = "handoff.initiated"
    HANDOFF_CONTEXT_SANITIZED = "handoff.context_sanitized"
    HANDOFF_ACCEPTED = "handoff.accepted"
    HANDOFF_COMPLETED = "handoff.completed"
    HANDOFF_FAILED = "handoff.failed"
    HANDOFF_HELD = "handoff.held"
    HANDOFF_RESUMED = "handoff.resumed"
    HANDOFF_PARKED = "handoff.parked"
    HANDOFF_BACKED = "handoff.backed"
    HANDOFF_APPROVED = "handoff.approved"
    HANDOFF_DENIED = "handoff.denied"
    HANDOFF_ASKED = "handoff.asked"
    HANDOFF_ANSWERED = "handoff.answered"
    HANDOFF_DECLINED = "handoff.declined"
    HANDOFF_LAPSED = "handoff.lapsed"
    HANDOFF_EXPIRED = "handoff.expired"
    HANDOFF_CANCELLED = "handoff.cancelled"
    HANDOFF_RETRIED = "handoff.retried"
    HANDOFF_REVISED = "handoff.revised"
    HANDOFF_REPLACED = "handoff.replaced"
    HANDOFF_SETTLED = "handoff.settled"
    HANDOFF_ENDORSED = "handoff.endorsed"
    HANDOFF_LATE = "handoff.late"
    VERIFICATION_PASSED = "verification.passed"
    VERIFICATION_FAILED = "verification.failed"
    VERIFICATION_REPEATED = "verification.repeated"
    VERIFICATION_WAIVED = "verification.waived"
    TOOL_REQUESTED = "tool.requested"
    TOOL_COMPLETED = "tool.completed"
    TOOL_FAILED = "tool.failed"
    TOOL_DENIED = "tool.denied"
    TOOL_CACHED = "tool.cached"
    SESSION_SAVED = "session.saved"
    SESSION_RESUMED = "session.resumed"
    SESSION_PRUNED = "session.pruned"
    TOOL_HELD = "tool.held"
    TOOL_BACKED = "tool.backed"
    TOOL_APPROVED = "tool.approved"
    TOOL_REFUSED = "tool.refused"
    RELAY_ENROLLED = "relay.enrolled"
    RELAY_ROTATED = "relay.rotated"
    RELAY_REVOKED = "relay.revoked"
    APPROVER_ENROLLED = "approver.enrolled"
    APPROVER_REVOKED = "approver.revoked"
    CONTENT_ERASED = "content.erased"
    FILE_ENDORSED = "file.endorsed"
    GRANT_REVOKED = "grant.revoked"
    FINDING_ACKNOWLEDGED = "finding.acknowledged"
    ALARM_RAISED = "alarm.raised"
    ALARM_ACKNOWLEDGED = "alarm.acknowledged"
    ALARM_CLEARED = "alarm.cleared"
    TOKEN_ADDED = "token.added"  # noqa: S105 - a kind of receipt
    TOKEN_REVOKED = "token.revoked"  # noqa: S105 - as above
    WEBHOOK_CHANGED = "webhook.changed"


class WebhookChange(StrEnum):
    """The new state of a webhook. The text is signed, so it is forever."""

    ADDED = "added"  # from here on it gets receipts
    ROTATED = "rotated"  # it has a new secret; the one before is used beside it for a while
    FAILED = "failed"  # nobody answered for so long that it is not tried any more
    RESUMED = "resumed"  # it is tried again, from where it stopped
    REMOVED = "removed"


class AccessRole(StrEnum):
    """The role of the holder of a token. The text is signed, so it is forever."""

    AGENT = "agent"  # starts runs, and acts in its own runs
    OPERATOR = "operator"  # reads everything, and decides: approve, answer, retry, cancel, revoke
    AUDITOR = "auditor"  # reads everything, and verifies
    ADMIN = "admin"  # all of that, and looks after the ledger


class Outcome(StrEnum):
    """How a root run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Part(StrEnum):
    """The parts of a baton that are made of items. The text is signed, so it is forever."""

    INTENT = "intent"
    CONSTRAINT = "constraint"
    EXCLUSION = "exclusion"
    COMPLETED = "completed"
    QUESTION = "question"
    REJECTED = "rejected"
    DECISION = "decision"
    ASSUMPTION = "assumption"
    CLAIM = "claim"
    ARTIFACT = "artifact"
    UNTRUSTED = "untrusted"


class Relation(StrEnum):
    """Who hands off to whom. It decides which parts a baton must have, and how far its results are trusted."""

    LEAD_TO_WORKER = "lead-to-worker"
    WORKER_TO_LEAD = "worker-to-lead"
    PEER_TO_PEER = "peer-to-peer"
    EXTERNAL_TO_AGENT = "external-to-agent"


class ErrorType(StrEnum):
    """Problems of a baton that are found before anybody acts on it."""

    DATA_GAP = "data-gap"
    SIGNAL_CORRUPTION = "signal-corruption"
    REFERENTIAL_DRIFT = "referential-drift"
    CAPABILITY_GAP = "capability-gap"


class Method(StrEnum):
    """How a result was verified."""

    COMMAND = "command"
    CHECK = "check"
    VERDICT = "verdict"


class Sanitising(StrEnum):
    """The act of the relay after it scanned a sender's text."""

    PASSED = "passed"  # the scan found nothing, which proves nothing
    REPORTED = "reported"  # the scan found something; the text travels unchanged
    QUARANTINED = "quarantined"  # the text travels unchanged, as data from outside


class Gate(StrEnum):
    """Who must approve: nobody (`none`), the one who asked (`confirm`), a person (`approve`); `deny` is final."""

    NONE = "none"
    CONFIRM = "confirm"
    APPROVE = "approve"
    DENY = "deny"


class WaitUntil(StrEnum):
    """When a wait for a handoff is over. The text is signed, so it is forever."""

    SETTLED = "settled"  # it ended, or somebody has to decide or answer
    DECIDED = "decided"  # it ended, or its caller can take it: a hold or a question does not end the wait


class Settlement(StrEnum):
    """Somebody's decision about a call in doubt: make it again (`repeat`), or take it as done (`skip`).

    Or, if its outcome came after its attempt was over, take that as its outcome (`late`).
    """

    REPEAT = "repeat"
    SKIP = "skip"
    LATE = "late"


class ScanFound(Struct, frozen=True, kw_only=True):
    """A match of one scan rule in one text of an offer."""

    place: str  # `task`, `context`, another field of the brief, `PART.ID` of an item, or `report`
    rule: str
    count: int
    score: int  # in thousandths

    def __post_init__(self) -> None:
        require_code("found.place", self.place)
        require_code("found.rule", self.rule)
        require_integer("found.count", self.count, least=1)
        require_integer("found.score", self.score)


class ChildHead(Struct, frozen=True, kw_only=True):
    """The head of another run's stream. A close-out lists those of its children, and so proves their receipts."""

    run: RunId
    seq: int
    head: Digest

    def __post_init__(self) -> None:
        require_id("children.run", self.run, RUN)
        require_integer("children.seq", self.seq, least=1)
        require_digest("children.head", self.head)


class Carried(Struct, frozen=True, kw_only=True):
    """An item that travels with a handoff. The same id and digest at every hop prove that no byte has changed."""

    item: ContentId
    digest: Digest
    part: Part

    def __post_init__(self) -> None:
        require_id("carries.item", self.item, CONTENT)
        require_digest("carries.digest", self.digest)
        if type(self.part) is not Part:
            require_member("carries.part", self.part, Part)


class ItemFate(StrEnum):
    """The reason why an item's result no longer stands. The text is signed, so it is forever."""

    REFUTED = "refuted"  # its result was refuted
    SUPERSEDED = "superseded"  # its result was refuted, and a later attempt has delivered another one
    STALE = "stale"  # its result was made from a refuted or superseded one


class CarriedFate(Struct, frozen=True, kw_only=True):
    """The fate of an item that travels with a handoff, as the sender knew it, and the verdict that decided it."""

    item: ContentId
    fate: ItemFate
    verdict: ReceiptId  # the `verification.failed` receipt; for a stale item, the one about the result it was made from

    def __post_init__(self) -> None:
        require_id("fates.item", self.item, CONTENT)
        require_member("fates.fate", self.fate, ItemFate)
        require_id("fates.verdict", self.verdict, RECEIPT)


class Mode(StrEnum):
    """Whether a receipt's run is only observed, or enforced: stopped by its grant or its policy."""

    OBSERVED = "observed"
    ENFORCED = "enforced"
