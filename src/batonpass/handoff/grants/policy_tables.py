"""Grants by agent, from the tables of a policy: what holds where nobody says what somebody may."""

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
    """Return what a root is held to and how: what it was given, else the table of its agent.

    A table alone blocks nobody: it is enforced where the run is, or the policy, and else tried out until it ends.
    """
    table = desk.gates.grants.get(agent)
    if grant is not None or table is None:
        return grant, mode or (Mode.OBSERVED if grant is None else Mode.ENFORCED)
    how = mode or (Mode.ENFORCED if desk.gates.enforce else Mode.OBSERVED)
    return None if how is Mode.OBSERVED and has_ended(table, desk.clock.now()) else table, how


def has_ended(table: Grant, at: datetime) -> bool:
    """Return whether nothing can be begun under a table any more."""
    return table.until is not None and at >= table.until


def table_of_offer(desk: Desk, holding: Holding, to: AgentId) -> Grant | None:
    """Return what an agent is handed of what its sender may delegate; nothing where nobody is held to a grant.

    Raises `GrantMissingError` if the two have nothing in common.
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
    """Return the part of a table that whoever holds these terms may give.

    A table says what somebody may at most, in whichever tree: it asks for nothing that its sender does not have.
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
