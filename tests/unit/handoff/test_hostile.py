"""Hostile text in every field: it comes out as it went in, or it is refused and nothing is recorded."""

from typing import Any

import pytest

from batonpass import Brief, Handling
from batonpass.errors import InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.items import (
    Assumption,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    OpenQuestion,
    RejectedPath,
    Statement,
    WorkItem,
)
from batonpass.relay import Relay
from tests.offers import grouped
from tests.unit.handoff.places import ANA, LONE_SURROGATE, LONG, NASTY, Places, kinds, receipts, words

BRIEF = ("rationale", "serves", "role", "phase")
LISTS = ("criteria", "inputs", "expects", "stop_when", "verify_by", "needs_tools", "needs_skills")


def every_item(text: str) -> list[Any]:
    return [
        Statement(text),
        Constraint(text),
        Constraint(key=text, operator="=", value=text, unit=text),
        Exclusion(text),
        WorkItem(text, outputs=(text,), verified_by=text, how=text, evidence=text),
        OpenQuestion(text, blocking=True),
        RejectedPath(text, text),
        Decision(text, why=text, conditions=(text,)),
        Assumption(text),
        Claim(text, key=text, value=text, unit=text),
    ]


def carried_out(places: Places, text: str) -> LiveRun:
    """Hand a text over to another process in every field that there is; return who got it."""
    lead = places.relay().start(text, by=ANA)
    lead.record(*every_item(text))
    lead.attach(text, text, source=text)
    brief: dict[str, Any] = {**dict.fromkeys(BRIEF, text), **{name: [text] for name in LISTS}}
    lead.hand_off("worker", text, handling=Handling(key=text), carrier=Carrier.WORKER, **grouped(**brief))
    there = places.relay()
    lease = there.claim(holder="worker-1", lease_for=LONG)
    assert lease is not None
    return there.handoff(lease.handoff).accept(lease=lease)


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_nasty_text_is_carried_as_it_is(places: Places, text: str) -> None:
    """Into another process, in every field of a baton, byte for byte."""
    child = carried_out(places, text)
    baton = child.baton
    assert baton is not None

    assert text == child.task
    assert sorted(map(repr, [Statement(text), *every_item(text)])) == sorted(
        repr(item.value) for item in baton.items if item.part != "artifact"
    )
    assert [text] * len(BRIEF) == [getattr(baton.brief, name) for name in BRIEF]
    assert [(text,)] * len(LISTS) == [getattr(baton.brief, name) for name in LISTS]
    assert (text.encode(), text) == (child.read(text), baton.artifacts[0].source)


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_nasty_words_are_kept_as_they_are(relay: Relay, text: str) -> None:
    """Reasons, questions, answers, reports, arguments, results and errors."""
    lead = relay.start("begin", by=ANA)
    handoff = lead.hand_off("worker", "one")
    handoff.ask(text)
    handoff.answer(text)
    child = handoff.accept()
    assert text == child.call(lambda words: words, text)

    def fail(words: str) -> None:
        raise ValueError(words)

    with pytest.raises(ValueError, match=r".*"):
        child.call(fail, text)
    child.report(text, open_questions=[text])
    child.close()
    handoff.refute(text)
    handoff.retry(reason=text)
    handoff.decline(text)
    assert child.baton is not None

    assert (text, text) == (child.baton.answers[0].question, child.baton.answers[0].answer)
    assert [text] * 5 == [
        words(relay, receipts(relay, kind)[0], name)
        for kind, name in [
            ("handoff.asked", "question"),
            ("handoff.answered", "answer"),
            ("verification.failed", "evidence"),
            ("handoff.retried", "reason"),
            ("handoff.declined", "reason"),
        ]
    ]
    assert text == words(relay, receipts(relay, "tool.completed")[0], "result")
    assert text == handoff.result().reason


@pytest.mark.parametrize("number", range(10))
def test_half_a_character_is_refused_in_every_item(number: int) -> None:
    """It is no text, and would make bytes that nobody can sign twice."""
    with pytest.raises(InvalidValueError, match="not Unicode text"):
        every_item(LONE_SURROGATE)[number]


@pytest.mark.parametrize("field", [*BRIEF, *LISTS])
def test_half_a_character_is_refused_in_every_field(lead: LiveRun, relay: Relay, field: str) -> None:
    """And nothing is recorded of such an offer."""
    value = LONE_SURROGATE if field in BRIEF else [LONE_SURROGATE]
    with pytest.raises(InvalidValueError):
        lead.hand_off("worker", "one", **grouped(**{field: value}))

    assert ["run.started"] == kinds(relay)


def test_half_a_character_in_a_call_is_spelled_out(lead: LiveRun, relay: Relay) -> None:
    """Arguments, results and errors of tools are not ours to refuse: the call is recorded all the same."""

    def echo(words: str) -> str:
        return words

    def fail(words: str) -> None:
        raise ValueError(words)

    assert LONE_SURROGATE == lead.call(echo, LONE_SURROGATE)
    with pytest.raises(ValueError, match="half"):
        lead.call(fail, LONE_SURROGATE)

    assert "half \\ud83d a character" in words(relay, receipts(relay, "tool.failed")[0], "message")


def test_a_very_long_task_is_carried_as_it_is(places: Places) -> None:
    """A hundred thousand characters, in every field."""
    text = "0123456789" * 10_000
    lead = places.relay().start(text, by=ANA)
    handoff = lead.hand_off(
        "worker", text, brief=Brief(rationale=text), criteria=[text], items=[Decision(text, why=text)]
    )
    baton = places.relay().handoff(handoff.id).baton()

    assert (text, text, text) == (baton.task, baton.brief.rationale, baton.decisions[0].why)


def test_far_too_long_a_text_is_to_be_attached(lead: LiveRun) -> None:
    """What nobody can read as a task is refused with the way to hand it over."""
    with pytest.raises(InvalidValueError, match="attach it as an artifact"):
        lead.hand_off("worker", "x" * (10 * 1024 * 1024 + 1))
