"""Handing off as a tool: refusals as answers, results as data, retries, crews."""

from functools import partial
from typing import Any

import pytest

from batonpass.agents import Crew, HandoffPolicy, create_handoff_tool
from batonpass.agents.shown_result import show_result
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.ids import HandoffId
from batonpass.model.base.kinds import Relation
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Report
from tests.unit.agents.house import House, noting, run_async


def hands(to: str, **said: Any) -> Any:  # noqa: ANN401 - a script
    """Return a script that hands over once and gives back what it was told."""
    return lambda turn: turn.returned[0][1] if turn.returned else {f"handoff_to_{to}": {"task": "Look it up", **said}}


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        pytest.param(None, False, id="none given: all that are registered"),
        pytest.param([], True, id="an empty list: none"),
        pytest.param(["billing"], False, id="one that is named"),
        pytest.param(["bank"], True, id="one that is not named"),
    ],
)
def test_the_allowlist_of_an_executor(*, allowed: list[str] | None, refused: bool) -> None:
    """Who is not allowed is not asked, the model is told so, and the refusal is recorded."""
    house = House(HandoffPolicy(allowed_agents=allowed))
    house.agent("billing", lambda _: "found")
    house.agent("support", hands("billing"), house.to("billing"))
    said = house.ask("support", "where?")

    assert refused is ("Denied, and not made: the policy allows handoffs to" in said)
    kinds = [line.partition(",")[0] for line in house.told("handoff.failed")]
    assert ["handoff.failed: support may not hand to billing: handoff.not_allowed"] * refused == kinds
    # Whatever came of it, the log says first that it was asked for.
    assert ["handoff.initiated: support hands to billing: 'Look it up'"] == house.told("handoff.initiated")


def test_an_unknown_field_of_a_policy_is_an_error_at_construction() -> None:
    """A rule that is misspelled is never silently no rule."""
    with pytest.raises(TypeError, match="max_dept"):
        HandoffPolicy(max_dept=3)  # type: ignore[call-arg]


def test_an_agent_that_is_not_registered_is_an_answer_to_the_model_and_an_event() -> None:
    """The model learns which ids look alike; the log has that it was asked for, and why it was refused."""
    house = House()
    house.agent("billing-agent", lambda _: "found")
    house.agent("support", hands("biling_agent"), house.to("biling_agent"))
    said = house.ask("support", "where?")

    assert "there is no agent biling_agent here; did you mean billing-agent?" in said
    told = house.told("handoff")
    assert "handoff.initiated: support hands to biling_agent: 'Look it up'" == told[0]
    assert told[1].startswith("handoff.failed: support may not hand to biling_agent: handoff.unknown_agent")
    assert 2 == len(told)
    house.relay.verify()


def test_an_agent_unlike_any_other_is_told_who_there_is() -> None:
    """Without a near match, those that are known are named."""
    house = House()
    house.agent("support", hands("zebra"), house.to("zebra"))

    assert "there is no agent zebra here; known are support" in house.ask("support", "where?")
    with pytest.raises(NotFoundError, match="did you mean support"):
        house.registry.get("suport")


def test_the_tool_hands_over_a_whole_baton() -> None:
    """What a model says is empty, blocking, needed or checked stands in the briefing of whoever gets the task."""
    house, prompts = House(), list[str]()
    house.agent("billing", noting(prompts, "found"))
    given = {
        "completed": [
            {"what": "Asked the bank", "outputs": ["letter.txt"], "checked_how": "called them back"},
            "Read the mail",
        ],
        "open_questions": [{"text": "Which year is it?", "blocking": True}, "Is there a copy?"],
        "needs": {"inputs": ["letter.txt"], "tools": ["search"], "skills": ["bookkeeping"]},
        "artifacts": [{"name": "letter.txt", "text": "Dear Sir"}],
        "none": ["rejected", "assumption"],
    }
    house.agent("support", hands("billing", **given), house.to("billing"))
    house.ask("support", "where?")

    told = prompts[0].splitlines()
    assert told[0].endswith("1 of 2 results verified, 2 open questions (1 blocking).")
    wanted = [
        "It needs: letter.txt",
        "You will need: search",
        "You will need the skills: bookkeeping",
        "- Which year is it? [from agent:support; blocking: to be answered first]",
        "- Is there a copy? [from agent:support]",
        "- Asked the bank; output: letter.txt [from agent:support; verified by agent:support: called them back]",
        "- Read the mail [from agent:support; unverified]",
    ]
    assert wanted == [line for line in told if line in wanted]
    # What it said to be empty is not among what nobody spoke of.
    silent = "Nobody said anything about: rationale, criteria, constraint, exclusion, decision."
    assert told[-1].startswith(silent)


