"""Microsoft Agent Framework with scripted clients."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

import pytest
from agent_framework import (
    Agent,
    AgentMiddleware,
    BaseChatClient,
    ChatContext,
    ChatMiddleware,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    FunctionMiddleware,
    Message,
    ResponseStream,
)
from agent_framework import tool as af_tool
from agent_framework.orchestrations import HandoffBuilder
from agent_framework_orchestrations._handoff import get_handoff_tool_name

from batonpass import current_run
from batonpass.adapters.agent_framework import record
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffInitiated,
    RunClosed,
    RunStarted,
    ToolDenied,
    ToolFailed,
)
from batonpass.testing.doors import PERSON as DOOR_PERSON
from batonpass.testing.doors.stage import HELPERS
from tests.doors.tools import tools_on
from tests.frameworks.asked_model import OpenedFramework
from tests.frameworks.faults import FaultConformance
from tests.frameworks.framework_door import AttemptDoor, HandingDoor, RootDoor
from tests.frameworks.suite import (
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
)

RANDOM = re.compile(r"af-call-[0-9a-f]{32}")  # the framework's own number of a call


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A client whose model says what a script says."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        if not stream:
            return self._respond(messages, options)

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            for one in (await self._respond(messages, options)).messages:
                yield ChatResponseUpdate(role="assistant", contents=one.contents)

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    async def _respond(self, messages: Any, options: Any) -> ChatResponse:
        said = await asyncio.to_thread(self._answer, list(messages), dict(options))
        return ChatResponse(messages=[Message(role="assistant", contents=said)], response_id="r")


def plain(messages: list[Message], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model is given as JSON."""
    system = [options.get("instructions"), *(one.text for one in messages if one.role == "system")]
    told = json.dumps([one.to_dict() for one in messages if one.role != "system"], default=str)
    return {"system": system, "messages": json.loads(RANDOM.sub("af-call", told))}


class AgentFramework(Driver):
    """Delegations are agents used as tools; transfers are those of a handoff workflow."""

    name: ClassVar = "agent-framework"

    def play(self, stage: Stage, script: Script, **options: Any) -> Told:
        """Let the lead work, recorded."""
        recorded = record(**stage.recording(options))
        agents, given = _agents(stage, script, [recorded])
        return _told(given, _work(agents, script))

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        agents, given = _agents(stage, script, [])
        return _told(given, _work(agents, script))

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        recorded = record(**stage.recording(options))
        agents, given = _agents(stage, script, [recorded])
        return _told(given, recorded.resume(agents[which], which))


async def _work(agents: Mapping[str, Agent], script: Script) -> Any:
    turns = [turn for turn in script["lead"] if not isinstance(turn, Say | Die)]
    if not any(isinstance(one, Transfer) for turn in turns for one in turn):
        return await agents["lead"].run(WORDS)
    workflow = HandoffBuilder(participants=list(agents.values())).with_start_agent(agents["lead"]).build()
    events = [event async for event in workflow.run(WORDS, stream=True)]
    return events[-1]


def _agents(stage: Stage, script: Script, middleware: list[Any]) -> tuple[dict[str, Agent], dict[str, list[str]]]:
    made: dict[str, Agent] = {}
    given: dict[str, list[str]] = {}
    for name in ("checker", "editor", "lead"):
        tools: list[Any] = [af_tool(function) for function in stage.tools().values()]
        tools += [agent.as_tool(name=f"ask_{child}") for child, agent in made.items()]
        made[name] = Agent(
            client=ScriptedClient(_scripted(name, script, given)),
            name=name,
            instructions=stage.prompt_of(name),
            tools=tools,
            middleware=middleware,
            require_per_service_call_history_persistence=True,
        )
    return made, given


def _scripted(name: str, script: Script, given: dict[str, list[str]]) -> Any:
    turns = iter(script.get(name, ()))

    def answer(messages: list[Message], options: Mapping[str, Any]) -> list[Content]:
        given.setdefault(name, []).append(json.dumps(plain(messages, options), ensure_ascii=False))
        turn = next(turns)
        if isinstance(turn, Die):
            raise ProviderGoneError("the provider does not answer")
        if isinstance(turn, Say):
            return [Content.from_text(turn.text)]
        place = len(given[name])
        return [_call(one, f"call_{name}_{place}_{number}") for number, one in enumerate(turn)]

    return answer


def _call(asked: Use | Delegate | Transfer, call_id: str) -> Content:
    match asked:
        case Use(tool, arguments):
            return Content.from_function_call(call_id=call_id, name=tool, arguments=dict(arguments))
        case Delegate(to, task):
            return Content.from_function_call(call_id=call_id, name=f"ask_{to}", arguments={"task": task})
        case Transfer(to):
            return Content.from_function_call(call_id=call_id, name=f"handoff_to_{to}", arguments={})


def _told(given: Mapping[str, list[str]], running: Any) -> Told:
    answer, error = None, None
    try:
        answer = getattr(asyncio.run(running), "text", None)
    except Exception as raised:  # noqa: BLE001 - a scene may end by any
        error = raised
    return Told(answer, error, given)


