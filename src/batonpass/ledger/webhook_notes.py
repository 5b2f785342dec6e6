"""Changes of webhooks, recorded in the stream of the relay that delivers to them."""

from datetime import datetime

from batonpass.ledger.draft import Draft
from batonpass.ledger.ledger import Ledger, Recorder
from batonpass.model.base.content_names import REASON, URL
from batonpass.model.base.ids import StreamId
from batonpass.model.bodies.body import WebhookChanged
from batonpass.model.ledger.content import new_content
from batonpass.store.port import LedgerStore


def note_webhook(
    store: LedgerStore,
    ledger: Ledger,
    recorder: Recorder,
    body: WebhookChanged,
    at: datetime,
    *,
    url: str | None,
    reason: str | None,
) -> None:
    """Record a change of a webhook. Its URL is content: it often holds a secret, and can be erased."""
    with store.view() as view:
        anchor = view.info().genesis
    contents = tuple(new_content(name, said, at) for name, said in ((URL, url), (REASON, reason)) if said is not None)
    ledger.append(Draft(stream=StreamId(recorder.id), body=body, anchor=anchor, contents=contents))
