"""All endpoints of the HTTP interface, in the order in which the document lists them."""

from typing import Final

from batonpass.server.endpoint import Endpoint
from batonpass.server.resources import decisions, handoffs, ledger, receipts, runs

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *runs.ENDPOINTS,
    *handoffs.ENDPOINTS,
    *receipts.ENDPOINTS,
    *decisions.ENDPOINTS,
    *ledger.ENDPOINTS,
)
