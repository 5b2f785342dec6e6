"""Real repositories: what git did to a file is read from git, and a hostile repository starts nothing."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from batonpass.attribution.changes.change import Certainty, FileChange, digest_of, lines_of
from batonpass.attribution.changes.line_diff import hunks_between
from batonpass.attribution.git.file_git import GitSilentError, Repository
from batonpass.attribution.git.file_history import read_history
from batonpass.attribution.lines.attribution import Attribution, attribute
from batonpass.model.base.ids import new_call_id
from tests.attribution.repository import ENVIRONMENT, git

TOTAL = "total = sum_of_all(invoice)\n"
TAXES = "taxes = rate_for(country) * total\n"
NAMES = "names = sorted(customer_names)\n"
PRINT = "print_the_invoice(total, taxes)\n"
EMAIL = "send_by_email(invoice, names)\n"
BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)


class Desk:
    """A work tree in which calls are recorded and a person commits."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = BEGAN
        self.changes: list[FileChange] = []
        root.mkdir()
        git(root, "init", "--quiet", "--initial-branch=main")

    def records(self, run: str, text: str, path: str = "invoice.py") -> None:
        """Let a call of a run write a file."""
        self.now += timedelta(minutes=1)
        file = self.root / path
        before = file.read_bytes() if file.exists() else None
        file.write_text(text, encoding="utf-8")
        self.changes.append(
            FileChange(
                call=f"call_{len(self.changes) + 1}",
                run=run,
                at=self.now,
                path=path,
                before=None if before is None else digest_of(before),
                after=digest_of(text.encode()),
                hunks=hunks_between(lines_of((before or b"").decode()), lines_of(text)),
            )
        )

    def commits(self, message: str = "a commit") -> None:
        """Commit everything."""
        git(self.root, "add", "--all")
        self.git("commit", "--quiet", f"--message={message}")

    def git(self, *arguments: str) -> str:
        """Run git as a person does, a minute later."""
        self.now += timedelta(minutes=1)
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        at = {"GIT_AUTHOR_DATE": self.now.isoformat(), "GIT_COMMITTER_DATE": self.now.isoformat()}
        return git(self.root, *who, *arguments, more=at)

    def found(self, path: str = "invoice.py") -> tuple[Attribution, ...]:
        """Return who wrote each line of a file."""
        data = (self.root / path).read_bytes()
        history = read_history(self.repository(), path, data, self.changes)
        return attribute(path, data, self.changes, history)

    def runs(self, path: str = "invoice.py") -> list[str | None]:
        """Return the run that wrote each line, where that is certain."""
        return [one.run for one in self.found(path)]

    def repository(self) -> Repository:
        """Return what is asked."""
        return Repository(self.root, ENVIRONMENT)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a work tree with a file of run_a, to which run_b added on a branch while run_c did on the main one."""
    desk = Desk(tmp_path / "work")
    desk.records("run_a", TOTAL + TAXES + PRINT)
    desk.commits()
    desk.git("checkout", "--quiet", "-b", "topic")
    desk.records("run_b", TOTAL + TAXES + PRINT + EMAIL)
    desk.commits("more\n\nBatonpass-Run: run_b")
    desk.git("checkout", "--quiet", "main")
    desk.records("run_c", NAMES + TOTAL + TAXES + PRINT)
    desk.commits()
    return desk


def rebase(desk: Desk) -> None:
    desk.git("checkout", "--quiet", "topic")
    desk.git("rebase", "--quiet", "main")


def squash(desk: Desk) -> None:
    desk.git("merge", "--quiet", "--squash", "topic")
    desk.git("commit", "--quiet", "--message=all of it")


def merge(desk: Desk) -> None:
    desk.git("merge", "--quiet", "--no-edit", "topic")


def cherry_pick(desk: Desk) -> None:
    desk.git("cherry-pick", "topic")


def amend(desk: Desk) -> None:
    merge(desk)
    desk.git("commit", "--quiet", "--amend", "--message=other words")


@pytest.mark.parametrize("act", [rebase, squash, merge, cherry_pick, amend])
def test_what_git_does_leaves_lines_to_whom_they_are(desk: Desk, act: Callable[[Desk], None]) -> None:
    """Rebased, squashed, merged, picked or amended: the same runs wrote the same lines."""
    act(desk)
    desk.git("branch", "--quiet", "-D", "topic" if act is not rebase else "main")

    assert ["run_c", "run_a", "run_a", "run_a", "run_b"] == desk.runs()


SHORT = "k = 5\n"
SHORTER = "}\n"


@pytest.fixture
def little(tmp_path: Path) -> Desk:
    """Return a work tree with a person's file, to which run_b added next to nothing on a branch."""
    desk = Desk(tmp_path / "work")
    (desk.root / "invoice.py").write_text(TOTAL + TAXES + PRINT, encoding="utf-8")
    desk.commits()
    desk.git("checkout", "--quiet", "-b", "topic")
    desk.records("run_b", TOTAL + SHORT + TAXES + PRINT)
    desk.commits("one")
    desk.records("run_b", TOTAL + SHORT + TAXES + PRINT + SHORTER)
    desk.commits("two")
    desk.git("checkout", "--quiet", "main")
    (desk.root / "invoice.py").write_text(NAMES + TOTAL + TAXES + PRINT, encoding="utf-8")
    desk.commits("a person went on")
    return desk


