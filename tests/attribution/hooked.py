"""A repository where agents work under hooks, people save files and git moves things; and who is said to have done it.

Commands are run for real between the event before them and the event after them, as Claude Code does it.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown
from batonpass.accounts.blame.file_blame import AskedFile, blame_file, read_file
from batonpass.accounts.blame.file_changes import place_of
from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.model.bodies.body import ToolRequested
from batonpass.records.source import read_source
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.attribution.repository import ENVIRONMENT

SESSION = "11111111-2222-4333-8444-555555555555"
NOBODY = "-"

Tell = Callable[[Mapping[str, Any]], Any]


def nothing() -> None:
    """Do nothing while a call runs."""


class RisingClock:
    """A clock that goes on by some seconds whenever it is asked, and git's with it: so commits have their place."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        """Return a later time than ever before."""
        self._now += timedelta(seconds=3)
        return self._now


@dataclass(slots=True)
class Hooked:
    """A work tree whose calls are told to a recorder."""

    root: Path
    relay: Relay
    tell_hook: Tell
    clock: RisingClock
    count: int = 0
    open: dict[str, tuple[str, dict[str, Any], str | None]] = field(default_factory=dict)

    def tell(self, name: str, **more: object) -> None:
        """Tell the hook what happened."""
        event = {
            "session_id": SESSION,
            "transcript_path": str(self.root.parent / "kept.jsonl"),
            "cwd": str(self.root),
            "hook_event_name": name,
            "prompt_id": "p1",
            **more,
        }
        self.tell_hook(json.loads(json.dumps(event)))

    def begin(self, tool: str, agent: str | None = None, **given: object) -> str:
        """Let a call be about to be made; return its name."""
        self.count += 1
        call = f"c{self.count}"
        self.open[call] = (tool, given, agent)
        self.tell("PreToolUse", tool_name=tool, tool_input=given, tool_use_id=call, **_of(agent))
        return call

    def end(self, call: str, response: object = "", *, error: str = "") -> None:
        """Let a call be over."""
        tool, given, agent = self.open.pop(call)
        about = {"tool_name": tool, "tool_input": given, "tool_use_id": call, **_of(agent)}
        if error:
            self.tell("PostToolUseFailure", **about, error=error)
        else:
            self.tell("PostToolUse", **about, tool_response=response)

    def bash(
        self, command: str, *, agent: str | None = None, meanwhile: Callable[[], None] = nothing, fails: bool = False
    ) -> str:
        """Let an agent run a command, and something else happen at the same time."""
        call = self.begin("Bash", agent, command=command)
        meanwhile()
        done = self.run(command, by="agent", check=not fails)
        self.end(call, {"stdout": done}, error="exit 1" if fails else "")
        return call

    def edit(
        self,
        path: str,
        old: str,
        new: str,
        *,
        agent: str | None = None,
        before: Callable[[], None] = nothing,
        after: Callable[[], None] = nothing,
    ) -> str:
        """Let an agent edit a file, and something else happen right before its own write, or right after."""
        place = self.root / path
        call = self.begin("Edit", agent, file_path=str(place), old_string=old, new_string=new)
        before()
        original = place.read_text(encoding="utf-8")
        assert original.count(old) == 1
        written = original.replace(old, new)
        place.write_text(written, encoding="utf-8")
        after()
        self.end(call, {"filePath": str(place), "originalFile": original, "structuredPatch": _patch(original, written)})
        return call

    def write(self, path: str, text: str, *, agent: str | None = None) -> str:
        """Let an agent write a whole file."""
        place = self.root / path
        call = self.begin("Write", agent, file_path=str(place), content=text)
        original = place.read_text(encoding="utf-8") if place.exists() else None
        place.write_text(text, encoding="utf-8")
        patch = [] if original is None else _patch(original, text)
        told = {"type": "create" if original is None else "update", "filePath": str(place), "content": text}
        self.end(call, {**told, "structuredPatch": patch, "originalFile": original})
        return call

    def run(self, command: str, *, by: str, check: bool = True) -> str:
        """Run a command as somebody."""
        at = self.clock.now().isoformat()
        who = {f"GIT_{role}_{fact}": f"{by}@example.org" for role in ("AUTHOR", "COMMITTER") for fact in ("EMAIL",)}
        who |= {f"GIT_{role}_NAME": by for role in ("AUTHOR", "COMMITTER")}
        dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "GIT_EDITOR": "true"}
        environment = {**ENVIRONMENT, **who, **dates, "PATH": os.environ["PATH"]}
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, (command, done.stderr)
        return done.stdout

    def save(self, path: str, *lines: str) -> None:
        """Let a person save a file."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def lines(self, path: str) -> list[str]:
        """Return the lines of a file."""
        return (self.root / path).read_text(encoding="utf-8").splitlines()

    def blame(self, path: str) -> Blame:
        """Return who is said to have written a file."""
        place = self.root / path
        asked = AskedFile(place=place_of(place), data=read_file(place), environment=ENVIRONMENT)
        with self.relay.store.view() as view:
            return blame_file(view, asked)

    def who(self, path: str) -> list[tuple[str, str]]:
        """Return each line with whose it is: a call, a call with `?` that may have, or nobody and a commit's author."""
        keys = self.keys()
        return [(line.text, _said(line, [keys[call] for call in line.calls])) for line in self.blame(path).lines]

    def keys(self) -> dict[str, str]:
        """Return by which name Claude Code knows each call."""
        with self.relay.store.view() as view:
            found = [decode_receipt(one.payload) for one in view.find_receipts(ReceiptQuery(kind="tool.requested"))]
            sources = [(one, read_source(view, one)) for one in found]
        return {
            one.body.call: source.key or ""
            for one, source in sources
            if isinstance(one.body, ToolRequested) and source is not None
        }


