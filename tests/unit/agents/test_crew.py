"""Crews inside of runs, and crews that work is handed to."""

from typing import Any

import pytest

from batonpass import Constraint, tool
from batonpass.agents import (
    AgentDefinition,
    AgentRunner,
    Crew,
    HandoffPolicy,
    ScriptedClient,
    ToolExecutor,
    ToolRegistry,
)
from batonpass.errors import GrantError, InvalidValueError
from batonpass.model.base.lifecycle import State
from batonpass.model.grants.grant_request import GrantRequest
from tests.unit.agents.house import House, noting, run_async

WORDS = "Write about tides, for children"


def crew_of(house: House, *agents: str, **options: Any) -> Crew:  # noqa: ANN401 - as Crew.pipeline
    """Return a pipeline on the relay of the house."""
    return Crew.pipeline(agents, registry=house.registry, relay=house.relay, **options)


def test_a_crew_inside_a_run_is_its_child() -> None:
    """Everybody in it reads the human's words and the constraints, and works for the same principal in one tree."""
    house, prompts = House(), list[str]()
    house.agent("researcher", noting(prompts, "three sources"))
    crew = crew_of(house, "researcher", name="writers")

    with house.relay.start(WORDS, by="user:ana", items=[Constraint("no formulas")]) as lead:
        result = run_async(crew.run("Find sources", items=[Constraint("only books")]))
        with house.relay.store.view() as view:
            runs = {str(run.agent): run for run in view.find_runs()}

    assert ("three sources", True, runs["writers"].id) == (result.output, result.delivered, result.run)
    assert {lead.id} == {run.root for run in runs.values()}
    assert {"user:ana"} == {run.principal for run in runs.values()}
    assert (lead.id, runs["writers"].id) == (runs["writers"].parent, runs["researcher"].parent)
    assert [True, True, True] == [words in prompts[0] for words in (WORDS, "no formulas", "only books")]
    house.relay.verify()


def test_the_depth_of_a_run_holds_in_its_crews() -> None:
    """A member that starts the crew again, without end, is stopped where the policy stops any chain."""
    house, asked = House(), list[str]()
    policy = HandoffPolicy(max_depth=3)

    async def again() -> str:
        """Let the crew work on it."""
        return (await crew.run("Think harder")).output

    def thinker(turn: Any) -> Any:  # noqa: ANN401 - a turn
        asked.append(turn.prompt)
        return turn.returned[-1][1] if turn.returned else {"again": {}}

    house.agent("thinker", thinker, again)
    crew = crew_of(house, "thinker", policy=policy)
    result = run_async(crew.run("Think"))

    # crew → thinker → crew; the next thinker would be the fourth agent in the chain.
    assert (2, True) == (len(asked), result.delivered)
    assert "this lineage already has 3 agents" in result.output
    assert "crew may not hand to thinker: handoff.too_deep" in "".join(house.told("handoff.failed"))
    with house.relay.store.view() as view:
        assert 1 == len({run.root for run in view.find_runs()})


def test_a_crew_is_not_laxer_than_whoever_handed_to_its_member() -> None:
    """A crew without a policy, started inside a chain that may have three agents, adds none to it."""
    house, asked = House(HandoffPolicy(max_depth=3)), list[str]()

    async def again() -> str:
        """Let the crew work on it."""
        return (await crew.run("Think harder")).output

    def thinker(turn: Any) -> Any:  # noqa: ANN401 - a turn
        asked.append(turn.prompt)
        return turn.returned[-1][1] if turn.returned else {"again": {}}

    house.agent("thinker", thinker, again)
    house.agent(
        "lead",
        lambda turn: turn.returned[0][1] if turn.returned else {"handoff_to_thinker": {"task": "Think"}},
        house.to("thinker"),
    )
    crew = crew_of(house, "thinker")
    said = house.ask("lead", WORDS)

    # lead → thinker → crew; the next thinker would be the fourth.
    assert (2, True) == (len(asked), "this lineage already has 3 agents, and the policy allows 3" in said)


def test_the_grant_of_a_run_holds_in_its_crews() -> None:
    """Nobody in the crew may do what the run cannot pass on."""
    house, told = House(), list[str]()

    @tool(target="path")
    def write(path: str) -> str:
        """Write a file."""
        return f"wrote {path}"

    def editor(turn: Any) -> Any:  # noqa: ANN401 - a turn
        told.extend(words for _, words in turn.returned)
        return "done" if turn.returned else {"write": {"path": "src/a.py"}}

    runner = AgentRunner(ScriptedClient(editor), ToolExecutor(ToolRegistry([write])), relay=house.relay)
    house.registry.register("editor", runner, AgentDefinition(name="editor", model="any", ceiling=["write:**"]))
    crew = crew_of(house, "editor")
    grant = GrantRequest(may=["write:docs/**"], may_delegate=["write:docs/**"])
    with house.relay.start(WORDS, by="user:ana", grant=GrantRequest(may_delegate=["write:docs/**"])):
        run_async(crew.run("Edit", grant=grant))
        with pytest.raises(GrantError):
            run_async(crew.run("Edit more", grant=GrantRequest(may=["write:**"])))

    assert 1 == len(told)
    assert "editor may write:docs/**, tried write:src/a.py" in told[0]