def rebase_and_fix_up(desk: Desk) -> None:
    desk.git("checkout", "--quiet", "topic")
    desk.git("commit", "--quiet", "--allow-empty", "--message=fixup! one")
    more = ("-c", "sequence.editor=true", "-c", "core.editor=true")
    desk.git(*more, "rebase", "--quiet", "--interactive", "--autosquash", "main")


def squash_said(desk: Desk) -> None:
    desk.git("merge", "--quiet", "--squash", "topic")
    desk.git("-c", "core.editor=true", "commit", "--quiet", "--no-edit")


def pick_both(desk: Desk) -> None:
    desk.git("cherry-pick", "topic~1", "topic")


def pick_and_say_so(desk: Desk) -> None:
    desk.git("cherry-pick", "-x", "topic~1", "topic")


def revert_twice(desk: Desk) -> None:
    desk.git("cherry-pick", "topic~1", "topic")
    desk.git("revert", "--no-edit", "HEAD~1")
    desk.git("revert", "--no-edit", "HEAD")


@pytest.mark.parametrize(
    "act", [rebase, rebase_and_fix_up, squash, squash_said, merge, pick_both, pick_and_say_so, revert_twice]
)
def test_lines_that_say_next_to_nothing_are_followed_by_what_was_rewritten(
    little: Desk, act: Callable[[Desk], None]
) -> None:
    """A short line has no text to be known by: what is known is which commit became which."""
    act(little)
    little.git("branch", "--quiet", "-D", "topic" if act not in {rebase, rebase_and_fix_up} else "main")

    assert [None, None, "run_b", None, None, "run_b"] == little.runs()


def test_work_that_was_stashed_is_whose_it_was(little: Desk) -> None:
    """Put away and taken out again on another commit, short lines too."""
    little.records("run_c", NAMES + TOTAL + TAXES + SHORT + PRINT)
    little.git("stash", "--quiet")
    (little.root / "invoice.py").write_text(EMAIL + NAMES + TOTAL + TAXES + PRINT, encoding="utf-8")
    little.commits()
    little.git("stash", "pop", "--quiet")

    assert [None, None, None, None, "run_c", None] == little.runs()
    little.commits()
    assert [None, None, None, None, "run_c", None] == little.runs()


def test_so_little_that_anybody_may_have_done_it_again_is_left_open(little: Desk) -> None:
    """Nothing says that a person's brace in the same place is the one of the branch, and nothing that it is not."""
    little.git("checkout", "--quiet", "-b", "other", "main")
    little.records("run_d", NAMES + TOTAL + TAXES + PRINT + SHORTER)
    little.commits("on a branch")
    little.git("checkout", "--quiet", "main")
    (little.root / "invoice.py").write_text(EMAIL + NAMES + TOTAL + TAXES + PRINT, encoding="utf-8")
    little.commits("a person")
    (little.root / "invoice.py").write_text(EMAIL + NAMES + TOTAL + TAXES + PRINT + SHORTER, encoding="utf-8")
    little.commits("the same person")

    last = little.found()[-1]

    assert (None, ["run_d"], True) == (last.run, [one.run for one in last.candidates], last.or_nobody)


@pytest.mark.parametrize("line", [EMAIL, SHORT])
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_persons_copy_of_a_line_is_not_the_agents(little: Desk, line: str, *, is_committed: bool) -> None:
    """What is still where an agent wrote it did not go anywhere: who typed it once more is not recorded."""
    little.records("run_c", NAMES + TOTAL + line + TAXES + PRINT)
    little.commits()
    (little.root / "invoice.py").write_text(NAMES + TOTAL + line + TAXES + PRINT + line, encoding="utf-8")
    if is_committed:
        little.commits()

    found = little.found()

    assert [None, None, "run_c", None, None, None] == [one.run for one in found]
    assert () == found[-1].candidates


