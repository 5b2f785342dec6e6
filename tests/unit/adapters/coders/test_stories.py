"""Sessions of real agents, played again: who did what, by whom they were asked, and who wrote each line."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.adapters.tool_kinds import Coder
from batonpass.relay import Relay
from tests.unit.adapters.coders.sessions import lines, receipts
from tests.unit.adapters.coders.stories import begin_project, maker_of, payloads, play, teller

TASK = "PARENT-TASK: edit things"
CHILD_TASK = "CHILD-TASK: make alpha upper case"
STORIES = {
    "codex": Coder.CODEX,
    "codex6": Coder.CODEX,
    "copilot": Coder.COPILOT,
    "qwen": Coder.QWEN,
    "gemini": Coder.GEMINI,
    "opencode": Coder.OPENCODE,
    "cursor": Coder.CURSOR,
    "droid": Coder.DROID,
    "cline": Coder.CLINE,
}
# Of these, one thing is never told: the words of the user.
SILENT = {"cline"}


@pytest.fixture
def play_story(project: Path, record: Callable[[], HookRecorder]) -> Callable[[str, Coder], list[Mapping[str, Any]]]:
    """Return what plays a session to the hooks of an agent."""
    begin_project(project)

    def play_it(name: str, hook_of: Coder) -> list[Mapping[str, Any]]:
        return play(STORIES[name], payloads(name, project), project, teller(record(), hook_of))

    return play_it


@pytest.mark.parametrize("name", STORIES)
def test_each_line_has_its_author(
    name: str, play_story: Callable[[str, Coder], object], relay: Relay, project: Path
) -> None:
    """The main conversation wrote what it wrote, and its sub-agent the rest, by the tasks that they were given."""
    play_story(name, STORIES[name])

    places = (("a.py", 2), ("b.txt", 2), ("b.txt", 1))
    edited, changed, below = (maker_of(relay, project / file, line) for file, line in places)
    assert (str(STORIES[name]),) * 2 == (edited.run.agent, changed.run.agent)
    assert None is edited.run.parent
    assert edited.run.id == below.run.parent
    assert CHILD_TASK == below.hops[0].task.words if below.hops[0].task else None
    words = [] if name in SILENT else [TASK]
    told = [one["content"].get("intent", "").strip('"') for one in receipts(relay, "run.started")]
    assert words == [one for one in told if one]


@pytest.mark.parametrize("name", STORIES)
def test_nothing_is_missed_or_recorded_twice(
    name: str, play_story: Callable[[str, Coder], object], relay: Relay
) -> None:
    """There is one root and one sub-agent, each call once, and no gap."""
    play_story(name, STORIES[name])

    kinds = [one["kind"] for one in receipts(relay, "run.started") + receipts(relay, "handoff.accepted")]
    assert ["run.started", "handoff.accepted"] == kinds
    assert [] == lines(relay, "run.gap")
    made = [one["content"]["source"]["key"] for one in receipts(relay, "tool.requested")]
    assert sorted(set(made)) == sorted(made)
    assert (0 if name in SILENT else 1) == len(receipts(relay, "tool.denied"))


@pytest.mark.parametrize("name", [name for name in STORIES if name not in SILENT])
def test_a_call_is_denied_in_the_words_of_its_agent(
    name: str, play_story: Callable[[str, Coder], list[Mapping[str, Any]]]
) -> None:
    """The rule of this directory is about Bash, and applies to every agent's shell."""
    (answer,) = play_story(name, STORIES[name])

    sentence = f"{answer}"
    assert "no-denials" in sentence
    if name == "cursor":
        assert ("deny", True) == (answer["permission"], "Denied" in answer["agent_message"])
    elif name == "gemini":
        assert ("deny", True) == (answer["decision"], "Denied" in answer["reason"])
    else:
        assert "deny" == answer["hookSpecificOutput"]["permissionDecision"]


