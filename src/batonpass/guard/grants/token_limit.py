"""The ceiling of a token: a run that is started with it gets at most that."""

from collections.abc import Iterator

from batonpass.errors import GrantExceededError
from batonpass.model.grants.grant import Grant


def within_ceiling(holder: str, ceiling: Grant, asked: Grant | None) -> Grant:
    """Return the grant of a run: the requested one, or all of the ceiling if none is requested.

    Raises `GrantExceededError`, which names each excess and the permits of the ceiling.
    """
    if asked is None:
        return ceiling
    if excess := tuple(_find_excess(ceiling, asked)):
        raise GrantExceededError(holder, excess, (*ceiling.may.lines, *ceiling.may_delegate.lines))
    return asked


def _find_excess(ceiling: Grant, asked: Grant) -> Iterator[str]:
    for right, most, scope in (
        ("may", ceiling.may, asked.may),
        ("may delegate", ceiling.may_delegate, asked.may_delegate),
    ):
        for permit in most.find_excess(scope):
            yield f"{right} {permit}"
