"""How far a handoff goes through the code: the goals of bench/walk.py, counted and not timed."""

import subprocess
import sys
from pathlib import Path

import pytest

_NEXT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_handoff_with_a_call_goes_through_few_files_and_frames() -> None:
    """A warm handoff with one call keeps to its goals for files and for frames, without and with a grant."""
    walk = subprocess.run([sys.executable, "bench/walk.py"], cwd=_NEXT, capture_output=True, text=True, check=False)

    assert (0, "held") == (walk.returncode, walk.stdout.strip().rpartition("\n")[2]), walk.stdout + walk.stderr
