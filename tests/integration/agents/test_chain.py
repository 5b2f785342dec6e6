"""User to support to billing to payment specialist: what arrives at the third model, and where the chain ends."""

from typing import Final

import pytest

from batonpass import Grant
from batonpass.agents import HandoffPolicy
from tests.integration.agents.messages_api import Asked, MessagesApi, Said, Text, Use, serving
from tests.integration.agents.support import House, run_async

WORDS: Final = "I was charged twice in March; I want one of the two back, and no voucher."
POLICY: Final = HandoffPolicy(max_depth=3)
FAILED: Final = "Denied, and not made: this lineage already has 3 agents"
AGENTS: Final = ("support-agent", "billing-agent", "payment-specialist", "bank-agent")


def script(asked: Asked) -> Said:
    """Each hands to the next and says more besides; the third tries to go further, and then answers."""
    if "You are support-agent" in asked.system:
        return (
            Use(
                "handoff_to_billing-agent",
                {
                    "task": "Find out which of the two charges of March is wrong",
                    "rationale": "billing sees the ledger of charges",
                    "constraints": ["do not touch February"],
                    "exclusions": ["vouchers"],
                    "assumptions": ["the customer has one account"],
                    "artifacts": [{"name": "charges.csv", "text": "2026-03-02,19.00\n2026-03-02,19.00\n"}],
                },
            )
            if asked.answers == 0
            else Text("You get 19.00 back.")
        )
    if "You are billing-agent" in asked.system:
        return (
            Use(
                "handoff_to_payment_specialist",
                {
                    "task": "Return the second charge of 2026-03-02",
                    "decisions": ["the second charge is the wrong one, because it has no order"],
                    "rejected_paths": ["asking the customer for a receipt"],
                    "open_questions": ["is the card still valid?"],
                    "criteria": ["exactly 19.00 is returned"],
                },
            )
            if asked.answers == 0
            else Text("returned")
        )
    if "You are payment-specialist" in asked.system:
        return (
            Use("handoff_to_bank_agent", {"task": "Wire it"}) if asked.answers == 0 else Text("returned 19.00 by card")
        )
    return Text("wired")


@pytest.fixture(scope="module")
def chain() -> tuple[MessagesApi, House, str, list[str]]:
    """Return what was asked of each, and what was recorded."""
    with serving(script) as api:
        house = House(api, policy=POLICY)
        tools: list[object] = []
        for agent in reversed(AGENTS):
            house.agent(agent, tools=list(tools))  # type: ignore[arg-type]
            tools = [house.to(agent, grant=Grant(may=[f"refund:{agent}"], may_delegate=["refund:*"]))]

        async def main() -> tuple[str, list[str]]:
            said = await house.ask("support-agent", WORDS, by="user:ana", session_id="session-42")
            return said, await house.kinds("handoff")

        said, kinds = run_async(main)
        house.relay.verify()
        return api, house, said, kinds


# The rows of what a downstream agent needs, and the words by which they show.
ROWS: Final = {
    "artifact": "2026-03-02,19.00\n2026-03-02,19.00\n",
    "task scope": "- Return the second charge of 2026-03-02",
    "task scope, when it is done": "exactly 19.00 is returned",
    "constraints": "- do not touch February",
    "constraints, excluded": "- vouchers",
    "prior context, decided": "- the second charge is the wrong one, because it has no order",
    "prior context, assumed": "- the customer has one account",
    "prior context, rejected": "- asking the customer for a receipt",
    "prior context, open": "- is the card still valid?",
    "authorisation, under whose authority": "on behalf of user:ana",
    "authorisation, to do what": "You may: refund:payment-specialist",
    "human intent": f"- {WORDS} [user:ana, ",
}


@pytest.mark.parametrize("row", ROWS)
def test_what_a_downstream_agent_needs_arrives_at_the_third_model(
    chain: tuple[MessagesApi, House, str, list[str]], row: str
) -> None:
    """Each row of the table stands in the payload of the third agent's first request, in the user's role."""
    first = chain[0].of("You are payment-specialist")[0]

    assert (True, False) == (ROWS[row] in first.words, ROWS[row] in first.system)


def test_the_chain_runs_to_its_third_agent(chain: tuple[MessagesApi, House, str, list[str]]) -> None:
    """Support, billing and the specialist run; the bank is never asked, and the user has an answer."""
    api, _, said, _ = chain

    assert ("You get 19.00 back.", []) == (said, api.of("You are bank-agent"))


def test_a_further_hop_is_an_error_that_the_agent_can_answer(chain: tuple[MessagesApi, House, str, list[str]]) -> None:
    """The specialist's model gets the refusal as a failed call, and goes on to answer."""
    last = chain[0].of("You are payment-specialist")[-1]
    (result,) = last.results

    assert True is result["is_error"]
    assert FAILED in str(result["content"])


def test_the_refusal_is_a_handoff_that_failed(chain: tuple[MessagesApi, House, str, list[str]]) -> None:
    """Policy denial is an offer that failed, beside two handoffs that were completed."""
    kinds = chain[3]

    assert (3, 2, 2, 1) == tuple(
        kinds.count(f"handoff.{name}") for name in ("initiated", "accepted", "completed", "failed")
    )


def test_events_of_a_session_have_a_time_a_type_and_a_summary(chain: tuple[MessagesApi, House, str, list[str]]) -> None:
    """The log is asked by the caller's own name for the session."""
    _, house, _, _ = chain

    async def main() -> list[str]:
        events = await house.events.get_events(session_id="session-42", event_type_prefix="handoff")
        assert [] == await house.events.get_events(session_id="another", event_type_prefix="handoff")
        assert sorted(event.timestamp for event in events) == [event.timestamp for event in events]
        return [f"{event.event_type}: {event.summary}" for event in events]

    told = run_async(main)
    for begins in (
        "handoff.initiated: support-agent hands to billing-agent: ",
        "handoff.failed: payment-specialist may not hand to bank-agent: handoff.too_deep, ",
    ):
        assert any(line.startswith(begins) for line in told)
