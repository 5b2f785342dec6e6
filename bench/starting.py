"""How long it takes until Python has imported the package, or the command line has answered."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from bench import batons
from bench.effort import Effort
from bench.gauge import children_cpu
from bench.measure import Act, time_in_turns
from bench.table import Figure, Goal, Row, Unit, p50, within

IMPORT_RELAY: Final = [sys.executable, "-c", "from batonpass import Relay"]

_PROGRAM: Final = str(Path(sys.executable).with_name("batonpass"))
_SHORT: Final = within(0.150, must=0.200)


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure fresh processes against one that does nothing; files are in the page cache."""
    nothing = [sys.executable, "-c", "pass"]
    imports = {
        "import batonpass": [sys.executable, "-c", "import batonpass"],
        "from batonpass import Relay": IMPORT_RELAY,
    }
    commands = {**imports, "batonpass --help": [_PROGRAM, "--help"], **short_commands(scratch)}
    contenders = {name: runs(command) for name, command in {"nothing": nothing, **commands}.items()}
    taken = time_in_turns(contenders, turns=effort.starts, acts=1)
    goals = {
        "import batonpass": within(0.080),
        "from batonpass import Relay": within(0.100, must=0.120),
        "batonpass --help": within(0.130),
    }
    walls = [
        Row(
            what=what,
            ours=p50(taken[what]),
            against="python -c pass",
            theirs=p50(taken["nothing"]),
            goal=goals.get(what),
        )
        for what in commands
    ]
    return [*walls, *_processor_times(contenders, effort)]


def short_commands(scratch: Path) -> dict[str, list[str]]:
    """Return commands that look at a small ledger, or at none: what a person waits for many times a day."""
    with batons.open_relay(scratch / "short") as relay:
        hand_off = batons.hands_off(relay)
        for _ in range(10):
            hand_off()
    ledger = ["--ledger", f"sqlite:///{scratch / 'short' / 'ledger.db'}"]
    return {
        "batonpass --version": [_PROGRAM, "--version"],
        "batonpass run list": [_PROGRAM, *ledger, "run", "list"],
        "batonpass handoff list": [_PROGRAM, *ledger, "handoff", "list"],
    }


def runs(command: Sequence[str]) -> Act:
    """Return what runs a command to its end."""
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def _processor_times(contenders: Mapping[str, Act], effort: Effort) -> Iterator[Row]:
    used = {name: median(_cpu(act) for _ in range(effort.starts)) for name, act in contenders.items()}
    goals: dict[str, Goal] = {name: _SHORT for name in used if name.endswith(("list", "--version"))}
    for name, seconds in used.items():
        if name != "nothing":
            yield Row(
                what=f"{name}, processor time",
                ours=Figure(seconds, Unit.SECONDS),
                against="python -c pass",
                theirs=Figure(used["nothing"], Unit.SECONDS),
                goal=goals.get(name),
            )


def _cpu(act: Act) -> float:
    before = children_cpu()
    act()
    return children_cpu() - before
