"""What the port promises every framework: the scenes with each driver, and its corners by hand."""
# ruff: noqa: D102 - a port has the methods that a port has

import asyncio
import gc
import inspect
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import batonpass
from batonpass import Grant, Relay
from batonpass.api.opening import open_port
from batonpass.errors import CallError, FencedError, GrantExceededError, StoreError
from batonpass.frameworks import (
    Declared,
    Known,
    Made,
    Recording,
    Refused,
    Usage,
    Work,
    adelegate,
    aguard,
    asteps,
    current_work,
    delegate,
    guard,
    recorded_agent,
    recorded_tool,
    steps,
    within,
)
from batonpass.frameworks.states import MOVES, End, WorkState, decide_end
from batonpass.testing import Faults, a_relay, observe
from tests.frameworks.scenes import (
    ASK,
    CHECK,
    DRIVERS,
    TOOLS,
    TREE,
    Ask,
    Driver,
    HookAdapter,
    HookFramework,
    Hooks,
    Script,
    Told,
    World,
    use,
)

BEGUN = ["run.started", "handoff.initiated", "handoff.accepted"]
CALLED = ["tool.requested", "tool.completed"]
LEAD = Grant(may=("read:**",), may_delegate=("read:**", "write:**"))
NARROW = {"checker": Grant(may=("read:**",))}


class Port:
    """A port whose ledger is gone, or waits, for some acts."""

    def __init__(self, ledger: str | Path = "memory:") -> None:
        self.port: Any = open_port(ledger)
        self.dead: set[str] = set()
        self.slow: set[str] = set()
        self.reached, self.go_on = threading.Event(), threading.Event()

    def do(self, act: Any, request: Any, key: str | None = None) -> Any:  # noqa: ANN401 - any act
        if act.name in self.dead:
            raise OSError("no space left on device")
        if act.name in self.slow:
            self.reached.set()
            assert self.go_on.wait(10)
        return self.port.do(act, request, key)

    def close(self) -> None:
        self.port.close()


@pytest.fixture
def port() -> Iterator[Port]:
    opened = Port()
    yield opened
    opened.close()


@pytest.fixture
def relay(port: Port) -> Relay:
    return Relay(port)


@pytest.fixture
def recording(relay: Relay) -> Recording:
    return Recording(relay, by="user:ana", tools=TOOLS)


@pytest.fixture
def enforced(relay: Relay) -> Recording:
    return Recording(relay, by="user:ana", tools=TOOLS, grant=LEAD, grants=NARROW)


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> Driver:
    return DRIVERS[request.param]()


def pointers(relay: Relay) -> list[Any]:
    """Return what each offer points at."""
    return [receipt.value("baton")["brief"]["reasoning"] for receipt in observe(relay).of("handoff.initiated")]


def reports(relay: Relay) -> list[Any]:
    """Return the report of each run that ended with one, the last one last."""
    return [receipt.value("report") for receipt in observe(relay).receipts if "report" in receipt.parts]


def test_tree_is_recorded(driver: Driver, recording: Recording, relay: Relay) -> None:
    """A lead's question is a handoff, and the calls of the agent that it asked are in that agent's run."""
    world = World()

    told = driver.play(TREE, world, recording)

    seen = observe(relay)
    assert [*BEGUN, *CALLED, *CALLED, "handoff.completed", "run.closed"] == seen.kinds()
    assert ("done", ["read a", "write b"], []) == (told.answer, world.made, list(recording.gaps))
    assert ("Check it", "write", "b") == (
        seen.last("handoff.initiated").text("task"),
        seen.last("tool.requested").text("action"),
        seen.last("tool.requested").text("target"),
    )
    assert ["checked", "done"] == [report["result"] for report in reports(relay)]


def test_program_sees_the_same(driver: Driver, recording: Recording) -> None:
    """Requests, events and answer of an observed program are those that it has without us."""
    assert driver.play(TREE, World()) == driver.play(TREE, World(), recording)


def test_offer_points_at_the_message_that_chose_it(driver: Driver, recording: Recording, relay: Relay) -> None:
    """The reasoning pointer is the turn and the digest of the model message, the same whenever it is said again."""
    for _ in range(2):
        driver.play({"lead": [ASK, "done"], "checker": ["ok"]}, World(), recording)

    driver.play({"lead": [Ask("editor"), "done"], "editor": ["ok"]}, World(), recording)

    one, two, other = pointers(relay)
    assert one == two
    assert (1, 1, 64) == (one["turn"], one["number"], len(one["message"]))
    assert one["message"] != other["message"]


