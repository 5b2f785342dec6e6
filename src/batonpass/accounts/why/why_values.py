"""The values of a why answer: one sentence, its facts, and every hop up to the human."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.ids import ContentId, HandoffId, PrincipalId, ReceiptId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.ledger.receipt import Receipt
from batonpass.records.text import Text


class WhyVerdict(StrEnum):
    """The decision about a request."""

    ALLOWED = "allowed"
    DENIED = "denied"
    HELD = "held"
    ASKED = "asked"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    EXCEEDED = "exceeded"  # it was allowed, and did more than that
    RECORDED = "recorded"  # a fact; nothing was requested


class Fact(Struct, frozen=True, kw_only=True):
    """One fact from the ledger, and its receipt."""

    label: str
    text: str
    receipt: ReceiptId | None = None
    at: datetime | None = None

    @classmethod
    def of(cls, label: str, text: str, receipt: Receipt) -> "Fact":
        """Return a fact that a receipt records."""
        return cls(label=label, text=text, receipt=receipt.id, at=receipt.at)


class WhyHop(Struct, frozen=True, kw_only=True):
    """One run on the way up to the human: its permits, who granted them, and who approved it."""

    name: str
    run: RunId | None  # None for a handoff that nobody accepted
    handoff: HandoffId | None
    mode: Mode
    may: tuple[str, ...] | None  # the permits that its sender asked for; None if erased
    asked_by: str | None  # None for a root
    task: Text | None
    offer: ReceiptId | None
    granted: bool = False  # it has a signed grant, and is held to it
    granted_by: str | None = None  # None for a root, and without a grant
    carried: bool | None = None  # whether it was given the deciding item; None if no item decided
    approvals: tuple[Fact, ...] = ()


class Explanation(Struct, frozen=True, kw_only=True):
    """A verdict with its reasons, before everything around it is known."""

    verdict: WhyVerdict
    answer: str
    facts: tuple[Fact, ...] = ()
    item: ContentId | None = None  # the constraint that decided, if one did and we can still tell which
    rule: str | None = None


class Why(Struct, frozen=True, kw_only=True):
    """Why something was allowed, denied or held, as far as it is recorded."""

    verdict: WhyVerdict
    answer: str
    kind: str  # call, handoff, run or receipt
    id: str
    receipt: ReceiptId | None
    at: datetime | None
    mode: Mode
    rule: str | None = None
    facts: tuple[Fact, ...] = ()
    hops: tuple[WhyHop, ...] = ()
    principal: PrincipalId | None
    intent: Text | None = None
    mark: str | None = None  # set if it is about something imported

    @property
    def sentence(self) -> str:
        """Return the whole answer."""
        return f"{self.verdict}: {self.answer}"
