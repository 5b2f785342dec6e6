"""A lead that judges what came back: by tools, with evidence, and never its own work."""

from typing import Any

import pytest

from batonpass.agents import HandoffPolicy
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import Handoff
from batonpass.records.handoff import is_unverified
from tests.unit.agents.house import House, noting

SEEN = "I opened the invoice, and the total is 19.00 EUR"
WRONG = "the total is 20.00 EUR, and the invoice says 19.00 EUR"


class Judged:
    """A lead that hands to a worker, and then calls one tool with the id that came with the report."""

    def __init__(self, tool: str, *, worker: str = "billing", told: str = SEEN, field: str = "evidence") -> None:
        self.house = House(HandoffPolicy(max_depth=4))
        self.prompts: list[str] = []
        self.answers: list[str] = []
        self.offered: tuple[str, ...] = ()
        if worker == "billing":
            self.house.agent("billing", self.work)
        self.house.agent("lead", self.lead, self.house.to(worker))
        self.tool, self.field, self.words = tool, field, told
        self.judges: str | None = None  # None: the handoff that came with the report
        self.worker = worker
        self.house.ask("lead", "Is it paid?", by="user:ana")
        self.house.relay.verify()

    def work(self, turn: Any) -> Any:  # noqa: ANN401 - a turn
        """Report, and differently the second time."""
        self.prompts.append(turn.prompt)
        return f"result {len(self.prompts)}"

    def lead(self, turn: Any) -> Any:  # noqa: ANN401 - a turn
        """Hand off, judge, and answer."""
        if "Look it up" in turn.prompt:
            return self.work(turn)
        self.offered = turn.tools
        if not turn.returned:
            return {f"handoff_to_{self.worker}": {"task": "Look it up"}}
        if len(turn.returned) == 1:
            own = f"handoff_{turn.returned[0][1].split('handoff_')[1][:26]}"
            return {self.tool: {"handoff": self.judges or own, self.field: self.words}}
        self.answers.append(turn.returned[1][1])
        return "done"

    @property
    def handoff(self) -> Handoff:
        """Return the only handoff as it is now."""
        with self.house.relay.store.view() as view:
            (found,) = view.find_handoffs()
            return found


@pytest.mark.parametrize(
    ("tool", "field", "state", "kind", "told"),
    [
        pytest.param("verify_result", "evidence", State.VERIFIED, "verification.passed", "is verified", id="verify"),
        pytest.param("accept_unverified", "reason", State.COMPLETED, "verification.waived", "unverified", id="waive"),
        pytest.param("refute_result", "evidence", State.REFUTED, "verification.failed", "is refuted", id="refute"),
    ],
)
def test_a_lead_judges_by_a_tool(tool: str, field: str, state: State, kind: str, told: str) -> None:
    """The verdict is a receipt in the lead's name, with its words, and the model is told what holds now."""
    judged = Judged(tool, field=field)

    assert state is judged.handoff.state
    assert told in judged.answers[0]
    assert [f"{kind}: by agent:lead"] == [line[: len(kind) + 15] for line in judged.house.told("verification")]


def test_what_is_sent_back_is_mended_by_whoever_did_it() -> None:
    """The result is refuted, the same agent is told why and works again, and the lead gets the new report."""
    judged = Judged("send_back", told=WRONG)

    assert (State.COMPLETED, 2) == (judged.handoff.state, judged.handoff.attempt)
    assert ("result 2" in judged.answers[0], "billing reports (unverified" in judged.answers[0]) == (True, True)
    assert [False, True] == [WRONG in prompt for prompt in judged.prompts]
    assert "The last result was refuted and sent back: mend this" in judged.prompts[1]


@pytest.mark.parametrize("words", ["", "   ", "ok", "looks good", "I checked it.", "it is needed", "to be filled in"])
def test_a_verdict_needs_evidence(words: str) -> None:
    """Words of approval are none, however many: nothing is recorded, and the model is told what to say."""
    judged = Judged("verify_result", told=words)

    assert (State.COMPLETED, []) == (judged.handoff.state, judged.house.told("verification"))
    assert "say what you checked and what you saw" in judged.answers[0]


def test_evidence_may_be_short() -> None:
    """What counts is whether it says something, not how many words it has."""
    assert State.VERIFIED is Judged("verify_result", told="Tests pass").handoff.state


def test_a_verdict_on_ones_own_work_does_not_count() -> None:
    """An agent that handed to itself may say that it holds; it is recorded, and the result stays unverified."""
    judged = Judged("verify_result", worker="lead")

    assert "it stays unverified until somebody else verifies it" in judged.answers[0]
    with judged.house.relay.store.view() as view:
        assert is_unverified(view, judged.handoff)


def test_only_handoffs_of_the_own_run_are_judged() -> None:
    """An id of somebody else's handoff is not known to a lead."""
    judged = Judged("verify_result")
    before = judged.handoff
    judged.judges = before.id
    other = judged.house
    other.agent("stranger", lambda turn: judged.lead(turn), other.to("billing"))  # noqa: PLW0108 - looked up at each turn
    other.ask("stranger", "Is it paid too?", by="user:bob")

    assert "NotFoundError (id.not_found)" in judged.answers[-1]


def test_only_a_lead_has_these_tools() -> None:
    """An agent that cannot hand off has nothing to judge."""
    house, offered = House(), list[tuple[str, ...]]()
    house.agent("alone", noting(offered, "done", lambda turn: turn.tools))
    house.ask("alone", "go")

    assert [()] == offered
    assert {"verify_result", "accept_unverified", "refute_result", "send_back"} <= set(Judged("verify_result").offered)


def test_what_an_earlier_run_of_the_session_left_unverified_is_verified_later() -> None:
    """The next runs of a session are told which result nobody verified; once one has verified it, none is asked."""
    house, known = House(), list[str]()
    house.agent("billing", lambda _: "invoice 42 is paid")

    def support(turn: Any) -> Any:  # noqa: ANN401 - a turn
        if not turn.returned:
            known.append(turn.known)
        if turn.prompt == "first" and not turn.returned:
            return {"handoff_to_billing": {"task": "Look up invoice 42"}}
        if turn.prompt == "second" and not turn.returned:
            return {"verify_result": {"handoff": "billing", "evidence": SEEN}}
        return "done"

    house.agent("support", support, house.to("billing"))
    for words in ("first", "between", "second", "third"):
        house.ask("support", words, session_id="s", by="user:ana")

    assert [False, True, True, False] == ["nobody has verified it" in words for words in known]
    assert 1 == len(house.told("verification.passed"))
    house.relay.verify()