def test_same_words_in_a_later_turn_are_another_handoff(driver: Driver, recording: Recording, relay: Relay) -> None:
    """A lead that asks the same again means it."""
    driver.play({"lead": [ASK, ASK, "done"], "checker": ["ok", "ok again"]}, World(), recording)

    assert (2, 2) == (len(observe(relay).of("handoff.completed")), pointers(relay)[-1]["turn"])


def test_tokens_are_counted_for_each_model(driver: Driver, recording: Recording, relay: Relay) -> None:
    """The report of a run says what its models took."""
    driver.play(TREE, World(), recording)

    assert {"scripted": {"turns": 3, "input": 30, "output": 15, "cached": 6}} == reports(relay)[0]["usage"]


def test_enforced_grant_refuses_a_call(driver: Driver, enforced: Recording, relay: Relay) -> None:
    """A call outside of the grant is not made; its model reads why, and goes on."""
    world = World()

    told = driver.play(TREE, world, enforced)

    assert ("done", ["read a"]) == (told.answer, world.made)
    assert [*BEGUN, *CALLED, "tool.denied", "handoff.completed", "run.closed"] == observe(relay).kinds()
    assert any("tried write:b" in request for request in told.requests)


def test_agent_without_a_grant_is_not_begun(driver: Driver, relay: Relay) -> None:
    """An enforced lead gives nothing to an agent that no grant names; its own model reads why."""
    told = driver.play({"lead": [ASK, "done"]}, World(), Recording(relay, by="user:ana", grant=LEAD))

    assert ("done", ["run.started", "run.closed"]) == (told.answer, observe(relay).kinds())
    assert any("needs one: may=" in request for request in told.requests)


def test_equal_calls_are_each_made(driver: Driver, recording: Recording, relay: Relay) -> None:
    """An agent that reads again wants what is there now."""
    script: Script = {"lead": [ASK, "done"], "checker": [use("read", path="a"), use("read", path="a"), "checked"]}
    world = World()

    driver.play(script, world, recording)

    assert (["read a", "read a"], 2) == (world.made, len(observe(relay).of("tool.requested")))


def test_tool_that_fails_is_recorded_and_nothing_else_changes(
    driver: Driver, recording: Recording, relay: Relay
) -> None:
    """The error reaches the model as it would without us."""
    script: Script = {"lead": [ASK, "done"], "checker": [use("write", path="b", text="fail"), "it failed"]}

    alone = driver.play(script, World())
    assert alone == driver.play(script, World(), recording)
    assert [*BEGUN, "tool.requested", "tool.failed", "handoff.completed", "run.closed"] == observe(relay).kinds()


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_stream_that_is_dropped_leaves_no_run_open(
    driver: Driver, recording: Recording, relay: Relay, stop: int
) -> None:
    """A reader that goes away ends every run, as failed; what follows is nobody's."""
    told = driver.play(TREE, World(), recording, stop=stop)
    gc.collect()

    assert current_work() is None
    ended = "completed" if told.answer else "failed"
    assert ended == next(iter(observe(relay).runs.values()))
    assert "open" not in observe(relay).runs.values()
    assert {"completed": "returned", "failed": "abandoned"}[ended] == reports(relay)[-1]["ended"]


def test_second_run_does_not_repeat_what_was_finished(driver: Driver, tmp_path: Path) -> None:
    """After a crash of its model an agent goes on in another process, and is given the results that it had."""
    ledger, world = tmp_path / "ledger.db", World()
    crashed: Script = {"lead": [ASK, "done"], "checker": [use("read", path="a"), RuntimeError("provider gone")]}
    with Relay.open(ledger) as first, suppress(RuntimeError):
        driver.play(crashed, world, Recording(first, by="user:ana", tools=TOOLS))
    (handoff,) = observe(ledger).handoffs

    with Relay.open(ledger) as second:
        recording = Recording(second, by="user:ana", tools=TOOLS)
        with recording.resuming(handoff):
            told = driver.play({"checker": CHECK}, world, recording, start="checker")

    assert ("checked", ["read a", "write b"]) == (told.answer, world.made)
    assert any("words of a" in request for request in told.requests)
    assert "completed" == observe(ledger).handoffs[handoff]


@pytest.mark.parametrize("dead", ["start", "hand_off", "accept", "begin_call", "finish_call", "close", "record"])
def test_fault_of_ours_changes_nothing_in_an_observed_program(
    driver: Driver, recording: Recording, port: Port, dead: str
) -> None:
    """It works on as it does without us, and we count what we missed."""
    alone = driver.play(TREE, World())
    # A handoff is accepted in the commit of its offer; gaps are recorded where something else has failed.
    port.dead = {dead} | {"accept": {"hand_off"}, "record": {"begin_call"}}.get(dead, set())

    assert alone == driver.play(TREE, World(), recording)
    assert len(recording.gaps) >= 1


