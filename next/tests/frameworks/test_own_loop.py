"""A loop of one's own: decorated functions become runs, handoffs and calls, and do what they did without them."""
# ruff: noqa: ARG001, ARG002, ARG005 - the first argument of an agent is its task, whether it reads it or not

import asyncio
import contextvars
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import batonpass
from batonpass import Grant, Relay, aio, start, tool
from batonpass.errors import CallDeniedError, CallError, CallInDoubtError, GrantError, InvalidValueError
from batonpass.frameworks import Recording, Usage, current_work, recorded_agent, recorded_tool
from batonpass.testing import Faults, a_relay, observe

BEGUN = ["run.started", "handoff.initiated", "handoff.accepted"]
CALLED = ["tool.requested", "tool.completed"]


@pytest.fixture
def relay() -> Iterator[Relay]:
    with a_relay() as opened:
        yield opened


@pytest.fixture
def recording(relay: Relay) -> Recording:
    return Recording(relay, by="user:ana")


def folder_relay() -> Relay:
    """Return the relay of this folder, opened again: it is what another process would see."""
    return Relay.open()


@pytest.mark.parity("own-loop-is-recorded")
def test_two_lines_record_a_program() -> None:
    """On the ledger of the folder: an agent that another calls is handed its task, and a tool is its call."""

    @recorded_tool(target="path")
    def write(path: str, text: str) -> int:
        return Path(path).write_text(text, encoding="utf-8")

    @recorded_agent
    def editor(task: str) -> int:
        return write("src.txt", task)

    @recorded_agent(by="user:ana")
    def lead(task: str) -> str:
        return f"{editor('Round half-even')} letters for {task}"

    assert "15 letters for Fix rounding" == lead("Fix rounding")

    with folder_relay() as relay:
        seen = observe(relay)
        assert [*BEGUN, *CALLED, "handoff.completed", "run.closed"] == seen.kinds()
        assert ("lead", "user:ana") == tuple(seen.last("run.started").body[name] for name in ("agent", "principal"))
        assert ("editor", "Round half-even") == (
            seen.last("handoff.initiated").body["to"],
            seen.last("handoff.initiated").text("task"),
        )
        assert ("write", "src.txt") == tuple(seen.last("tool.requested").text(part) for part in ("action", "target"))
        assert ["src.txt"] == [effect.target for effect in seen.effects]
        assert "15 letters for Fix rounding" == seen.last("run.closed").value("report")["result"]


def test_explicit_recording_has_its_own_relay(recording: Recording, relay: Relay) -> None:
    """An agent of a recording is on its relay, and so are the agents and tools that it calls, whatever they name."""

    @recorded_tool
    def add(one: int, two: int) -> int:
        return one + two

    @recorded_agent
    def adder(task: str) -> int:
        return add(1, 2)

    @recorded_agent(recording, "chief")
    def lead(task: str) -> int:
        return adder(task)

    assert 3 == lead("Add")
    assert ["chief", "adder"] == [
        receipt.body["agent"] for receipt in observe(relay).receipts if "agent" in receipt.body
    ]


def test_root_says_for_whom() -> None:
    """An agent that begins by itself needs by=; one that is called by another does not."""

    @recorded_agent
    def lead(task: str) -> None: ...

    with pytest.raises(InvalidValueError, match="by='user:ana'"):
        lead("go")


def test_run_that_was_opened_by_hand_hands_over_to_agents_inside() -> None:
    """`with start(...)` and decorated functions are one tree; calls of both count their numbers together."""

    @recorded_tool
    def add(one: int, two: int) -> int:
        return one + two

    @recorded_agent
    def adder(task: str) -> int:
        return add(1, 2)

    with start("Sum up", by="user:ana") as run:
        said = [adder("Add"), add(1, 2), add(1, 2), run.call(lambda: 4)]

    assert [3, 3, 3, 4] == said
    with folder_relay() as relay:
        seen = observe(relay)
        assert [*BEGUN, *CALLED, "handoff.completed", *CALLED * 3, "run.closed"] == seen.kinds()
        assert run.id == seen.last("handoff.accepted").body["parent"]
        assert 4 == len({receipt.body["key"] for receipt in seen.of("tool.requested")})


