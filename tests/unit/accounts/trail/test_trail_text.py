"""The trail as a tree of lines."""

import json
from datetime import timedelta

import pytest

from batonpass.accounts.trail.first_lines import arguments_of, elapsed, message_of, shortened
from batonpass.accounts.trail.receipt_lines import Tone, tell, tone_of
from batonpass.accounts.trail.trail_text import render_text
from batonpass.accounts.trail.trail_values import Happened, Trail
from batonpass.cli.output.units import elapsed as said
from batonpass.model.base.ids import ContentId, ReceiptId
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Claim, Constraint, Decision, OpenQuestion
from batonpass.model.bodies.body import Body, Kind, UnknownBody
from batonpass.relay import recording_of
from batonpass.testing.clock import NOON
from batonpass.testing.plain_acts import plainly
from tests.unit.accounts.trees import (
    ANA,
    HOSTILE,
    SECOND,
    Place,
    break_off,
    calls_of,
    fail,
    find,
    lines_of,
    tried,
    write,
)
from tests.unit.model.examples import BODIES

DEEP = 1_200


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def told(place: Place) -> Trail:
    """Return a tree in which a good deal happened."""
    relay = place.relay()
    lead = relay.start("Fix rounding", by=ANA, items=[Constraint("never touch the API")], series="quarterly")
    lead.record(Decision("half-even", why="tax office"), Claim("it is slow"))
    place.clock.tick()
    handoff = lead.hand_off("editor", "Round", may=["write:**", "call:*"], hold=True)
    handoff.approve(by=ANA, reason="fine", looked_ms=1500)
    first = handoff.accept()
    place.clock.tick(61 * SECOND)
    first.call(write, "a.py", "fixed")
    tried(lambda: first.call(fail, "no"))
    tried(lambda: first.call(break_off, "all"))
    first.fail(RuntimeError("overloaded"))
    handoff.retry(by=ANA, reason="once more")
    second = handoff.accept()
    second.call(write, "a.py", "fixed")
    second.report("done", open_questions=["VAT?"])
    second.close()
    handoff.verify(by=ANA, command=["true"])
    lead.close()
    return place.trail(lead.id)


def test_a_tree_reads_from_top_to_bottom(told: Trail) -> None:
    """Who, how it stands, what for; then what happened, indented under whoever did it."""
    tree = ["".join((row.tree, *(part.text for part in row.parts))) for row in render_text(told)]
    names = {told.runs[run].run.id[-4:]: f"<{number}>" for number, run in enumerate(told.runs)}
    names |= {known[-4:]: "<h>" for known in told.handoffs}
    for end, name in names.items():
        tree = [line.replace(end, name) for line in tree]

    assert [
        'user:ana: "Fix rounding"',
        "└─ lead <0>  completed  1m02s",
        "   │  begins · series quarterly",
        '   │  constraint "never touch the API" · by user:ana',
        '   │  decision "half-even (tax office)"',
        '   │  claim "it is slow"',
        '   └─ editor <h>  verified  "Round"',
    ] == [line.rstrip() for line in tree[:7]]
    assert "      ├─ editor <1>  failed  1m01s  attempt 1" in tree
    assert '      │  retried by user:ana · "once more"' in tree
    assert "      └─ editor <2>  completed  0ms  attempt 2" in tree
    assert "         verified by user:ana · command · `true` · exit code 0" in tree


def test_what_happened_is_said(told: Trail) -> None:
    """Outcomes, errors, doubts, approvals and what was kept are in the lines."""
    lines = "\n".join(lines_of(told))

    for words in (
        "may write:**, call:* · carries",
        "missing in the handoff to editor ",
        'approved by user:ana · unproven · looked 1.5s, as claimed · "fine"',
        "write a.py · completed 0ms · kept: editor",
        'fail words=no · failed 0ms: value · "ValueError: no"',
        "break_off to=all · in doubt: requested, and nobody knows whether it happened",
        'failed · runtime · "RuntimeError: overloaded"',
        'completed "done" · kept 1 of earlier attempts',
    ):
        assert words in lines