def test_gaps_are_receipts_of_the_nearest_run(driver: Driver, recording: Recording, relay: Relay, port: Port) -> None:
    """What an agent did that could not be recorded is said by the one that asked it."""
    port.dead = {"hand_off"}

    driver.play(TREE, World(), recording)

    seen = observe(relay)
    assert ["run.started", "run.recorded.gap", "run.closed"] == seen.kinds()
    assert list(recording.gaps) == seen.gaps
    assert ["handoff to checker", "call of read", "call of write"] == [gap.partition(":")[0] for gap in seen.gaps]


def test_enforced_agent_makes_no_call_that_nobody_could_judge(driver: Driver, enforced: Recording, port: Port) -> None:
    """A guard that fails says no."""
    port.dead = {"begin_call"}
    world = World()

    told = driver.play(TREE, world, enforced)

    assert ("done", []) == (told.answer, world.made)


def test_question_to_a_person_pauses_the_run_and_its_call_is_made_once(recording: Recording, relay: Relay) -> None:
    """It is no end; the agent begins again, in the same run, and the call is not in doubt meanwhile."""
    world, told = World(), Told()
    framework = HookFramework({"lead": [use("pay"), "done"]}, world, told, HookAdapter(recording))
    agent = framework.agent("lead")

    list(agent.stream("Pay it"))
    paused, doubtful = observe(relay).kinds(), observe(relay).in_doubt
    world.answer = "yes"
    list(agent.stream("Pay it"))

    assert (["run.started", "tool.requested", "tool.failed"], ()) == (paused, doubtful)
    assert [*paused, *CALLED, "run.closed"] == observe(relay).kinds()
    assert ["pay"] == world.made


def test_transfer_is_a_handoff_whose_end_ends_the_sender(recording: Recording, relay: Relay) -> None:
    """The sender's run stays open until its heir has ended, and both say the same."""
    script: Script = {"lead": [Ask(transfers=True)], "checker": CHECK}

    told = Hooks().play(script, World(), recording)

    assert "checked" == told.answer
    assert [*BEGUN, *CALLED, *CALLED, "handoff.completed", "run.closed"] == observe(relay).kinds()
    assert ["checked", "checked"] == [report["result"] for report in reports(relay)]


def test_every_end_is_decided() -> None:
    """However a framework stops, there is one answer, and only a pause and a transfer leave a run open."""
    ends: dict[tuple[BaseException | None, bool, bool], End] = {
        (None, False, False): End.RETURNED,
        (None, False, True): End.TRANSFERRED,
        (None, True, False): End.INTERRUPTED,
        (GeneratorExit(), True, False): End.INTERRUPTED,
        (GeneratorExit(), False, False): End.ABANDONED,
        (asyncio.CancelledError(), False, True): End.CANCELLED,
        (KeyboardInterrupt(), False, False): End.CANCELLED,
        (ValueError(), False, True): End.FAILED,
    }
    assert ends == {case: decide_end(case[0], waits=case[1], has_heir=case[2]) for case in ends}
    staying = {how for how in End if MOVES.get((WorkState.OPEN, how)) is not WorkState.ENDED}
    assert {End.INTERRUPTED, End.TRANSFERRED} == staying


def a_root(recording: Recording) -> Work:
    work = recording.begin("lead", "go")
    work.open()
    return work


def handoff_of(work: Work) -> str | None:
    return None if work.run is None else work.run.handoff


def test_dropped_tree_ends_from_its_leaves(recording: Recording, relay: Relay) -> None:
    """Frameworks do not close what is inside of a dropped stream; its end begins no agent that had not begun."""
    lead = a_root(recording)
    child = lead.offer("checker", "Check it")
    lead.offer("editor", "Edit it")
    child.open()

    lead.end(error=GeneratorExit())
    child.end("too late")

    ended = ["handoff.failed", "run.closed", "handoff.cancelled"]
    assert [*BEGUN[:2], *BEGUN[1:], *ended] == observe(relay).kinds()
    assert {"failed", "cancelled"} == set(observe(relay).handoffs.values())


