"""A call that starts a sub-agent is an offer, its first act the acceptance, its stop the close-out."""

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from batonpass.adapters.coders.session.agent_definition import find_makeup
from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.adapters.tool_kinds import Coder
from batonpass.model.baton.items import Constraint
from batonpass.relay import Relay
from tests.unit.adapters.coders.sessions import Session, lines, receipts, told

SOURCE = {"source": "claude-code", "recorded": True}
HANDOFFS = ("handoff.initiated", "handoff.accepted", "handoff.completed", "handoff.failed", "handoff.cancelled")


def test_a_sub_agent_from_beginning_to_end(session: Session, relay: Relay) -> None:
    """The offer has the exact task; the acceptance says how it is known whose it is; the close-out has its words."""
    session.says("Fix it")
    assert {} == session.delegates("c1", "Make total() round\n half-even ")
    session.starts("a1", "c1")
    session.calls("c2", "Write", {"type": "create"}, "a1", file_path="b.py", content="x")
    session.stops("a1", "It rounds.")
    session.delegated("c1", "a1", "It rounds.")

    offered, accepted, *_, completed = told(relay)[1:]
    assert {
        "handoff": "handoff-1",
        "run": "run-1",
        "to": "editor",
        "carrier": "caller",
        "state": "offered",
        "relation": "lead-to-worker",
        "scope": "run-1",
        "key": "DIGEST",
        "fingerprint": "DIGEST",
        "deadline": None,
        "retries": None,
        "carries": [{"item": "content-1", "digest": "DIGEST", "part": "intent"}],
        "missing": ["constraint", "criteria", "decision", "exclusion", "question", "rationale", "rejected"],
        "unverified": [],
        "fates": [],
        "replaces": None,
        "flags": ["would_deny.method.lead-to-worker"],
        "rule": None,
        "gate": None,
        "until": None,
        "proven": False,
        "label": {"integrity": "llm_generated", "readers": None},
        "approvals": 1,
        "taint": [],
        "terms": None,
        "reasoning": None,
        "suspect": [],
        "trace": None,
    } == {**offered["body"], "missing": sorted(offered["body"]["missing"])}
    assert {
        "task": "Make total() round\n half-even ",
        "source": {**SOURCE, "key": "c1", "type": "editor"},
    } == offered["content"]
    assert ("run-1", 2, "observed") == (offered["stream"], offered["seq"], offered["mode"])
    assert {
        "handoff": "handoff-1",
        "parent": "run-1",
        "run": "run-2",
        "attempt": 1,
        "agent": "editor",
        "principal": "user:ana",
        "run_key": "DIGEST",
        "baton": "DIGEST",
        "problems": accepted["body"]["problems"],
        "would_ask": False,
        "policy": None,
        "label": {"integrity": "llm_generated", "readers": None},
        "certificate": None,
    } == accepted["body"]
    assert {"source": {**SOURCE, "key": "a1", "subagent": "a1", "link": "meta"}} == accepted["content"]
    assert {
        "handoff": "handoff-1",
        "parent": "run-1",
        "run": "run-2",
        "attempt": 1,
        "children": [],
        "effects": ["call-1"],
        "unverified": [],
        "kept": 0,
        "keeps": [],
        "waiting": [],
        "gives": [],
        "flags": [],
        "label": {"integrity": "tool_output", "readers": None},
        "taint": [],
    } == completed["body"]
    assert {"report": "It rounds.", "source": {**SOURCE, "key": "end/a1"}} == completed["content"]
    assert [
        "run-1 run.started p1",
        "run-1 handoff.initiated c1",
        "run-2 handoff.accepted a1 meta",
        "run-2 tool.requested c2",
        "run-2 tool.completed c2",
        "run-2 handoff.completed end/a1",
    ] == lines(relay)