def test_inner_run_takes_what_is_called_inside_of_it(recording: Recording, relay: Relay) -> None:
    """An agent that opens a child by hand works as that child until it leaves its `with`."""

    @recorded_tool
    def note(text: str) -> str:
        return text

    @recorded_agent(recording)
    def lead(task: str) -> None:
        run = batonpass.current_run()
        assert run is not None
        note("before")
        with run.hand_off("helper", "Help"):
            note("inside")
        note("after")

    lead("go")
    seen = observe(relay)
    helper = seen.last("handoff.accepted").stream
    assert [False, True, False] == [receipt.stream == helper for receipt in seen.of("tool.requested")]


def test_awaited_run_hands_over_to_agents_inside() -> None:
    """`async with` and decorated coroutines are one tree."""

    @recorded_tool
    async def add(one: int, two: int) -> int:
        run, call = aio.current_run(), aio.current_call()
        assert run is not None
        assert call is not None
        await run.record(batonpass.Claim(f"made by {call.run == run.id}"))
        return one + two

    @recorded_agent
    async def adder(task: str) -> int:
        return await add(1, 2)

    async def main() -> int:
        async with await aio.start("Sum up", by="user:ana"):
            return await adder("Add")

    assert 3 == asyncio.run(main())
    with folder_relay() as relay:
        called = ["tool.requested", "run.recorded.items", "tool.completed"]
        assert [*BEGUN, *called, "handoff.completed", "run.closed"] == observe(relay).kinds()
        assert "made by True" == observe(relay).last("run.recorded.items").value("items")[0]["text"]


def test_each_kind_of_function_is_an_agent(recording: Recording, relay: Relay) -> None:
    """A function, a coroutine, a generator and an asynchronous generator have the same record."""
    read = recorded_tool(recording, reads=True)(a_reader)

    def plain(task: str) -> str:
        return read(path=task)

    async def awaited(task: str) -> str:
        return read(task)

    def stream(task: str) -> Iterator[str]:
        yield read(task)

    async def astream(task: str) -> AsyncIterator[str]:
        yield read(path=task)

    async def read_all(events: AsyncIterator[str]) -> list[str]:
        return [event async for event in events]

    agent = recorded_agent(recording)
    results = [agent(plain)("a"), asyncio.run(agent(awaited)("a")), *agent(stream)("a")]
    results += asyncio.run(read_all(agent(astream)("a")))

    assert ["words of a"] * 4 == results
    assert ["run.started", *CALLED, "run.closed"] * 4 == observe(relay).kinds()


def a_reader(path: str, limit: int = 10) -> str:
    return f"words of {path}"


def test_generator_gets_what_its_reader_sends(recording: Recording) -> None:
    """A value, an error and an answer go through as they would without us; the reader is in nobody's work."""

    @recorded_agent(recording)
    def lead(task: str) -> Generator[str, str, str]:
        assert current_work() is not None
        try:
            answer = yield "a question"
        except KeyError:
            answer = "an error"
        again = yield f"got {answer}"
        return f"{answer}, {again}"

    def play(event: Callable[[Generator[str, str, str]], str]) -> list[str]:
        agent = lead("go")
        said = [next(agent), event(agent)]
        assert current_work() is None
        with pytest.raises(StopIteration) as stop:
            agent.send("bye")
        return [*said, stop.value.value]

    assert ["a question", "got yes", "yes, bye"] == play(lambda agent: str(agent.send("yes")))
    assert ["a question", "got an error", "an error, bye"] == play(lambda agent: str(agent.throw(KeyError())))


def test_request_does_not_depend_on_how_a_call_is_spelled(recording: Recording, relay: Relay) -> None:
    """Its key is made from its arguments by name, with defaults, and never from an address."""

    class Desk:
        @recorded_tool(reads=True)
        def read(self, path: str, limit: int = 10, how: object = None) -> str:
            return path * limit

    @recorded_agent(recording)
    def lead(task: str) -> None:
        Desk().read("a", how=Desk())

    lead("go")
    assert {"path": "a", "limit": 10, "how": f"<{__name__}.{Desk.__qualname__} object>"} == observe(relay).last(
        "tool.requested"
    ).value("arguments")


@pytest.mark.parity("tool-declares-action-and-target")
def test_declaration_of_a_tool_is_kept(recording: Recording, relay: Relay) -> None:
    """`@recorded_tool` over `@tool` guards what that declared."""

    @recorded_tool
    @tool("publish", action="deploy", target="stage")
    def push(stage: str) -> None: ...

    recorded_agent(recording, "lead")(push)("prod")
    requested = observe(relay).last("tool.requested")
    assert ("publish", "deploy", "prod") == (
        requested.body["tool"],
        requested.text("action"),
        requested.text("target"),
    )


