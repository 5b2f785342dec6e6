"""What this process knows of a run that it works on."""

import pytest

from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.runtime.run_state import Holding, ref_of
from batonpass.model.base.kinds import Part
from batonpass.model.baton.items import Constraint, Decision, Statement
from tests.unit.handoff.places import at_once


@pytest.fixture
def holding(lead: LiveRun) -> Holding:
    """Return what is known of a root that has noted a few things."""
    lead.record(Decision("d"), Constraint("c"))
    lead.add_intent("more")
    return lead._holding


def test_what_humans_say_is_not_carried_twice(holding: Holding) -> None:
    """Statements are read from the tree for every offer; the notes carry the rest."""
    assert [Part.CONSTRAINT, Part.DECISION] == [item.part for item in holding.carried()]
    assert 3 == len(holding.notes)


def test_what_is_inherited_is_carried_anyway(holding: Holding) -> None:
    """A selection leaves out what is the sender's to give, and nothing else."""
    assert [Part.CONSTRAINT] == [item.part for item in holding.carried(frozenset())]


def test_of_very_much_the_latest_is_carried_unless_somebody_selects(
    lead: LiveRun, holding: Holding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lead with ten thousand children does not tell each of all the others; a selection is kept to."""
    lead.record(Decision("e"))
    monkeypatch.setattr("batonpass.handoff.runtime.run_state.MOST_CARRIED", 1)
    everything = frozenset(holding.notes)

    assert [Constraint("c"), Decision("e")] == [item.value for item in holding.carried()]
    assert [Constraint("c"), Decision("d"), Decision("e")] == [item.value for item in holding.carried(everything)]
    assert (True, False) == (holding.is_abridged(), holding.is_abridged(everything))


def test_what_was_found_out_is_neither_given_nor_inherited(holding: Holding) -> None:
    """A parent gets what its child found, and not what binds it."""
    assert [Decision("d")] == [item.value for item in holding.found()]


def test_a_known_item_stays_as_it_is(holding: Holding) -> None:
    """Noting it again changes nothing."""
    before = dict(holding.notes)
    holding.add(*holding.notes.values())

    assert before == holding.notes
    assert Statement("more") in [item.value for item in holding.notes.values()]


def test_identical_calls_are_numbered_and_numbers_come_free_again(holding: Holding) -> None:
    """The lowest number that is free is next: whoever tries again means the call that failed."""
    numbers = [holding.count(b"a") for _ in range(3)]
    holding.uncount(b"a", 2)
    holding.uncount(b"a", 1)

    assert ([1, 2, 3], [1, 2, 4], 1) == (numbers, [holding.count(b"a") for _ in range(3)], holding.count(b"b"))


def test_threads_get_numbers_of_their_own(holding: Holding) -> None:
    """No two of eight threads count the same call."""
    found = at_once(*[lambda: [holding.count(b"a") for _ in range(100)]] * 8)

    assert list(range(1, 801)) == sorted(number for numbers in found for number in numbers)


def test_notes_may_grow_while_they_are_looked_at(lead: LiveRun) -> None:
    """A thread that records does not disturb one that calls, reads or hands off."""
    lead.record(*[Constraint(f"c{number}") for number in range(300)])
    item = lead.notes[0]

    def look() -> int:
        return sum(len(lead._holding.constraints) > 0 for _ in range(100))

    def grow() -> None:
        for number in range(3000):
            with lead._holding.lock:
                lead._holding.notes[f"content_{number}"] = item  # type: ignore[index]

    assert [100, 100, None] == at_once(look, look, grow)


def test_a_reference_names_an_item(holding: Holding) -> None:
    """By its id, its digest and its part."""
    (item, *_) = holding.carried()

    assert (item.id, item.digest, item.part) == (ref_of(item).item, ref_of(item).digest, ref_of(item).part)