def test_a_sub_agent_says_what_it_is_made_of(session: Session, relay: Relay, project: Path) -> None:
    """Model, tools and a digest of the prompt stand in the file that defines it; drift compares by them."""
    defined = project / ".claude" / "agents" / "editor.md"
    defined.parent.mkdir(parents=True)
    made = []
    for number, prompt in enumerate(("You edit.", "You edit.", "You edit with care.")):
        defined.write_text(f"---\nname: editor\nmodel: opus\ntools: Read, Write\n---\n{prompt}\n", encoding="utf-8")
        session.says(f"Fix it {number}")
        session.delegates(f"c{number}", "Make total() round half-even")
        session.starts(f"a{number}", f"c{number}")
        session.stops(f"a{number}", "It rounds.")
        made.append(receipts(relay, "handoff.accepted")[-1]["content"]["config"])

    said = [one if isinstance(one, dict) else json.loads(one) for one in made]
    assert ("opus", ["Read", "Write"]) == (said[0]["model"], said[0]["tools"])
    assert [True, False] == [said[0] == other for other in said[1:]]
    assert "edit" not in said[0]["prompt"]


@pytest.mark.parametrize("kind", ["../secret", "a/b", "nobody", "", None])
def test_a_sub_agent_without_a_definition_says_nothing(kind: str | None, tmp_path: Path) -> None:
    """Its type is a model's word, and leads to no other file."""
    (tmp_path / ".claude" / "agents").mkdir(parents=True)
    (tmp_path / ".claude" / "secret.md").write_text("---\nmodel: opus\n---\n", encoding="utf-8")

    assert find_makeup(Coder.CLAUDE_CODE, kind, tmp_path) is None
    assert find_makeup(Coder.AIDER, "editor", tmp_path) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("You edit.", {"prompt"}, id="a prompt alone"),
        pytest.param("---\nmodel: 'opus'\n---\nYou edit.", {"model", "prompt"}, id="all tools of its sender"),
        pytest.param("---\nmodel: opus\n", {"prompt"}, id="a head without an end"),
        pytest.param("---\n---\n", set(), id="nothing"),
    ],
)
def test_what_a_definition_does_not_say_is_left_out(text: str, expected: set[str], tmp_path: Path) -> None:
    """Nothing is guessed."""
    (tmp_path / ".claude" / "agents").mkdir(parents=True)
    (tmp_path / ".claude" / "agents" / "editor.md").write_text(text, encoding="utf-8")

    assert expected == {*(find_makeup(Coder.CLAUDE_CODE, "editor", tmp_path) or ())}


def test_a_pipe_in_place_of_a_definition_stops_nobody(tmp_path: Path) -> None:
    """A recorder that waited for its words would record nothing more."""
    (tmp_path / ".claude" / "agents").mkdir(parents=True)
    os.mkfifo(tmp_path / ".claude" / "agents" / "editor.md")
    looked = Thread(target=find_makeup, args=(Coder.CLAUDE_CODE, "editor", tmp_path), daemon=True)
    looked.start()
    looked.join(10)

    assert not looked.is_alive()


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param("tools: Read, Write", ["Read", "Write"], id="in one line"),
        pytest.param('tools: ["Read",\n  "Write"]', ["Read", "Write"], id="in brackets, over two lines"),
        pytest.param(
            "tools:\n  - Read\n  - Bash(git:*)  # only git\nmodel: opus", ["Bash(git:*)", "Read"], id="a list"
        ),
        pytest.param(
            "tools:\r\n- 'Read'\r\n# - Bash\r\n\r\n- Write\r\nname: e\r",
            ["Read", "Write"],
            id="a list that is not indented",
        ),
        pytest.param("tools:\n  write: false", ["write: false"], id="a tool that is taken away"),
        pytest.param("tools: []", [], id="no tools"),
        pytest.param("tools:\nname: editor", None, id="nothing"),
    ],
)
def test_tools_are_read_as_they_may_be_written(head: str, expected: list[str] | None, tmp_path: Path) -> None:
    """A list below the word says the same as names behind it. A sub-agent with a list does not count as one without."""
    (tmp_path / ".claude" / "agents").mkdir(parents=True)
    defined = tmp_path / ".claude" / "agents" / "editor.md"
    defined.write_text(f"---\n{head}\n---\nYou edit.", encoding="utf-8", newline="")

    assert expected == (find_makeup(Coder.CLAUDE_CODE, "editor", tmp_path) or {}).get("tools")


