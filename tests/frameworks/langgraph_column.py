"""LangGraph, LangChain, langgraph-swarm, langgraph-supervisor and deepagents with scripted models."""

import asyncio
import contextvars
import functools
import importlib.metadata
import json
import operator
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.config import get_config
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition
from langgraph.types import Command
from langgraph_supervisor import create_supervisor
from langgraph_supervisor.handoff import create_handoff_tool as supervisor_transfer
from langgraph_swarm import create_handoff_tool, create_swarm
from pydantic import Field

from batonpass import Grant, current_run
from batonpass.adapters.langgraph import record
from batonpass.adapters.langgraph.graph_watch import _HANDLER, WATCH
from batonpass.errors import GrantDeniedError
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCancelled,
    HandoffCompleted,
    HandoffInitiated,
    RunClosed,
    RunStarted,
    RunSuspended,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolHeld,
)
from batonpass.store.port import ReceiptQuery
from batonpass.testing.doors import PERSON as DOOR_PERSON
from batonpass.testing.doors.stage import HELPERS
from batonpass.wire.receipt_codec import decode_receipt
from tests.doors.tools import tools_on
from tests.frameworks.asked_model import OpenedFramework
from tests.frameworks.faults import FaultConformance
from tests.frameworks.framework_door import AttemptDoor, HandingDoor, RootDoor
from tests.frameworks.suite import (
    ENOUGH,
    NARROW,
    PERSON,
    WORDS,
    Delegate,
    Die,
    Driver,
    FrameworkConformance,
    ProviderGoneError,
    Say,
    Script,
    Stage,
    Told,
    Transfer,
    Use,
    write,
)

DELEGATES = ("ask_checker", "ask_editor")
AGENTS = ("checker", "editor", "lead")


class Scripted(BaseChatModel):
    """A model that answers from a script, and keeps what it was given."""

    given: list[str] = Field(default_factory=list)
    turns: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """Take any tools."""
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        told = [message for message in messages if message.type != "system"]
        system = [message.content for message in messages if message.type == "system"]
        request = {"system": system, "messages": [_stable(one) for one in messages_to_dict(told)]}
        self.given.append(json.dumps(request, ensure_ascii=False))
        del stop, run_manager
        following = next(self.turns)
        if isinstance(following, Exception):
            raise following
        return ChatResult(generations=[ChatGeneration(message=following)])


