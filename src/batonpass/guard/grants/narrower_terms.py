"""Narrowing: a child may hold no more than its parent may delegate."""

from collections.abc import Iterator

from batonpass.errors import GrantDepthError, GrantExceededError
from batonpass.model.grants.grant import Grant, Terms
from batonpass.model.grants.permit import Permit, earlier, spell_time
from batonpass.model.grants.scope import Scope


def narrow(parent: Terms, asked: Grant, *, depth: int) -> Grant:
    """Return the grant of a child that asks for `asked`; `depth` is the parent's depth in its chain.

    Both rights of the child come from the parent's `may_delegate`. Limits, end and depth that are not given are
    inherited. Raises `GrantExceededError`, which names each excess and the parent's own permits, and `GrantDepthError`
    if the chain may not go further.
    """
    if parent.max_depth is not None and depth >= parent.max_depth:
        raise GrantDepthError(
            f"{parent.agent} is at depth {depth}, and its chain may go to {parent.max_depth}; do not delegate "
            "further, answer with what is known"
        )
    if excess := tuple(_find_excess(parent, asked)):
        raise GrantExceededError(parent.agent, excess, parent.may_delegate.lines)
    return Grant(
        # Both scopes from `may_delegate`, also the one for use: the parent's own `may` is a separate right, and passing
        # it on would be delegation that nobody granted.
        may=parent.may_delegate.narrow(asked.may),
        may_delegate=parent.may_delegate.narrow(asked.may_delegate),
        limits=parent.limits.meet(asked.limits),
        until=earlier(parent.until, asked.until),
        max_depth=min((most for most in (parent.max_depth, asked.max_depth) if most is not None), default=None),
    )


def _find_excess(parent: Terms, asked: Grant) -> Iterator[str]:
    for right, scope in (("may", asked.may), ("may delegate", asked.may_delegate)):
        # A request may leave out limits and ends: they are taken over from the permit that covers it, so this is no
        # excess.
        for permit in parent.may_delegate.find_excess(scope, unsaid=True):
            yield f"{right} {permit}{_only_used(parent, permit)}"
    for unit in parent.limits.find_excess(asked.limits):
        if (wanted := getattr(asked.limits, unit)) is not None:
            yield f"at most {wanted} {unit} (it has {getattr(parent.limits, unit)})"
    if asked.until is not None and parent.until is not None and asked.until > parent.until:
        yield f"until {spell_time(asked.until)} (its own ends {spell_time(parent.until)})"
    if asked.max_depth is not None and parent.max_depth is not None and asked.max_depth > parent.max_depth:
        yield f"a chain to depth {asked.max_depth} (its own goes to {parent.max_depth})"


def _only_used(parent: Terms, permit: Permit) -> str:
    # The usual mistake is to pass on a right that the parent only uses, so the refusal says that these are two rights.
    held = not any(parent.may.find_excess(Scope((permit,)), unsaid=True))
    return " (which it may use, and may not delegate)" if held else ""


def find_wider(parent: Terms, child: Terms, *, depth: int) -> Iterator[str]:
    """Yield in which ways the terms of a child exceed those of its parent; `depth` is the parent's depth in its chain.

    For terms that `narrow` has made there is nothing to yield, because it fills in everything that is not given.
    """
    for right, scope in (("may", child.may), ("may delegate", child.may_delegate)):
        # Signed terms are read as they stand: where they leave a limit or an end out, there is none.
        for permit in parent.may_delegate.find_excess(scope):
            yield f"{right} {permit}"
    for unit in parent.limits.find_excess(child.limits):
        yield f"{getattr(child.limits, unit) or 'any number of'} {unit}"
    if parent.until is not None and (child.until is None or child.until > parent.until):
        yield "no end" if child.until is None else f"until {spell_time(child.until)}"
    if parent.max_depth is not None:
        if depth >= parent.max_depth:
            yield f"depth {depth + 1}"
        if child.max_depth is None or child.max_depth > parent.max_depth:
            yield "any depth" if child.max_depth is None else f"a chain to depth {child.max_depth}"
