"""Sessions that are held to grants: by the tables of the file, sub-agents by what their session may delegate."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass.accounts.grant_suggestions import suggest
from batonpass.adapters.coders.dialects.claude_code import read_event
from batonpass.adapters.coders.rules.directory_policy import DirectoryPolicy
from batonpass.adapters.coders.rules.tool_actions import call_of
from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.errors import PolicyFileError
from batonpass.model.base.kinds import Mode
from batonpass.model.grants.grant_toml import write_grants
from batonpass.relay import Relay
from tests.unit.adapters.coders.sessions import Session, receipts

TABLES = """
[grant.claude-code]
may = ["read:**", "write:docs/**", "run:make", "call:shop/price", "call:TodoWrite; at most 2 calls"]
may_delegate = ["read:**", "write:src/**", "run:git"]

[grant.editor]
may = ["read:**", "write:**"]
"""
SHOP = "\n[mcp.shop]\nlocal = true\n"  # ours: nobody has to approve each call


class Held:
    """A session in a project whose file says what it may."""

    def __init__(self, project: Path, relay: Relay) -> None:
        self.project = project
        self.relay = relay
        self.file = project / "batonpass.toml"
        self.file.write_text(TABLES + SHOP, encoding="utf-8")
        self.made: list[HookRecorder] = []
        self.session = Session(project, self.recorder())

    def recorder(self, mode: Mode = Mode.ENFORCED) -> HookRecorder:
        """Return somebody who records, and knows nothing but the ledger and the file."""
        tree = WorkTree(self.project, environment={"PATH": "/usr/bin:/bin"}, without=(".batonpass",), watch=False)
        policy = DirectoryPolicy(self.project)
        recorder = HookRecorder(self.relay, self.project, mode=mode, by="user:ana", work_tree=tree, policy=policy)
        self.made.append(recorder)
        return recorder

    def asks(self, call: str, tool: str, agent: str | None = None, **given: object) -> str | None:
        """Let the model ask for a call; return why it is refused, if it is."""
        return sentence(self.session.asks(call, tool, agent, **given))

    def denials(self) -> list[tuple[str, str]]:
        """Return which calls were refused on record, and by which rule."""
        return [(one["body"]["tool"], one["body"]["rule"]) for one in receipts(self.relay, "tool.denied")]


def sentence(answer: dict[str, Any]) -> str | None:
    """Return what the model is told in the place of a call."""
    said = answer.get("hookSpecificOutput", {})
    return said["permissionDecisionReason"] if said.get("permissionDecision") == "deny" else None


@pytest.fixture
def held(project: Path, relay: Relay) -> Iterator[Held]:
    """Return a session that has begun."""
    held = Held(project, relay)
    held.session.says("Fix it")
    yield held
    for recorder in held.made:
        recorder.close()


def test_what_the_table_does_not_cover_is_refused(held: Held) -> None:
    """The model learns what it may, what it tried and who can grant it; what is covered goes on."""
    answers = [
        held.asks("c1", "Write", file_path=str(held.project / "docs" / "a.md"), content="x"),
        held.asks("c2", "Read", file_path="a.py"),
        held.asks("c3", "Bash", command="make test"),
        held.asks("c4", "mcp__shop__price", what="tea"),
    ]
    refused = [
        held.asks("c5", "Edit", file_path="src/a.py", old_string="a", new_string="b"),
        held.asks("c6", "Read", file_path="/etc/passwd"),
        held.asks("c7", "Bash", command="make; ls"),
        held.asks("c8", "Bash", command="./make"),
        held.asks("c9", "mcp__shop__buy", what="tea"),
        held.asks("c10", "WebFetch", url="https://a.example"),
    ]

    assert [None] * 4 == answers
    made_here = f"run:{held.project.resolve()}/make"
    tried = ["write:src/a.py", "read:/etc/passwd", "call:Bash", made_here, "call:shop/buy", "call:WebFetch"]
    assert tried == [str(said).partition("tried ")[2].partition(";")[0] for said in refused]
    assert "only user:ana can grant it" in str(refused[0])
    assert {"grant"} == {rule for _, rule in held.denials()}
    assert 6 == len(held.denials())


def test_a_refusal_told_twice_is_a_refusal(held: Held) -> None:
    """Whoever asks again under the same name gets the same answer, of another process as well, and one receipt."""
    first = held.asks("c1", "WebFetch", url="https://a.example")
    again = held.asks("c1", "WebFetch", url="https://a.example")
    held.session.recorder = held.recorder()
    elsewhere = held.asks("c1", "WebFetch", url="https://a.example")

    assert (first, True, 1) == (again, elsewhere is not None, len(held.denials()))


def test_limits_hold_across_processes(held: Held) -> None:
    """The third call of two is refused, whoever records it."""
    answers = []
    for number in range(3):
        answers.append(held.asks(f"c{number}", "TodoWrite", todos=[]))
        held.session.recorder = held.recorder()

    assert [True, True, False] == [answer is None for answer in answers]
    assert "at most 2 calls" in str(answers[-1])
    assert [("TodoWrite", "limit")] == held.denials()


def test_limits_go_on_when_a_session_is_resumed(held: Held) -> None:
    """Whoever could begin anew by ending it would have no limit: what was used in each run before counts."""
    answers = []
    for number in range(4):
        answers.append(held.asks(f"c{number}", "TodoWrite", todos=[]))
        held.session.tell("SessionEnd", reason="other")
        held.session.says("Go on", f"p{number}")

    assert [True, True, False, False] == [answer is None for answer in answers]
    assert [("TodoWrite", "limit")] * 2 == held.denials()
    assert None is held.asks("c9", "Read", file_path="a.py")


def test_another_session_has_limits_of_its_own(held: Held) -> None:
    """The table says what one session may."""
    held.asks("c1", "TodoWrite", todos=[])
    held.asks("c2", "TodoWrite", todos=[])
    other = Session(held.project, held.recorder(), id="99999999-2222-4333-8444-555555555555")
    other.says("Something else")

    assert None is sentence(other.asks("c3", "TodoWrite", todos=[]))


def test_a_revoked_session_makes_no_further_call(held: Held) -> None:
    """From the next call on, and no sub-agent is started either."""
    held.asks("c1", "Read", file_path="a.py")
    held.relay.revoke_grant("last", by="user:ana", reason="enough")

    assert "was revoked" in str(held.asks("c2", "Read", file_path="a.py"))
    assert "was revoked" in str(sentence(held.session.delegates("c3", "Edit it")))
    assert [] == receipts(held.relay, "handoff.initiated")


class TestSubagents:
    """A sub-agent gets its table as far as the session may delegate it; without one, all that it may."""

    def test_with_a_table(self, held: Held) -> None:
        """Its table says write:**, and of that the session may give write:src/**."""
        held.session.delegates("c1", "Edit it")
        held.session.starts("a1", "c1")

        assert held.asks("c2", "Write", "a1", file_path="src/b.py", content="x") is None
        said = held.asks("c3", "Write", "a1", file_path="docs/b.md", content="x")
        assert "editor may read:** | write:src/**" in str(said) or "editor may write:src/**" in str(said)
        assert "run:git" in str(held.asks("c4", "Bash", "a1", command="git push"))

    def test_without_a_table(self, held: Held) -> None:
        """The type that is usual has none here."""
        held.session.delegates("c1", "Look", kind="helper")
        held.session.starts("a1", "c1", kind="helper")

        assert held.asks("c2", "Bash", "a1", command="git status") is None
        assert held.asks("c3", "Bash", "a1", command="make") is not None

    def test_of_a_session_that_may_delegate_nothing(self, project: Path, relay: Relay) -> None:
        """The sub-agent is not started, and the model is told what could be given: nothing."""
        held = Held(project, relay)
        held.file.write_text('[grant.claude-code]\nmay = ["read:**"]\n', encoding="utf-8")
        held.session.says("Fix it")
        said = sentence(held.session.delegates("c1", "Edit it"))

        assert "editor would be granted nothing" in str(said)
        assert ["grant.missing"] == [one["body"]["error"] for one in receipts(relay, "handoff.failed")]
        assert [] == receipts(relay, "handoff.initiated")
        held.made[0].close()

    def test_of_a_sub_agent(self, held: Held) -> None:
        """It gets at most what the sub-agent above it may delegate, and its call beyond that is refused on record."""
        text = held.file.read_text(encoding="utf-8")
        held.file.write_text(
            text.replace("[grant.editor]\n", '[grant.editor]\nmay_delegate = ["write:src/deep/**"]\n'), encoding="utf-8"
        )
        held.session.delegates("c1", "Edit it")
        held.session.starts("a1", "c1")
        assert sentence(held.session.delegates("c2", "Deeper", agent="a1")) is None
        held.session.starts("a2", "c2", parent="a1")

        assert held.asks("c3", "Write", "a1", file_path="src/b.py", content="x") is None
        assert held.asks("c4", "Write", "a2", file_path="src/deep/b.py", content="x") is None
        assert held.asks("c5", "Write", "a2", file_path="src/b.py", content="x") is not None
        assert [("Write", "grant")] == held.denials()

    def test_one_that_nobody_offered_anything_is_held_all_the_same(self, held: Held) -> None:
        """Its first call is all that is heard of it: it gets what its type may, and no more."""
        assert held.asks("c1", "Read", "a9", file_path="a.py") is None
        assert held.asks("c2", "Write", "a9", file_path="docs/a.md", content="x") is not None


def test_the_grant_stays_with_the_session(held: Held) -> None:
    """It was signed when the session began: another file, and another mode, are for the next one."""
    held.file.write_text('[grant.claude-code]\nmay = ["call:WebFetch"]\n', encoding="utf-8")
    held.session.recorder = held.recorder(Mode.OBSERVED)

    assert held.asks("c1", "WebFetch", url="https://a.example") is not None
    assert held.asks("c2", "Read", file_path="a.py") is None


def test_a_watched_session_tries_its_table_out(project: Path, relay: Relay) -> None:
    """Nothing is refused, sub-agents that could be given nothing included; each request says what would have been."""
    held = Held(project, relay)
    held.session.recorder = held.recorder(Mode.OBSERVED)
    held.file.write_text('[grant.claude-code]\nmay = ["read:**"]\n', encoding="utf-8")
    held.session.says("Fix it")
    answers = [
        held.asks("c1", "Read", file_path="a.py"),
        held.asks("c2", "Write", file_path="b.py", content="x"),
        sentence(held.session.delegates("c3", "Edit it")),
    ]
    held.session.starts("a1", "c3")
    answers.append(held.asks("c4", "Write", "a1", file_path="b.py", content="x"))

    assert [None] * 4 == answers
    requested = [one["body"]["flags"] for one in receipts(relay, "tool.requested")]
    assert [[], ["would_deny.grant"], ["would_deny.grant"]] == requested
    assert ["would_deny.method.lead-to-worker", "grant.tried-out", "would_deny.grant"] == receipts(
        relay, "handoff.initiated"
    )[0]["body"]["flags"]
    for recorder in held.made:
        recorder.close()


def test_a_watched_session_begins_under_a_file_that_is_wrong(project: Path, relay: Relay) -> None:
    """What nobody can read stops nobody who is only watched."""
    held = Held(project, relay)
    held.session.recorder = held.recorder(Mode.OBSERVED)
    held.file.write_text("[grant.claude-code]\nmay = 3\n", encoding="utf-8")
    held.session.says("Fix it")

    assert [None] == [one["body"]["terms"] for one in receipts(relay, "run.started")]
    for recorder in held.made:
        recorder.close()


def test_no_session_begins_under_a_file_that_is_wrong(project: Path, relay: Relay) -> None:
    """Whatever it would grant is not known, and nothing is assumed."""
    held = Held(project, relay)
    held.file.write_text('[grant.claude-code]\nmay = ["reed"]\n', encoding="utf-8")

    with pytest.raises(PolicyFileError, match=r"batonpass\.toml:2"):
        held.session.says("Fix it")
    held.made[0].close()


def test_a_suggestion_from_a_watched_session_covers_the_same_session(project: Path, relay: Relay) -> None:
    """What is pasted lets all of it pass, sub-agent included, and nothing else."""

    def play(session: Session) -> list[str | None]:
        session.says("Fix it")
        answers = [
            session.asks("c1", "Read", file_path=str(session.project / "a.py")),
            session.asks("c2", "Bash", command="git commit -m 'a; b'"),
            session.asks("c3", "Bash", command="git log | head"),
            session.asks("c4", "mcp__shop__buy", what="tea"),
            session.asks("c5", "Grep", pattern="x"),
            session.asks("c6", "Grep", pattern="x", path="src"),
            session.asks("c7", "WebFetch", url="https://a.example", prompt="?"),
            session.delegates("c8", "Edit it"),
        ]
        session.starts("a1", "c8")
        answers += [session.asks("c9", "NotebookEdit", "a1", notebook_path="n.ipynb", new_source="x")]
        return [sentence(answer) for answer in answers]

    held = Held(project, relay)
    with Relay.open("memory:", work_tree=project) as watching:
        watched = HookRecorder(
            watching, project, by="user:ana", work_tree=WorkTree(project, environment={}, watch=False)
        )
        play(Session(project, watched))
        with watching.store.view() as view:
            found = {one.agent: one.grant for one in suggest(view).grants}
        watched.close()
    held.file.write_text(write_grants(found) + SHOP, encoding="utf-8")

    assert [None] * 9 == play(held.session)
    assert held.asks("c10", "Write", "a1", file_path="a.py", content="x") is not None
    assert {
        "claude-code": (
            "call:Bash",
            "call:Grep",
            "call:WebFetch",
            "call:shop/buy",
            "read:a.py",
            "read:src",
            "run:git",
        ),
        "editor": ("write:n.ipynb",),
    } == {agent: grant.may.lines for agent, grant in found.items()}
    held.made[0].close()


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        pytest.param("git push origin main", ("run", "git"), id="one program with words"),
        pytest.param("  pytest -q 'a b' \"c d\"  ", ("run", "pytest"), id="quotes that hold nothing"),
        pytest.param("ls *.py ~/x {a,b}", ("run", "ls"), id="patterns among arguments"),
        pytest.param("git commit -m 'one\ntwo; three'", ("run", "git"), id="a message of two lines"),
        pytest.param("/usr/bin/git log", ("run", "/usr/bin/git"), id="a program by its path"),
        pytest.param("bin/../git log", ("run", "/project/git"), id="a path from where it is run"),
        pytest.param("git log; rm x", ("call", "Bash"), id="two programs"),
        pytest.param("git log\nrm x", ("call", "Bash"), id="two lines"),
        pytest.param("git log && rm x", ("call", "Bash"), id="one after the other"),
        pytest.param("git log | sh", ("call", "Bash"), id="a pipe"),
        pytest.param("git log & rm x", ("call", "Bash"), id="in the background"),
        pytest.param("git log > x", ("call", "Bash"), id="sent elsewhere"),
        pytest.param("git log < x", ("call", "Bash"), id="read from elsewhere"),
        pytest.param("git log <(rm x)", ("call", "Bash"), id="a program as a file"),
        pytest.param("git $(rm x)", ("call", "Bash"), id="substituted"),
        pytest.param('git "`rm x`"', ("call", "Bash"), id="substituted in quotes"),
        pytest.param("$GIT log", ("call", "Bash"), id="a name that only the shell knows"),
        pytest.param("PATH=. git log", ("call", "Bash"), id="with another PATH"),
        pytest.param("g\\it log", ("call", "Bash"), id="a name with an escape"),
        pytest.param("'git' log", ("call", "Bash"), id="a name in quotes"),
        pytest.param("~/bin/git log", ("call", "Bash"), id="a name in somebody's home"),
        pytest.param("git log # x\nrm x", ("call", "Bash"), id="behind a comment"),
        pytest.param("git 'open", ("call", "Bash"), id="a quote that does not end"),
        pytest.param("", ("call", "Bash"), id="nothing"),
    ],
)
def test_a_command_is_run_by_its_name_if_it_is_one_program(command: str, meant: tuple[str, str]) -> None:
    """Whatever a shell could make more of is a call of the shell itself."""
    raw = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "c"}
    event = read_event({**raw, "tool_input": {"command": command}})
    assert event is not None

    call = call_of(event, Path("/project"), {})

    assert meant == (call.action, call.resource)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        pytest.param("rm src/a 'src/*'", ["src/a", "src/*"], id="words, and a star in quotes"),
        pytest.param("rm src/{a,../../x}", None, id="braces are several words"),
        pytest.param("cat src/lin?/x", None, id="a question mark may be a link"),
        pytest.param("cat src/[l]ink/x", None, id="a choice of characters"),
        pytest.param("cat ~/x", None, id="somebody's home"),
    ],
)
def test_words_that_a_shell_makes_others_of_keep_to_no_condition(command: str, arguments: list[str] | None) -> None:
    """What a grant says of the arguments is said of those that the program gets."""
    raw = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "c"}
    event = read_event({**raw, "tool_input": {"command": command}})
    assert event is not None

    assert arguments == call_of(event, Path("/project"), {}).arguments.get("arguments")
