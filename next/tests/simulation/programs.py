"""What virtual processes do: small agent programs, made from a seed, over the public handles.

Each attempt at a task takes the same steps, so a later attempt has to be given what an earlier one finished.
"""

from collections.abc import Callable
from typing import Any, Final

from batonpass import Decision, Handoff, Relay, Run, current_call, tool
from batonpass.api.opening import open_context
from batonpass.errors import (
    BatonpassError,
    CallDeniedError,
    CallInDoubtError,
    GrantError,
    LifecycleError,
    OutcomeUnknownError,
)
from tests.simulation.plans import Program, Step
from tests.simulation.ports import KeyedPort, Request
from tests.simulation.revocations import revoke
from tests.simulation.scheduler import VirtualSystem, WatchedStore
from tests.simulation.world import World

_BY: Final = "user:ana"
_WHOLE: Final = ("charge:**",)
_PART: Final = ("charge:a1", "charge:a2")
_ROUNDS: Final = 8


class ToolError(Exception):
    """The tool's own."""


class AgentError(Exception):
    """The agent gives up."""


EXPECTED: Final = (BatonpassError, KeyboardInterrupt, AgentError, ToolError)


class Agent:
    """A process at work."""

    def __init__(self, world: World, program: Program, requests: list[Request]) -> None:
        self._world = world
        self._sim = world.sim
        self._program = program
        self._requests = requests
        self._context: Any = None
        self._relay: Relay
        self._port: Any = None

    def main(self) -> None:
        """Open the ledger, take the steps, end."""
        process = self._sim.task.process
        try:
            self._open()
            for step in self._program.steps:
                self._try(getattr(self, f"_do_{step.kind}"), step)
        except EXPECTED:
            pass
        is_alone = all(task.dead for task in self._sim.tasks if task.process is process and task is not self._sim.task)
        if is_alone and (process in self._sim.turns or any(each.in_transaction for each in process.connections)):
            self._world.wrong.append(f"kept: P{process.number} ends with the turn, or with a transaction open")
        self._sim.kill(process)  # its end, as the system sees it

    def heal(self) -> None:
        """Bring every handoff and every run to its end, as an operator would when all faults are over."""
        self._open()
        world = self._world
        world.is_healing = True
        for _ in range(_ROUNDS):
            for handoff in world.list_open():
                self._try(self._rescue, handoff, "repeat")
            for root in world.list_roots():
                self._try(self._resume, root)
        world.wrong += [f"stuck: {each}" for each in (*world.list_open(), *world.list_roots())]

    def _open(self) -> None:
        world, process = self._world, self._sim.task.process
        store = WatchedStore(self._sim, world.directory / "ledger.db", world.watch)
        self._context = open_context(world.place(self._program.relay), store, VirtualSystem(self._sim, process))
        self._port = KeyedPort(world, self._requests, self._context, is_keyed=self._program.is_keyed)
        self._relay = Relay(self._port)

    def _try(self, work: Callable[..., None], *values: object) -> None:
        try:
            work(*values)
        except EXPECTED as error:
            self._sim.note(f"{getattr(work, '__name__', 'it')} ends: {error!r}")

    def _do_root(self, step: Step) -> None:
        may = _WHOLE if step.how == "enforced" else ()
        items = (Decision("begin with the first"),)
        run = self._relay.start("Charge", by=_BY, may=may or None, may_delegate=may or None, items=items)
        self._attempt(run, run.id, 0)

    def _do_resume(self, step: Step) -> None:
        roots = self._world.list_roots()
        if roots:
            self._resume(roots[step.value % len(roots)])

    def _resume(self, root: str) -> None:
        self._attempt(self._relay.resume(root), root, 0)

    def _do_rescue(self, step: Step) -> None:
        handoffs = self._world.list_open()
        if handoffs:
            self._rescue(handoffs[step.value % len(handoffs)], step.how)

    def _rescue(self, identity: str, how: str) -> None:
        """Retry, if it has begun, decide about what is in doubt, accept, and take its steps."""
        handoff = self._relay.handoff(identity)
        info = handoff.info()
        if info.state in {"completed", "cancelled"}:
            return
        if info.state != "offered":
            calls = tuple(each.id for each in info.in_doubt)
            repeat, skip = calls if how == "repeat" else (), calls if how == "skip" else ()
            handoff.retry(by=_BY, repeat=repeat, skip=skip)
        self._sim.pause("think")
        self._attempt(handoff.accept(), identity, int(info.to.removeprefix("agent")))

    def _do_again(self, step: Step) -> None:
        """Make a request of any process once more, with its key."""
        if self._requests:
            self._port.ask(self._requests[step.value * 7 % len(self._requests)])

    def _do_settle(self, step: Step) -> None:
        """Decide about a call of a run that may be at work in another process."""
        runs = self._world.list_runs()
        if runs:
            run = self._relay.run(runs[step.value % len(runs)])
            for call in run.in_doubt:
                run.settle(call.call, "repeat" if step.how == "repeat" else "skip", by=_BY)

    def _do_revoke(self, step: Step) -> None:
        accounts = self._world.list_accounts()
        if accounts:
            revoke(self._context, accounts[step.value % len(accounts)], by=_BY)

    def _attempt(self, run: Run, owner: str, task: int) -> None:
        """Take the steps of a task, and close: with the error, if there was one."""
        error: BaseException | None = None
        session = self._world.begin()
        try:
            for number, step in enumerate(self._world.plan.tasks[task]):
                self._sim.pause("think")
                getattr(self, f"_step_{step.kind}")(run, f"{owner}/{number}", step, session)
        except EXPECTED as raised:
            error = raised
        self._world.closing[self._sim.task.process.number, run.id] = self._world.length()
        try:
            run.close(error)
        except (OutcomeUnknownError, KeyboardInterrupt):
            run.close(error)
        if error is not None:
            raise error

    def _step_record(self, run: Run, _: str, step: Step, __: int) -> None:
        run.record(Decision(f"decision {step.value}"))

    def _step_error(self, *_: object) -> None:
        if not self._world.is_healing:
            raise AgentError

    def _step_call(self, run: Run, where: str, step: Step, session: int, name: str = "a") -> None:
        """Make a call; again if it failed or was cut short, as a framework shows the error to a model."""
        world, account = self._world, f"{name}{step.value}"
        world.times.setdefault(where, 1)
        charge = self._make_tool(run, where, step.how, session)
        for is_last in (False, False, True):
            self._sim.task.step = where
            try:
                world.note_value(where, run.call(charge, account), session)
            except CallDeniedError as error:
                self._sim.note(f"denied: {error}")
            except CallInDoubtError as error:
                how = "repeat" if world.is_healing else self._sim.random.choice(("repeat", "skip", ""))
                if is_last or not how:
                    raise AgentError(where) from error
                run.settle(error.facts["call"], "skip" if how == "skip" else "repeat", by=_BY)
                continue
            except (OutcomeUnknownError, KeyboardInterrupt, ToolError):
                if is_last:
                    raise
                continue
            return

    def _make_tool(self, run: Run, where: str, how: str, session: int) -> Callable[[str], Any]:
        """Return a tool that charges, for one step of one run."""
        world, sim = self._world, self._sim

        def charge(account: str) -> Any:  # noqa: ANN401 - what JSON holds, or not
            sim.pause("charge")
            if how == "fails" and where not in world.failed:
                world.failed.add(where)
                raise ToolError(where)
            call = current_call()
            serial = world.note_charge(where, "" if call is None else call.call, run.id, session)
            sim.note(f"** charges {account} for {where[-12:]}")
            sim.pause("charged")
            return (serial,) if how == "inexact" else serial

        if how == "idempotent":
            world.idempotent.add(where)
        declared = tool(how or "charge", action="charge", target="account", idempotent=how == "idempotent")
        return declared(charge)

    def _step_par(self, run: Run, where: str, step: Step, session: int) -> None:
        """Make equal calls on several threads at once."""
        self._world.times[where] = step.value
        self._join(*[lambda: self._step_call(run, where, step, session, f"p{where[-1]}")] * step.value)

    def _step_fork(self, run: Run, where: str, step: Step, session: int) -> None:
        """Hand off on one thread, make calls on two others."""
        calls = [Step("call", 1), Step("call", 2, "fails")]
        self._join(
            lambda: self._step_child(run, f"{where}.0", step, session),
            lambda: self._step_call(run, f"{where}.1", calls[0], session, "f"),
            lambda: self._step_call(run, f"{where}.2", calls[1], session, "f"),
        )

    def _join(self, *works: Callable[[], None]) -> None:
        """Work on threads of this process, and raise what the first of them raised."""
        process = self._sim.task.process
        tasks = [self._sim.spawn(work, process) for work in works]
        self._sim.wait("join", lambda: all(task.dead for task in tasks))
        for task in tasks:
            if task.raised is not None:
                raise task.raised

    def _step_child(self, run: Run, where: str, step: Step, _: int) -> None:
        """Hand off, and do it here, or leave it."""
        how = step.how.removesuffix(" granted").removesuffix(" narrow")
        is_whole = run.mode == "enforced" or step.how.endswith(" granted")
        may = _PART if step.how.endswith(" narrow") else _WHOLE if is_whole else ()

        words = (f"agent{step.value}", f"Charge {where[-1]}")

        def offer() -> Handoff | Run:
            if how == "both":
                run.hand_off(*words, may=may or None, may_delegate=may or None)
            if how in {"at once", "both"}:
                return run.hand_off(*words, may=may or None, may_delegate=may or None, accept=True)
            return run.hand_off(*words, may=may or None, may_delegate=may or None)

        try:
            handoff = offer()
        except (OutcomeUnknownError, KeyboardInterrupt):
            handoff = offer()  # twice is once
        except GrantError as error:
            self._sim.note(f"not handed off: {error}")
            return
        except LifecycleError:  # the same offer, accepted by another process
            handoff = run.hand_off(*words, may=may or None, may_delegate=may or None)
        if how != "offered" or self._world.is_healing:
            self._sim.pause("think")
            self._try(self._work_on, handoff, step.value, how)

    def _work_on(self, handoff: Handoff | Run, task: int, how: str) -> None:
        if isinstance(handoff, Run):
            self._attempt(handoff, handoff.handoff or handoff.id, task)
            return
        try:
            run = handoff.run or handoff.accept(replay=True)
        except LifecycleError:
            if how != "adopt" and not self._world.is_healing:
                raise
            self._rescue(handoff.id, "repeat")
            return
        self._attempt(run, handoff.id, task)
