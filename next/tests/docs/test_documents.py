"""Every snippet of Python in the documents runs, in the order of its page and in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    """What the README tells a reader to type after the first snippet answers with status 0."""
    environment = {**os.environ, "BATONPASS_STATE_DIR": str(tmp_path / "state")}
    tree = tmp_path / "reader"
    tree.mkdir()
    first = snippets(ROOT / "README.md", "python")[0]
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


def test_links_between_documents_lead_somewhere() -> None:
    """Each relative link of a page names a file that is there."""
    missing = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]

    assert missing == []