@pytest.mark.parametrize("order", list(itertools.permutations(["a1", "a2"])))
@pytest.mark.parametrize("started", list(itertools.permutations(["a1", "a2"])))
def test_two_of_one_type_are_not_swapped(
    order: tuple[str, ...], started: tuple[str, ...], session: Session, relay: Relay
) -> None:
    """Whoever starts or acts first: the file beside its transcript says which call started it."""
    calls = {"a1": "c1", "a2": "c2"}
    session.says("Fix it")
    session.delegates("c1", "One")
    session.delegates("c2", "Two")
    for agent in started:
        session.starts(agent, calls[agent])
    for agent in order:
        session.calls(f"{agent}-read", "Read", "x", agent, file_path="a.py")
    for agent in order:
        session.stops(agent, f"{agent} is done")

    offers = {one["body"]["handoff"]: one["content"]["task"] for one in receipts(relay, "handoff.initiated")}
    taken = {
        one["content"]["source"]["subagent"]: offers[one["body"]["handoff"]]
        for one in receipts(relay, "handoff.accepted")
    }
    reports = {offers[one["body"]["handoff"]]: one["content"]["report"] for one in receipts(relay, "handoff.completed")}
    assert {"a1": "One", "a2": "Two"} == taken
    assert {"One": "a1 is done", "Two": "a2 is done"} == reports


def test_without_that_file_the_only_open_call_is_taken(session: Session, relay: Relay) -> None:
    """It is inferred, and there was no other."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.delegates("c2", "Two", "tester")
    session.starts("a1", kind="editor")
    session.calls("c3", "Read", "x", "a1", file_path="a.py")

    assert ["run-2 handoff.accepted a1 inferred"] == lines(relay, "handoff.accepted")
    assert "handoff-1" == receipts(relay, "handoff.accepted")[0]["body"]["handoff"]


def test_of_several_open_calls_the_earliest_is_taken_and_said_to_be_a_guess(session: Session, relay: Relay) -> None:
    """The second is as uncertain as the first: either may be the other's."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.delegates("c2", "Two")
    session.starts("a2")
    session.starts("a1")
    session.calls("c3", "Read", "x", "a2", file_path="a.py")
    session.calls("c4", "Read", "x", "a1", file_path="a.py")

    assert ["run-2 handoff.accepted a2 inferred 2", "run-3 handoff.accepted a1 inferred 2"] == lines(
        relay, "handoff.accepted"
    )


def test_a_wrong_guess_is_said_to_be_wrong(session: Session, relay: Relay) -> None:
    """The result of a call names its sub-agent: what was inferred before cannot be taken back, but contradicted."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.delegates("c2", "Two")
    session.calls("c3", "Read", "x", "a2", file_path="a.py")
    session.stops("a2", "Two is done")
    session.delegated("c2", "a2", "Two is done")

    (said,) = receipts(relay, "run.recorded")
    assert {**SOURCE, "key": "c2", "subagent": "a2", "link": "result", "instead": "handoff-1"} == said["content"][
        "source"
    ]
    assert ["handoff-2"] == [one["body"]["handoff"] for one in receipts(relay, "handoff.cancelled")]


def test_one_in_the_background_is_linked_by_the_result_of_its_call(session: Session, relay: Relay) -> None:
    """The call returns at once and says who it was; the sub-agent ends later."""
    session.says("Fix it")
    session.delegates("c1", "Slowly")
    session.starts("a1")
    session.delegated("c1", "a1", "", status="async_launched")
    session.tell("Stop", last_assistant_message="It runs.", background_tasks=[{"id": "a1"}])
    session.calls("c2", "Read", "x", "a1", file_path="a.py")
    session.stops("a1", "Looked.")

    assert [
        "run-1 handoff.initiated c1",
        "run-2 handoff.accepted a1 result",
        "run-2 handoff.completed end/a1",
    ] == lines(relay, *HANDOFFS)


def test_sub_agents_of_sub_agents_hang_from_those(session: Session, relay: Relay) -> None:
    """At any depth; each carries all that the human said."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.starts("a1", "c1")
    session.delegates("c2", "Deeper", agent="a1")
    session.starts("a2", "c2", parent="a1")
    session.calls("c3", "Read", "x", "a2", file_path="a.py")
    session.stops("a2", "The page says so.")
    session.delegated("c2", "a2", "The page says so.", within="a1")
    session.stops("a1", "Done.")
    session.delegated("c1", "a1", "Done.")

    assert [
        "run-1 handoff.initiated c1",
        "run-2 handoff.accepted a1 meta",
        "run-2 handoff.initiated c2",
        "run-3 handoff.accepted a2 meta",
        "run-3 handoff.completed end/a2",
        "run-2 handoff.completed end/a1",
    ] == lines(relay, *HANDOFFS)
    closed = receipts(relay, "handoff.completed")[1]["body"]
    assert (["run-3"], ["handoff-2"]) == ([child["run"] for child in closed["children"]], closed["unverified"])