def test_a_model_whose_report_is_refused_reports_again() -> None:
    """It is told which parts are missing and how to say that there are none; only the complete report is recorded."""
    wanted = {Relation.WORKER_TO_LEAD: ("question", "rejected")}
    house, told = House(HandoffPolicy(require=wanted)), list[str]()

    def billing(turn: Any) -> Any:  # noqa: ANN401 - a turn
        told.extend(text for _, text in turn.returned)
        said = {"result": "Invoice 42"}
        return {"report_back": said | {"none": ["question", "rejected"]} if told else said}

    house.agent("billing", billing)
    house.agent("support", hands("billing"), house.to("billing"))
    said = house.ask("support", "where?")

    assert "report again with them, or say explicitly that there are none with none=['question', 'rejected']" in told[0]
    assert ("a report must say question, rejected" in told[0], len(told)) == (True, 1)
    assert "Invoice 42" in said
    assert ["handoff.completed: billing reports: 'Invoice 42' (gap.assumption)"] == house.told("handoff.completed")
    assert 1 == len(house.told("handoff.accepted"))


def test_a_child_that_fails_is_a_result() -> None:
    """The parent's model is told that nothing came back and why, quoted."""
    house = House()

    def broken(_: Any) -> str:  # noqa: ANN401 - a turn
        raise ConnectionError("provider gone")

    house.agent("billing", broken)
    house.agent("support", hands("billing"), house.to("billing"))
    said = house.ask("support", "where?")

    assert "billing gave back nothing: the handoff handoff_" in said
    assert "provider gone" in said


def test_the_same_handoff_twice_is_done_once() -> None:
    """A model that repeats itself gets the same report, and nobody works twice."""
    house = House()
    worked: list[int] = []

    def billing(_: Any) -> str:  # noqa: ANN401 - a turn
        worked.append(1)
        return "found"

    def support(turn: Any) -> Any:  # noqa: ANN401 - a turn
        return "ok" if len(turn.returned) == 2 else {"handoff_to_billing": {"task": "Look it up"}}

    house.agent("billing", billing)
    house.agent("support", support, house.to("billing"))
    house.ask("support", "where?")

    assert ([1], 1) == (worked, len(house.told("handoff.initiated")))


def test_plain_text_is_recorded_with_its_gaps() -> None:
    """A child that does not report says nothing about what is open: the close-out lists it."""
    house = House()
    house.agent("billing", lambda _: "found")
    house.agent("support", hands("billing"), house.to("billing"))
    house.ask("support", "where?")

    assert [
        "handoff.completed: billing reports: 'found' (report.plain, gap.question, gap.rejected, gap.assumption)"
    ] == house.told("handoff.completed")


def test_a_typed_report_comes_back_whole() -> None:
    """What a child decided and left open reaches the parent's model, and the next child's."""
    house = House()
    report = {"result": "found", "value": {"sum": 7}, "decisions": [{"what": "use EUR", "why": "law"}]}
    house.agent("billing", lambda _: {"report_back": report})
    house.agent("bank", lambda turn: turn.prompt)

    def support(turn: Any) -> Any:  # noqa: ANN401 - a turn
        if len(turn.returned) < 2:
            return {("handoff_to_billing", "handoff_to_bank")[len(turn.returned)]: {"task": "Look it up"}}
        return "\n".join(words for _, words in turn.returned)

    house.agent("support", support, house.to("billing"), house.to("bank"))
    said = house.ask("support", "where?")

    assert ('"sum": 7' in said, "use EUR (because: law)" in said) == (True, True)


def test_a_briefing_can_be_read_on() -> None:
    """What does not fit into the briefing is given by reference, which the model can read."""
    house = House()
    long = "x" * 60_000 + "THE END"

    def billing(turn: Any) -> Any:  # noqa: ANN401 - a turn
        if turn.returned:
            return str("THE END" in turn.returned[0][1])
        ref = turn.prompt.partition("read_artifact('")[2].partition("'")[0]
        return {"read_artifact": {"ref": ref, "start": 55_000}}

    house.agent("billing", billing)
    house.agent("support", hands("billing", artifacts=[{"name": "log", "text": long}]), house.to("billing"))

    assert "\nTrue\n" in house.ask("support", "where?")


