"""The tool server of the examples, run as a reader runs it: one call goes through, each trick is refused by name."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "tool_server.py"
PATIENCE: Final = 120


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return where the example wrote, and what it told."""
    place = tmp_path_factory.mktemp("tools")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert 0 == done.returncode, done.stdout
    return place, done.stdout.splitlines()


def test_each_call_is_answered_as_it_should_be(told: tuple[Path, list[str]]) -> None:
    """One call is granted; replays, other calls and places, links, thieves and what was revoked are refused by code."""
    answers = [
        f"{found[1]} {found[2]} {found[3] or ''}".rstrip()
        for line in told[1]
        if (found := re.match(r"(\d+) (\S+): (?:\[(\S+)\])?", line)) is not None
    ]

    assert [
        "200 src/invoice.py",
        "403 src/invoice.py grant.replayed",
        "403 src/invoice.py grant.context",
        "403 docs/index.md grant.denied",
        "403 src/notes.txt grant.denied",
        "403 src/ci/build.py grant.denied",
        "403 src/../setup.py grant.denied",
        "403 src/%2e%2e/setup.py value.invalid",
        "403 src/a.py grant.context",
        "403 src/a.py grant.malformed",
        "403 src/a.py grant.revoked",
    ] == answers


def test_a_refusal_tells_a_model_what_to_do(told: tuple[Path, list[str]]) -> None:
    """What it may do, what it tried, and who could give it."""
    assert (
        '403 docs/index.md: [grant.denied] editor may write:src/** where path matches "*.py", '
        "tried write:docs/index.md; lead holds it" in told[1]
    )


def test_only_what_was_granted_is_on_disk(told: tuple[Path, list[str]]) -> None:
    """Nothing of what was refused has happened, wherever it would have led."""
    place = told[0]

    assert ["src/invoice.py"] == [path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()]
    assert "ROUNDING = 'half-even'\n" == (place / "src" / "invoice.py").read_text(encoding="utf-8")
