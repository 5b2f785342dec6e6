"""`batonpass blame` where there is no ledger: the transcripts that Claude Code keeps answer, and are called hearsay."""

import json
from pathlib import Path

import pytest

from tests.unit.accounts.shop import ANA
from tests.unit.adapters.claude_code.histories import History
from tests.unit.cli.desk import Desk
from tests.unit.cli.transcripts import a_bare_desk, an_edit, run_without_ledger

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\u202eevil"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk with one file and without a ledger."""
    return a_bare_desk(tmp_path, monkeypatch)


@pytest.fixture
def history(desk: Desk) -> History:
    """Return what Claude Code keeps about the project."""
    return History(desk.directory.parent, desk.directory)


def test_without_a_ledger_transcripts_answer(desk: Desk, history: History) -> None:
    """It is said that they were read and that nobody signed them; nothing is written."""
    an_edit(history)
    code, out, err = run_without_ledger(desk, "blame", "a.py:2")
    rows = out.splitlines()

    assert (0, True) == (code, rows[0].startswith("claude-code 5555 · "))
    assert ["unverified · grant: none set · approval: none recorded", True] == [
        rows[1],
        "unsigned: a transcript says so" in rows[2],
    ]
    assert "no ledger here: read 1 transcript of 1 session that Claude Code keeps; they are not signed" in err


def test_a_sub_agent_is_named_with_its_task(desk: Desk, history: History) -> None:
    """By the id that its file has, and up to the human's prompt."""
    an_edit(history, "Write the second file", "Do\nit")
    _, out, _ = run_without_ledger(desk, "blame", "b.py:1")

    assert out.splitlines()[0].startswith("editor beef · ")
    assert '"Write the second file" ← claude-code ← tess: "Do…" (+1 line)' in out


def test_words_in_transcripts_are_named_as_the_transcripts_name_them(desk: Desk, history: History) -> None:
    """Ids of a ledger that is gone with the answer would lead nowhere."""
    an_edit(history, "Write the second file")
    _, out, _ = run_without_ledger(desk, "blame", "--text", "written by the sub-agent")
    header, row, *_, last = out.splitlines()

    assert ("editor beef", "c3") == tuple(row[header.index(name) :].split("  ")[0].rstrip() for name in ("agent", "id"))
    assert last.startswith("first: editor beef")


def test_the_answer_from_transcripts_says_where_it_is_from(desk: Desk, history: History) -> None:
    """For programs: sessions, hearsay, and how the link is known."""
    an_edit(history)
    answer = json.loads(run_without_ledger(desk, "blame", "b.py:1", "--json")[1])
    (maker,) = answer["makers"].values()

    assert ("transcripts", 1, True, "imported", "beef") == (
        answer["from"],
        answer["sessions"],
        maker["hearsay"],
        maker["chain"][0]["link"],
        maker["chain"][0]["subagent"],
    )
    assert "2026-03-01T09:00:" in maker["at"]


def test_sessions_that_do_not_name_the_file_are_not_read(desk: Desk, history: History) -> None:
    """The file is unexplained, and how many were read is said."""
    an_edit(history)
    (desk.directory / "other.py").write_text("x\n", encoding="utf-8")
    code, out, err = run_without_ledger(desk, "blame", "other.py")

    assert (1, "unexplained    1) x\n") == (code, out)
    assert (True, True) == ("read 0 transcripts of 1 session" in err, "no change of this file is recorded" in err)
    answer = json.loads(run_without_ledger(desk, "blame", "other.py", "--json")[1])
    assert ("transcripts", 0) == (answer["from"], answer["sessions"])


def test_hostile_transcripts_are_harmless(desk: Desk, history: History) -> None:
    """Escape sequences in prompts, tasks and names are spelled out."""
    an_edit(history, f"Write {HOSTILE}", f"Do {HOSTILE}")
    for arguments in (["b.py:1"], ["b.py:1", "--full"], ["b.py", "--all"], ["--text", "Write"]):
        _, out, err = run_without_ledger(desk, "blame", *arguments)
        assert not {"\x1b", "\x07", "\u202e"} & set(out + err)


def test_without_either_there_is_no_answer(desk: Desk) -> None:
    """And that both are missing is said."""
    code, out, err = run_without_ledger(desk, "blame", "a.py:2")

    assert (3, "", True) == (code, out, "there is no ledger here, and no coding agent has kept a session of" in err)


def test_a_ledger_that_was_named_must_be_there(desk: Desk, history: History) -> None:
    """Whoever names one does not mean transcripts."""
    an_edit(history)
    done = desk.run("blame", "a.py:2")

    assert (3, True) == (done.exit_code, "there is no ledger at" in done.stderr)


def test_transcripts_beside_a_ledger_are_pointed_at(desk: Desk, history: History) -> None:
    """If the ledger knows nothing about the file, there may be more to import."""
    an_edit(history)
    with desk.relay() as relay:
        relay.start("Fix it", by=ANA)

    assert "`batonpass import claude-code` records them" in desk.run("blame", "b.py:1").stderr


@pytest.mark.parametrize("command", ["trail", "why"])
def test_without_a_ledger_others_point_at_the_transcripts(desk: Desk, history: History, command: str) -> None:
    """They need one, and say how to get it; where Claude Code has kept nothing, there is nothing to point at."""
    code, _, without = run_without_ledger(desk, command, "last")
    an_edit(history)
    _, _, said = run_without_ledger(desk, command, "last")

    assert (3, [False, True]) == (code, ["`batonpass import claude-code`" in words for words in (without, said)])
