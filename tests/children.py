"""Other processes for tests: programs in a few lines that begin at one moment, and forks that have imported all."""

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

# Hundreds of processes, each real and killed for good; forked from one that has imported everything already.
FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "batonpass.store.postgres.store",
        "tests.acceptance.racing",
        "tests.integration.chain",
        "tests.integration.waiting",
        "tests.integration.writing",
    ]
)

_BEGIN = "import json, sys\nsys.stdin.readline()\n"


def run_at_once(program: str, *arguments: str, processes: int = 1) -> Sequence[Any]:
    """Run a program in several processes that begin together; return what each printed, as JSON."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _BEGIN + program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60) for process in started]
    assert [""] * processes == [complaint for _, complaint in said]
    return [json.loads(answer) for answer, _ in said]
