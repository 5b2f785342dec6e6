"""Receipts as they come: a part at a time, from a position on, as long as the caller is let in."""

from itertools import islice
from typing import Annotated, Final

from msgspec import Meta, Struct

from batonpass.errors import UnknownTokenError
from batonpass.records.access_token import get_token
from batonpass.records.json_shapes import Shape
from batonpass.records.receipt_shape import receipt_shape
from batonpass.records.text import read_receipt
from batonpass.server.endpoint import EVERYBODY, ApiRequest, Endpoint
from batonpass.server.reach import CallerReach
from batonpass.server.resources.receipts import ReceiptsQuery, find_reached
from batonpass.server.shape_types import ReceiptShape

_AT_ONCE: Final = 100


class EventsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which receipts are told of, and from where on."""

    after: (
        Annotated[
            int, Meta(ge=0, le=2**53 - 1, description="Only receipts after this position; by default from now on.")
        ]
        | None
    ) = None
    kind: Annotated[str, Meta(description="A kind, such as tool.failed, or a family, such as handoff.")] | None = None
    run: Annotated[str, Meta(description="Only receipts in the stream of this run.")] | None = None
    root: Annotated[str, Meta(description="Only receipts of the tree of this root run.")] | None = None


class EventsRead(Struct, frozen=True, kw_only=True):
    """Some receipts, and the position from which the next are read."""

    events: tuple[tuple[int, str, Shape], ...]  # position, kind, receipt
    after: int
    is_all: bool  # there were no more at that moment


def read_events(asked: ApiRequest, after: int) -> EventsRead:
    """Return the next receipts after a position.

    Raises an error if the caller has lost its access meanwhile: `UnknownTokenError` if the token has ended, and
    `RunProofError` if the run was taken over.
    """
    query: EventsQuery = asked.query
    wanted = ReceiptsQuery(after=after, kind=query.kind, run=query.run, root=query.root)
    with asked.plane.relay.store.view() as view:
        if not get_token(view, asked.caller.token.id).is_valid(asked.plane.clock.now()):
            raise UnknownTokenError
        reach = CallerReach(view, asked.caller, asked.proof)
        last = view.last_position()
        found = list(islice(find_reached(view, reach, wanted), _AT_ONCE))
        events = tuple(
            (stored.position or 0, stored.kind, receipt_shape(view, stored, read_receipt(stored))) for stored in found
        )
    is_all = len(found) < _AT_ONCE
    # What is not for this caller is passed over, so that it is not looked at again.
    return EventsRead(events=events, after=max(after, last) if is_all else events[-1][0], is_all=is_all)


def read_from(asked: ApiRequest) -> EventsRead:
    """Return the first bytes of a stream."""
    query: EventsQuery = asked.query
    with asked.plane.relay.store.view() as view:
        first = view.last_position() if query.after is None else query.after
    return read_events(asked, first)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/events",
        name="streamEvents",
        about="Receipts as they come, as server-sent events; Last-Event-ID resumes without loss.",
        roles=EVERYBODY,
        act=read_from,
        answers=ReceiptShape,
        query=EventsQuery,
        streams=True,
    ),
)