def _said(line: BlamedLine, keys: Sequence[str]) -> str:
    if line.known is HowKnown.UNEXPLAINED:
        return NOBODY if line.commit is None else f"{NOBODY}{line.commit.author.partition(' ')[0]}"
    if line.known is HowKnown.CANDIDATES:
        return " or ".join([*(f"{key}?" for key in keys), *([NOBODY] if line.or_nobody else [])])
    return " or ".join(keys)


def _of(agent: str | None) -> dict[str, str]:
    return {} if agent is None else {"agent_id": agent, "agent_type": "editor"}


def _patch(before: str, after: str) -> list[dict[str, Any]]:
    """Return one hunk with all lines, which is a patch as well."""
    old, new = before.splitlines(), after.splitlines()
    lines = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    return [{"oldStart": 1, "newStart": 1, "lines": lines}]


@contextmanager
def hooked(
    folder: Path, *, through: Callable[[HookRecorder], Tell] | None = None, files: Mapping[str, str] | None = None
) -> Iterator[Hooked]:
    """Lay out a repository that a person committed, and record what happens in it."""
    root = folder / "shop"
    root.mkdir(parents=True)
    clock = RisingClock()
    with Relay.open("memory:", work_tree=root, clock=clock) as relay:
        tree = WorkTree(root, environment=ENVIRONMENT, without=(".batonpass",), watch=False)
        recorder = HookRecorder(relay, root, by="user:ana", work_tree=tree)
        hooks = Hooked(root, relay, recorder.handle if through is None else through(recorder), clock)
        hooks.run("git init --quiet --initial-branch=main && echo .claude > .gitignore", by="ana")
        for path, text in (files or {}).items():
            hooks.save(path, *text.splitlines())
        hooks.run("git add --all && git commit --quiet --message=begin", by="ana")
        hooks.tell("UserPromptSubmit", prompt="Go")
        try:
            yield hooks
        finally:
            recorder.close()
        relay.verify()
