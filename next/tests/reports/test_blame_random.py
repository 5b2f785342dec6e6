"""Random edits by recorded calls and by unrecorded hands, against owners that the test keeps: blame is never wrong.

Two things nobody can see, so the hands here do not do them: a common line (a brace, a blank one) that is deleted and
typed again between the same lines, and a distinctive line that is typed again by chance. Copied and moved lines keep
the writer of their words.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from batonpass import Blame, Run
from batonpass.errors import FencedError
from batonpass.testing import a_relay, a_run

Owned: TypeAlias = list[tuple[str, str]]
"""The lines of a file, each with its owner: the id of a call, `older`, or `hand`."""

COMMON: Final = ("}", "", "    pass", "    return None", "else:", "import os", "x = 1", "{", ")")
OLDER: Final = "older"
HAND: Final = "hand"
FILE: Final = "a.py"


def _put(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(text, encoding="utf-8")


class World:
    """A file that calls and hands edit at random, and who owns each of its lines."""

    def __init__(self, seed: int, lead: Run) -> None:
        self.random = random.Random(seed)
        self.lead = lead
        self.writes = 0
        self.number = 0
        self.known: dict[str, Owned] = {}  # texts that a call found or left
        self.left: str | None = None  # by the last call
        self.is_whole = True  # each call found what the one before it had left
        self.typed: set[str] = set()  # by hands, since the last call
        self.deleted: set[str] = set()
        self.lines: Owned | None = None
        if self.random.random() < 0.6:
            self.lines = [(self._line(0.6), OLDER) for _ in range(self.random.randint(0, 10))]
            _put(Path(FILE), self.text())

    def text(self) -> str | None:
        """Return the file; None while there is none."""
        return None if self.lines is None else "".join(f"{line}\n" for line, _ in self.lines)

    def step(self) -> None:
        """Let a call or a hand edit the file."""
        if self.random.random() < 0.65:
            self._call()
        else:
            self._hand()

    def check(self, answer: Blame) -> Counter[str]:
        """Compare an answer with the owners; return how many lines of calls there were, and were named."""
        counts: Counter[str] = Counter()
        assert [line for line, _ in self.lines or []] == [line.text for line in answer.lines]
        for line, (text, owner) in zip(answer.lines, self.lines or [], strict=True):
            write = answer.write_of(line)
            said = line.origin if write is None else write.call
            if line.origin in {"recorded", "older"}:
                assert owner == said, (text, line)
            if answer.state == "recorded" and self.is_whole:
                assert owner == said, (text, line)
            elif owner not in {OLDER, HAND} and text not in COMMON:
                counts["distinctive"] += 1
                counts["distinctive, named"] += write is not None
        return counts

    def _line(self, share: float) -> str:
        if self.random.random() > share:
            return self.random.choice(COMMON)
        self.number += 1
        return f"    value_{self.number}_{self.random.getrandbits(30):08x} = compute({self.number})"

    def _region(self, lines: Owned) -> tuple[int, int]:
        first = self.random.randint(0, len(lines))
        return first, min(len(lines), first + self.random.choice((0, 0, 1, 1, 2, 3, 6)))

    def _call(self) -> None:
        if not self.writes and self.lines is not None:
            self.lines = [(line, OLDER) for line, _ in self.lines]
        self.typed, self.deleted = set(), set()
        before = self.text()
        lines = list(self.lines or [])
        if before is not None:
            self.known.setdefault(before, lines)
        first, last = self._region(lines)
        if self.random.random() < 0.05 and self.lines is not None:
            added: list[str] | None = None
        elif self.random.random() < 0.25:
            # Of equal lines one after the other a deletion takes the last: which one, nobody can see.
            while first < last < len(lines) and lines[first][0] == lines[last][0]:
                first, last = first + 1, last + 1
            added = []
        else:
            # A difference would find a common line that was there before, and it is the same line for everybody.
            gone = {line for line, _ in lines[first:last]}
            block = [line for line in (self._line(0.4) for _ in range(3)) if line not in gone]
            added = [self._line(1), *block, self._line(1)][: self.random.randint(1, 5)]
            added[-1] = added[-1] if added[-1] not in COMMON else self._line(1)
        made = None if added is None else lines[:first] + [(line, "") for line in added] + lines[last:]
        self.lines = made
        if before == self.text():
            return
        self.is_whole = self.is_whole and (not self.writes or before == self.left)
        call = self._record(self.text())
        self.writes, self.left = self.writes + 1, self.text()
        if made is not None:
            self.lines = [(line, owner or call) for line, owner in made]
            self.known[self.text() or ""] = list(self.lines)

    def _record(self, text: str | None) -> str:
        """Change the file by a call that succeeds, fails, or delivers when its attempt is over; return its id."""
        way = self.random.choice(("succeeds", "fails", "is late"))
        handoff = self.lead.hand_off("editor", f"edit {self.writes}")
        begun = handoff.accept().begin_call("write_file", b"%d" % self.writes, action="write", target=FILE)
        _put(Path(FILE), text)
        if way == "fails":
            begun.fail("failed after it wrote")
        elif way == "is late":
            handoff.retry(by="user:ana")
            with pytest.raises(FencedError):
                begun.succeed(None)
        else:
            begun.succeed(None)
        return begun.id

    def _hand(self) -> None:
        kind = self.random.random()
        if self.lines is None or kind < 0.05:
            self.lines = [(self._line(0.4), HAND) for _ in range(3)] if self.lines is None else None
        elif kind < 0.15 and self.known:
            self.lines = list(self.random.choice(list(self.known.values())))
        elif kind < 0.4:
            self._move(self.lines, copies=kind < 0.25)
        else:
            for _ in range(self.random.randint(1, 3)):
                self._splice(self.lines)
        text = self.text()
        if text in self.known:
            self.lines = list(self.known[text or ""])  # nobody can see the way that led back to it
        _put(Path(FILE), text)

    def _move(self, lines: Owned, *, copies: bool) -> None:
        first, last = self._region(lines)
        block = lines[first:last]
        common = {line for line, _ in block if line in COMMON}
        if common & (self.deleted | self.typed):
            return
        self.typed |= common
        if not copies:
            self.deleted |= common
            del lines[first:last]
        at = self.random.randint(0, len(lines))
        lines[at:at] = block

    def _splice(self, lines: Owned) -> None:
        first, last = self._region(lines)
        gone = {line for line, _ in lines[first:last]}
        if gone & self.typed:
            return
        self.deleted |= gone
        added = [
            line for line in (self._line(0.4) for _ in range(self.random.randint(0, 4))) if line not in self.deleted
        ]
        self.typed |= set(added)
        lines[first:last] = [(line, HAND) for line in added]


@pytest.mark.parametrize("block", range(4))
def test_blame_is_never_wrong(record_place: Path, block: int) -> None:
    """No line is given to a call that did not write it; as long as all was recorded, each line has its writer."""
    counts: Counter[str] = Counter()
    for seed in range(block * 25, block * 25 + 25):
        Path(FILE).unlink(missing_ok=True)
        with a_relay(work_tree=record_place) as relay, a_run(relay) as lead:
            world = World(seed, lead)
            for _ in range(10):
                world.step()
                if world.lines is not None:
                    counts += world.check(relay.blame(FILE))
    # Of what hands left alone most is recognised; of the rest it is said that nobody knows.
    assert counts["distinctive, named"] >= 0.8 * counts["distinctive"] > 0, counts
