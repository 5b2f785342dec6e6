"""The answer to why: one sentence, the facts behind it, and every hop up to the human."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from batonpass.model.base.ids import HandoffId, PrincipalId, ReceiptId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.records.text import Text


class WhyVerdict(StrEnum):
    """What became of something that was asked for."""

    ALLOWED = "allowed"
    DENIED = "denied"
    HELD = "held"
    ASKED = "asked"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    EXCEEDED = "exceeded"  # it was allowed, and did more than that
    RECORDED = "recorded"  # nothing was asked for: it is a fact


class Fact(Struct, frozen=True, kw_only=True):
    """One thing that the ledger says about it, and where."""

    label: str
    text: str
    receipt: ReceiptId | None = None
    at: datetime | None = None


class WhyHop(Struct, frozen=True, kw_only=True):
    """One run on the way up to the human: what it was asked to be allowed, by whom, and who let it go on."""

    name: str
    run: RunId | None  # None for a handoff that nobody has taken
    handoff: HandoffId | None
    mode: Mode
    may: tuple[str, ...] | None  # what its sender asked for it; None if those words are gone
    asked_by: str | None  # None for a root
    task: Text | None
    offer: ReceiptId | None
    granted: bool = False  # what it may is signed, and it is held to it
    granted_by: str | None = None  # who gave it that; None for a root, and if nothing was granted
    carried: bool | None = None  # whether it was given what decided this; None if nothing that travels did
    approvals: tuple[Fact, ...] = ()


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
    mark: str | None = None  # that what it is about was imported

    @property
    def sentence(self) -> str:
        """Return the answer."""
        return f"{self.verdict}: {self.answer}"
