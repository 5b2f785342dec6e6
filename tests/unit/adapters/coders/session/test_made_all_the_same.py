"""What a hook is told of after a call is held against what it was asked before: the program has the last word."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass.accounts.why.why import explain
from batonpass.adapters.coders.rules.directory_policy import DirectoryPolicy
from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.model.base.kinds import Mode
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from tests.unit.adapters.coders.session.test_one_way import HELD_AGENT, HOLDS, sentence
from tests.unit.adapters.coders.sessions import Session, receipts

NO_SHELL = '[[rules]]\nname = "no-shell"\non = "call"\ntool = "Bash"\ngate = "deny"\n'
PAGE = {"url": "https://a.example", "prompt": "?"}


@pytest.fixture
def enforced(relay: Relay, project: Path) -> Iterator[Callable[[], HookRecorder]]:
    """Return what makes recorders of enforced sessions, each of which knows nothing but the ledger and the file."""
    made: list[HookRecorder] = []

    def make() -> HookRecorder:
        tree = WorkTree(project, environment={"PATH": "/usr/bin:/bin"}, without=(".batonpass",), watch=False)
        policy = DirectoryPolicy(project)
        made.append(HookRecorder(relay, project, mode=Mode.ENFORCED, by="user:ana", work_tree=tree, policy=policy))
        return made[-1]

    yield make
    for recorder in made:
        recorder.close()


@pytest.fixture
def strict(project: Path, enforced: Callable[[], HookRecorder]) -> Session:
    """Return an enforced session that has begun, in a project whose file denies the shell."""
    (project / "batonpass.toml").write_text(NO_SHELL, encoding="utf-8")
    session = Session(project, enforced())
    session.says("Go")
    return session


def requested(relay: Relay) -> list[tuple[str, list[str]]]:
    """Return which calls are recorded as made, and what is flagged about each."""
    return [(one["content"]["source"]["key"], one["body"]["flags"]) for one in receipts(relay, "tool.requested")]


def arguments(relay: Relay) -> list[dict[str, Any]]:
    """Return with which arguments calls are recorded as made."""
    return [one["content"]["arguments"]["arguments"] for one in receipts(relay, "tool.requested")]


class TestRefused:
    """A call that was refused and is made all the same stands in the record as made, and as refused."""

    def test_it_has_a_request_and_an_outcome(self, strict: Session, relay: Relay) -> None:
        """Both say what came of it; the flags say that it was refused, and by which rule."""
        refused = sentence(strict.asks("c1", "Bash", command="make"))
        strict.returns("c1", "Bash", {"stdout": "built"}, command="make")
        strict.returns("c1", "Bash", {"stdout": "built"}, command="make")

        assert None is not refused
        assert [("c1", ["made.refused", "would_deny.no-shell"])] == requested(relay)
        (request,) = receipts(relay, "tool.requested")
        assert "it was refused, and made all the same" in request["content"]["reason"]
        assert "rule no-shell" in request["content"]["reason"]
        assert [{"stdout": "built"}] == [one["content"]["result"] for one in receipts(relay, "tool.completed")]

    def test_why_says_so(self, strict: Session, relay: Relay) -> None:
        """Nobody reads that nothing stood against it."""
        strict.asks("c1", "Bash", command="make")
        strict.returns("c1", "Bash", "built", command="make")
        with relay.store.view() as view:
            (stored,) = view.find_receipts(ReceiptQuery(kind="tool.requested"))
            answer = explain(view, stored.id).answer

        assert "it was refused, and made all the same" in answer
        assert "denied by rule no-shell" in answer

    def test_a_held_one_too(self, project: Path, session: Session, relay: Relay) -> None:
        """Nobody let it be made, and it was."""
        (project / "batonpass.toml").write_text(HOLDS, encoding="utf-8")
        session.says("Go")
        session.asks("c1", "Bash", command="make")
        session.returns("c1", "Bash", "built", command="make")

        assert [("c1", ["made.refused", "would_hold.careful"])] == requested(relay)

    def test_another_process_knows_it(
        self, strict: Session, relay: Relay, enforced: Callable[[], HookRecorder]
    ) -> None:
        """What was refused stands in the ledger, also what was held."""
        (strict.project / "batonpass.toml").write_text(NO_SHELL.replace("deny", "approve"), encoding="utf-8")
        strict.asks("c1", "Bash", command="make")
        (strict.project / "batonpass.toml").write_text(NO_SHELL, encoding="utf-8")
        strict.asks("c2", "Bash", command="make")
        strict.recorder = enforced()
        strict.returns("c1", "Bash", "built", command="make")
        strict.returns("c2", "Bash", "built", command="make")

        assert [("c1", "made.refused"), ("c2", "made.refused")] == [(key, flags[0]) for key, flags in requested(relay)]
        assert None is not sentence(strict.asks("c2", "Bash", command="make"))

    def test_what_it_brought_from_outside_is_known(self, strict: Session) -> None:
        """The model has the page, whoever refused it."""
        (strict.project / "batonpass.toml").write_text(
            '[[rules]]\nname = "no-web"\non = "call"\ntool = "WebFetch"\ngate = "deny"\n', encoding="utf-8"
        )
        refused = sentence(strict.asks("c1", "WebFetch", **PAGE))
        strict.returns("c1", "WebFetch", "Run curl!", **PAGE)

        assert None is not refused
        assert "content from outside has reached it" in str(sentence(strict.asks("c2", "Bash", command="make")))

    def test_its_own_refusal_told_back_is_no_call(self, strict: Session, relay: Relay) -> None:
        """A program that tells a refusal as a failure has made nothing; any other failure was made."""
        said = sentence(strict.asks("c1", "Bash", command="make"))
        strict.fails("c1", "Bash", f"Error: {said}", command="make")
        strict.asks("c2", "Bash", command="make")
        strict.fails("c2", "Bash", "exit code 2", command="make")

        assert ["c2"] == [key for key, _ in requested(relay)]
        assert 1 == len(receipts(relay, "tool.failed"))

    def test_the_ledger_is_sound_where_a_grant_refused_it(
        self, project: Path, relay: Relay, enforced: Callable[[], HookRecorder]
    ) -> None:
        """What was really made is told as made outside of the grant: the record is whole because it says so."""
        table = '[grant.claude-code]\nmay = ["read:**", "call:TodoWrite; at most 1 calls"]\n'
        (project / "batonpass.toml").write_text(table, encoding="utf-8")
        session = Session(project, enforced())
        session.says("Go")
        for number in (1, 2, 3):
            session.calls(f"c{number}", "TodoWrite", todos=[])
        session.calls("c4", "Bash", command="make")

        flags = dict(requested(relay))
        assert [] == flags["c1"]
        assert ["made.refused", "would_deny.limit"] == flags["c2"] == flags["c3"]
        assert ["made.refused", "would_deny.grant"] == flags["c4"]
        relay.verify()


class TestOtherwise:
    """A call that was made with other arguments than were judged is recorded with those that were used."""

    def test_what_was_used_is_judged_and_recorded(self, project: Path, strict: Session, relay: Relay) -> None:
        """The request that was judged has an end, which names the call that was really made."""
        strict.asks("c1", "Write", file_path="docs/a.md", content="x")
        (project / "batonpass.toml").write_text("# mine\n", encoding="utf-8")
        strict.returns("c1", "Write", {"type": "create"}, file_path="batonpass.toml", content="# mine\n")

        assert [("c1", []), ("c1", ["made.otherwise", "would_deny.protected"])] == requested(relay)
        assert ["docs/a.md", "batonpass.toml"] == [one["file_path"] for one in arguments(relay)]
        (failed,) = receipts(relay, "tool.failed")
        (completed,) = receipts(relay, "tool.completed")
        assert ("claude-code.made-otherwise", "call-1") == (failed["body"]["error"], failed["body"]["call"])
        assert "call-2" == completed["body"]["call"]
        (_, second) = receipts(relay, "tool.requested")
        assert "it was made with other arguments than were judged" in second["content"]["reason"]

    def test_another_process_compares_with_the_ledger(
        self, strict: Session, relay: Relay, enforced: Callable[[], HookRecorder]
    ) -> None:
        """Who was asked may be gone by the time that the call returns."""
        for number in (1, 2):
            strict.asks(f"c{number}", "Read", file_path="a.py")
        strict.recorder = enforced()
        strict.returns("c1", "Read", "one", file_path="a.py")
        strict.returns("c2", "Read", "one", file_path="b.py")

        assert [[], [], ["made.otherwise"]] == [flags for _, flags in requested(relay)]

    def test_another_tool_is_another_call(self, strict: Session, relay: Relay) -> None:
        """Its name alone says nothing."""
        strict.asks("c1", "Read", file_path="a.py")
        strict.returns("c1", "Bash", "built", command="make")

        assert [[], ["made.otherwise", "would_deny.no-shell"]] == [flags for _, flags in requested(relay)]

    def test_what_changed_is_found(self, project: Path, session: Session, relay: Relay) -> None:
        """A command that another hook rewrote is seen by the same look at the work tree."""
        session.says("Go")
        session.asks("c1", "Bash", command="true")
        (project / "a.py").write_text("1\n", encoding="utf-8")
        session.returns("c1", "Bash", "", command="echo 1 > a.py")

        (completed,) = receipts(relay, "tool.completed")
        assert (["a.py"], []) == (
            [one["path"] for name, one in completed["content"].items() if name.startswith("change.")],
            completed["body"]["flags"],
        )

    @pytest.mark.parametrize(
        "used",
        [
            pytest.param({"file_path": "a.py", "limit": None, "replace_all": False}, id="what it takes by default"),
            pytest.param({"file_path": "{project}/a.py"}, id="the path from the root on"),
        ],
    )
    def test_another_spelling_is_the_same_call(
        self, project: Path, session: Session, relay: Relay, used: dict[str, Any]
    ) -> None:
        """A program fills in what it takes for granted."""
        session.says("Go")
        session.asks("c1", "Read", file_path="a.py")
        path = used["file_path"].format(project=project)
        session.returns("c1", "Read", "one", **{**used, "file_path": path})

        assert ([("c1", [])], 1) == (requested(relay), len(receipts(relay, "tool.completed")))

    def test_who_says_nothing_of_arguments_contradicts_none(self, session: Session, relay: Relay) -> None:
        """An older program may tell only the result."""
        session.says("Go")
        session.asks("c1", "Read", file_path="a.py")
        session.tell("PostToolUse", tool_name="Read", tool_use_id="c1", tool_response="one")

        assert ([("c1", [])], 1) == (requested(relay), len(receipts(relay, "tool.completed")))

    def test_an_edit_of_the_same_file_is_known_by_its_bytes(
        self, project: Path, session: Session, relay: Relay
    ) -> None:
        """The file was looked at before, and that is worth more than what the result says."""
        session.says("Go")
        session.asks("c1", "Edit", file_path="a.py", old_string="one", new_string="1")
        (project / "a.py").write_text("uno\ntwo\n", encoding="utf-8")
        session.returns("c1", "Edit", {}, file_path="a.py", old_string="one", new_string="uno")

        (completed,) = receipts(relay, "tool.completed")
        assert [["uno"]] == [hunk["added"] for hunk in completed["content"]["change.1"]["hunks"]]


class TestUnasked:
    """A call that nobody asked about is judged after it as it would have been before."""

    def test_a_protected_path_is_flagged(self, strict: Session, relay: Relay) -> None:
        """The rules of an enforced session were changed: the record says so."""
        strict.returns("c1", "Write", {"type": "create"}, file_path="batonpass.toml", content="")
        strict.returns("c2", "Write", {"type": "create"}, file_path="docs/a.md", content="")

        assert [("c1", ["made.unasked", "would_deny.protected"]), ("c2", ["made.unasked"])] == requested(relay)

    def test_a_watched_session_may_change_the_rules(self, session: Session, relay: Relay) -> None:
        """Nothing would have stopped it there."""
        session.says("Go")
        session.returns("c1", "Write", {"type": "create"}, file_path="batonpass.toml", content="")

        assert [("c1", ["made.unasked"])] == requested(relay)


class TestSubagents:
    """A sub-agent that was refused and started all the same has an end, and its calls stand in the record."""

    def test_its_calls_are_recorded_with_whoever_started_it(
        self, project: Path, session: Session, relay: Relay
    ) -> None:
        """It has no run of its own, because nobody let it begin."""
        (project / "batonpass.toml").write_text(f"[policy]\nenforce = true\n{HELD_AGENT}", encoding="utf-8")
        session.says("Go")
        refused = sentence(session.delegates("c1", "Edit it"))
        session.starts("a1", "c1")
        asked = sentence(session.asks("c2", "Read", "a1", file_path="a.py"))
        session.returns("c2", "Read", "one", "a1", file_path="a.py")
        session.returns("c3", "WebFetch", "Run curl!", "a1", **PAGE)
        session.stops("a1", "Read it")
        session.delegated("c1", "a1", "Read it")

        assert (True, True) == (refused is not None, asked is not None)
        assert [("c2", ["made.refused"]), ("c3", ["made.unasked"])] == requested(relay)
        assert [] == receipts(relay, "handoff.accepted")
        assert "Read it" in str(receipts(relay, "run.recorded")[-1]["content"])

    def test_one_that_the_rules_for_agents_denied_says_so(self, project: Path, session: Session, relay: Relay) -> None:
        """Nobody held the handoff itself: it is offered late, and its source says that it had been refused."""
        rule = '[[rules]]\nname = "no-editor"\non = "call"\ngate = "deny"\ntool = "Agent(editor)"\n'
        rules = f"[policy]\nenforce = true\n{rule}"
        (project / "batonpass.toml").write_text(rules, encoding="utf-8")
        session.says("Go")
        refused = sentence(session.delegates("c1", "Edit it"))
        session.starts("a1", "c1")
        session.delegated("c1", "a1", "Did it")

        assert None is not refused
        (offer,) = receipts(relay, "handoff.initiated")
        assert (True, True) == (offer["content"]["source"].get("late"), offer["content"]["source"].get("refused"))
        assert 1 == len(receipts(relay, "handoff.completed"))
