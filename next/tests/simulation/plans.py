"""What a run follows from, made from a seed; smaller plans of a plan that fails; and a plan in words."""

from collections.abc import Iterator
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.simulation.scheduler import Fault


class Step(Struct, frozen=True):
    """A step of a task, or of a process: what it is, a number, and how."""

    kind: str  # of a task: call, par, child, fork, record, error; of a process: root, resume, rescue, settle, ...
    value: int = 0  # account, how many, task; the nth root, handoff or request
    how: str = ""


class Program(Struct, frozen=True):
    """A process: the face of the core that it uses, its steps, when it begins, its relay."""

    is_keyed: bool
    steps: tuple[Step, ...]
    begins: int = 0
    relay: int = 0


class Plan(Struct, frozen=True):
    """All that a run follows from."""

    seed: int
    switch: float
    tasks: tuple[tuple[Step, ...], ...]
    programs: tuple[Program, ...]
    faults: tuple[Fault, ...]
    is_fresh: bool = False  # the processes make the ledger; else it was made before


_LABELS: Final = (
    "think", "COMMIT", "committed", "BEGIN", "charge", "charged", "SELECT", "INSERT", "UPDATE", "clock", "lock", "turn",
    "",
)  # fmt: skip
_KINDS: Final = (
    "kill", "kill", "kill", "freeze", "freeze", "interrupt", "interrupt", "lose", "lose", "fail", "fail", "jump",
    "power",
)  # fmt: skip
_CALLS: Final = ("", "", "", "", "fails", "idempotent", "inexact")
_CHILDREN: Final = ("here", "here", "offered", "at once", "at once", "both", "adopt")
_GRANTS: Final = ("", "", "", " granted", " narrow")
_DECISIONS: Final = ("repeat", "skip", "leave")
_PROCESS_STEPS: Final = ("root", "root", "resume", "resume", "rescue", "rescue", "rescue", "again", "revoke", "settle")


def make_plan(seed: int) -> Plan:
    """Return the plan of a seed."""
    random = Random(seed)
    depth = random.randint(2, 4)
    tasks = tuple(_make_task(random, number, depth) for number in range(depth))
    relays = random.choice((1, 1, 2))
    programs = tuple(_make_program(random, number, relays) for number in range(random.randint(2, 4)))
    faults = [_make_fault(random, len(programs)) for _ in range(random.choice((0, 1, 1, 2, 3, 4)))]
    if random.random() < 0.25:  # models think for long, and meanwhile others act
        for number in range(len(programs)):
            label = random.choice(("think", "think", "charge", "charged"))
            faults.append(Fault(number, label, random.randint(1, 5), "freeze", random.choice((300, 1500))))
    switch = random.choice((0.02, 0.1, 0.3, 0.8))
    return Plan(seed, switch, tasks, programs, tuple(faults), is_fresh=random.random() < 0.2)


def _make_task(random: Random, number: int, depth: int) -> tuple[Step, ...]:
    steps: list[Step] = []
    for _ in range(random.randint(1, 4)):
        match random.choice(("call", "call", "call", "par", "child", "child", "fork", "record", "error")):
            case "child" | "fork" as kind if number + 1 < depth:
                how = random.choice(_CHILDREN) + random.choice(_GRANTS)
                steps.append(Step(kind, random.randrange(number + 1, depth), how))
            case "call" | "par" as kind:
                steps.append(Step(kind, random.randint(1, 3), random.choice(_CALLS)))
            case "record":
                steps.append(Step("record", len(steps)))
            case _ if random.random() < 0.3:
                steps.append(Step("error"))
    return tuple(steps)


def _make_program(random: Random, number: int, relays: int) -> Program:
    steps = []
    for place in range(random.randint(1, 3)):
        kind = "root" if number + place == 0 else random.choice(_PROCESS_STEPS)
        how = random.choice(("", "", "enforced")) if kind == "root" else random.choice(_DECISIONS)
        steps.append(Step(kind, 0 if kind == "root" else random.randrange(3), how))
    begins = random.randint(0, 600) if number else 0
    return Program(random.random() < 0.6, tuple(steps), begins, random.randrange(relays))


def _make_fault(random: Random, processes: int) -> Fault:
    label, kind = random.choice(_LABELS), random.choice(_KINDS)
    much = random.choice((50, 300, 1500)) if kind == "freeze" else random.choice((-86400, -5, 60, 86400))
    nth = int(1.5 ** random.uniform(0, 9 if label else 15))
    return Fault(random.randrange(processes), label, nth, kind, much)  # type: ignore[arg-type]


def smaller(plan: Plan) -> Iterator[Plan]:
    """Yield plans with a fault, a process, a step or switches less."""
    for at in range(len(plan.faults)):
        yield replace(plan, faults=plan.faults[:at] + plan.faults[at + 1 :])
    for at, program in reversed([*enumerate(plan.programs)]):
        kept = [fault for fault in plan.faults if fault.process != at]
        faults = tuple(replace(fault, process=fault.process - (fault.process > at)) for fault in kept)
        yield replace(plan, programs=plan.programs[:at] + plan.programs[at + 1 :], faults=faults)
        for step in range(len(program.steps)):
            less = replace(program, steps=program.steps[:step] + program.steps[step + 1 :])
            yield replace(plan, programs=(*plan.programs[:at], less, *plan.programs[at + 1 :]))
        for less in (replace(program, is_keyed=False), replace(program, relay=0), replace(program, begins=0)):
            if less != program:
                yield replace(plan, programs=(*plan.programs[:at], less, *plan.programs[at + 1 :]))
    for at, steps in enumerate(plan.tasks):
        for step in range(len(steps)):
            yield replace(plan, tasks=(*plan.tasks[:at], steps[:step] + steps[step + 1 :], *plan.tasks[at + 1 :]))
    if plan.switch > 0.02:
        yield replace(plan, switch=plan.switch / 3)
    if plan.is_fresh:
        yield replace(plan, is_fresh=False)


def describe(plan: Plan) -> list[str]:
    """Return a plan in lines."""
    lines = [f"seed {plan.seed}, switch {plan.switch:.3f}" + ", a new ledger" * plan.is_fresh]
    lines += map(str, plan.faults)
    for number, steps in enumerate(plan.tasks):
        lines.append(f"task {number}: " + " ".join(f"{step.kind}({step.value} {step.how})" for step in steps))
    lines += [f"P{number}: {program}" for number, program in enumerate(plan.programs)]
    return lines
