"""Files between runs: what a tainted run writes taints whoever reads it, until a person answers for it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from batonpass.errors import CallSuspendedError, NotFoundError, NotPersonError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.label import SourceType
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay
from tests.unit.handoff.outside import ENFORCED, PAGE, World
from tests.unit.handoff.places import ANA, bodies
from tests.unit.handoff.repositories import git, repository

NOTES = "notes.md"


@tool("write", reversible=True, target="path")
def write(path: str, text: str) -> None:
    """Write a file."""
    Path(path).write_text(text, encoding="utf-8")


@tool("read", reads=True, target="path")
def read(path: str) -> str:
    """Read a file that the arguments name as the target."""
    return Path(path).read_text(encoding="utf-8")


@tool("search", reads=True)
def search(words: str, places: list[str]) -> str:
    """Read files that the arguments name somewhere."""
    return " ".join(place for place in places if words in Path(place).read_text(encoding="utf-8"))


@tool("commit")
def commit(message: str) -> None:
    """Commit everything, as an agent does."""
    git(Path.cwd(), "add", "-A")
    git(Path.cwd(), "commit", "-qm", message)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a repository."""
    place = repository(tmp_path / "work")
    monkeypatch.chdir(place)
    return place


@contextmanager
def opened(policy: Policy = ENFORCED) -> Iterator[tuple[Relay, World]]:
    """Open a ledger, and verify all that was recorded in the end."""
    with Relay.open("sqlite:///.batonpass/ledger.db", policy=policy) as relay:
        yield relay, World()
        relay.verify()


def launder(relay: Relay, world: World, path: str = NOTES, text: str = PAGE) -> tuple[str, ...]:
    """Let a run that read a page write a file; return what tainted it."""
    with relay.start("Note the prices", by=ANA) as run:
        run.call(world.fetch, "news.example")
        run.call(write, path, text)
        return tuple(run.taint)


def starts(relay: Relay) -> LiveRun:
    """Begin another root, which nothing from outside has reached."""
    return relay.start("Pay what the notes say", by=ANA)


def is_tainted(relay: Relay, path: str = NOTES) -> bool:
    """Return whether a file taints a run that reads it."""
    with starts(relay) as run:
        run.call(read, path)
        return bool(run.taint)


def test_a_file_launders_nothing(tree: Path) -> None:
    """Another root reads what a tainted run wrote, and is as tainted; its payment waits."""
    with opened() as (relay, world):
        taint = launder(relay, world)
        with starts(relay) as clean:
            clean.call(read, NOTES)
            assert (taint, SourceType.EXTERNAL) == (clean.taint, clean.label.integrity)
            with pytest.raises(CallSuspendedError):
                clean.call(world.pay, "DE1", 9800)
        assert [] == world.done
        assert (tree / NOTES).exists()


def test_where_it_came_from_is_on_record(tree: Path) -> None:  # noqa: ARG001 - it stands there
    """The receipt names the call that wrote the file, before the request of the call that reads it."""
    with opened() as (relay, world):
        launder(relay, world)
        with starts(relay) as clean:
            clean.call(read, NOTES)
        (tainted,) = bodies(relay, "run.tainted")
        wrote = bodies(relay, "tool.completed")[1]
        assert (wrote.call, wrote.taint) == (tainted.wrote, tainted.sources)
        assert "external" == bodies(relay, "tool.requested")[-1].label.integrity


def test_it_is_the_same_within_one_tree(tree: Path) -> None:  # noqa: ARG001
    """A child writes, and nobody takes its result: its sibling reads."""
    with opened() as (relay, world), starts(relay) as lead:
        reader = lead.hand_off("reader", "Read the news").accept()
        reader.call(world.fetch, "news.example")
        reader.call(write, NOTES, PAGE)
        with lead.hand_off("clerk", "Pay") as clerk:
            assert () == clerk.taint
            clerk.call(read, NOTES)
            assert reader.taint == clerk.taint
        reader.close()