def test_of_two_transfers_in_a_turn_one_is_carried_out(recording: Recording, relay: Relay) -> None:
    """Frameworks carry out one of a turn, silently. The same words twice in a turn are two handoffs."""
    lead = a_root(recording)
    _, second = (lead.offer(agent, "Check it", transfer=True) for agent in ("checker", "editor"))
    lead.offer("checker", "Check it")

    heir = recording.begin("editor", "Check it", caller=lead)
    lead.end("I hand it on")
    is_open = "open" in observe(relay).runs.values()
    heir.end("edited")

    assert (second, True) == (heir, is_open)
    assert "edited" == reports(relay)[-1]["result"]
    assert ["cancelled", "completed", "cancelled"] == list(observe(relay).handoffs.values())


def test_heir_that_fails_fails_its_sender(recording: Recording, relay: Relay) -> None:
    """The agent that handed it on says what became of it."""
    lead = a_root(recording)
    lead.offer("checker", "Check it", transfer=True)
    heir = recording.begin("checker", "Check it", caller=lead)
    lead.end("I hand it on")

    heir.end(error=ValueError())

    assert ["failed", "failed"] == [report["ended"] for report in reports(relay)]


def test_paused_agent_outlives_a_dropped_parent(recording: Recording, relay: Relay) -> None:
    """It waits for a person, and not for the agent above; the record says that it was withdrawn with its parent."""
    lead = a_root(recording)
    child = lead.offer("checker", "Check it")
    child.open()
    child.end(waits=True)

    lead.end(error=GeneratorExit())
    assert [*BEGUN, "run.closed", "handoff.cancelled"] == observe(relay).kinds()
    child.end(error=GeneratorExit())
    assert WorkState.ENDED is child.state


def test_agent_that_begins_twice_is_one(recording: Recording, relay: Relay) -> None:
    """Each model request may say that it begins, and each layer that it ends."""
    lead = a_root(recording)
    lead.open()
    lead.end("done")
    lead.open()
    lead.end("done again")
    lead.end(error=ValueError())

    assert ["run.started", "run.closed"] == observe(relay).kinds()
    assert "done" == reports(relay)[-1]["result"]


def test_agent_that_was_given_up_before_it_began_does_not_begin(recording: Recording, relay: Relay) -> None:
    """Its stream was dropped; a layer that says late that it begins begins nothing."""
    child = a_root(recording).offer("checker", "Check it")

    child.end(error=GeneratorExit())
    child.open()

    assert (WorkState.DROPPED, BEGUN[:2]) == (child.state, observe(relay).kinds())


def test_next_attempt_is_for_the_agent_of_that_name(recording: Recording) -> None:
    """Another one that begins first is not given it."""
    lead = a_root(recording)
    child = lead.offer("checker", "Check it")
    child.open()
    handoff = handoff_of(child)
    assert handoff is not None
    child.end(error=RuntimeError("provider gone"))

    with recording.resuming(handoff) as again:
        begun = [recording.begin(agent, "Check it") is again for agent in ("editor", "checker")]
    assert [False, True] == begun


def test_call_that_a_hook_and_its_entrance_judge_is_requested_once(recording: Recording, relay: Relay) -> None:
    """The same arguments are the same call; others are another, and the first was not made."""
    lead = a_root(recording)
    call = recording.call("fetch", work=lead)

    assert [Made()] * 3 == [call.judge({"n": 1}), call.judge({"n": 1}), call.judge({"n": 2})]
    call.succeed("two")
    call.succeed("twice")
    call.fail(ValueError())
    assert ["run.started", "tool.requested", "tool.failed", *CALLED] == observe(relay).kinds()
    assert [] == list(recording.gaps)


def test_tool_runs_for_the_agent_whose_call_it_is(recording: Recording) -> None:
    """Wherever it was called: it finds its run and its call, and an agent that begins inside is handed its task."""
    lead = a_root(recording)

    def inside() -> list[Any]:
        run, call = batonpass.current_run(), batonpass.current_call()
        return [current_work(), None if run is None else run.id, None if call is None else call.run]

    async def inside_awaited() -> list[Any]:
        return inside()

    one = guard(recording.call("ask", work=lead), {}, inside, lambda refused: [refused])
    two = asyncio.run(aguard(recording.call("ask", work=lead), {}, inside_awaited, lambda refused: [refused]))

    assert lead.run is not None
    assert [lead, lead.run.id, lead.run.id] == one == two
    assert (None, None) == (current_work(), batonpass.current_call())


