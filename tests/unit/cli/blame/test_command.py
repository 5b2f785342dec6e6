"""`batonpass blame`: what people and programs are told, and what is wrong in one sentence."""

from pathlib import Path

import apsw
import pytest

from batonpass.cli.blame.command import parse_place
from tests.unit.accounts.shop import AFTER, ANA, NEW, write_file
from tests.unit.cli.desk import Desk
from tests.unit.cli.transcripts import a_bare_desk


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk with one file and without a ledger, and a home without transcripts."""
    return a_bare_desk(tmp_path, monkeypatch)


@pytest.fixture
def desk(bare: Desk) -> Desk:
    """Return a desk whose ledger knows one change: the second line of a.py, by an editor."""
    with bare.relay() as relay:
        lead = relay.start("Fix it", by=ANA)
        with lead.hand_off("editor", "Shout", may=["write:**"]) as editor:
            editor.call(write_file, "a.py", AFTER)
    return bare


def test_one_line_is_three_lines(desk: Desk) -> None:
    """Who and for whom, by whose leave, by which call."""
    rows = desk.words("blame", "a.py:2").splitlines()

    assert (3, True, True) == (
        len(rows),
        rows[0].startswith("editor "),
        rows[0].endswith('"Shout" ← lead ← ana: "Fix it"'),
    )
    assert "unverified · may write:** (granted by lead) · approval: none needed" == rows[1]


def test_a_whole_file_is_a_listing(desk: Desk) -> None:
    """Each line with its author, as `git blame` shows one; `--all` says the same, and takes a range."""
    rows = desk.words("blame", "a.py").splitlines()

    assert ["unexplained", "editor", "unexplained"] == [row.split()[0] for row in rows]
    assert [f"{number}) {line}" for number, line in enumerate(AFTER.splitlines(), 1)] == [
        row[row.index(f"{number})") :] for number, row in enumerate(rows, 1)
    ]
    assert rows == desk.words("blame", "a.py", "--all").splitlines()
    assert [rows[1]] == desk.words("blame", "a.py:2", "--all").splitlines()


def test_programs_get_everything(desk: Desk) -> None:
    """Lines name calls, and each call is told once, with whole ids."""
    answer = desk.answer("blame", "a.py")
    (call,) = answer["lines"][1]["calls"]
    maker = answer["makers"][call]

    assert ["unexplained", "recorded", "unexplained"] == [line["known"] for line in answer["lines"]]
    assert ("ledger", "a.py", 3, 1) == tuple(
        answer[name] for name in ("from", "path", "total_lines", "recorded_changes")
    )
    assert ("write_file", "editor", "Shout", "Fix it", ["write:**"], "lead", "unverified", False, True) == (
        maker["tool"],
        maker["agent"],
        maker["task"]["text"],
        maker["said"]["text"],
        maker["grant"],
        maker["granted_by"],
        maker["standing"],
        maker["hearsay"],
        maker["proof"]["holds"],
    )
    assert [[NEW]] == [hunk["added"] for hunk in maker["changes"][0]["hunks"]]
    assert [("editor", "lead", "certain"), ("lead", None, None)] == [
        (hop["agent"], hop["from"], hop["link"]) for hop in maker["chain"]
    ]


SHAPE = "asked path from sessions gone total_lines recorded_changes lines places made_by makers notes ways"
LINE = "line text known run calls unexplained_since or_nobody reformatted_by said commit"
MAKER = (
    "call tool in_doubt command at receipt run agent attempt principal mode task chain said said_at grant granted_by "
    "permits approval handoff_approvals credential work label untrusted standing judgements changes hearsay source "
    "proof noted"
)


def test_the_answer_for_programs_keeps_its_shape(desk: Desk) -> None:
    """Programs rely on these names."""
    answer = desk.answer("blame", "a.py:2")
    (maker,) = answer["makers"].values()

    assert [SHAPE, LINE, MAKER] == [" ".join(found) for found in (answer, answer["lines"][0], maker)]


def test_an_unexplained_line_is_a_no(desk: Desk) -> None:
    """Scripts can tell by the exit code."""
    assert [0, 1, 0] == [desk.run("blame", f"a.py:{number}").exit_code for number in (2, 1, "1-3")]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["a.py:9"], 2, "'a.py' has 3 lines; there is no line 9", id="no such line"),
        pytest.param(["a.py:3-2"], 2, "3-2 is not a line or a range", id="no range"),
        pytest.param(["nothing.py"], 2, "there is no 'nothing.py'", id="no such file"),
        pytest.param(["."], 2, "is a directory; name a file", id="a directory"),
        pytest.param([], 2, "give one of TARGET, --effect", id="nothing asked"),
        pytest.param(["a.py", "--text", "x"], 2, "give one of TARGET", id="two questions"),
        pytest.param(["--all", "--text", "x"], 2, "--all needs PATH", id="all of no file"),
        pytest.param(["--porcelain", "--text", "x"], 2, "--porcelain needs PATH", id="porcelain of no file"),
        pytest.param(["--porcelain", "editor"], 2, "--porcelain needs a file", id="porcelain of a run"),
        pytest.param(["--digest", "abc"], 2, "is not 64", id="no digest"),
        pytest.param(["--text", " "], 2, "is empty", id="no words"),
        pytest.param(["--artifact", "nothing"], 1, "no artifact 'nothing'", id="no such artifact"),
        pytest.param(["--effect", "zzzz"], 1, "no call, receipt or effect on 'zzzz'", id="no such call"),
    ],
)
def test_what_is_wrong_is_one_sentence(desk: Desk, arguments: list[str], code: int, said: str) -> None:
    """And the exit code says what kind of wrong it is."""
    done = desk.run("blame", *arguments)

    assert (code, True) == (done.exit_code, said in done.stderr), done.stderr


def test_words_and_digests_are_listed(desk: Desk) -> None:
    """When, who, what, and where; words that are nowhere are a no."""
    rows = desk.words("blame", "--text", "Shout").splitlines()

    assert ["when", "agent", "what", "id", "where"] == rows[0].split()
    assert "task" in rows[1]
    assert rows[2].startswith("first: lead ")
    done = desk.run("blame", "--text", "nowhere")
    assert (1, 'nothing recorded here has "nowhere"\n') == (done.exit_code, done.stdout)


def test_a_tampered_answer_is_a_no(desk: Desk) -> None:
    """It is shown, and said not to be trusted."""
    connection = apsw.Connection(str(desk.ledger))
    connection.execute("UPDATE receipts SET cosignature = zeroblob(64) WHERE kind = 'tool.completed'")
    connection.close()
    done = desk.run("blame", "a.py:2")

    assert (1, True) == (done.exit_code, "NOT TO BE TRUSTED: a signature does not match" in done.stdout)


def test_a_file_whose_name_looks_like_a_line(desk: Desk) -> None:
    """If there is such a file, it is meant."""
    (desk.directory / "a.py:2").write_text("x\n", encoding="utf-8")

    assert (Path("a.py:2"), None) == parse_place("a.py:2")
    assert Path("b.py") == parse_place("b.py:1-2")[0]
