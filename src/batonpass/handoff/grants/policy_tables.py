"""Grants by agent, from the tables of a policy: they apply where nobody gave an explicit grant."""

from datetime import datetime

from msgspec.structs import replace

from batonpass.errors import GrantMissingError
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import Mode
from batonpass.model.grants.grant import Grant, Terms
from batonpass.model.grants.permit import earlier


def held_root(desk: Desk, agent: AgentId, grant: Grant | None, mode: Mode | None) -> tuple[Grant | None, Mode]:
    """Return the grant and the mode of a root run: as given, else from the table of its agent.

    A table alone stops nobody. It is enforced if the run or the policy is; otherwise it is only observed until it ends.
    """
    table = desk.gates.grants.get(agent)
    if grant is not None or table is None:
        return grant, mode or (Mode.OBSERVED if grant is None else Mode.ENFORCED)
    how = mode or (Mode.ENFORCED if desk.gates.enforce else Mode.OBSERVED)
    return None if how is Mode.OBSERVED and has_ended(table, desk.clock.now()) else table, how


def has_ended(table: Grant, at: datetime) -> bool:
    """Return whether the time of a table is over."""
    return table.until is not None and at >= table.until


def table_of_offer(desk: Desk, holding: Holding, to: AgentId) -> Grant | None:
    """Return the part of an agent's table that its sender may delegate; None if nobody is held to a grant.

    Raises `GrantMissingError` if that part is empty.
    """
    table = desk.gates.grants.get(to)
    if table is None or not holding.bounds.chain:
        return table if holding.working.mode is Mode.ENFORCED or desk.gates.enforce else None
    held = holding.bounds.chain[-1].said
    cut = within(table, held)
    if not cut.may and not cut.may_delegate:
        raise GrantMissingError(holding.agent, to, held.may_delegate.lines, None)
    return cut


def within(table: Grant, held: Terms) -> Grant:
    """Return the part of a table that a holder of these terms may give.

    A table is the most that an agent may have, in any tree. So it never asks for more than the sender has.
    """
    depths = [most for most in (table.max_depth, held.max_depth) if most is not None]
    return replace(
        table,
        may=table.may.meet(held.may_delegate),
        may_delegate=table.may_delegate.meet(held.may_delegate),
        limits=table.limits.meet(held.limits),
        until=earlier(table.until, held.until),
        max_depth=min(depths, default=None),
    )


def whole_grant(desk: Desk, holding: Holding, to: AgentId) -> Grant | None:
    """Return all that a run may delegate, for an agent of another program, whose tools nobody can narrow for it.

    None if the table of the agent decides, if the run has no grant, or if there is nothing to delegate: then the offer
    is refused like any other.
    """
    chain = holding.bounds.chain
    if not chain or to in desk.gates.grants:
        return None
    above = chain[-1].said.may_delegate
    return Grant(may=above, may_delegate=above) if above else None
