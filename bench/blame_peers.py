"""Whose the lines are found to be, by us and by others, where agents and people use git on the same files.

All see the same: hooks and git hooks fire while it happens, and Claude Code's transcripts are there afterwards. Each is
asked for every line; the truth is known. A peer names what it was told as the model, and that is the run.
"""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.git.file_git import Repository
from batonpass.attribution.git.file_history import read_history
from batonpass.attribution.lines.attribution import attribute
from bench.effort import Effort
from bench.measure import time_in_turns
from bench.peering import program_of_peer
from bench.table import Figure, Note, Row, Unit, p50
from tests.attribution.generator import File
from tests.attribution.lines import HUMAN
from tests.attribution.repository import ENVIRONMENT
from tests.attribution.workshop import Workshop, live_in

_STEPS: Final = 20
_TRAILER: Final = re.compile(r"^Agent: (\S+)$", re.MULTILINE)
_AI_BLAME: Final = re.compile(r"^(\S+)\s+(\d+) \|")

Named = Sequence[tuple[str, ...]]  # for each line: nobody, one, or several who may have


class _Shop(Workshop):
    """A workshop by the clock on the wall: others stamp what they see with that."""

    def wait(self, seconds: int) -> None:
        del seconds  # nothing here takes longer than it takes
        self.now = datetime.now(UTC)


@dataclass(slots=True)
class _Tally:
    """What became of the lines: of agents those that were named, and of people those that were given to an agent."""

    lines: int = 0
    right: int = 0
    wrong: int = 0
    candidates: int = 0

    def add(self, named: Named, file: File) -> None:
        for names, line in zip(named, file.lines, strict=True):
            self.lines += line.run != HUMAN
            if len(names) == 1:
                self.right += names[0] == line.run
                self.wrong += names[0] != line.run
            else:
                self.candidates += line.run in names


