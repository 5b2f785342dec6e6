"""The message to a model after somebody has decided about its held calls and handoffs."""

from collections.abc import Iterable, Sequence

from batonpass.agents.agent_at_work import AgentAtWork
from batonpass.agents.lead_tools import waited_for, work_of
from batonpass.agents.shown_result import show_result
from batonpass.errors import NotFoundError
from batonpass.handoff.transfer.held_work import HeldWork
from batonpass.model.base.ids import AgentId


async def go_on(here: AgentAtWork, decided: Iterable[HeldWork]) -> str:
    """Go on with the approved handoffs, and return the message to the model; empty if nothing was decided.

    The model makes a call itself, because only it knows whether it still wants it. A handoff was begun already: its
    agent goes on, and the model gets the result.
    """
    told = [await _told(here, one) for one in decided]
    return "\n".join(["Decided since then:", *(f"- {words}" for words in told)]) if told else ""


async def _told(here: AgentAtWork, one: HeldWork) -> str:
    who = one.by or "a person"
    if one.handoff is None:
        if one.approved:
            return f"{who} approved {one.name} {one.words}. It was not made yet: call it now, with these arguments."
        return f"{who} denied {one.name} {one.words}. It was not made, and will not be: do not call it again."
    if not one.approved:
        return f"{who} denied the handoff {one.handoff} to {one.name}. It will not be done: do not ask for it again."
    given = await here.run.handoff(one.handoff)
    try:
        work = work_of(here, AgentId(one.name))
    except NotFoundError:
        return f"the handoff {one.handoff} to {one.name} may go on: ask for it again in the same words."
    return show_result(one.name, await given.run(waited_for(given, work)))


def show_held(held: Sequence[HeldWork]) -> str:
    """Return the words for the caller: the calls that wait for a person, and how the work goes on."""
    waits = "; ".join(f"{one.name} ({one.words}): `{one.command}`" for one in held)
    return f"Held until a person decides: {waits}. After that, resume the run, or run it again with its key."
