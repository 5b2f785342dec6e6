"""What lines mean, in the shapes of several versions."""

import json
from datetime import timedelta
from typing import Any

import pytest

from batonpass.adapters.claude_code.transcripts.transcript_reader import read_session
from batonpass.adapters.session_files.session_values import (
    LinkedBy,
    Prompt,
    Record,
    SaidInWords,
    SessionInfo,
    SkippedLine,
    SubagentEnded,
    SubagentLink,
    Task,
    ToolResult,
    ToolUse,
)
from tests.unit.adapters.claude_code.histories import BEGUN, SESSION, History

NOTICE = (
    "<task-notification>\n<task-id>a1</task-id>\n<tool-use-id>c1</tool-use-id>\n<status>completed</status>\n"
    "<result><status>failed</status> says the sub-agent</result>\n</task-notification>"
)


def records(history: History) -> list[Record | SkippedLine]:
    return list(read_session(history.transcript(), history.project))


def prompts(history: History) -> list[str]:
    return [record.text for record in records(history) if isinstance(record, Prompt)]


def test_a_call_and_its_result_become_values(history: History) -> None:
    """Each has its line's id and time."""
    asked = history.says("Fix it")
    used = history.uses("c1", "Bash", {"command": "ls"}, parentUuid=asked)
    returned = history.returns("c1", "a.py")

    assert [
        Prompt(at=BEGUN + timedelta(seconds=1), text="Fix it", uuid=asked),
        ToolUse(
            agent=None,
            tool="Bash",
            input={"command": "ls"},
            tool_use_id="c1",
            at=BEGUN + timedelta(seconds=2),
            uuid=used,
            cwd=str(history.project),
        ),
        ToolResult(
            agent=None,
            tool_use_id="c1",
            ok=True,
            at=BEGUN + timedelta(seconds=3),
            uuid=returned,
            text="a.py",
        ),
        SessionInfo(id=SESSION, version="2.0.1"),
    ] == records(history)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param("Continue from where you left off.", {"isMeta": True}, id="what the program adds"),
        pytest.param("This session is being continued", {"isCompactSummary": True}, id="a summary"),
        pytest.param("only shown", {"isVisibleInTranscriptOnly": True}, id="what is only shown"),
        pytest.param(NOTICE, {}, id="a notice, in a version that does not say so"),
        pytest.param(
            NOTICE, {"promptSource": "system", "origin": {"kind": "task-notification"}}, id="a notice that says so"
        ),
        pytest.param("hello from next door", {"origin": {"kind": "peer"}}, id="another session"),
        pytest.param("<local-command-stdout>ok</local-command-stdout>", {}, id="what a command printed"),
        pytest.param("<bash-input>ls</bash-input>", {}, id="a command typed into the shell"),
        pytest.param("[Request interrupted by user]", {}, id="an interruption"),
        pytest.param("   ", {}, id="blanks"),
    ],
)
def test_not_all_that_users_say_is_said_by_a_human(history: History, text: str, fields: dict[str, Any]) -> None:
    """Only the human's own words are intent."""
    history.says(text, history.main(), **fields)

    assert [] == prompts(history)


def test_a_human_may_quote_the_program(history: History) -> None:
    """Where a line says that it was typed, its beginning decides nothing."""
    history.says(f"{NOTICE} what is this?", promptSource="typed")

    assert [f"{NOTICE} what is this?"] == prompts(history)


def test_a_command_is_what_was_typed(history: History) -> None:
    """With its arguments; what it expands to is the program's."""
    text = "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>a b</command-args>"
    history.says(text)
    history.says("Please fix a b", isMeta=True)

    assert ["/fix a b"] == prompts(history)


def test_a_local_command_asks_nothing(history: History) -> None:
    """`/model` and its like are announced by a caveat."""
    caveat = history.says("<local-command-caveat>…</local-command-caveat>", isMeta=True)
    history.says("<command-name>/model</command-name>", parentUuid=caveat)

    assert [] == prompts(history)


