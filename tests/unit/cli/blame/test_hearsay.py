"""What other tools left about lines: told as hearsay at every door, and never over a record."""

import json
from pathlib import Path

import pytest

from batonpass.adapters.editor.line_answers import AskedBuffer, LineAnswers
from batonpass.adapters.line_blame import blame
from batonpass.relay import Relay
from tests.attribution.repository import git
from tests.unit.cli.desk import Desk
from tests.unit.cli.transcripts import a_bare_desk, run_without_ledger

WHO = ("-c", "user.name=Ben", "-c", "user.email=ben@example.org")
HOSTILE = "cur\x1b[2Jsor\u202e\n[x](http://evil.example)"
NEARBY = "says so of a line with this number, before or after the commit"
FIVE = "".join(f"line_{number} = {number}\n" for number in range(1, 6))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a repository without a ledger, in which one commit is nobody's and the next is said to be an agent's."""
    desk = a_bare_desk(tmp_path, monkeypatch)
    git(desk.directory, "init", "--quiet", "--initial-branch=main")
    (desk.directory / "a.py").write_text("first\n", encoding="utf-8")
    commit(desk, "By hand")
    return desk


def commit(desk: Desk, message: str) -> str:
    """Commit everything and return the commit."""
    git(desk.directory, "add", "--all", "--", ".")
    git(desk.directory, *WHO, "commit", "--quiet", f"--message={message}")
    return git(desk.directory, "rev-parse", "HEAD").strip()


def noted(desk: Desk, commit: str, lines: str, *, tool: str = "cursor", path: str = "a.py") -> None:
    """Write a note as git-ai does."""
    key, session = "s_c9883b05a2487d", {"tool": tool, "id": "conv_1", "model": "gpt-6"}
    document = {
        "schema_version": "authorship/3.0.0",
        "base_commit_sha": commit,
        "prompts": {},
        "humans": {"h_31dce776f88375": {"author": "Dev <dev@example.com>"}},
        "sessions": {key: {"agent_id": session, "human_author": "dev@example.com"}},
    }
    rows = f"{path}\n  {key}::t_9f8e7d6c5b4a32 {lines}\n  h_31dce776f88375 5\n---\n{json.dumps(document)}"
    git(desk.directory, *WHO, "notes", "--ref=ai", "add", "--file=-", commit, given=rows.encode())


def traced(desk: Desk, revision: str, *ranges: tuple[int, int], tool: str = "codex") -> None:
    """Append a record as the reference program of Agent Trace does."""
    said = {"contributor": {"type": "ai"}, "ranges": [{"start_line": one, "end_line": two} for one, two in ranges]}
    document = {
        "version": "0.1.0",
        "id": "550e8400-e29b-41d4-a716-446655440000",
        "timestamp": "2026-01-23T14:30:00Z",
        "vcs": {"type": "git", "revision": revision},
        "tool": {"name": tool},
        "files": [{"path": "a.py", "conversations": [said]}],
    }
    (desk.directory / ".agent-trace").mkdir(exist_ok=True)
    with (desk.directory / ".agent-trace" / "traces.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(document) + "\n")


def five_lines(desk: Desk, message: str = "More") -> str:
    """Commit four lines after the first."""
    (desk.directory / "a.py").write_text("first\n" + FIVE.partition("\n")[2], encoding="utf-8")
    return commit(desk, message)


def test_a_note_of_git_ai_answers_for_a_line(desk: Desk) -> None:
    """Whom it names, by whose word, and that nobody signed it; the commit and its author stay."""
    noted(desk, five_lines(desk), "2-3")
    code, out, err = run_without_ledger(desk, "blame", "a.py:2")

    assert 0 == code
    rows = out.splitlines()
    assert "hearsay: cursor · gpt-6 · for dev@example.com · git-ai's note says so · unsigned" == rows[0]
    assert rows[1].startswith("unexplained: ")
    assert "by Ben <ben@example.org>" in rows[1]
    assert "no ledger here: these are claims of git and other tools, and nobody signed them" in err


def test_the_lines_that_it_does_not_name_stay_unexplained(desk: Desk) -> None:
    """In the whole file, for programs, in git's format and in sum."""
    last = five_lines(desk)
    noted(desk, last, "2-3")
    _, listing, legend = run_without_ledger(desk, "blame", "--no-pager", "a.py")
    answer = json.loads(run_without_ledger(desk, "blame", "a.py", "--json")[1])
    porcelain = run_without_ledger(desk, "blame", "--line-porcelain", "a.py")[1]
    summary = json.loads(run_without_ledger(desk, "git", "summary", "HEAD", "--json")[1])

    assert ["Ben", "~cursor", "~cursor", "Ben", "Ben"] == [row.split()[0] for row in listing.splitlines()]
    assert "~ hearsay: an unsigned source says so" in legend
    assert ["unexplained"] * 5 == [line["known"] for line in answer["lines"]]
    assert [[], ["cursor"], ["cursor"], [], ["Dev <dev@example.com>"]] == [
        [one["by"] for one in line["said"]] for line in answer["lines"]
    ]
    assert ["Ben", "cursor (hearsay)", "cursor (hearsay)", "Ben", "Ben"] == [
        row.removeprefix("author ") for row in porcelain.splitlines() if row.startswith("author ")
    ]
    assert f"batonpass-commit {last}" in porcelain
    assert {"by_agents": 0, "hearsay": 2, "verified": 0, "approved": 0, "unexplained": 2}.items() <= summary.items()
    assert ["hearsay", "cursor", "dev@example.com", 2, []] == [
        summary["authors"][0][name] for name in ("kind", "name", "for", "lines", "runs")
    ]


