"""Every snippet of Python in the documents runs, in the order of its page and in an empty folder."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from batonpass.api.acts import ACTS
from tools.describe_acts import TARGET, generate

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def snippets(page: Path, language: str) -> list[str]:
    """Return the snippets of a page in one language."""
    return [text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page, "python")], ids=lambda page: page.name)
def test_the_snippets_of_a_page_run(page: Path, tmp_path: Path) -> None:
    """A reader who types them one after the other sees no error."""
    program = "\n".join(snippets(page, "python"))
    environment = {**os.environ, "BATONPASS_STATE_DIR": str(tmp_path / "state")}
    tree = tmp_path / "reader"
    tree.mkdir()

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)


def test_the_commands_of_the_readme_work(tmp_path: Path) -> None:
    """What the README tells a reader to type after the first snippet, run once or twice, answers with status 0."""
    environment = {**os.environ, "BATONPASS_STATE_DIR": str(tmp_path / "state")}
    tree = tmp_path / "reader"
    tree.mkdir()
    first = snippets(ROOT / "README.md", "python")[0]
    for _ in range(2):
        subprocess.run([sys.executable, "-c", first], cwd=tree, env=environment, check=True)
    lines = [line for block in snippets(ROOT / "README.md", "console") for line in block.splitlines()]
    commands = [line.removeprefix("$ batonpass ").split() for line in lines if line.startswith("$ batonpass ")]

    statuses = {
        " ".join(command): subprocess.run(
            [sys.executable, "-m", "batonpass", *command], cwd=tree, env=environment, check=False
        ).returncode
        for command in commands
    }

    assert dict.fromkeys(statuses, 0) == statuses


def test_the_page_of_acts_is_that_of_the_table() -> None:
    """After a change of an act: python tools/describe_acts.py."""
    assert generate() == TARGET.read_text(encoding="utf-8")
    assert [] == [name for name in ACTS if f"### `{name}`\n" not in TARGET.read_text(encoding="utf-8")]


def test_the_lines_of_the_page_of_acts_are_answered(tmp_path: Path) -> None:
    """The example, with the ids that the answers gave, is answered line by line without an error."""
    environment = {**os.environ, "BATONPASS_STATE_DIR": str(tmp_path / "state")}
    tree = tmp_path / "reader"
    tree.mkdir()
    command = [sys.executable, "-m", "batonpass", "serve", "--json-lines"]
    ids = {"run_…": "", "call_…": ""}
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for line in snippets(TARGET, "json")[0].splitlines():
            for shown, real in ids.items():
                line = line.replace(shown, real)  # noqa: PLW2901 - as a reader would
            program.stdin.write(line + "\n")
            program.stdin.flush()
            reply = json.loads(program.stdout.readline())

            assert (json.loads(line)["id"], None) == (reply["id"], reply.get("error"))
            answer = reply["answer"]
            run = answer["run"]["run"] if "handoff" in answer else answer.get("run", ids["run_…"])
            ids = {"run_…": run, "call_…": answer.get("call", ids["call_…"])}
        program.stdin.close()


def test_links_between_documents_lead_somewhere() -> None:
    """Each relative link of a page names a file that is there."""
    missing = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]

    assert missing == []
