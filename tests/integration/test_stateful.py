"""Random commands on two relays that share a ledger, crashes included: whatever they do, the record holds."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from batonpass.errors import (
    CallError,
    FencedError,
    HandoffError,
    IllegalTransitionError,
    InvalidValueError,
    KeyMissingError,
    LeaseLostError,
    NotFoundError,
    StoreShutError,
    StreamClosedError,
)
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.tools.declaration import declared_of, tool
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.base.kinds import Settlement
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Constraint, Decision, OpenQuestion
from batonpass.model.ledger.run import RunState
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay, desk_of
from tests.seeds import SEEDS

ANA: Final = "user:ana"
AGENTS: Final = ("drafter", "editor", "tester")
ENDED: Final = datetime(2020, 1, 1, tzinfo=UTC)
AT_ONCE: Final = timedelta(0)
LONG: Final = timedelta(minutes=10)

# What a command may be answered: somebody else came first, it is not its turn, or its process is gone.
# Anything else is a fault.
REFUSED: Final = (
    CallError,
    FencedError,
    HandoffError,
    IllegalTransitionError,
    KeyMissingError,
    LeaseLostError,
    NotFoundError,
    StoreShutError,
    StreamClosedError,
)


class Deliberate(Exception):  # noqa: N818 - not an error of ours, and not one of the program's
    """What a tool raises in this test."""


class Handoffs(RuleBasedStateMachine):
    """Two relays, their runs, and whoever approves, answers and judges."""

    live = Bundle("live")  # runs that some process holds, or held before it crashed
    handoffs = Bundle("handoffs")

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="batonpass-stateful-"))
        self.relays = [self.opened(), self.opened()]
        self.world: Counter[str] = Counter()
        self.called: set[tuple[int, int]] = set()
        self.runs: list[LiveRun] = []  # kept, so that no two ever have the same identity
        self.roots = 0
        self.named = 0
        self.desks: list[object] = []  # kept likewise
        self.held: set[tuple[int, RunId]] = set()

    def opened(self) -> Relay:
        """Return one more process on the ledger."""
        return Relay.open(f"sqlite:///{self.directory}/ledger.db", policy=HandoffPolicy(asks=True))

    def relay(self, number: int) -> Relay:
        """Return one of the two processes."""
        return self.relays[number]

    @contextmanager
    def leaving_parents_alone(self, handoff: HandoffId) -> Iterator[None]:
        """Check that what happens to a handoff begins no run but its own."""
        before = self.other_runs(handoff)
        yield
        assert before == self.other_runs(handoff)

    def other_runs(self, handoff: HandoffId) -> set[RunId]:
        """Return all runs but the attempts at a handoff."""
        with self.relays[0].store.view() as view:
            return {run.id for run in view.find_runs() if run.handoff != handoff}

    def hold(self, run: LiveRun) -> LiveRun:
        """Remember which process holds a run."""
        self.held.add((id(run._desk), run.id))
        self.desks.append(run._desk)
        return run

    def effect(self, name: str) -> str:
        """Have an effect on the world, and count it."""
        self.world[name] += 1
        return name

    @initialize(target=live)
    def begin(self) -> LiveRun:
        """Begin with one root."""
        self.roots += 1
        return self.hold(self.relay(0).start("begin", by=ANA))

    @rule(target=live, number=st.integers(0, 1))
    def start(self, number: int) -> LiveRun:
        """Start a root."""
        self.roots += 1
        return self.hold(self.relay(number).start("start", by=ANA, items=[Constraint("be careful")]))

    @rule(
        target=handoffs,
        run=live,
        to=st.sampled_from(AGENTS),
        task=st.sampled_from(["one", "two", "three"]),
        carrier=st.sampled_from(Carrier),
        hold=st.booleans(),
        overdue=st.booleans(),
        blocked=st.booleans(),
    )
    def hand_off(self, run: LiveRun, to: str, task: str, carrier: Carrier, **how: bool) -> Any:  # noqa: ANN401 - a bundle's
        """Offer a task: to be done here or by a worker, held, overdue, or with a question that blocks."""
        questions = [OpenQuestion("which of them?", blocking=True)] if how["blocked"] else []
        try:
            return run.hand_off(
                to,
                task,
                carrier=carrier,
                hold=how["hold"],
                deadline=ENDED if how["overdue"] else None,
                items=questions,
            )
        except REFUSED:
            return multiple()

    @rule(target=live, handoff=handoffs)
    def accept(self, handoff: LiveHandoff) -> Any:  # noqa: ANN401 - a bundle's
        """Take a handoff where it was offered."""
        try:
            with self.leaving_parents_alone(handoff.id):
                return self.hold(handoff.accept())
        except REFUSED:
            return multiple()
        except InvalidValueError as refused:
            if refused.field != "lease":  # it waits for a worker, and is not to be had without a lease
                raise
            return multiple()

    @rule(target=live, number=st.integers(0, 1), lease_for=st.sampled_from([AT_ONCE, LONG]))
    def claim(self, number: int, lease_for: timedelta) -> Any:  # noqa: ANN401 - a bundle's
        """Take a handoff as a worker, for a while or for no time at all."""
        relay = self.relay(number)
        lease = relay.claim(holder=f"worker-{number}", lease_for=lease_for)
        if lease is None:
            return multiple()
        try:
            with self.leaving_parents_alone(lease.handoff):
                return self.hold(relay.handoff(lease.handoff).accept(lease=lease))
        except REFUSED:
            relay.release(lease)
            return multiple()

    @rule(run=live)
    def record(self, run: LiveRun) -> None:
        """Note a decision."""
        with allowing():
            run.record(Decision("so be it", why="somebody has to decide"))

    @rule(run=live, works=st.booleans(), which=st.integers(1, 2))
    def call(self, run: LiveRun, which: int, *, works: bool) -> None:
        """Call a tool that has an effect on the world, or fails without one."""
        name = f"{run._holding.scope} {which}"
        if (id(run), which) in self.called:
            return  # the program makes each call once, however often it has to try
        if not any(run._desk is desk_of(relay) for relay in self.relays):
            return  # its process is gone; a live one that cannot record would go on without, as it was not told to stop

        @tool("act", target="name")
        def act(name: str) -> str:
            if not works:
                raise Deliberate
            return self.effect(name)

        with allowing(Deliberate):
            run.call(act, name)
            self.called.add((id(run), which))
            self.runs.append(run)

    @rule(run=live)
    def die_in_a_call(self, run: LiveRun) -> None:
        """Request a call of which nobody ever learns what came of it."""

        def act(name: str) -> str:
            return self.effect(name)

        self.named += 1
        with allowing():
            name = f"in doubt {self.named}"
            begin_call(run._desk, run._holding, ToolCall(declared_of(act), act, (name,)))

    @rule(run=live, settlement=st.sampled_from(Settlement))
    def settle(self, run: LiveRun, settlement: Settlement) -> None:
        """Decide about a call in doubt."""
        for doubt in run.earlier.in_doubt[:1]:
            with allowing():
                run.settle(doubt.id, settlement, by=ANA)

    @rule(run=consumes(live))
    def complete(self, run: LiveRun) -> None:
        """Deliver."""
        run.report("done", open_questions=["is it?"])
        with allowing():
            run.close()

    @rule(run=consumes(live))
    def fail(self, run: LiveRun) -> None:
        """End without delivering."""
        with allowing():
            run.fail(Deliberate("it did not work"))

    @rule(handoff=handoffs, to=st.sampled_from([None, *AGENTS]), number=st.integers(0, 1))
    def try_again(self, handoff: LiveHandoff, to: str | None, number: int) -> None:
        """Retry, or replace the agent."""
        known = self.relay(number).handoff(handoff.id)
        with allowing(), self.leaving_parents_alone(handoff.id):
            _ = known.retry(by=ANA) if to is None else known.replace(to, by=ANA)

    @rule(
        handoff=handoffs,
        act=st.sampled_from(["cancel", "ask", "answer", "decline", "approve", "deny", "verify", "refute", "waive"]),
        number=st.integers(0, 1),
    )
    def act(self, handoff: LiveHandoff, act: str, number: int) -> None:
        """Do something to a handoff that is somebody else's to do."""
        known = self.relay(number).handoff(handoff.id)
        acts: dict[str, Callable[[], object]] = {
            "cancel": lambda: known.cancel(by=ANA, reason="not needed"),
            "ask": lambda: known.ask("which one?"),
            "answer": lambda: known.answer("this one", by=ANA),
            "decline": lambda: known.decline("not mine"),
            "approve": lambda: known.approve(by=ANA),
            "deny": lambda: known.deny(by=ANA, reason="no"),
            "verify": lambda: known.verify(by=ANA, verdict="looks right"),
            "refute": lambda: known.refute("looks wrong", by=ANA),
            "waive": lambda: known.accept_unverified("in a hurry", by=ANA),
        }
        with allowing(), self.leaving_parents_alone(handoff.id):
            acts[act]()

    @rule(number=st.integers(0, 1))
    def sweep(self, number: int) -> None:
        """End what a dead worker or a deadline left behind."""
        self.relay(number).sweep()

    @rule(number=st.integers(0, 1))
    def crash(self, number: int) -> None:
        """Lose all that one process knew; its store is closed so that no file stays open, nothing is told to it."""
        self.relays[number].close()
        self.relays[number] = self.opened()

    @rule(target=live, number=st.integers(0, 1), which=st.integers(0, 20))
    def resume(self, number: int, which: int) -> Any:  # noqa: ANN401 - a bundle's
        """Go on with a run whose process is gone, or is only said to be."""
        with self.relays[0].store.view() as view:
            known = [run.id for run in view.find_runs() if run.state is RunState.OPEN]
        if not known:
            return multiple()
        run = known[which % len(known)]
        if (id(desk_of(self.relay(number))), run) in self.held:
            return multiple()  # a process does not resume what it has in its hands
        return self.hold(self.relay(number).resume(run))

    @invariant()
    def at_most_one_run_is_open_for_each_handoff(self) -> None:
        """See that a handoff runs if one of its attempts is open, that ends are recorded, that no root is re-run."""
        with self.relays[0].store.view() as view:
            runs = list(view.find_runs())
            handoffs = list(view.find_handoffs())
            streams = {stream.id: stream for stream in view.find_streams()}
        opened = Counter(run.handoff for run in runs if run.state is RunState.OPEN and run.handoff is not None)
        running = {handoff.id: 1 for handoff in handoffs if handoff.state is State.RUNNING}
        ended = {run.id for run in runs if run.state is not RunState.OPEN}

        assert running == dict(opened)
        assert ended == {run.id for run in runs if run.ended_at is not None}
        assert ended == {run.id for run in runs if not streams[StreamId(run.id)].open}
        assert self.roots == len([run for run in runs if run.parent is None])

    @invariant()
    def nothing_happens_twice(self) -> None:
        """See that every effect on the world happens once, however often its call is tried."""
        assert {} == {name: times for name, times in self.world.items() if times > 1}

    def teardown(self) -> None:
        """Verify everything that was recorded."""
        for relay in self.relays:
            relay.verify()
            relay.close()
        shutil.rmtree(self.directory)


@contextmanager
def allowing(*also: type[Exception]) -> Iterator[None]:
    """Take no for an answer."""
    with suppress(*REFUSED, *also):
        yield


TestHandoffs = pytest.mark.slow(Handoffs.TestCase)
TestHandoffs.settings = settings(
    max_examples=6 * SEEDS,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
