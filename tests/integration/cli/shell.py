"""The program as a person starts it: another process, with its own environment and streams."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import batonpass
from tests.warm_program import run_program

SOURCES: Final = Path(batonpass.__file__).parents[1]
PROGRAM: Final = [sys.executable, "-c", "from batonpass.cli.main import main; main()"]
PATIENCE: Final = 60
_OF_INTERPRETER: Final = ("PYTHON", "LANG", "LC_")  # these change how an interpreter starts

# Root may write what nobody may write. Whoever gives up CAP_DAC_OVERRIDE (1), by PR_CAPBSET_DROP (24), and starts a
# program, is as weak there as anybody; for others this does nothing.
_HUMBLED: Final = [
    sys.executable,
    "-c",
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 1, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])",
]


def surroundings(**more: str) -> dict[str, str]:
    """Return an environment in which nothing is set that we read."""
    ours = ("BATONPASS_", "GIT_", "NO_COLOR", "FORCE_COLOR", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    searched = os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")]))
    return kept | {"LANG": "C.UTF-8", "PYTHONPATH": searched, "TERM": "xterm-256color", "USER": "tess"} | more


def batonpass_in(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    humbled: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; humbled, it must respect the permissions of files even if we are root."""
    told = surroundings(**(environment or {}))
    if not humbled and not any(name.startswith(_OF_INTERPRETER) for name in environment or {}):
        return run_program(folder, arguments, told, patience=PATIENCE)
    return subprocess.run(
        [*(_HUMBLED if humbled else []), *PROGRAM, *arguments],
        cwd=folder,
        env=told,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def run_example(program: Path, place: Path) -> subprocess.CompletedProcess[str]:
    """Run an example as a reader runs it, with its ledger in a place."""
    return subprocess.run(
        [sys.executable, program, place],
        env=surroundings(),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def on_terminal(folder: Path, arguments: Sequence[str], *, typed: bytes = b"", **more: str) -> tuple[int, str]:
    """Run a command on a terminal of its own and return its exit code and all that appeared there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=surroundings(**more),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        os.write(ours, typed)
        shown = bytearray()
        try:
            while chunk := os.read(ours, 65_536):
                shown += chunk
        except OSError:
            # Linux says so when the last one who had the terminal open has left.
            pass
        os.close(ours)
    return process.returncode, shown.decode()