@pytest.mark.parity("call-beyond-its-grant-is-denied")
def test_grants_of_decorated_agents_narrow_and_are_enforced(recording: Recording, relay: Relay) -> None:
    """A call outside of the grant is not made, and an agent that would hold more than may be delegated is not begun."""
    made: list[str] = []

    @recorded_tool(target="path")
    def write(path: str) -> None:
        made.append(path)

    @recorded_agent(may=["write:docs/**"])
    def writer(path: str) -> str:
        write(path)
        return "written"

    @recorded_agent(may=["deploy:prod"])
    def deployer(task: str) -> None:
        made.append("deployed")

    @recorded_agent
    def helper(task: str) -> None:
        made.append("helped")

    @recorded_agent(recording, may=["read:**"], may_delegate=["write:docs/**"])
    def lead(task: str) -> str:
        with pytest.raises(CallDeniedError, match="writer may write:docs"):
            writer("src/a.py")
        with pytest.raises(GrantError, match="may delegate"):
            deployer("go")
        with pytest.raises(GrantError, match="needs one"):
            helper("go")
        return writer("docs/a.md")

    assert "written" == lead("go")
    assert (["docs/a.md"], {"failed", "completed"}) == (
        made,
        {str(state) for state in observe(relay).handoffs.values()},
    )


def test_grants_of_a_recording_are_by_name(relay: Relay) -> None:
    """What one file says of all its agents, and an agent that it does not name is enforced like its caller."""
    grants = {"lead": Grant(may=("call:**",), may_delegate=("read:**",)), "reader": Grant(may=("read:docs/**",))}
    recording = Recording(relay, by="user:ana", grants=grants)
    read = recorded_tool(reads=True)(a_reader)

    @recorded_agent
    def reader(path: str) -> str:
        return read(path)

    @recorded_agent(recording)
    def lead(path: str) -> str:
        return reader(path)

    assert "words of docs/a" == lead("docs/a")
    with pytest.raises(CallDeniedError):
        lead("src/a")


@pytest.mark.parity("finished-calls-are-replayed", "handoff-retry")
def test_agent_that_is_asked_again_after_a_failure_is_its_next_attempt(recording: Recording, relay: Relay) -> None:
    """The loop tries the same words again: one handoff, two attempts, and what was finished is not made again."""
    made: list[str] = []

    @recorded_tool
    def fetch(page: int) -> str:
        made.append(f"page {page}")
        return f"page {page}"

    @recorded_agent
    def reader(task: str) -> list[str]:
        pages = [fetch(1), fetch(2)]
        if len(observe(relay).of("handoff.accepted")) == 1:
            raise TimeoutError("the provider is gone")
        return pages

    @recorded_agent(recording)
    def lead(task: str) -> list[str]:
        with pytest.raises(TimeoutError):
            reader("Read")
        return reader("Read")

    assert ["page 1", "page 2"] == lead("go") == made
    seen = observe(relay)
    assert (["completed"], 1, 2) == (
        list(seen.handoffs.values()),
        len(seen.of("handoff.retried")),
        seen.last("handoff.completed").body["kept"],
    )
    assert {receipt.body["by"] for receipt in seen.of("handoff.retried")} == {"agent:lead"}


ANALYSIS = """
import os, signal, sys
from pathlib import Path
from batonpass.frameworks import recorded_agent, recorded_tool

@recorded_tool(target="path")
def note(path, text):
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text + " ")
    return text

@recorded_agent
def compiler(task):
    return note("made.txt", "compiled")

@recorded_agent
def checker(task):
    return {"flagged": note("made.txt", "checked")}

@recorded_agent
def printer(task):
    note("made.txt", "printed")

@recorded_agent
def writer(task):
    parts = [note("made.txt", "outlined")]
    if "die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return [*parts, note("made.txt", "written")]

@recorded_agent(by="user:ana")
def lead(task):
    return [compiler("Compile"), checker("Check"), printer("Print"), writer("Write")]

if __name__ == "__main__":
    lead("Quarterly analysis")
"""


