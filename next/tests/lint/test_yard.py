"""The yard: what a newcomer types first, and what a machine with nothing on it needs."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted(ROOT.glob("requirements*.lock"))


@pytest.mark.parity("locks-name-no-host")
@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_pins_by_hash_and_names_no_host(lock: Path) -> None:
    """Any mirror serves: each package has a version and hashes, and no line has an address."""
    text = lock.read_text(encoding="utf-8")
    packages = re.findall(r"^[A-Za-z0-9][^\s=]*==[^\s\\]+.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)

    assert "://" not in text
    assert "--index-url" not in text
    assert [] == [package.split()[0] for package in packages if "--hash=sha256:" not in package]
    assert len(packages) > 5


@pytest.mark.parity("readme-begins-with-two-commands")
@pytest.mark.parametrize("readme", [ROOT / "README.md", ROOT.parent / "README.md"], ids=["next", "the tree above"])
def test_a_readme_begins_with_two_commands(readme: Path) -> None:
    """The first block is `make demo` and `make test`; beside it stands what an empty system must have."""
    before, first, after = readme.read_text(encoding="utf-8").split("```", 2)[0:3]
    commands = [line.split("#")[0].strip() for line in first.splitlines()[1:] if line.strip()]

    assert ["make demo", "make test"] == commands
    assert "Python 3.11" in before + after.split("```")[0]
    assert "venv" in before + after.split("```")[0]


@pytest.mark.parity("make-says-what-is-missing")
@pytest.mark.parametrize("goal", ["demo", "test"])
def test_make_says_what_is_missing(goal: str, tmp_path: Path) -> None:
    """Where no Python is new enough, make says so in a sentence, and does nothing."""
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text(encoding="utf-8"), encoding="utf-8")
    for lock in LOCKS:
        (tmp_path / lock.name).touch()
    (tmp_path / "pyproject.toml").touch()

    done = subprocess.run(["make", goal, "PYTHON="], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "Python 3.11" in done.stdout + done.stderr
    assert not (tmp_path / ".venv").exists()