def test_inside_a_run_nobody_else_is_worked_for() -> None:
    """The principal and the session are the run's."""
    house = House()
    house.agent("ana", lambda _: "done")
    crew = crew_of(house, "ana")

    with house.relay.start(WORDS, by="user:ana"):
        assert run_async(crew.run("Go", by="user:ana")).delivered
        for wrong in (crew.run("Go", by="user:bob"), crew.run("Go", session_id="s")):
            with pytest.raises(InvalidValueError, match="inside a run"):
                run_async(wrong)


def test_the_same_crew_with_the_same_task_is_asked_once_in_a_run() -> None:
    """A repetition gets the results that are there."""
    house, asked = House(), list[int]()
    house.agent("ana", noting(asked, "done", lambda _: 1))
    crew = crew_of(house, "ana", "ana")

    with house.relay.start(WORDS, by="user:ana"), pytest.warns(UserWarning, match="has done exactly this task"):
        results = [run_async(crew.run("Go")) for _ in range(2)]

    assert (results[0], [1, 1]) == (results[1], asked)


def test_a_crew_under_a_key_works_once() -> None:
    """The second request returns the results of the first, member by member."""
    house, asked = House(), list[int]()
    house.agent("ana", noting(asked, "done", lambda _: 1))
    crew = crew_of(house, "ana", "ana")
    first, again = (run_async(crew.run("Go", key="k")) for _ in range(2))

    assert (first, [1, 1]) == (again, asked)


def test_work_is_handed_to_a_crew_like_to_any_agent() -> None:
    """A registered crew has a card; a model hands to it by a tool, and gets one report."""
    house = House()
    house.agent("researcher", lambda _: "three sources")
    house.agent("writer", lambda turn: f"written, knowing {'three sources' in turn.prompt}")
    card = house.registry.register("writers", crew_of(house, "researcher", "writer"), description="They write.")
    house.agent(
        "lead",
        lambda turn: turn.returned[0][1] if turn.returned else {"handoff_to_writers": {"task": "Write"}},
        house.to("writers"),
    )
    said = house.ask("lead", WORDS)

    assert ("Writers", "They write.") == (card.name, card.description)
    assert ("writers reports (unverified" in said, "written, knowing True" in said) == (True, True)
    house.relay.verify()


def test_a_crew_that_fails_tells_its_lead_who_did_not_deliver() -> None:
    """The handoff to the crew has failed, and the sentence names the member and the reason."""
    house = House()

    def broken(_: Any) -> str:  # noqa: ANN401 - a turn
        raise RuntimeError("no ink left")

    house.agent("researcher", lambda _: "three sources")
    house.agent("writer", broken)
    house.registry.register("writers", crew_of(house, "researcher", "writer"))
    house.agent(
        "lead",
        lambda turn: turn.returned[0][1] if turn.returned else {"handoff_to_writers": {"task": "Write"}},
        house.to("writers"),
    )
    said = house.ask("lead", WORDS)

    assert "writers gave back nothing" in said
    assert ("writer (handoff_" in said, "no ink left" in said) == (True, True)


def test_a_worker_runs_a_crew_and_a_retry_asks_only_who_failed() -> None:
    """`registry.serve` registers crews too; whoever delivered keeps the result."""
    house, asked = House(), list[str]()

    def writer(_: Any) -> str:  # noqa: ANN401 - a turn
        asked.append("writer")
        if len(asked) == 2:
            raise RuntimeError("no ink left")
        return "written"

    house.agent("researcher", noting(asked, "three sources", lambda _: "researcher"))
    house.agent("writer", writer)
    house.registry.register("writers", crew_of(house, "researcher", "writer"))
    house.registry.serve(house.relay)
    with house.relay.start(WORDS, by="user:ana") as lead:
        handoff = lead.hand_off("writers", "Write")
        assert State.FAILED is handoff.run().state
        handoff.retry()
        result = handoff.run()

    assert (State.COMPLETED, "written") == (result.state, result.report and result.report.result)
    assert ["researcher", "writer", "writer"] == asked


def test_an_agent_without_a_definition_is_refused() -> None:
    """Only a crew needs none. And a crew has no runner that could answer a user."""
    house = House()
    definition = house.agent("ana", lambda _: "done")
    runner = house.registry.get("ana").runner
    house.registry.register("writers", crew_of(house, "ana"))

    with pytest.raises(InvalidValueError, match="the model and instructions of bob"):
        house.registry.register("bob", runner)
    with pytest.raises(InvalidValueError, match="is a crew"):
        _ = house.registry.get("writers").runner
    assert "ana" == definition.name