@pytest.mark.parity("relay-resumes-a-killed-root", "finished-calls-are-replayed", "retry-of-a-killed-attempt")
def test_killed_program_goes_on_where_it_was(record_place: Path) -> None:
    """What had returned is given again, the agent that was at work is its next attempt, and no tool is made twice."""
    program = record_place / "analysis.py"
    program.write_text(ANALYSIS, encoding="utf-8")
    killed = subprocess.run([sys.executable, program, "die"], check=False)
    with folder_relay() as relay:
        (root,) = [info.id for info in relay.runs() if info.handoff is None]
        spec = spec_from_file_location("analysis", program)
        assert spec is not None
        assert spec.loader is not None
        analysis = module_from_spec(spec)
        spec.loader.exec_module(analysis)
        with Recording(relay).resuming(root):
            said = analysis.lead("Quarterly analysis")
        seen = observe(relay)

    assert -signal.SIGKILL == killed.returncode
    assert ["compiled", {"flagged": "checked"}, None, ["outlined", "written"]] == said
    assert "compiled checked printed outlined written " == Path("made.txt").read_text(encoding="utf-8")
    assert ({"completed"}, "completed") == (set(seen.handoffs.values()), seen.runs[root])
    assert [1, 1, 1, 2] == [receipt.body["attempt"] for receipt in seen.of("handoff.completed")]


@pytest.mark.parity("same-offer-is-the-same-handoff")
def test_other_arguments_are_another_handoff(recording: Recording, relay: Relay) -> None:
    """An agent that goes on in another order is given no result of the same task about another thing."""
    made: list[str] = []

    @recorded_agent
    def reader(task: str, path: str) -> str:
        made.append(path)
        return f"words of {path}"

    @recorded_agent(recording)
    def lead(task: str) -> list[str]:
        return [reader("Read", path) for path in ("b", "a")]

    root = relay.start("go", by="user:ana", agent="lead")
    with root.as_current():
        reader("Read", "a")
    with recording.resuming(root.id):
        said = lead("go")

    assert (["words of b", "words of a"], ["a", "b"]) == (said, made)


def test_handoff_is_resumed_by_the_agent_of_that_name(recording: Recording, relay: Relay) -> None:
    """Its calls in doubt are decided first; another agent that begins first is not given it."""
    made: list[str] = []

    @recorded_tool
    def pay(sum: int) -> str:  # noqa: A002 - as a program may call it
        made.append("pay")
        if len(made) == 1:
            raise KeyboardInterrupt
        return "paid"

    @recorded_agent(recording)
    def payer(task: str) -> str:
        return pay(3)

    @recorded_agent(recording)
    def lead(task: str) -> str:
        return payer("Pay")

    with pytest.raises(KeyboardInterrupt):
        lead("go")
    (handoff,), (doubtful,) = observe(relay).handoffs, observe(relay).in_doubt
    with recording.resuming(handoff), pytest.raises(CallInDoubtError):
        payer("Pay")
    with recording.resuming(handoff, repeat=[doubtful.call]):
        said = payer("Pay")

    assert ("paid", 2) == (said, len(made))
    assert "completed" == observe(relay).handoffs[handoff]


def test_agents_and_tools_in_threads_need_their_context(recording: Recording, relay: Relay) -> None:
    """With `copy_context` a thread works for its agent; without, an observed call is a gap and is made."""
    made: list[str] = []
    read = recorded_tool(recording, reads=True)(a_reader)

    @recorded_agent(recording)
    def lead(task: str) -> None:
        for run in (contextvars.copy_context().run, lambda act: act()):
            thread = threading.Thread(target=run, args=(lambda: made.append(read("a")),))
            thread.start()
            thread.join()

    lead("go")
    assert (["words of a"] * 2, 1) == (made, len(recording.gaps))
    assert "copy_context" in recording.gaps[0]
    assert ["run.started", *CALLED, "run.closed"] == observe(relay).kinds()


@pytest.mark.parity("enforced-runs-fail-closed")
def test_call_of_nobody_is_refused_while_an_enforced_agent_works(relay: Relay) -> None:
    """It may be that agent's, in a thread without its context: an observed recording refuses it until that is over."""
    made: list[str] = []
    enforced = Recording(relay, by="user:ana", grant=Grant(may=("read:**",)))
    read = recorded_tool(Recording(relay, by="user:ana"), reads=True)(a_reader)

    def in_a_thread() -> None:
        thread = threading.Thread(target=lambda: made.append(text_or_error(partial(read, "a"))))
        thread.start()
        thread.join()

    recorded_agent(enforced, "lead")(lambda task: in_a_thread())("go")
    in_a_thread()

    assert ["CallError", "words of a"] == made
    with pytest.raises(CallError, match="no agent is at work here"):
        recorded_tool(enforced, reads=True)(a_reader)("b")


def text_or_error(act: Callable[[], str]) -> str:
    try:
        return act()
    except CallError as error:
        return type(error).__name__


