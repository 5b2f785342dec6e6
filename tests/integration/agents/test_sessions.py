"""Sessions of native agents, on the provider's wire: derived state, bounded, never a conversation."""

import json
import re
from typing import Any, Final

from batonpass import tool
from batonpass.model.baton.items import Constraint
from tests.integration.agents.messages_api import Asked, Said, Script, Text, Use, serving
from tests.integration.agents.support import House, run_async

REASONING: Final = "I suspect the cache, because the graph looks odd"
PAGE: Final = "the price of tin is 31,000 today"
DECISION: Final = "round half-even"
QUESTION: Final = "are negative totals rounded too?"
RUNS: Final = 12


@tool("fetch", reads=True, external=True)
def fetch() -> str:
    """Fetch the page of prices."""
    return PAGE


@tool("think_aloud", reads=True)
def think_aloud(thought: str) -> str:
    """Note a thought."""
    return f"noted: {thought}"


def spoken(asked: Asked) -> str:
    """Return everything that a request says to the model."""
    return json.dumps(asked.body["messages"])


def request(asked: Asked) -> str:
    """Return the user's own words."""
    content = asked.body["messages"][0]["content"]
    return str(content if isinstance(content, str) else content[-1]["text"])


def keeps(asked: Asked) -> Said:
    """Think, read a page and decide in the first run; in each later one, say something and think again."""
    steps = [
        Use("think_aloud", {"thought": REASONING}),
        Use("fetch", {}),
        Use(
            "note_down",
            {
                "decisions": [{"what": DECISION, "why": "tax office"}],
                "open_questions": [QUESTION],
            },
        ),
    ]
    if "run 1." not in request(asked):
        steps = [Use("think_aloud", {"thought": f"a thought of {asked.answers} {REASONING[::-1]}" * 8})]
    return steps[asked.answers] if asked.answers < len(steps) else Text("That is done. " * 30)


def talked(script: Script, runs: int = RUNS, **options: Any) -> list[Asked]:  # noqa: ANN401 - as AgentRunner.run
    """Return the first request of each run of one session."""
    with serving(script) as api:
        house = House(api)
        house.agent("support", tools=[fetch, think_aloud])

        async def main() -> list[Asked]:
            first = []
            for number in range(1, runs + 1):
                before = len(api.asked)
                await house.ask("support", f"This is run {number}.", session_id="ticket-7", by="user:ana", **options)
                first.append(api.asked[before])
            return first

        first: list[Asked] = run_async(main)
        house.relay.verify()
        return first


def test_run_twelve_reads_what_was_decided_and_nothing_that_was_thought() -> None:
    """Decisions with their reasons and open questions come along; reasoning, calls and a stale page do not."""
    last = spoken(talked(keeps)[-1])

    assert [True, True, True] == [words in last for words in (DECISION, "tax office", QUESTION)]
    assert [False, False, False, False] == [words in last for words in (REASONING, PAGE, "think_aloud", "tool_result")]


def test_the_prompt_of_a_session_does_not_grow() -> None:
    """Twelve runs with long answers and long thoughts: the last prompt is hardly longer than the fifth."""
    sizes = [len(spoken(asked)) for asked in talked(keeps)]

    assert max(sizes) < 4_000
    assert sizes[-1] <= sizes[4] + 100


def test_what_does_not_fit_is_counted_and_can_be_asked_for() -> None:
    """A session with many open questions tells the newest; the model is told how many are left out, and gets them."""
    told: list[str] = []

    def script(asked: Asked) -> Said:
        if "run 1." in request(asked):
            questions = [f"question {number}: {'what is it about, in detail? ' * 10}" for number in range(40)]
            return Use("note_down", {"open_questions": questions}) if asked.answers == 0 else Text("ok")
        told.append(spoken(asked))
        return Use("show_session", {}) if asked.answers == 0 else Text("ok")

    talked(script, runs=2)

    assert ("older things did not fit here: show_session()" in told[0], "question 0:" in told[0]) == (True, False)
    assert "question 0:" in told[1]
    assert len(told[0]) < 12_000


def test_the_user_s_own_words_stand_alone() -> None:
    """What is known is a text of its own in the same message, quoted; the words of the user are unchanged."""
    content = talked(keeps, runs=2)[1].body["messages"][0]["content"]

    assert "This is run 2." == content[-1]["text"]
    assert content[0]["text"].startswith("[[")


def test_a_constraint_of_the_caller_is_read_by_the_root_s_model() -> None:
    """What must hold is told to the first agent too, not only to those it hands to."""
    assert "no refunds" in spoken(talked(keeps, runs=1, items=[Constraint("no refunds")])[0])


def test_every_agent_of_a_session_is_told_the_same() -> None:
    """Another agent that goes on with the session, and whoever it hands to, read what the first one decided."""

    def script(asked: Asked) -> Said:
        if "You are support" in asked.system:
            return keeps(asked)
        if "You are billing" in asked.system and "handoff_to_bank" in asked.tools and asked.answers == 0:
            return Use("handoff_to_bank", {"task": "Book it"})
        return Text("ok")

    with serving(script) as api:
        house = House(api)
        house.agent("support", tools=[fetch, think_aloud])
        house.agent("bank")
        house.agent("billing", tools=[house.to("bank")])

        async def main() -> None:
            await house.ask("support", "This is run 1.", session_id="s")
            await house.ask("billing", "Go on.", session_id="s")

        run_async(main)
        for agent in ("billing", "bank"):
            words = spoken(api.of(agent)[0])
            assert (agent, True, True, False) == (agent, DECISION in words, QUESTION in words, PAGE in words)


def test_an_answer_made_of_outside_words_is_not_repeated() -> None:
    """The last answers are told as unverified, except those that drew on a page: that is fetched anew."""

    def script(asked: Asked) -> Said:
        if "run 2." in request(asked) and asked.answers == 0:
            return Use("fetch", {})
        return Text(f"tin costs 31,000, says the page of {len(spoken(asked)) % 7}")

    last = spoken(talked(script, runs=3)[2])
    assert (1, True) == (last.count("tin costs"), "fetch it anew" in last)
    assert "no answer is verified" in last


def test_what_a_lead_verified_is_told_as_verified() -> None:
    """A result that its lead verified comes along with its author and its evidence; an unverified one does not."""

    def script(asked: Asked) -> Said:
        if "You are billing" in asked.system:
            return Text(f"invoice 42 is paid, as {'B' if 'second' in asked.words else 'A'} says")
        if "run 2." in request(asked) or asked.answers == 3:
            return Text("ok")
        if asked.answers < 2:
            return Use("handoff_to_billing", {"task": ("Look at the first", "Look at the second")[asked.answers]})
        first = re.findall(r"handoff_[0-9a-z]{26}", asked.words)[0]
        return Use("verify_result", {"handoff": first, "evidence": "I read the invoice myself"})

    with serving(script) as api:
        house = House(api)
        house.agent("billing")
        house.agent("support", tools=[house.to("billing")])

        async def main() -> None:
            for number in (1, 2):
                await house.ask("support", f"This is run {number}.", session_id="s", by="user:ana")

        run_async(main)
        house.relay.verify()
        last = api.of("support")[-1].words

    assert "invoice 42 is paid, as A says [from agent:billing; verified by agent:support: verdict, see handoff_" in last
    assert "as B says" not in last.partition("verified by")[0]
