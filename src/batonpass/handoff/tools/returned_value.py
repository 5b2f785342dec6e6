"""What a call returned, once it has really ended: something that runs later is no outcome."""

import inspect
import itertools
from collections.abc import AsyncGenerator, Iterator
from types import GeneratorType, NoneType
from typing import Any, Final

from batonpass.errors import InvalidValueError

MOST_ITEMS: Final = 1_000_000

# They do their work when somebody asks for the next item: long after an outcome was recorded, and unseen. What else can
# be iterated, such as an open file or the rows of a query, did its work before, and is its owner's to read.
_LAZY: Final = (
    GeneratorType,
    map,
    filter,
    zip,
    enumerate,
    reversed,
    *(kind for kind in vars(itertools).values() if isinstance(kind, type)),
)


# As most results are: none of these runs anything later.
_ENDED: Final = frozenset({NoneType, bool, int, float, str, bytes, dict, list, tuple})


def ended(value: Any, name: str) -> Any:  # noqa: ANN401 - whatever a tool returns
    """Return what a call returned, after all of it has run: a generator as the list of its items.

    Raises what it raises, and `InvalidValueError` for one that does not end, and for what only a loop can run.
    """
    if type(value) in _ENDED:
        return value
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        if inspect.iscoroutine(value):
            value.close()  # it never began; without this, Python complains of that wherever it is collected
        raise InvalidValueError(
            "result", f"{name} returned {type(value).__name__}, which has not run; call it on an AsyncRun"
        )
    return drained(value, name) if is_lazy(value) else value


def is_lazy(value: object) -> bool:
    """Return whether a value does its work only when somebody goes through it."""
    return type(value) in _LAZY


def drained(value: Iterator[Any], name: str) -> list[Any]:
    """Return the items of what is lazy. Raises what it raises, and `InvalidValueError` if there is no end of them."""
    items = list(itertools.islice(value, MOST_ITEMS + 1))
    if len(items) > MOST_ITEMS:
        if isinstance(value, GeneratorType):
            value.close()
        raise endless(name)
    return items


async def drained_async(value: AsyncGenerator[Any, Any], name: str) -> list[Any]:
    """Return the items of an asynchronous generator, likewise."""
    items: list[Any] = []
    try:
        async for item in value:
            items.append(item)
            if len(items) > MOST_ITEMS:
                raise endless(name)
    finally:
        await value.aclose()
    return items


def endless(name: str) -> InvalidValueError:
    """Return what is raised for a result that does not end."""
    return InvalidValueError("result", f"{name} returned more than {MOST_ITEMS:,} items; return them in parts")


async def awaited(awaitable: Any) -> Any:  # noqa: ANN401 - whatever a coroutine returns
    """Return what an awaitable gives."""
    return await awaitable
