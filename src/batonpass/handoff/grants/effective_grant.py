"""The present rights of a run: every hop of its grant, with its use and the rest."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from batonpass.errors import InvalidValueError
from batonpass.guard.grants.limit_accounts import account_of, find_left, least_left, permit_account
from batonpass.handoff.history.offers import read_brief
from batonpass.handoff.runtime.bounds import Bounds, Hop, below, read_bounds, read_terms
from batonpass.ledger.position import mode_of_child
from batonpass.model.base.ids import AgentId, PrincipalId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.grants.charge import REVOKED, Charged, part_of
from batonpass.model.grants.effective_grant import EffectiveGrant, GrantStanding, GrantStep, LimitLeft, PermitLeft
from batonpass.model.grants.grant import Signed, Terms
from batonpass.model.grants.limits import UNLIMITED
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope
from batonpass.model.ledger.run import Handoff
from batonpass.store.port import LedgerView
from batonpass.wire.receipt_codec import decode_receipt

if TYPE_CHECKING:
    from batonpass.credentials import Redactor
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.run_state import Holding


class GrantHop(Struct, frozen=True, kw_only=True):
    """One hop of a chain: its terms, their use, and whether they were revoked."""

    terms: Signed[Terms]
    by: str  # who gave it: the agent that handed off; for a root, its principal
    account: StreamId
    used: tuple[Charged, ...]
    permits: Mapping[str, tuple[Charged, ...]]  # of permits with limits of their own, by their text
    is_revoked: bool

    @property
    def granted_by(self) -> str:
        """Return who gave it. An agent without a grant of its own gave it on behalf of its principal."""
        said = self.terms.said
        return f"{self.by} for {said.principal}" if said.handoff is not None and said.parent is None else self.by


def read_hops(view: LedgerView, chain: Iterable[Signed[Terms]]) -> tuple[GrantHop, ...]:
    """Return each grant of a chain with its use."""
    return tuple(_hop(view, terms) for terms in chain)


class Holder(Struct, frozen=True, kw_only=True):
    """An agent, and the bounds that it is held to."""

    agent: AgentId
    principal: PrincipalId
    mode: Mode
    bounds: Bounds


def effective_grant(desk: "Desk", holding: "Holding") -> EffectiveGrant:
    """Return the present rights of a run of this process."""
    card = desk.cards.get(holding.agent)
    holder = Holder(agent=holding.agent, principal=holding.principal, mode=holding.working.mode, bounds=holding.bounds)
    with desk.store.view() as view:
        told = read_grant(
            view,
            holder,
            at=holding.present(desk.clock),
            ceiling=None if card is None else card.most,
            redactor=desk.redactor,
        )
    # An enforced policy applies to every run, even to one that is only observed.
    return replace(told, policy_stops=desk.gates.enforce)


def read_grant_of(view: LedgerView, handoff: Handoff, at: datetime) -> EffectiveGrant:
    """Return the rights of the agent of a handoff; before it accepts, as if it accepted now. From receipts alone.

    Raises a `GrantError` if the grant can no longer be read.
    """
    offered = decode_receipt(view.get_receipt_at(StreamId(handoff.parent), handoff.seq).payload)
    parent = view.get_run(handoff.parent)
    if handoff.run is not None:
        bounds = read_bounds(view, view.get_run(handoff.run))
    else:
        hop = Hop(
            account=StreamId(handoff.id),
            agent=handoff.to,
            brief=read_brief(view, offered),
            since=at,
            terms=read_terms(view, offered),
        )
        bounds = below(read_bounds(view, parent), hop)
    holder = Holder(agent=handoff.to, principal=parent.principal, mode=mode_of_child(offered), bounds=bounds)
    return read_grant(view, holder, at=at)


def read_grant(
    view: LedgerView,
    holder: Holder,
    *,
    at: datetime,
    ceiling: Scope | None = None,
    redactor: "Redactor | None" = None,
) -> EffectiveGrant:
    """Return the rights of a holder at a moment, from its bounds and from all use until then.

    `ceiling` is the most that its agent may ever hold. The result is shown to the agent and may go anywhere from there,
    so secrets in permits, such as a password in an address, are redacted.
    """
    bounds = holder.bounds
    from batonpass.credentials import Redactor  # noqa: PLC0415 - every shape of a secret, for whoever is told a grant

    clean = partial((redactor or Redactor()).text, "scope")
    said = EffectiveGrant(
        agent=holder.agent,
        principal=holder.principal,
        mode=holder.mode,
        at=at,
        limits=tuple(least_left(_of_accounts(view, bounds, at))),
    )
    if not bounds.chain:
        return said
    hops = read_hops(view, bounds.chain)
    standing = _standing(view, bounds, at)
    holds = standing is GrantStanding.IN_FORCE
    *above, last = bounds.terms
    rights = [one.may_delegate for one in above] + ([] if ceiling is None else [ceiling])
    may = _in_time(_within(last.may, rights), at) if holds else ()
    may_delegate = _in_time(_within(last.may_delegate, rights), at) if holds else ()
    depths = [one.max_depth - len(above) for one in bounds.terms if one.max_depth is not None]
    return replace(
        said,
        standing=standing,
        may=tuple(PermitLeft(text=clean(one.text), left=tuple(least_left(_of_permit(one, hops)))) for one in may),
        may_delegate=tuple(clean(one.text) for one in may_delegate),
        until=bounds.ends,
        depth_left=max(0, min(depths)) if depths else None,
        chain=tuple(_step(hop, at, clean) for hop in hops),
    )


def _hop(view: LedgerView, terms: Signed[Terms]) -> GrantHop:
    account = account_of(terms.said)
    return GrantHop(
        terms=terms,
        by=_giver(view, terms.said),
        account=account,
        used=tuple(view.find_charged([account])),
        permits={
            permit.text: tuple(view.find_charged([permit_account(account, permit)]))
            for permit in (*terms.said.may.permits, *terms.said.may_delegate.permits)
            if permit.limits != UNLIMITED
        },
        is_revoked=_is_revoked(view, account),
    )


def _giver(view: LedgerView, terms: Terms) -> str:
    if terms.handoff is None:
        return terms.principal
    return view.get_run(view.get_handoff(terms.handoff).parent).agent


def _is_revoked(view: LedgerView, account: StreamId) -> bool:
    return any(view.find_charged([part_of(account, REVOKED)]))


def _standing(view: LedgerView, bounds: Bounds, at: datetime) -> GrantStanding:
    if any(_is_revoked(view, account) for account in bounds.line):
        return GrantStanding.REVOKED
    return GrantStanding.ENDED if bounds.ends is not None and at >= bounds.ends else GrantStanding.IN_FORCE


def _of_accounts(view: LedgerView, bounds: Bounds, at: datetime) -> Iterator[LimitLeft]:
    for account in bounds.accounts:
        yield from find_left(
            account.limits,
            view.find_charged([account.id]),
            since=account.since,
            at=at,
            shared_with=account.agent,
            budget=account.budget,
        )


def _within(scope: Scope, rights: Sequence[Scope]) -> Scope:
    """Return the rights that every hop allows. A right that was widened on the way has no effect and is not shown."""
    for right in rights:
        if not right.covers(scope):
            try:
                scope = right.meet(scope)
            except InvalidValueError:
                # The intersection has too many permits to write down. Only the permits that are covered as a whole are
                # shown.
                scope = right.narrow(scope)
    return scope


def _in_time(scope: Scope, at: datetime) -> tuple[Permit, ...]:
    return tuple(permit for permit in scope.permits if permit.until is None or at < permit.until)


def _of_permit(permit: Permit, hops: Sequence[GrantHop]) -> Iterator[LimitLeft]:
    """Yield the rest of the limits of one permit: its own, and those of permits above it.

    Above, a call counts against any one permit that covers it and has room. So if several cover it, the one with the
    most left counts, and a permit without limits sets no limit.
    """
    *above, own = hops
    yield from find_left(permit.limits, own.permits.get(permit.text, ()))
    for hop in above:
        covering = [one for one in hop.terms.said.may_delegate.permits if one.covers(permit, unsaid=True)]
        if all(one.limits != UNLIMITED for one in covering):
            lefts = [tuple(find_left(one.limits, hop.permits.get(one.text, ()))) for one in covering]
            yield from max(lefts, key=lambda left: [Decimal(one.left) for one in left], default=())


def _step(hop: GrantHop, at: datetime, clean: Callable[[str], str]) -> GrantStep:
    terms = hop.terms.said
    ended = terms.until is not None and at >= terms.until
    return GrantStep(
        by=hop.granted_by,
        to=terms.agent,
        at=terms.at,
        may=tuple(map(clean, terms.may.lines)),
        may_delegate=tuple(map(clean, terms.may_delegate.lines)),
        limits=str(terms.limits),
        until=terms.until,
        standing=GrantStanding.REVOKED if hop.is_revoked else GrantStanding.ENDED if ended else GrantStanding.IN_FORCE,
    )
