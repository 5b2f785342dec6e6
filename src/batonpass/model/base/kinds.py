"""The kinds of receipt, and the small values that several of them hold."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.checks import (
    require_code,
    require_digest,
    require_instance,
    require_integer,
    require_member,
    require_unique,
    require_utc,
)
from batonpass.model.base.ids import CONTENT, RECEIPT, RUN, ContentId, Digest, ReceiptId, RunId, require_id


class Kind(StrEnum):
    """The kinds of receipt. The text is stored and signed, so it is forever."""

    RUN_STARTED = "run.started"
    RUN_REKEYED = "run.rekeyed"
    RUN_RECORDED = "run.recorded"
    RUN_RELAXED = "run.relaxed"
    RUN_SETTLED = "run.settled"
    RUN_TAINTED = "run.tainted"
    RUN_ENDORSED = "run.endorsed"
    RUN_GAP = "run.gap"
    RUN_SPENT = "run.spent"
    RUN_CLOSED = "run.closed"
    CHECKPOINT_SAVED = "checkpoint.saved"
    HANDOFF_INITIATED = "handoff.initiated"
    HANDOFF_CONTEXT_SANITIZED = "handoff.context_sanitized"
    HANDOFF_ACCEPTED = "handoff.accepted"
    HANDOFF_COMPLETED = "handoff.completed"
    HANDOFF_FAILED = "handoff.failed"
    HANDOFF_HELD = "handoff.held"
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
    """Who hands off to whom: it decides what a baton must hold, and how far its results are trusted."""

    LEAD_TO_WORKER = "lead-to-worker"
    WORKER_TO_LEAD = "worker-to-lead"
    PEER_TO_PEER = "peer-to-peer"
    EXTERNAL_TO_AGENT = "external-to-agent"


class ErrorType(StrEnum):
    """What can be wrong with a baton, found before anybody acts on it."""

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
    """What was done about what a scan found in what a sender says."""

    PASSED = "passed"  # nothing was found, which proves nothing
    REPORTED = "reported"  # something was found; the text travels as it is
    QUARANTINED = "quarantined"  # the text travels as data from outside, unchanged


class Gate(StrEnum):
    """Who has to let something go on: nobody, whoever asked for it, a person, or nobody can."""

    NONE = "none"
    CONFIRM = "confirm"
    APPROVE = "approve"
    DENY = "deny"


class Settlement(StrEnum):
    """What somebody decided about a call in doubt: make it again, or take it as done."""

    REPEAT = "repeat"
    SKIP = "skip"


class ScanFound(Struct, frozen=True, kw_only=True):
    """What a scan found in one of the texts of an offer."""

    place: str  # task or context
    rule: str
    count: int
    score: int  # in thousandths

    def __post_init__(self) -> None:
        require_code("found.place", self.place)
        require_code("found.rule", self.rule)
        require_integer("found.count", self.count, least=1)
        require_integer("found.score", self.score)


class ChildHead(Struct, frozen=True, kw_only=True):
    """Where another run's stream stood: a close-out that lists its children's heads proves the children."""

    run: RunId
    seq: int
    head: Digest

    def __post_init__(self) -> None:
        require_id("children.run", self.run, RUN)
        require_integer("children.seq", self.seq, least=1)
        require_digest("children.head", self.head)


def require_children(children: tuple[ChildHead, ...]) -> None:
    """Refuse a list of children that names one twice."""
    require_heads("children", children)


def require_heads(field: str, heads: tuple[ChildHead, ...]) -> None:
    """Refuse a list of where runs stand that names one twice."""
    require_instance(field, heads, tuple)
    for head in heads:
        require_instance(field, head, ChildHead)
    require_unique(field, [head.run for head in heads])


def require_hold(gate: Gate | None, until: datetime | None) -> None:
    """Refuse what does not say properly who has to let something go on, and by when."""
    if gate is not None:
        require_member("gate", gate, Gate)
    if until is not None:
        require_utc("until", until)


class Carried(Struct, frozen=True, kw_only=True):
    """An item that travels with a handoff: the same id and digest at every hop prove that not a byte has changed."""

    item: ContentId
    digest: Digest
    part: Part

    def __post_init__(self) -> None:
        require_id("carries.item", self.item, CONTENT)
        require_digest("carries.digest", self.digest)
        if type(self.part) is not Part:
            require_member("carries.part", self.part, Part)


class ItemFate(StrEnum):
    """What became of a result after it was recorded. The text is signed, so it is forever."""

    REFUTED = "refuted"  # somebody refuted the result that it belongs to
    SUPERSEDED = "superseded"  # that result was refuted, and a later attempt has delivered another one
    STALE = "stale"  # the result that it belongs to was made from one of those


class CarriedFate(Struct, frozen=True, kw_only=True):
    """The fate of an item that travels with a handoff, as its sender knew it, and the verdict that decided it."""

    item: ContentId
    fate: ItemFate
    verdict: ReceiptId  # the `verification.failed`; of a stale item, that of the result it was made from

    def __post_init__(self) -> None:
        require_id("fates.item", self.item, CONTENT)
        require_member("fates.fate", self.fate, ItemFate)
        require_id("fates.verdict", self.verdict, RECEIPT)


def require_fates(fates: tuple[CarriedFate, ...]) -> None:
    """Refuse two fates of one item."""
    require_instance("fates", fates, tuple)
    if fates:
        for fate in fates:
            require_instance("fates", fate, CarriedFate)
        require_unique("fates", [fate.item for fate in fates])


def require_carried(field: str, carried: tuple[Carried, ...]) -> None:
    """Refuse a list of items that names one twice."""
    require_instance(field, carried, tuple)
    for item in carried:
        if type(item) is not Carried:  # there may be two hundred
            require_instance(field, item, Carried)
    require_unique(field, [item.item for item in carried])


class Mode(StrEnum):
    """Whether the run that a receipt belongs to is only watched, or held to a grant."""

    OBSERVED = "observed"
    ENFORCED = "enforced"
