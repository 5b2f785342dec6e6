"""Alarms about agents that work differently from their baseline."""

from typing import Annotated, Final

from msgspec import Meta

from batonpass.drift.report.drift_text import alarm_facts
from batonpass.records.json_shapes import Shape
from batonpass.records.remarks.alarm import find_alarms
from batonpass.server.endpoint import PEOPLE, ApiRequest, Endpoint
from batonpass.server.resources.page import CursorQuery, paged
from batonpass.server.shape_types import AlarmShape, Page


class AlarmsQuery(CursorQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which alarms."""

    all: Annotated[str, Meta(description="yes: those that are acknowledged or over as well.", pattern="^(yes|no)$")] = (
        "no"
    )


def list_alarms(asked: ApiRequest) -> Shape:
    """Return the alarms that stand, or all that are on record, the latest first."""
    query: AlarmsQuery = asked.query
    with asked.looking() as (view, _):
        # In an order that no acknowledgement changes: otherwise the next page would leave some out.
        found = sorted(find_alarms(view), key=lambda one: one.receipt, reverse=True)
    return paged(
        found,
        query.limit,
        shape=alarm_facts,
        cursor=lambda one: one.key,
        after=query.after,
        keeps=lambda one: query.all == "yes" or one.stands,
    )


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/alarms",
        name="listAlarms",
        about="List the alarms about agents that stand, or all that are on record.",
        roles=PEOPLE,
        act=list_alarms,
        answers=Page[AlarmShape],
        query=AlarmsQuery,
    ),
)
