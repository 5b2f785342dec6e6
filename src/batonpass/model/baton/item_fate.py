"""The fate of an item that travels: why the result that it belongs to no longer stands."""

from datetime import datetime

from msgspec import Struct

from batonpass.model.base.ids import AgentId, HandoffId, PrincipalId, ReceiptId
from batonpass.model.base.kinds import ItemFate


class Refutation(Struct, frozen=True, kw_only=True):
    """A verdict that refuted the result of one attempt."""

    receipt: ReceiptId
    handoff: HandoffId
    attempt: int  # attempt number, from 1
    agent: AgentId  # who delivered the result
    by: PrincipalId  # who refuted it
    at: datetime
    reason: str


class KnownFate(Struct, frozen=True, kw_only=True):
    """The fate of an item, and the verdict that decided it."""

    fate: ItemFate
    refutation: Refutation

    @property
    def verdict(self) -> str:
        """Return who refuted which result, without their words."""
        refuted = self.refutation
        return f"{refuted.by} refuted the result of {refuted.agent}, attempt {refuted.attempt}"

    @property
    def sentence(self) -> str:
        """Return the fate as a sentence, for an agent that is about to build on the item."""
        refuted, verdict = self.refutation, self.verdict
        because = f": {refuted.reason}" if refuted.reason else ""
        match self.fate:
            case ItemFate.REFUTED:
                return f"refuted: {verdict}{because}"
            case ItemFate.SUPERSEDED:
                return f"superseded: {verdict}{because}; a later attempt has delivered another one"
            case ItemFate.STALE:
                return f"stale: made from a result that no longer stands; {verdict}{because}"