def test_times_count_from_the_top(told: Trail) -> None:
    """The whole tree counts from its root, a branch from its own beginning."""
    handoff = next(iter(told.handoffs))

    assert ["", "+0ms", "+0ms"] == [row.when for row in render_text(told)][:3]
    assert "+1m02s" == [row.when for row in render_text(told) if row.when][-1]
    assert "+1m01s" == [row.when for row in render_text(told.below(handoff)) if row.when][-1]


def test_a_clock_that_went_back_is_seen(place: Place) -> None:
    """Something that is said to have happened before the beginning is told so."""
    lead = place.relay().start("x", by=ANA)
    place.clock.tick(-90 * SECOND)
    lead.call(find, 1)

    assert "-1m30s" == [row.when for row in render_text(place.trail(lead.id))][-1]


def test_calls_can_be_left_out(told: Trail) -> None:
    """Then the rest stays as it is."""
    without = lines_of(told, calls=False)

    assert [line for line in lines_of(told) if not line.startswith(("write", "fail ", "break_off"))] == without


def test_a_branch_says_for_whom_it_was(told: Trail) -> None:
    """Above it stands who handed it off, up to the human's words."""
    run = told.runs[told.root].run

    assert f'lead {run.id[-4:]} ← user:ana: "Fix rounding"' == lines_of(told.below(next(iter(told.handoffs))))[0]


@pytest.mark.slow
def test_a_chain_of_a_thousand_hops_is_told(place: Place) -> None:
    """Nothing recurses; from some depth on a number says how deep it is."""
    relay = place.relay()
    lead = run = relay.start("x", by=ANA)
    recording = plainly(recording_of(relay))
    working = run._holding.working
    for hop in range(DEEP):
        working = recording.accept(recording.offer(working, f"agent-{hop}", "next"))

    trail = place.trail(lead.id)
    rows = list(render_text(trail))

    assert f"({DEEP} deep) agent-{DEEP - 1} {working.run.id[-4:]}" == rows[-2].parts[0].text
    assert max(len(row.tree) for row in rows) < 200
    assert DEEP == len(trail.below(working.run.id).above)


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE.keys())
def test_lines_stay_lines(place: Place, words: str) -> None:
    """Whatever was written, a line is no longer than a few of them, and stays one."""
    lead = place.relay().start(words, by=ANA, items=[Constraint(words)])
    handoff = lead.hand_off("editor", words, hold=True)
    handoff.approve(by=ANA, reason=words)
    run = handoff.accept()
    run.call(write, words, words)
    tried(lambda: run.call(fail, words))
    run.report(words)
    run.close()

    lines = [str(row) for row in render_text(place.trail(lead.id))]

    assert [] == [line for line in lines if len(line) > 700 or len(line.splitlines()) > 1]


def is_told_alone(body: Body) -> bool:
    """Say whether a kind is told by itself: not with its call, not by its items, and not in no tree."""
    family = str(body.kind).partition(".")[0]
    return (
        family not in {"tool", "relay", "approver", "content", "grant", "file"} and body.kind is not Kind.RUN_RECORDED
    )


def test_every_kind_is_told(told: Trail) -> None:
    """There is a line for each kind that may stand in a tree, also if its words are gone."""
    found = {
        name: [str(line) for line in tell(told, Happened(receipt=ReceiptId("receipt_x"), at=NOON, body=body))]
        for name, body in BODIES.items()
        if is_told_alone(body)
    }

    assert {} == {name: lines for name, lines in found.items() if len(lines) != 1 or "cannot tell" in lines[0]}


def test_a_kind_of_a_newer_version_is_named(told: Trail) -> None:
    """What this version cannot tell is not left out."""
    body = UnknownBody("handoff.teleported")
    (line,) = tell(told, Happened(receipt=ReceiptId("receipt_x"), at=NOON, body=body))

    assert "handoff.teleported · a kind that this version does not know" == str(line)


def test_states_have_tones() -> None:
    """What ended well is good, what ended badly is bad, and all else is not over."""
    tones = {state: tone_of(state) for state in State}

    assert {State.COMPLETED, State.VERIFIED} == {state for state, tone in tones.items() if tone is Tone.GOOD}
    assert {State.HELD, State.OFFERED, State.READY, State.CLAIMED, State.ASKED, State.RUNNING} == {
        state for state, tone in tones.items() if tone is Tone.WARN
    }