def test_parallel_tools_and_agents_have_numbers_of_their_own(recording: Recording, relay: Relay) -> None:
    """Equal calls and equal offers at once are each made, each with a key or an id of its own."""
    read = recorded_tool(reads=True)(a_reader)

    @recorded_agent
    def helper(task: str) -> str:
        return read("a")

    @recorded_agent(recording)
    def lead(task: str) -> list[str]:
        said: list[str] = []
        work = [*[partial(helper, "Help")] * 4, *[partial(read, "a")] * 4]
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(lambda each=each: said.append(each()),))
            for each in work
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return said

    assert ["words of a"] * 8 == lead("go")
    seen = observe(relay)
    assert (4, 8) == (
        len(seen.handoffs),
        len({(receipt.stream, receipt.body["key"]) for receipt in seen.of("tool.requested")}),
    )
    assert [] == list(recording.gaps)


def test_parallel_coroutines_have_their_own_work(recording: Recording, relay: Relay) -> None:
    """Each task finds the agent that it runs for."""

    @recorded_agent
    async def helper(task: str) -> str:
        await asyncio.sleep(0)
        run = batonpass.current_run()
        return "" if run is None else run.task

    @recorded_agent(recording)
    async def lead(task: str) -> list[str]:
        return list(await asyncio.gather(*(helper(f"Part {number}") for number in range(8))))

    assert [f"Part {number}" for number in range(8)] == asyncio.run(lead("go"))
    assert {"completed"} == set(observe(relay).handoffs.values())


def test_agent_adds_to_its_report(recording: Recording, relay: Relay) -> None:
    """What it reports by itself stays; what it returned, and what its models took, is added."""

    @recorded_agent(recording)
    def lead(task: str) -> dict[str, int]:
        run, work = batonpass.current_run(), current_work()
        assert run is not None
        assert work is not None
        work.model_turn(Usage("scripted", 10, 5, 2), "a message")
        work.model_turn(Usage("scripted", 1), "another")
        run.report("in my own words", decisions=["half-even"])
        return {"files": 3}

    assert {"files": 3} == lead("go")
    report = observe(relay).last("run.closed").value("report")
    assert ("in my own words", {"files": 3}, "half-even", "returned") == (
        report["result"],
        report["value"],
        report["decisions"][0]["text"],
        report["ended"],
    )
    assert {"scripted": {"turns": 2, "input": 11, "output": 5, "cached": 2}} == report["usage"]


def test_agent_reports_its_own_usage(recording: Recording, relay: Relay) -> None:
    """A loop that counts tokens by itself says them in its report."""

    @recorded_agent(recording)
    def lead(task: str) -> str:
        run = batonpass.current_run()
        assert run is not None
        run.report("done", usage={"own": {"input": 3}})
        return "done"

    lead("go")
    assert {"own": {"input": 3}} == observe(relay).last("run.closed").value("report")["usage"]


@pytest.mark.parity("observed-runs-never-block")
@pytest.mark.parametrize("failing", range(1, 9))
def test_observed_program_works_on_where_nothing_can_be_written(tmp_path: Path, failing: int) -> None:
    """Whichever commits fail, from one on: it returns what it returns without us."""
    faults = Faults()
    with a_relay(tmp_path / "ledger.db", faults=faults) as relay:
        recording = Recording(relay, by="user:ana")
        read = recorded_tool(recording, reads=True)(a_reader)

        @recorded_agent(recording)
        def reader(task: str) -> str:
            return read("a")

        @recorded_agent(recording)
        def lead(task: str) -> list[str]:
            return [reader("Read"), read("b")]

        faults.commits = 1 - failing
        faults.fail(times=99)
        assert ["words of a", "words of b"] == lead("go")


def test_gaps_are_said_by_the_nearest_recorded_run(tmp_path: Path) -> None:
    """One commit fails: what it was about is in the record as a gap, and the rest as ever."""
    faults = Faults()
    with a_relay(tmp_path / "ledger.db", faults=faults) as relay:
        recording = Recording(relay, by="user:ana")
        read = recorded_tool(recording, reads=True)(a_reader)

        @recorded_agent(recording)
        def reader(task: str) -> str:
            return read("a")

        @recorded_agent(recording)
        def lead(task: str) -> str:
            faults.fail()
            return reader("Read")

        assert "words of a" == lead("go")
        assert any("handoff to reader" in gap for gap in observe(relay).gaps)
        assert "completed" == next(iter(observe(relay).runs.values()))
