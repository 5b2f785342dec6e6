"""Holding the runs of a session to their grants: what each of them is under, and what a sub-agent is given of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias

from batonpass.adapters.claude_code.hooks.state import Track
from batonpass.errors import (
    BatonpassError,
    ConstraintViolatedError,
    GrantMissingError,
    GuardFailedError,
    PolicyFileError,
)
from batonpass.handoff.bounds import Bounds, read_bounds
from batonpass.handoff.calls.receipts import GRANT
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.handoff.tables import has_ended, within
from batonpass.model.grant import Grant
from batonpass.model.ids import AgentId
from batonpass.model.receipt import Mode

# What the file grants, by agent, as it is now.
Tables: TypeAlias = Callable[[], Mapping[AgentId, Grant]]

_RULES: Final[Mapping[type, str]] = {ConstraintViolatedError: "limit", GuardFailedError: "guard"}


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a call must not be made: the rule, and a sentence that the model can act on."""

    rule: str
    sentence: str


def refusal_of(error: BatonpassError) -> Refused:
    """Return what a guard raised as a refusal."""
    return Refused(_RULES.get(type(error), GRANT), f"{error}. Do what you may, or tell the user what is missing.")


def held(desk: Desk, track: Track) -> Holding:
    """Return a run with all that holds it. One with a grant is enforced to its end, however it is recorded now."""
    if track.bounds is None:
        with desk.store.view() as view:
            track.bounds = read_bounds(view, track.working.run)
        if track.bounds.chain and not track.bounds.tried_out:
            track.working = replace(track.working, mode=Mode.ENFORCED)
    return Holding(working=track.working, bounds=track.bounds)


def table_of(tables: Tables, agent: AgentId, mode: Mode, at: datetime) -> Grant | None:
    """Return what the file grants an agent. Raises `PolicyFileError`, unless the session is only watched."""
    try:
        table = tables().get(agent)
    except PolicyFileError:
        if mode is Mode.ENFORCED:
            raise
        return None
    return None if table is not None and mode is Mode.OBSERVED and has_ended(table, at) else table


def asked_for(bounds: Bounds, mode: Mode, table: Grant | None, agents: tuple[AgentId, AgentId]) -> Grant | None:
    """Return what a sub-agent is asked for: its table, as far as its sender may give it, else all that this may give.

    Nobody says `may` when a model starts a sub-agent. Raises `GrantMissingError` if there is nothing to give.
    """
    if not bounds.chain:
        return table if mode is Mode.ENFORCED else None
    above = bounds.chain[-1].said
    everything = Grant(may=above.may_delegate, may_delegate=above.may_delegate)
    asked = everything if table is None else within(table, above)
    if not asked.may and not asked.may_delegate:
        sender, to = agents
        raise GrantMissingError(sender, to, above.may_delegate.lines, None)
    return asked
