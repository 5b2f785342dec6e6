"""An id may be that of a run, a handoff, a receipt or a call; exactly one thing must answer."""

import re
from collections import Counter

import pytest

from batonpass.accounts.meant import Meant, get_meant
from batonpass.accounts.why import KINDS
from batonpass.errors import AmbiguousIdError, NotFoundError
from batonpass.model.ids import HANDOFF, RECEIPT, RUN
from tests.unit.accounts.trees import ANA, Place, calls_of, find


@pytest.fixture
def place() -> Place:
    return Place()


def meant(place: Place, given: str, kinds: tuple[str, ...] = KINDS) -> Meant:
    with place.store.view() as view:
        return get_meant(view, given, kinds)


def test_the_end_of_an_id_is_enough(place: Place) -> None:
    """As our own output prints it, in any case, for each kind of thing."""
    lead = place.relay().start("x", by=ANA)
    handoff = lead.hand_off("editor", "y")
    lead.call(find, 1)
    (call,) = calls_of(place.trail(lead.id), lead)
    ids = (lead.id, handoff.id, call.receipt, call.id)

    assert list(ids) == [meant(place, f"…{known[-12:].upper()}").id for known in ids]
    assert ["run", "handoff", "receipt", "call"] == [meant(place, known).kind for known in ids]
    assert call.receipt == meant(place, call.id).receipt


def test_a_name_is_a_run_or_what_was_handed_to_it(place: Place) -> None:
    """One run is meant; several attempts at one handoff mean the handoff, and so does one that nobody took."""
    lead = place.relay().start("x", by=ANA)
    editor = lead.hand_off("editor", "y")
    editor.accept().fail(RuntimeError("no"))
    editor.retry(by=ANA)
    editor.accept()
    mailer = lead.hand_off("mailer", "z")

    assert [lead.id, editor.id, mailer.id] == [meant(place, name).id for name in ("lead", "editor", "mailer")]


def test_several_things_are_listed(place: Place) -> None:
    """Nothing is guessed; each line has enough to choose by, and there are only a few."""
    lead = place.relay().start("x", by=ANA)
    for number in range(60):
        lead.hand_off("editor", f"{number}").accept().call(find, number)
    with place.store.view() as view:
        ends = Counter(known[-1] for kind in (RUN, HANDOFF, RECEIPT) for known in view.find_ids(kind, ""))
    ((shared, _),) = ends.most_common(1)

    with pytest.raises(AmbiguousIdError) as several:
        meant(place, shared)
    *shown, more = several.value.candidates

    assert (5, "… and more") == (len(shown), more)
    assert [] == [line for line in shown if re.fullmatch(r"\w{8} · (?:run|handoff|receipt|call) · .+", line) is None]


def test_calls_of_one_ending_are_listed_by_their_receipts(place: Place) -> None:
    """A call has no row of its own; what its receipt is tells two apart."""
    lead = place.relay().start("x", by=ANA)
    for number in range(40):
        lead.call(find, number)
    ((shared, _),) = Counter(call.id[-1] for call in calls_of(place.trail(lead.id), lead)).most_common(1)

    with pytest.raises(AmbiguousIdError, match=r"call · tool\.requested"):
        meant(place, shared, ("call",))


def test_two_runs_of_one_name_are_ambiguous(place: Place) -> None:
    """If what was handed to an agent is not one thing either, its runs are listed."""
    for _ in range(2):
        place.relay().start("x", by=ANA)

    with pytest.raises(AmbiguousIdError, match="could be any of these runs"):
        meant(place, "lead")


@pytest.mark.parametrize("given", ["", "nobody", "x" * 1_000])
def test_nothing_is_not_found(place: Place, given: str) -> None:
    """The error says what was looked for."""
    place.relay().start("x", by=ANA)

    with pytest.raises(NotFoundError, match="no handoff or run"):
        meant(place, given, (RUN, HANDOFF))
