"""Search in receipts and the words beside them, a part of the ledger at a time."""

from itertools import groupby, islice
from typing import Annotated, Final

from msgspec import Meta

from batonpass.audit.grep import Match, SearchPattern, find_matches
from batonpass.records.json_shapes import Shape, exact
from batonpass.records.text import read_receipt
from batonpass.server.endpoint import EVERYBODY, ApiRequest, Endpoint
from batonpass.server.resources.page import PageQuery
from batonpass.server.shape_types import MatchShape, Page
from batonpass.store.port import ReceiptQuery

# So many receipts are looked through for one request: it ends soon, whatever is in the ledger, and `next` goes on.
SEARCHED_AT_ONCE: Final = 5_000
_MOST_OF_ONE: Final = 20  # matches in one receipt, which may have a file of a million lines beside it


class SearchQuery(PageQuery, frozen=True, kw_only=True):
    """The pattern of a search, and the part of the ledger."""

    pattern: Annotated[str, Meta(min_length=1, max_length=500, description="A regular expression of RE2.")]
    kind: Annotated[str, Meta(description="A kind, such as tool.failed, or a family, such as handoff.")] | None = None
    ignore_case: bool = False
    after: Annotated[int, Meta(ge=0, le=2**53 - 1, description="Only receipts after this position: the cursor.")] = 0


def search(asked: ApiRequest) -> Shape:
    """Return matches in the next receipts within reach. `next` is where the rest of the ledger begins."""
    query: SearchQuery = asked.query
    pattern = SearchPattern(query.pattern, ignore_case=query.ignore_case)
    with asked.looking() as (view, reach):
        end = view.last_position()
        until = min(end, query.after + SEARCHED_AT_ONCE)
        root = reach.own.root if reach.is_limited else None
        wanted = ReceiptQuery(kind=query.kind, root=root, first=query.after + 1, last=until)
        found: list[Match] = []
        for receipt, matches in groupby(find_matches(view, pattern, wanted), key=lambda match: match.receipt):
            stored = view.get_receipt(receipt)
            if reach.is_limited and not reach.covers_receipt(read_receipt(stored)):
                continue
            found += islice(matches, _MOST_OF_ONE)
            if len(found) >= query.limit and stored.position is not None:
                until = stored.position
                break
    return {"items": [_match(one) for one in found], "next": str(until) if until < end else None}


def _match(match: Match) -> Shape:
    return {
        "receipt": match.receipt,
        "stream": match.stream,
        "kind": match.kind,
        "at": exact(match.at),
        "agent": match.agent,
        "field": match.field,
        "line": match.line,
        "before": match.before,
        "found": match.found,
        "after": match.after,
    }


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/search",
        name="search",
        about="Search receipts and the words beside them.",
        roles=EVERYBODY,
        act=search,
        answers=Page[MatchShape],
        query=SearchQuery,
    ),
)