def test_refusal_inside_a_tool_is_told_as_one(recording: Recording, relay: Relay) -> None:
    """A tool that asks an agent which may not begin has failed, and its model reads why."""
    lead = a_root(recording)

    def ask() -> str:
        raise GrantExceededError("may not delegate it")

    async def ask_awaited() -> str:
        return ask()

    def say(refused: Refused) -> str:
        return refused.sentence

    one, two = (recording.call("ask", work=lead) for _ in range(2))
    said = [guard(one, {}, ask, say), asyncio.run(aguard(two, {}, ask_awaited, say))]

    assert ["Refused by Batonpass: may not delegate it"] * 2 == said
    assert ["run.started", *["tool.requested", "tool.failed"] * 2] == observe(relay).kinds()


def test_agent_with_a_grant_is_enforced_below_an_observed_one(relay: Relay, port: Port) -> None:
    """A guard that fails says no to it, and it does not begin where its parent has no record."""
    recording = Recording(relay, by="user:ana", grants=NARROW)
    child = a_root(recording).offer("checker", "Check it")
    child.open()
    port.dead = {"begin_call", "start"}
    verdict = recording.call("read", work=child).judge({})

    assert isinstance(verdict, Refused)
    assert "call.guard_failed" == verdict.error.code
    with pytest.raises(CallError, match="not recorded"):
        a_root(recording).offer("checker", "Check it")


def test_offer_that_was_refused_takes_no_number(relay: Relay) -> None:
    """The same words, when they may be said, are the first."""
    grants = {"checker": Grant(may=("deploy:**",))}
    recording = Recording(relay, by="user:ana", grant=LEAD, grants=grants)
    lead = a_root(recording)
    with pytest.raises(GrantExceededError):
        lead.offer("checker", "Check it")
    recording.grants = NARROW
    lead.offer("checker", "Check it")

    assert [1] == [pointer["number"] for pointer in pointers(relay)]


def test_number_of_a_failed_offer_is_not_that_of_one_at_work(recording: Recording, relay: Relay) -> None:
    """Of two equal offers the first fails: asked again it is that one's next attempt, and not the second's."""
    lead = a_root(recording)
    first, second = (lead.offer("checker", "Check it", at_once=True) for _ in range(2))
    first.end(error=RuntimeError("provider gone"))

    third = lead.offer("checker", "Check it", at_once=True)

    assert handoff_of(first) == handoff_of(third) != handoff_of(second)
    assert [1, 1, 2] == [receipt.body["attempt"] for receipt in observe(relay).of("handoff.accepted")]


@pytest.mark.parity("sim-equal-calls-have-own-keys")
def test_number_of_a_failed_call_is_not_that_of_one_that_finished(recording: Recording) -> None:
    """Of two equal calls at once the first fails: the third is made, and not given the second's result."""
    lead = a_root(recording)
    first, second, third = (recording.call("read", work=lead) for _ in range(3))

    assert [Made(), Made()] == [first.judge({}), second.judge({})]
    first.fail(OSError())
    second.succeed("two")
    assert Made() == third.judge({})


@pytest.mark.parity("failed-call-frees-its-number", "call-key-is-stable")
@pytest.mark.parametrize("fault", ["of the tool", "of ours"])
def test_call_that_did_not_come_about_takes_no_number(recording: Recording, port: Port, fault: str) -> None:
    """The next attempt makes the call once, so it has to have the number of the one that finished."""
    child = a_root(recording).offer("checker", "Check it")
    child.open()
    handoff = handoff_of(child)
    assert handoff is not None
    port.dead = {"begin_call"} if fault == "of ours" else set()
    failing = recording.call("fetch", work=child)
    failing.judge({})
    failing.fail(OSError())
    port.dead = set()
    call = recording.call("fetch", work=child)
    call.judge({})
    call.succeed("words")
    child.end(error=RuntimeError("provider gone"))

    with recording.resuming(handoff) as again:
        again.open()
    assert Known("words") == recording.call("fetch", work=again).judge({})


