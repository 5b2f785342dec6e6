"""Faults that are planted in a copy of the core, and what the simulation says of it.

Each is one that a change of the core could bring back. One that is not found within 2,000 seeds means that the
programs, the plans or the oracle do not reach it any more.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
MOST_SEEDS: Final = 2_000


class Change(NamedTuple):
    """A text of a file of the core, and what stands there instead."""

    file: str
    old: str
    new: str


PLANTED: Final[dict[str, tuple[Change, ...]]] = {
    "a commit that was cut short counts as written": (
        Change("store/group_commit.py", "command.settle(_told(error))", "command.settle()"),
    ),
    "a transaction that was cut short stays open": (
        Change("store/group_commit.py", "                    self._writer.roll_back()\n", "                    pass\n"),
    ),
    "the epoch of a stream is not compared": (
        Change("store/sqlite/queries.sql", "AND epoch = ?9 AND", "AND ?9 IS NOT NULL AND"),
        Change("log/append.py", "if row.epoch > self.epoch:", "if False:"),
    ),
    "a stream that has ended takes receipts": (Change("store/sqlite/queries.sql", "AND state = 'open' AND", "AND"),),
    "a fence names any head": (
        Change("store/sqlite/queries.sql", "AND seq = ? AND head = ?;", "AND ? IS NOT NULL AND ? IS NOT NULL;"),
    ),
    "a retry fences nothing": (
        Change(
            "model/change.py",
            "    _fence(body.ended_run, change, RunState.FENCED)\n",
            "    change.from_run = body.ended_run.run\n",
        ),
    ),
    "an acceptance hangs from any receipt about its handoff": (
        Change("model/change.py", "= body.attempt - 1, signed.previous", "= body.attempt - 1, None"),
    ),
    "the index of requests does not decide": (
        Change(
            "store/sqlite/store.py",
            'self._write(change, "add_request", *values)',
            'self._execute(_SQL["add_request"], values)',
        ),
    ),
    "a refusal is not looked up": (
        Change("api/port.py", "            if earlier is None:\n                raise\n", "            raise\n"),
    ),
    "equal requests are at work at once": (
        Change("api/port.py", "requests.setdefault(mark.digest, self", "requests.setdefault(str(id(mark)), self"),
    ),
    "a grant that was revoked is charged": (
        Change(
            "store/sqlite/store.py", 'if self._execute(_SQL["is_rev', 'if not change and self._execute(_SQL["is_rev'
        ),
    ),
    "a call in doubt is made again": (
        Change("runtime/call.py", "    if not request.is_idempotent:\n", "    if False:\n"),
    ),
    "a call that was interrupted counts as failed": (
        Change(
            "api/handles.py",
            "            except Exception as error:\n                begun.fail",
            "            except BaseException as error:\n                begun.fail",
        ),
    ),
    "a call without a result keeps its number": (
        Change("api/handles.py", "            self.abandon()  # the caller has no result", "            pass  # the"),
        Change(
            "api/handles.py", "        finally:\n            self.abandon()\n", "        finally:\n            pass\n"
        ),
        Change("api/handles.py", "            if not is_kept:", "            if False:"),
    ),
    "a number that is free again is the last one": (
        Change(
            "api/repetition.py",
            ".discard(self.number)",
            ".discard(max(self._taken, default=0))",
        ),
    ),
    "an enforced run goes on where nothing can be written": (
        Change("runtime/run_state.py", '        if self.mode == "enforced":\n', "        if False:\n"),
    ),
    "a gap is not named": (Change("log/append.py", "            if missing:\n", "            if False:\n"),),
    "an attempt that was fenced delivers": (
        Change(
            "runtime/call.py",
            "        if not isinstance(failure, StoreError):\n            raise\n",
            "        if not isinstance(failure, StoreError):\n            return outcome\n",
        ),
    ),
    "an append that was cut short leaves a run sure of itself": (
        Change(
            "log/append.py",
            "self.doubt()\n                raise",
            "pass\n                raise",
        ),
    ),
    "history is read again while a thread appends": (
        Change(
            "log/append.py",
            "            self._place = None\n            seq,",
            "            self._place = None\n            was, self.is_unsure = self.is_unsure, True\n            seq,",
        ),
        Change(
            "log/append.py",
            "                self._place = place\n            except",
            "                self._place, self.is_unsure = place, was\n            except",
        ),
        Change(
            "log/append.py", "self._place = place  # nothing", "self._place, self.is_unsure = place, was  # nothing"
        ),
        Change(
            "log/append.py",
            "self.doubt()\n                raise",
            "pass\n                raise",
        ),
        Change("runtime/run_state.py", "        with self.writer.lock:\n", "        if True:\n"),
        Change(
            "runtime/run_state.py",
            "                row = None if",
            "                self.writer.is_unsure = False\n                row = None if",
        ),
        Change("runtime/offer.py", "    run.history.children[handoff] = None  # and", "    pass  # and"),
    ),
    "two threads decide about one call": (
        Change("runtime/retry.py", " or call in run.settling:", ":"),
        Change("runtime/retry.py", "all(each.call != body.call for each in known)", "False"),
    ),
    "a retry forgets calls in doubt": (
        Change("reading/history.py", "        history.in_doubt[body.key] = doubtful\n", "        pass\n"),
    ),
    "a retry forgets finished calls": (
        Change("reading/history.py", "            history.finished[key] = result\n", "            pass\n"),
    ),
    "a later attempt forgets what was skipped": (
        Change("reading/history.py", "        history.finished.setdefault(body.key, NULL)\n", "        pass\n"),
    ),
    "a close forgets its children": (
        Change("runtime/offer.py", "    run.history.children[handoff] = None  # before", "    pass  # before"),
        Change("runtime/offer.py", "    run.history.children[handoff] = None  # and", "    pass  # and"),
    ),
    "children are withdrawn before the close": (
        Change(
            "runtime/close.py",
            "    run.refresh(recorder)\n",
            "    run.refresh(recorder)\n    _withdraw_children(context, run, outcome)\n",
        ),
    ),
    "an offer that was retried is not read again": (
        Change(
            "runtime/accept.py",
            "    history = read_attempts(store, row)\n",
            '    history = read_attempts(store, row)\n    if row.attempt:\n        raise NotFoundError("gone")\n',
        ),
    ),
    "an offer that was there before forgets its acceptance": (
        Change("api/runs.py", "if accepted is not None and isinst", "if accepted is not None and initiated and isinst"),
    ),
    "the items of a start are handed on twice": (Change("runtime/start.py", ", items=tuple(items)),", "),"),),
}


def plant(name: str, directory: Path) -> None:
    """Make a copy of the core and of the simulation with this fault."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "batonpass", directory / "src" / "batonpass", ignore=ignore)
    shutil.copytree(ROOT / "tests" / "simulation", directory / "tests" / "simulation", ignore=ignore)
    for change in PLANTED[name]:
        path = directory / "src" / "batonpass" / change.file
        text = path.read_text(encoding="utf-8")
        if change.old not in text:
            raise LookupError(f"{change.file} has no {change.old!r}: the fault {name!r} has to be planted elsewhere")
        path.write_text(text.replace(change.old, change.new), encoding="utf-8")


def search(directory: Path, *, first: int = 0, seeds: int = MOST_SEEDS) -> str:
    """Return what the simulation says of a copy, up to the first seed that fails."""
    python = os.pathsep.join((str(directory / "src"), str(directory)))
    command = [
        sys.executable,
        "-m",
        "tests.simulation",
        "--seeds",
        str(seeds),
        "--first",
        str(first),
        "--processes",
        "1",
    ]
    run = subprocess.run(
        command, cwd=directory, env=os.environ | {"PYTHONPATH": python}, capture_output=True, text=True, check=False
    )
    return run.stdout or run.stderr
