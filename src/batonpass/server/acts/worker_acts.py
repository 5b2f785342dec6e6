"""Workers elsewhere: they claim handoffs that wait for their agents, renew their leases, and give them back.

A token that names agents may claim for those agents, in every tree: it was issued to work as these agents. The name of
its token is part of the holder of a lease, so nobody renews or takes the claim of another token.
"""

from datetime import timedelta
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from batonpass.errors import GrantExceededError, KeyMissingError, LeaseLostError, NotFoundError, OutOfReachError
from batonpass.guard.grants.token_limit import within_ceiling
from batonpass.handoff.runtime.bounds import read_terms
from batonpass.model.base.ids import HandoffId, StreamId
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.ledger.lease import Lease
from batonpass.records.json_shapes import Shape, exact
from batonpass.records.text import read_receipt
from batonpass.server.endpoint import AGENTS, ApiRequest, Endpoint
from batonpass.server.shape_types import ClaimShape, DoneShape

_LONGEST: Final = 3600.0
Seconds = Annotated[float, Meta(gt=0, le=_LONGEST)]


class ClaimMessage(Struct, frozen=True, kw_only=True):
    """For which agents a worker claims, under which name, and for how long."""

    agents: Annotated[tuple[str, ...], Meta(min_length=1)]
    holder: Annotated[str, Meta(min_length=1, max_length=60)]
    seconds: Seconds = 30.0


class LeaseMessage(Struct, frozen=True, kw_only=True):
    """A lease that a worker holds."""

    holder: str
    token: int


class RenewMessage(LeaseMessage, frozen=True, kw_only=True):
    """A lease, and for how long it is to be renewed."""

    seconds: Seconds = 30.0


def claim(asked: ApiRequest) -> Shape:
    """Claim the oldest handoff that waits for one of these agents; null if none does."""
    said: ClaimMessage = asked.body
    token = asked.caller.token
    for agent in said.agents:
        if agent not in token.agents:
            raise OutOfReachError(agent)
    relay, holder, lasts = asked.plane.relay, f"{token.id}.{said.holder}", timedelta(seconds=said.seconds)
    lease = relay.claim(holder=holder, lease_for=lasts, agents=said.agents)
    if lease is None and relay.sweep(holder=holder):
        # What dead workers left waits again. Workers elsewhere cannot look after that themselves.
        lease = relay.claim(holder=holder, lease_for=lasts, agents=said.agents)
    if lease is not None:
        try:
            _require_within(asked, lease)
        except GrantExceededError:
            asked.plane.relay.release(lease)
            raise
    return {"lease": None if lease is None else lease_shape(lease)}


def _require_within(asked: ApiRequest, lease: Lease) -> None:
    """Raise `GrantExceededError` if the handoff gives more than the token's ceiling."""
    token, now = asked.caller.token, asked.plane.clock.now()
    with asked.plane.relay.store.view() as view:
        known = view.get_handoff(lease.handoff)
        terms = read_terms(view, read_receipt(view.get_receipt_at(StreamId(known.parent), known.seq)))
    if terms is not None:
        ceiling = GrantRequest(may=token.may, may_delegate=token.may_delegate).at(now)
        within_ceiling(f"the token of {token.principal}", ceiling, terms.said)


def held_lease(asked: ApiRequest, handoff: HandoffId, said: Any) -> Lease:  # noqa: ANN401 - a message with holder and token
    """Return the lease that a worker says it holds. Raises `LeaseLostError` unless it is one of this token.

    Raises `OutOfReachError` if the handoff is to an agent that the token does not name.
    """
    with asked.plane.relay.store.view() as view:
        try:
            known = view.get_handoff(handoff)
        except NotFoundError:
            raise OutOfReachError(handoff) from None
        if known.to not in asked.caller.token.agents:
            raise OutOfReachError(handoff)
        found = next((one for one in view.find_leases() if one.handoff == handoff), None)
    if found is None or (found.holder, found.token) != (said.holder, said.token):
        raise LeaseLostError(handoff)
    if not found.holder.startswith(f"{asked.caller.token.id}."):
        raise LeaseLostError(handoff)
    return found


def renew(asked: ApiRequest) -> Shape:
    """Renew a lease."""
    said: RenewMessage = asked.body
    lease = held_lease(asked, HandoffId(asked.names["handoff"]), said)
    try:
        renewed = asked.plane.relay.heartbeat(lease, timedelta(seconds=said.seconds))
    except KeyMissingError:
        # Its time is over, and its end is to be written, for which only the worker has the key.
        raise LeaseLostError(lease.handoff) from None
    return {"lease": lease_shape(renewed)}


def release(asked: ApiRequest) -> Shape:
    """Give a lease back; a handoff that was not begun can be claimed again."""
    asked.plane.relay.release(held_lease(asked, HandoffId(asked.names["handoff"]), asked.body))
    return {"done": True}


def lease_shape(lease: Lease) -> Shape:
    """Return a lease."""
    return {"handoff": lease.handoff, "holder": lease.holder, "token": lease.token, "until": exact(lease.until)}


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/claims",
        name="claimHandoff",
        about="Claim the oldest handoff that waits for a worker of one of these agents.",
        roles=AGENTS,
        act=claim,
        answers=ClaimShape,
        body=ClaimMessage,
        needs_proof=False,
        signed=False,
    ),
    Endpoint(
        method="POST",
        path="/v1/claims/{handoff}/renewal",
        name="renewLease",
        about="Renew the lease on a handoff.",
        roles=AGENTS,
        act=renew,
        answers=ClaimShape,
        body=RenewMessage,
        needs_proof=False,
        signed=False,
    ),
    Endpoint(
        method="POST",
        path="/v1/claims/{handoff}/release",
        name="releaseLease",
        about="Give the lease on a handoff back.",
        roles=AGENTS,
        act=release,
        answers=DoneShape,
        body=LeaseMessage,
        needs_proof=False,
        signed=False,
    ),
)