@pytest.mark.parametrize(
    "named",
    [
        lambda run: run.call(search, "prices", [NOTES]),
        lambda run: run.call(search, "prices", ["./src/../notes.md"]),
        lambda run: run.call(search, "prices", [str(Path(NOTES).resolve())]),
        lambda run: run.call(search, "prices", ["link.md"]),
        lambda run: run.call(tool("fill", reversible=True)(lambda template, into: None), NOTES, "x"),  # noqa: ARG005
        lambda run: run.shell(["cat", NOTES], reads=True),
        lambda run: run.shell(["sh", "-c", "cat <notes.md|head"], reads=True),
        lambda run: run.shell(["sh", "-c", "cat *.md"], reads=True),
        lambda run: run.shell(["grep", "-r", "prices", "."], reads=True),
        lambda run: run.shell(["cat", "../notes.md"], reads=True, cwd="src"),
        lambda run: run.call(read, "hard.md"),
        lambda run: run.shell(["sh", "-c", "cat $PWD/notes.md"], reads=True),
        lambda run: run.shell(["sh", "-c", "cat ~+/notes.md; true"], reads=True),
        lambda run: run.shell(["bash", "-c", "cat n{otes,o}.md; true"], reads=True),
        lambda run: run.shell(["sh", "-c", "X=no; cat ${X}tes.md"], reads=True),
        lambda run: run.shell(["sh", "-c", "X=$(pwd); cat $X/notes.md"], reads=True),
        lambda run: run.shell(["sh", "-c", "cat `pwd`/notes.md"], reads=True),
        lambda run: run.shell(["sh", "-c", "cat $0/$1", ".", "notes.md"], reads=True),
    ],
    ids=[
        "in a list",
        "with a detour",
        "in full",
        "by a link",
        "as something to fill in",
        "as a word of a command",
        "in a script",
        "by a pattern",
        "by its directory",
        "from where a command runs",
        "by a hard link",
        "behind a variable of the shell",
        "behind where the shell is",
        "in braces",
        "in pieces",
        "behind what a shell computes",
        "behind a substitution",
        "as a word of a script",
    ],
)
def test_however_it_is_named(named: object, tree: Path) -> None:
    """What a call names is looked at where it leads."""
    assert callable(named)
    with opened(Policy()) as (relay, world):
        launder(relay, world)
        (tree / "link.md").symlink_to(NOTES)
        (tree / "hard.md").hardlink_to(tree / NOTES)
        with starts(relay) as clean:
            named(clean)
            assert 1 == len(clean.taint)


@pytest.mark.parametrize(
    "command", ["git show HEAD:notes.md", "git show HEAD -- notes.md", "git cat-file -p HEAD:./notes.md"]
)
def test_what_git_keeps_launders_nothing(tree: Path, command: str) -> None:
    """A run of its own committed it, and the file is gone."""
    with opened(Policy()) as (relay, world):
        launder(relay, world)
        with starts(relay) as run:
            run.call(commit, "notes")
        (tree / NOTES).unlink()
        with starts(relay) as clean:
            clean.shell(command.split(), reads=True)
            assert 1 == len(clean.taint)


@pytest.mark.parametrize(
    "command",
    ['echo "$HOME"', "git status", "git log --oneline", "cat $PWD/README.md", "cat RE{ADME,X}.md; true", "echo $(pwd)"],
)
def test_a_command_that_names_something_else_takes_nothing_in(tree: Path, command: str) -> None:  # noqa: ARG001
    """What nobody can compute from here is no reason to suspect every file."""
    with opened(Policy()) as (relay, world):
        launder(relay, world, "src/notes.md")
        with starts(relay) as clean:
            clean.shell(["sh", "-c", command], reads=True)
            assert () == clean.taint


def test_a_copy_is_found_by_its_bytes(tree: Path) -> None:
    """Whoever copied it, and whatever it is called now."""
    with opened() as (relay, world):
        launder(relay, world)
        (tree / "src" / "innocent.txt").write_bytes((tree / NOTES).read_bytes())
        assert is_tainted(relay, "src/innocent.txt")


def test_what_became_of_it_since_is_found_by_its_path(tree: Path) -> None:
    """A formatter that nobody recorded changes the bytes, and the words are the same."""
    with opened() as (relay, world):
        launder(relay, world)
        (tree / NOTES).write_text(PAGE.upper(), encoding="utf-8")
        assert is_tainted(relay)


def test_a_reader_that_writes_on_taints_further(tree: Path) -> None:  # noqa: ARG001
    """A summary of it, in another file, is made of it."""
    with opened() as (relay, world):
        taint = launder(relay, world)
        with starts(relay) as run:
            run.call(read, NOTES)
            run.call(write, "summary.md", "new prices")
        with starts(relay) as last:
            last.call(read, "summary.md")
            assert taint == last.taint


