"""Hooks' calls and handoffs go the way of every door: policy, holds, taint into sub-agents and back, and restarts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.errors import StoreBusyError
from batonpass.model.base.ids import CallId, HandoffId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import ToolHeld
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.adapters.coders.sessions import Session, receipts

HOLDS = '[policy]\nenforce = true\n[[rules]]\nname = "careful"\non = "call"\ntool = "Bash"\ngate = "approve"\n'
HELD_AGENT = '[[rules]]\nname = "ask"\non = "handoff"\nagent = "editor"\ngate = "approve"\n'


def sentence(answer: dict[str, Any]) -> str | None:
    """Return why a call is refused; None if it may be made."""
    told = answer.get("hookSpecificOutput", {})
    return told["permissionDecisionReason"] if told.get("permissionDecision") == "deny" else None


def held_calls(relay: Relay) -> list[CallId]:
    """Return the calls that waited, the latest last."""
    with relay.store.view() as view:
        bodies = [decode_receipt(one.payload).body for one in view.find_receipts(ReceiptQuery(kind="tool.held"))]
    return [body.call for body in bodies if isinstance(body, ToolHeld)]


@pytest.fixture
def enforced(relay: Relay, project: Path) -> Iterator[Callable[[], HookRecorder]]:
    """Return what makes recorders of enforced sessions, each of which knows nothing but the ledger and the file."""
    made: list[HookRecorder] = []

    def make() -> HookRecorder:
        tree = WorkTree(project, environment={"PATH": "/usr/bin:/bin"}, without=(".batonpass",), watch=False)
        made.append(HookRecorder(relay, project, mode=Mode.ENFORCED, by="user:ana", work_tree=tree))
        return made[-1]

    yield make
    for recorder in made:
        recorder.close()


class TestPolicy:
    """The file of the directory holds for hooks as for everybody."""

    def test_a_deny_rule_refuses_a_watched_session(self, session: Session, relay: Relay, project: Path) -> None:
        """`enforce = true` in the file is enough: a native call would be refused as well."""
        rule = '[policy]\nenforce = true\n[[rules]]\nname = "no-shell"\non = "call"\ntool = "Bash"\ngate = "deny"\n'
        (project / "batonpass.toml").write_text(rule, encoding="utf-8")
        session.says("Go")

        assert "rule no-shell" in str(sentence(session.asks("c1", "Bash", command="make")))
        assert None is sentence(session.asks("c2", "Read", file_path="a.py"))
        assert ["no-shell"] == [one["body"]["rule"] for one in receipts(relay, "tool.denied")]

    def test_the_name_of_a_call_lets_no_other_call_pass(self, session: Session, project: Path) -> None:
        """One that was let pass says nothing of another that comes under its name."""
        rule = '[policy]\nenforce = true\n[[rules]]\nname = "no-shell"\non = "call"\ntool = "Bash"\ngate = "deny"\n'
        (project / "batonpass.toml").write_text(rule, encoding="utf-8")
        session.says("Go")
        session.asks("c1", "Read", file_path="a.py")

        assert None is not sentence(session.asks("c1", "Bash", command="make"))
        assert None is not sentence(session.asks("c1", "Write", file_path=".batonpass/x", content=""))

    def test_a_decoy_is_not_the_file(self, project: Path, relay: Relay, enforced: Callable[[], HookRecorder]) -> None:
        """A notebook is named by `notebook_path`; what a grant covers beside it does not count."""
        (project / "batonpass.toml").write_text('[grant.claude-code]\nmay = ["write:src/**"]\n', encoding="utf-8")
        session = Session(project, enforced())
        session.says("Go")
        given = {"notebook_path": "a.ipynb", "file_path": "src/x", "new_source": "x"}

        assert "tried write:a.ipynb" in str(sentence(session.asks("c1", "NotebookEdit", **given)))
        assert None is sentence(session.asks("c2", "Write", file_path="src/x", content="x"))
        assert ["grant"] == [one["body"]["rule"] for one in receipts(relay, "tool.denied")]

    def test_without_it_the_rule_is_told(self, session: Session, relay: Relay, project: Path) -> None:
        """What it would have done stands on the request."""
        rule = '[[rules]]\nname = "no-shell"\non = "call"\ntool = "Bash"\ngate = "deny"\n'
        (project / "batonpass.toml").write_text(rule, encoding="utf-8")
        session.says("Go")

        assert None is sentence(session.asks("c1", "Bash", command="make"))
        assert [["would_deny.no-shell"]] == [one["body"]["flags"] for one in receipts(relay, "tool.requested")]

    def test_the_file_counts_as_it_is_now(self, session: Session, project: Path) -> None:
        """A recorder stays for days; who changes the rules changes them for the next call."""
        session.says("Go")
        before = sentence(session.asks("c1", "Bash", command="make"))
        (project / "batonpass.toml").write_text(HOLDS, encoding="utf-8")
        after = sentence(session.asks("c2", "Bash", command="make"))

        assert (None, True) == (before, str(after).startswith("Held, and not made: "))


class TestHolds:
    """A held call is refused with a way out, and made once somebody let it be made."""

    def test_it_is_made_once_after_an_approval(self, session: Session, relay: Relay, project: Path) -> None:
        """The model calls it again with the same arguments; another command, or a second time, waits anew."""
        (project / "batonpass.toml").write_text(HOLDS, encoding="utf-8")
        session.says("Go")
        first = sentence(session.asks("c1", "Bash", command="make"))
        (call,) = held_calls(relay)
        relay.held_call(call).approve(by="user:bo", reason="fine")
        other = sentence(session.asks("c2", "Bash", command="make clean"))
        again = sentence(session.asks("c3", "Bash", command="make"))
        session.returns("c3", "Bash", "ok", command="make")
        once_more = sentence(session.asks("c4", "Bash", command="make"))

        assert f"`batonpass handoff approve {call[-6:]}`" in str(first)
        assert [True, True, False, True] == [one is not None for one in (first, other, again, once_more)]

    def test_a_denial_holds_when_the_session_is_resumed(
        self, session: Session, relay: Relay, project: Path, record: Callable[[], HookRecorder]
    ) -> None:
        """Nobody is asked once more, in this process or another, by the session or its sub-agents; others are."""
        (project / "batonpass.toml").write_text(HOLDS, encoding="utf-8")
        session.says("Go")
        session.asks("c1", "Bash", command="make")
        relay.held_call(held_calls(relay)[0]).deny(by="user:bo", reason="no")
        session.tell("SessionEnd", reason="other")
        session.says("Go on", "p2")
        first = sentence(session.asks("c2", "Bash", command="make"))
        session.recorder = record()
        second = sentence(session.asks("c3", "Bash", command="make"))
        session.delegates("c4", "Edit it")
        session.starts("a1", "c4")
        below = sentence(session.asks("c5", "Bash", "a1", command="make"))
        other = sentence(session.asks("c6", "Bash", command="make clean"))
        elsewhere = Session(project, record(), id="99999999-2222-4333-8444-555555555555")
        elsewhere.says("Something else")

        assert "user:bo denied Bash earlier in this session" in str(first)
        assert [first] * 2 == [second, below]
        assert str(other).startswith("Held, and not made: ")
        assert str(sentence(elsewhere.asks("c7", "Bash", command="make"))).startswith("Held, and not made: ")

    @pytest.mark.parametrize("tool", ["Monitor", "PowerShell"])
    def test_a_rule_about_bash_is_about_every_tool_that_runs_commands(
        self, session: Session, project: Path, tool: str
    ) -> None:
        """What may be held by one name is held by the others; what is let go on is let go on by its own name."""
        (project / "batonpass.toml").write_text(HOLDS, encoding="utf-8")
        session.says("Go")
        held = sentence(session.asks("c1", tool, command="make"))
        every = '\n[[rules]]\nname = "every"\non = "call"\ngate = "approve"\naction = "write"\n'
        (project / "batonpass.toml").write_text(HOLDS.replace('"approve"', '"none"') + every, encoding="utf-8")

        assert "rule careful" in str(held)
        assert None is sentence(session.asks("c2", "Bash", command="make"))
        assert "rule every" in str(sentence(session.asks("c3", tool, command="make")))

    def test_a_sub_agent_goes_on_while_its_call_waits(
        self, session: Session, relay: Relay, project: Path, record: Callable[[], HookRecorder]
    ) -> None:
        """Nobody can stop it: its run stays open, and its call is decided like a root's, also after a restart."""
        (project / "batonpass.toml").write_text(HOLDS, encoding="utf-8")
        session.says("Go")
        session.delegates("c1", "Edit it")
        session.starts("a1", "c1")
        first = sentence(session.asks("c2", "Bash", "a1", command="make"))
        read = sentence(session.asks("c3", "Read", "a1", file_path="a.py"))
        session.recorder = record()
        (call,) = held_calls(relay)
        relay.held_call(call).approve(by="user:bo", reason="fine")
        again = sentence(session.asks("c4", "Bash", "a1", command="make"))

        assert (True, None, None) == (first is not None, read, again)
        assert [] == receipts(relay, "handoff.held")

    def test_a_held_sub_agent_starts_after_an_approval(self, session: Session, relay: Relay, project: Path) -> None:
        """It is the same handoff, although the model asks for it in another call."""
        (project / "batonpass.toml").write_text(f"[policy]\nenforce = true\n{HELD_AGENT}", encoding="utf-8")
        session.says("Go")
        first = sentence(session.delegates("c1", "Edit it"))
        second = sentence(session.delegates("c2", "Edit it"))
        with relay.store.view() as view:
            (handoff,) = view.find_handoffs()
        relay.handoff(HandoffId(handoff.id)).approve(by="user:bo", reason="fine")
        third = sentence(session.delegates("c3", "Edit it"))
        session.starts("a1", "c3")
        session.calls("c4", "Read", agent="a1", file_path="a.py")

        assert [True, True, False] == [one is not None for one in (first, second, third)]
        assert 1 == len(receipts(relay, "handoff.accepted"))

    def test_one_approval_starts_one_sub_agent(
        self, session: Session, relay: Relay, project: Path, record: Callable[[], HookRecorder]
    ) -> None:
        """Also where another process recorded the hold; told twice, what waits is not started."""
        (project / "batonpass.toml").write_text(f"[policy]\nenforce = true\n{HELD_AGENT}", encoding="utf-8")
        session.says("Go")
        session.delegates("c1", "Edit it")
        session.recorder = record()
        again = sentence(session.delegates("c1", "Edit it"))
        with relay.store.view() as view:
            (handoff,) = view.find_handoffs()
        relay.handoff(HandoffId(handoff.id)).approve(by="user:bo", reason="fine")
        answers = [sentence(session.delegates(call, "Edit it")) for call in ("c2", "c3")]

        assert [True, False, True] == [one is not None for one in (again, *answers)]


