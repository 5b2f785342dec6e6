"""A flame graph from stacks: how wide each function is, in which order they stand, and that it needs nothing else."""

import signal
import sys
from collections import Counter
from xml.etree import ElementTree as ET

from bench.flame_graph import draw, grow
from bench.sampler import OTHER_THREADS, Place, Sampler, Stack

SVG = "{http://www.w3.org/2000/svg}"
STACKS: Counter[Stack] = Counter(
    {
        (Place("handoff.run:close", 30),): 10,
        (Place("handoff.run:open", 20), Place("store.sqlite.view:<lambda>", 5)): 60,
        (Place("handoff.run:open", 20),): 20,
        (Place(OTHER_THREADS, 0),): 10,
    }
)


def drawn() -> list[ET.Element]:
    text = draw(grow(STACKS, "handoff"), title="a < b & c", facts="100 samples", seconds=0.004)
    return [group for group in ET.fromstring(text).iter(f"{SVG}g") if group.get("class") == "box"]  # noqa: S314 - ours


def said(box: ET.Element) -> str:
    return box.findtext(f"{SVG}title") or ""


def test_a_function_is_as_wide_as_what_was_seen_in_it() -> None:
    """The share of a function counts what it calls, and says what it did itself."""
    (opened,) = [said(box) for box in drawn() if said(box).startswith("handoff.run:open")]

    assert "handoff.run:open: 80.0%, 3,200 µs of an act; 20.0% in itself and in C that it calls" == opened


def test_functions_stand_in_the_order_of_their_source() -> None:
    """What is called further up stands further left, however often each was seen; other threads stand last."""
    top = sorted((box for box in drawn() if box.get("data-d") == "1"), key=lambda box: float(box.get("data-x") or 0))

    assert ["handoff.run:open", "handoff.run:close", OTHER_THREADS] == [said(box).partition(": ")[0] for box in top]


def test_names_are_written_as_text() -> None:
    """A function in angle brackets, and a title with any sign in it, are no elements of the graph."""
    assert ["<lambda> · store.sqlite.view"] == [
        name for box in drawn() if (name := box.get("data-n") or "").startswith("<")
    ]


def test_a_graph_needs_nothing_else() -> None:
    """One file shows everything: it loads no script, font or picture from elsewhere."""
    text = draw(grow(STACKS, "handoff"), title="", facts="", seconds=0.004)

    assert ["http://www.w3.org/2000/svg"] == [part.partition('"')[0] for part in text.split('="') if "://" in part]


def test_nothing_seen_is_an_empty_graph() -> None:
    """A loop that ended before the first sample makes a graph with one box."""
    text = draw(grow({}, "handoff"), title="", facts="", seconds=0.0)

    assert 0 == text.count('class="box"')


def test_a_stack_begins_below_what_is_measured() -> None:
    """What called the measured function is left out, and each function knows from where it was called."""
    sampler = Sampler(root=f"{__name__}:measured")

    def inner() -> None:
        sampler._look(signal.SIGPROF, sys._getframe())

    measured(inner)
    ((stack, seen),) = sampler.stacks.items()

    assert 1 == seen
    assert stack == (Place(OTHER_THREADS, 0),) or [place.function.rpartition(":")[2] for place in stack] == [
        "test_a_stack_begins_below_what_is_measured.inner"
    ]


def measured(act: object) -> None:
    if callable(act):
        act()


def test_sampling_leaves_no_timer() -> None:
    """What comes after a profiled loop is not interrupted any more."""
    with Sampler(root="nowhere"):
        pass

    assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_PROF)
