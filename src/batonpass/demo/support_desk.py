"""The story of a support desk: three agents pass a customer's words on, and a fourth hop is refused."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final, Protocol, cast

from batonpass.agents.definition import RunResult
from batonpass.agents.event_log import Event, EventLog
from batonpass.agents.framework.extra_check import require_extra
from batonpass.briefing.render import brief
from batonpass.demo.examples import load_example
from batonpass.demo.story import Step, StoryLine, StoryTone, verified_step
from batonpass.model.base.ids import AgentId
from batonpass.relay import Relay
from batonpass.store.home import HOME_NAME

NAME: Final = "support.py"
_THIRD: Final = AgentId("payment-specialist")


class SupportDesk(Protocol):
    """The parts of the example that the story uses."""

    WORDS: str
    answer: Callable[[Relay], Awaitable[RunResult]]


def play_desk(directory: Path) -> Iterator[Step]:
    """Play the story in a directory, step by step. Raises `MissingExtraError` and `VerificationError`."""
    require_extra()
    desk = cast("SupportDesk", load_example(NAME))
    with Relay.open(f"sqlite:///{directory / HOME_NAME / 'ledger.db'}") as relay:
        result, events = asyncio.run(_answer(desk, relay))
        yield Step(
            "A customer writes; three agents pass the request on, each to the next",
            (StoryLine(f"ana: {desk.WORDS}"), StoryLine(f"support-agent: {result.output}", StoryTone.GOOD)),
        )
        yield Step("The receipts on the way; the policy refused a fourth agent", tuple(map(_told, events)))
        yield Step("The briefing of the third agent's model, in the user's role", tuple(_briefing(relay)))
        yield verified_step(relay)


async def _answer(desk: SupportDesk, relay: Relay) -> tuple[RunResult, list[Event]]:
    result = await desk.answer(relay)
    return result, await EventLog(relay).get_events(run=result.run, event_type_prefix="handoff")


def _told(event: Event) -> StoryLine:
    tone = StoryTone.BAD if event.event_type == "handoff.failed" else StoryTone.PLAIN
    return StoryLine(f"{event.event_type}: {event.summary}", tone)


def _briefing(relay: Relay) -> Iterator[StoryLine]:
    with relay.store.view() as view:
        third = next(handoff.id for handoff in view.find_handoffs() if handoff.to == _THIRD)
    baton = relay.handoff(third).baton()
    for line in brief(baton, read=lambda content: relay.read(content)).text.splitlines():  # noqa: PLW0108 - the parameter has another name
        if line and not line.startswith("How to read"):
            yield StoryLine(line, StoryTone.PLAIN if line.startswith("#") else StoryTone.QUIET)
