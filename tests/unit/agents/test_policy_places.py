"""Every field of a policy counts wherever a policy is given: there is no place that obeys only a part of it."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import fields

from batonpass.agents import AgentRunner, Crew, HandoffExecutor, HandoffPolicy
from batonpass.agents.handoff_tool import DEFAULT_POLICY
from batonpass.aio import AsyncRelay
from batonpass.errors import UnverifiedError
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.transfer.result import Result
from batonpass.model.base.kinds import Relation
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import OpenQuestion
from batonpass.model.policy.offer_options import Handling
from batonpass.relay import Relay, desk_of
from batonpass.store.memory import MemoryStore
from tests.unit.agents.house import House, run_async

ANA: Final = "user:ana"
TASK: Final = "Edit the chapter"
AT_OFFER_RECEIPT_AND_REPORT: Final = 3


@dataclass(frozen=True)
class Field:
    """One field of a policy: a value, and the test that shows what the pipeline of all handoffs does with it."""

    value: object
    written: str  # in a policy file
    shown_by: str
    later: bool = False  # whether it is obeyed after the offer too, by whoever takes the handoff


_TRANSFER: Final = "tests.unit.handoff.transfer"
_BATON: Final = "tests.unit.guard.baton"
FIELDS: Final[Mapping[str, Field]] = {
    "require": Field(
        {Relation.WORKER_TO_LEAD: ("completed",)},
        '[handoffs.worker-to-lead]\nrequire = ["completed"]',
        f"{_TRANSFER}.test_completeness:test_a_policy_of_one_offer_holds_for_its_report_in_any_process",
        later=True,
    ),
    "verified_only": Field(
        True,  # noqa: FBT003 - the value of the field
        "[policy]\nverified_only = true",
        f"{_TRANSFER}.test_offer:test_the_policy_may_want_verified_results_only",
        later=True,
    ),
    "asks": Field(
        True,  # noqa: FBT003 - as above
        "[policy]\nasks = true",
        f"{__name__}:test_an_executor_and_a_crew_ask",
        later=True,
    ),
    "questions": Field(
        3,
        "[policy]\nquestions = 3",
        f"{_BATON}.test_receiver_question:test_a_second_question_is_asked_where_the_policy_has_two",
    ),
    "hops_between_questions": Field(
        2,
        "[policy]\nhops_between_questions = 2",
        f"{_BATON}.test_receiver_question:test_a_doubtful_question_that_is_kept_back_is_said",
    ),
    "oldest": Field(
        timedelta(days=1),
        '[policy]\noldest = "1d"',
        f"{_BATON}.test_referential_drift:test_a_claim_that_is_too_old_is_found",
        later=True,
    ),
    "max_depth": Field(
        7,
        "[policy]\nmax_depth = 7",
        f"{_TRANSFER}.test_refused_offers:test_three_agents_may_stand_in_a_lineage_of_three",
    ),
    "max_attempts": Field(
        2,
        "[policy]\nmax_attempts = 2",
        f"{_TRANSFER}.test_attempt_limit:test_the_policy_of_an_offer_says_how_often_it_is_tried",
        later=True,
    ),
    "allowed_agents": Field(
        ("editor",),
        '[policy]\nallowed_agents = ["editor"]',
        f"{_TRANSFER}.test_refused_offers:test_agents_are_allowed_by_their_stable_id",
    ),
    "known_agents": Field(
        True,  # noqa: FBT003 - as above
        "[policy]\nknown_agents = true",
        f"{_TRANSFER}.test_known_agent:test_a_policy_refuses_agents_that_nobody_knows",
    ),
    "refuse_loops": Field(
        True,  # noqa: FBT003 - as above
        "[policy]\nrefuse_loops = true",
        f"{_TRANSFER}.test_refused_offers:test_who_waits_for_a_task_is_not_asked_for_it_again",
    ),
    "sanitize_context": Field(
        True,  # noqa: FBT003 - as above
        "[policy]\nsanitize_context = true",
        f"{_TRANSFER}.test_free_text:test_what_looks_injected_travels_as_data_from_outside",
        later=True,
    ),
    "trust_degradation": Field(
        False,  # noqa: FBT003 - as above
        "[policy]\ntrust_degradation = false",
        f"{_TRANSFER}.test_free_text:test_whose_words_these_are_is_decided_by_the_relay",
    ),
}


def a_house(relay: Relay | None = None) -> House:
    """Return a house with an editor, and with a lead that hands it the task by its tool."""
    house = House()
    house.relay = house.relay if relay is None else relay
    house.agent("editor", lambda _: "edited")
    return house


def by_relay(policy: HandoffPolicy) -> None:
    _edited(Relay(MemoryStore(), policy=policy))


def by_offer(policy: HandoffPolicy) -> None:
    _edited(Relay(MemoryStore()), Handling(policy=policy))


def by_async_relay(policy: HandoffPolicy) -> None:
    run_async(_edited_async(AsyncRelay(Relay(MemoryStore(), policy=policy))))


def by_async_offer(policy: HandoffPolicy) -> None:
    run_async(_edited_async(AsyncRelay(Relay(MemoryStore())), Handling(policy=policy)))


def by_executor(policy: HandoffPolicy) -> None:
    run_async(_executed(a_house(), policy, "editor"))


def by_pipeline(policy: HandoffPolicy) -> None:
    house = a_house()
    run_async(Crew.pipeline(["editor"], registry=house.registry, policy=policy, relay=house.relay).run(TASK))


def by_parallel(policy: HandoffPolicy) -> None:
    house = a_house()
    run_async(Crew.parallel(["editor"], registry=house.registry, policy=policy, relay=house.relay).run(TASK))


def by_runner(policy: HandoffPolicy) -> None:
    house = a_house(Relay(MemoryStore(), policy=policy))
    lead = lambda turn: "ok" if turn.returned else {"handoff_to_editor": {"task": TASK}}  # noqa: E731 - a script
    house.agent("lead", lead, house.to("editor"))
    with suppress(UnverifiedError):  # the lead builds on what nobody verified
        house.ask("lead", "begin")


async def _executed(house: House, policy: HandoffPolicy, to: str, **options: Any) -> Result:  # noqa: ANN401 - as execute
    lead = await AsyncRelay(house.relay).start("begin", by=ANA)
    return await HandoffExecutor(house.registry, policy).execute(to, TASK, run=lead, **options)


def _edited(relay: Relay, handling: Handling | None = None) -> None:
    relay.start("begin", by=ANA).hand_off("editor", TASK, run=lambda _: "edited", handling=handling).wait()


async def _edited_async(relay: AsyncRelay, handling: Handling | None = None) -> None:
    async def edit(_: object) -> str:
        return "edited"

    lead = await relay.start("begin", by=ANA)
    await (await lead.hand_off("editor", TASK, handling=handling)).run(edit)


PLACES: Final[Mapping[str, Callable[[HandoffPolicy], None]]] = {
    "a relay": by_relay,
    "an offer": by_offer,
    "an asynchronous relay": by_async_relay,
    "an asynchronous offer": by_async_offer,
    "an executor": by_executor,
    "a pipeline": by_pipeline,
    "a parallel crew": by_parallel,
    "the relay of an agent runner": by_runner,
}


@pytest.fixture
def obeyed(monkeypatch: pytest.MonkeyPatch) -> list[HandoffPolicy]:
    """Return the policies that were applied to the handoff: at its offer, at its receipt, and at its report."""
    found: list[HandoffPolicy] = []
    applied = Desk.policy_with

    def noting(desk: Desk, own: HandoffPolicy | None) -> HandoffPolicy:
        found.append(applied(desk, own))
        return found[-1]

    monkeypatch.setattr(Desk, "policy_with", noting)
    return found


def test_the_table_has_every_field() -> None:
    """A new field is not obeyed in some places only: it has a line here, and a test of what it does."""
    assert {field.name for field in fields(HandoffPolicy)} == set(FIELDS)
    for field in FIELDS.values():
        module, _, name = field.shown_by.partition(":")
        assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("place", PLACES)
def test_a_policy_is_obeyed_wherever_it_is_given(place: str, name: str, obeyed: list[HandoffPolicy]) -> None:
    """All of it reaches the one pipeline that judges handoffs, at the offer and, where it matters, after it."""
    field = FIELDS[name]
    asking: dict[str, Any] = {"asks": name in {"questions", "hops_between_questions"}}
    policy = HandoffPolicy(**asking | {"sanitize_context": False, name: field.value})
    PLACES[place](policy)

    # The tools of a model bring a policy too, and of two policies the stricter one counts.
    wanted = getattr(policy.joined(DEFAULT_POLICY) if place == "the relay of an agent runner" else policy, name)
    found = [getattr(one, name) for one in obeyed]
    assert wanted == found[0]
    if field.later:
        assert found.count(wanted) >= AT_OFFER_RECEIPT_AND_REPORT


@pytest.mark.parametrize("name", FIELDS)
def test_a_policy_file_can_say_every_field(name: str, tmp_path: Path) -> None:
    """It is the policy of the relay then. Its list of agents has patterns, and is a gate of its own."""
    file = tmp_path / "policy.toml"
    file.write_text(f"{FIELDS[name].written}\n")
    policy = desk_of(Relay(MemoryStore(), policy=file)).gates

    read = policy.allowed_agents if name == "allowed_agents" else getattr(policy.handoffs, name)
    assert FIELDS[name].value == read


def test_a_runner_takes_no_policy() -> None:
    """One that it would not obey is refused when it is given, with the name of the parameter."""
    assert "policy" not in inspect.signature(AgentRunner).parameters
    with pytest.raises(TypeError, match="policy"):
        AgentRunner(None, policy=HandoffPolicy())  # type: ignore[arg-type, call-arg]  # the mistake


def test_an_executor_and_a_crew_ask() -> None:
    """A blocking question stops the work below them before any of it is done, and the caller is told what is asked."""
    house, policy = a_house(), HandoffPolicy(asks=True)
    blocking = OpenQuestion("Which edition?", blocking=True)
    asked = run_async(_executed(house, policy, "editor", items=[blocking]))
    crew = Crew(["editor"], registry=house.registry, policy=policy, relay=house.relay)
    for result in (asked, run_async(crew.run(TASK, items=[blocking])).results[0]):
        assert (State.ASKED, 0) == (result.state, result.attempt)
        assert "Which edition?" in (result.question or "")


def test_a_failure_below_an_executor_is_tried_as_often_as_its_policy_says() -> None:
    """`retries` asks for more than the policy of the executor allows."""
    house = a_house()

    def broken(_: object) -> str:
        raise RuntimeError("no such file")

    house.agent("printer", broken)
    result = run_async(_executed(house, HandoffPolicy(max_attempts=1), "printer", handling=Handling(retries=3)))

    assert (State.FAILED, 1, "handoff.attempts_exhausted") == (result.state, result.attempt, result.error)
