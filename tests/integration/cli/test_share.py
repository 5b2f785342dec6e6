"""What is known about lines travels with commits: two clones, a remote, real hooks, and people who do harm."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from batonpass.notes.note_store import NoteKind, NoteRepository
from batonpass.notes.trusted_keys import KEYS_FILE
from tests.attribution.repository import ENVIRONMENT
from tests.integration.cli.clones import Clone, a_clone
from tests.integration.cli.shell import batonpass_in, surroundings
from tests.kept_folder import KeptFolder

pytestmark = [pytest.mark.skipif(shutil.which("git") is None, reason="needs git"), pytest.mark.slow]

WORK = """
import sys
from pathlib import Path
from batonpass import start
def write_file(path: str, text: str) -> None:
    Path(path).write_text(text)
path, number, words = sys.argv[1], int(sys.argv[2]), sys.argv[3]
lines = Path(path).read_text().splitlines()
lines[number - 1] = words
with start("Fix invoice rounding", by="user:ana") as lead:
    with lead.hand_off("editor", "Make total() round half-even, password=hunter2hunter2") as editor:
        editor.call(write_file, path, "\\n".join(lines) + "\\n")
"""
FILE = "invoice.py"


def work(clone: Clone, number: int, words: str, path: str = FILE) -> None:
    """Let an agent replace a line, and commit it."""
    environment = surroundings(PATH=os.environ["PATH"], HOME=str(clone.tools))
    subprocess.run(
        [sys.executable, "-c", WORK, path, str(number), words],
        cwd=clone.folder,
        env=environment,
        check=True,
        capture_output=True,
    )
    done = clone.git("commit", "--quiet", "--all", "-m", f"line {number}")
    assert 0 == done.returncode, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> KeptFolder:
    """Make a clone with a ledger, hooks that share, and a key on the default branch."""
    place = tmp_path_factory.mktemp("place")
    clone = a_clone(place)
    clone.git("--git-dir", str(place / "remote.git"), "symbolic-ref", "HEAD", "refs/heads/main")
    (clone.folder / FILE).write_text("".join(f"line {number} of it\n" for number in range(1, 9)), encoding="utf-8")
    (clone.folder / ".gitignore").write_text(".batonpass\n", encoding="utf-8")
    clone.git("add", ".")
    clone.git("commit", "--quiet", "-m", "first")
    clone.git("push", "--quiet", "origin", "main")
    assert 0 == clone.batonpass("git", "install", "--share").returncode
    work(clone, 2, "total = total.quantize(CENT, ROUND_HALF_EVEN)")
    key = json.loads(clone.batonpass("ledger", "stats", "--json").stdout)["root_key"]
    (clone.folder / KEYS_FILE).write_text(f'[[relay]]\nowner = "user:ana"\nkey = "{key}"\n', encoding="utf-8")
    clone.git("add", KEYS_FILE)
    clone.git("commit", "--quiet", "-m", "keys")
    done = clone.git("push", "--quiet", "origin", "main")
    assert 0 == done.returncode, done.stderr
    return KeptFolder(place).keep()


@pytest.fixture
def ana(made: KeptFolder) -> Clone:
    """Give that clone, as it was made."""
    place = made.restore()
    return Clone(place / "shop", place / "tools")


def fresh(ana: Clone, name: str = "fresh", *, sync: bool = True) -> Clone:
    """Return a clone of the remote, which nobody has worked in."""
    folder = ana.folder.parent / name
    ana.git("clone", "--quiet", str(ana.folder.parent / "remote.git"), str(folder))
    clone = Clone(folder, ana.tools)
    if sync:
        done = clone.batonpass("git", "sync")
        assert 0 == done.returncode, done.stderr
    return clone


def blamed(clone: Clone, line: int, *more: str) -> dict[str, object]:
    """Return the answer about a line for programs."""
    done = clone.batonpass("blame", f"{FILE}:{line}", "--json", *more)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def agents(clone: Clone, file: str) -> list[list[str]]:
    """Return for each line of a file who is said to have written it."""
    told = json.loads(clone.batonpass("blame", file, "--json").stdout)
    return [[told["makers"][call]["agent"] for call in line["calls"]] for line in told["lines"]]


def test_a_fresh_clone_answers_from_notes(ana: Clone) -> None:
    """Whoever clones and syncs is told who wrote a line, whose relay signed that, and no more than that."""
    clone = fresh(ana)
    told = clone.batonpass("blame", f"{FILE}:2")
    human = clone.batonpass("blame", f"{FILE}:3")

    assert (0, 1) == (told.returncode, human.returncode), told.stderr
    assert "editor" in told.stdout
    assert "signed by ana's relay" in told.stdout
    assert "verified" not in told.stdout.replace("unverified", "")
    assert "unexplained" in human.stdout
    assert not (clone.folder / ".batonpass").exists()


def test_without_a_sync_the_answer_says_how(ana: Clone) -> None:
    """A clone without notes and without a ledger is told what to do."""
    done = fresh(ana, sync=False).batonpass("blame", f"{FILE}:2")

    assert (3, True) == (done.returncode, "batonpass git sync" in done.stderr)


def test_a_plain_push_sends_branches_only_as_before(ana: Clone) -> None:
    """No setting tells git what a plain push sends, and notes are there all the same."""
    assert "" == ana.git("config", "--get-regexp", r"remote\..*\.push").stdout
    listed = ana.git("ls-remote", "origin").stdout
    assert {NoteKind.LINES.ref, NoteKind.PROOFS.ref} <= {line.split("\t")[1] for line in listed.splitlines()}


def test_a_squash_on_the_server_keeps_the_answer(ana: Clone) -> None:
    """A branch that a server squashed and deleted is answered for from the notes of its commits."""
    ana.git("checkout", "--quiet", "-b", "topic")
    work(ana, 4, "rate = Decimal('0.19')  # as the tax office says")
    work(ana, 6, "assert rate > 0, 'a rate is never negative'")
    ana.git("push", "--quiet", "origin", "topic")
    server = fresh(ana, "server", sync=False)
    server.git("merge", "--quiet", "--squash", "origin/topic")
    server.git("commit", "--quiet", "-m", "All of it (#1)")
    server.git("push", "--quiet", "origin", "main", ":topic")
    clone = fresh(ana)

    assert ["editor"] * 2 == [next(iter(blamed(clone, line)["makers"].values()))["agent"] for line in (4, 6)]  # type: ignore[attr-defined]
    assert "" == clone.git("branch", "--remotes", "--list", "origin/topic").stdout


def test_lines_of_a_renamed_file_keep_who_wrote_them(ana: Clone) -> None:
    """Twice renamed, once with an edit, then squashed on a server: with a ledger and in a fresh clone."""
    ana.git("checkout", "--quiet", "-b", "topic")
    work(ana, 4, "rate = Decimal('0.19')  # as the tax office says")
    ana.git("mv", FILE, "bill.py")
    ana.git("commit", "--quiet", "-m", "a better name")
    work(ana, 6, "assert rate > 0, 'a rate is never negative'", path="bill.py")
    (ana.folder / "src").mkdir()
    ana.git("mv", "bill.py", "src/bill.py")
    text = (ana.folder / "src/bill.py").read_text(encoding="utf-8")
    (ana.folder / "src/bill.py").write_text(text.replace("line 8 of it", "typed by a person"), encoding="utf-8")
    ana.git("commit", "--quiet", "--all", "-m", "moved")
    ana.git("push", "--quiet", "origin", "topic")
    here = agents(ana, "src/bill.py")
    branch = fresh(ana, "branch")
    branch.git("checkout", "--quiet", "topic")
    server = fresh(ana, "server", sync=False)
    server.git("merge", "--quiet", "--squash", "origin/topic")
    server.git("commit", "--quiet", "-m", "All of it (#1)")
    server.git("push", "--quiet", "origin", "main", ":topic")
    clone = fresh(ana)
    truth = [[], ["editor"], [], ["editor"], [], ["editor"], [], []]

    assert truth == here
    assert truth == agents(branch, "src/bill.py")
    assert truth == agents(clone, "src/bill.py")
    ana.git("checkout", "--quiet", "main")
    ana.git("pull", "--quiet", "origin", "main")
    assert truth == agents(ana, "src/bill.py")


def test_two_people_who_send_at_the_same_time_lose_nothing(ana: Clone) -> None:
    """Each fetches, merges and sends again until both are there."""
    clones = [fresh(ana, f"one-{number}") for number in range(3)]
    for number, clone in enumerate(clones):
        repository = NoteRepository(clone.folder, ENVIRONMENT)
        repository.add_notes(NoteKind.LINES, {f"{number}" * 40: [f"a line of {number}"]}, at=datetime.now(UTC))
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda clone: clone.batonpass("git", "sync"), clones))
    last = fresh(ana, "last")
    notes = NoteRepository(last.folder, ENVIRONMENT).read_notes(NoteKind.LINES, [f"{n}" * 40 for n in range(3)])

    assert [0, 0, 0] == [one.returncode for one in done], [one.stderr for one in done]
    assert 3 == len(notes.lines)


def test_a_failure_of_ours_stops_neither_commit_nor_push(ana: Clone) -> None:
    """With a ledger that is broken, and with notes that cannot be sent, both go on."""
    (ana.folder / ".batonpass" / "ledger.db").write_bytes(b"not a ledger")
    (ana.folder / FILE).write_text("other\n", encoding="utf-8")
    commit = ana.git("commit", "--quiet", "--all", "-m", "goes on")
    bare = ana.folder.parent / "remote.git"
    hook = bare / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/notes/*) exit 1;; esac\n', encoding="utf-8")
    hook.chmod(0o755)
    push = ana.git("push", "--quiet", "origin", "main")

    assert (0, 0) == (commit.returncode, push.returncode), commit.stderr + push.stderr
    assert ana.git("rev-parse", "HEAD").stdout == ana.git("rev-parse", "origin/main").stdout


def test_hooks_that_were_there_still_run_and_undo_leaves_them(ana: Clone) -> None:
    """A hook that reads what git tells it gets all of it; undoing takes our lines out and nothing else."""
    hooks = ana.folder / ".git" / "hooks"
    ana.batonpass("git", "install", "--share", "--undo")
    (hooks / "pre-push").write_text("#!/bin/sh\ncat > pushed.txt\n", encoding="utf-8")
    (hooks / "pre-push").chmod(0o755)
    before = (hooks / "pre-push").read_text(encoding="utf-8")
    ana.batonpass("git", "install", "--share")
    ana.git("commit", "--quiet", "--allow-empty", "-m", "one more")
    ana.git("push", "--quiet", "origin", "main")
    undone = ana.batonpass("git", "install", "--share", "--undo")

    assert "refs/heads/main" in (ana.folder / "pushed.txt").read_text(encoding="utf-8")
    assert (0, before) == (undone.returncode, (hooks / "pre-push").read_text(encoding="utf-8"))
    assert not (hooks / "post-commit").exists()
    assert "notes" not in ana.git("config", "--get-all", "remote.origin.fetch").stdout
    assert 0 != ana.batonpass("git", "install", "--share", "--undo").returncode


def test_words_are_shared_only_if_asked_for_and_can_be_erased(ana: Clone) -> None:
    """By default digests travel. With --words the task does, without its secret; erased words leave the remote."""
    assert "Make total()" not in fresh(ana, "before").batonpass("blame", f"{FILE}:2").stdout
    ana.batonpass("git", "install", "--share", "--words")
    work(ana, 5, "discount = Decimal('0.03')  # for those who pay at once")
    ana.git("push", "--quiet", "origin", "main")
    told = fresh(ana, "with-words").batonpass("blame", f"{FILE}:5").stdout
    history = ana.git("rev-list", "--count", NoteKind.WORDS.ref).stdout.strip()
    run = next(iter(blamed(ana, 5)["makers"].values()))  # type: ignore[attr-defined]
    said = ("--by", "user:ana", "--reason", "private", "--yes")
    erased = ana.batonpass("ledger", "erase", run["task"]["id"], *said)
    assert 0 == erased.returncode, erased.stderr
    work(ana, 6, "skonto = Decimal('0.02')  # likewise, in another country")
    ana.git("push", "--quiet", "origin", "main")

    assert "Make total() round half-even" in told
    assert "hunter2" not in told
    assert "1" == history
    assert "Make total()" not in fresh(ana, "after").batonpass("blame", f"{FILE}:5").stdout
    assert "Make total()" in fresh(ana, "after-6").batonpass("blame", f"{FILE}:6").stdout


def test_notes_are_written_for_commits_that_ran_no_hook(ana: Clone) -> None:
    """A rebase runs no hook of a commit: the push writes what is missing."""
    ana.git("checkout", "--quiet", "-b", "topic", "HEAD~1")
    work(ana, 7, "limit = Decimal('10000')  # more needs an approval")
    ana.git("rebase", "--quiet", "main")
    ana.git("push", "--quiet", "origin", "topic:main")

    assert "signed by ana's relay" in fresh(ana).batonpass("blame", f"{FILE}:7").stdout


def test_the_doctor_looks_at_sharing(ana: Clone) -> None:
    """It says whether notes are written and sent, and whether others can trust them."""
    good = ana.batonpass("doctor").stdout
    (ana.folder / ".git" / "hooks" / "pre-push").unlink()
    bad = ana.batonpass("doctor").stdout

    assert "notes are written at every commit and sent with every push" in good
    assert "batonpass git install --share" in bad
    assert "share" not in batonpass_in(ana.folder.parent, "doctor").stdout