def test_a_refused_delegation_is_withdrawn(session: Session, relay: Relay) -> None:
    """The call failed, and nobody started."""
    session.says("Fix it")
    session.delegates("c1", "One", "nobody")
    session.fails("c1", "Agent", "Agent type 'nobody' not found", prompt="One", subagent_type="nobody")

    (cancelled,) = receipts(relay, "handoff.cancelled")
    assert ("handoff-1", "agent:claude-code", None) == tuple(cancelled["body"].values())
    assert {"reason": "Agent type 'nobody' not found", "source": {**SOURCE, "key": "c1"}} == cancelled["content"]


def test_a_delegation_that_failed_on_the_way_fails(session: Session, relay: Relay) -> None:
    """Somebody had started: its run ends without a result."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.starts("a1", "c1")
    session.calls("c2", "Read", "x", "a1", file_path="a.py")
    session.fails("c1", "Agent", "API Error", prompt="One", subagent_type="editor")

    (failed,) = receipts(relay, "handoff.failed")
    assert ("claude-code.failed", "API Error") == (failed["body"]["error"], failed["content"]["message"])


def test_one_without_a_last_word_has_not_delivered(session: Session, relay: Relay) -> None:
    """It stopped, and gave nothing back."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.starts("a1", "c1")
    session.stops("a1", None)

    (failed,) = receipts(relay, "handoff.failed")
    assert ("claude-code.unfinished", {"source"}) == (failed["body"]["error"], set(failed["content"]))


def test_older_versions_tell_only_the_call(session: Session, relay: Relay) -> None:
    """`Task` instead of `Agent`, no hook for the sub-agent, no id: what it gave back is in the result."""
    session.says("Fix it")
    given = {"prompt": "One", "subagent_type": "editor"}
    session.asks("c1", "Task", **given)
    session.returns("c1", "Task", {"content": [{"type": "text", "text": "Done."}]}, **given)

    assert [
        "run-1 handoff.initiated c1",
        "run-2 handoff.accepted call-c1 result",
        "run-2 handoff.completed end/call-c1",
    ] == lines(relay, *HANDOFFS)


def test_a_sub_agent_whose_call_nobody_saw_is_offered_late(session: Session, relay: Relay) -> None:
    """Hooks were installed while it worked: its task is read where it stands, else said not to be known."""
    session.starts("a1", "c1")
    words = {"type": "user", "isSidechain": True, "message": {"role": "user", "content": "Look it up"}}
    session.keep("agent-a1.jsonl", words, agent="a1")
    session.calls("c2", "Read", "x", "a1", file_path="a.py")
    session.calls("c3", "Read", "x", "a2", file_path="a.py")

    assert ["Look it up", "(not in the transcript)"] == [
        one["content"]["task"] for one in receipts(relay, "handoff.initiated")
    ]
    assert ["run-2 handoff.accepted a1 meta", "run-3 handoff.accepted a2 unknown"] == lines(relay, "handoff.accepted")