def test_what_a_download_writes_came_from_outside(tree: Path) -> None:  # noqa: ARG001
    """The call that fetches and writes is what its file came from."""
    download = tool("download", reversible=True, external=True)(
        lambda url, path: Path(path).write_text(f"{url}: {PAGE}", encoding="utf-8")
    )
    with opened(Policy()) as (relay, _):
        with starts(relay) as run:
            run.call(download, "news.example", NOTES)
            (call,) = run.taint
        with starts(relay) as clean:
            clean.call(read, NOTES)
            assert (call,) == clean.taint


def test_a_failing_call_of_a_tainted_run_leaves_a_file_too(tree: Path) -> None:  # noqa: ARG001
    """What it wrote before it failed is there."""

    @tool("half", reversible=True, target="path")
    def half(path: str) -> None:
        Path(path).write_text(PAGE, encoding="utf-8")
        raise OSError("the disk is full")

    with opened() as (relay, world):
        with starts(relay) as run:
            run.call(world.fetch, "news.example")
            with pytest.raises(OSError, match="full"):
                run.call(half, NOTES)
        assert is_tainted(relay)


def test_files_of_clean_runs_and_of_people_taint_nobody(tree: Path) -> None:
    """Also where a tainted run has written other files, and empty ones."""
    with opened() as (relay, world):
        launder(relay, world)
        launder(relay, world, "empty.md", "")
        (tree / "nothing.md").write_text("", encoding="utf-8")
        with starts(relay) as clean:
            clean.call(write, "own.md", "ours")
            for name in ("own.md", "README.md", "src/a.py", "nothing.md", "empty.md"):
                clean.call(read, name)
            clean.shell(["cat", "src/a.py"], reads=True)
            clean.shell(["grep", "-r", "one", "src"], reads=True)
            assert () == clean.taint


def test_a_file_whose_name_is_not_utf_8_launders_nothing_either(tree: Path) -> None:
    """It can be read, taints whoever reads it, and a person may answer for it, here or by a commit."""
    first, second = os.fsdecode(b"caf\xe9.md"), os.fsdecode(b"th\xe9.md")
    with opened() as (relay, world):
        launder(relay, world, first)
        launder(relay, world, second, f"{PAGE} And more.")
        assert (True, True) == (is_tainted(relay, first), is_tainted(relay, second))

        relay.endorse_file(first, by=ANA, reason="I read it")
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", "I read it as well")
        assert (False, False) == (is_tainted(relay, first), is_tainted(relay, second))


def test_a_file_that_a_clean_run_wrote_anew_is_clean(tree: Path) -> None:
    """Nothing is left of what stood there: who wrote it last did not name it before."""
    with opened() as (relay, world):
        launder(relay, world)
        (tree / NOTES).unlink()
        with starts(relay) as clean:
            clean.call(write, NOTES, "our own")
            assert () == clean.taint
        assert not is_tainted(relay)


def test_a_person_answers_for_a_file(tree: Path) -> None:
    """For what it holds now, and also for a copy of it; what is written there later is not covered."""
    with opened() as (relay, world):
        launder(relay, world)
        (left,) = relay.endorse_file(NOTES, by=ANA, reason="I read it")
        (tree / "copy.md").write_bytes((tree / NOTES).read_bytes())

        assert (NOTES, False, False) == (left.path, is_tainted(relay), is_tainted(relay, "copy.md"))
        with pytest.raises(NotFoundError):
            relay.endorse_file(NOTES, by=ANA, reason="again")
        launder(relay, world, text=f"{PAGE} And more.")
        assert is_tainted(relay)


def test_who_edits_on_after_answering_is_not_asked_again(tree: Path) -> None:
    """A person changes what the run left, answers for it, and changes it once more."""
    with opened() as (relay, world):
        launder(relay, world)
        (tree / NOTES).write_text("edited", encoding="utf-8")
        relay.endorse_file(NOTES, by=ANA, reason="I read it")
        (tree / NOTES).write_text("edited again", encoding="utf-8")

        assert not is_tainted(relay)


@pytest.mark.parametrize("by", ["agent:lead", "service:nightly"])
def test_nobody_else_answers_for_a_file(by: str, tree: Path) -> None:  # noqa: ARG001
    """Neither an agent nor a program."""
    with opened() as (relay, world):
        launder(relay, world)
        with pytest.raises(NotPersonError):
            relay.endorse_file(NOTES, by=by, reason="looks fine")
        assert is_tainted(relay)


def test_a_file_that_taints_nobody_cannot_be_endorsed(tree: Path) -> None:  # noqa: ARG001
    """There is nothing to answer for: a receipt that says so would mislead."""
    with opened() as (relay, _), starts(relay), pytest.raises(NotFoundError):
        relay.endorse_file("README.md", by=ANA, reason="ours")


