"""All endpoints of the HTTP interface, in the order in which the document lists them."""

from typing import Final

from batonpass.server.acts import (
    admin_acts,
    call_acts,
    decision_acts,
    handoff_acts,
    recovery_acts,
    run_acts,
    signature_acts,
    worker_acts,
)
from batonpass.server.endpoint import Endpoint
from batonpass.server.resources import (
    alarms,
    decisions,
    events,
    findings,
    handoffs,
    ledger,
    metrics,
    receipts,
    runs,
    search,
    webhooks,
)

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *runs.ENDPOINTS,
    *run_acts.ENDPOINTS,
    *call_acts.ENDPOINTS,
    *signature_acts.ENDPOINTS,
    *worker_acts.ENDPOINTS,
    *handoffs.ENDPOINTS,
    *handoff_acts.ENDPOINTS,
    *recovery_acts.ENDPOINTS,
    *receipts.ENDPOINTS,
    *search.ENDPOINTS,
    *events.ENDPOINTS,
    *decisions.ENDPOINTS,
    *decision_acts.ENDPOINTS,
    *findings.ENDPOINTS,
    *alarms.ENDPOINTS,
    *ledger.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *metrics.ENDPOINTS,
    *admin_acts.ENDPOINTS,
)