@dataclass(slots=True)
class _Scene:
    """One repository with its past, and a home of its own for everybody who watches."""

    home: Path
    shop: _Shop
    programs: Mapping[str, Path]
    said: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by run: the lines of its transcript

    @property
    def environment(self) -> dict[str, str]:
        places = dict.fromkeys(str(path.parent) for path in self.programs.values())
        path = os.pathsep.join([*places, ENVIRONMENT["PATH"]])
        return {**ENVIRONMENT, "PATH": path, "HOME": str(self.home), "AGENT_TRACE_HOME": str(self.home / "traces")}

    def run(self, *command: object, given: str = "") -> str:
        done = subprocess.run(
            list(map(str, command)),
            input=given,
            cwd=self.shop.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def watch(self, change: FileChange, before: bytes, after: bytes) -> None:
        """Tell what watches of an edit, as Claude Code does."""
        tool, given = _tool_call(self.shop.root / change.path, before.decode(), after.decode())
        if (tracer := self.programs.get("agent-trace")) is not None:
            event: dict[str, Any] = {
                "hook_event_name": "PostToolUse",
                "session_id": change.run,
                "cwd": str(self.shop.root),
            }
            event |= {"model": change.run, "tool_name": tool, "tool_use_id": change.call, "tool_input": given}
            self.run(tracer, "record", given=json.dumps(event))
        self.said.setdefault(change.run, []).extend(_told(change, self.shop.root, tool, given, before.decode()))

    def write_transcripts(self) -> None:
        """Leave the transcripts where Claude Code leaves them."""
        folder = self.home / ".claude" / "projects" / re.sub(r"[/._]", "-", str(self.shop.root))
        folder.mkdir(parents=True)
        for run, lines in self.said.items():
            text = "".join(f"{json.dumps(line)}\n" for line in lines)
            (folder / f"{run}.jsonl").write_text(text, encoding="utf-8")


def measure(scratch: Path, effort: Effort) -> Sequence[Row | Note]:
    """Ask everybody who is installed for every line."""
    programs = {name: path for name in ("agent-trace", "ai-blame") if (path := program_of_peer(name)) is not None}
    scenes = [_scene(scratch / str(seed), seed, programs) for seed in range(effort.pasts)]
    asked: dict[str, Callable[[_Scene, File], Named]] = {
        "ours, with hooks": _hooks,
        "ours, from transcripts": _transcripts,
        "git blame and trailers of commits": _trailers,
    }
    asked |= {name: ask for name, ask in (("agent-trace", _agent_trace), ("ai-blame", _ai_blame)) if name in programs}
    rows: list[Row | Note] = []
    for name, ask in asked.items():
        tally = _Tally()
        for scene in scenes:
            for file in scene.shop.tree.values():
                tally.add(ask(scene, file), file)
        unknown = tally.lines - tally.right - tally.candidates
        rows.append(
            Row(
                what=f"agents' lines given to whom they are, git in between: {name}",
                ours=Figure(tally.right / tally.lines, Unit.SHARE),
                against=f"of {tally.lines:,}: {tally.candidates:,} candidates, {unknown:,} not found; "
                f"{tally.wrong:,} lines given to a wrong run, people's too",
                theirs=None,
            )
        )
    return [*rows, *_time(scenes[0], effort), *_missing(programs)]


def _missing(programs: Mapping[str, Path]) -> Iterator[Note]:
    if missing := {"agent-trace", "ai-blame"} - programs.keys():
        yield Note(f"not installed, so not asked: {', '.join(sorted(missing))}")


def _scene(place: Path, seed: int, programs: Mapping[str, Path]) -> _Scene:
    (place / "home").mkdir(parents=True)
    shop = _Shop(place / "work", random.Random(seed))
    scene = _Scene(place / "home", shop, programs)
    shop.environment = scene.environment
    shop.watch = scene.watch
    shop.begin()
    if (tracer := programs.get("agent-trace")) is not None:
        scene.run(tracer, "init")
    live_in(shop, _STEPS)
    scene.write_transcripts()
    return scene


def _time(scene: _Scene, effort: Effort) -> Iterator[Row]:
    """Yield how long a process takes that answers for one line, by everybody in turns."""
    file = max(scene.shop.tree.values(), key=lambda one: len(one.lines))
    batonpass = Path(sys.executable).parent / "batonpass"
    scene.run(batonpass, "import", "claude-code")
    acts: dict[str, Callable[[], object]] = {
        "batonpass": lambda: scene.run(batonpass, "blame", f"{file.path}:5"),
        "git": lambda: scene.run("git", "blame", "--porcelain", "-L5,5", "--", file.path),
    }
    if (tracer := scene.programs.get("agent-trace")) is not None:
        acts["agent-trace"] = lambda: scene.run(tracer, "blame", file.path, "--line", 5, "--json")
    if (reader := scene.programs.get("ai-blame")) is not None:
        acts["ai-blame"] = lambda: scene.run(reader, "blame", file.path, "--lines", "5-5", "--home", scene.home)
    taken = time_in_turns(acts, turns=effort.starts, acts=1)
    for name in acts.keys() - {"batonpass"}:
        yield Row(
            what="`batonpass blame FILE:LINE`, a process, ledger and git included",
            ours=p50(taken["batonpass"]),
            against={"git": "git blame of that line"}.get(name, name),
            theirs=p50(taken[name]),
        )


def _tool_call(path: Path, before: str, after: str) -> tuple[str, dict[str, str]]:
    """Return an edit as a model makes it: what is replaced occurs once; else the whole file is written."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    while start > 0:
        taken = "".join(old[start : len(old) - end])
        if taken.strip() and before.count(taken) == 1:
            return "Edit", {
                "file_path": str(path),
                "old_string": taken,
                "new_string": "".join(new[start : len(new) - end]),
            }
        start -= 1
    return "Write", {"file_path": str(path), "content": after}


def _told(change: FileChange, root: Path, tool: str, given: Mapping[str, str], before: str) -> Iterator[dict[str, Any]]:
    common = {
        "sessionId": change.run,
        "cwd": str(root),
        "version": "2.0.0",
        "isSidechain": False,
        "userType": "external",
    }
    at = change.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    patch = [
        {
            "oldStart": hunk.old_start,
            "oldLines": hunk.old_count,
            "newStart": hunk.new_start,
            "newLines": hunk.new_count,
            "lines": [*(f"-{line}" for line in hunk.removed), *(f"+{line}" for line in hunk.added)],
        }
        for hunk in change.hunks or ()
    ]
    used = {"type": "tool_use", "id": change.call, "name": tool, "input": dict(given)}
    message = {"id": f"m{change.call}", "role": "assistant", "model": change.run, "content": [used]}
    ask = {"role": "user", "content": "Go on."}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": change.call, "content": "ok"}]}
    done = {"filePath": given["file_path"], "originalFile": before, "structuredPatch": patch, "userModified": False}
    done |= {"type": "update", "content": given["content"]} if tool == "Write" else {}
    done |= {"oldString": given["old_string"], "newString": given["new_string"]} if tool == "Edit" else {}
    lines: tuple[dict[str, Any], ...] = (
        {"type": "user", "parentUuid": None, "message": ask},
        {"type": "assistant", "message": message},
        {"type": "user", "message": result, "toolUseResult": done},
    )
    for number, more in enumerate(lines):
        above = f"{change.call}-{number - 1}"
        yield {**common, "timestamp": at, "uuid": f"{change.call}-{number}", "parentUuid": above, **more}


def _hooks(scene: _Scene, file: File) -> Named:
    return _ours(scene, file, scene.shop.changes)


def _transcripts(scene: _Scene, file: File) -> Named:
    return _ours(scene, file, scene.shop.transcript())


def _ours(scene: _Scene, file: File, changes: list[FileChange]) -> Named:
    history = read_history(Repository(scene.shop.root, ENVIRONMENT), file.path, file.data, changes)
    found = attribute(file.path, file.data, changes, history)
    return [
        (one.run,)
        if one.run is not None
        # Nobody among them is a name too: one candidate is no answer.
        else (*dict.fromkeys(author.run or "" for author in one.candidates), *(["nobody"] if one.candidates else []))
        for one in found
    ]


def _trailers(scene: _Scene, file: File) -> Named:
    shop = scene.shop
    names = [line.partition(" ")[0] for line in scene.run("git", "blame", "-s", "-l", "--", file.path).splitlines()]
    said = {
        name: tuple(_TRAILER.findall(shop.git("show", "--no-patch", "--format=%B", name)))
        for name in set(names)
        if not name.startswith("^") and set(name) != {"0"}
    }
    return [said.get(name, ()) for name in names]


def _agent_trace(scene: _Scene, file: File) -> Named:
    named: list[tuple[str, ...]] = [()] * len(file.lines)
    printed = scene.run(scene.programs["agent-trace"], "blame", file.path, "--json") or "{}"
    for part in json.loads(printed).get("attributions", ()):
        if part.get("kind") == "AI" and part.get("model_id"):
            for number in range(part["start_line"], part["end_line"] + 1):
                named[number - 1] = (part["model_id"],)
    return named


def _ai_blame(scene: _Scene, file: File) -> Named:
    named: list[tuple[str, ...]] = [()] * len(file.lines)
    what = ("blame", file.path, "--home", scene.home, "--no-header", "--columns", "MLC")
    for line in scene.run(scene.programs["ai-blame"], *what).splitlines():
        if (found := _AI_BLAME.match(line)) is not None and found[1] != "-":
            named[int(found[2]) - 1] = (found[1],)
    return named
