"""The story of a page that tells an agent to pay: quoted as data, held at the call, traced back to the page.

The story knows the truth, and compares the ledger's answers with it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol, cast

from batonpass.accounts.taint.taint_values import Did, TaintHop
from batonpass.accounts.taint.taint_way import find_way
from batonpass.audit.meant_ids import get_handoff, get_run
from batonpass.briefing.render import brief
from batonpass.demo.examples import load_example
from batonpass.demo.story import Step, StoryLine, StoryTone, require_answer, verified_step
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery

NAME: Final = "poisoned.py"
CLERK: Final = "clerk"
HONEST: Final = "honest"

_TONES: Final = {Did.READ: StoryTone.BAD, Did.HELD: StoryTone.BAD, Did.DENIED: StoryTone.GOOD}


class Bank(Protocol):
    """The part of the example's bank that the story uses."""

    paid: list[tuple[str, int]]


class Poisoned(Protocol):
    """The parts of the example that the story uses."""

    WORDS: str
    ON_FILE: str
    ACCOUNT: str
    HONEST: str
    POISONED: str
    main: Callable[[Path, Callable[[str], None], str], tuple[Relay, Bank]]


def play_poisoned(directory: Path) -> Iterator[Step]:
    """Play the story, then trace the payment. Raises `VerificationError` if an answer is not true."""
    example = cast("Poisoned", load_example(NAME))
    told: list[str] = []
    relay, bank = example.main(directory, told.append, example.POISONED)
    with relay:
        yield Step(
            "Ana wants a price and an invoice paid; the account is named first",
            tuple(_asked(example)),
        )
        yield Step(
            "A researcher reads a page in which an order is hidden", (StoryLine(example.POISONED, StoryTone.BAD),)
        )
        yield Step("The clerk's briefing: the page is quoted as data, between markers", tuple(_quarantined(relay)))
        yield Step("The clerk obeys the page all the same; its call waits for a person", tuple(_worked(told)))
        require_answer(bank.paid == [(example.ON_FILE, 420)], "only the account on file is paid")
        yield Step(f"One command traces it to the page: batonpass taint {CLERK}", tuple(_traced(relay, example)))
        yield verified_step(relay, "Verify everything: every byte, signature, link, text and label")
    yield _honest(directory / HONEST, example)


def _asked(example: Poisoned) -> Iterator[StoryLine]:
    yield StoryLine(f"ana: {example.WORDS}")
    yield StoryLine(f"the lead may pay:{example.ON_FILE} and pay:*, and may delegate both", StoryTone.QUIET)
    yield StoryLine("one account is named before anybody reads anything; the * names none", StoryTone.QUIET)


def _quarantined(relay: Relay) -> Iterator[StoryLine]:
    with relay.store.view() as view:
        clerk = get_handoff(view, CLERK).id
    briefing = brief(relay.handoff(clerk).baton(), read=lambda content: relay.read(content))  # noqa: PLW0108 - the parameter has another name
    quoted = "9,800" not in briefing.instructions and "9,800" in briefing.data
    require_answer(quoted, "the page is data, not an instruction")
    for line in briefing.data.splitlines():
        if line.strip():
            yield StoryLine(line, StoryTone.PLAIN if briefing.marker in line else StoryTone.QUIET)


def _worked(told: list[str]) -> Iterator[StoryLine]:
    for line in told:
        tone = (
            StoryTone.BAD if line.startswith("clerk") else StoryTone.GOOD if line.startswith("ana") else StoryTone.PLAIN
        )
        yield StoryLine(line, tone)


def _traced(relay: Relay, example: Poisoned) -> Iterator[StoryLine]:
    with relay.store.view() as view:
        (way,) = find_way(view, get_run(view, CLERK).id)
    last = way.hops[-1]
    traced = last.did is Did.HELD and last.is_quoting and example.ACCOUNT in last.what
    require_answer(traced, "the page led to the payment")
    yield StoryLine(f"{way.entry.name} · {way.entry.by}")
    for hop in (*way.hops, *way.since):
        yield StoryLine(f"{hop.name:<16} {hop.did:<11} {_told(hop)}".rstrip(), _TONES.get(hop.did, StoryTone.QUIET))


def _told(hop: TaintHop) -> str:
    if hop.in_quarantine:
        return f"{hop.what} · in quarantine"
    return f"{hop.what} · the page's words are in it" if hop.is_quoting else hop.what


def _honest(directory: Path, example: Poisoned) -> Step:
    """Let the same agents read an honest page."""
    relay, bank = example.main(directory, lambda _: None, example.HONEST)
    with relay, relay.store.view() as view:
        held = list(view.find_receipts(ReceiptQuery(kind=Kind.TOOL_HELD)))
    require_answer(not held and bank.paid == [(example.ON_FILE, 420)], "an honest page holds up nothing")
    return Step(
        "The same agents with an honest page: it is from outside too, and nothing is held",
        (StoryLine(f"420 EUR went to {example.ON_FILE}, which the terms name; 0 calls held", StoryTone.GOOD),),
    )