@pytest.mark.parity("inexact-results-are-not-replayed")
def test_result_that_json_changes_is_not_replayed(recording: Recording) -> None:
    """The next attempt would be given a list for a tuple: a person is asked, as of any outcome nobody has."""
    child = a_root(recording).offer("checker", "Check it")
    child.open()
    handoff = handoff_of(child)
    assert handoff is not None
    call = recording.call("fetch", work=child)
    call.judge({})
    call.succeed(("a", "b"))
    child.end(error=RuntimeError("provider gone"))

    with recording.resuming(handoff) as again:
        again.open()
    assert isinstance(recording.call("fetch", work=again).judge({}), Refused)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        pytest.param("words", Known("words"), id="a text"),
        pytest.param({"flagged": 3}, Known({"flagged": 3}), id="a value"),
        pytest.param(None, Known(None), id="nothing"),
        pytest.param("", Known(""), id="an empty text"),
        pytest.param(("a", "b"), None, id="what JSON would change"),
    ],
)
@pytest.mark.parametrize("begin_and_work", ["blocking", "awaited"])
def test_agent_that_had_returned_is_not_run_again(
    recording: Recording, returned: object, expected: Known | None, begin_and_work: str
) -> None:
    """Its caller's next attempt is given what it returned, if that comes back as it was; else it works again."""

    def ask(lead: Work) -> Work:
        child = lead.offer("checker", "Check it")
        child.open()
        return child

    lead = recording.begin("root", "go")
    lead.open()
    parent = ask(lead)
    ask(parent).end(returned)
    handoff = handoff_of(parent)
    assert handoff is not None
    parent.end(error=RuntimeError("provider gone"))

    with recording.resuming(handoff) as again:
        again.open()
    child = ask(again)
    assert expected == child.known
    flow = {"blocking": work_on, "awaited": await_work}[begin_and_work]
    assert (returned if expected else "worked") == flow(lambda: child)
    assert WorkState.ENDED is child.state


def work_on(begin: Callable[[], Work]) -> object:
    return delegate(begin, lambda: "worked")


def await_work(begin: Callable[[], Work]) -> object:
    async def work() -> object:
        return "worked"

    return asyncio.run(adelegate(begin, work))


def test_what_an_agent_reported_by_itself_is_what_it_returned(recording: Recording) -> None:
    """Said in a report and returned as well it comes back; if something else was returned, it works again."""
    known = []
    for returned in ([1], [2]):
        root = a_root(recording)
        assert root.run is not None
        child = root.offer("checker", "Check it", at_once=True)
        assert child.run is not None
        child.run.report("in my own words", value=[1])
        child.end(returned)
        with recording.resuming(root.run.id) as again:
            again.open()
        known.append(again.offer("checker", "Check it", at_once=True).known)

    assert [Known([1]), None] == known


def test_declared_target_that_a_model_left_out(recording: Recording, relay: Relay) -> None:
    """An observed call is recorded all the same; an enforced one is refused."""
    declared = {"publish": Declared(action="deploy", target="stage")}
    recording.tools = declared
    enforced = Recording(relay, by="user:ana", tools=declared, grant=Grant(may=("deploy:**",)))

    assert Made() == recording.call("publish", work=a_root(recording)).judge({"note": "x"})
    assert isinstance(enforced.call("publish", work=a_root(enforced)).judge({"note": "x"}), Refused)
    assert 1 == len(observe(relay).of("tool.requested"))


def test_agent_that_has_ended_calls_nothing(recording: Recording, enforced: Recording) -> None:
    """What runs on in the background is a gap if it is observed, and refused if it is enforced."""
    works = [a_root(each) for each in (recording, enforced)]
    for work in works:
        work.end("done")

    assert Made() == recording.call("read", work=works[0]).judge({"path": "a"})
    assert isinstance(enforced.call("read", work=works[1]).judge({"path": "a"}), Refused)
    assert 1 == len(recording.gaps)


