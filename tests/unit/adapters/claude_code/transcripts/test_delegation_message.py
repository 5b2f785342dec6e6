"""Which line of a transcript started a sub-agent, in what is imported."""

from hashlib import sha256
from pathlib import Path

from batonpass.accounts.handoff.reasoning import read_reasoning
from batonpass.model.bodies.reasoning import ReasoningPlace
from batonpass.relay import Relay
from tests.unit.adapters.claude_code.histories import History
from tests.unit.adapters.claude_code.imports import a_session, bring, receipts


def places(relay: Relay) -> list[ReasoningPlace | None]:
    """Return where each offer says that its message stands."""
    with relay.store.view() as view:
        found = [read_reasoning(view, offer) for offer in receipts(relay, "handoff.initiated")]
    return [None if one is None else one.place for one in found]


def test_an_imported_offer_points_to_its_line(relay: Relay, history: History) -> None:
    """Number, byte, name and digest are those of the line with the call, and the ledger verifies."""
    a_session(history)
    bring(relay, history)
    (place,) = places(relay)

    assert place is not None
    lines = Path(str(place.path)).read_bytes().split(b"\n")
    assert place.line is not None
    line = lines[place.line - 1]
    assert (str(history.main()), True) == (place.path, b'"c2"' in line and b'"Agent"' in line)
    assert (sha256(line).hexdigest(), line) == (
        place.sha256,
        history.main().read_bytes()[place.offset :].partition(b"\n")[0],
    )
    relay.verify()


def test_lines_that_cannot_be_read_are_counted_all_the_same(relay: Relay, history: History) -> None:
    """The number of a line is that of an editor, whatever stands above it."""
    history.write(history.main(), b"not json\n\n{}\n")
    a_session(history)
    bring(relay, history)
    (place,) = places(relay)

    assert place is not None
    assert place.line is not None
    assert b'"c2"' in history.main().read_bytes().split(b"\n")[place.line - 1]


def test_a_sub_agent_that_nobody_is_known_to_have_started_points_to_nothing(relay: Relay, history: History) -> None:
    """There is no message to point to, and none is made up."""
    history.says("Fix it")
    history.says("Do something", history.agent("a9"))
    history.answers("done", history.agent("a9"))
    bring(relay, history)

    assert [None] == places(relay)
