"""What is outside of the core: it survives every process, and nothing that happened there is taken back.

It counts what tools really did by the step of a task that did it, as the key of a call may be wrong; it remembers what
was acknowledged to a process, and what a program was told.
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from batonpass.errors import FencedError, StoreError
from batonpass.place import Place
from tests.simulation.plans import Plan
from tests.simulation.scheduler import Looker, Simulation

_GOES_ON: Final = frozenset({"tool.requested", "tool.completed", "tool.failed", "run.recorded"})
_ENDS: Final = frozenset({"run.closed", "handoff.completed", "handoff.failed"})
_OUTCOMES: Final = frozenset({"tool.completed", "tool.failed"})


class Charge(Struct, frozen=True):
    """What a tool did, for a step of a handoff or of a root run. `call` and `run` are what the core said of it."""

    step: str
    call: str
    run: str


class World:
    """The outside of one run."""

    def __init__(self, sim: Simulation, plan: Plan, directory: Path, look: Looker) -> None:
        self.sim = sim
        self.plan = plan
        self.directory = directory
        self.look = look
        self.charges: list[Charge] = []
        self.delivered: dict[str, None] = {}  # calls whose value an agent got
        self.times: dict[str, int] = {}  # how many calls a step has
        self.sessions = 0  # attempts, and takings up of a root, in their order
        self.returned: defaultdict[str, dict[int, int]] = defaultdict(dict)  # by step: values, and the session
        self.given: set[tuple[int, str, int]] = set()  # session, step and charge: what an agent was given
        self.failed: set[str] = set()
        self.idempotent: set[str] = set()
        self.step_of: dict[str, str] = {}  # by call
        self.acknowledged: dict[str, str] = {}
        self.missing: set[tuple[int, str]] = set()  # observed runs of a process whose next write has to name a gap
        self.gapped: set[str] = set()  # calls of observed runs whose outcome could not be recorded
        self.closing: dict[tuple[int, str], int] = {}  # how long the log was when a process began to close a run
        self.closed: dict[str, int] = {}  # the same, of the process that did it
        self.wrong: list[str] = []
        self.is_healing = False

    def place(self, relay: int) -> Place:
        """Return where a relay has its keys. All of them have one ledger."""
        url = f"sqlite:///{self.directory / 'ledger.db'}"
        return Place(directory=self.directory / f"relay{relay}", url=url, work_tree=self.directory)

    def list_open(self) -> list[str]:
        """Return the handoffs that have not ended."""
        self.sim.pause("look")
        query = "SELECT id FROM handoffs WHERE state NOT IN ('completed', 'cancelled') ORDER BY id"
        return [row[0] for row in self.look(query)]

    def list_roots(self) -> list[str]:
        """Return the root runs that are open."""
        self.sim.pause("look")
        query = "SELECT id FROM streams WHERE agent IS NOT NULL AND handoff IS NULL AND state = 'open' ORDER BY id"
        return [row[0] for row in self.look(query)]

    def list_runs(self) -> list[str]:
        """Return the runs that are open, the latest first."""
        self.sim.pause("look")
        query = "SELECT id FROM streams WHERE agent IS NOT NULL AND state = 'open' ORDER BY id DESC"
        return [row[0] for row in self.look(query)]

    def list_accounts(self) -> list[str]:
        """Return what a grant may have been given to."""
        self.sim.pause("look")
        query = "SELECT id FROM streams WHERE agent IS NOT NULL AND handoff IS NULL UNION SELECT id FROM handoffs"
        return sorted(row[0] for row in self.look(query))

    def begin(self) -> int:
        """Return the number of a session."""
        self.sessions += 1
        return self.sessions

    def length(self) -> int:
        """Return how many receipts there are."""
        return int(self.look("SELECT count(*) FROM receipts")[0][0])

    def watch(self, entry: Any, append: Callable[[], None]) -> None:  # noqa: ANN401 - receipts of the core
        """Let a process append, and note what it was told."""
        sim, first = self.sim, entry[0]
        what = f"{'+'.join(one.receipt.kind for one in entry)} {first.stream[-6:]} #{first.receipt.seq}"
        for one in entry:
            if one.receipt.kind == "tool.requested":
                self.step_of[one.body.call] = sim.task.step
        fenced = "SELECT 1 FROM streams WHERE id = ? AND (epoch > ? OR state = 'fenced')"
        is_fenced = bool(self.look(fenced, first.stream, first.receipt.epoch))
        try:
            append()
        except BaseException as error:
            sim.note(f"{what}: {error!r}")
            self._note_refusal(entry, what, error, is_fenced=is_fenced)
            raise
        self.acknowledged.update((one.digest, what) for one in entry)
        sim.note(what)
        own = (sim.task.process.number, first.stream)
        if entry[-1].receipt.kind in _ENDS:
            self.closed[first.stream] = self.closing.get(own, 0)
        is_named = any(getattr(one.body, "subject", "") == "gap" for one in entry)
        if own in self.missing and not is_named and first.receipt.kind != "run.rekeyed":
            self.wrong.append(f"gap: {what} does not name what is missing")
        self.missing.discard(own)

    def _note_refusal(self, entry: Any, what: str, error: BaseException, *, is_fenced: bool) -> None:  # noqa: ANN401
        if is_fenced and isinstance(error, Exception) and not isinstance(error, FencedError | StoreError):
            self.wrong.append(f"fenced, and told otherwise: {what}: {error!r}")
        last = entry[-1]
        own = (self.sim.task.process.number, last.stream)
        if last.receipt.mode == "observed" and isinstance(error, StoreError):
            if last.receipt.kind in _GOES_ON and last.stream == entry[0].stream:
                self.missing.add(own)
                if last.receipt.kind in _OUTCOMES:
                    self.gapped.add(last.body.call)
            elif last.receipt.kind in _ENDS:
                self.missing.discard(own)  # it is forgotten: there is no next write

    def note_charge(self, step: str, call: str, run: str, session: int) -> int:
        """Charge, and return the number of the charge."""
        # A session that is older than the one that got the result may have been at it since, as was decided.
        returned = self.returned[step]
        is_over = len(returned) >= self.times[step] and session >= max(returned.values())
        if is_over and call and step not in self.idempotent:
            self.wrong.append(f"made again: {step} had returned")
        self.charges.append(Charge(step, call, run))
        self.step_of[call] = step  # which another process may have requested, that repeated the request
        return len(self.charges)

    def note_value(self, step: str, value: Any, session: int) -> None:  # noqa: ANN401 - what a tool returned
        """Check that a call returned what the world gave for this step; nothing, if it was decided to skip it."""
        if value is None:
            return
        serial = value[0] if isinstance(value, tuple) else value
        charge = self.charges[serial - 1]
        if charge.step != step:
            self.wrong.append(f"another's result: {step} got {serial} of {charge.step}")
        if (session, step, serial) in self.given:
            self.wrong.append(f"shared: two calls of {step} got {serial}")
        self.given.add((session, step, serial))
        if charge.call and charge.call not in self.gapped:
            self.delivered[charge.call] = None
            if not isinstance(value, tuple):
                self.returned[step][serial] = session
