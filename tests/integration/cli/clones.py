"""A git repository of a test, with a remote, in which people commit."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.integration.cli.shell import PATIENCE, batonpass_in, surroundings
from tests.unit.cli.desk import Desk


@dataclass(frozen=True, slots=True)
class Clone:
    """A repository with a ledger in it, a remote, and `batonpass` on the PATH."""

    folder: Path
    tools: Path

    @property
    def desk(self) -> Desk:
        """Return the ledger."""
        return Desk(self.folder)

    def git(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run git as somebody who has `batonpass` installed."""
        path = f"{self.tools}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["git", "-c", "user.name=ana", "-c", "user.email=ana@example.org", *arguments],
            cwd=self.folder,
            env=surroundings(PATH=path, HOME=str(self.tools), GIT_CONFIG_NOSYSTEM="1", **more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def commit(self, message: str, *arguments: str) -> str:
        """Commit something and return the whole message that was recorded."""
        done = self.git("commit", "--allow-empty", "-m", message, *arguments)
        assert 0 == done.returncode, done.stderr
        return self.message()

    def message(self) -> str:
        """Return the message of the last commit."""
        return self.git("log", "-1", "--format=%B").stdout

    def batonpass(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the repository."""
        return batonpass_in(self.folder, *arguments)


def a_clone(place: Path) -> Clone:
    tools = place / "tools"
    tools.mkdir()
    program = tools / "batonpass"
    program.write_text(f"#!{sys.executable}\nfrom batonpass.cli.main import main\nmain()\n", encoding="utf-8")
    program.chmod(0o755)
    clone = Clone(place / "shop", tools)
    clone.folder.mkdir()
    clone.git("init", "--quiet", "--bare", str(place / "remote.git"))
    clone.git("init", "--quiet", "--initial-branch=main")
    clone.git("remote", "add", "origin", str(place / "remote.git"))
    return clone
