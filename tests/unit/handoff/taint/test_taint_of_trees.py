"""Any tree of runs: taint goes down with offers and up with results, and an endorsement lifts exactly its own."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from tests.unit.handoff.outside import PAGE, World, started
from tests.unit.handoff.places import ANA, bodies

STEPS = st.lists(st.sampled_from(["fetch", "attach", "look", "down", "up", "endorse", "fail"]), max_size=14)


@dataclass
class Expected:
    """A run as it should be: what taints it, and what was endorsed in it."""

    run: LiveRun
    handoff: LiveHandoff | None = None
    taint: set[str] = field(default_factory=set)
    endorsed: set[str] = field(default_factory=set)


class Tree:
    """A path of open runs, the last of which does something."""

    def __init__(self, lead: LiveRun, world: World) -> None:
        self.path = [Expected(lead)]
        self.handed_off = 0
        self.world = world

    @property
    def here(self) -> Expected:
        """Return the run that acts."""
        return self.path[-1]

    def act(self, step: str) -> None:
        """Let the run do something, and work out by hand what should come of it."""
        here = self.here
        match step:
            case "fetch":
                known = set(here.run.taint)
                here.run.call(self.world.fetch, f"page {len(self.path)}")
                here.taint |= set(here.run.taint) - known
                assert len(known) + 1 == len(here.run.taint)
            case "attach":
                here.taint.add(here.run.attach("page", PAGE, untrusted=True).id)
            case "look":
                here.run.call(self.world.look, "here")
            case "endorse" if here.taint:
                source = max(here.taint)
                here.run.endorse(source, by=ANA, reason="mine")  # type: ignore[arg-type]
                here.taint.remove(source)
                here.endorsed.add(source)
            case "down":
                self.handed_off += 1  # the same key would be the same handoff, with what its last attempt read
                handoff = here.run.hand_off("worker", f"work {self.handed_off}")
                self.path.append(Expected(handoff.__enter__(), handoff, set(here.taint)))
            case "up" | "fail" if len(self.path) > 1:
                self.up(failed=step == "fail")

    def up(self, *, failed: bool = False) -> None:
        """Close the run; whoever handed off takes what came of it."""
        child = self.path.pop()
        assert child.handoff is not None
        error = ConnectionError("gone") if failed else None
        child.run.report("done")
        child.handoff.__exit__(None if error is None else type(error), error, None)
        self.here.taint |= child.taint - self.here.endorsed


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_taint_in_any_tree(steps: list[str]) -> None:
    """After every step each run is tainted by exactly what it should be, and all of it verifies."""
    with started() as (relay, lead, world):
        tree = Tree(lead, world)
        for step in [*steps, *["up"] * len(steps)]:
            tree.act(step)
            assert [one.taint for one in tree.path] == [set(one.run.taint) for one in tree.path]
            assert [bool(one.taint) for one in tree.path] == [one.run.label.is_external for one in tree.path]
        for body in bodies(relay, "handoff.completed"):
            assert body.label.is_external == bool(body.taint)
