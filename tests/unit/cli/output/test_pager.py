"""A pager only on a terminal, only the person's own, and as git starts it."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

PROGRAM = """
from batonpass.cli.output.pager import page
from batonpass.cli.output.terminal import paint
import sys
page([paint(f"row {number}", "green") for number in range(3)], wanted=sys.argv[1:] != ["--no-pager"])
"""
MARKING = "sed 's/^/paged /'"


def shown(environment: Mapping[str, str], *arguments: str, terminal: bool = True) -> str:
    """Return what a program shows that prints three green rows in a pager."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PAGER", "LESS", "NO_COLOR", "LV"}}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    if not terminal:
        return subprocess.run(command, env={**kept, **environment}, check=True, capture_output=True, text=True).stdout
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, env={"TERM": "xterm", **kept, **environment}, stdout=theirs) as process:
        os.close(theirs)
        found = b""
        try:
            while piece := os.read(ours, 65_536):
                found += piece
        except OSError:  # how Linux says that nobody has the other end any more
            pass
        finally:
            os.close(ours)
    assert 0 == process.returncode
    return found.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("environment", "arguments", "is_paged"),
    [
        pytest.param({"PAGER": MARKING}, (), True, id="the person's, with arguments"),
        pytest.param({"PAGER": MARKING}, ("--no-pager",), False, id="none is wanted"),
        pytest.param({"PAGER": ""}, (), False, id="an empty one is none"),
        pytest.param({"PAGER": "cat"}, (), False, id="cat is none"),
        pytest.param({"PAGER": MARKING, "TERM": "dumb"}, (), False, id="a dumb terminal has none"),
        pytest.param({"PAGER": "/nowhere/pager"}, (), False, id="one that is not there"),
    ],
)
def test_the_person_says_which(environment: dict[str, str], arguments: tuple[str, ...], *, is_paged: bool) -> None:
    """And gets every row either way."""
    found = shown(environment, *arguments)

    assert (is_paged, True) == ("paged " in found, all(f"row {number}" in found for number in range(3)))


def test_a_pipe_gets_no_pager_and_no_colours() -> None:
    """Whoever reads it is a program."""
    assert "row 0\nrow 1\nrow 2\n" == shown({"PAGER": MARKING}, terminal=False)


def test_colours_are_left_out_on_request() -> None:
    """In the pager too."""
    coloured, plain = shown({"PAGER": MARKING}), shown({"PAGER": MARKING, "NO_COLOR": "1"})

    assert ("paged row 0\npaged row 1\npaged row 2\n", True) == (plain, "\x1b[32mrow 1\x1b[0m" in coloured)


def test_less_is_started_as_git_starts_it(tmp_path: Path) -> None:
    """It leaves at once if all fits; but what the person set stays."""
    less = tmp_path / "less"
    less.write_text('#!/bin/sh\necho "LESS=$LESS LV=$LV"\n', encoding="utf-8")
    less.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"

    assert ["LESS=FRSX LV=-c\n", "LESS=i LV=-c\n"] == [shown({"PATH": path}), shown({"PATH": path, "LESS": "i"})]


def test_a_person_who_has_seen_enough_is_no_failure() -> None:
    """The pager ends before it has read everything."""
    assert "row 0" in shown({"PAGER": "head -1"})
