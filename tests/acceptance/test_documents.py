"""Every snippet in a document runs, and prints what the document says."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.transcript import Command, Program, shows, steps_in
from tests.warm_program import directory_of_program, run_python

ROOT: Final = Path(__file__).parents[2]
# About frameworks that are too big for `make test`: tests/frameworks/big_guides.py plays these.
BIG: Final = frozenset({"crewai.md"})
DOCUMENTS: Final = sorted(path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.name not in BIG)
PATIENCE: Final = 120
# Pages about frameworks, whose programs run in the environment of that framework.
FRAMEWORKS: Final = {
    "agent-framework.md": ("agent_framework", "agent_framework"),
    "crewai.md": ("crewai",),
    "google-adk.md": ("google_adk", "google.adk.agents", "google.adk.runners"),
    "langgraph.md": ("langgraph", "langchain.agents", "langgraph.graph"),
    "openai-agents.md": ("openai_agents", "agents"),
    "pydantic-ai.md": ("pydantic_ai", "pydantic_ai"),
    "strands.md": ("strands", "strands"),
}  # by guide: the environment, and what all programs there import


def surroundings(home: Path) -> dict[str, str]:
    """Return the environment of a reader who has just installed Batonpass."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BATONPASS_")}
    return kept | {
        "COLUMNS": "120",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "PATH": os.pathsep.join((str(directory_of_program()), str(Path(sys.executable).parent), os.environ["PATH"])),
        "TERM": "dumb",
    }


def run(arguments: list[str], *, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder and return all that it printed, in the order of printing."""
    return subprocess.run(
        arguments,
        cwd=folder,
        env=surroundings(folder.parent),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def run_in(framework: Sequence[str], program: str, *, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in Python, in the environment of a framework if it is about one."""
    if not framework:
        return run_python(folder, program, surroundings(folder.parent), patience=PATIENCE)
    environment, *modules = framework
    python = str(ROOT / ".venv" / "frameworks" / environment / "bin" / "python")
    if not modules:  # CrewAI reads its settings and warns about itself while it is imported
        return run([python, "-W", "error::UserWarning", "-c", program], folder=folder)
    return run_python(folder, program, surroundings(folder.parent), patience=PATIENCE, python=python, modules=modules)


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_document_does_what_it_says(document: Path, tmp_path: Path) -> None:
    """All blocks of one document run in order in one empty folder; a failure is shown by asking for `$?` next."""
    play(document, tmp_path)


def play(document: Path, tmp_path: Path) -> None:
    """Run the blocks of a document, and compare what they print."""
    folder = tmp_path / "reader"
    folder.mkdir()
    framework = FRAMEWORKS.get(document.name, ())
    status = 0
    for step in steps_in(document.read_text(encoding="utf-8")):
        place = f"{document.name}:{step.line}"
        match step:
            case Program(text=text):
                done = run_in(framework, text, folder=folder)
                assert done.returncode == 0, f"{place}: {done.stdout}"
            case Command(text=text, output=output):
                asked = text.strip() == "echo $?"
                assert asked or status == 0, f"{place}: the command before failed, and the document does not say so"
                done = run(["sh", "-c", f"(exit {status})\n{text}"], folder=folder)
                assert shows(output, done.stdout), f"{place}: {text}\n{output}--- but it printed:\n{done.stdout}"
                status = done.returncode
    assert status == 0, f"{document.name}: the last command failed, and the document does not say so"


def test_blocks_are_read_in_order() -> None:
    """Python and console blocks are steps, also inside a list; other blocks are for the eye."""
    text = "```python\na = 1\n```\n- b\n\n  ```console\n  $ c \\\n    d\n  e\n  $ f\n  ```\n\n```sh\ng\n```\n"

    assert [Program(2, "a = 1\n"), Command(7, "c \\\n  d", "e\n"), Command(10, "f", "")] == list(steps_in(text))


def test_a_console_block_begins_with_a_command() -> None:
    """An output that belongs to no command is a mistake in the document."""
    with pytest.raises(ValueError, match=r"^line 2: "):
        list(steps_in("```console\nhello\n```\n"))


ID = "run_01jd2m3n4p5q6r7s8t9v0w1x2y"


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        pytest.param("a\n", "a\n", id="the same text"),
        pytest.param(f"{ID}  ok", f"{ID.replace('2y', '2z')} ok", id="another id, another width"),
        pytest.param(f"sealed {'0a' * 32}", f"sealed {'b1' * 32}", id="another digest"),
        pytest.param("at 2026-11-15T20:14:00Z, 23:14", "at 2027-01-02 03:04:05.678+00:00, 09:05", id="another time"),
        pytest.param("took 3 ms", "took 1.25 s", id="another duration"),
        pytest.param("a … c", "a b c", id="anything within a line"),
        pytest.param("a\n…\nd", "a\nb\nc\nd", id="any lines between"),
        pytest.param("a\n…", "a\nb\nc", id="any lines at the end"),
        pytest.param("…", "", id="nothing is anything"),
    ],
)
def test_outputs_that_are_shown(expected: str, actual: str) -> None:
    """What differs from run to run, or is left out with `…`, may differ."""
    assert shows(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        pytest.param("a", "b", id="another word"),
        pytest.param("a", "a\nb", id="one line more"),
        pytest.param("a\nb", "a", id="one line less"),
        pytest.param("a … c", "a b\nc", id="a gap in one line does not reach the next"),
        pytest.param("3 receipts", "4 receipts", id="another count"),
        pytest.param("a\n…\nd", "a\nb\nc", id="the end is missing"),
        pytest.param("a.c", "abc", id="a full stop is a full stop"),
    ],
)
def test_outputs_that_are_not_shown(expected: str, actual: str) -> None:
    """Everything else must be as the document says."""
    assert not shows(expected, actual)
