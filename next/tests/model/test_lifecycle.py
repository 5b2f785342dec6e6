"""One table of transitions; the database and the specification have the same states and steps."""

import re
from itertools import product
from pathlib import Path

import pytest

from batonpass.errors import LifecycleError
from batonpass.model.lifecycle import TRANSITIONS, Event, RunState, State, advance

ROOT = Path(__file__).parents[2]
SCHEMAS = sorted((ROOT / "src" / "batonpass" / "store").glob("*/schema.sql"))


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_a_step_is_in_the_table_or_refused(state: State, event: Event) -> None:
    """What the table has leads to its state; for the rest the error names the handoff and what is possible."""
    if (state, event) in TRANSITIONS:
        assert TRANSITIONS[state, event] == advance("handoff_x", state, event)
        return
    with pytest.raises(LifecycleError) as refusal:
        advance("handoff_x", state, event)

    possible = sorted(str(other) for before, other in TRANSITIONS if before == state) or ["nothing"]
    assert f"handoff_x is {state}: it cannot {event}; what is possible now: {', '.join(possible)}" == str(refusal.value)


def test_a_final_state_has_no_way_out() -> None:
    """What is cancelled or completed stays so; every other state can be left."""
    assert {State.CANCELLED, State.COMPLETED} == set(State) - {before for before, _ in TRANSITIONS}


def test_each_state_is_reached_from_an_offer() -> None:
    """No state is in the list and never reached."""
    reached = {State.OFFERED}
    for _ in State:
        reached |= {after for (before, _), after in TRANSITIONS.items() if before in reached}

    assert set(State) == reached


def test_the_chart_has_the_same_steps() -> None:
    """The chart of the specification is the table."""
    page = (ROOT / "docs" / "spec" / "receipts.md").read_text(encoding="utf-8")
    steps = re.findall(r"^    (\w+) --> (\w+): (\w+)$", page, flags=re.MULTILINE)

    assert sorted((str(before), str(after), str(event)) for (before, event), after in TRANSITIONS.items()) == sorted(
        steps
    )


@pytest.mark.parametrize("schema", SCHEMAS, ids=[path.parent.name for path in SCHEMAS])
def test_databases_take_the_same_states(schema: Path) -> None:
    """The CHECK lists of streams and of handoffs are the states of runs and of handoffs."""
    lists = re.findall(r"CHECK \(state IN \(([^)]*)\)\)", schema.read_text(encoding="utf-8"))

    assert [list(map(str, RunState)), list(map(str, State))] == [re.findall(r"'(\w+)'", states) for states in lists]


def test_both_databases_are_compared() -> None:
    """A schema that moved would be compared no more, and nobody would notice."""
    assert ["postgres", "sqlite"] == [path.parent.name for path in SCHEMAS]