def test_copilot_is_recorded_as_itself_by_the_hooks_of_claude_code(
    play_story: Callable[[str, Coder], list[Mapping[str, Any]]], relay: Relay, project: Path
) -> None:
    """Copilot CLI runs `.claude/settings.json`: nothing is credited to Claude Code, no gap, the same rules."""
    (answer,) = play_story("copilot", Coder.CLAUDE_CODE)

    assert ["copilot"] == [one["body"]["agent"] for one in receipts(relay, "run.started")]
    assert [] == lines(relay, "run.gap")
    assert "deny" == answer["hookSpecificOutput"]["permissionDecision"]
    assert "copilot" == maker_of(relay, project / "b.txt", 2).run.agent


@pytest.mark.parametrize("first", [Coder.COPILOT, Coder.CLAUDE_CODE], ids=["its own first", "the others' first"])
def test_a_call_that_two_files_of_hooks_tell_is_recorded_once(
    first: Coder, record: Callable[[], HookRecorder], relay: Relay, project: Path
) -> None:
    """With our hooks in Copilot CLI's settings and in Claude Code's, each event comes twice, and counts once."""
    begin_project(project)
    recorder = record()
    second = Coder.CLAUDE_CODE if first is Coder.COPILOT else Coder.COPILOT

    def tell(raw: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = recorder.handle(raw, first)
        assert answer == recorder.handle(raw, second, frozenset({"COPILOT_CLI"}))
        return answer

    play(Coder.COPILOT, payloads("copilot", project), project, tell)

    once = ["Read", "Edit", "Bash", "Bash"]
    assert len(once) == len(receipts(relay, "tool.requested"))
    assert 1 == len(receipts(relay, "tool.denied")) == len(receipts(relay, "run.started"))
    assert 1 == len(receipts(relay, "handoff.initiated"))


def test_calls_without_ids_are_marked_as_inferred(play_story: Callable[[str, Coder], object], relay: Relay) -> None:
    """Whoever reads the record sees that the agent gave the call no id."""
    play_story("gemini", Coder.GEMINI)

    told = [one["content"]["source"] for one in receipts(relay, "tool.requested")]
    assert {True} == {source["inferred"] for source in told}
    assert {True} == {source["key"].startswith("inferred-") for source in told}


def test_a_recorder_that_takes_over_finds_the_call_without_an_id(
    record: Callable[[], HookRecorder], relay: Relay, project: Path
) -> None:
    """The result of a call that another process saw begin belongs to that call."""
    begin_project(project)

    play(Coder.GEMINI, payloads("gemini", project), project, lambda raw: record().handle(raw, Coder.GEMINI))

    assert len(receipts(relay, "tool.requested")) == len(receipts(relay, "tool.completed"))
    assert [] == lines(relay, "run.gap")


def test_calls_of_concurrent_sub_agents_that_look_alike_are_credited_to_none_of_them(
    record: Callable[[], HookRecorder], relay: Relay, project: Path
) -> None:
    """Gemini CLI does not say which of two sub-agents makes a call: the record says how many it may have been."""
    begin_project(project)
    recorder = record()
    for raw in payloads("gemini", project):
        if raw.get("tool_name") == "invoke_agent" and raw["hook_event_name"] == "BeforeTool":
            other = {**raw, "tool_input": {**raw["tool_input"], "prompt": "another"}}
            recorder.handle({**other, "timestamp": "later"}, Coder.GEMINI)
        recorder.handle(raw, Coder.GEMINI)

    (asked,) = [one for one in receipts(relay, "tool.requested") if "alpha" in str(one["content"]["arguments"])]
    (root,) = receipts(relay, "run.started")
    assert (root["stream"], 2) == (asked["stream"], asked["content"]["source"]["among"])


MODELS = {"codex": "gpt-5.5", "codex6": "gpt-6-sol", "cursor": "m"}


@pytest.mark.parametrize("name", STORIES)
def test_a_model_that_is_told_with_the_call_is_kept(
    name: str, play_story: Callable[[str, Coder], object], relay: Relay, project: Path
) -> None:
    """One that is told only when a session begins is not: a user may change it meanwhile."""
    play_story(name, STORIES[name])
    edited, below = (maker_of(relay, project / file, line) for file, line in (("a.py", 2), ("b.txt", 1)))

    assert edited.source is not None
    assert below.source is not None
    assert (MODELS.get(name), MODELS.get(name)) == (edited.source.model, below.source.model)
