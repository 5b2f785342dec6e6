"""Lists in parts: how many are asked for, and where the next part begins."""

from collections.abc import Callable, Iterable
from itertools import dropwhile, islice
from typing import Annotated, Final, TypeVar

from msgspec import Meta, Struct

from batonpass.records.json_shapes import Shape

Thing = TypeVar("Thing")

MOST: Final = 200
Limit = Annotated[int, Meta(ge=1, le=MOST, description="How many at most.")]


class PageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many are asked for."""

    limit: Limit = 50


class CursorQuery(PageQuery, frozen=True, kw_only=True):
    """How many are asked for, and after which one. Without it from the beginning; an unknown one finds nothing."""

    after: Annotated[str, Meta(description="Only what comes after this one: the cursor.")] | None = None


def paged(
    found: Iterable[Thing],
    limit: int,
    *,
    shape: Callable[[Thing], object],
    cursor: Callable[[Thing], str],
    after: str | None = None,
    keeps: Callable[[Thing], bool] | None = None,
) -> Shape:
    """Return a part of a list. It reads one more than it returns, to know whether there is another part.

    `keeps` tells which things are listed. The cursor is sought among all: it may be listed no more.
    """
    rest = found if after is None else islice(dropwhile(lambda one: cursor(one) != after, found), 1, None)
    things = list(islice(rest if keeps is None else filter(keeps, rest), limit + 1))
    shown = things[:limit]
    return {
        "items": [shape(thing) for thing in shown],
        "next": cursor(shown[-1]) if len(things) > limit and shown else None,
    }
