"""One table decides how a handoff moves; everything that is asked about it agrees with it."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.errors import IllegalTransitionError
from batonpass.model.base.lifecycle import (
    TRANSITIONS,
    WAITING,
    Carrier,
    HandoffEvent,
    State,
    advance,
    follow,
    sources,
    target,
)

EVERYTHING = frozenset(product(State, HandoffEvent, Carrier))
FINAL = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED, State.VERIFIED})
STEPS = [
    pytest.param(*step, reached, id=f"{step[0]}, {step[1]}, by its {step[2]}: {reached}")
    for step, reached in TRANSITIONS.items()
]


@pytest.mark.parametrize(("state", "event", "carrier", "reached"), STEPS)
def test_a_step_of_the_table_is_taken(state: State, event: HandoffEvent, carrier: Carrier, reached: State) -> None:
    """Each row leads where it says."""
    assert reached == advance(state, event, carrier) == follow(state, event, carrier)


def test_every_other_step_is_refused() -> None:
    """Whatever the table does not have is refused, and the error names state and event."""
    refused = set()
    for state, event, carrier in EVERYTHING - TRANSITIONS.keys():
        with pytest.raises(IllegalTransitionError, match=f"'{event}' .* {carrier}-carried .* {state}") as error:
            advance(state, event, carrier)
        refused.add((error.value.state, error.value.event, carrier))

    assert EVERYTHING - TRANSITIONS.keys() == refused


def test_the_table_cannot_be_changed() -> None:
    """Nobody adds a step at run time."""
    with pytest.raises(TypeError):
        TRANSITIONS[State.DENIED, HandoffEvent.RETRY, Carrier.CALLER] = State.OFFERED  # type: ignore[index]


def test_final_states_have_no_way_out() -> None:
    """Denied, cancelled, expired and verified are the ends; every other state has a way on."""
    left = {state for state, _, _ in TRANSITIONS}

    assert FINAL == set(State) - left


@pytest.mark.parametrize("carrier", Carrier, ids="carried by its {}".format)
def test_every_state_but_the_other_waiting_ones_can_be_reached(carrier: Carrier) -> None:
    """From its beginnings a handoff reaches every state that its carrier knows, and none of the other's."""
    reached = {State.HELD, WAITING[carrier]}
    while more := {to for (state, _, by), to in TRANSITIONS.items() if by is carrier and state in reached} - reached:
        reached |= more
    foreign = {Carrier.CALLER: {State.READY, State.CLAIMED}, Carrier.WORKER: {State.OFFERED}}[carrier]

    assert set(State) - foreign == reached


def test_only_a_worker_lapses_and_claims() -> None:
    """A caller holds no lease: it can neither claim nor lapse."""
    assert {Carrier.WORKER} == {by for _, event, by in TRANSITIONS if event in {HandoffEvent.CLAIM, HandoffEvent.LAPSE}}


@pytest.mark.parametrize("state", State, ids="from {}".format)
def test_following_implies_at_most_a_claim(state: State) -> None:
    """Receipts leave out a claim: from ready, what a claim makes legal follows; nothing else is added."""
    implied = (
        {}
        if state is not State.READY
        else {(event, carrier): to for (after, event, carrier), to in TRANSITIONS.items() if after is State.CLAIMED}
    )
    rows = [row[1:] for row in sorted(EVERYTHING - TRANSITIONS.keys()) if row[0] is state]

    assert [] == [row for row in rows if implied.get(row) != followed(state, *row)]


def followed(state: State, event: HandoffEvent, carrier: Carrier) -> State | None:
    """Return where an event leads as far as receipts tell; None if it may not happen."""
    try:
        return follow(state, event, carrier)
    except IllegalTransitionError:
        return None


@pytest.mark.parametrize(
    ("event", "carrier"),
    [pytest.param(*pair, id=f"{pair[0]}, by its {pair[1]}") for pair in product(HandoffEvent, Carrier)],
)
def test_sources_and_target_agree_with_following(event: HandoffEvent, carrier: Carrier) -> None:
    """What SQL is told about an event is what the table says about it."""
    possible = {state for state in State if followed(state, event, carrier) is not None}
    reached = {follow(state, event, carrier) for state in possible}

    assert possible == set(sources(event, carrier))
    assert len(sources(event, carrier)) == len(possible)
    assert reached == ({target(event, carrier)} - {None})


@given(
    st.sampled_from(Carrier),
    st.booleans(),
    st.lists(st.sampled_from(HandoffEvent), max_size=60),
)
def test_a_handoff_never_leaves_the_chart(carrier: Carrier, held: bool, events: list[HandoffEvent]) -> None:  # noqa: FBT001
    """Whatever happens in whatever order, a handoff is in a state, and moves only along the table."""
    state = State.HELD if held else WAITING[carrier]
    for event in events:
        step = (state, event, carrier)
        if step in TRANSITIONS:
            state = advance(*step)
            assert TRANSITIONS[step] is state
        else:
            with pytest.raises(IllegalTransitionError):
                advance(*step)
        assert state in State
        assert carrier is Carrier.WORKER or state not in {State.READY, State.CLAIMED}
        assert carrier is Carrier.CALLER or state is not State.OFFERED