@pytest.mark.parametrize("seconds", [0, 0.0004, 0.5, 59.9, 60, 3599, 3600, 86_399, 86_400, 900_000])
def test_durations_are_said_as_everywhere(seconds: float) -> None:
    """The command line says them the same way."""
    assert said(timedelta(seconds=seconds)) == elapsed(timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        pytest.param({"arguments": {"a": 1, "b": "x"}, "tool": "t"}, "a=1 b=x", id="by name"),
        pytest.param({"a": [1, "é"]}, 'a=[1, "é"]', id="as some programs record them"),
        pytest.param([1, 2], "[1, 2]", id="a list"),
        pytest.param({"arguments": {"text": "one\ntwo"}}, "text=one…", id="several lines"),
        pytest.param({"arguments": {"text": "x" * 500}}, f"text={'x' * 59}…", id="a long one"),
        pytest.param({}, "", id="none"),
    ],
)
def test_arguments_are_one_line(given: object, line: str) -> None:
    """Each value has room for some words, and says if there are more."""
    assert line == arguments_of(json.dumps(given).encode())


def test_large_arguments_are_not_taken_apart() -> None:
    """Of a file that was written as an argument the beginning is told."""
    body = json.dumps({"arguments": {"text": "x" * 100_000}}).encode()

    assert body.decode() == arguments_of(body)


@pytest.mark.parametrize(
    ("text", "line", "whole"),
    [
        pytest.param("  a  ", "a", True, id="spaces around it do not matter"),
        pytest.param("", "", True, id="nothing"),
        pytest.param("\n\n", "", True, id="nothing but lines"),
        pytest.param("a\u2028b", "a", False, id="a separator that nobody sees"),
        pytest.param("x" * 200, "x" * 200, True, id="just enough"),
        pytest.param("x" * 201, "x" * 199, False, id="one too many"),
    ],
)
def test_first_lines(text: str, line: str, *, whole: bool) -> None:
    """The first line with something in it, as far as it has room."""
    words = shortened(ContentId("content_x"), text)

    assert (line, whole) == (words.line, words.whole)


def test_constraints_and_questions_are_said_as_people_say_them(place: Place) -> None:
    """Typed ones with their value, blocking ones as blocking."""
    lead = place.relay().start("x", by=ANA)
    lead.record(Constraint(key="n", operator="<=", value="3"), OpenQuestion("why?", blocking=True))

    assert ['constraint "n <= 3"', 'open question "why? (blocking)"'] == lines_of(place.trail(lead.id))[2:]


def test_a_late_outcome_is_evidence(place: Place) -> None:
    """It is told with its call, and in the handoff's story."""
    lead = place.relay().start("x", by=ANA)
    handoff = lead.hand_off("editor", "y")
    run = handoff.accept()

    def cancelled_meanwhile() -> None:
        handoff.cancel(by=ANA, reason="no more")

    tried(lambda: run.call(cancelled_meanwhile))
    trail = place.trail(lead.id)

    assert [(None, True, True)] == [
        (call.record.outcome, call.record.late is not None, call.record.in_doubt) for call in calls_of(trail, run)
    ]
    assert [True] == ["completed late: evidence" in line for line in lines_of(trail) if line.startswith("cancelled_m")]
    assert 1 == sum(line.startswith("late cancelled_meanwhile") for line in lines_of(trail))


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("batonpass.adapters.mcp.proxy.proxy_recorder.CallRefusedError: no", "CallRefusedError: no"),
        ("httpx.ConnectError: no", "httpx.ConnectError: no"),
    ],
)
def test_an_error_of_ours_is_named_without_its_module(last: str, told: str) -> None:
    """Where it is defined tells a reader nothing; of others' errors it tells whose they are."""
    assert told == message_of(f"Traceback (most recent call last):\n  x\n{last}")


def test_what_is_missing_is_said_once(told: Trail) -> None:
    """At the end, with whom it went to, and not on every line that it could stand on."""
    lines = lines_of(told)
    handoff = next(iter(told.handoffs))

    assert [] == [line for line in lines if "missing:" in line]
    assert 1 == sum("missing in the handoff to editor " in line for line in lines)
    assert lines[-1].endswith(": " + ", ".join(told.handoffs[handoff].offered.body.missing))  # type: ignore[union-attr]