class TestAgentFramework(FrameworkConformance, FaultConformance):
    """The suite."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return AgentFramework()


class OpenedAgent(OpenedFramework):
    """An agent of the framework."""

    async def main(self) -> None:
        """Let the agent work for a person, or on a handoff."""
        number = 0

        def answer(messages: list[Message], _: Any) -> list[Content]:
            nonlocal number
            number += 1
            returned = [part for one in messages for part in one.contents if part.type == "function_result"]
            said = self.turn(str(returned[-1].result) if returned else None)
            if isinstance(said, str):
                return [Content.from_text(said)]
            tool, arguments = said
            if tool.startswith("ask_"):
                arguments = {"task": arguments["input"]}
            return [Content.from_function_call(call_id=f"call_{number}", name=tool, arguments=dict(arguments))]

        recorded = record(
            by=DOOR_PERSON,
            relay=self.stage.relay(),
            grants=self.grants() if self.stage.handoff is None else {},
            items=self.stage.allowed.constraints,
            mode=self.stage.mode,
        )
        helpers = [an_agent(name, lambda *_: [Content.from_text("done")], [], recorded) for name in HELPERS]
        tools: list[Any] = [af_tool(function) for function in tools_on(self.stage).values()]
        tools += [helper.as_tool(name=f"ask_{helper.name}") for helper in helpers]
        name = "lead" if self.stage.handoff is None else "worker"
        agent = an_agent(name, answer, tools, recorded)
        if self.stage.handoff is None:
            await agent.run("Do it")
        else:
            await recorded.resume(agent, self.stage.handoff.id)


def an_agent(name: str, answer: Any, tools: list[Any], *middleware: Any) -> Agent:
    """Return an agent with a scripted client."""
    return Agent(client=ScriptedClient(answer), name=name, tools=tools, middleware=list(middleware))


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


DELEGATION: Script = {
    "lead": [[Delegate("editor")], Say("done")],
    "editor": [[Use("write_file", {"path": "src/a.txt", "text": "a"})], Say("ok")],
}


def _streamed(stage: Stage, script: Script, middleware: list[Any]) -> tuple[list[str], str | None, str | None]:
    agents, _ = _agents(stage, script, middleware)

    async def main() -> tuple[list[str], str]:
        stream = agents["lead"].run(WORDS, stream=True)
        updates = [RANDOM.sub("af-call", json.dumps(one.to_dict(), default=str)) async for one in stream]
        return updates, (await stream.get_final_response()).text

    try:
        updates, text = asyncio.run(main())
    except ProviderGoneError as error:
        return [], None, str(error)
    return updates, text, None


@pytest.mark.parametrize("script", [DELEGATION, {"lead": [[Delegate("editor")], Die()], "editor": [Say("ok")]}])
def test_streams_are_the_same_and_recorded(stage: Stage, script: Script) -> None:
    """The same updates, answer and error with and without us; the runs end when the stream has ended."""
    without = _streamed(stage, script, [])

    recorded = _streamed(stage, script, [record(by=PERSON, relay=stage.relay())])

    assert without == recorded
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))
    assert ["failed" if without[2] else "completed"] == [body.outcome for body in stage.recorded(RunClosed)]
    assert 1 == len(stage.recorded(HandoffCompleted))


def test_the_same_error_comes_out(stage: Stage) -> None:
    """A run that fails raises the error of its provider."""
    script: Script = {"lead": [Die()]}

    without = AgentFramework().play_unrecorded(stage, script)
    recorded = AgentFramework().play(stage, script)

    assert (ProviderGoneError, str(without.error)) == (type(recorded.error), str(recorded.error))


def test_a_workflow_hands_on_and_ends(stage: Stage) -> None:
    """Each agent of a chain gets the conversation from the one before, and all runs end with the last."""
    script: Script = {
        "lead": [[Transfer("editor")]],
        "editor": [[Use("write_file", {"path": "src/a.txt", "text": "a"})], [Transfer("checker")]],
        "checker": [Say("checked")],
    }

    AgentFramework().play(stage, script)

    assert ["editor", "checker"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert [WORDS, WORDS] == stage.words(HandoffInitiated, "task")
    assert 2 == len(stage.recorded(HandoffCompleted))
    assert ["completed"] == [body.outcome for body in stage.recorded(RunClosed)]


def test_a_refused_transfer_returns_with_the_reason(stage: Stage) -> None:
    """The conversation stays where it is, and its model is told why."""
    stage.policy = (
        '[policy]\nenforce = true\n\n[[rules]]\nname = "no-editor"\non = "handoff"\nagent = "editor"\ngate = "deny"\n'
    )
    script: Script = {"lead": [[Transfer("editor")], Say("I keep it")], "editor": [Say("ok")]}

    told = AgentFramework().play(stage, script)

    assert "Denied, and not made" in told.given["lead"][1]
    assert "editor" not in told.given
    assert [] == stage.recorded(HandoffAccepted)


def test_conversations_side_by_side_are_kept_apart(stage: Stage) -> None:
    """Two workflows that share their middleware hand on what is theirs."""
    recorded = record(by=PERSON, relay=stage.relay())

    async def one(words: str) -> None:
        script: Script = {"lead": [[Transfer("editor")]], "editor": [Say(words)]}
        agents, _ = _agents(stage, script, [recorded])
        workflow = HandoffBuilder(participants=list(agents.values())).with_start_agent(agents["lead"]).build()
        async for _ in workflow.run(words, stream=True):
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(one("Edit the first"), one("Edit the second"))

    asyncio.run(main())

    reports = [json.loads(text)["report"]["result"] for text in stage.words(HandoffCompleted, "report")]
    assert ["Edit the first", "Edit the second"] == sorted(stage.words(HandoffInitiated, "task")) == sorted(reports)


def test_a_tool_finds_its_run_and_a_failure_is_one(stage: Stage) -> None:
    """Code in a tool finds the run of its agent; if it raises, the call failed and the model reads it as without us."""

    @af_tool
    def broken() -> str:
        """Break."""
        raise LookupError(current_run().agent)

    turns = iter([[Content.from_function_call(call_id="c", name="broken", arguments={})], [Content.from_text("done")]])
    agent = an_agent("lead", lambda *_: next(turns), [broken], record(by=PERSON, relay=stage.relay()))

    assert "done" == asyncio.run(agent.run(WORDS)).text
    assert 1 == len(stage.recorded(ToolFailed))


def test_what_other_middleware_does_to_arguments_is_judged(stage: Stage) -> None:
    """The guard stands next to the tool, also behind a middleware that changes what is asked for."""

    class Elsewhere(FunctionMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            context.arguments = {**context.arguments, "path": "etc/passwd"}
            await call_next()

    recorded = record(by=PERSON, relay=stage.relay(), grants=NARROW)
    agents, _ = _agents(stage, {"lead": [], "editor": DELEGATION["editor"]}, [recorded])
    editor = agents["editor"]
    editor.middleware = [recorded, Elsewhere()]
    turns = iter([[_call(Delegate("editor"), "c")], [Content.from_text("done")]])
    lead = an_agent("lead", lambda *_: next(turns), [editor.as_tool(name="ask_editor")], recorded)

    asyncio.run(lead.run(WORDS))

    assert [] == stage.made
    assert ["grant"] == [body.rule for body in stage.recorded(ToolDenied)]


def test_tools_of_the_provider_are_said_to_be_uncovered(stage: Stage) -> None:
    """A warning, and a flag on the close-out."""
    agent = an_agent(
        "lead",
        lambda *_: [Content.from_text("done")],
        [{"type": "web_search"}],
        record(by=PERSON, relay=stage.relay()),
    )

    with pytest.warns(UserWarning, match="web_search runs at the model's provider"):
        asyncio.run(agent.run(WORDS))

    assert ("uncovered.web_search",) == stage.recorded(RunClosed)[0].flags


def test_a_release_that_was_not_tried_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning, and it goes on."""
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.1rc1")

    with pytest.warns(UserWarning, match=r"agent-framework-core 9\.1rc1 was not tried") as warned:
        record(by=PERSON)

    assert 1 == len(warned)


