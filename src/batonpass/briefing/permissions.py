"""The permissions of a model, in short sentences that it can act on."""

from collections.abc import Iterable, Iterator
from typing import Final

from batonpass.briefing.quotes import on_one_line
from batonpass.model.grants.effective_grant import EffectiveGrant, GrantStanding, GrantStep, LimitLeft, PermitLeft

HEADING: Final = "What you may do"
ASK_AGAIN: Final = "show_grant"

_OBSERVED: Final = "You are observed: what you do is recorded, and nothing is blocked but"
_BLOCKED: Final = {False: "changes to the record.", True: "changes to the record and what the policy refuses."}
_TRIED_OUT: Final = "What goes beyond this is flagged:"
_UNGRANTED: Final = "You hold no grant. You are bound by what must hold, by your budget and by the policy."
_STOPPED: Final = {
    GrantStanding.REVOKED: "Your grant was revoked. Stop, and say what is done and what is not.",
    GrantStanding.ENDED: "Your grant has ended. Stop, and say what is done and what is not.",
}
_SHOWN: Final = 10  # of the grants further up; the reader's own grant is listed in full


def describe_grant(grant: EffectiveGrant, *, can_ask: bool = False) -> str:
    """Return the grant as one section; with `can_ask`, also how to learn later how much is left."""
    return "\n".join((f"# {HEADING}", *_lines(grant, can_ask=can_ask)))


def texts_of(grant: EffectiveGrant) -> Iterator[str]:
    """Yield everything in a grant that others wrote, so that no marker repeats any of it."""
    yield from (permit.text for permit in grant.may or ())
    yield from grant.may_delegate or ()
    for step in grant.chain:
        yield from (*step.may, *step.may_delegate)


def _lines(grant: EffectiveGrant, *, can_ask: bool) -> Iterator[str]:
    if grant.may is None:
        yield _observed(grant) if grant.is_observed else _UNGRANTED
    else:
        if grant.is_observed:
            yield f"{_observed(grant)} {_TRIED_OUT}"
        elif grant.standing is not GrantStanding.IN_FORCE:
            yield _STOPPED[grant.standing]
        yield f"You may: {_listed(map(_permit, grant.may)) or 'use nothing yourself'}"
        yield f"You may hand on: {_listed(map(on_one_line, grant.may_delegate or ())) or 'nothing'}"
        if grant.depth_left is not None:
            yield f"Hops that may follow you: {grant.depth_left}"
    if grant.limits:
        yield f"Left, counted at {grant.at:%H:%M:%S} UTC: {_listed(map(_limit, grant.limits))}"
    if grant.until is not None:
        yield f"Until: {grant.until:%Y-%m-%d %H:%M:%S} UTC"
    if grant.chain:
        yield f"Granted: {_listed(map(_step, grant.chain))}"
        if not grant.is_observed:
            yield "What this does not cover is refused, and you are told who holds it."
    if can_ask and grant.is_bound:
        yield f"Others may use the same limits: {ASK_AGAIN}() says what is left."


def _observed(grant: EffectiveGrant) -> str:
    return f"{_OBSERVED} {_BLOCKED[grant.policy_stops]}"


def _listed(texts: Iterable[str], most: int | None = None) -> str:
    told = list(texts)
    shown = told[:most]
    more = (f"and {len(told) - len(shown):,} more",) if len(shown) < len(told) else ()
    return "; ".join((*shown, *more))


def _permit(permit: PermitLeft) -> str:
    left = ", ".join(f"{one.left} of {one.most} {one.unit} left" for one in permit.left)
    return on_one_line(permit.text) + (f" ({left})" if left else "")


def _limit(one: LimitLeft) -> str:
    of = "your task's budget" if one.budget else f"the grant of {one.shared_with}"
    return f"{one.left} of {one.most} {one.unit} ({of})"


def _step(step: GrantStep) -> str:
    given = _listed(map(on_one_line, step.may), _SHOWN) or "nothing of its own"
    on = f", to hand on {_listed(map(on_one_line, step.may_delegate), _SHOWN)}" if step.may_delegate else ""
    ended = "" if step.standing is GrantStanding.IN_FORCE else f" ({step.standing})"
    return f"{step.by} to {step.to}: {given}{on}{ended}"