def test_endorsing_the_page_lifts_the_files_that_came_of_it(tree: Path) -> None:  # noqa: ARG001
    """In the tree where it was read; the file is then as clean as the page."""
    with opened() as (relay, world):
        with relay.start("Note the prices", by=ANA) as run:
            run.call(world.fetch, "news.example")
            run.call(write, NOTES, PAGE)
            run.endorse(run.taint[0], by=ANA, reason="our own site")
        assert not is_tainted(relay)


def test_what_a_person_committed_is_theirs(tree: Path) -> None:
    """They had it before them; reviewed code does not stay tainted for ever."""
    with opened() as (relay, world):
        launder(relay, world)
        assert is_tainted(relay)
        git(tree, "add", NOTES)
        git(tree, "commit", "-qm", "notes")
        (tree / "copy.md").write_bytes((tree / NOTES).read_bytes())

        assert (False, False) == (is_tainted(relay), is_tainted(relay, "copy.md"))
        launder(relay, world, text="other orders")
        assert is_tainted(relay)


def test_what_an_agent_committed_is_not(tree: Path) -> None:
    """Not by a command of a run, nor by a tool; nor on a branch from which it goes back before anybody looks."""
    with opened(Policy()) as (relay, world):
        launder(relay, world)
        with starts(relay) as run:
            run.call(commit, "notes")
        assert is_tainted(relay)
        launder(relay, world, "other.md", "other orders")
        identity = "git -c user.name=Bot -c user.email=bot@example.org"
        with starts(relay) as run:
            script = f"git add -A && git checkout -qb side && {identity} commit -qm more && git checkout -q main"
            assert 0 == run.shell(["sh", "-c", script]).exit_code
        git(tree, "merge", "-q", "--ff-only", "side")
        assert is_tainted(relay, "other.md")
        made = [commit for body in bodies(relay, "tool.completed") for commit in body.commits]
        assert 2 == len(made)


def test_a_commit_of_something_else_does_not_answer_for_it(tree: Path) -> None:
    """A person commits their own files, or an older version of this one."""
    with opened() as (relay, world):
        (tree / NOTES).write_text("ours", encoding="utf-8")
        git(tree, "add", NOTES)
        git(tree, "commit", "-qm", "ours")
        launder(relay, world)
        (tree / "src" / "a.py").write_text("two\n", encoding="utf-8")
        git(tree, "commit", "-qm", "two", "src/a.py")

        assert is_tainted(relay)


def test_a_policy_may_say_that_a_commit_answers_for_nothing(tree: Path) -> None:
    """Where people commit what agents write without looking."""
    with opened(Policy(enforce=True, commit_endorses=False)) as (relay, world):
        launder(relay, world)
        git(tree, "add", NOTES)
        git(tree, "commit", "-qm", "notes")

        assert is_tainted(relay)


def test_it_is_known_without_git_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that is no repository has files as well."""
    monkeypatch.chdir(tmp_path)
    with opened() as (relay, world):
        launder(relay, world)
        assert is_tainted(relay)
        relay.endorse_file(NOTES, by=ANA, reason="I read it")
        assert not is_tainted(relay)


def test_a_run_that_writes_and_reads_its_own_file_costs_no_receipt(tree: Path) -> None:  # noqa: ARG001
    """It knows what it knew."""
    with opened() as (relay, world):
        with starts(relay) as run:
            run.call(world.fetch, "news.example")
            run.call(write, NOTES, PAGE)
            run.call(read, NOTES)
        assert [] == bodies(relay, "run.tainted")


def test_words_of_the_file_are_recognised_in_arguments(tree: Path) -> None:  # noqa: ARG001
    """Whoever copies an order out of it is seen to."""
    with opened(Policy()) as (relay, world):
        launder(relay, world)
        with starts(relay) as clean:
            clean.call(read, NOTES)
            clean.call(world.pay, "DE89370400440532013000", 9800)
        assert "argument.untrusted" in bodies(relay, "tool.requested")[-1].flags


def test_a_clean_ledger_looks_at_no_file(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """Where no tainted run ever wrote anything, a call costs one question whatever it names."""
    with opened() as (relay, _):
        monkeypatch.setattr("batonpass.handoff.calls.tainted_files.find_left", lambda *_: pytest.fail("it looked"))
        with starts(relay) as clean:
            clean.call(write, "own.md", "ours")
            clean.call(read, "own.md")
