"""What seldom happens is told as well: gaps, waivers, questions, costs, broken words, rows in a circle."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from batonpass.accounts.trail.first_lines import Words, first_line
from batonpass.accounts.trail.trail_html import render_html
from batonpass.accounts.trail.trail_text import render_text
from batonpass.errors import EditedError
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import ContentId, new_content_id
from batonpass.model.base.kinds import Settlement
from batonpass.model.baton.items import Artifact, Claim, Constraint, RejectedPath, Report
from batonpass.model.bodies.body import Changed, RunGap, ToolCompleted
from batonpass.records.text import Found
from batonpass.relay import recording_of
from batonpass.testing.clock import NOON
from batonpass.testing.plain_acts import plainly
from batonpass.wire.documents import encode_item, encode_report
from tests.unit.accounts.trees import ANA, Place, break_off, calls_of, lines_of, tried, write

HERE = ContentId("content_x")


@pytest.fixture
def place() -> Place:
    return Place()


@tool(cost=lambda _: Decimal("0.25"))
def pay() -> None:
    """Pretend to spend."""


def test_gaps_costs_and_changed_files(place: Place) -> None:
    """What could not be written, what a call cost, and how many files it changed."""
    lead = place.relay().start("x", by=ANA)
    recording, working = recording_of(place.relay()), lead._holding.working
    recording.record(working, RunGap(run=lead.id, calls=2))
    lead.call(pay)
    call = plainly(recording).request(working, "edit", "{}")
    changes = tuple(Changed(change=new_content_id(NOON)) for _ in range(2))
    recording.record(working, ToolCompleted(run=lead.id, call=call, flags=("cost.unknown",), changes=changes))

    assert [
        "gap 2 unrecorded · nothing could be written",
        "pay · completed 0ms · cost 0.25",
        "edit · completed 0ms · changed 2 files · cost.unknown",
    ] == lines_of(place.trail(lead.id))[2:]


def test_what_others_did_to_a_handoff(place: Place) -> None:
    """Questions, refusals, another agent, a waiver and what was relaxed are told with who did it."""
    lead = place.relay().start("x", by=ANA, items=[Constraint("be quick")])
    handoff = lead.hand_off("editor", "y")
    handoff.ask("which?")
    handoff.answer("that one", by=ANA)
    handoff.decline("no time")
    handoff.replace("typist", by=ANA, reason="she has")
    with handoff as typist:
        typist.relax(typist.notes[-1], by=ANA, reason="no hurry")
        typist.report("done")
    handoff.accept_unverified("good enough", by=ANA)
    lines = "\n".join(lines_of(place.trail(lead.id)))

    for line in (
        'asked by agent:editor "which?" · data-gap: asked',
        'answered by user:ana "that one" · revision 1',
        'declined by agent:editor · declined · "no time"',
        'replaced by user:ana · given to typist · "she has"',
        'relaxed "be quick" · by user:ana · "no hurry"',
        'accepted unverified by user:ana · "good enough"',
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("settlement", "note"),
    [
        pytest.param(Settlement.SKIP, "no outcome: taken as done", id="skipped"),
        pytest.param(Settlement.REPEAT, "no outcome: to be made again", id="repeated"),
    ],
)
def test_a_settled_call_says_what_was_decided(place: Place, settlement: Settlement, note: str) -> None:
    """Both where it was requested and where somebody decided."""
    lead = place.relay().start("x", by=ANA)
    handoff = lead.hand_off("mailer", "y")
    run = handoff.accept()
    tried(lambda: run.call(break_off, "all"))
    run.fail(RuntimeError("gone"))
    (call,) = calls_of(place.trail(lead.id), run)
    handoff.settle(call.record.id, settlement, by=ANA, reason="asked them")
    lines = lines_of(place.trail(lead.id))

    assert f"break_off to=all · {note}" in lines
    assert f'settled: {settlement} break_off {call.record.id[-4:]} · by user:ana · "asked them"' in lines


def test_a_call_that_was_made_again_says_where(place: Place) -> None:
    """A tool that may be repeated answers for the call that was interrupted."""
    interrupted = [True]

    @tool(idempotent=True)
    def put(path: str) -> str:
        if interrupted:
            interrupted.clear()
            raise KeyboardInterrupt
        return path

    lead = place.relay().start("x", by=ANA)
    handoff = lead.hand_off("editor", "y")
    first = handoff.accept()
    tried(lambda: first.call(put, "a"))
    first.fail(RuntimeError("gone"))
    handoff.retry(by=ANA)
    second = handoff.accept()
    second.call(put, "a")
    trail = place.trail(lead.id)
    (again,) = calls_of(trail, second)

    assert [f"no outcome: made again as {again.record.id[-4:]}", "completed 0ms"] == [
        line.partition(" · ")[2] for line in lines_of(trail) if line.startswith("put")
    ]


@pytest.mark.parametrize(
    ("name", "body", "line"),
    [
        pytest.param("item", b"\xff\xfe", "2 bytes that are no text", id="bytes"),
        pytest.param("item", b'{"v":9}', '{"v":9}', id="of a newer version"),
        pytest.param("arguments", b"not json", "not json", id="arguments that are no JSON"),
        pytest.param("brief", b"{}", "{}", id="a brief that somebody changed"),
        pytest.param("report", b"plain words", "plain words", id="a report in plain words"),
        pytest.param("report", encode_report(Report()), "(no result)", id="a report without a result"),
        pytest.param("item", encode_report(Report(result="r")), "r", id="a report as an item"),
        pytest.param("item", encode_item(RejectedPath("a", why="b"), ANA, NOON), "a (b)", id="a rejected path"),  # type: ignore[arg-type]
        pytest.param("item", encode_item(Claim("c"), ANA, NOON), "c", id="a claim"),  # type: ignore[arg-type]
        pytest.param(
            "item",
            encode_item(
                Artifact("f", body=new_content_id(NOON), sha256="0" * 64, size=1, media_type="a/b", source="web"),  # type: ignore[arg-type]
                ANA,  # type: ignore[arg-type]
                NOON,
            ),
            "f (from web)",
            id="an artifact",
        ),
        pytest.param("command", b"sh\n-c\ntrue", "sh -c true", id="a command"),
        pytest.param("message", b"Traceback\n  x\nOSError: no\n\n", "OSError: no", id="a traceback"),
        pytest.param(
            "message", b"fatal: not a repository\nhint: init\n", "fatal: not a repository", id="a hint after it"
        ),
        pytest.param("message", b"Exit code 128\nfatal: no\nmore", "fatal: no", id="a number before it"),
        pytest.param("message", b"Exit code 128\n", "Exit code 128", id="nothing but a number"),
        pytest.param("message", b"", "", id="no message"),
    ],
)
def test_words_that_are_not_as_usual(name: str, body: bytes, line: str) -> None:
    """What cannot be read as it should be is told as it is."""
    assert line == first_line(name, HERE, body).bare


def test_what_is_gone_is_said_without_quotes() -> None:
    """Nobody wrote it."""
    assert ("missing", "erased") == (
        Words(content=HERE, found=Found.MISSING).bare,
        str(Words(content=HERE, found=Found.ERASED)),
    )


def test_rows_that_go_in_a_circle_end_somewhere(place: Place) -> None:
    """Somebody who changes the rows gets no endless page: it is said, or cut."""
    lead = place.relay().start("x", by=ANA)
    handoff = lead.hand_off("editor", "y")
    run = handoff.accept()
    run.hand_off("typist", "z")
    trail = place.trail(lead.id)
    told = trail.runs[lead.id]
    below = {known: each for known, each in trail.handoffs.items() if known != handoff.id}
    down = replace(
        trail,
        handoffs={**trail.handoffs, **{known: replace(each, story=(lead.id,)) for known, each in below.items()}},
    )
    up = replace(trail, runs={**trail.runs, lead.id: replace(told, run=replace(told.run, parent=run.id))})

    assert ["lead", "editor"] == [row.parts[0].text.split()[0] for row in render_text(down) if "─ " in row.tree]
    with pytest.raises(EditedError):
        lines_of(up)


def test_unknown_words_are_shown_as_unknown(place: Place) -> None:
    """A page says what became of words that are not there."""
    lead = place.relay().start("x", by=ANA)
    lead.call(write, "a")
    trail = place.trail(lead.id)
    lost = replace(trail, runs={lead.id: replace(trail.runs[lead.id], task=None)})
    erased = replace(trail, runs={lead.id: replace(trail.runs[lead.id], task=Words(content=HERE, found=Found.ERASED))})

    assert ["unknown", "erased"] == [
        "".join(render_html(each)).partition('<i class="gone">')[2].partition("</i>")[0] for each in (lost, erased)
    ]
