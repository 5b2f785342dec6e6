"""The real Claude Code, as a person starts it: in a project, with a home of its own, and a scripted model behind it."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.claude_code.api import ScriptedApi

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 120

_ALLOWED: Final = "Agent,Bash,Edit,Read,Task,Write"


def claude_binary() -> Path:
    """Return the program that the SDK brings with it. Where it is missing, tests fail: `make test` installs it."""
    found = sorted((ROOT / ".venv" / "claude").glob("lib/python*/site-packages/claude_agent_sdk/_bundled/claude"))
    if not found:
        raise FileNotFoundError("Claude Code is not installed here; run `make .venv/claude/.installed`")
    return found[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCode:
    """A project, the home of whoever works in it, and the model that answers."""

    home: Path
    project: Path
    api: ScriptedApi

    @property
    def config(self) -> Path:
        """Return where it keeps what it keeps."""
        return self.home / ".claude"

    def say(self, prompt: str, *options: str) -> str:
        """Say something, wait until all is done, and return the session's id."""
        done = subprocess.run(
            _command(prompt, options),
            cwd=self.project,
            env=self.surroundings(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        assert 0 == done.returncode, done.stderr + done.stdout
        return str(json.loads(done.stdout.splitlines()[-1])["session_id"])

    def start(self, prompt: str, *options: str) -> "subprocess.Popen[bytes]":
        """Say something and do not wait; it has a process group of its own, to be killed with all that it started."""
        return subprocess.Popen(
            _command(prompt, options),
            cwd=self.project,
            env=self.surroundings(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def surroundings(self) -> dict[str, str]:
        """Return the environment in which it runs."""
        return {
            "ANTHROPIC_API_KEY": "sk-ant-nobody",
            "ANTHROPIC_BASE_URL": self.api.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "NO_PROXY": "127.0.0.1",
            "PATH": os.environ["PATH"],
            "USER": "ana",
        }


def _command(prompt: str, options: Sequence[str]) -> list[str]:
    return [
        str(claude_binary()),
        "--print",
        prompt,
        "--output-format=json",
        "--model=claude-sonnet-4-5",
        "--permission-mode=acceptEdits",
        f"--allowedTools={_ALLOWED}",
        *options,
    ]
