"""The same task several times, on purpose."""

import pytest

from batonpass import Handling, Run
from batonpass.errors import InvalidValueError
from tests.unit.handoff.places import ANA, Places


def test_another_repetition_is_another_handoff(lead: Run) -> None:
    """The same number is the same handoff; no number is the first."""
    drafts = [lead.hand_off("writer", "Write", handling=Handling(again=number)).id for number in (0, 1, 2, 1)]

    assert (3, drafts[1]) == (len(set(drafts)), drafts[3])
    assert drafts[0] == lead.hand_off("writer", "Write").id


def test_after_a_crash_each_repetition_is_found_again(places: Places) -> None:
    """A loop that is run again gets each of its results back."""
    lead = places.relay().start("Write it up", by=ANA)
    for number in range(3):
        with lead.hand_off("writer", "Write", handling=Handling(again=number)) as writer:
            writer.report(f"draft {number}")
    resumed = places.relay().resume(lead.id)

    assert ["draft 0", "draft 1", "draft 2"] == [
        resumed.hand_off("writer", "Write", handling=Handling(again=number)).result().value for number in range(3)
    ]


@pytest.mark.parametrize("wrong", [-1, "1", True])
def test_a_repetition_is_a_number(wrong: object) -> None:
    """From zero on."""
    with pytest.raises(InvalidValueError):
        Handling(again=wrong)  # type: ignore[arg-type]
