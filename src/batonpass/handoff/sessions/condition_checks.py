"""Evaluates the conditions of decisions: looks at files of the work tree, and runs registered checks."""

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from batonpass.attribution.changes.sides import find_root
from batonpass.attribution.worktree.plain_file import NotPlainFileError, open_plain
from batonpass.guard.constraints.conditions import CheckAnswer, SeenState, find_checks, find_files
from batonpass.handoff.tools.json_values import readable
from batonpass.handoff.tools.returned_value import awaited
from batonpass.model.base.checks import shorten
from batonpass.model.base.ids import Digest

Check = Callable[[], object]


def look_at_files(conditions: Iterable[str], directory: Path | None = None) -> dict[str, SeenState]:
    """Return the present state of the files that conditions name. Paths are relative to the root of the repository."""
    root = find_root(directory or Path.cwd())
    return {path: _look(root, path) for path in find_files(conditions)}


def run_checks(conditions: Iterable[str], checks: Mapping[str, Check]) -> dict[str, CheckAnswer]:
    """Return the answers of the checks that conditions ask for. A check that raises gives no answer, only a reason."""
    return {name: _ask(checks[name]) for name in find_checks(conditions) if name in checks}


def _look(root: Path, path: str) -> SeenState:
    try:
        place = (root / path).resolve()
        if not place.is_relative_to(root):
            return SeenState(None, "lies outside of the work tree")
        with open_plain(place) as file:  # the path comes from the words of an agent
            return SeenState(Digest(hashlib.file_digest(file, "sha256").hexdigest()))
    except NotPlainFileError:
        return SeenState(None, "is not a file")
    except (FileNotFoundError, NotADirectoryError):
        return SeenState(None, "is not there")
    except (OSError, ValueError, RuntimeError) as error:
        # The name is too long or has a null character, links form a circle, or it may not be read.
        return SeenState(None, f"cannot be read: {getattr(error, 'strerror', None) or error}")


def _ask(check: Check) -> CheckAnswer:
    try:
        said = check()
        if inspect.isawaitable(said):
            import asyncio  # noqa: PLC0415 - as slow to import as all of batonpass, and few need it

            said = asyncio.run(awaited(said))
    except Exception as error:  # noqa: BLE001 - a check is foreign code, and no error of it counts as a yes
        return CheckAnswer(holds=None, why=f"{type(error).__name__}: {_line(str(error))}".rstrip(": "))
    if isinstance(said, bool):
        return CheckAnswer(holds=said)
    if isinstance(said, str) and said.strip():
        return CheckAnswer(holds=False, why=_line(said))
    return CheckAnswer(holds=None, why=f"it returned {shorten(said)}, neither True nor False nor why not")


def _line(text: str) -> str:
    return " ".join(readable(text).split())[:200]
