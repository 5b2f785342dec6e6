"""Agents and tools by name: stable ids, either spelling, cards, and what is refused."""

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import batonpass.agents
from batonpass.agents import (
    AgentCard,
    AgentDefinition,
    AgentRegistry,
    AgentRunner,
    AnthropicClient,
    HandoffExecutor,
    OpenAIClient,
    RunnerConfig,
    ScriptedClient,
    ToolDefinition,
    ToolExecutor,
    ToolRegistry,
    create_handoff_tool,
)
from batonpass.agents.agent_relay import store_of
from batonpass.agents.framework.extra_check import require_extra
from batonpass.errors import InvalidValueError, MissingExtraError, NotFoundError
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from tests.unit.agents.house import House

DEFINITION = AgentDefinition(name="billing-agent", model="m")
RUNNER = AgentRunner(ScriptedClient(lambda _: "x"))


def a_registry(*agents: str) -> AgentRegistry:
    registry = AgentRegistry()
    for agent in agents:
        registry.register(agent, RUNNER, DEFINITION, "Handles bills.", ["billing", "payments"])
    return registry


def test_an_agent_is_found_by_its_stable_id() -> None:
    """Hyphens and all: what looks alike is another agent, and is not there."""
    registry = a_registry("billing-agent")

    assert ("billing-agent" in registry, "billing_agent" in registry) == (True, False)
    with pytest.raises(NotFoundError):
        registry.get("billing_agent")


def test_an_id_is_taken_once() -> None:
    """Nobody puts another agent in the place of one that is there."""
    with pytest.raises(InvalidValueError, match="is already registered"):
        a_registry("billing-agent", "billing-agent")


def test_an_agent_has_a_card() -> None:
    """What it says about itself, as JSON for others."""
    assert {
        "id": "billing-agent",
        "name": "Billing Agent",
        "description": "Handles bills.",
        "version": "1.0.0",
        "skills": ["billing", "payments"],
        "protocol": "a2a/1.0",
    } == a_registry("billing-agent").card("billing-agent").to_dict()
    assert "https://here/x" == AgentCard(id="x", name="X", endpoint="https://here/x").to_dict()["endpoint"]


def test_a_registry_lists_its_agents() -> None:
    """In the order in which they came."""
    registry = a_registry("a", "b")

    assert (["a", "b"], ["a", "b"], 2) == (list(registry), [card.id for card in registry.cards()], len(registry))


def test_a_relay_learns_who_runs_here() -> None:
    """Workers of a relay can run registered agents, with their cards."""
    relay = Relay(MemoryStore())
    a_registry("billing-agent").serve(relay)

    assert ["billing-agent"] == list(relay.runners)


@pytest.mark.parametrize("spelling", ["handoff_to_billing-agent", "handoff_to_billing_agent"])
def test_a_tool_is_found_in_either_spelling(spelling: str) -> None:
    """What a definition names is the same tool, and a model is told a name that every provider takes."""
    registry = ToolRegistry()
    registry.register_tool_definition(create_handoff_tool("billing-agent", "d", HandoffExecutor(a_registry())))

    assert ["handoff_to_billing_agent"] == list(ToolExecutor(registry).tools_of([spelling]))


def two_alike() -> ToolRegistry:
    registry = ToolRegistry()
    for agent in ("a-b", "a_b"):
        registry.register_tool_definition(create_handoff_tool(agent, agent, HandoffExecutor(a_registry())))
    return registry


def test_two_agents_that_differ_in_a_hyphen_stay_two() -> None:
    """Each keeps its own spelling, so that no model reaches the wrong one."""
    offered = ToolExecutor(two_alike()).tools_of(None)

    assert {"handoff_to_a-b": "a-b", "handoff_to_a_b": "a_b"} == {
        name: tool.description for name, tool in offered.items()
    }
    with pytest.raises(InvalidValueError, match="could be handoff_to_a-b or handoff_to_a_b"):
        two_alike().get("handoff.to.a.b")


def test_a_name_is_taken_once() -> None:
    """Two tools of one name would be one to a model; the very same tool twice is one."""
    registry = ToolRegistry()
    tool = registry.register(len, name="count")
    registry.register_tool_definition(tool)

    with pytest.raises(InvalidValueError, match="already a tool called count"):
        registry.register(len, name="count")
    assert 1 == len(registry)


