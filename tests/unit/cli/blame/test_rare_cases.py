"""`batonpass blame` where something is not as usual: empty, gone, renamed, new, asked for too much."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from batonpass.adapters.line_blame import blame
from batonpass.cli.nouns import cli
from batonpass.errors import ForeignLedgerError
from tests.attribution.repository import git
from tests.unit.accounts.shop import AFTER, ANA, BEFORE, Shop, delete_file, write_file
from tests.unit.cli.desk import Desk
from tests.unit.cli.transcripts import a_bare_desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk whose editor changed a.py, wrote an empty file, and wrote and deleted another."""
    desk = a_bare_desk(tmp_path, monkeypatch)
    with desk.relay() as relay, relay.start("Fix it", by=ANA) as lead:
        with lead.hand_off("editor", "Shout", may=["write:**"]) as editor:
            editor.call(write_file, "a.py", AFTER)
            editor.call(write_file, "empty", "")
            editor.call(write_file, "gone.py", "here\n")
            editor.call(delete_file, "gone.py")
        with lead.hand_off("typist", "Type") as typist:
            typist.call(write_file, "a.py", AFTER)
    return desk


def test_an_empty_file_is_said_to_be_empty(desk: Desk) -> None:
    """And whoever wrote it is named; a line of it is refused."""
    said = desk.words("blame", "empty")
    refused = desk.run("blame", "empty:1")

    assert (True, "empty is empty") == (said.startswith("editor "), said.splitlines()[-1])
    assert (2, True) == (refused.exit_code, "'empty' is empty; there is no line 1" in refused.stderr)


def test_an_empty_file_of_nobody_is_a_no(desk: Desk) -> None:
    """It is empty, and no recorded change made it so."""
    (desk.directory / "nobody").touch()
    done = desk.run("blame", "nobody")

    assert (1, "nobody is empty; no recorded change produced its current content\n") == (done.exit_code, done.stdout)


def test_a_deletion_is_called_one(desk: Desk) -> None:
    """By the call, and with the line that was asked for."""
    assert "· deleted gone.py ·" in desk.words("blame", "gone.py")
    assert "gone.py:7" == desk.answer("blame", "gone.py:7")["asked"]


def test_a_line_far_beyond_the_end_is_refused_as_any_other(desk: Desk) -> None:
    """It says how many there are."""
    done = desk.run("blame", "a.py:9999999999999999999")

    assert (2, True) == (done.exit_code, "'a.py' has 3 lines" in done.stderr)


def test_somebody_named_for_one_line_is_a_yes(desk: Desk) -> None:
    """Of several lines one is enough; alone, a line of nobody is a no."""
    assert [0, 1, 0] == [desk.run("blame", asked).exit_code for asked in ("a.py:1-3", "a.py:1", "a.py")]


def test_whole_ids_in_the_listing(desk: Desk) -> None:
    """As everywhere with --full."""
    row = desk.words("blame", "a.py", "--all", "--full").splitlines()[1]

    assert ("editor", desk.answer("blame", "a.py:2")["lines"][0]["run"]) == tuple(row.split()[:2])


def test_a_question_mark_is_explained(desk: Desk) -> None:
    """Only where there is one."""
    certain = desk.run("blame", "a.py", "--all")
    (desk.directory / "a.py").write_text(f"{AFTER}the fourth line\n", encoding="utf-8")
    perhaps = desk.run("blame", "a.py", "--all")

    assert ([False, False], [True, True]) == (
        ["?" in certain.stdout, "? perhaps" in certain.stderr],
        ["?" in perhaps.stdout, "? perhaps" in perhaps.stderr],
    )


def test_no_line_ends_in_a_colon_with_nothing_after_it(desk: Desk) -> None:
    """Candidates are listed below only if a line is asked for alone."""
    (desk.directory / "a.py").write_text(f"{AFTER}the fourth line\n", encoding="utf-8")

    assert [True, False] == [
        any(row.endswith(":") for row in desk.words("blame", asked).splitlines()) for asked in ("a.py:2", "a.py")
    ]


def test_the_old_name_of_a_file_leads_to_the_new_one(desk: Desk) -> None:
    """If git knows it, for recorded and for other files."""
    shop = Shop(desk.directory)
    (desk.directory / "b.py").write_text(BEFORE * 3, encoding="utf-8")
    shop.git("init", "-q")
    shop.git("add", "a.py", "b.py")
    shop.git("commit", "-qm", "First")
    for old, new in (("a.py", "c.py"), ("b.py", "d.py"), ("d.py", "e.py")):
        shop.git("mv", old, new)
        shop.git("commit", "-qm", "Rename")
    known, unknown = desk.run("blame", "a.py"), desk.run("blame", "b.py")

    assert (1, True) == (known.exit_code, "it was renamed to c.py" in known.stdout)
    assert (2, True) == (unknown.exit_code, "there is no 'b.py'; it was renamed to 'e.py'" in unknown.stderr)


def test_a_new_file_is_not_committed_yet(desk: Desk) -> None:
    """It has no other name under which it could be."""
    shop = Shop(desk.directory)
    shop.git("init", "-q")
    shop.git("commit", "-qm", "First", "--allow-empty")

    assert ["the file is not committed yet"] == desk.answer("blame", "a.py")["notes"]


def test_approval_is_told_in_the_same_words_everywhere(desk: Desk) -> None:
    """None was needed, whether something was granted or not: no rule asks for one."""
    shown = [desk.words("handoff", "show", agent) for agent in ("editor", "typist")]
    told = [desk.words("why", desk.answer("handoff", "show", agent)["id"]) for agent in ("editor", "typist")]

    assert ["none needed", "none needed"] == [words.partition("approval    ")[2].partition("\n")[0] for words in shown]
    assert [True, True] == ["approval: none needed" in told[0], "approval: none needed" in told[1]]


def test_a_ledger_that_is_committed_is_not_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither lines, runs nor words are answered from it, unless somebody names it; nor by the library."""
    monkeypatch.chdir(desk.directory)
    monkeypatch.delenv("BATONPASS_LEDGER", raising=False)
    for words in (["init", "-q"], ["add", "-f", ".batonpass/ledger.db", "a.py"]):
        git(desk.directory, *words)
    before = desk.ledger.read_bytes()
    asked = (["a.py:2"], ["a.py"], ["a.py", "--porcelain"], ["--text", "Shout"], ["editor"])
    refused = [CliRunner().invoke(cli, ["blame", *words]) for words in asked]

    assert [3] * len(asked) == [done.exit_code for done in refused]
    assert all("is committed in the repository" in done.stderr for done in refused)
    assert before == desk.ledger.read_bytes()
    assert 0 == desk.run("blame", "a.py:2").exit_code
    with pytest.raises(ForeignLedgerError):
        blame("a.py", 2)