def test_an_editor_is_told_the_same(desk: Desk) -> None:
    """By the label of a block and by its card."""
    noted(desk, five_lines(desk), "2-3")
    asked = AskedBuffer(uri="file:///a.py", path=desk.directory / "a.py", buffer=None)
    blocks = LineAnswers(None).authors(asked)["blocks"]
    card = LineAnswers(None).hover(asked, 1, markdown=True)

    assert [("committed", "Ben (git)"), ("hearsay", "~cursor")] == [(one["kind"], one["label"]) for one in blocks[:2]]
    assert card is not None
    assert card.startswith("**\\~cursor** · hearsay: an unsigned source says that an agent wrote it")


def test_an_editor_learns_of_new_notes(desk: Desk) -> None:
    """They change neither the file nor the commit."""
    last = five_lines(desk, "Mine\n\nCo-Authored-By: Claude <noreply@anthropic.com>")
    answers = LineAnswers(None)
    asked = AskedBuffer(uri="file:///a.py", path=desk.directory / "a.py", buffer=None)
    before = answers.authors(asked)["blocks"][1]["label"]
    noted(desk, last, "2-5")

    assert ("Claude?", "~cursor") == (before, answers.authors(asked)["blocks"][1]["label"])


def test_a_trailer_is_about_the_commit_and_names_nobody_for_certain(desk: Desk) -> None:
    """In git's format the author stays whom git names."""
    five_lines(desk, "Mine\n\nCo-Authored-By: Claude <noreply@anthropic.com>\nAssisted-by: Claude:opus-5")
    _, out, _ = run_without_ledger(desk, "blame", "a.py:2")
    _, listing, _ = run_without_ledger(desk, "blame", "--no-pager", "a.py")
    porcelain = run_without_ledger(desk, "blame", "--line-porcelain", "a.py:2")[1]
    summary = json.loads(run_without_ledger(desk, "git", "summary", "HEAD", "--json")[1])
    hunks = run_without_ledger(desk, "blame", "HEAD")[1]

    assert [
        "perhaps Claude · a trailer Co-Authored-By says so of the commit as a whole · unsigned",
        "perhaps Claude · opus-5 · a trailer Assisted-by says so of the commit as a whole · unsigned",
    ] == out.splitlines()[:2]
    assert ["Ben", *["Claude?"] * 4] == [row.split()[0] for row in listing.splitlines()]
    assert "author Ben\n" in porcelain
    assert "batonpass-author perhaps\n" in porcelain
    assert (4, 0, 0) == (summary["perhaps"], summary["hearsay"], summary["by_agents"])
    assert "unexplained, perhaps Claude" in hunks


def test_traces_answer_for_their_revision_and_doubtfully_for_the_commit_after_it(desk: Desk) -> None:
    """The reference program names the commit that an edit was made on."""
    first = git(desk.directory, "rev-parse", "HEAD").strip()
    last = five_lines(desk)
    traced(desk, first, (2, 5), tool="early")
    traced(desk, last, (3, 3))
    rows = [run_without_ledger(desk, "blame", f"a.py:{number}")[1].splitlines()[0] for number in (2, 3)]

    assert [
        f"perhaps early · a record of Agent Trace {NEARBY} · unsigned",
        "hearsay: codex · a record of Agent Trace says so · unsigned",
    ] == rows


def test_two_tools_that_disagree_are_both_told(desk: Desk) -> None:
    """Then it is unknown whose line it is."""
    last = five_lines(desk)
    noted(desk, last, "2-3")
    traced(desk, last, (3, 3))
    listing = run_without_ledger(desk, "blame", "--no-pager", "a.py")[1].splitlines()

    assert ["~cursor", "one of 2?"] == [row.partition("  ")[0] for row in listing[1:3]]


