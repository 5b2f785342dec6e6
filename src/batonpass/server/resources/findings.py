"""Findings for a person to look at, and a whole tree to take away."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct

from batonpass.errors import InvalidValueError, RequestTooLargeError
from batonpass.model.base.ids import RunId
from batonpass.records.json_shapes import Shape, exact
from batonpass.review.acknowledged import Acknowledgement
from batonpass.review.finding import Finding, finding_shape
from batonpass.review.review import Review, find_reviewed, review_below, review_roots
from batonpass.server.endpoint import AUDITORS, PEOPLE, ApiRequest, Endpoint, RawAnswer
from batonpass.server.resources.page import CursorQuery, paged
from batonpass.server.shape_types import FindingShape, Page

_RECENT: Final = timedelta(days=1)
_MOST_BYTES: Final = 64 * 1024 * 1024
LINES: Final = "application/jsonl"


class FindingsQuery(CursorQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose findings."""

    run: Annotated[str, Meta(description="Only of what this run did, and of everything below it.")] | None = None
    since: (
        Annotated[
            str,
            Meta(
                description="Without a run: of trees with receipts since this time; by default of a day.",
                extra_json_schema={"format": "date-time"},
            ),
        ]
        | None
    ) = None


class ExportQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much is exported."""

    content: Annotated[str, Meta(description="yes: with the words; no: digests only.", pattern="^(yes|no)$")] = "yes"


def list_findings(asked: ApiRequest) -> Shape:
    """Return the findings for a person to look at, and the acknowledged ones."""
    query: FindingsQuery = asked.query
    now = asked.plane.clock.now()
    with asked.looking() as (view, reach):
        if query.run is not None:
            review = review_below(view, reach.run(query.run).id, now)
        else:
            review = review_roots(view, find_reviewed(view, _since(query.since, now)), now)
    return paged(
        _all(review),
        query.limit,
        shape=lambda one: _shape(*one),
        cursor=lambda one: one[0].key,
        after=query.after,
    )


def _since(given: str | None, now: datetime) -> datetime:
    if given is None:
        return now - _RECENT
    try:
        read = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidValueError("since", "is a time such as 2026-11-18T07:00:00Z") from None
    if read.tzinfo is None:
        raise InvalidValueError("since", "has no time zone; add Z")
    return read


def _all(review: Review) -> Iterator[tuple[Finding, Acknowledgement | None]]:
    """Yield the findings of each tree, the worst first, in an order that no acknowledgement changes.

    Otherwise somebody who acknowledges a page of them and asks for the next one would miss some.
    """
    for root in review.roots:
        found = [*((finding, None) for finding in root.findings), *root.acknowledged]
        yield from sorted(found, key=lambda one: (one[0].severity.rank, one[0].at, one[0].key))


def _shape(finding: Finding, seen: Acknowledgement | None) -> Shape:
    told = None if seen is None else {"by": seen.by, "at": exact(seen.at), "reason": seen.reason}
    return {**finding_shape(finding), "acknowledged": told}


def export_tree(asked: ApiRequest) -> RawAnswer:
    """Return the tree of a run as a bundle, which verifies offline."""
    query: ExportQuery = asked.query
    with asked.looking() as (_, reach):
        run = RunId(reach.run(asked.names["run"]).id)
    lines = bytearray()
    for line in asked.plane.relay.admin.export(run, with_content=query.content == "yes"):
        lines += line.encode() if line.endswith("\n") else f"{line}\n".encode()
        if len(lines) > _MOST_BYTES:
            raise RequestTooLargeError(_MOST_BYTES)
    return RawAnswer(body=bytes(lines), media_type=LINES)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/findings",
        name="listFindings",
        about="List what a person should look at, of one run and below it or of recent trees.",
        roles=PEOPLE,
        act=list_findings,
        answers=Page[FindingShape],
        query=FindingsQuery,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/export",
        name="exportTree",
        about="Export the tree of a run as a bundle that verifies offline.",
        roles=AUDITORS,
        act=export_tree,
        answers=bytes,
        raw_types=(LINES,),
        query=ExportQuery,
    ),
)