def test_what_a_call_brought_by_git_is_not_what_it_wrote(little: Desk) -> None:
    """An agent that merges has written neither what came nor what was there; what it adds itself is in doubt."""
    before = (little.root / "invoice.py").read_text(encoding="utf-8")
    little.git("merge", "--quiet", "--no-edit", "topic")
    merged = (little.root / "invoice.py").read_text(encoding="utf-8")
    (little.root / "invoice.py").write_text(before, encoding="utf-8")
    little.records("run_c", merged)
    little.changes[-1] = replace(little.changes[-1], certainty=Certainty.BROUGHT)

    assert [None, None, "run_b", None, None, "run_b"] == little.runs()


def test_a_commit_in_the_middle_of_a_long_call_holds_what_the_call_wrote(little: Desk) -> None:
    """`sed`, `commit`, `push`: the change is recorded when all of it is over, and is in the commit nevertheless."""
    began = little.now + timedelta(minutes=1)
    little.records("run_c", NAMES + TOTAL + TAXES + EMAIL + PRINT)
    little.commits("in one command")
    little.changes[-1] = replace(little.changes[-1], call=new_call_id(began), at=little.now + timedelta(seconds=30))
    little.now += timedelta(minutes=2)
    (little.root / "invoice.py").write_text(NAMES + TOTAL + TAXES + EMAIL + "x = 1\n" + PRINT, encoding="utf-8")
    little.commits("a person")

    assert [None, None, None, "run_c", None, None] == little.runs()


def test_each_line_has_the_commit_that_brought_it(desk: Desk) -> None:
    """Beside the run stands what git blames; a line that is not committed has none."""
    head = desk.git("rev-parse", "HEAD").strip()
    first = desk.git("rev-parse", "HEAD~1").strip()
    desk.records("run_d", NAMES + TOTAL + TAXES + PRINT + EMAIL)

    commits = [one.commit for one in desk.found()]

    assert [head, first, first, first, None] == [commit and commit.id for commit in commits]
    assert "Ada <ada@example.org>" == (commits[0] and commits[0].author)


def test_a_renamed_file_is_followed_to_its_old_name(desk: Desk) -> None:
    """Git knows what the file was called when it was written."""
    desk.git("mv", "invoice.py", "bill.py")
    desk.commits()

    assert ["run_c", "run_a", "run_a", "run_a"] == desk.runs("bill.py")


def test_a_name_with_anything_in_it_is_read(tmp_path: Path) -> None:
    """A path is a path: no pattern, no option, whatever characters it has."""
    desk = Desk(tmp_path / "work")
    for path in ("--help", "*", "a\nb", 'quo"te', ":(top)x", "ä"):
        desk.records("run_a", TOTAL + TAXES, path)
        desk.commits()
        desk.records("run_b", TOTAL + TAXES + PRINT, path)

        assert ["run_a", "run_a", "run_b"] == desk.runs(path)


def test_a_file_that_is_not_committed_is_answered_from_what_was_recorded(desk: Desk) -> None:
    """Git says that it does not know it, and recorded changes are enough."""
    desk.records("run_d", EMAIL, "new.py")
    history = read_history(desk.repository(), "new.py", EMAIL.encode(), desk.changes)

    assert (["run_d"], ("the file is not committed yet",)) == (desk.runs("new.py"), history.notes)


def test_before_the_first_commit_there_is_no_history(tmp_path: Path) -> None:
    """A repository without commits says so."""
    desk = Desk(tmp_path / "work")
    desk.records("run_a", TOTAL)
    history = read_history(desk.repository(), "invoice.py", TOTAL.encode(), desk.changes)

    assert (["run_a"], ("the repository has no commit yet",)) == (desk.runs(), history.notes)


def test_where_nothing_was_recorded_git_is_asked_for_its_own_answer_only(desk: Desk) -> None:
    """Without recorded changes no revision is read, and each line still has its commit."""
    data = (desk.root / "invoice.py").read_bytes()
    history = read_history(desk.repository(), "invoice.py", data, [])

    assert ([], 4) == (list(history.revisions), len([one for one in history.blamed if one]))


def test_a_folder_without_a_repository_is_no_error(tmp_path: Path) -> None:
    """The history is empty, and its note says why."""
    history = read_history(Repository(tmp_path, ENVIRONMENT), "a", b"", [])

    # Behind these words git says how far it has looked: up to the root, or to where a file system ends.
    assert ["not a git repository"] == [note.partition(" (")[0] for note in history.notes]


def test_without_git_the_history_says_so(tmp_path: Path) -> None:
    """A machine on which git is not installed has an answer nevertheless."""
    history = read_history(Repository(tmp_path, {"PATH": str(tmp_path)}), "a", b"", [])

    assert ("git is not installed here",) == history.notes


def test_git_that_does_not_answer_is_not_waited_for(desk: Desk) -> None:
    """There is a time limit to each question."""
    hasty = Repository(desk.root, ENVIRONMENT, answer_within=timedelta(microseconds=1))

    assert ("git gave no answer within 1e-06 s",) == read_history(hasty, "invoice.py", b"", []).notes