def test_words_typed_while_the_model_works_are_prompts(history: History) -> None:
    """They stand beside the conversation, not in it."""
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": [{"type": "text", "text": "By the way"}]}
    history.add(history.main(), "attachment", attachment=queued)
    history.add(history.main(), "attachment", attachment={**queued, "origin": {"kind": "channel"}})
    history.add(history.main(), "attachment", attachment={"type": "date", "date": "2026-03-01"})

    assert ["By the way"] == prompts(history)


def test_pictures_are_named(history: History) -> None:
    """Their bytes are not words."""
    content = [{"type": "text", "text": "See"}, {"type": "image", "source": {"data": "AAAA"}}, {"odd": 1}]
    history.add(history.main(), "user", {"role": "user", "content": content})

    assert ["See\n[image]"] == prompts(history)


@pytest.mark.parametrize("queued", [pytest.param(False, id="as a turn"), pytest.param(True, id="within a turn")])
def test_a_notice_says_how_a_sub_agent_ended(history: History, *, queued: bool) -> None:
    """What the sub-agent itself says in it decides nothing."""
    if queued:
        attachment = {"type": "queued_command", "commandMode": "task-notification", "prompt": NOTICE}
        history.add(history.main(), "attachment", attachment=attachment)
    else:
        history.says(NOTICE, promptSource="system")

    assert [("a1", "c1", "completed")] == [
        (found.agent, found.tool_use_id, found.status) for found in records(history) if isinstance(found, SubagentEnded)
    ]


def test_a_notice_about_nobody_says_nothing(history: History) -> None:
    """Without a name there is nobody to have ended."""
    history.says("<task-notification><status>completed</status></task-notification>")

    assert [] == [found for found in records(history) if isinstance(found, SubagentEnded)]


@pytest.mark.parametrize(
    ("text", "fields", "denied"),
    [
        pytest.param("no", {"toolDenialKind": "permission-rule"}, "permission-rule", id="by a rule"),
        pytest.param("no", {"toolDenialKind": "interrupted"}, None, id="interrupted: it may have been made"),
        pytest.param(
            "The user doesn't want to proceed with this tool use. …", {}, "user-rejected", id="by the human, formerly"
        ),
        pytest.param("Permission to use Bash has been denied.", {}, "permission-rule", id="by a rule, formerly"),
        pytest.param("Exit code 1", {}, None, id="it was made, and failed"),
    ],
)
def test_a_refused_call_was_not_made(history: History, text: str, fields: dict[str, Any], denied: str | None) -> None:
    """Refused and failed are told apart."""
    history.uses("c1", "Bash", {})
    history.returns("c1", text, history.main(), ok=False, **fields)
    (result,) = [found for found in records(history) if isinstance(found, ToolResult)]

    assert (False, text, denied) == (result.ok, result.text, result.denied)


def test_a_result_names_the_sub_agent(history: History) -> None:
    """Of the tools that start one, and of no other."""
    told = {"agentId": "a1", "agentType": "editor", "prompt": "Do it", "status": "completed"}
    for call, tool in (("c1", "Task"), ("c2", "mcp__evil__task")):
        history.uses(call, tool, {"prompt": "Do it"})
        history.returns(call, "done", toolUseResult=told)

    assert [
        SubagentLink(
            agent="a1",
            tool_use_id="c1",
            how=LinkedBy.RESULT,
            agent_type="editor",
            status="completed",
        ),
    ] == [found for found in records(history) if isinstance(found, SubagentLink)]


