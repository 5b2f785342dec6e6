"""A lease: the right of a worker to a handoff for a limited time. It proves nothing, so it is no receipt."""

from datetime import datetime

from msgspec import Struct

from batonpass.model.base.checks import require_integer, require_utc
from batonpass.model.base.ids import HANDOFF, HandoffId, require_agent, require_id


class Lease(Struct, frozen=True, kw_only=True):
    """Who may work on a handoff, and until when by the store's clock."""

    handoff: HandoffId
    holder: str
    token: int  # new with every claim: an old token means that the lease was lost
    until: datetime

    def __post_init__(self) -> None:
        require_id("handoff", self.handoff, HANDOFF)
        require_agent("holder", self.holder)
        require_integer("token", self.token)
        require_utc("until", self.until)
