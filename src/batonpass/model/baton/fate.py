"""The fate of what travels: whether the result that an item belongs to still stands."""

from datetime import datetime

from msgspec import Struct

from batonpass.model.base.ids import AgentId, HandoffId, PrincipalId, ReceiptId
from batonpass.model.base.kinds import ItemFate


class Refutation(Struct, frozen=True, kw_only=True):
    """A verdict that the result of one attempt does not hold."""

    receipt: ReceiptId
    handoff: HandoffId
    attempt: int
    agent: AgentId  # whose result it was
    by: PrincipalId
    at: datetime
    reason: str


class KnownFate(Struct, frozen=True, kw_only=True):
    """What became of an item, and the verdict that decided it."""

    fate: ItemFate
    refutation: Refutation

    @property
    def sentence(self) -> str:
        """Return it in words, for whoever is about to build on the item."""
        refuted = self.refutation
        verdict = f"{refuted.by} refuted the result of {refuted.agent}, attempt {refuted.attempt}"
        because = f": {refuted.reason}" if refuted.reason else ""
        match self.fate:
            case ItemFate.REFUTED:
                return f"refuted: {verdict}{because}"
            case ItemFate.SUPERSEDED:
                return f"superseded: {verdict}{because}; a later attempt has delivered another one"
            case ItemFate.STALE:
                return f"stale: made from a result that no longer stands; {verdict}{because}"
