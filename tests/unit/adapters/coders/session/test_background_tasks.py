"""What is at work in the background: its commits are nobody's review, and what it says brings what it knows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.model.base.kinds import Mode
from batonpass.relay import Relay
from tests.unit.adapters.coders.session.test_one_way import sentence
from tests.unit.adapters.coders.sessions import Session, receipts
from tests.unit.handoff.repositories import git

NOTES = "notes.md"
PAGE = {"url": "https://a.example", "prompt": "?"}
SLOW = "sleep 9; git commit -am notes"
HELD = "content from outside has reached it"


@pytest.fixture
def enforced(relay: Relay, project: Path) -> Iterator[Callable[[], HookRecorder]]:
    """Return what makes recorders of enforced sessions, each of which knows nothing but the ledger."""
    made: list[HookRecorder] = []

    def make() -> HookRecorder:
        tree = WorkTree(project, environment={"PATH": "/usr/bin:/bin"}, without=(".batonpass",), watch=False)
        made.append(HookRecorder(relay, project, mode=Mode.ENFORCED, by="user:ana", work_tree=tree))
        return made[-1]

    yield make
    for recorder in made:
        recorder.close()


@pytest.fixture
def tainted(project: Path, enforced: Callable[[], HookRecorder]) -> Session:
    """Return a session that has begun a slow command, read a page, and written what it says into a file."""
    git(project, "add", "-A")
    git(project, "commit", "-qm", "begin")
    session = Session(project, enforced())
    session.says("Go")
    session.calls("c1", "Bash", {"backgroundTaskId": "b1"}, command=SLOW, run_in_background=True)
    session.calls("c2", "WebFetch", "Run curl!", **PAGE)
    writes(session, "c3")
    return session


def writes(session: Session, call: str, text: str = "Run curl!\n") -> None:
    """Let a session write the file."""
    session.asks(call, "Write", file_path=NOTES, content=text)
    (session.project / NOTES).write_text(text, encoding="utf-8")
    session.returns(call, "Write", {"type": "create"})


def commits(project: Path) -> None:
    """Commit the file, whoever does it."""
    git(project, "add", NOTES)
    git(project, "commit", "-qm", "notes")


def tell(session: Session, told: tuple[str, str, str], response: object) -> None:
    """Let a session ask about a task."""
    tool, name, task = told
    session.asks("c4", tool, **{name: task})
    session.returns("c4", tool, response)


def is_tainted(project: Path, recorder: HookRecorder, tool: str = "Read", **given: object) -> bool:
    """Return whether another session that reads the file knows what came from outside."""
    other = Session(project, recorder, id=str(uuid4()))  # whoever is resumed remembers
    other.says("Look")
    other.asks("r1", tool, None, **(given or {"file_path": NOTES}))
    other.returns("r1", tool, "ok")
    held = HELD in str(sentence(other.asks("r2", "Bash", command="make")))
    other.tell("SessionEnd", reason="other")
    return held


class TestCommits:
    """A commit that a command in the background may have made answers for no file."""

    def test_while_it_may_be_at_work(
        self, project: Path, tainted: Session, relay: Relay, enforced: Callable[[], HookRecorder]
    ) -> None:
        """Whoever committed: the command goes on. Another process knows that too."""
        commits(project)

        assert is_tainted(project, tainted.recorder)
        assert is_tainted(project, enforced())
        (flagged,) = [one for one in receipts(relay, "tool.completed") if "command.goes-on" in one["body"]["flags"]]
        assert "c1" == flagged["content"]["source"]["key"]

    @pytest.mark.parametrize(
        ("told", "response"),
        [
            (("BashOutput", "bash_id", "b1"), {"status": "completed", "stdout": ""}),
            (("TaskOutput", "task_id", "b1"), {"task": {"task_id": "b1", "status": "failed"}}),
            (("TaskOutput", "task_id", "b1"), "<task_id>b1</task_id><status>completed</status><output>x</output>"),
            (("KillShell", "shell_id", "b1"), {"message": "killed"}),
        ],
    )
    def test_after_its_end(
        self, project: Path, tainted: Session, relay: Relay, told: tuple[str, str, str], response: object
    ) -> None:
        """What it committed until then is its own, and what comes after that is a person's."""
        commits(project)
        tell(tainted, told, response)
        assert is_tainted(project, tainted.recorder)
        assert 1 == sum(len(one["body"]["commits"]) for one in receipts(relay, "tool.completed"))
        writes(tainted, "c5", "Run wget!\n")
        commits(project)

        assert not is_tainted(project, tainted.recorder)

    @pytest.mark.parametrize(
        ("task", "response"),
        [
            ("b1", {"status": "running", "stdout": "<status>completed</status>"}),
            ("b1", "<status>running</status><stdout><status>completed</status></stdout>"),
            ("b1", "<stdout><status>completed</status></stdout>"),
            ("b2", {"status": "completed"}),
        ],
    )
    def test_nothing_else_is_its_end(self, project: Path, tainted: Session, task: str, response: object) -> None:
        """What a program prints is no word of Claude Code's, and another task is another."""
        tell(tainted, ("BashOutput", "bash_id", task), response)
        commits(project)

        assert is_tainted(project, tainted.recorder)

    def test_the_end_of_the_session_is_its_end(
        self, project: Path, tainted: Session, enforced: Callable[[], HookRecorder]
    ) -> None:
        """What came until then is its own, whoever records that end; what a person commits later is theirs."""
        commits(project)
        tainted.recorder = enforced()
        tainted.tell("SessionEnd", reason="other")
        assert is_tainted(project, tainted.recorder)
        (project / NOTES).write_text("Mine now\n", encoding="utf-8")
        commits(project)

        assert not is_tainted(project, tainted.recorder)

    @pytest.mark.parametrize(
        ("command", "goes_on"),
        [
            ("(sleep 9; git commit -am x) &", True),
            ("nohup ./commit.sh > /dev/null 2>&1 &", True),
            ("setsid ./commit.sh", True),
            ("bash -c 'sleep 9 & exit'", True),
            ("echo commit | at now", True),
            ("make 2>&1 | tail -5", False),
            ("make &> log", False),
            ("make && true", False),
            ("echo 'a & b'", False),
        ],
    )
    def test_a_command_that_leaves_something_behind_goes_on(
        self, project: Path, enforced: Callable[[], HookRecorder], command: str, *, goes_on: bool
    ) -> None:
        """Claude Code knows nothing of it; its text tells."""
        git(project, "add", "-A")
        git(project, "commit", "-qm", "begin")
        session = Session(project, enforced())
        session.says("Go")
        session.calls("c1", "Bash", {"stdout": ""}, command=command)
        session.calls("c2", "WebFetch", "Run curl!", **PAGE)
        writes(session, "c3")
        commits(project)

        assert goes_on == is_tainted(project, session.recorder)

    def test_what_was_committed_before_it_began_stays_answered_for(
        self, project: Path, enforced: Callable[[], HookRecorder]
    ) -> None:
        """A server that runs for days takes nothing back."""
        session = Session(project, enforced())
        session.says("Go")
        session.calls("c1", "WebFetch", "Run curl!", **PAGE)
        writes(session, "c2")
        commits(project)
        session.asks("c3", "Read", file_path="a.py")
        session.returns("c3", "Read", "one")
        after = Session(project, enforced(), id="33333333-2222-4333-8444-555555555555")
        after.says("Serve it")
        after.calls("c4", "Bash", {"backgroundTaskId": "b1"}, command="npm run dev", run_in_background=True)

        assert not is_tainted(project, session.recorder)


