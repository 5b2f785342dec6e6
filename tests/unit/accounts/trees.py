"""Trees for the tests of accounts: in memory, with a clock that stands still unless it is moved."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from batonpass.accounts.trail.trail import read_trail
from batonpass.accounts.trail.trail_text import render_text
from batonpass.accounts.trail.trail_values import Called, Happened, RunTold, Trail
from batonpass.accounts.why.why import explain
from batonpass.accounts.why.why_values import Why
from batonpass.errors import BatonpassError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import RunId
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.testing.clock import FrozenClock

ANA: Final = "user:ana"
SECOND: Final = timedelta(seconds=1)

# Legal and nasty, each in one line: what is told is the first line.
HOSTILE: Final = {
    "terminal codes": "\x1b]0;pwned\x07\x1b[2J\x9b31m evil",
    "from right to left": "\u202eevil\u2066 txt.exe",
    "markup": "</title></summary><script>alert(1)</script><img src=x onerror=alert(1)>'\" &lt;",
    "a label that ends": '"]; end click n1 call alert(1); %%{init: {}}%% #quot; #35; `md`',
    "a style": "style x: y#35;z; classDef bad fill:#fff;",
    "a list": "1. one - two",
    "100,000 characters": "A" * 100_000,
    "marks that take no room": "e" + "\u0301" * 100_000,
    "5,000 lines": "line\n" * 5_000,
    "half a pair": "a\\ud800b \U0001f9ff\ufeff",
}


@tool(target="path")
def write(path: str, text: str = "") -> int:
    """Pretend to write."""
    return len(path + text)


@tool(reads=True)
def read(path: str) -> str:
    """Pretend to read."""
    return path


def find(threshold: float) -> float:
    """Pretend to find."""
    return threshold


def break_off(to: str) -> None:
    """Be interrupted, as a process that is stopped in the middle of a call."""
    raise KeyboardInterrupt(to)


def fail(words: str) -> None:
    """Fail, and say so."""
    raise ValueError(words)


class Place:
    """A ledger in memory, its clock, and the one relay that records there."""

    def __init__(self) -> None:
        self.clock = FrozenClock()
        self.store = MemoryStore()
        self._relay = Relay(self.store, clock=self.clock)

    def relay(self) -> Relay:
        """Return the relay."""
        return self._relay

    def trail(self, run: RunId) -> Trail:
        """Return the whole tree of a run."""
        with self.store.view() as view:
            return read_trail(view, run)

    def why(self, given: str) -> Why:
        """Return the answer to why."""
        with self.store.view() as view:
            return explain(view, given)


def tried(act: Callable[[], object]) -> str | None:
    """Do something that may be refused or interrupted; return the code of what it met."""
    try:
        act()
    except BatonpassError as error:
        return error.code
    except (KeyboardInterrupt, ValueError) as error:
        return type(error).__name__
    return None


def calls_of(trail: Trail, run: LiveRun) -> list[Called]:
    """Return the calls of a run."""
    return [event for event in trail.runs[run.id].events if isinstance(event, Called)]


def kinds_of(told: RunTold) -> list[str]:
    """Return what is in a run, by kind."""
    return [
        str(event.body.kind) if isinstance(event, Happened) else f"call {event.record.tool}" for event in told.events
    ]


def lines_of(trail: Trail, *, calls: bool = True) -> list[str]:
    """Return the lines of a trail without their times and their tree."""
    return ["".join(part.text for part in row.parts) for row in render_text(trail, calls=calls)]


def last(place: Place, kind: str) -> Why:
    """Return why the last receipt of a kind came to be."""
    with place.store.view() as view:
        *_, stored = view.find_receipts(ReceiptQuery(kind=kind))
    return place.why(stored.id)


def facts_of(why: Why, label: str) -> list[str]:
    """Return what an answer rests on, under one label."""
    return [fact.text for fact in why.facts if fact.label == label]


def name_of(run: LiveRun) -> str:
    """Return a run as people say it."""
    return f"{run.agent} {run.id[-4:]}"