def test_a_checkpoint_of_entire_names_its_agent_and_its_files(desk: Desk) -> None:
    """What its metadata says; a file that it did not touch is not its."""
    name = "a3b2c4d5e6f7"
    metadata = json.dumps({"checkpoint_id": name, "agent": "Gemini CLI", "files_touched": ["a.py"]}).encode()
    blob = git(desk.directory, "hash-object", "-w", "--stdin", given=metadata).strip()
    index = {"GIT_INDEX_FILE": str(desk.directory / ".git" / "other")}
    place = f"100644,{blob},{name[:2]}/{name[2:]}/0/metadata.json"
    git(desk.directory, "update-index", "--add", "--cacheinfo", place, more=index)
    tree = git(desk.directory, "write-tree", more=index).strip()
    made = git(desk.directory, *WHO, "commit-tree", tree, "-m", "checkpoint").strip()
    git(desk.directory, "update-ref", "refs/heads/entire/checkpoints/v1", made)
    (desk.directory / "b.py").write_text("second\n", encoding="utf-8")
    five_lines(desk, f"Mine\n\nEntire-Checkpoint: {name}")
    _, out, _ = run_without_ledger(desk, "blame", "a.py:2")

    assert (
        "perhaps Gemini CLI · a checkpoint of Entire says so of the commit as a whole · unsigned"
        == (out.splitlines()[0])
    )
    assert 0 != run_without_ledger(desk, "blame", "b.py:1")[0]


def test_a_receipt_goes_before_all_of_them(desk: Desk, tmp_path: Path) -> None:
    """A forged note about a recorded line changes nothing, and what is not recorded is still hearsay."""

    def write_file(path: str, text: str) -> None:
        Path(path).write_text(text, encoding="utf-8")

    with Relay.open(f"sqlite:///{tmp_path}/ledger.db", work_tree=desk.directory) as relay:
        with relay.start("Add", by="user:ana") as lead, lead.hand_off("editor", "Add a line") as editor:
            editor.call(write_file, "a.py", "first\nadded\n")
        git(desk.directory, "add", "a.py")
        last = commit(desk, "Recorded\n\nCo-Authored-By: Claude <noreply@anthropic.com>")
        noted(desk, last, "1-5", tool="mallory")
        traced(desk, last, (1, 2), tool="mallory")
        found = blame(desk.directory / "a.py", relay=relay)

    assert ([(), ()], [None, editor.id]) == ([line.said for line in found.lines], [line.run for line in found.lines])


def test_a_shallow_clone_blames_no_trailer_for_what_is_older(desk: Desk, tmp_path: Path) -> None:
    """Its oldest commit stands for all that was before it."""
    five_lines(desk, "Mine\n\nCo-Authored-By: Claude <noreply@anthropic.com>")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{desk.directory}", "clone")

    assert 0 != run_without_ledger(desk, "blame", str(tmp_path / "clone" / "a.py"))[0]


@pytest.mark.parametrize("note", [b"x" * 10_000_000, b"---\n" + b"[" * 200_000, b"a.py\n  s_1 9-1\n---\n{}"])
def test_a_note_that_is_hostile_is_refused_and_told(desk: Desk, note: bytes) -> None:
    """The answer is what git says, and a remark."""
    last = five_lines(desk, "Mine\n\nCo-Authored-By: Claude <noreply@anthropic.com>")
    blob = git(desk.directory, "hash-object", "-w", "--stdin", given=note).strip()
    git(desk.directory, *WHO, "notes", "--ref=ai", "add", f"--reuse-message={blob}", last)
    code, out, err = run_without_ledger(desk, "blame", "--no-pager", "a.py")

    assert (0, 0) == (code, out.count("cursor"))
    assert "git-ai" in err
    assert "not read" in err


def test_words_of_others_are_inert_at_every_door(desk: Desk) -> None:
    """Neither a terminal nor an editor obeys them."""
    noted(desk, five_lines(desk), "2-3", tool=HOSTILE)
    doors = [
        run_without_ledger(desk, "blame", *words)[1]
        for words in (["a.py:2"], ["--no-pager", "a.py"], ["--porcelain", "a.py"], ["HEAD"])
    ]
    doors.append(run_without_ledger(desk, "git", "summary", "HEAD", "--md")[1])
    asked = AskedBuffer(uri="file:///a.py", path=desk.directory / "a.py", buffer=None)
    card = LineAnswers(None).hover(asked, 1, markdown=True)

    assert all("\x1b" not in told and "\u202e" not in told for told in doors)
    assert "\\[x\\]" in (card or "")
    assert "`~cur" in doors[-1]
