"""A shop for the tests of blame: real files, a ledger in memory or on disk, and a clock that is moved by hand."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine, Maker
from batonpass.accounts.blame.file_blame import AskedFile, Lines, blame_file, read_file
from batonpass.accounts.blame.file_changes import place_of
from batonpass.handoff.live.faces import LiveRun
from batonpass.relay import Relay
from batonpass.store.port import LedgerView
from batonpass.testing.clock import FrozenClock

ANA = "user:ana"
OLD = "the second line, as it was"
NEW = "the second line, as it should be"
BEFORE = f"the first line\n{OLD}\nthe third line\n"
AFTER = BEFORE.replace(OLD, NEW)


def write_file(path: str, text: str) -> int:
    """Write a file, as an agent's tool does."""
    return Path(path).write_text(text, encoding="utf-8")


def delete_file(path: str) -> None:
    """Delete a file, as an agent's tool does."""
    Path(path).unlink()


class Shop:
    """A directory that agents work in. It has to be the current one: that is where calls are watched."""

    def __init__(self, folder: Path, ledger: str = "memory:") -> None:
        self.folder = folder
        self.clock = FrozenClock()
        self.relay = Relay.open(ledger, clock=self.clock)

    def path(self, name: str = "a.py") -> Path:
        """Return a file here."""
        return self.folder / name

    def edits(
        self,
        lead: LiveRun,
        name: str = "a.py",
        text: str = AFTER,
        task: str = "Shout",
        *,
        may: Sequence[str] = ("write:**",),
    ) -> LiveRun:
        """Let an editor write a file, and return its run, closed."""
        with lead.hand_off("editor", task, may=may) as editor:
            editor.call(write_file, name, text)
        return editor

    def blame(self, name: str = "a.py", first: int | None = None, last: int | None = None) -> Blame:
        """Return who wrote a file, a line of it, or some."""
        lines = None if first is None else Lines(first=first, last=last or first)
        path = self.path(name)
        data = read_file(path)
        asked = AskedFile(place=place_of(path, roots=[self.folder]), data=data, environment=os.environ)
        with self.viewed() as view:
            return blame_file(view, asked, lines)

    def maker(self, name: str = "a.py", line: int = 2) -> Maker:
        """Return who wrote a line, if exactly one call did."""
        blame = self.blame(name, line)
        (call,) = blame.lines[0].calls
        return blame.makers[call]

    def line(self, number: int, name: str = "a.py") -> BlamedLine:
        """Return what is known of a line."""
        return self.blame(name, number).lines[0]

    @contextmanager
    def viewed(self) -> Iterator[LedgerView]:
        """Look at the ledger."""
        with self.relay.store.view() as view:
            yield view

    def git(self, *arguments: str) -> None:
        """Run git here, as Ana."""
        who = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=self.folder, check=True, capture_output=True)
