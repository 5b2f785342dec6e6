"""The value that a call returns. A generator or an awaitable is no outcome yet: it still has to run."""

import inspect
import itertools
from collections.abc import AsyncGenerator, Iterator
from types import GeneratorType, NoneType
from typing import Any, Final

from batonpass.errors import InvalidValueError

MOST_ITEMS: Final = 1_000_000

# These do their work when somebody asks for the next item: long after the outcome was recorded, and unseen. Other
# iterables, such as an open file or the rows of a query, did their work before, and the caller may read them.
_LAZY: Final = (
    GeneratorType,
    map,
    filter,
    zip,
    enumerate,
    reversed,
    *(kind for kind in vars(itertools).values() if isinstance(kind, type)),
)


# Most results. None of these types runs anything later.
_ENDED: Final = frozenset({NoneType, bool, int, float, str, bytes, dict, list, tuple})


def ended(value: Any, name: str) -> Any:  # noqa: ANN401 - whatever a tool returns
    """Return the value of a call after all of it has run. A generator becomes the list of its items.

    Raises the errors of the generator, and `InvalidValueError` if it does not end or needs an event loop.
    """
    if type(value) in _ENDED:
        return value
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        if inspect.iscoroutine(value):
            value.close()  # it never began; without this, Python warns about it
        raise InvalidValueError(
            "result", f"{name} returned {type(value).__name__}, which has not run; call it on an AsyncRun"
        )
    return drained(value, name) if is_lazy(value) else value


def is_lazy(value: object) -> bool:
    """Return whether a value does its work only when somebody iterates over it."""
    return type(value) in _LAZY


def drained(value: Iterator[Any], name: str) -> list[Any]:
    """Return the items of a lazy value. Raises its errors, and `InvalidValueError` if there are too many."""
    items = list(itertools.islice(value, MOST_ITEMS + 1))
    if len(items) > MOST_ITEMS:
        if isinstance(value, GeneratorType):
            value.close()
        raise endless(name)
    return items


async def drained_async(value: AsyncGenerator[Any, Any], name: str) -> list[Any]:
    """Return the items of an asynchronous generator, with the same errors as `drained`."""
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
    """Return the error for a result that does not end."""
    return InvalidValueError("result", f"{name} returned more than {MOST_ITEMS:,} items; return them in parts")


async def awaited(awaitable: Any) -> Any:  # noqa: ANN401 - whatever a coroutine returns
    """Return the value of an awaitable."""
    return await awaitable