def test_task_that_is_cancelled_while_it_is_judged_makes_nothing(
    recording: Recording, relay: Relay, port: Port
) -> None:
    """The request is durable by then, so the record says that it was not made: nobody is asked."""
    lead = a_root(recording)
    port.slow = {"begin_call"}

    async def pay() -> str:
        return pytest.fail("it was made")

    async def main() -> None:
        call = recording.call("pay", work=lead)
        task = asyncio.create_task(aguard(call, {}, pay, lambda refused: refused.sentence))
        await asyncio.to_thread(port.reached.wait, 10)
        task.cancel()
        asyncio.get_running_loop().call_later(0.02, port.go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    seen = observe(relay)
    assert (["run.started", "tool.requested", "tool.failed"], ()) == (seen.kinds(), seen.in_doubt)
    assert "not made" in seen.last("tool.failed").text("error")


def test_cancelled_task_leaves_its_call_in_doubt(recording: Recording, relay: Relay) -> None:
    """Nobody knows what a tool had done when it was interrupted. Its agent ends, and the one above goes on."""

    async def main() -> None:
        at_work = asyncio.Event()

        @recorded_tool(recording)
        async def wait() -> None:
            at_work.set()
            await asyncio.sleep(60)

        @recorded_agent(recording)
        async def waiter(_: str) -> None:
            await wait()

        @recorded_agent(recording)
        async def lead(_: str) -> str:
            task = asyncio.create_task(waiter("wait"))
            await at_work.wait()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            return "gave up"

        await lead("go")

    asyncio.run(main())
    seen = observe(relay)
    assert ["wait"] == [call.tool for call in seen.in_doubt]
    assert [*BEGUN, "tool.requested", "handoff.failed", "run.closed"] == seen.kinds()


@pytest.mark.parametrize("slow", ["start", "hand_off"])
def test_agent_that_is_cancelled_while_it_begins_ends(
    recording: Recording, relay: Relay, port: Port, slow: str
) -> None:
    """It had begun in the record before it could be told, so the record says how it ended."""

    @recorded_agent(recording)
    async def helper(task: str) -> None:
        pytest.fail(f"it worked on {task}")

    @recorded_agent(recording)
    async def lead(task: str) -> None:
        await helper(task)

    async def main() -> None:
        port.slow = {slow}
        task = asyncio.create_task(lead("go"))
        await asyncio.to_thread(port.reached.wait, 10)
        task.cancel()
        asyncio.get_running_loop().call_later(0.02, port.go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert {"failed"} == set(observe(relay).runs.values())
    assert {"cancelled"} == {report["ended"] for report in reports(relay)}


def test_dropped_asynchronous_stream_ends_its_runs(recording: Recording, relay: Relay) -> None:
    """Its finalizer closes it while the loop stops: the end is told without an await."""

    @recorded_agent(recording)
    async def helper(task: str) -> Any:  # noqa: ANN401 - a stream
        yield task
        yield "never"

    @recorded_agent(recording)
    async def lead(task: str) -> Any:  # noqa: ANN401 - a stream
        async for event in helper(task):
            yield event

    async def main() -> str:
        async for event in lead("go"):
            assert current_work() is None
            return str(event)
        return ""

    assert "go" == asyncio.run(main())
    gc.collect()
    assert {"failed"} == set(observe(relay).runs.values())


def test_what_a_dropped_agent_does_last_is_its_own(recording: Recording, relay: Relay) -> None:
    """Its `finally` runs while the stream is left, and what it calls there is its call."""

    @recorded_tool(recording)
    def release() -> None: ...

    def work(task: str) -> Iterator[str]:
        try:
            yield task
            yield "never"
        finally:
            release()

    async def work_awaited(task: str) -> AsyncGenerator[str, None]:
        try:
            yield task
            yield "never"
        finally:
            release()

    async def leave() -> None:
        inner = work_awaited("go")
        lead = a_root(recording)
        events = asteps(inner, lead)
        await anext(events)
        await events.aclose()
        assert ([], WorkState.OPEN) == ([event async for event in inner], lead.state)
        lead.end()

    stream = recorded_agent(recording, "lead")(work)("go")
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    asyncio.run(leave())

    assert ["run.started", *CALLED, "run.closed"] * 2 == observe(relay).kinds()


def test_generator_is_closed_with_its_steps(recording: Recording) -> None:
    """Whoever else holds it: what it has open is closed when its reader leaves."""

    def work() -> Generator[str, None, None]:
        yield "go"

    inner = work()
    events = steps(inner, a_root(recording))
    next(events)
    events.close()

    assert inspect.GEN_CLOSED == inspect.getgeneratorstate(inner)


def test_usage_and_end_travel_in_the_report(recording: Recording, relay: Relay) -> None:
    """Also of an agent that failed: what it took is not lost."""
    lead = a_root(recording)
    lead.model_turn(Usage("scripted", 7), "a message")

    lead.end(error=ValueError("no"))

    assert ("failed", 7) == (reports(relay)[-1]["ended"], reports(relay)[-1]["usage"]["scripted"]["input"])


@pytest.mark.parity("interrupt-leaves-a-call-in-doubt", "sim-in-doubt-for-its-own-run")
def test_interrupted_call_is_in_doubt_for_its_own_agent(recording: Recording) -> None:
    """A loop that catches the interrupt and calls the same again would make it twice: it is refused."""
    lead = a_root(recording)
    call = recording.call("pay", work=lead)
    call.judge({})
    call.fail(KeyboardInterrupt())

    verdict = recording.call("pay", work=lead).judge({})

    assert isinstance(verdict, Refused)
    assert "call.in_doubt" == verdict.error.code


def test_gaps_are_said_before_a_long_pause(recording: Recording, relay: Relay, port: Port) -> None:
    """A person may take days to answer, and the process may be gone by then."""
    lead = a_root(recording)
    port.dead = {"begin_call"}
    recording.call("read", work=lead).judge({"path": "a"})
    port.dead = set()

    lead.end(waits=True)

    assert ["run.started", "run.recorded.gap"] == observe(relay).kinds()


def test_agent_without_a_record_is_not_taken_for_its_caller(recording: Recording, port: Port) -> None:
    """Its offer could not be recorded: what it says of its run is said of none."""
    lead = a_root(recording)
    port.dead = {"hand_off"}
    child = lead.offer("checker", "Check it")
    child.open()

    with within(lead), within(child):
        assert (child, None) == (current_work(), batonpass.current_run())


def test_offer_that_the_disk_had_no_room_for(driver: Driver, tmp_path: Path) -> None:
    """The core goes on with a run that has no place in the record, and says so; here it is a run like others."""
    faults = Faults()
    with a_relay(tmp_path / "ledger.db", faults=faults) as relay:
        recording = Recording(relay, by="user:ana", tools=TOOLS)
        faults.at(2, "before", no_room)

        assert driver.play(TREE, World()) == driver.play(TREE, World(), recording)
        assert ["run.started", "run.recorded.gap", "run.closed"] == observe(relay).kinds()
        assert [] == list(recording.gaps)


def no_room() -> None:
    raise StoreError("the disk is full")


def test_resumed_agent_is_enforced_as_its_handoff_is(enforced: Recording, relay: Relay, port: Port) -> None:
    """Another program goes on with it and names no grant: a guard that fails says no all the same."""
    child = a_root(enforced).offer("checker", "Check it")
    child.open()
    handoff = handoff_of(child)
    assert handoff is not None
    child.end(error=RuntimeError("provider gone"))

    with Recording(relay, by="user:ana").resuming(handoff) as again:
        again.open()
    port.dead = {"begin_call"}
    assert isinstance(enforced.call("read", work=again).judge({"path": "a"}), Refused)


def test_agent_that_was_taken_over_hands_nothing_on(tmp_path: Path) -> None:
    """That is a verdict and no fault: an observed agent hears it as well."""
    ledger = tmp_path / "ledger.db"
    with Relay.open(ledger) as first, Relay.open(ledger) as second:
        lead = a_root(Recording(first, by="user:ana"))
        assert lead.run is not None
        second.resume(lead.run.id)

        with pytest.raises(FencedError):
            lead.offer("checker", "Check it")


def test_call_in_doubt_of_a_root_is_decided_when_it_is_resumed(recording: Recording, relay: Relay) -> None:
    """Repeated or skipped, as a handoff's; the others stay in doubt."""
    lead = a_root(recording)
    assert lead.run is not None
    for tool in ("pay", "send", "push"):
        recording.call(tool, work=lead).judge({})
    calls = {call.tool: call.call for call in observe(relay).in_doubt}

    with recording.resuming(lead.run.id, repeat=[calls["pay"]], skip=[calls["send"]]) as again:
        again.open()
    verdicts = [recording.call(tool, work=again).judge({}) for tool in ("pay", "send", "push")]

    assert [Made(), Known(None)] == verdicts[:2]
    assert isinstance(verdicts[2], Refused)


@pytest.mark.parity("gaps-are-recorded")
def test_gap_that_cannot_be_recorded_is_said_once_with_the_next_receipt(tmp_path: Path) -> None:
    """The act that says it may fail as well: it is no gap of its own."""
    faults = Faults()
    with a_relay(tmp_path / "ledger.db", faults=faults) as relay:
        run = relay.start("go", by="user:ana")
        faults.fail()
        run.record_gaps("a call")
        run.close()

        assert ["a call"] == observe(relay).gaps


@pytest.mark.parity("offer-and-accept-in-one-commit")
def test_handoff_inside_of_a_program_is_one_commit(tmp_path: Path) -> None:
    """Nothing is left between an offer and its acceptance to die in."""
    faults = Faults()
    with a_relay(tmp_path / "ledger.db", faults=faults) as relay:
        recording = Recording(relay, by="user:ana")

        @recorded_agent(recording)
        def helper(task: str) -> str:
            return task

        recorded_agent(recording, "lead")(helper)("go")

    assert 4 == faults.commits


def test_lead_holds_no_agent_that_has_ended(recording: Recording) -> None:
    """It may work for days."""
    lead = a_root(recording)
    child = lead.offer("checker", "Check it")
    child.end("checked")
    ended = weakref.ref(child)
    del child
    gc.collect()

    assert None is ended()


def test_enforced_result_that_could_not_be_recorded_is_not_delivered(enforced: Recording, port: Port) -> None:
    """The caller would go on with what no record has; but the error of an agent that failed is its own."""
    returned, failed = a_root(enforced), a_root(enforced)
    port.dead = {"close"}

    with pytest.raises(OSError, match="no space left"):
        returned.end("done")
    failed.end(error=ValueError())
    assert WorkState.ENDED is failed.state