def test_a_reference_that_leads_nowhere_is_an_answer_to_the_model() -> None:
    """Only what the briefing refers to can be read."""
    house = House()
    house.agent(
        "billing", lambda turn: turn.returned[0][1] if turn.returned else {"read_artifact": {"ref": "/etc/passwd"}}
    )
    house.agent("support", hands("billing"), house.to("billing"))

    assert "is not a reference of this briefing" in house.ask("support", "where?")


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(
            {"state": State.VERIFIED, "report": Report(result="7")}, "billing reports (verified", id="verified"
        ),
        pytest.param({"state": State.ASKED, "question": "Which?"}, "question]]\nWhich?\n[[", id="a question"),
        pytest.param({"state": State.HELD}, "Held, and not finished: billing waits for a person", id="held"),
    ],
)
def test_every_outcome_has_words(result: dict[str, Any], expected: str) -> None:
    """Whatever came of a handoff, a model is told in a sentence."""
    told = show_result("billing", Result(handoff=HandoffId("h"), run=None, attempt=1, **result))

    assert expected in told


def test_a_pipeline_hands_on_what_was_found() -> None:
    """Researcher, critic, writer: each reads what those before it reported; the last answer is the crew's."""
    house = House()
    house.agent("researcher", lambda _: "three sources")
    house.agent("critic", lambda turn: f"two are weak, of {'three sources' in turn.prompt}")
    house.agent("writer", lambda turn: f"written, knowing {'two are weak, of True' in turn.prompt}")
    crew = Crew.pipeline(["researcher", "critic", "writer"], registry=house.registry, relay=house.relay)
    result = run_async(crew.run("Write about tides", by="user:ana", session_id="s"))

    assert ("written, knowing True", True, 3) == (result.output, result.delivered, len(result.results))
    house.relay.verify()


def test_a_pipeline_ends_with_whoever_fails() -> None:
    """Nobody goes on with what was not delivered, and the run says that it failed."""
    house = House()

    def broken(_: Any) -> str:  # noqa: ANN401 - a turn
        raise ConnectionError("gone")

    house.agent("researcher", broken)
    house.agent("writer", lambda _: "written")
    crew = Crew.pipeline(["researcher", "writer"], registry=house.registry, relay=house.relay)
    result = run_async(crew.run("Write"))

    assert (False, 1) == (result.delivered, len(result.results))
    assert "is failed: ConnectionError: gone" in result.output
    with house.relay.store.view() as view:
        assert "failed" == view.get_run(result.run).state


def votes(name: str, turn: Any) -> str:  # noqa: ANN401 - a turn
    """Return a vote, and whether somebody else's was known."""
    return f"{name} {'reported, unverified' in turn.prompt}"


def test_a_crew_works_side_by_side() -> None:
    """All are asked the same at once; nobody reads what the others say."""
    house = House()
    for name in ("ana", "bob", "eve"):
        house.agent(name, partial(votes, name))
    crew = Crew.parallel(["ana", "bob", "eve"], registry=house.registry, relay=house.relay)

    assert "ana False\n\nbob False\n\neve False" == run_async(crew.run("Vote")).output


def test_the_same_agent_may_work_twice_in_a_crew() -> None:
    """Two places of a plan are two handoffs."""
    house = House()
    house.agent("ana", lambda _: "done")
    crew = Crew.pipeline(["ana", "ana"], registry=house.registry, relay=house.relay)

    assert 2 == len({result.handoff for result in run_async(crew.run("Twice")).results})


def test_a_crew_needs_agents_that_are_there() -> None:
    """An empty crew, and one with somebody who is not registered, is never made."""
    house = House()

    with pytest.raises(InvalidValueError, match="at least one"):
        Crew.parallel([], registry=house.registry)
    with pytest.raises(NotFoundError):
        Crew.pipeline(["nobody"], registry=house.registry)


def test_a_crew_that_is_refused_has_failed() -> None:
    """A policy that lets nobody be asked is recorded, and raised."""
    house = House()
    house.agent("ana", lambda _: "done")
    crew = Crew.pipeline(["ana"], registry=house.registry, relay=house.relay, policy=HandoffPolicy(allowed_agents=()))

    with pytest.raises(Exception, match="allows handoffs to nobody"):
        run_async(crew.run("Go"))
    assert 1 == len(house.told("handoff.failed"))


def test_a_child_under_a_grant_reads_its_own_briefing() -> None:
    """What was handed over with the task is its own: no grant names it, none is needed, and nothing else opens."""
    house = House()
    told: list[str] = []

    def billing(turn: Any) -> Any:  # noqa: ANN401 - a turn
        told.extend(text for _, text in turn.returned)
        refs = ["task", "/etc/passwd"]
        return "ok" if len(turn.returned) == 2 else {"read_artifact": {"ref": refs[len(turn.returned)]}}

    house.agent("billing", billing)
    tool = create_handoff_tool("billing", "Hand to billing", house.executor, may=["write:invoices/**"])
    house.agent("support", hands("billing"), tool)
    house.ask("support", "where?")

    assert (True, True) == ("Look it up" in told[0], "InvalidValueError" in told[-1])
    assert [] == house.told("tool.")