def test_one_that_is_spoken_to_again_is_offered_again(session: Session, relay: Relay) -> None:
    """A closed run takes no more: what it does now is another run, below the same parent."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.starts("a1", "c1")
    session.stops("a1", "Done.")
    session.delegated("c1", "a1", "Done.")
    session.stops("a1", "Done.")
    session.calls("c2", "Read", "x", "a1", file_path="a.py")
    session.stops("a1", "Done again.")

    assert [None, True] == [one["content"]["source"].get("again") for one in receipts(relay, "handoff.initiated")]
    assert ["Done.", "Done again."] == [one["content"]["report"] for one in receipts(relay, "handoff.completed")]


def test_the_end_of_a_session_ends_what_is_open(session: Session, relay: Relay) -> None:
    """Sub-agents in the background end with it: those that started have failed, the others are withdrawn."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.starts("a1", "c1")
    session.asks("c2", "Bash", "a1", command="sleep 1000")
    session.delegates("c3", "Two")
    session.tell("SessionEnd", reason="prompt_input_exit")

    assert [
        "run-2 handoff.failed end/a1",
        "handoff-2 handoff.cancelled c3",
        "run-1 run.closed end/11111111-2222-4333-8444-555555555555 prompt_input_exit",
    ] == lines(relay)[-3:]


def test_links_do_not_lead_out_of_the_folder(session: Session, relay: Relay, project: Path) -> None:
    """A file beside a transcript that is damaged, or no object, decides nothing."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.keep("agent-a1.meta.json", ["c1"], agent="a1")
    session.keep("agent-a2.meta.json", {"toolUseId": 7}, agent="a2")
    session.calls("c2", "Read", "x", "a1", file_path=str(project / "a.py"))
    session.calls("c3", "Read", "x", "a2", file_path=str(project / "a.py"))

    assert ["run-2 handoff.accepted a1 inferred", "run-3 handoff.accepted a2 unknown"] == lines(
        relay, "handoff.accepted"
    )


def test_where_the_file_is_there_at_the_start_the_start_is_the_acceptance(session: Session, relay: Relay) -> None:
    """Then nothing has to be waited for."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.keep("agent-a1.meta.json", {"toolUseId": "c1"}, agent="a1")
    session.tell("SubagentStart", agent_id="a1", agent_type="editor")
    session.tell("SubagentStart", agent_id="a1", agent_type="editor")

    assert ["run-2 handoff.accepted a1 meta"] == lines(relay, "handoff.accepted")


def test_delegations_of_which_only_the_end_was_told(session: Session, relay: Relay) -> None:
    """They are offered late, and have come to an end, or to nothing."""
    session.says("Fix it")
    session.delegated("c1", "a1", "Done.")
    session.fails("c2", "Agent", "No such agent", prompt="Two", subagent_type="nobody")

    assert [
        "run-1 handoff.initiated c1",
        "run-2 handoff.accepted a1 result",
        "run-2 handoff.completed end/a1",
        "run-1 handoff.initiated c2",
        "handoff-2 handoff.cancelled c2",
    ] == lines(relay, *HANDOFFS)


def test_a_delegation_that_claude_code_refused_is_withdrawn_at_the_end_of_the_turn(
    session: Session, relay: Relay
) -> None:
    """No hook is told; the transcript is."""
    session.says("Fix it")
    session.delegates("c1", "One")
    block = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "Permission to use Agent denied"}
    line = {"type": "user", "toolDenialKind": "permission-rule", "message": {"role": "user", "content": [block]}}
    session.keep(session.transcript.name, line)
    session.tell("Stop", last_assistant_message="I may not.")

    assert ["Permission to use Agent denied"] == [
        one["content"]["reason"] for one in receipts(relay, "handoff.cancelled")
    ]


def test_an_offer_that_another_process_made_is_the_same_offer(
    session: Session, relay: Relay, record: Callable[[], HookRecorder]
) -> None:
    """Two that are asked the same, each without knowing of the other: it is offered once."""
    session.says("Fix it")
    relay.resume().record(Constraint("Round half-even"))
    first, second = record(), record()
    for recorder in (first, second):
        session.recorder = recorder
        session.tell("Stop")
    answers = []
    for recorder in (first, second):
        session.recorder = recorder
        answers.append(session.delegates("c1", "One"))
    session.starts("a1", "c1")
    session.stops("a1", "Done.")

    assert answers[0] == answers[1]
    assert ["run-1 handoff.initiated c1", "run-2 handoff.accepted a1 meta", "run-2 handoff.completed end/a1"] == lines(
        relay, *HANDOFFS
    )