def test_sub_agents_in_the_main_file_are_told_apart(history: History) -> None:
    """Older versions: each is a chain of lines that hangs from its own first line."""
    one = history.says("Task one", isSidechain=True, parentUuid=None)
    two = history.says("Task two", isSidechain=True, parentUuid=None)
    used = history.uses("c1", "Bash", {}, isSidechain=True, parentUuid=two)
    history.answers("one", isSidechain=True, parentUuid=one)
    history.returns("c1", "ok", isSidechain=True, parentUuid=used)

    assert [
        (Task, f"sidechain-{one}"),
        (Task, f"sidechain-{two}"),
        (ToolUse, f"sidechain-{two}"),
        (SaidInWords, f"sidechain-{one}"),
        (ToolResult, f"sidechain-{two}"),
    ] == [
        (type(found), found.agent)
        for found in records(history)
        if not isinstance(found, SessionInfo | SkippedLine | Prompt)
    ]


def test_a_sidechain_may_say_whose_it_is(history: History) -> None:
    """A version in between had ids, and one file."""
    history.says("Task one", isSidechain=True, agentId="a1")

    assert ["a1"] == [found.agent for found in records(history) if isinstance(found, Task)]


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        pytest.param(b'{"toolUseId":"c1","agentType":"editor"}', [("c1", "editor")], id="as it is"),
        pytest.param(b'{"agentType":"editor"}', [], id="no call"),
        pytest.param(b'{"toolUseId":7}', [], id="a call that is none"),
        pytest.param(b"[]", [], id="no object"),
    ],
)
def test_the_file_beside_a_sub_agent_links_it(history: History, meta: bytes, found: list[object]) -> None:
    """If it says which call started it."""
    history.says("Fix it")
    history.says("Do it", history.agent("a1"))
    history.write(history.agent("a1").with_name("agent-a1.meta.json"), meta)

    assert found == [(one.tool_use_id, one.agent_type) for one in records(history) if isinstance(one, SubagentLink)]


def test_a_broken_file_beside_is_told(history: History) -> None:
    """And the sub-agent's lines are read all the same."""
    history.says("Fix it")
    history.says("Do it", history.agent("a1"))
    beside = history.agent("a1").with_name("agent-a1.meta.json")
    history.write(beside, b"{half")

    assert [f"{beside}:1: is not JSON"] == [str(one) for one in records(history) if isinstance(one, SkippedLine)]
    assert ["Do it"] == [one.text for one in records(history) if isinstance(one, Task)]


def test_a_file_that_is_gone_is_told(history: History) -> None:
    """It may be deleted between finding and reading it."""
    found = records(history)

    assert [f"{history.main()}:0: cannot be read: No such file or directory"] == [
        str(one) for one in found if isinstance(one, SkippedLine)
    ]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param({"type": "tool_use", "id": 7, "name": "Bash", "input": {}}, id="a call without an id"),
        pytest.param({"type": "tool_use", "id": "c", "name": "Bash", "input": "x"}, id="arguments that are none"),
        pytest.param({"type": "tool_result", "tool_use_id": None}, id="a result of nothing"),
        pytest.param({"type": "thinking", "thinking": "hm"}, id="thoughts"),
        pytest.param({}, id="nothing"),
    ],
)
def test_blocks_that_say_nothing_are_left_out(history: History, block: dict[str, object]) -> None:
    """No call is made up from them."""
    history.add(history.main(), "assistant", {"role": "assistant", "content": [block]})
    history.add(history.main(), "user", {"role": "user", "content": [block]})

    assert [] == [found for found in records(history) if isinstance(found, ToolUse | ToolResult)]


def test_lines_without_id_or_time_are_read(history: History) -> None:
    """They are named after their place, and take the time of the line before."""
    history.says("First")
    history.write(history.main(), json.dumps({"type": "user", "message": {"content": "Second"}}).encode())
    second = [found for found in records(history) if isinstance(found, Prompt)][1]

    assert (f"{SESSION}.jsonl:2", BEGUN + timedelta(seconds=1)) == (second.uuid, second.at)


def test_a_line_without_a_message_says_nothing(history: History) -> None:
    """However it came to be."""
    history.add(history.main(), "user")

    assert [] == prompts(history)
