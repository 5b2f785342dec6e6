"""One scene, played by a loop of one's own and by a framework that has nothing but hooks: a lead asks a checker.

The models follow a script. `Told` is everything that a program and its provider see; with and without a recording it
has to be the same.
"""
# ruff: noqa: ARG002, D102 - hooks have the parameters and names that frameworks give them

import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from batonpass.errors import CallError
from batonpass.frameworks import (
    VERDICTS,
    Call,
    Declared,
    Known,
    Recording,
    Refused,
    Usage,
    Work,
    current_work,
    recorded_agent,
    recorded_tool,
)

TOOLS: Mapping[str, Declared] = {"read": Declared(reads=True), "write": Declared(action="write", target="path")}


@dataclass(frozen=True)
class Use:
    """A model wants a tool."""

    tool: str
    arguments: dict[str, Any]


def use(tool: str, **arguments: object) -> Use:
    return Use(tool, arguments)


@dataclass(frozen=True)
class Ask:
    """A model delegates, or transfers."""

    agent: str = "checker"
    task: str = "Check it"
    transfers: bool = False


Step = str | Use | Ask | BaseException
Script = Mapping[str, Sequence[Step]]
ASK = Ask()
CHECK: Sequence[Step] = [use("read", path="a"), use("write", path="b", text="x"), "checked"]
TREE: Script = {"lead": [ASK, "done"], "checker": CHECK}


class NeedsPerson(Exception):  # noqa: N818 - it is no error
    """A tool asks a person first."""


class World:
    """What tools did."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.answer = ""

    def read(self, path: str) -> str:
        """Read a file."""
        self.made.append(f"read {path}")
        return f"words of {path}"

    def write(self, path: str, text: str) -> str:
        """Write a file."""
        self.made.append(f"write {path}")
        if text == "fail":
            raise OSError("disk full")
        return f"{len(text)} written"

    def pay(self) -> str:
        """Pay, if a person agrees."""
        if not self.answer:
            raise NeedsPerson
        self.made.append("pay")
        return f"paid: {self.answer}"


@dataclass
class Told:
    """How a program ended, every event that its reader saw, and every request that its provider got."""

    answer: str = ""
    requests: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)


class Driver(Protocol):
    """Plays a script in some framework."""

    def play(
        self, script: Script, world: World, recording: Recording | None = None, *, start: str = "lead", stop: int = 99
    ) -> Told:
        """Return what was told. `stop`: the reader leaves after so many events."""
        ...


def read_all(events: Generator[str, Any, str], told: Told, stop: int) -> None:
    """Read a stream to its end, or leave it."""
    with closing(events):
        while len(told.events) < stop:
            try:
                told.events.append(next(events))
            except StopIteration as end:
                told.answer = end.value
                return
            assert current_work() is None, "a reader is in nobody's work"


class OwnLoop:
    """A loop of one's own, as a generator."""

    def play(
        self, script: Script, world: World, recording: Recording | None = None, *, start: str = "lead", stop: int = 99
    ) -> Told:
        loop = _Loop(script, world, recording, Told())
        read_all(loop.agent(start)("Fix rounding" if start == "lead" else "Check it"), loop.told, stop)
        return loop.told


class _Loop:
    def __init__(self, script: Script, world: World, recording: Recording | None, told: Told) -> None:
        self.left = {name: iter(steps) for name, steps in script.items()}
        self.world, self.recording, self.told = world, recording, told

    def agent(self, name: str) -> Callable[[str], Generator[str, Any, str]]:
        def work_on(task: str) -> Generator[str, Any, str]:
            messages = [task]
            while True:
                step = self.ask_model(name, messages)
                yield f"{name}: {step}"
                if isinstance(step, str):
                    return step
                messages.append(self.use(step))

        return work_on if self.recording is None else recorded_agent(self.recording, name)(work_on)

    def ask_model(self, name: str, messages: list[str]) -> str | Use | Ask:
        self.told.requests.append(repr([name, messages]))
        step = next(self.left[name])
        if isinstance(step, BaseException):
            raise step
        work = current_work()
        if work is not None:
            work.model_turn(Usage("scripted", 10, 5, 2), repr(step))
        return step

    def use(self, step: Use | Ask) -> str:
        try:
            if isinstance(step, Ask):
                return last_of(self.agent(step.agent)(step.task))
            return str(self.tool(step.tool)(**step.arguments))
        except (*VERDICTS, CallError) as error:
            return Refused(error).sentence
        except OSError as error:
            return f"failed: {error}"

    def tool(self, name: str) -> Callable[..., object]:
        make: Callable[..., object] = getattr(self.world, name)
        if self.recording is None:
            return make
        does = TOOLS[name]
        return recorded_tool(self.recording, action=does.action, target=does.target, reads=does.reads)(make)


def last_of(events: Generator[str, Any, str]) -> str:
    """Return what a stream returns, which is read to its end."""
    with closing(events):
        while True:
            try:
                next(events)
            except StopIteration as end:
                return str(end.value)