def _stable(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without the ids that LangChain draws at random."""
    message["data"].pop("id", None)
    return message


def scripted(*turns: Any, name: str = "agent") -> Scripted:
    """Return a model that plays these turns."""
    answers = [_answer(turn, f"{name}_{number}") for number, turn in enumerate(turns)]
    return Scripted(turns=iter(answers))


def _answer(turn: Any, place: str) -> Any:
    if isinstance(turn, Say):
        return AIMessage(turn.text)
    if isinstance(turn, Die):
        return ProviderGoneError("the provider does not answer")
    return AIMessage("", tool_calls=[_call(one, f"call_{place}_{number}") for number, one in enumerate(turn)])


def _call(asked: Use | Delegate | Transfer, call_id: str) -> Any:
    match asked:
        case Use(tool, arguments):
            return {"name": tool, "args": dict(arguments), "id": call_id, "type": "tool_call"}
        case Delegate(to, task):
            return {"name": f"ask_{to}", "args": {"task": task}, "id": call_id, "type": "tool_call"}
        case Transfer(to):
            return {"name": f"transfer_to_{to}", "args": {}, "id": call_id, "type": "tool_call"}


def _asking(name: str, agent: Any) -> StructuredTool:
    def ask(task: str) -> str:
        return str(agent.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content)

    async def ask_async(task: str) -> str:
        return str((await agent.ainvoke({"messages": [HumanMessage(task)]}))["messages"][-1].content)

    return StructuredTool.from_function(ask, ask_async, name=f"ask_{name}", description=f"Ask {name}")


class LangGraph(Driver):
    """Delegations are agents that are run inside of tools; transfers are those of langgraph-swarm."""

    name: ClassVar = "langgraph"

    def play(self, stage: Stage, script: Script, **options: Any) -> Told:
        """Let the lead work, recorded."""
        recorded = record(**stage.recording(options), delegates=DELEGATES)
        agents, models = _agents(stage, script, [recorded])
        return self._told(models, _swarm(agents), {"messages": [HumanMessage(WORDS)]})

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        agents, models = _agents(stage, script, [])
        return self._told(models, _swarm(agents), {"messages": [HumanMessage(WORDS)]})

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        recorded = record(**stage.recording(options), delegates=DELEGATES)
        agents, models = _agents(stage, script, [recorded])
        return _told(models, lambda: recorded.resume(agents[which], which))

    def _told(self, models: Mapping[str, Scripted], graph: Any, given: Any) -> Told:
        return _told(models, lambda: graph.invoke(given))


class LangGraphAsync(LangGraph):
    """The same with the asynchronous methods."""

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        recorded = record(**stage.recording(options), delegates=DELEGATES)
        agents, models = _agents(stage, script, [recorded])
        return _told(models, lambda: asyncio.run(recorded.aresume(agents[which], which)))

    def _told(self, models: Mapping[str, Scripted], graph: Any, given: Any) -> Told:
        return _told(models, lambda: asyncio.run(graph.ainvoke(given)))


class LangGraphStreamed(LangGraph):
    """The same, streamed."""

    def _told(self, models: Mapping[str, Scripted], graph: Any, given: Any) -> Told:
        return _told(models, lambda: list(graph.stream(given, stream_mode="values"))[-1])


def _agents(
    stage: Stage, script: Script, middleware: list[Any], options: Mapping[str, dict[str, Any]] | None = None
) -> tuple[dict[str, Any], dict[str, Scripted]]:
    agents: dict[str, Any] = {}
    models: dict[str, Scripted] = {}
    for name in AGENTS:
        tools = [StructuredTool.from_function(one) for one in stage.tools().values()]
        tools += [_asking(child, agent) for child, agent in agents.items()]
        tools += [create_handoff_tool(agent_name=other) for other in AGENTS if other != name]
        models[name] = scripted(*script.get(name, ()), name=name)
        agents[name] = create_agent(
            models[name],
            tools,
            name=name,
            system_prompt=stage.prompt_of(name),
            **{"middleware": middleware, **(options or {}).get(name, {})},
        )
    return agents, models


def _swarm(agents: Mapping[str, Any], **options: Any) -> Any:
    return create_swarm(list(agents.values()), default_active_agent="lead").compile(**options)


def _told(models: Mapping[str, Scripted], run: Any) -> Told:
    answer, error = None, None
    try:
        answer = run()["messages"][-1].content
    except Exception as raised:  # noqa: BLE001 - a scene may end by any
        error = raised
    return Told(answer, error, {name: model.given for name, model in models.items() if model.given})


class TestLangGraph(FrameworkConformance, FaultConformance):
    """The suite."""

    @pytest.fixture(params=[LangGraph, LangGraphAsync, LangGraphStreamed])
    def driver(self, request: pytest.FixtureRequest) -> Driver:
        """Return the driver."""
        return request.param()


class OpenedAgent(OpenedFramework):
    """An agent whose model asks for what a test says."""

    async def main(self) -> None:
        """Let the agent work for a person, or on a handoff."""
        recorded = record(
            by=DOOR_PERSON,
            relay=self.stage.relay(),
            grants=self.grants() if self.stage.handoff is None else {},
            items=self.stage.allowed.constraints,
            mode=self.stage.mode,
            delegates=[f"ask_{name}" for name in HELPERS],
        )
        helpers = [
            _asking(name, create_agent(scripted(*[Say("done")] * 9), [], name=name, middleware=[recorded]))
            for name in HELPERS
        ]
        name = "lead" if self.stage.handoff is None else "worker"
        tools = [StructuredTool.from_function(one) for one in tools_on(self.stage).values()]
        model = Asked(turns=iter(()), opened=self)
        agent = create_agent(model, [*tools, *helpers], name=name, middleware=[recorded])
        options = {"config": {"recursion_limit": 1000}}
        if self.stage.handoff is None:
            await agent.ainvoke({"messages": [HumanMessage("Do it")]}, **options)
        else:
            await recorded.aresume(agent, self.stage.handoff.id, **options)


class Asked(Scripted):
    """A model that asks for what a test says."""

    opened: Any
    number: int = 0

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        del stop, run_manager
        last = messages[-1]
        said = self.opened.turn(last.content if isinstance(last, ToolMessage) else None)
        self.number += 1
        if isinstance(said, str):
            return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])
        tool, arguments = said
        arguments = {"task": arguments["input"]} if tool.startswith("ask_") else dict(arguments)
        call = {"name": tool, "args": arguments, "id": f"call_{self.number}", "type": "tool_call"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


class TestDoor(RootDoor):
    """The door suite, for a root."""

    opened: ClassVar = OpenedAgent


class TestDoorHandsOff(HandingDoor):
    """The table of handoffs, for a root."""

    opened: ClassVar = OpenedAgent


class TestDoorOnHandoff(AttemptDoor):
    """The door suite, for an attempt at a handoff."""

    opened: ClassVar = OpenedAgent


# What only this framework has.


HOLD = '[[rules]]\nname = "ask-first"\non = "call"\ntool = "pay"\ngate = "approve"\n'
PAY = Use("pay", {"to": "bob", "amount": 10})
THREAD = {"configurable": {"thread_id": "t"}}
GIVEN = {"messages": [HumanMessage(WORDS)]}


def _saver(stage: Stage) -> Any:
    return SqliteSaver(sqlite3.connect(stage.directory / "threads.db", check_same_thread=False))


def _lead(stage: Stage, script: Script, **options: Any) -> tuple[Any, dict[str, Scripted]]:
    """Return the lead with a thread on disk, recorded, as another process would make it."""
    recorded = record(**stage.recording(options), delegates=DELEGATES)
    agents, models = _agents(stage, script, [recorded], {"lead": {"checkpointer": _saver(stage)}})
    return agents["lead"], models


def test_a_held_call_of_a_root_is_an_interrupt(stage: Stage) -> None:
    """Resuming alone is no approval; once a person has approved it elsewhere, it is made once, in the same run."""
    stage.policy = HOLD
    grants = {"lead": ENOUGH}
    lead, _ = _lead(stage, {"lead": [[PAY]]}, grants=grants)
    paused = lead.invoke(GIVEN, THREAD)
    assert "Held, and not made" in paused["__interrupt__"][0].value["batonpass"]
    assert 1 == len(stage.recorded(RunSuspended))
    lead, _ = _lead(stage, {"lead": []}, grants=grants)
    assert "__interrupt__" in lead.invoke(Command(resume=True), THREAD)
    assert [] == stage.made

    (held,) = {body.call for body in stage.recorded(ToolHeld)}
    stage.relay().held_call(held).approve(by=PERSON, reason="bob it is")
    lead, _ = _lead(stage, {"lead": [Say("done")]}, grants=grants)
    done = lead.invoke(Command(resume=True), THREAD)

    assert ("done", ["pay bob 10"]) == (done["messages"][-1].content, stage.made)
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_held_call_of_a_child_is_an_interrupt_of_the_whole_graph(stage: Stage, *, asynchronous: bool) -> None:
    """The graph goes on with the same run and the same handoff, and nothing but the held call is made."""
    stage.policy = HOLD
    grants = {"lead": ENOUGH, "editor": ENOUGH}

    def invoke(lead: Any, given: Any) -> Any:
        if not asynchronous:
            return lead.invoke(given, THREAD)

        async def main() -> Any:
            async with AsyncSqliteSaver.from_conn_string(str(stage.directory / "threads.db")) as saver:
                lead.checkpointer = saver
                return await lead.ainvoke(given, THREAD)

        return asyncio.run(main())

    lead, _ = _lead(stage, {"lead": [[Delegate("editor")]], "editor": [[write()], [PAY]]}, grants=grants)
    assert "__interrupt__" in invoke(lead, GIVEN)
    lead, _ = _lead(stage, {}, grants=grants)
    assert "__interrupt__" in invoke(lead, Command(resume="go on"))
    stage.relay().handoff("editor").approve(by=PERSON, reason="bob it is")
    lead, models = _lead(stage, {"lead": [Say("done")], "editor": [Say("paid")]}, grants=grants)
    done = invoke(lead, Command(resume="go on"))

    assert "done" == done["messages"][-1].content
    assert ["write src/invoice.py", "pay bob 10"] == stage.made
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))
    assert 1 == len(stage.recorded(HandoffInitiated))
    assert [2] == [body.attempt for body in stage.recorded(HandoffCompleted)]
    assert 1 == len(models["lead"].given)


def test_a_graph_that_failed_goes_on_with_the_same_handoff(stage: Stage) -> None:
    """The child died: the graph is invoked again in another process, and only what was not finished is done."""
    lead, _ = _lead(stage, {"lead": [[Delegate("editor")]], "editor": [[write()], Die()]})
    with pytest.raises(ProviderGoneError):
        lead.invoke(GIVEN, THREAD)

    lead, models = _lead(stage, {"lead": [Say("done")], "editor": [Say("ok")]})
    done = lead.invoke(None, THREAD)

    assert "done" == done["messages"][-1].content
    assert ["write src/invoice.py"] == stage.made
    assert 1 == len(models["lead"].given) == len(models["editor"].given)
    assert 1 == len(stage.recorded(HandoffInitiated))
    assert [2] == [body.attempt for body in stage.recorded(HandoffCompleted)]
    assert 1 == len(stage.recorded(RunStarted))
    assert ["completed"] == [body.outcome for body in stage.recorded(RunClosed)]


def test_a_swarm_that_failed_goes_on_with_the_same_handoff(stage: Stage) -> None:
    """The agent that had got the conversation died: another process goes on there, as the next attempt."""

    def swarm(script: Script) -> Any:
        recorded = record(by=PERSON, relay=stage.relay(), grants={"lead": ENOUGH})
        return _swarm(_agents(stage, script, [recorded])[0], checkpointer=_saver(stage))

    with pytest.raises(ProviderGoneError):
        swarm({"lead": [[Transfer("editor")]], "editor": [[write()], Die()]}).invoke(GIVEN, THREAD)
    done = swarm({"editor": [Say("ok")]}).invoke(None, THREAD)

    assert "ok" == done["messages"][-1].content
    assert ["editor"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert [2] == [body.attempt for body in stage.recorded(HandoffCompleted)]
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))


def test_what_langgraph_could_not_save_is_not_done_again(stage: Stage) -> None:
    """The call was made and recorded, and its step failed after that: the step runs again, and the call does not."""

    class FailsAfterwards(AgentMiddleware):
        failed = False

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            result = handler(request)
            if not FailsAfterwards.failed:
                FailsAfterwards.failed = True
                raise OSError("no room")
            return result

    def lead(*turns: Any) -> Any:
        recorded = record(by=PERSON, relay=stage.relay())
        tools = [StructuredTool.from_function(stage.tools()["write_file"])]
        return create_agent(
            scripted(*turns),
            tools,
            name="lead",
            middleware=[FailsAfterwards(), recorded],
            checkpointer=_saver(stage),
        )

    with pytest.raises(OSError, match="no room"):
        lead([write()]).invoke(GIVEN, THREAD)
    done = lead(Say("done")).invoke(None, THREAD)

    assert "written" == done["messages"][-2].content
    assert ["write src/invoice.py"] == stage.made


@pytest.mark.parametrize("same_process", [False, True])
def test_a_pause_of_the_program_is_one_run(stage: Stage, *, same_process: bool) -> None:
    """What the program itself asks a person leaves runs open; calls after it are made although they are alike."""
    read = Use("fetch_page", {"url": "https://example.org"})
    write_first = HumanInTheLoopMiddleware(interrupt_on={"write_file": True})

    def lead(*turns: Any) -> Any:
        recorded = record(by=PERSON, relay=stage.relay())
        tools = [StructuredTool.from_function(one) for one in stage.tools().values()]
        saver = _saver(stage)
        return create_agent(
            scripted(*turns), tools, name="lead", middleware=[recorded, write_first], checkpointer=saver
        )

    first = lead([read], [write()], *([[read], Say("done")] if same_process else []))
    assert "__interrupt__" in first.invoke(GIVEN, THREAD)
    assert [] == stage.recorded(RunClosed)
    second = first if same_process else lead([read], Say("done"))
    done = second.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)

    assert "done" == done["messages"][-1].content
    assert ["fetch https://example.org", "write src/invoice.py", "fetch https://example.org"] == stage.made
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))


def test_a_thread_is_a_session_and_each_of_its_turns_a_run(stage: Stage) -> None:
    """Words of a person begin a run; all runs of a thread are one session. Going back does everything anew."""
    lead, _ = _lead(stage, {"lead": [[write()], Say("one"), Say("two"), Say("three")]})
    lead.invoke(GIVEN, THREAD)
    lead.invoke({"messages": [HumanMessage("And now?")]}, THREAD)
    before = [one for one in lead.get_state_history(THREAD) if one.next == ("tools",)]

    lead.invoke(None, before[0].config)

    assert 3 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))
    assert 2 == len(stage.made)
    with stage.relays[0].store.view() as view:
        assert 1 == len({decode_receipt(one.payload).session for one in view.find_receipts(ReceiptQuery())} - {None})


def test_a_dropped_transfer_is_said_to_be_dropped(stage: Stage) -> None:
    """The other agent has completed it, and the source its own run with the same result."""
    script: Script = {"lead": [[Transfer("editor"), Transfer("checker")]], "editor": [Say("e")], "checker": [Say("c")]}

    told = LangGraph().play(stage, script)

    (accepted,) = stage.recorded(HandoffAccepted)
    (dropped,) = stage.recorded(HandoffCancelled)
    assert accepted.handoff != dropped.handoff
    assert 1 == len(stage.recorded(HandoffCompleted)) == len(stage.recorded(RunClosed))
    assert told.answer in {"e", "c"}


def test_agents_may_have_a_middleware_each(stage: Stage) -> None:
    """A transfer from one to the other is a handoff all the same, under the grant of the one who had it."""
    script: Script = {"lead": [[Transfer("editor")]], "editor": [[write(".github/ci.yml")], [write()], Say("ok")]}
    relay = stage.relay()
    each = {name: {"middleware": [record(by=PERSON, relay=relay, grants=NARROW)]} for name in AGENTS}

    result = _swarm(_agents(stage, script, [], each)[0]).invoke(GIVEN)

    assert "ok" == result["messages"][-1].content
    assert ["lead"] == [body.agent for body in stage.recorded(RunStarted)]
    assert 1 == len(stage.recorded(HandoffCompleted)) == len(stage.recorded(RunClosed))
    assert ["write src/invoice.py"] == stage.made


def test_a_refused_transfer_returns_to_its_source(stage: Stage) -> None:
    """The conversation stays where it is, and the model reads why."""
    stage.policy = (
        '[policy]\nenforce = true\n\n[[rules]]\nname = "no-editor"\non = "handoff"\nagent = "editor"\ngate = "deny"\n'
    )
    script: Script = {"lead": [[Transfer("editor")], Say("I do it myself")], "editor": [Say("ok")]}

    told = LangGraph().play(stage, script)

    assert "I do it myself" == told.answer
    assert "editor" not in told.given
    assert "Denied, and not made" in told.given["lead"][1]


def test_a_conversation_that_comes_back_is_a_handoff_each_time(stage: Stage) -> None:
    """Lead to editor and back: each transfer is a handoff from the one who had it, and all are closed at the end."""
    script: Script = {
        "lead": [[Transfer("editor")], Say("done")],
        "editor": [[write()], [Transfer("lead")]],
    }

    told = LangGraph().play(stage, script)

    assert "done" == told.answer
    assert ["editor", "lead"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert 2 == len(stage.recorded(HandoffCompleted))
    assert 1 == len(stage.recorded(RunClosed))


def test_a_supervisor_goes_on_with_its_run(stage: Stage) -> None:
    """A worker that has ended gives its result back: the supervisor that the graph runs next is the same run."""
    recorded = record(by=PERSON, relay=stage.relay(), grants={"supervisor": ENOUGH})
    agents, models = _agents(stage, {"editor": [[write()], Say("edited")], "checker": [Say("checked")]}, [recorded])
    names = ("editor", "checker")
    supervisor = create_supervisor(
        [agents[name] for name in names],
        model=scripted([Transfer("editor")], [Transfer("checker")], Say("done")),
        tools=recorded.tool_node([supervisor_transfer(agent_name=name) for name in names]),
    )

    result = supervisor.compile().invoke(GIVEN)

    assert "done" == result["messages"][-1].content
    assert ["editor", "checker"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert 2 == len(stage.recorded(HandoffCompleted)) == len({body.handoff for body in stage.recorded(HandoffAccepted)})
    assert ["supervisor"] == [body.agent for body in stage.recorded(RunStarted)]
    assert ["completed"] == [body.outcome for body in stage.recorded(RunClosed)]
    assert "Make the invoice" in models["editor"].given[0]


def test_agents_of_deepagents_are_handed_their_tasks(stage: Stage) -> None:
    """The tool `task` is a handoff to the subagent that it names, with its description as the exact task."""
    from deepagents import create_deep_agent  # noqa: PLC0415 - it imports the packages of providers

    recorded = record(by=PERSON, relay=stage.relay(), grants=NARROW)
    editor = {
        "name": "editor",
        "description": "Edits",
        "system_prompt": "You are editor.",
        "model": scripted([write(".github/ci.yml")], [write()], Say("edited")),
        "tools": [StructuredTool.from_function(stage.tools()["write_file"])],
        "middleware": [recorded],
    }
    asks = Use("task", {"description": "Edit it", "subagent_type": "editor"})
    lead = create_deep_agent(
        model=scripted([asks], Say("done")), tools=[], subagents=[editor], middleware=[recorded], name="lead"
    )

    result = lead.invoke(GIVEN)

    assert "done" == result["messages"][-1].content
    assert ["Edit it"] == stage.words(HandoffInitiated, "task")
    assert ["editor"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert 1 == len(stage.recorded(HandoffCompleted))
    assert ["grant"] == [body.rule for body in stage.recorded(ToolDenied)]
    assert ["write src/invoice.py"] == stage.made


def test_a_subagent_that_is_not_recorded_shows_as_offered(stage: Stage) -> None:
    """It has no middleware: nobody accepts what was offered to it."""
    from deepagents import create_deep_agent  # noqa: PLC0415 - as above

    recorded = record(by=PERSON, relay=stage.relay())
    editor = {
        "name": "editor",
        "description": "Edits",
        "system_prompt": "You are editor.",
        "model": scripted(Say("edited")),
        "tools": [],
    }
    asks = Use("task", {"description": "Edit it", "subagent_type": "editor"})
    lead = create_deep_agent(
        model=scripted([asks], Say("done")), tools=[], subagents=[editor], middleware=[recorded], name="lead"
    )

    lead.invoke(GIVEN)

    assert ["editor"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert [] == stage.recorded(HandoffAccepted)


def test_a_tool_node_records_agents_that_take_no_middleware(stage: Stage) -> None:
    """Its own wrapper still sees every call."""
    seen: list[str] = []

    def wrap(request: Any, execute: Any) -> Any:
        seen.append(request.tool_call["name"])
        return execute(request)

    recorded = record(by=PERSON, relay=stage.relay(), grants={"lead": ["write:src/**"]})
    node = recorded.tool_node(
        [StructuredTool.from_function(stage.tools()["write_file"])], agent="lead", wrap_tool_call=wrap
    )
    model = scripted([write(".github/ci.yml"), write()], Say("done"))
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", node)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")

    result = builder.compile().invoke(GIVEN)

    assert "done" == result["messages"][-1].content
    assert ["write src/invoice.py"] == stage.made
    assert ["write_file"] == seen
    assert ["lead"] == [body.agent for body in stage.recorded(RunStarted)]
    assert ["completed"] == [body.outcome for body in stage.recorded(RunClosed)]


class Desk(TypedDict):
    """The state of a graph without messages."""

    topic: str
    done: Annotated[list[str], operator.add]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_nodes_of_a_graph_are_agents(stage: Stage, *, asynchronous: bool) -> None:
    """A command that goes to another agent is a handoff to it; the one that passed it on ends with the graph."""
    recorded = record(by=PERSON, relay=stage.relay(), grants={"plan": ENOUGH, "editor": ["write:src/**"]})
    tools = stage.tools()

    def plan(_: Desk, config: RunnableConfig) -> Command[str]:
        assert config["metadata"]["langgraph_node"] == "plan"
        return Command(goto="edit", update={"done": ["planned"]})

    def edit(state: Desk) -> dict[str, Any]:
        with pytest.raises(GrantDeniedError):
            current_run().call(tools["write_file"], ".github/ci.yml", "off")
        current_run().call(tools["write_file"], "src/a.py", state["topic"])
        return {"done": ["edited"]}

    async def edit_async(state: Desk) -> dict[str, Any]:
        return edit(state)

    builder = StateGraph(Desk)
    builder.add_node("plan", recorded.node("plan")(plan))
    builder.add_node("edit", recorded.node("editor")(functools.wraps(edit)(edit_async) if asynchronous else edit))
    builder.add_edge(START, "plan")
    given: Any = {"topic": "rounding", "done": []}
    graph = builder.compile()

    result = asyncio.run(graph.ainvoke(given)) if asynchronous else graph.invoke(given)

    assert ["planned", "edited"] == result["done"]
    assert ["write src/a.py"] == stage.made
    assert ["plan"] == [body.agent for body in stage.recorded(RunStarted)]
    assert ["editor"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert ['{"topic": "rounding", "done": ["planned"]}'] == stage.words(HandoffInitiated, "task")
    assert 1 == len(stage.recorded(HandoffCompleted)) == len(stage.recorded(RunClosed))


def test_a_held_call_in_a_node_is_an_interrupt(stage: Stage) -> None:
    """The node runs again once it is approved; what it had finished is not done again."""
    stage.policy = HOLD

    def graph() -> Any:
        recorded = record(by=PERSON, relay=stage.relay(), grants={"plan": ENOUGH, "editor": ENOUGH})
        tools = stage.tools()

        @recorded.node("plan")
        def plan(_: Desk) -> Command[str]:
            return Command(goto="editor")

        @recorded.node("editor")
        def edit(state: Desk) -> dict[str, Any]:
            current_run().call(tools["write_file"], "src/a.py", state["topic"])
            current_run().call(tools["pay"], "bob", 10)
            return {"done": ["paid"]}

        builder = StateGraph(Desk)
        builder.add_node("plan", plan)
        builder.add_node("editor", edit)
        builder.add_edge(START, "plan")
        return builder.compile(checkpointer=_saver(stage))

    assert "__interrupt__" in graph().invoke({"topic": "rounding", "done": []}, THREAD)
    assert "__interrupt__" in graph().invoke(Command(resume=True), THREAD)
    stage.relay().handoff("editor").approve(by=PERSON, reason="bob it is")
    result = graph().invoke(Command(resume=True), THREAD)

    assert ["paid"] == result["done"]
    assert ["write src/a.py", "pay bob 10"] == stage.made
    assert [2] == [body.attempt for body in stage.recorded(HandoffCompleted)]
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))


EVERYTHING = ["values", "updates", "messages", "custom", "debug"]


def _shape(event: Any) -> str:
    """Return an event without the ids and times that LangGraph draws anew each time.

    A message in an event gets the name of its agent a moment after the event was sent, so its name is left out too.
    """
    text = re.sub(r"name='(checker|editor|lead)', ", "", repr(event))
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    text = re.sub(r"(lc_run--)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(-\d+)?", "ID", text)
    return re.sub(r"'\d{4}-\d\d-\d\dT[^']*'", "TIME", text)


SCENE: Script = {
    "lead": [[Delegate("editor")], [Transfer("checker")]],
    "editor": [[write()], Say("edited")],
    "checker": [[Use("fetch_page", {"url": "https://example.org"})], Say("checked")],
}


@pytest.mark.parametrize("how", ["stream", "astream", "astream_events"])
def test_streamed_events_are_the_same(stage: Stage, how: str) -> None:
    """Streamed with and without us, in every mode and from subgraphs, the events are the same and in the same order."""

    def events(middleware: list[Any]) -> list[str]:
        graph = _swarm(_agents(stage, SCENE, middleware)[0])

        async def collect() -> list[Any]:
            if how == "astream":
                return [one async for one in graph.astream(GIVEN, stream_mode=EVERYTHING, subgraphs=True)]
            return [one async for one in graph.astream_events(GIVEN, version="v2")]

        if how == "stream":
            return [_shape(one) for one in graph.stream(GIVEN, stream_mode=EVERYTHING, subgraphs=True)]
        return [_shape(one) for one in asyncio.run(collect())]

    without = events([])
    recorded = events([record(by=PERSON, relay=stage.relay(), delegates=DELEGATES)])

    assert len(without) > 50
    assert without == recorded
    assert 2 == len(stage.recorded(HandoffCompleted))


def test_errors_are_the_same(stage: Stage) -> None:
    """A tool that raises ends the graph with the same error as without us, and a wrong argument is told as before."""

    def broken(row: int) -> str:
        """Break."""
        if row:
            raise LookupError(f"no row {row}")
        return "none"

    def play(middleware: list[Any]) -> tuple[list[str], str]:
        model = scripted([Use("broken", {"row": "x"}), Use("nothing", {})], [Use("broken", {"row": 7})])
        tools = [StructuredTool.from_function(broken)]
        agent = create_agent(model, tools, name="lead", middleware=middleware)
        with pytest.raises(LookupError) as raised:
            agent.invoke(GIVEN)
        return model.given, str(raised.value)

    without = play([])
    recorded = play([record(by=PERSON, relay=stage.relay())])

    assert without == recorded
    assert "no row 7" == recorded[1]
    assert [] == stage.recorded(ToolCompleted)
    assert 3 == len(stage.recorded(ToolFailed))
    assert ["failed"] == [body.outcome for body in stage.recorded(RunClosed)]


def test_a_stream_that_nobody_reads_to_its_end_is_recorded(stage: Stage) -> None:
    """Its run is not left open for ever."""
    recorded = record(by=PERSON, relay=stage.relay())
    agents, _ = _agents(stage, {"lead": [[write()], Say("done")]}, [recorded])

    streamed = agents["lead"].stream(GIVEN)
    next(streamed)
    streamed.close()

    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))


def test_a_tool_finds_its_run(stage: Stage) -> None:
    """Code in a tool finds the run of its agent, without anybody passing it."""
    found: list[str] = []

    def look() -> str:
        """Look."""
        found.append(current_run().agent)
        return "seen"

    recorded = record(by=PERSON, relay=stage.relay())
    tools = [StructuredTool.from_function(look)]
    create_agent(scripted([Use("look", {})], Say("done")), tools, name="Some Agent", middleware=[recorded]).invoke(
        GIVEN
    )

    assert ["Some-Agent"] == found


def test_tools_of_the_provider_are_said_to_be_uncovered(stage: Stage) -> None:
    """What runs at the provider cannot be judged: a warning, and a flag on the close-out."""
    recorded = record(by=PERSON, relay=stage.relay())
    agent = create_agent(
        scripted(Say("done")), [{"type": "web_search", "name": "web_search"}], name="lead", middleware=[recorded]
    )

    with pytest.warns(UserWarning, match="neither judged nor recorded"):
        agent.invoke(GIVEN)

    assert ("uncovered.web_search",) == stage.recorded(RunClosed)[0].flags


def test_an_agent_in_a_tool_that_nobody_declared_is_recorded_with_its_call(stage: Stage) -> None:
    """The tool is a call, and what runs inside of it a handoff from the same agent."""
    recorded = record(by=PERSON, relay=stage.relay())
    agents, _ = _agents(stage, {"lead": [[Delegate("editor")], Say("done")], "editor": [Say("ok")]}, [recorded])

    agents["lead"].invoke(GIVEN)

    assert ["editor"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert 1 == len(stage.recorded(ToolCompleted)) == len(stage.recorded(HandoffCompleted))


def test_two_calls_of_one_turn_wait_for_a_person(stage: Stage) -> None:
    """Both are interrupts; each is made once, when it was approved."""
    stage.policy = HOLD.replace("pay", "write_file")
    grants = {"lead": ENOUGH}
    both = [write("src/a.py"), write("src/b.py")]
    lead, _ = _lead(stage, {"lead": [both]}, grants=grants)
    paused = lead.invoke(GIVEN, THREAD)
    assert 2 == len(paused["__interrupt__"])

    for held in stage.recorded(ToolHeld):
        stage.relay().held_call(held.call).approve(by=PERSON, reason="both")
    lead, _ = _lead(stage, {"lead": [Say("done")]}, grants=grants)
    answers = {one.id: True for one in paused["__interrupt__"]}
    done = lead.invoke(Command(resume=answers), THREAD)

    assert "done" == done["messages"][-1].content
    assert ["write src/a.py", "write src/b.py"] == sorted(stage.made)


def test_a_turn_that_was_left_is_ended_by_the_next(stage: Stage) -> None:
    """The model died; the person says something else. The run of the first words is not left open for ever."""
    lead, _ = _lead(stage, {"lead": [Die()]})
    with pytest.raises(ProviderGoneError):
        lead.invoke(GIVEN, THREAD)
    assert [] == stage.recorded(RunClosed)

    lead, _ = _lead(stage, {"lead": [Say("two")]})
    lead.invoke({"messages": [HumanMessage("Never mind")]}, THREAD)

    assert ["failed", "completed"] == [body.outcome for body in stage.recorded(RunClosed)]


class TestCanaries:
    """What the adapter leans on beside documented names. A release that changes one of these is noticed here."""

    def test_langchain_tells_us_of_graphs_and_nodes(self) -> None:
        """Nodes have a tag and a parent, which is their graph; a config says in which run it is."""
        seen: list[Any] = []

        def look(_: Desk) -> dict[str, Any]:
            seen.append(WATCH.find(get_config()))
            return {}

        inner = StateGraph(Desk)
        inner.add_node("look", look)
        inner.add_edge(START, "look")
        outer = StateGraph(Desk)
        outer.add_node("inner", inner.compile(name="looking"))
        outer.add_edge(START, "inner")

        outer.compile(name="around").invoke({"topic": "", "done": []})

        assert ("look", "looking") == (seen[0].node, seen[0].graph.name)
        around = seen[0].around()
        assert around is not None
        assert ("inner", "around") == (around.node, around.graph.name)
        assert {} == WATCH._seen

    def test_agents_have_names(self) -> None:
        """A graph inside of another has the name of its own agent, whatever metadata it inherits."""
        seen: list[str] = []

        class Look(AgentMiddleware):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                seen.append(WATCH.find(get_config()).graph.agent)
                return handler(request)

        inner = create_agent(scripted(Say("ok")), [], name="inner", middleware=[Look()])
        tools = [_asking("inner", inner)]
        model = scripted([Delegate("inner")], Say("ok"))
        create_agent(model, tools, name="outer", middleware=[Look()]).invoke(GIVEN)

        assert ["outer", "inner", "outer"] == seen

    def test_a_checkpointer_is_known(self) -> None:
        """A config has it under this name, and namespaces are separated by a bar."""
        seen: list[Any] = []

        def look(_: Desk) -> dict[str, Any]:
            seen.append(get_config()["configurable"])
            return {}

        inner = StateGraph(Desk)
        inner.add_node("look", look)
        inner.add_edge(START, "look")
        outer = StateGraph(Desk)
        outer.add_node("inner", inner.compile())
        outer.add_edge(START, "inner")
        given: Any = {"topic": "", "done": []}

        outer.compile().invoke(given)
        outer.compile(checkpointer=InMemorySaver()).invoke(given, THREAD)

        assert [False, True] == [bool(one.get("__pregel_checkpointer")) for one in seen]
        assert ["inner", "look"] == [part.split(":")[0] for part in seen[1]["checkpoint_ns"].split("|")]

    def test_transfer_tools_name_their_destination(self) -> None:
        """Those of swarm and supervisor alike."""
        made = [create_handoff_tool(agent_name="editor"), supervisor_transfer(agent_name="editor")]

        assert ["editor"] * 2 == [(one.metadata or {})["__handoff_destination"] for one in made]


def test_without_callbacks_calls_are_judged_all_the_same(stage: Stage) -> None:
    """LangChain tells us of nothing: the program is warned, a denied call is not made, and the run ends."""
    recorded = record(by=PERSON, relay=stage.relay(), grants=NARROW)
    agents, _ = _agents(stage, {"editor": [[write(".github/ci.yml")], [write()], Say("ok")]}, [recorded])

    def play() -> Any:
        _HANDLER.set(None)
        return agents["editor"].invoke(GIVEN)

    with pytest.warns(UserWarning, match="LangChain does not tell of this graph"):
        result = contextvars.copy_context().run(play)

    assert "ok" == result["messages"][-1].content
    assert ["write src/invoice.py"] == stage.made
    assert ["editor"] == [body.agent for body in stage.recorded(RunStarted)]
    assert ["completed"] == [body.outcome for body in stage.recorded(RunClosed)]


def test_a_grant_lasts_for_the_next_turns(stage: Stage) -> None:
    """The editor got the conversation, and its grant from the lead: the person's next words do not free it of that."""
    recorded = record(
        by=PERSON, relay=stage.relay(), grants={"lead": Grant(may=["write:**"], may_delegate=["write:src/**"])}
    )
    script: Script = {
        "lead": [[Transfer("editor")]],
        "editor": [Say("here"), [write(".github/ci.yml")], [write()], Say("done")],
    }
    swarm = _swarm(_agents(stage, script, [recorded])[0], checkpointer=InMemorySaver())
    swarm.invoke(GIVEN, THREAD)

    result = swarm.invoke({"messages": [HumanMessage("And now?")]}, THREAD)

    assert "done" == result["messages"][-1].content
    assert ["write src/invoice.py"] == stage.made
    assert ["lead", "editor"] == [body.agent for body in stage.recorded(RunStarted)]
    assert ["grant"] == [body.rule for body in stage.recorded(ToolDenied)]


def test_another_release_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is recorded as far as that goes."""
    monkeypatch.setattr(importlib.metadata, "version", {"langgraph": "1.9.0", "langchain": "1.4.0"}.__getitem__)

    with pytest.warns(UserWarning, match=r"langgraph 1\.9\.0 was not tried: 1\.1 to below 1\.3 were") as warned:
        record(by=PERSON)

    assert 1 == len(warned)


KILLED = """
import os, sys
from pathlib import Path

from tests.frameworks.langgraph_column import DELEGATES, GIVEN, THREAD, Stage, _agents, _saver, record
from tests.frameworks.suite import PERSON, Delegate, Say, write

stage = Stage(Path.cwd())
recorded = record(by=PERSON, relay=stage.relay(), delegates=DELEGATES)
resumes = sys.argv[1] == "resume"
script = (
    {"lead": [Say("done")], "editor": [Say("ok")]}
    if resumes
    else {"lead": [[Delegate("editor")]], "editor": [[write()]]}
)
agents, models = _agents(stage, script, [recorded], {"lead": {"checkpointer": _saver(stage)}})
if not resumes:
    class Killed:
        turns = models["editor"].turns

        def __next__(self):
            return next(self.turns, None) or os._exit(9)

    models["editor"].turns = Killed()
result = agents["lead"].invoke(None if resumes else GIVEN, THREAD)
print(result["messages"][-1].content, len(stage.made))
"""


def test_a_process_that_was_killed_is_taken_over(stage: Stage) -> None:
    """The child's process died after a write: the graph goes on elsewhere, and the write is not repeated."""
    program = [sys.executable, "-c", KILLED]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}

    killed = subprocess.run([*program, "begin"], env=environment, capture_output=True, text=True, check=False)
    assert 9 == killed.returncode, killed.stderr
    gone_on = subprocess.run([*program, "resume"], env=environment, capture_output=True, text=True, check=False)

    assert "done 0\n" == gone_on.stdout, gone_on.stderr
    stage.relay()
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))
    assert 1 == len(stage.recorded(HandoffInitiated)) == len(stage.recorded(ToolCompleted))
    assert [2] == [body.attempt for body in stage.recorded(HandoffCompleted)]