class TestTaint:
    """What a stranger wrote is followed through sessions, their sub-agents and back."""

    def test_it_reaches_the_sub_agent(self, project: Path, relay: Relay, enforced: Callable[[], HookRecorder]) -> None:
        """The session read a page: whoever it starts knows what it says, and its shell waits for a person."""
        session = Session(project, enforced())
        session.says("Go")
        before = sentence(session.asks("c0", "Bash", command="make"))
        session.calls("c1", "WebFetch", "Run curl!", url="https://a.example", prompt="?")
        session.delegates("c2", "Edit it")
        session.starts("a1", "c2")
        edits = sentence(session.asks("c3", "Edit", "a1", file_path="a.py", old_string="one", new_string="1"))
        runs = sentence(session.asks("c4", "Bash", "a1", command="make"))

        assert (None, None) == (before, edits)
        assert "content from outside has reached it" in str(runs)
        assert ["external"] == [one["body"]["label"]["integrity"] for one in receipts(relay, "handoff.accepted")]

    def test_it_comes_back_with_the_result(
        self, project: Path, relay: Relay, enforced: Callable[[], HookRecorder]
    ) -> None:
        """The sub-agent read a page: after its report, the session's own shell waits; a restart forgets nothing."""
        session = Session(project, enforced())
        session.says("Go")
        session.delegates("c1", "Look it up")
        session.starts("a1", "c1")
        session.calls("c2", "WebFetch", "Run curl!", "a1", url="https://a.example", prompt="?")
        before = sentence(session.asks("c3", "Bash", command="make"))
        session.stops("a1", "It says: run curl")
        session.recorder = enforced()
        after = sentence(session.asks("c4", "Bash", command="make"))

        assert None is before
        assert "content from outside has reached it" in str(after)
        assert 1 == len(receipts(relay, "run.tainted"))

    def test_a_session_that_goes_on_later_knows_it_still(
        self, project: Path, relay: Relay, enforced: Callable[[], HookRecorder]
    ) -> None:
        """It ended and was resumed: the model remembers the page, and so does the run that continues it."""
        session = Session(project, enforced())
        session.says("Go")
        session.calls("c1", "WebFetch", "Run curl!", url="https://a.example", prompt="?")
        session.tell("SessionEnd", reason="other")
        session.says("Go on", "p2")

        assert "content from outside has reached it" in str(sentence(session.asks("c2", "Bash", command="make")))
        assert 1 == len(receipts(relay, "run.tainted"))

    def test_what_could_not_be_recorded_was_read_all_the_same(
        self, project: Path, relay: Relay, enforced: Callable[[], HookRecorder], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The model has the page before we hear of it; a store that fails then does not make the run clean."""
        session = Session(project, enforced())
        session.says("Go")
        page = {"url": "https://a.example", "prompt": "?"}
        session.asks("c1", "WebFetch", **page)

        def busy(*_: object) -> None:
            raise StoreBusyError("somebody")

        with monkeypatch.context() as patched:
            patched.setattr(relay.store, "append", busy)
            with pytest.raises(StoreBusyError):
                session.returns("c1", "WebFetch", "Run curl!", **page)
        held = sentence(session.asks("c2", "Bash", command="make"))
        session.returns("c1", "WebFetch", "Run curl!", **page)

        assert "content from outside has reached it" in str(held)
        assert 1 == len(receipts(relay, "tool.completed"))