class TestCanaries:
    """What the adapter leans on beside documented names. A release that changes one of these is noticed here."""

    def test_tools_of_agents_are_known_by_their_function(self) -> None:
        """An agent that is used as a tool is recorded as a handoff alone; else also as a call."""
        agent = an_agent("editor", lambda *_: [], [])

        assert agent.as_tool().func.__qualname__.startswith("BaseAgent.as_tool.<locals>.")

    def test_the_middleware_of_a_run_is_where_we_add_ours(self) -> None:
        """An agent's middleware sees the list that its client gets; nothing of ours would see models and tools else."""
        seen: list[Any] = []

        class Look(AgentMiddleware):
            async def process(self, context: Any, call_next: Any) -> None:
                seen.append(context.client_kwargs)
                context.client_kwargs = {**context.client_kwargs, "middleware": [Added()]}
                await call_next()

        class Added(ChatMiddleware):
            async def process(self, context: Any, call_next: Any) -> None:
                seen.append(context)
                await call_next()

        asyncio.run(an_agent("lead", lambda *_: [Content.from_text("done")], [], Look()).run("go"))

        assert [dict, ChatContext] == [type(one) for one in seen]

    def test_streams_know_their_error(self) -> None:
        """While the hooks at the end of a stream run, it says why it ended; else a failed run looks completed."""
        seen: list[BaseException | None] = []

        async def fail() -> AsyncIterator[int]:
            yield 1
            raise ProviderGoneError

        async def main() -> None:
            stream: Any = ResponseStream(fail())
            stream.with_cleanup_hook(lambda: seen.append(stream._stream_error))
            with pytest.raises(ProviderGoneError):
                [one async for one in stream]

        asyncio.run(main())

        assert [ProviderGoneError] == [type(one) for one in seen]

    def test_workflows_name_their_tools(self) -> None:
        """A transfer is known by the name of its tool."""
        assert "handoff_to_editor" == get_handoff_tool_name("editor")