class HookAgent:
    """An agent of a framework that has nothing but hooks. It knows which agent called it."""

    def __init__(self, name: str, framework: "HookFramework", steps: Iterator[Step]) -> None:
        self.name = name
        self.framework = framework
        self.steps = steps
        self.pending: list[str | Use] = []

    def stream(self, task: str, parent: "HookAgent | None" = None) -> Generator[str, Any, str]:
        """Yield events; return the answer. Its end is told in a `finally`, and without a reason."""
        framework, answer, heir = self.framework, None, None
        refusal = framework.hooks.agent_started(self, task, parent)
        if refusal is not None:
            return refusal
        try:
            messages = [task]
            while answer is None and heir is None:
                framework.hooks.before_model(self)
                framework.told.requests.append(repr([self.name, messages]))
                step = self.pending.pop() if self.pending else next(self.steps)
                if isinstance(step, BaseException):
                    raise step
                framework.hooks.after_model(self, repr(step))
                yield f"{self.name}: {step}"
                if isinstance(step, str):
                    answer = step
                elif isinstance(step, Ask) and step.transfers:
                    heir = self._transfer(step, messages)
                elif isinstance(step, Ask):
                    messages.append((yield from framework.agent(step.agent).stream(step.task, self)))
                else:
                    messages.append(self._use(step))
        except NeedsPerson:
            answer = "waits for a person"
        finally:
            framework.hooks.agent_ended(self, answer or ("transferred" if heir else None))
        if heir is not None:
            return (yield from framework.agent(heir.agent).stream(heir.task, self))
        return answer or ""

    def _transfer(self, step: Ask, messages: list[str]) -> Ask | None:
        refusal = self.framework.hooks.before_transfer(self, step)
        if refusal is not None:
            messages.append(refusal)
        return None if refusal is not None else step

    def _use(self, step: Use) -> str:
        hooks = self.framework.hooks
        answer = hooks.before_tool(self, step)
        if answer is not None:
            return answer
        value, error = None, None
        try:
            value = getattr(self.framework.world, step.tool)(**step.arguments)
        except Exception as raised:  # noqa: BLE001 - it is told to the hook, and the model
            error = raised
        hooks.after_tool(self, step, value, error)
        if isinstance(error, NeedsPerson):
            self.pending = [step]  # it is made anew with the answer
            raise error
        return str(value) if error is None else f"failed: {error}"


class NoHooks:
    """What the framework calls where nobody listens."""

    def agent_started(self, agent: HookAgent, task: str, parent: HookAgent | None) -> str | None: ...

    def before_model(self, agent: HookAgent) -> None: ...

    def after_model(self, agent: HookAgent, message: str) -> None: ...

    def before_tool(self, agent: HookAgent, step: Use) -> str | None: ...

    def after_tool(self, agent: HookAgent, step: Use, value: object, error: Exception | None) -> None: ...

    def before_transfer(self, agent: HookAgent, step: Ask) -> str | None: ...

    def agent_ended(self, agent: HookAgent, answer: str | None) -> None: ...


class HookAdapter(NoHooks):
    """All that an adapter of such a framework has to be."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.works: dict[HookAgent, Work] = {}
        self.calls: dict[int, Call] = {}

    def agent_started(self, agent: HookAgent, task: str, parent: HookAgent | None) -> str | None:
        try:
            work = self.works.get(agent)  # a paused one begins again
            caller = None if parent is None else self.works.get(parent)
            self.works[agent] = work or self.recording.begin(agent.name, task, caller=caller)
        except VERDICTS as error:
            return Refused(error).sentence
        return None

    def before_model(self, agent: HookAgent) -> None:
        self.works[agent].open()

    def after_model(self, agent: HookAgent, message: str) -> None:
        self.works[agent].model_turn(Usage("scripted", 10, 5, 2), message)

    def before_tool(self, agent: HookAgent, step: Use) -> str | None:
        call = self.calls[id(step)] = self.recording.call(step.tool, work=self.works[agent])
        verdict = call.judge(step.arguments)
        if isinstance(verdict, Refused):
            return verdict.sentence
        return str(verdict.value) if isinstance(verdict, Known) else None

    def after_tool(self, agent: HookAgent, step: Use, value: object, error: Exception | None) -> None:
        call = self.calls.pop(id(step))
        if error is None:
            call.succeed(value)
        else:
            call.fail(error, is_made=not isinstance(error, NeedsPerson))

    def before_transfer(self, agent: HookAgent, step: Ask) -> str | None:
        try:
            self.works[agent].offer(step.agent, step.task, transfer=True)
        except VERDICTS as error:
            return Refused(error).sentence
        return None

    def agent_ended(self, agent: HookAgent, answer: str | None) -> None:
        work, waits = self.works[agent], answer == "waits for a person"
        error = None if answer is not None else sys.exc_info()[1] or GeneratorExit()
        work.end(answer, error, waits=waits)
        work.end(answer, error, waits=waits)  # this framework tells it twice


class HookFramework:
    """Agents that find each other by name."""

    def __init__(self, script: Script, world: World, told: Told, hooks: NoHooks) -> None:
        self.world, self.told, self.hooks = world, told, hooks
        self._left = {name: iter(steps) for name, steps in script.items()}

    def agent(self, name: str) -> HookAgent:
        """Return an agent, which goes on where its script stands."""
        return HookAgent(name, self, self._left.get(name, iter(())))


class Hooks:
    """A framework with hooks before and after, and no way around anything."""

    def play(
        self, script: Script, world: World, recording: Recording | None = None, *, start: str = "lead", stop: int = 99
    ) -> Told:
        told = Told()
        framework = HookFramework(script, world, told, NoHooks() if recording is None else HookAdapter(recording))
        task = "Fix rounding" if start == "lead" else "Check it"
        read_all(framework.agent(start).stream(task), told, stop)
        return told


DRIVERS: Mapping[str, Callable[[], Driver]] = {"own loop": OwnLoop, "hooks": Hooks}
