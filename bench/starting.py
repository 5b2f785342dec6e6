"""How long it takes until Python has imported the package, or the command line has answered."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.effort import Effort
from bench.measure import Act, time_in_turns
from bench.table import Row, p50, within

_COMMAND_LINE = "from batonpass.cli.main import main; main()"


def measure(_: Path, effort: Effort) -> Sequence[Row]:
    """Measure fresh processes against one that does nothing; files are in the page cache."""
    contenders = {
        "nothing": _runs("pass"),
        "package": _runs("import batonpass"),
        "relay": _runs("from batonpass import Relay"),
        "help": _runs(_COMMAND_LINE, "--help"),
    }
    taken = time_in_turns(contenders, turns=effort.starts, acts=1)
    goals = {
        "package": ("import batonpass", within(0.080)),
        "relay": ("from batonpass import Relay", within(0.080)),
        "help": ("batonpass --help", within(0.130)),
    }
    return [
        Row(what=what, ours=p50(taken[name]), against="python -c pass", theirs=p50(taken["nothing"]), goal=goal)
        for name, (what, goal) in goals.items()
    ]


def _runs(program: str, *arguments: str) -> Act:
    command = [sys.executable, "-c", program, *arguments]
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
