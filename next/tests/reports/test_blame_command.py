"""`batonpass blame`: places as people type them, and answers for people and programs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from batonpass import start, tool

PROGRAM = Path(sys.executable).with_name("batonpass")


@tool(target="path")
def write_file(path: str, text: str) -> None:
    """Write a file."""
    Path(path).write_text(text, encoding="utf-8")


@pytest.fixture(autouse=True)
def _written(record_place: Path) -> None:
    (record_place / ".git").mkdir()
    (record_place / "below").mkdir()
    with start("Fix it", by="user:ana") as lead:
        for name in ("a.py", "b:2", "c", "c:2"):
            lead.call(write_file, name, f"first of {name}\nsecond of {name}\n")


def _blame(place: str, *options: str, cwd: str = ".") -> subprocess.CompletedProcess[str]:
    arguments = [str(PROGRAM), "blame", place, *options]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.mark.parametrize(
    ("place", "cwd", "rows"),
    [
        pytest.param("a.py", ".", ["first of a.py", "second of a.py"], id="a file"),
        pytest.param("a.py:1-2", ".", ["first of a.py", "second of a.py"], id="lines of a file"),
        pytest.param("../a.py:2-9", "below", ["second of a.py"], id="lines up to the end, from a folder"),
        pytest.param("b:2", ".", ["first of b:2", "second of b:2"], id="a file whose name ends as a place does"),
        pytest.param("c:2-2", ".", ["second of c"], id="a place wins over a file of that name"),
        pytest.param("./c:2:1-1", ".", ["first of c:2"], id="a line of a file whose name ends as a place does"),
    ],
)
def test_a_place_is_what_it_looks_like(place: str, cwd: str, rows: list[str]) -> None:
    """FILE, FILE:LINE and FILE:LINE-LINE name the lines that a reader would think of."""
    answer = json.loads(_blame(place, "--json", cwd=cwd).stdout)

    assert rows == [line["text"] for line in answer["lines"]]


def test_one_line_is_three_lines_and_several_are_a_row_each() -> None:
    """Of one line everything is said, of several who and when."""
    one, several = _blame("a.py:2"), _blame("a.py")

    assert (0, 3) == (one.returncode, len(one.stdout.splitlines()))
    assert 'ana: "Fix it"' in one.stdout
    rows = [row.partition(":")[2].partition("  ")[2] for row in several.stdout.splitlines()]
    assert ["1  first of a.py", "2  second of a.py"] == rows


@pytest.mark.parametrize(
    ("place", "status", "words"),
    [
        pytest.param("a.py:3", 2, "has 2 lines: there is no line 3", id="a line after the last"),
        pytest.param("a.py:0", 2, "line", id="line nought"),
        pytest.param("a.py:2-1", 2, "ends before it begins", id="an end before the beginning"),
        pytest.param("a.py:7-9", 2, "ends before line 7", id="lines after the last"),
        pytest.param("none.py:1", 1, "there is no file 'none.py'", id="no such file"),
        pytest.param("below", 2, "is a folder", id="a folder"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(place: str, status: int, words: str) -> None:
    """A question without an answer ends with its status, a sentence on stderr and nothing on stdout."""
    refused = _blame(place)

    assert (status, "") == (refused.returncode, refused.stdout)
    assert words in refused.stderr
