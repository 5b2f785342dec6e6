"""Who asks over A2A: somebody with a token of an agent, or anybody, where an agent's card says so."""

from typing import Final

from msgspec import Struct

from batonpass.errors import OutOfReachError, UnknownTokenError
from batonpass.model.base.ids import AgentId, PrincipalId
from batonpass.model.baton.card import Card
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.grants.scope_text import read_scope
from batonpass.records.access_token import TokenRecord
from batonpass.server.control_plane import ControlPlane
from batonpass.server.endpoint import AGENTS

# Whoever comes in without a token. Nobody gets a token for this principal, and its runs are nobody's own.
ANYBODY: Final = PrincipalId("public:anybody")


class A2aCaller(Struct, frozen=True, kw_only=True):
    """The sender of a request over A2A."""

    principal: PrincipalId
    token: TokenRecord | None  # None: they have none, and the card of the agent lets them in

    @property
    def is_known(self) -> bool:
        """Return whether a token says who they are."""
        return self.token is not None

    def may_ask(self, agent: AgentId) -> bool:
        """Return whether the token is for this agent."""
        return self.token is None or not self.token.agents or agent in self.token.agents

    def grant_for(self, card: Card, limits: str) -> GrantRequest:
        """Return the most that their runs may delegate: the ceiling of the token or of a public card, within limits."""
        if self.token is None:
            return GrantRequest(may_delegate=card.ceiling or (), limits=limits)
        return GrantRequest(may=self.token.may, may_delegate=self.token.may_delegate)

    def share_of(self, card: Card) -> tuple[str, ...]:
        """Return the part that the asked agent gets: the caller's scope, within the agent's ceiling."""
        if self.token is None:
            return card.ceiling or ()
        held = read_scope(self.token.may_delegate)
        return held.lines if card.most is None else held.meet(card.most).lines


def a2a_caller(plane: ControlPlane, card: Card | None, authorization: str | None, address: str) -> A2aCaller:
    """Return who sent a request to an agent; without a card, to no agent in particular.

    Raises `UnknownTokenError` without a token, unless the card is public; and as the doorkeeper does.
    """
    if authorization is None and card is not None and card.public:
        plane.doorkeeper.let_in_anybody(address)
        return A2aCaller(principal=ANYBODY, token=None)
    caller = plane.doorkeeper.let_in(authorization, address)
    caller.require_role(AGENTS)
    if caller.principal == ANYBODY:
        raise UnknownTokenError
    known = A2aCaller(principal=caller.principal, token=caller.token)
    if card is not None and not known.may_ask(card.agent):
        raise OutOfReachError(card.agent)
    return known
