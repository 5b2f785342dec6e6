"""Agents, hearsay, candidates, git's authors, nobody and what is not to be trusted are told apart."""

from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from batonpass.accounts.blamed_lines.line_author import AuthorKind, author_of, authors_of
from batonpass.accounts.blamed_lines.line_rows import find_legend, list_lines
from batonpass.adapters.line_blame import blame
from tests.unit.accounts.shop import AFTER, ANA, BEFORE, Shop
from tests.unit.adapters.claude_code.histories import History
from tests.unit.cli.transcripts import a_bare_desk, an_edit

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a repository in which Ana committed a file, an editor changed a line, and nobody a later one."""
    monkeypatch.chdir(tmp_path)
    shop = Shop(tmp_path)
    shop.path().write_text(BEFORE, encoding="utf-8")
    shop.git("init", "-q")
    shop.git("add", "a.py")
    shop.git("commit", "-qm", "First")
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead)
    return shop


def test_an_agent_a_person_and_nobody(shop: Shop) -> None:
    """The agent by its run, the person by git, and nobody by that word."""
    shop.path().write_text(f"{AFTER}who wrote this?\n", encoding="utf-8")
    found = shop.blame()

    authors = [author for _, author in authors_of(found)]
    assert [AuthorKind.COMMITTED, AuthorKind.AGENT, AuthorKind.COMMITTED, AuthorKind.UNEXPLAINED] == [
        author.kind for author in authors
    ]
    assert ["Ana (git)", f"editor {str(found.lines[1].run)[-4:]}", "Ana (git)", "unexplained"] == [
        author.label for author in authors
    ]
    assert ["(git)"] == [sign for sign, _ in find_legend(found)]


def test_what_a_transcript_says_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody signed it."""
    desk = a_bare_desk(tmp_path, monkeypatch)
    an_edit(History(tmp_path, desk.directory))
    found = blame("a.py")

    kinds = [author.kind for _, author in authors_of(found)]
    labels = [author.label for _, author in authors_of(found)]
    assert [AuthorKind.UNEXPLAINED, AuthorKind.HEARSAY, AuthorKind.UNEXPLAINED] == kinds
    assert labels[1].startswith("~claude-code ")
    assert ["~"] == [sign for sign, _ in find_legend(found)]
    assert ["~editor beef"] == [author.label for _, author in authors_of(blame("b.py"))]


def test_a_line_of_somebody_is_perhaps(shop: Shop) -> None:
    """A question mark for one, a number for several."""
    found = shop.blame()
    line = replace(found.lines[1], run=None, known="candidates", or_nobody=True)
    other = replace(found.makers[line.calls[0]], call=None)
    two = replace(found, makers={**found.makers, "call_other": replace(other, run=replace(other.run, agent="fixer"))})

    one_label, two_label = (
        author_of(found, line).label,
        author_of(two, replace(line, calls=(*line.calls, "call_other"))).label,
    )
    assert (True, "one of 2?") == (one_label.startswith("editor ") and one_label.endswith("?"), two_label)


def test_an_edited_receipt_is_told_at_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not an agent's word any more."""
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(BEFORE, encoding="utf-8")
    shop = Shop(tmp_path, f"sqlite:///{tmp_path}/ledger.db")
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead)
    shop.relay.close()
    with apsw.Connection(f"{tmp_path}/ledger.db") as database:
        database.execute("UPDATE contents SET body = CAST('Whisper' AS BLOB) WHERE CAST(body AS TEXT) = 'Shout'")
    monkeypatch.setenv("BATONPASS_LEDGER", f"{tmp_path}/ledger.db")
    found = blame("a.py")

    assert (AuthorKind.BROKEN, True) == (
        author_of(found, found.lines[1]).kind,
        "!" == next(iter(find_legend(found)))[0],
    )
    assert author_of(found, found.lines[1]).label.startswith("!editor ")


def test_lines_below_one_another_repeat_their_author(shop: Shop) -> None:
    """So that a printer can make it fainter; the time is short where it is today's."""
    shop.path().write_text(AFTER + "a\tb\r\nmore\n", encoding="utf-8")
    rows = list(list_lines(shop.blame(), NOW))

    assert [False, False, False, False, True] == [row.is_repeated for row in rows]
    assert ("a   b", [1, 2, 3, 4, 5]) == (rows[3].text, [row.number for row in rows])
    day = rows[0].when
    assert (10, "-") == (len(day), day[4]) if datetime.now(UTC).date() != NOW.date() else (5, ":") == (len(day), day[2])
