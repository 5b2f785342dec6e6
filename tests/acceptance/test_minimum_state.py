"""The four parts that every handoff needs at the least: each reaches the next agent, and its absence is told.

Each class is one part as it was demanded of handoffs in production; the briefing is what the next agent's model reads.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass.briefing.render import brief
from batonpass.errors import IncompleteBatonError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.kinds import Part, Relation
from batonpass.model.baton.items import OpenQuestion, RejectedPath, WorkItem
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.offers import grouped
from tests.unit.handoff.places import ANA, Places, bodies

NEEDED = HandoffPolicy(
    require={Relation.LEAD_TO_WORKER: (Part.COMPLETED, Part.QUESTION, Part.REJECTED)}, sanitize_context=False
)
EVERYTHING: dict[str, Any] = {
    "completed": [WorkItem("sums of 2024", verified_by="user:ana", how="recounted"), WorkItem("sums of 2025")],
    "open_questions": [OpenQuestion("is the east complete?", blocking=True)],
    "rejected_paths": [RejectedPath("ask the vendor", "no answer for two weeks")],
}


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    """Return a ledger, which is verified after every scenario."""
    places = Places(f"sqlite:///{tmp_path}/ledger.db", tmp_path / "home")
    yield places
    places.close()


@pytest.fixture
def lead(places: Places) -> LiveRun:
    """Return a run in a relay that asks for every part."""
    return places.relay(policy=NEEDED).start("Compare the regions", by=ANA)


def read_by_the_next(lead: LiveRun, without: str | None = None) -> str:
    """Return what the model of the next agent reads."""
    said = {name: value for name, value in EVERYTHING.items() if name != without}
    handoff = lead.hand_off(
        "analyst", "Explain the difference", **grouped(phase="analysis", constraints=["in euros"], **said)
    )
    return brief(handoff.baton()).text


class TestWhatWasCompleted:
    """Specific outputs, each verified or not."""

    def test_each_output_says_whether_it_is_verified(self, lead: LiveRun) -> None:
        """What somebody checked, by whom and how, stands apart from what nobody did."""
        text = read_by_the_next(lead)
        done, checked = (text.index(words) for words in ("sums of 2025", "sums of 2024"))

        assert "1 of 2 results verified" in text.splitlines()[0]
        assert "verified by user:ana" in text[checked : checked + 200]
        assert "unverified" in text[done : done + 200]

    def test_it_is_not_left_out(self, lead: LiveRun) -> None:
        """A handoff that says nothing about it is refused where the policy asks for it."""
        with pytest.raises(IncompleteBatonError, match="completed"):
            read_by_the_next(lead, without="completed")


class TestWhatWasLeftOpen:
    """Ambiguities, pending checks, deferred decisions."""

    def test_it_arrives_and_says_what_blocks(self, lead: LiveRun) -> None:
        """The question stands in the briefing, word for word, and its first line counts it."""
        text = read_by_the_next(lead)

        assert "is the east complete?" in text
        assert "1 open question (1 blocking)" in text.splitlines()[0]

    def test_it_is_not_left_out_but_may_be_none(self, lead: LiveRun) -> None:
        """Saying nothing is refused; saying that there are none is an answer."""
        with pytest.raises(IncompleteBatonError, match="question"):
            read_by_the_next(lead, without="open_questions")
        said = {name: value for name, value in EVERYTHING.items() if name != "open_questions"}

        assert () == lead.hand_off("analyst", "Explain", **grouped(none=[Part.QUESTION], **said)).baton().open_questions


class TestWhatWasTriedAndRejected:
    """Nobody walks a path again that was discarded."""

    def test_it_arrives_with_why(self, lead: LiveRun) -> None:
        """The path and the reason stand in the briefing."""
        text = read_by_the_next(lead)

        assert [True, True] == [words in text for words in ("ask the vendor", "no answer for two weeks")]

    def test_it_is_not_left_out(self, lead: LiveRun) -> None:
        """A handoff that says nothing about it is refused where the policy asks for it."""
        with pytest.raises(IncompleteBatonError, match="rejected"):
            read_by_the_next(lead, without="rejected_paths")


class TestProvenance:
    """Which agent produced this, under what instructions, with what constraints."""

    def test_nobody_has_to_say_it(self, lead: LiveRun) -> None:
        """Who hands off, for whom, in which phase and under which constraints is there by itself."""
        text = read_by_the_next(lead)

        assert "from lead for analyst, on behalf of user:ana, analysis phase" in text.splitlines()[0]
        assert [True, True] == [words in text for words in ("in euros", "Compare the regions")]

    def test_it_is_signed(self, places: Places) -> None:
        """The sender cannot say that it is somebody else: its run is in the receipt that it signs."""
        relay = places.relay()
        lead = relay.start("Compare the regions", by=ANA)
        handoff = lead.hand_off("analyst", "Explain the difference")

        assert (lead.id, "lead") == (bodies(relay, "handoff.initiated")[0].run, handoff.baton().sender)
