"""The tools with which a lead judges a result: verify, accept unverified, refute, send back.

A result is provisional until somebody else has looked. These tools make a model that hands work off able to do that, by
the same use cases as programs and people. It judges only handoffs of its own run, and never without evidence.
"""

import asyncio
from typing import Final

from batonpass.agents.agent_at_work import AgentAtWork, agent_at_work
from batonpass.agents.agent_tools import ToolDefinition, Work
from batonpass.agents.shown_result import show_result
from batonpass.aio import AsyncHandoff, AsyncRun
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.guard.baton.placeholder import is_placeholder
from batonpass.handoff.programs.runners import config_of, configured
from batonpass.model.base.ids import AgentId
from batonpass.model.base.lifecycle import State

_OWN: Final = "It is your own work, so your word does not count: it stays unverified until somebody else verifies it."


async def verify_result(handoff: str, evidence: str) -> str:
    """Verify a result that you were given back. Only after you have checked it yourself.

    Args:
        handoff: The id of the handoff, as it came with the report.
        evidence: What you checked, how, and what you saw. It is recorded under your name.

    """
    given = await agent_at_work().run.handoff(handoff)
    await given.verify(verdict=_said("evidence", evidence))
    return await _standing(given, "verified")


async def accept_unverified(handoff: str, reason: str) -> str:
    """Go on with a result without verifying it. The reason is recorded under your name.

    Args:
        handoff: The id of the handoff, as it came with the report.
        reason: Why it needs no check, or why it cannot be checked.

    """
    given = await agent_at_work().run.handoff(handoff)
    await given.accept_unverified(_said("reason", reason))
    return await _standing(given, "accepted unverified")


async def refute_result(handoff: str, evidence: str) -> str:
    """Refute a result that you were given back. All agents that build on it are told that it is refuted.

    Args:
        handoff: The id of the handoff, as it came with the report.
        evidence: What is wrong, and how you found out.

    """
    given = await agent_at_work().run.handoff(handoff)
    await given.refute(_said("evidence", evidence))
    return await _standing(given, "refuted")


async def send_back(handoff: str, evidence: str) -> str:
    """Refute a result and have the same agent mend it now. Its finished work is kept. You get the next report.

    Args:
        handoff: The id of the handoff, as it came with the report.
        evidence: What is wrong, how you found out, and what has to be different.

    """
    here = agent_at_work()
    given = await here.run.handoff(handoff)
    said = _said("evidence", evidence)
    agent = (await given.info()).to
    work = work_of(here, agent)
    await given.refute(said)
    await given.retry(reason=said)
    if await given.state() is State.READY:
        return f"{agent} gets it back: {given.id} waits for a worker."
    return show_result(agent, await given.run(_mending(given, work, here.run)))


def _said(field: str, words: str) -> str:
    """Return the words of a verdict. Raises `InvalidValueError` if they say nothing."""
    if is_placeholder(words):
        raise InvalidValueError(field, "says nothing: say what you checked and what you saw")
    return words


async def _standing(given: AsyncHandoff, done: str) -> str:
    known = await given.info()
    if agent_at_work().run.agent == known.to:
        return f"Recorded. {_OWN}"
    return f"Recorded: {given.id} of {known.to} is {done}."


def work_of(here: AgentAtWork, agent: AgentId) -> Work:
    """Return the function that works for an agent. Raises `NotFoundError` if none of our registries has it."""
    for find in here.works:
        try:
            return find(agent)
        except NotFoundError:
            continue
    raise NotFoundError("agent that runs here", agent)


def _mending(given: AsyncHandoff, work: Work, lead: AsyncRun) -> Work:
    async def mend(child: AsyncRun) -> None:
        if lead.taint:
            # The lead's words are read by the child, and the lead knew this when it wrote them.
            await child.note_untrusted(*lead.taint)
        await waited_for(given, work)(child)

    return configured(mend, config_of(work))


def waited_for(given: AsyncHandoff, work: Work) -> Work:
    """Return the same work on a handoff; if the caller is cancelled, nobody waits for it, and it is cancelled too."""

    async def working(child: AsyncRun) -> None:
        try:
            await work(child)
        except asyncio.CancelledError:
            # Cancelled, it is not retried, as a failed handoff would be.
            await given.cancel(reason="the caller that waited for it was cancelled")
            raise

    return configured(working, config_of(work))


LEAD: Final = {
    tool.__name__: ToolDefinition(
        name=tool.__name__, function=tool, description=(tool.__doc__ or "").strip(), about_itself=True
    )
    for tool in (verify_result, accept_unverified, refute_result, send_back)
}
