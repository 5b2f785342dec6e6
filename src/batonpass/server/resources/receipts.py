"""Receipts, by position."""

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta

from batonpass.errors import NotFoundError, OutOfReachError
from batonpass.model.base.ids import ReceiptId, RunId, StreamId
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.records.json_shapes import Shape
from batonpass.records.receipt_shape import receipt_shape
from batonpass.records.text import read_receipt
from batonpass.server.endpoint import EVERYBODY, ApiRequest, Endpoint
from batonpass.server.reach import CallerReach
from batonpass.server.resources.page import PageQuery, paged
from batonpass.server.shape_types import Page, ReceiptShape
from batonpass.store.port import LedgerView, ReceiptQuery


class ReceiptsQuery(PageQuery, frozen=True, kw_only=True):
    """Which receipts are asked for."""

    after: Annotated[int, Meta(ge=0, le=2**53 - 1, description="Only receipts after this position: the cursor.")] = 0
    kind: Annotated[str, Meta(description="A kind, such as tool.failed, or a family, such as handoff.")] | None = None
    run: Annotated[str, Meta(description="Only receipts in the stream of this run.")] | None = None
    root: Annotated[str, Meta(description="Only receipts of the tree of this root run.")] | None = None


def list_receipts(asked: ApiRequest) -> Shape:
    """Return receipts in order of position. An agent gets those of its own run and of runs below it."""
    query: ReceiptsQuery = asked.query
    with asked.looking() as (view, reach):
        return paged(
            find_reached(view, reach, query),
            query.limit,
            shape=lambda stored: receipt_shape(view, stored, read_receipt(stored)),
            cursor=lambda stored: str(stored.position),
        )


def find_reached(view: LedgerView, reach: CallerReach, query: ReceiptsQuery) -> Iterator[StoredReceipt]:
    """Yield the receipts within reach, in order of position."""
    stream = None if query.run is None else StreamId(reach.run(query.run).id)
    root = reach.own.root if reach.is_limited else None if query.root is None else RunId(query.root)
    wanted = ReceiptQuery(stream=stream, root=root, kind=query.kind, first=query.after + 1, last=view.last_position())
    found = view.find_receipts(wanted)
    return (one for one in found if reach.covers_receipt(read_receipt(one))) if reach.is_limited else found


def show_receipt(asked: ApiRequest) -> Shape:
    """Return one receipt."""
    given = asked.names["receipt"]
    with asked.looking() as (view, reach):
        try:
            stored = view.get_receipt(ReceiptId(given))
        except NotFoundError:
            if reach.is_limited:
                raise OutOfReachError(given) from None
            raise
        receipt = read_receipt(stored)
        if not reach.covers_receipt(receipt):
            raise OutOfReachError(given)
        return receipt_shape(view, stored, receipt)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/receipts",
        name="listReceipts",
        about="List receipts in order of position.",
        roles=EVERYBODY,
        act=list_receipts,
        answers=Page[ReceiptShape],
        query=ReceiptsQuery,
    ),
    Endpoint(
        method="GET",
        path="/v1/receipts/{receipt}",
        name="showReceipt",
        about="Show a receipt: its signed fields and the words beside it.",
        roles=EVERYBODY,
        act=show_receipt,
        answers=ReceiptShape,
    ),
)
