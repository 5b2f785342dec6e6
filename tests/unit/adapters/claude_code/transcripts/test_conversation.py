"""Sessions as trees, also where the links are old, missing, or forged."""

from batonpass.adapters.claude_code.transcripts.claude_code_sessions import ClaudeCodeSessions
from batonpass.adapters.session_files.conversation import Conversation, TranscriptRun, read_conversation
from batonpass.adapters.session_files.session_values import LinkedBy
from tests.unit.adapters.claude_code.histories import History


def conversation(history: History) -> Conversation:
    return read_conversation(ClaudeCodeSessions(), history.transcript(), history.project)


def beside(history: History, agent: str, call: str) -> None:
    meta = history.agent(agent).with_name(f"agent-{agent}.meta.json")
    history.write(meta, f'{{"toolUseId":"{call}","agentType":"editor"}}'.encode())


def links(found: Conversation) -> dict[str | None, tuple[str | None, LinkedBy | None]]:
    return {
        run.task: (None if run.parent is None else run.parent.use.tool_use_id, run.link)
        for run in found.runs
        if run.agent is not None
    }


def test_one_task_given_twice_is_matched_in_order(history: History) -> None:
    """Two equal calls started two equal sub-agents: which is which cannot be known, and it is said to be inferred."""
    history.says("Fix it")
    for call in ("c1", "c2"):
        history.uses(call, "Task", {"prompt": "Do it", "subagent_type": "editor"})
    for agent in ("a1", "a2"):
        history.says("Do it", history.agent(agent))
        history.answers(agent, history.agent(agent))
    runs = [run for run in conversation(history).runs if run.agent is not None]

    assert [("c1", "a1"), ("c2", "a2")] == [
        (run.parent.use.tool_use_id, run.agent) for run in runs if run.parent is not None
    ]
    assert {(LinkedBy.INFERRED, "editor")} == {(run.link, run.agent_type) for run in runs}


def test_sidechains_in_the_main_file_hang_from_their_calls(history: History) -> None:
    """The oldest shape: no id, no file of their own, the tool called Task."""
    history.says("Fix it")
    history.uses("c1", "Task", {"prompt": "Do it", "subagent_type": "editor"})
    told = history.says("Do it", isSidechain=True)
    used = history.uses("c2", "Bash", {"command": "ls"}, isSidechain=True, parentUuid=told)
    back = history.returns("c2", "ok", isSidechain=True, parentUuid=used)
    history.answers("Done", isSidechain=True, parentUuid=back)
    history.returns("c1", "Done", toolUseResult={"content": "Done", "totalTokens": 5})
    found = conversation(history)

    assert {"Do it": ("c1", LinkedBy.INFERRED)} == links(found)
    assert ["Bash"] == [call.use.tool for call in found.runs[1].calls]
    assert ["Task"] == [call.use.tool for call in found.main.calls]


def test_the_file_beside_is_surer_than_the_result(history: History) -> None:
    """What one leaves out the other may say."""
    history.says("Fix it")
    for call in ("c1", "c2"):
        history.uses(call, "Agent", {"prompt": f"Do {call}"})
    history.returns("c1", "ok", toolUseResult={"agentId": "a1", "status": "completed"})
    history.says("Do c2", history.agent("a1"))
    beside(history, "a1", "c2")
    run = next(run for run in conversation(history).runs if run.agent == "a1")

    assert run.parent is not None
    assert ("c2", LinkedBy.META, "completed") == (run.parent.use.tool_use_id, run.link, run.status)


def test_a_sub_agent_that_nobody_started_stands_apart(history: History) -> None:
    """It worked all the same."""
    history.says("Fix it")
    history.says("Tidy up", history.agent("a1"))
    found = conversation(history)

    assert (["Tidy up"], {"Tidy up": (None, None)}) == ([run.task for run in found.strays], links(found))


def test_nobody_starts_themselves(history: History) -> None:
    """A forged link would make a run its own ancestor."""
    history.says("Fix it")
    for agent, other in (("a1", "a2"), ("a2", "a1")):
        history.says(f"I am {agent}", history.agent(agent))
        history.uses(f"c-{agent}", "Agent", {"prompt": "x"}, history.agent(agent))
        beside(history, agent, f"c-{other}")
    found = conversation(history)

    assert {"I am a1": ("c-a2", LinkedBy.META), "I am a2": (None, None)} == links(found)


def test_a_chain_without_end_is_cut(history: History) -> None:
    """Nobody delegates that deep: what claims to is put beside the tree."""
    history.says("Fix it")
    history.uses("c0", "Agent", {"prompt": "start"})
    for depth in range(80):
        agent = f"a{depth:02}"
        history.says(f"task {depth}", history.agent(agent))
        history.uses(f"c{depth + 1}", "Agent", {"prompt": "deeper"}, history.agent(agent))
        beside(history, agent, f"c{depth}")
    found = conversation(history)

    assert 81 == len(found.runs)
    assert 50 >= max(depth_of(run, {one.agent: one for one in found.runs}) for run in found.runs)
    assert [] != list(found.strays)


def depth_of(run: TranscriptRun, known: dict[str | None, TranscriptRun]) -> int:
    depth, above = 0, run.parent
    while above is not None and depth < 1000:
        depth += 1
        above = known[above.use.agent].parent
    return depth


def test_a_call_without_result_has_none(history: History) -> None:
    """It is under way, or the program died."""
    history.says("Fix it")
    history.uses("c1", "Bash", {"command": "ls"})
    (call,) = conversation(history).main.calls

    assert None is call.result


def test_a_result_without_call_is_left_out(history: History) -> None:
    """Nobody knows what it is the result of."""
    history.says("Fix it")
    history.returns("c9", "ok")

    assert () == conversation(history).main.calls


def test_a_sub_agent_may_be_told_more(history: History) -> None:
    """Its task is what it was told first."""
    history.says("Fix it")
    history.says("Do it", history.agent("a1"))
    history.says("And this", history.agent("a1"))
    (run,) = conversation(history).strays

    assert ("Do it", 2) == (run.task, len(run.steps))


def test_of_many_problems_some_are_kept(history: History) -> None:
    """All are counted."""
    history.says("Fix it")
    history.write(history.main(), b"{broken\n" * 500)
    found = conversation(history)

    assert (500, 100) == (found.unread, len(found.problems))


def test_a_text_that_is_not_known_is_none(history: History) -> None:
    """What a file became is known from the call, what it was is not."""
    history.says("Fix it")
    history.uses("c1", "Write", {"file_path": str(history.project / "a"), "content": "x"}, history.agent("a1"))
    history.returns("c1", "ok", history.agent("a1"))
    (change,) = conversation(history).strays[0].calls[0].changes

    assert ("a", None, "x") == (change.path, change.before, change.after)
