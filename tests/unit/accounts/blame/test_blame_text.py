"""Blame in words: the few lines that people read, whatever the words in them try."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from batonpass import Grant
from batonpass.accounts.blame.blame_text import Blame, render_blame
from batonpass.accounts.blame.blame_values import BlamedLine, BlameHop, BlameProof, HowKnown, Maker, TaskLink
from batonpass.accounts.blame.blame_words import called, quoted, spelled, who
from batonpass.attribution.changes.mark import UNRECORDED
from batonpass.attribution.git.git_history import Commit
from batonpass.model.base.ids import AgentId, CallId
from batonpass.model.baton.card import Card
from batonpass.records.source import Source
from batonpass.records.text import Found
from tests.unit.accounts.shop import AFTER, ANA, BEFORE, NEW, Shop, write_file
from tests.unit.accounts.trees import HOSTILE

NOW = datetime(2026, 1, 2, 13, tzinfo=UTC)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a shop with one file that nobody recorded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(BEFORE, encoding="utf-8")
    return Shop(tmp_path)


def told(blame: Blame, *, full: bool = False) -> list[str]:
    """Return the lines without ids."""
    rows = [str(row) for row in render_blame(blame, full=full, now=NOW)]
    return [re.sub(r"\b(editor|lead|write_file) [0-9a-z]{4}\b", r"\1 ID", row) for row in rows]


def an_answer(shop: Shop) -> tuple[Blame, Maker]:
    lead = shop.relay.start("Fix it", by=ANA)
    shop.edits(lead)
    blame = shop.blame("a.py", 2)
    return blame, next(iter(blame.makers.values()))


def with_maker(blame: Blame, maker: Maker, **line: object) -> Blame:
    call = blame.lines[0].calls[0]
    lines = (replace(blame.lines[0], **line),)
    return replace(blame, makers={call: maker}, lines=lines)


def test_three_lines_say_it_all(shop: Shop) -> None:
    """Who, when, on which task and for whom; by whose leave; by which call, and whether its receipts hold."""
    blame, _ = an_answer(shop)
    local = spelled(shop.clock.now(), NOW)

    assert [
        f'editor ID · {local} · "Shout" ← lead ← ana: "Fix it"',
        "unverified · may write:** (granted by lead) · approval: none needed",
        "write_file ID · @@ -2 +2 @@ · 5 receipts verified",
    ] == told(blame)


def test_without_a_grant_none_is_set(shop: Shop) -> None:
    """A root that works itself was granted nothing and asked nobody."""
    lead = shop.relay.start("Fix it", by=ANA)
    lead.call(write_file, "a.py", AFTER)
    rows = told(shop.blame("a.py", 2))

    assert [True, "unverified · grant: none set · approval: none needed"] == [
        rows[0].endswith('← ana: "Fix it"'),
        rows[1],
    ]


def test_what_a_root_may_was_granted_by_whom_it_works_for(shop: Shop) -> None:
    """Nobody handed it the work, and it has a grant all the same."""
    lead = shop.relay.start("Fix it", by=ANA, may=["write:*"])
    lead.call(write_file, "a.py", AFTER)

    assert "unverified · may write:* (granted by user:ana) · approval: none needed" == told(shop.blame("a.py", 2))[1]


def test_what_nobody_asked_for_is_told_if_it_was_granted(shop: Shop) -> None:
    """A child that gets what its ceiling and its parent have in common holds a grant, also if its brief names none."""
    shop.relay.register("editor", lambda _: None, card=Card(agent=AgentId("editor"), ceiling=("write:*",)))
    lead = shop.relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
    with lead.hand_off("editor", "Shout") as editor:
        editor.call(write_file, "a.py", AFTER)

    assert "unverified · may write:* (granted by lead) · approval: none needed" == told(shop.blame("a.py", 2))[1]


def test_in_full_there_is_every_word(shop: Shop) -> None:
    """Whole tasks behind a bar, every hop, and the lines that were taken away and added."""
    lead = shop.relay.start("Fix\nit", by=ANA)
    shop.edits(lead, task="Shout\nlouder")
    rows = told(shop.blame("a.py", 2), full=True)

    said = [row[13:] for row in rows]

    assert ["│ Shout", "│ louder", "← handed on by lead ID"] == said[1:4]
    assert ["│ Fix", "│ it"] == said[5:7]
    assert ["- the second line, as it was", f"+ {NEW}"] == [row for row in said if row[:2] in {"- ", "+ "}]


def test_several_groups_are_a_line_each(shop: Shop) -> None:
    """Each begins with its lines; in full, with all that is known."""
    lead = shop.relay.start("Fix it", by=ANA)
    shop.edits(lead)
    blame = shop.blame()

    assert ["1", "2", "3"] == [row.split()[0] for row in told(blame)]
    assert len(told(blame)) < len(told(blame, full=True))


@pytest.mark.parametrize(
    ("line", "recorded", "words"),
    [
        pytest.param({}, 0, "unexplained: no change of this file is recorded", id="no record"),
        pytest.param({}, 1, "unexplained: older than any record of this file", id="older"),
        pytest.param(
            {"since": NOW - timedelta(days=1)},
            1,
            f"unexplained since {spelled(NOW - timedelta(days=1), NOW)}: no recorded change wrote it",
            id="since a day",
        ),
        pytest.param(
            {"commit": Commit(id="f" * 40, author="Ana <a@b>", at=NOW)},
            1,
            "unexplained: older than any record of this file · commit ffffffff by Ana <a@b>",
            id="with a commit",
        ),
    ],
)
def test_unexplained_lines_say_since_when(line: dict[str, object], recorded: int, words: str) -> None:
    """And which commit brought them, if git knows."""
    unexplained = replace(BlamedLine(number=1, text="x", known=HowKnown.UNEXPLAINED), **line)

    assert [words] == told(Blame(asked="a", path="a", total=1, recorded=recorded, lines=(unexplained,)))


def test_doubts_are_said(shop: Shop) -> None:
    """A match, a reformatting, a commit, a link that was inferred, a transcript, and receipts that do not hold."""
    blame, maker = an_answer(shop)
    doubtful = replace(
        maker,
        hops=(replace(maker.hops[0], link=TaskLink.INFERRED), *maker.hops[1:]),
        source=Source(imported=True),
        proof=BlameProof(receipts=1, problem="a signature does not match", code="verify.signature"),
    )
    commit = Commit(id="f" * 40, author="Ana", at=NOW)
    rows = told(with_maker(blame, doubtful, known=HowKnown.MATCHED, reformatted_by=UNRECORDED, commit=commit))

    assert '"Shout" ← lead (inferred) ← ana' in rows[0]
    assert [
        "write_file ID",
        "@@ -2 +2 @@",
        "matched by its text and its place",
        "commit ffffffff",
        "reformatted since by somebody who is not recorded",
        "unsigned: a transcript says so",
        "NOT TO BE TRUSTED: a signature does not match",
    ] == rows[2].split(" · ")


def test_whoever_reformatted_a_line_is_named(shop: Shop) -> None:
    """By the run, if it is known, else by the call."""
    blame, maker = an_answer(shop)

    assert "reformatted since by editor ID" in told(with_maker(blame, maker, reformatted_by=str(maker.call)))[2]
    assert "reformatted since by beef" in told(with_maker(blame, maker, reformatted_by="call_beef"))[2]


def test_candidates_are_listed_and_none_is_chosen(shop: Shop) -> None:
    """Each with its task; beyond five, how many more there are; of some only the id is known."""
    blame, maker = an_answer(shop)
    calls = tuple(CallId(f"call_{number}") for number in range(8))
    line = replace(
        blame.lines[0], known=HowKnown.CANDIDATES, run=None, calls=(*calls, CallId("call_x")), or_nobody=True
    )
    several = replace(blame, lines=(line,), makers=dict.fromkeys(calls, maker))
    rows = told(several)

    assert "perhaps editor ID, or somebody who is not recorded; for 1 only the id is known:" == rows[0]
    assert (12, "  … and 3 more; --full lists them") == (len(rows), rows[-1])
    assert 8 == sum('"Shout" ←' in row for row in told(several, full=True))


def test_many_candidates_fit_on_a_screen(shop: Shop) -> None:
    """In full too: whoever only may have done it has three lines, and programs get all of them."""
    blame, maker = an_answer(shop)
    calls = tuple(CallId(f"call_{number}") for number in range(100))
    line = replace(blame.lines[0], known=HowKnown.CANDIDATES, run=None, calls=calls, or_nobody=True)
    rows = told(replace(blame, lines=(line,), makers=dict.fromkeys(calls, maker)), full=True)

    assert (38, "  … and 88 more; --json lists them") == (len(rows), rows[-1])


def test_a_run_that_is_certain_is_named_though_its_call_is_not(shop: Shop) -> None:
    """It was one of its calls."""
    blame, maker = an_answer(shop)
    calls = (CallId("call_1"), CallId("call_2"))
    line = replace(blame.lines[0], calls=calls)

    assert "editor ID, by one of 2 calls:" == told(replace(blame, lines=(line,), makers=dict.fromkeys(calls, maker)))[0]


def test_a_call_that_is_known_by_name_only_explains_nothing(shop: Shop) -> None:
    """A name without a record is nobody."""
    blame, _ = an_answer(shop)

    assert ["unexplained: older than any record of this file"] == told(replace(blame, makers={}))


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)
def test_no_words_reach_the_terminal(shop: Shop, words: str) -> None:
    """Whatever a task, a statement, a path or a line holds, each row is one harmless line."""
    lead = shop.relay.start(words, by=ANA)
    name = re.sub(r"[/\0\n]", "_", words)[:60] + ".py"
    shop.edits(lead, name, f"{words}\n", task=words, may=[])
    for full in (False, True):
        for row in told(shop.blame(name, 1), full=full):
            assert row.isprintable() or "\u0301" in row or "\U0001f9ff" in row, row


def test_words_say_how_much_more_there_is(shop: Shop) -> None:
    """The first line, and the number of lines or characters that follow."""
    lead = shop.relay.start("one\ntwo\nthree", by=ANA)
    shop.edits(lead, task="x" * 1000)
    maker = shop.maker()

    assert '"one…" (+2 lines)' == quoted(maker.said)
    assert f'"{"x" * 199}…" (+801 characters)' == quoted(maker.task)
    assert ('"one\ntwo\nthree"', "unknown") == (quoted(maker.said, full=True), quoted(None))


def test_transcripts_have_names_of_their_own(shop: Shop) -> None:
    """A ledger that lasts for one answer has ids that nobody can look up: those of the program are shown."""
    _, maker = an_answer(shop)
    theirs = replace(maker, source=Source(session="s-1234", key="line/toolu_abcd", imported=True))
    sub = replace(theirs, hops=(replace(theirs.hops[0], subagent="agent-5678"), *theirs.hops[1:]))

    assert ["editor 1234", "editor 5678", "write_file abcd"] == [
        who(theirs, transcripts=True),
        who(sub, transcripts=True),
        called(theirs, transcripts=True),
    ]


def test_in_full_a_transcript_names_its_session(shop: Shop) -> None:
    """The sub-agent, the session and the line, and none of our own ids."""
    blame, maker = an_answer(shop)
    theirs = replace(
        maker,
        source=Source(program="claude-code", session="s-1", key="u-1", imported=True),
        hops=(replace(maker.hops[0], subagent="abc"), BlameHop(run=maker.run.root, agent=maker.hops[1].agent)),
    )
    rows = told(replace(with_maker(blame, theirs), transcripts=1), full=True)

    assert rows[0].endswith("sub-agent abc")
    assert "ids          claude-code · session s-1 · line u-1" == rows[-1]


def test_an_answer_prints_itself(shop: Shop) -> None:
    """What Python prints is what the command prints."""
    blame, _ = an_answer(shop)

    assert str(blame).split("\n")[1:2] == told(blame)[1:2]


def test_a_thing_without_lines_is_told_by_who_made_it(shop: Shop) -> None:
    """What it changed, and what there is to say besides."""
    blame, maker = an_answer(shop)
    call = blame.lines[0].calls[0]
    effect = Blame(asked="call", calls=(call,), makers={call: maker}, notes=("it failed",))

    assert ["changed a.py", "it failed"] == [told(effect)[2].split(" · ")[1], told(effect)[3]]


def test_words_of_a_grant_that_are_gone_are_not_made_up(shop: Shop) -> None:
    """Of many patterns, some are shown."""
    blame, maker = an_answer(shop)
    many = tuple(f"read:{number}" for number in range(7))

    assert (
        "unverified · may: the words are no longer here · approval: none needed"
        == told(with_maker(blame, replace(maker, may=None)))[1]
    )
    assert told(with_maker(blame, replace(maker, may=many)))[1].endswith(
        "read:4 … (granted by lead) · approval: none needed"
    )


def test_a_sub_agent_that_nobody_is_known_to_have_started(shop: Shop) -> None:
    """It hangs from the root, and that this is not known is said."""
    blame, maker = an_answer(shop)
    hops = (replace(maker.hops[0], link=TaskLink.UNKNOWN), *maker.hops[1:])

    assert "← lead (unknown who started it) ←" in told(with_maker(blame, replace(maker, hops=hops)))[0]


def test_erased_words_are_said_to_be_erased(shop: Shop) -> None:
    """In brackets, so that nobody takes it for a task."""
    _, maker = an_answer(shop)
    assert maker.task is not None

    assert "(erased)" == quoted(replace(maker.task, found=Found.ERASED, body=None))
