"""Install the wheel on each Python from 3.11 on that this machine has, and do what people do in their first minutes.

Not a test of pytest's: each Python gets an environment of its own, beside ours, and nothing of ours is in it.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENTS = ROOT / ".venv" / "pythons"
UV = ROOT / ".venv" / "bin" / "uv"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def find_python(version: str) -> str | None:
    """Return a Python of this version that starts: on the path, or one that pyenv keeps aside."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in (f"python{version}", *map(str, kept)):
        try:
            done = subprocess.run([candidate, "-c", "import venv"], check=False, capture_output=True)
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    return None


def install(python: str, version: str, wheel: Path) -> Path:
    """Return the Python of an environment in which the wheel is installed, with what the lock says it needs."""
    place = ENVIRONMENTS / version
    subprocess.run([python, "-m", "venv", "--clear", "--without-pip", str(place)], check=True)
    inside = place / "bin" / "python"
    pinned = place / "pinned.txt"
    pinned.write_text("\n".join(_pins()), encoding="utf-8")
    wanted = ["--quiet", "--constraint", str(pinned), str(wheel)]
    # As in the Makefile: where only pip gets through to the registry, pip installs the same.
    if subprocess.run([str(UV), "pip", "install", "--python", str(inside), *wanted], check=False).returncode:
        subprocess.run([str(inside), "-m", "ensurepip"], check=True)
        subprocess.run([str(inside), "-m", "pip", "install", "--disable-pip-version-check", *wanted], check=True)
    return inside


def _pins() -> Iterator[str]:
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith((" ", "#")):
            yield line.removesuffix("\\").strip()


def main() -> None:
    """Try every Python there is; end with the first that fails."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [str(UV), "build", "--quiet", "--wheel", "--no-build-isolation", "--out-dir", folder], check=True, cwd=ROOT
        )
        (wheel,) = Path(folder).glob("*.whl")
        for version in VERSIONS:
            python = find_python(version)
            if python is None:
                sys.stdout.write(f"{version}: not on this machine\n")
                continue
            inside = install(python, version, wheel)
            work = Path(folder) / version
            work.mkdir()
            # A policy or a ledger around the folder, or variables of ours, must not matter.
            clean = {name: value for name, value in os.environ.items() if not name.startswith(("BATONPASS_", "PYTHON"))}
            program = Path(__file__).with_name("first_minutes.py")
            sys.stdout.flush()
            subprocess.run([str(inside), "-I", "-W", "error", str(program)], check=True, cwd=work, env=clean)


if __name__ == "__main__":
    main()
