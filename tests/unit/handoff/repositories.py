"""A git repository in which the tests of effects work, and the tools that write there."""

import os
import subprocess
from pathlib import Path

from batonpass.handoff.tools.declaration import tool

_AS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


@tool("write", target="path")
def write(path: str, text: str) -> None:
    """Write a file that the arguments name."""
    Path(path).write_text(text, encoding="utf-8")


@tool("save")
def save(text: str) -> None:
    """Write a file that the arguments do not name."""
    Path("src/saved.txt").write_text(text, encoding="utf-8")


def git(place: Path, *arguments: str) -> None:
    """Let git do something in a repository."""
    identity = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org")
    subprocess.run(
        ["git", *identity, *arguments], cwd=place, check=True, env={**os.environ, **_AS}, capture_output=True
    )


def repository(place: Path) -> Path:
    """Return a repository with a file, and with one that is ignored."""
    (place / "src").mkdir(parents=True)
    (place / "src" / "a.py").write_text("one\n", encoding="utf-8")
    (place / ".gitignore").write_text("*.log\n.batonpass/\n", encoding="utf-8")
    (place / "README.md").write_text("about\n", encoding="utf-8")
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "begin")
    return place
