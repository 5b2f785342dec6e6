"""One scene for each framework, in its own environment; `make test-adapters` plays all of them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FRAMEWORKS = sorted(path.stem for path in HERE.glob("*.lock"))
BIG = {"crewai"}  # `make test-adapters` alone plays them
PINNED = re.compile(r"^(\S+)==(\S+)((?:[^\n]*\\\n)?(?:    [^\n]*\n)*)", re.MULTILINE)
QUICK = "narrowed_grant or retry_runs or exact_task or Canaries"


@pytest.mark.parametrize("framework", [one for one in FRAMEWORKS if one not in BIG])
def test_a_quick_form_of_each_column(framework: str) -> None:
    """The framework runs, is recorded, held to a grant, and retried; what we lean on in it is still there."""
    python = ROOT / ".venv" / "frameworks" / framework / "bin" / "python"
    command: list[str | Path] = [
        python,
        "-m",
        "pytest",
        "-q",
        "-c",
        HERE / "column.ini",
        HERE / f"{framework}_column.py",
        "-k",
        QUICK,
    ]

    played = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == played.returncode, played.stdout + played.stderr


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_package_is_pinned_by_hash(framework: str) -> None:
    """An installer can refuse any file that is not the one we tested, and it works with any mirror."""
    lock = (HERE / f"{framework}.lock").read_text(encoding="utf-8")
    pinned = PINNED.findall(lock)

    assert any(name.startswith(framework.replace("_", "-")) for name, _, _ in pinned)
    assert [] == [name for name, _, rest in pinned if "--hash=sha256:" not in rest]
    assert [] == re.findall(r"\S*(?:://|--\S*url\S*|--find-links)\S*", lock)


@pytest.mark.parametrize("package", FRAMEWORKS)
def test_a_missing_framework_is_said_in_a_sentence(package: str) -> None:
    """It names the command that installs it."""
    program = (
        "import importlib.util; importlib.util.find_spec = lambda name: None\n"
        f"from batonpass.adapters.{package} import record\n"
        "record(by='user:ana')\n"
    )

    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert f"pip install '.[{package.replace('_', '-')}]'" in failed.stderr.splitlines()[-1]