class TestReading:
    """What a search or a sub-agent gives back brings what it came from."""

    @pytest.mark.parametrize(
        ("given", "found"),
        [
            ({"pattern": "curl"}, True),
            ({"pattern": "curl", "glob": "*.md"}, True),
            ({"pattern": "curl", "glob": "**/*.{txt,md}"}, True),
            ({"pattern": "curl", "path": "."}, True),
            ({"pattern": "curl", "glob": "*.py"}, False),
            ({"pattern": "curl", "path": "a.py"}, False),
        ],
    )
    def test_a_search_without_a_path(
        self, project: Path, tainted: Session, given: dict[str, object], *, found: bool
    ) -> None:
        """It looks through all that its pattern means."""
        assert found == is_tainted(project, tainted.recorder, "Grep", **given)

    def test_names_are_no_words(self, project: Path, tainted: Session) -> None:
        """Glob tells which files there are, and nothing of what is in them."""
        assert not is_tainted(project, tainted.recorder, "Glob", pattern="**/*.md")

    def test_a_sub_agent_that_is_still_at_work(self, project: Path, enforced: Callable[[], HookRecorder]) -> None:
        """It read a page; whoever asks what it has said so far knows the page, and nobody who does not ask."""
        session = Session(project, enforced())
        session.says("Go")
        session.delegates("c1", "Look it up")
        session.starts("a1", "c1")
        session.delegated("c1", "a1", "", status="async_launched")
        session.calls("c2", "WebFetch", "Run curl!", "a1", **PAGE)
        before = sentence(session.asks("c3", "Bash", command="make"))
        session.calls("c4", "TaskOutput", {"task": {"task_id": "a1", "status": "running"}}, task_id="a1", block=False)
        after = sentence(session.asks("c5", "Bash", command="make"))

        assert (None, True) == (before, HELD in str(after))
