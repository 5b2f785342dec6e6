"""The webhooks of this ledger, without their secrets."""

from typing import Final

from batonpass.dispatch.webhooks import place_of
from batonpass.records.json_shapes import Shape, webhook_shape
from batonpass.records.recipients.webhook import find_webhooks
from batonpass.server.endpoint import AUDITORS, ApiRequest, Endpoint
from batonpass.server.resources.page import CursorQuery, paged
from batonpass.server.shape_types import Page, WebhookShape


def list_webhooks(asked: ApiRequest) -> Shape:
    """Return all webhooks, the first that was added first, those that were removed included."""
    query: CursorQuery = asked.query
    with asked.looking() as (view, _):
        return paged(
            find_webhooks(view),
            query.limit,
            shape=lambda one: webhook_shape(one, place_of(one.url)),
            cursor=lambda one: one.id,
            after=query.after,
        )


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/webhooks",
        name="listWebhooks",
        about="List the webhooks, and whether they still take what they are told.",
        roles=AUDITORS,
        act=list_webhooks,
        answers=Page[WebhookShape],
        query=CursorQuery,
    ),
)