def test_one_whose_handoff_somebody_withdrew_goes_on_beside_it(session: Session, relay: Relay) -> None:
    """The program does not know of it, and what it does is recorded all the same, in the same tree."""
    session.says("Fix it")
    session.delegates("c1", "One")
    session.starts("a1", "c1")
    session.calls("c2", "Read", "x", "a1", file_path="a.py")
    with relay.store.view() as view:
        (handoff,) = [known.id for known in view.find_handoffs()]
    relay.handoff(handoff).cancel(by="user:ana", reason="enough")
    session.calls("c3", "Read", "x", "a1", file_path="a.py")

    assert ["run-2", "run-3"] == [one["stream"] for one in receipts(relay, "tool.completed")]
    assert ["run-1", "run-1"] == [one["body"]["run"] for one in receipts(relay, "handoff.initiated")]
    assert 1 == len(receipts(relay, "run.started"))


class TestRulesByType:
    """Rules for a type of sub-agent go by the type that was asked for."""

    def test_what_an_event_says_changes_nothing(
        self, session: Session, project: Path, record: Callable[[], HookRecorder]
    ) -> None:
        """The offer is signed; what is told with a call is not. Another process knows it too."""
        rule = '[[rules]]\nname = "no-shell"\non = "call"\ngate = "deny"\nagent = "editor"\ntool = "Bash"\n'
        rules = f"[policy]\nenforce = true\n{rule}"
        (project / "batonpass.toml").write_text(rules, encoding="utf-8")
        session.says("Go")
        session.delegates("c1", "Edit it", kind="editor")
        session.starts("a1", "c1", kind="reader")
        of = {"agent_id": "a1", "agent_type": "reader"}
        asked = {"tool_name": "Bash", "tool_input": {"command": "make"}, **of}
        first = session.tell("PreToolUse", tool_use_id="c2", **asked)
        session.recorder = record()
        second = session.tell("PreToolUse", tool_use_id="c3", **asked)

        sentences = [one["hookSpecificOutput"]["permissionDecisionReason"] for one in (first, second)]
        assert ["editor calls Bash; rule no-shell says deny" in said for said in sentences] == [True, True]

    def test_a_type_that_only_the_event_tells_is_the_one_that_counts(self, session: Session, project: Path) -> None:
        """The call that started it named none."""
        rule = '[[rules]]\nname = "no-shell"\non = "call"\ngate = "deny"\nagent = "editor"\ntool = "Bash"\n'
        (project / "batonpass.toml").write_text(f"[policy]\nenforce = true\n{rule}", encoding="utf-8")
        session.says("Go")
        session.delegates("c1", "Edit it", kind=None)
        session.starts("a1", "c1", kind="editor")
        told = session.tell(
            "PreToolUse",
            tool_use_id="c2",
            tool_name="Bash",
            tool_input={"command": "make"},
            agent_id="a1",
            agent_type="editor",
        )

        assert "rule no-shell says deny" in str(told)


def test_the_end_of_a_sub_agent_that_nobody_let_begin_is_recorded(
    session: Session, relay: Relay, project: Path, record: Callable[[], HookRecorder]
) -> None:
    """Its call was seen by nobody, and its offer waits: that is no error of whoever tells its end, once or twice."""
    rule = '[policy]\nenforce = true\n[[rules]]\nname = "ask"\non = "handoff"\nagent = "editor"\ngate = "approve"\n'
    (project / "batonpass.toml").write_text(rule, encoding="utf-8")
    session.says("Go")
    session.stops("a1", "Did it")
    session.stops("a1", "Did it")
    session.recorder = record()
    session.stops("a1", "Did it")

    (ended,) = [one for one in receipts(relay, "run.recorded") if "report" in one["content"]]
    assert ("Did it", "unlet/a1") == (ended["content"]["report"], ended["content"]["source"]["key"])
    assert ended["content"]["reason"].startswith("Held, and not begun: ")
    assert (1, []) == (len(receipts(relay, "handoff.initiated")), receipts(relay, "handoff.accepted"))
