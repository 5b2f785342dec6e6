"""How far an act goes through the code: files, functions, Python calls, frames, statements, pages.

python bench/walk.py        exits 1 if a handoff with one call misses its goals

Counted with `sys.setprofile` on CPython 3.11, one thread, warm, and only code below src/batonpass. Frames are counted
from the function of the act, and from the method of the handle that asks for it, to the statement that compares and
sets the head of a stream; the deepest commit counts. `at most` is the deepest stack, with `with` and all that follows.
"""

import os
import sys
import tempfile
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import apsw
import workload

import batonpass
from batonpass.api.acts import ACTS
from batonpass.api.opening import open_context
from batonpass.api.port import LocalPort
from batonpass.place import find_place
from batonpass.store.sqlite.store import SqliteStore, open_connection
from batonpass.system import RealSystem

if TYPE_CHECKING:
    from collections.abc import Callable

FILES_GOAL: Final = 30
FRAMES_GOAL: Final = 8
HANDLE_GOAL: Final = 10
_SOURCE: Final = str(Path(batonpass.__file__).parent)
_ACT_FUNCTIONS: Final = {row.run.__code__ for row in ACTS.values()}
_WARM: Final = 20
_PAGE_ACTS: Final = 40


class Walk(NamedTuple):
    """What one warm act costs."""

    files: int
    functions: int
    calls: int
    frames: int  # from the act's function to the compare-and-set, both counted; the largest of its commits
    from_handle: int
    at_most: int
    statements: int
    pages: float  # of SQLite's log


class Ledger:
    """A ledger whose writing connection can be watched."""

    def __init__(self, directory: Path) -> None:
        os.environ["BATONPASS_STATE_DIR"] = str(directory / "state")
        system = RealSystem()
        place = find_place(directory / "ledger.db", work_tree=directory)
        self._connections: list[apsw.Connection] = []
        self.store = SqliteStore(directory / "ledger.db", system=system, connect=self._connect)
        self.relay = batonpass.Relay(LocalPort(open_context(place, self.store, system)))

    def _connect(self, path: Path) -> apsw.Connection:
        connection = cast("apsw.Connection", open_connection(path))
        self._connections.append(connection)
        return connection

    @property
    def writer(self) -> apsw.Connection:
        """The connection that writes: the store opens it first."""
        return self._connections[0]


def walk(act: workload.Act, writer: apsw.Connection) -> Walk:
    """Return what one warm act costs."""
    for _ in range(_WARM):
        act()
    codes, calls, deepest = _profile(act)
    statements, frames, from_handle = _trace(act, writer)
    return Walk(
        files=len({code.co_filename for code in codes}),
        functions=len(codes),
        calls=calls,
        frames=frames,
        from_handle=from_handle,
        at_most=deepest,
        statements=statements,
        pages=pages(act, writer),
    )


def _profile(act: workload.Act) -> tuple[set[CodeType], int, int]:
    """Return which functions ran, how many calls there were, and the deepest frame."""
    codes: set[CodeType] = set()
    calls = depth = deepest = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls, depth, deepest
        if not frame.f_code.co_filename.startswith(_SOURCE):
            return
        if event == "call":
            calls, depth = calls + 1, depth + 1
            codes.add(frame.f_code)
            deepest = max(deepest, depth)
        elif event == "return":
            depth -= 1

    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
    return codes, calls, deepest


def _trace(act: workload.Act, writer: apsw.Connection) -> tuple[int, int, int]:
    """Return the number of statements, and the frames to the compare-and-set from the act and from the handle."""
    statements = frames = from_handle = 0

    def trace(_: object, sql: str, __: object) -> bool:
        nonlocal statements, frames, from_handle
        statements += 1
        if sql.startswith(("UPDATE streams SET seq", "INSERT INTO streams")):
            below_act, below_handle = _frames_above(sys._getframe(1))  # noqa: SLF001 - the stack is the question
            frames, from_handle = max(frames, below_act), max(from_handle, below_handle)
        return True

    writer.exec_trace = trace
    try:
        act()
    finally:
        writer.exec_trace = None
    return statements, frames, from_handle


def _frames_above(frame: FrameType | None) -> tuple[int, int]:
    """Return how many frames of ours there are up to the function of the act, and up to what asked the port for it."""
    ours = below_act = below_handle = 0
    is_asked = False
    while frame is not None:
        if frame.f_code.co_filename.startswith(_SOURCE):
            ours += 1
            if is_asked:
                below_handle, is_asked = ours, False
            if frame.f_code in _ACT_FUNCTIONS:
                below_act = ours
            is_asked = is_asked or frame.f_code is LocalPort.do.__code__
        frame = frame.f_back
    return below_act, below_handle


def pages(act: workload.Act, writer: apsw.Connection) -> float:
    """Return how many pages of the log an act writes, in the mean of many: now and then a page is full."""
    size = 0

    def note(_: object, __: str, pages: int) -> int:
        nonlocal size
        size = pages
        return apsw.SQLITE_OK

    writer.set_wal_hook(note)  # takes the place of the automatic checkpoint, so the log only grows
    try:
        act()
        before = size
        for _ in range(_PAGE_ACTS):
            act()
    finally:
        writer.set_wal_hook(None)
        writer.wal_autocheckpoint(2_000)
    return (size - before) / _PAGE_ACTS


def acts_of(relay: batonpass.Relay) -> dict[str, workload.Act]:
    """Return the acts that are walked."""
    lead = relay.start(workload.SENTENCE, by=workload.PRINCIPAL)
    granted = relay.start(workload.SENTENCE, by=workload.PRINCIPAL, may_delegate=workload.GRANT)
    return {
        "handoff with one call": workload.hands_off(lead, calling=True),
        "handoff with one call, granted": workload.hands_off(granted, calling=True, granted=True),
        "handoff": workload.hands_off(lead),
        "handoff, offered and accepted at once": workload.hands_off(lead, accept=True),
        "call": workload.calls(lead),
        "call, three hops of grant": workload.calls(workload.third_hop(relay)),
    }


def misses(found: dict[str, Walk]) -> list[str]:
    """Return the goals that a handoff with one call misses."""
    goals: list[tuple[str, Callable[[Walk], int], int]] = [
        ("files", lambda each: each.files, FILES_GOAL),
        ("frames from the act", lambda each: each.frames, FRAMES_GOAL),
        ("frames from the handle", lambda each: each.from_handle, HANDLE_GOAL),
    ]
    return [
        f"{what}: {measure(each)} {name}, at most {goal}"
        for what, each in found.items()
        if what.startswith("handoff with one call")
        for name, measure, goal in goals
        if measure(each) > goal
    ]


def main() -> int:
    """Print one line for each act."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] != (3, 11):
        print("counted on another Python than CPython 3.11: calls and functions do not compare\n", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="batonpass-walk-") as name:
        os.chdir(name)
        ledger = Ledger(Path(name))
        found = {what: walk(act, ledger.writer) for what, act in acts_of(ledger.relay).items()}
        ledger.relay.close()
    heads = [field.replace("_", " ") for field in Walk._fields]
    width = max(map(len, found))
    print(f"{'one warm act':<{width}}", *(f"{head:>11}" for head in heads))
    for what, each in found.items():
        print(f"{what:<{width}}", *(f"{value:>11.3g}" for value in each))
    goals = f"files <= {FILES_GOAL}, frames <= {FRAMES_GOAL}, from the handle <= {HANDLE_GOAL}"
    print(f"\ngoals of a handoff with one call: {goals}; calls are printed, not judged")
    missed = misses(found)
    print(*(missed or ["held"]), sep="\n")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