def test_a_name_that_no_model_takes_is_refused() -> None:
    """At most 64 characters."""
    registry = ToolRegistry()
    registry.register(len, name="x" * 65)

    with pytest.raises(InvalidValueError, match="not a valid name for models"):
        ToolExecutor(registry).tools_of(None)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: AgentDefinition(name="two words", model="m"), "name"),
        (lambda: AgentDefinition(name="a", model=""), "model"),
        (lambda: AgentDefinition(name="a", model="m", tools="fly"), "tools"),
        (lambda: RunnerConfig(max_iterations=0), "max_iterations"),
        (lambda: RunnerConfig(enable_memory=1), "enable_memory"),  # type: ignore[arg-type]
        (lambda: RunnerConfig(retries=-1), "retries"),
        (lambda: RunnerConfig(timeout=timedelta(0)), "timeout"),
        (lambda: RunnerConfig(max_tokens=0), "max_tokens"),
        (lambda: RunnerConfig(principal="ana"), "principal"),
        (lambda: ToolDefinition(name="x", function=7), "function"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_cannot_be_right_is_refused_by_name(make: Callable[[], Any], field: str) -> None:
    """Mistakes in a definition show where it is written."""
    with pytest.raises(InvalidValueError) as refused:
        make()

    assert field == refused.value.field


@pytest.mark.parametrize("client", [AnthropicClient("k"), OpenAIClient("k")], ids=["Anthropic", "OpenAI"])
def test_a_client_makes_models_and_keeps_its_key_to_itself(client: Any) -> None:  # noqa: ANN401 - any client
    """A model has the name that was asked for; nothing is sent, and the key is not shown."""
    model = client.model("some-model")

    assert ("some-model", False, True) == (model.model_name, "k)" in repr(client), client.model("b") is not model)


def test_a_missing_extra_is_one_sentence_with_the_command() -> None:
    """Whoever has only the core is told what to run."""
    with pytest.raises(MissingExtraError) as missing:
        require_extra("no_such_package_here")

    assert (
        "native agents need packages that are not installed; run in your clone of Batonpass: pip install '.[agents]'"
        == str(missing.value)
    )


@pytest.mark.parametrize("module", ["batonpass", "batonpass.agents"])
def test_an_import_brings_no_framework(module: str) -> None:
    """Neither the core nor the agents import pydantic before an agent runs."""
    check = f"import sys, {module}; sys.exit(any(name.startswith('pydantic') for name in sys.modules))"

    assert 0 == subprocess.run([sys.executable, "-c", check], check=False, timeout=60).returncode


def test_without_the_extra_a_run_says_what_to_install() -> None:
    """Where pydantic-ai is not there, the first run says so, and nothing is recorded."""
    program = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'pydantic_ai' else find(name, *rest)\n"
        "import batonpass.agents.framework.extra_check as extra; extra.find_spec = u.find_spec\n"
        "import asyncio\n"
        "from batonpass.agents import AgentDefinition, AgentRunner, AnthropicClient\n"
        "try:\n"
        "    asyncio.run(AgentRunner(AnthropicClient('k')).run(AgentDefinition(name='a', model='m'), 'hello'))\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60, capture_output=True, text=True)

    assert (
        "native agents need packages that are not installed; run in your clone of Batonpass: pip install '.[agents]'\n"
        == done.stdout
    )


def test_names_are_sorted_and_there() -> None:
    """Every public name can be imported, and nothing else pretends to be one."""
    assert sorted(batonpass.agents.__all__) == batonpass.agents.__all__
    assert all(hasattr(batonpass.agents, name) for name in batonpass.agents.__all__)
    with pytest.raises(AttributeError):
        batonpass.agents.nothing  # type: ignore[attr-defined]  # noqa: B018 - that is the test


def test_the_store_of_this_directory_can_be_imported(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 - a path
    """`state_store` is the store that agents without a relay record in."""
    monkeypatch.setenv("BATONPASS_LEDGER", f"sqlite:///{tmp_path}/ledger.db")

    assert [] == list(tmp_path.iterdir()), "a name that was read opens nothing"
    assert f"sqlite:///{tmp_path}/ledger.db" == store_of(batonpass.agents.state_store).url


def test_events_can_be_asked_by_run_and_by_store() -> None:
    """One tree's events, from the store itself."""
    house = House()
    house.agent("support", lambda _: "hi")
    house.ask("support", "one")
    house.ask("support", "two")
    with house.relay.store.view() as view:
        latest = next(iter(view.find_runs()))

    events = __import__("asyncio").run(batonpass.agents.EventLog(house.relay.store).get_events(run=latest.id))
    assert ["run.started", "run.closed"] == [event.event_type for event in events]


def test_importing_the_agents_opens_no_database(tmp_path: Path) -> None:
    """Every name of the package can be looked at in an empty folder: nothing is opened, made or loaded for it."""
    program = (
        "import os, sys, batonpass.agents as agents\n"
        "names = [getattr(agents, name) for name in dir(agents)]\n"
        "print(os.listdir(), 'apsw' in sys.modules, 'pydantic_ai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert "[] False False" == done.stdout.strip()
