"""`make` on a machine that nobody has prepared."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.tree import ROOT

TOO_OLD = "#!/bin/sh\nexit 1\n"
GOOD = "#!/bin/sh\nexit 0\n"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return a folder with our Makefile, and beside it a path on which there is only a shell."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "echo", "expr", "getconf"):
        (programs / name).symlink_to(shutil.which(name) or name)
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(bare: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make there, with nothing else on its path."""
    program = shutil.which("make") or "make"
    path = {"PATH": str(bare / "bin")}
    return subprocess.run([program, *arguments], cwd=bare, env=path, check=False, capture_output=True, text=True)


def put(bare: Path, name: str, text: str) -> None:
    """Put a program on the path."""
    (bare / "bin" / name).write_text(text)
    (bare / "bin" / name).chmod(0o755)


@pytest.mark.parametrize("there", [(), ("python3", "python3.10")], ids=["none", "only an old one"])
def test_without_a_python_that_is_new_enough_it_says_so(bare: Path, there: tuple[str, ...]) -> None:
    """One sentence says what is missing, and nothing is installed."""
    for name in there:
        put(bare, name, TOO_OLD)
    done = make(bare, "demo")

    assert (2, "There is no Python 3.11 or newer on the path: install one, or name it with make PYTHON=…\n") == (
        done.returncode,
        done.stdout,
    )
    assert not (bare / ".venv").exists()


def test_the_newest_python_on_the_path_is_taken(bare: Path) -> None:
    """A name for which there is no Python, as version managers leave them, is passed over."""
    for name, text in {"python3": GOOD, "python3.11": GOOD, "python3.13": GOOD, "python3.14": TOO_OLD}.items():
        put(bare, name, text)

    assert "python3.13\n" == make(bare, "--eval=tell: ; @echo $(PYTHON)", "tell").stdout