def test_a_name_that_cannot_be_passed_on_is_no_error(desk: Desk) -> None:
    """No program can be given a zero byte."""
    [note] = read_history(desk.repository(), "a\0b", b"", []).notes

    assert note.startswith("git could not be started: ")


def test_a_history_that_is_cut_short_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not read is not passed over in silence; what cannot be known is not made up."""
    monkeypatch.setattr("batonpass.attribution.git.file_history._MOST_REVISIONS", 1)
    data = (desk.root / "invoice.py").read_bytes()
    history = read_history(desk.repository(), "invoice.py", data, desk.changes)

    assert ("git's history was read only 1 commits back",) == history.notes
    assert ["run_c", "run_a", "run_a", "run_a"] == [
        one.run for one in attribute("invoice.py", data, desk.changes, history)
    ]


def test_a_binary_revision_is_passed_over(desk: Desk) -> None:
    """Bytes that are no text have no lines, before or after they were text."""
    (desk.root / "invoice.py").write_bytes(b"\0\1\2")
    desk.commits()
    (desk.root / "invoice.py").write_text(NAMES + TOTAL + TAXES + PRINT, encoding="utf-8")
    desk.commits()

    assert ["run_c", "run_a", "run_a", "run_a"] == desk.runs()


def test_a_folder_in_the_place_of_the_file_is_passed_over(desk: Desk) -> None:
    """What a commit has under the name need not be a file."""
    head = desk.git("rev-parse", "HEAD").strip()
    (desk.root / "folder").mkdir()
    (desk.root / "folder" / "file").write_text("x", encoding="utf-8")
    desk.commits()
    name = desk.git("rev-parse", "HEAD").strip()

    assert {} == desk.repository().blobs([(name, "folder"), (head, "folder")])


def test_a_time_that_no_calendar_has_is_as_good_as_none(desk: Desk) -> None:
    """A commit may say any time it likes."""
    tree = desk.git("rev-parse", "HEAD^{tree}").strip()
    person = "Ada <ada@example.org> 99999999999999999 +0000"
    text = f"tree {tree}\nauthor {person}\ncommitter {person}\n\nfar away\n"
    commit = git(desk.root, "hash-object", "-t", "commit", "-w", "--stdin", "--literally", given=text.encode()).strip()
    git(desk.root, "reset", "--quiet", "--hard", commit)

    assert [None] * 4 == [one.unexplained_since for one in desk.found()]


def test_a_hostile_repository_starts_nothing(desk: Desk, tmp_path: Path) -> None:
    """Whatever programs its settings and attributes name, asking starts none of them."""
    trap, caught = tmp_path / "trap", tmp_path / "caught"
    trap.write_text(f"#!/bin/sh\ntouch {caught}\ncat\n", encoding="utf-8")
    trap.chmod(0o755)
    (desk.root / ".gitattributes").write_text("* diff=evil filter=evil\n", encoding="utf-8")
    desk.commits()
    for name in (
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "pager.blame",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.smudge",
        "filter.evil.clean",
        "gpg.program",
        "core.sshCommand",
        "core.alternateRefsCommand",
    ):
        git(desk.root, "config", name, str(trap))
    git(desk.root, "config", "log.showSignature", "true")
    git(desk.root, "config", "blame.ignoreRevsFile", "missing")
    hooks = desk.root / ".git" / "hooks"
    shutil.rmtree(hooks, ignore_errors=True)
    hooks.mkdir()
    for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        shutil.copy(trap, hooks / name)

    assert ["run_c", "run_a", "run_a", "run_a"] == desk.runs()
    assert not caught.exists()


def test_the_callers_repository_is_not_meant(desk: Desk, tmp_path: Path) -> None:
    """Variables that point git elsewhere are not passed on."""
    elsewhere = ENVIRONMENT | {"GIT_DIR": str(tmp_path), "GIT_WORK_TREE": str(tmp_path), "GIT_EXTERNAL_DIFF": "false"}

    assert Repository(desk.root, elsewhere).head() == desk.repository().head()


def test_a_repository_of_somebody_else_stays_unread(desk: Desk, tmp_path: Path) -> None:
    """Git refuses it, and the note says what would make it readable."""
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        "#!/bin/sh\necho 'fatal: detected dubious ownership in repository' >&2\nexit 128\n", encoding="utf-8"
    )
    fake.chmod(0o755)

    with pytest.raises(GitSilentError, match=r"safe\.directory setting"):
        Repository(desk.root, {"PATH": f"{fake.parent}:/usr/bin:/bin"}).log(["a"], since=None, most=1)
