"""Terms: a root run begins a grant, an offer narrows it, and an acceptance binds it to the key of an attempt."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.errors import GrantError, GrantExpiredError, GrantMissingError, InvalidValueError
from batonpass.guard.grants.narrower_terms import narrow
from batonpass.handoff.grants.limit_use import require_unrevoked
from batonpass.handoff.grants.policy_tables import table_of_offer, within
from batonpass.handoff.history.moments import later
from batonpass.handoff.runtime.bounds import STATEMENT, Bounds
from batonpass.ledger.position import TRIED_OUT, Granted
from batonpass.model.base.content_names import CERTIFICATE, TERMS
from batonpass.model.base.ids import AgentId, HandoffId, PrincipalId, PublicKey, RunId
from batonpass.model.grants.grant import Certificate, Grant, Signed, Statement, Terms
from batonpass.model.grants.permit import earlier, spell_time
from batonpass.model.grants.scope import Scope
from batonpass.model.ledger.content import Content, new_content
from batonpass.model.ledger.lease import Lease
from batonpass.records.grant import WOULD_DENY
from batonpass.wire.token import encode_part

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.run_state import Holding

# For a grant without an end. While somebody holds the run, the certificate is renewed.
LONGEST_CERTIFICATE: Final = timedelta(hours=24)
_SHORTEST_CERTIFICATE: Final = timedelta(seconds=1)


def regrant(terms: Terms) -> Grant:
    """Return the grant in some terms, to grant it once more."""
    return Grant(
        may=terms.may,
        may_delegate=terms.may_delegate,
        limits=terms.limits,
        until=terms.until,
        max_depth=terms.max_depth,
    )


class Beginning(Struct):
    """A grant that begins with a root run. It gets its terms when the run gets its id."""

    desk: "Desk"
    grant: Grant
    agent: AgentId
    principal: PrincipalId
    terms: Signed[Terms] | None = None

    def __call__(self, run: RunId, run_key: PublicKey) -> Granted:
        """Return the grant part of the first receipt of the run."""
        require_ahead(self.grant.until, self.desk.clock.now())
        terms = self.desk.issuer.begin(self.grant, agent=self.agent, principal=self.principal, root=run)
        self.terms = terms
        certificate = certify(self.desk, terms, run=run, attempt=0, epoch=1, run_key=run_key)
        return Granted(
            terms=terms.digest,
            certificate=certificate.digest,
            contents=(kept(self.desk, TERMS, terms), kept(self.desk, CERTIFICATE, certificate)),
        )


def certify(
    desk: "Desk",
    terms: Signed[Terms],
    *,
    run: RunId,
    attempt: int,
    epoch: int,
    run_key: PublicKey,
    lease: Lease | None = None,
    seen: datetime | None = None,
) -> Signed[Certificate]:
    """Return a certificate for the key of a run: for one lease, or until the grant ends. Raises `GrantExpiredError`.

    The end of the grant is compared with the clock and with `seen`, whichever is later: a clock that was set back
    revives no grant.
    """
    at = desk.clock.now()
    now = later(at, seen)
    require_ahead(terms.said.until, now)
    # The clock of the store set the end of the lease. By our clock that may have passed already, and a certificate of
    # no length is invalid.
    ends = now + LONGEST_CERTIFICATE if lease is None else max(lease.until, now + _SHORTEST_CERTIFICATE)
    if terms.said.until is not None:
        ends = min(ends, terms.said.until) if lease is not None else terms.said.until
    return desk.issuer.certify(
        terms, run=run, attempt=attempt, epoch=epoch, run_key=run_key, valid_for=ends - now, at=at
    )


class Given(Struct, frozen=True):
    """The grant in an offer. For an observed grant, also the parts that it would have denied."""

    terms: Signed[Terms] | None = None
    flags: tuple[str, ...] = ()
    refusal: str | None = None  # why it would have been denied, in words


NOTHING_GIVEN: Final = Given()


def give(
    desk: "Desk",
    holding: "Holding",
    asked: Grant | None,
    *,
    to: AgentId,
    handoff: HandoffId,
    deadline: datetime | None,
) -> Given:
    """Return the grant in an offer. If the grant of its sender is only observed, nothing is refused.

    An observed sender that asks for too much is held to the part that can be given. If there is no such part, it is
    held to everything that could have been given (`bounds.below`). For an enforced grant, raises as `terms_of_offer`
    does.
    """
    tried_out = holding.bounds.tried_out
    if asked is None and not holding.bounds.chain and not desk.gates.grants:
        return NOTHING_GIVEN  # nobody is held to a grant here, and no table says otherwise
    try:
        if tried_out:
            # For an enforced grant no check is needed here: the store refuses the offer itself if the grant is revoked.
            with desk.store.view() as view:
                require_unrevoked(view, holding.bounds)
        terms = terms_of_offer(desk, holding, asked, to=to, handoff=handoff, deadline=deadline)
    except (GrantError, InvalidValueError) as refusal:
        if not tried_out:
            raise
        part = _part_of_offer(desk, holding, asked, to=to, handoff=handoff, deadline=deadline)
        return Given(part, (TRIED_OUT, WOULD_DENY), str(refusal))
    if terms is None and not tried_out:
        return NOTHING_GIVEN
    return Given(terms, (TRIED_OUT,) if tried_out else ())


def terms_of_offer(
    desk: "Desk",
    holding: "Holding",
    asked: Grant | None,
    *,
    to: AgentId,
    handoff: HandoffId,
    deadline: datetime | None,
) -> Signed[Terms] | None:
    """Return the terms of an offer: as asked for, or by the table of its receiver, within the ceiling of its card.

    A run with a grant gives a part of its delegable rights, and never nothing at all. A run without a grant begins one
    on behalf of its principal, if it is asked to. Raises `GrantMissingError`, `GrantExceededError`, `GrantDepthError`
    and `GrantExpiredError`.
    """
    bounds = holding.bounds
    wanted = _wanted(desk, holding, asked, to, deadline)
    if wanted is None:
        return None
    if not bounds.chain:
        return desk.issuer.begin(wanted, agent=to, principal=holding.principal, root=holding.root, handoff=handoff)
    above, depth = bounds.chain[-1], len(bounds.chain) - 1
    if not bounds.is_granted:
        # The sender has no terms of its own. Its request is still judged, but no terms can follow from unsigned ones.
        narrow(above.said, wanted, depth=depth)
        return None
    return desk.issuer.hand_off(above, wanted, depth=depth, agent=to, handoff=handoff, run=holding.id)


def _part_of_offer(
    desk: "Desk", holding: "Holding", asked: Grant | None, *, to: AgentId, handoff: HandoffId, deadline: datetime | None
) -> Signed[Terms] | None:
    """Return the part of the requested grant that can be given; None if there is none."""
    bounds = holding.bounds
    above, depth = bounds.chain[-1], len(bounds.chain) - 1
    try:
        wanted = _wanted(desk, holding, asked, to, deadline)
        part = None if wanted is None else within(wanted, above.said)
        if part is None or not (part.may or part.may_delegate) or not bounds.is_granted:
            return None
        return desk.issuer.hand_off(above, part, depth=depth, agent=to, handoff=handoff, run=holding.id)
    except (GrantError, InvalidValueError):
        return None


def _wanted(
    desk: "Desk", holding: "Holding", asked: Grant | None, to: AgentId, deadline: datetime | None
) -> Grant | None:
    """Return the grant of an offer before it is narrowed; None if nobody is held to a grant."""
    card = desk.cards.get(to)
    ceiling = None if card is None else card.most
    bounds = holding.bounds
    if asked is None:
        asked = table_of_offer(desk, holding, to)
    if not bounds.chain and asked is None:
        return None
    require_in_force(bounds, holding.present(desk.clock))
    wanted = _within_ceiling(_asked_or_ceiling(holding, asked, to, ceiling), ceiling, to)
    # A deadline after the end of the parent's grant asks for no more time: the grant ends first.
    held = bounds.ends
    in_time = None if deadline is None or (held is not None and deadline > held) else deadline
    return replace(wanted, until=earlier(wanted.until, in_time))


def _asked_or_ceiling(holding: "Holding", asked: Grant | None, to: AgentId, ceiling: Scope | None) -> Grant:
    if asked is not None:
        return asked
    held = holding.bounds.chain[-1].said.may_delegate
    possible = None if ceiling is None else ceiling.meet(held)
    if not possible:
        raise GrantMissingError(holding.agent, to, held.lines, None if ceiling is None else ceiling.lines)
    return Grant(may=possible)


def _within_ceiling(asked: Grant, ceiling: Scope | None, to: AgentId) -> Grant:
    if ceiling is None:
        return asked
    cut = replace(asked, may=asked.may.meet(ceiling), may_delegate=asked.may_delegate.meet(ceiling))
    if not cut.may and not cut.may_delegate:
        raise GrantMissingError(to, to, (*asked.may.lines, *asked.may_delegate.lines), ceiling.lines)
    return cut


def require_in_force(bounds: Bounds, at: datetime) -> None:
    """Refuse an act under a grant that has ended. Raises `GrantExpiredError`."""
    require_ahead(bounds.ends, at)


def require_ahead(until: datetime | None, at: datetime) -> None:
    """Refuse an end that has passed. Raises `GrantExpiredError`."""
    if until is not None and at >= until:
        raise GrantExpiredError(
            f"the grant ended at {spell_time(until)}, and it is {spell_time(at)}; ask for a new one"
        )


def kept(desk: "Desk", name: str, statement: Signed[Statement]) -> Content:
    """Return a signed statement as the content beside the receipt that names it."""
    return new_content(name, encode_part(statement), desk.clock.now(), media_type=STATEMENT)
