"""A remote A2A agent as a target of a handoff: asked once, asked again after a crash, stopped, and never believed."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentInterface, AgentSkill, Part, Task, TaskState
from a2a.types.a2a_pb2 import AgentCard as CardDocument
from starlette.applications import Starlette

from batonpass.adapters.a2a import RemoteAgent
from batonpass.adapters.a2a.remote_card import fetch_card
from batonpass.credentials import Credential, Secret
from batonpass.credentials.port import CredentialRequest
from batonpass.dispatch.egress import Egress
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.errors import CallInDoubtError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.lifecycle import State
from batonpass.model.policy.listed_place import read_listed
from batonpass.relay import Relay
from tests.integration.a2a.world import PATIENCE, World, a_card, a_world, served, until

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

HERE = EgressRule([read_listed("127.0.0.1")])


class Foreign(AgentExecutor):
    """An agent of the bare SDK, which does what the task says."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.cancelled = threading.Event()
        self.go_on = threading.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Do what the text says."""
        words = context.get_user_input()
        self.heard.append(words)
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        if context.current_task is None:
            begun = Task(id=str(context.task_id), context_id=str(context.context_id))
            begun.status.state = TaskState.TASK_STATE_SUBMITTED
            await event_queue.enqueue_event(begun)
        if "wait" in words:
            await updater.start_work()
            while not (self.go_on.is_set() or self.cancelled.is_set()):
                await _pause()
        if self.cancelled.is_set():
            return
        if "fail" in words and len(self.heard) == 1:
            await updater.failed(updater.new_agent_message([Part(text="no luck")]))
            return
        if "ask" in words and len(self.heard) == 1:
            await updater.requires_input(updater.new_agent_message([Part(text="Which one?")]))
            return
        await updater.add_artifact([Part(text=f"did: {words}")], name="result")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Stop."""
        self.cancelled.set()
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()


async def _pause() -> None:
    import asyncio  # noqa: PLC0415 - only here

    await asyncio.sleep(0.01)


class ForeignAgent:
    """Where it is, and what it was told."""

    def __init__(self, address: str, executor: Foreign) -> None:
        self.address = address
        self.executor = executor


@pytest.fixture(params=["JSONRPC", "HTTP+JSON"])
def foreign(request: pytest.FixtureRequest) -> Iterator[ForeignAgent]:
    """Serve an agent of the bare SDK, by one binding."""
    executor = Foreign()

    def make(address: str) -> Starlette:
        card = CardDocument(
            name="Foreign",
            description="Does it.",
            version="1",
            supported_interfaces=[
                AgentInterface(url=f"{address}/x", protocol_binding=request.param, protocol_version="1.0")
            ],
            capabilities=AgentCapabilities(),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="do", name="do", description="do", tags=["do"])],
        )
        handler = DefaultRequestHandler(executor, InMemoryTaskStore(), card)
        routes: list[BaseRoute] = [*create_agent_card_routes(card)]
        routes += create_jsonrpc_routes(handler, "/x") if request.param == "JSONRPC" else []
        routes += create_rest_routes(handler, path_prefix="/x") if request.param != "JSONRPC" else []
        return Starlette(routes=routes)

    with served(make) as address:
        yield ForeignAgent(address, executor)


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    """Return a relay over a new ledger."""
    with Relay.open(tmp_path / "ledger.db", home=tmp_path / "home", work_tree=tmp_path) as opened:
        yield opened


def pinned(relay: Relay, url: str, token: str | None = None, **given: Any) -> RemoteAgent:  # noqa: ANN401 - its options
    """Return a remote agent whose card somebody has looked at."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return RemoteAgent(relay, url, digest=fetch_card(Egress(HERE), url, headers).digest, egress=HERE, **given)


def test_the_error_says_which_digest_to_pin(relay: Relay, foreign: ForeignAgent) -> None:
    """Nothing is sent to an agent whose card nobody has looked at."""
    relay.register("far", RemoteAgent(relay, foreign.address, egress=HERE))
    with relay.start("Look at a card", by="user:ana") as lead:
        told = lead.hand_off("far", "Paint it").run()
    digest = fetch_card(Egress(HERE), foreign.address, {}).digest

    assert ("elsewhere.card", []) == (told.error, foreign.executor.heard)
    assert f'digest="{digest}"' in told.reason


def test_an_agent_of_another_framework_does_a_task(relay: Relay, foreign: ForeignAgent) -> None:
    """Its answer is the report, from outside: whoever takes it is tainted."""
    relay.register("far", pinned(relay, foreign.address))
    with relay.start("Get it done", by="user:ana") as lead:
        handoff = lead.hand_off("far", "Paint it blue", criteria=["it is blue"])
        result = handoff.run()
        tainted = bool(lead.taint)

    assert (State.COMPLETED, "did: Paint it blue") == (result.state, result.report and result.report.result)
    assert (True, True) == (tainted, result.label is not None and result.label.is_external)
    relay.verify()


def test_a_changed_card_is_not_asked(relay: Relay, foreign: ForeignAgent) -> None:
    """Whoever is there now is not who was looked at."""
    relay.register("far", RemoteAgent(relay, foreign.address, digest=f"sha256:{'0' * 64}", egress=HERE))
    with relay.start("Get it done", by="user:ana") as lead:
        result = lead.hand_off("far", "Paint it").run()

    assert (State.FAILED, "elsewhere.card", []) == (result.state, result.error, foreign.executor.heard)


def test_an_address_that_is_not_listed_is_not_asked(relay: Relay, foreign: ForeignAgent) -> None:
    """A card on this machine could be anybody's."""
    relay.register("far", RemoteAgent(relay, foreign.address, digest="sha256:x"))
    with relay.start("Get it done", by="user:ana") as lead:
        result = lead.hand_off("far", "Paint it").run()

    assert ("egress.refused", []) == (result.error, foreign.executor.heard)


def test_a_retry_after_a_failure_is_a_new_task_there(relay: Relay, foreign: ForeignAgent) -> None:
    """The failed one is on record; asking it again would fail for ever."""
    relay.register("far", pinned(relay, foreign.address))
    with relay.start("Get it done", by="user:ana") as lead:
        handoff = lead.hand_off("far", "fail at first")
        first = handoff.run()
        handoff.retry(by="user:ana", reason="again")
        second = handoff.run()

    assert ("elsewhere.failed", State.COMPLETED) == (first.error, second.state)
    assert 2 == len(foreign.executor.heard)


def test_after_a_crash_the_task_is_asked_again_and_not_sent_twice(relay: Relay, foreign: ForeignAgent) -> None:
    """Its id is in the record before anybody waits, so the next attempt waits for the same one."""
    agent = pinned(relay, foreign.address)
    relay.register("far", agent)

    class CrashedError(BaseException):
        """A process that ends between two acts."""

    def crash(run: LiveRun) -> None:
        run.call(agent._sending(run, []), run.agent, run.task, f"{run.baton.handoff}-1")
        raise CrashedError

    with relay.start("Get it done", by="user:ana") as lead:
        handoff = lead.hand_off("far", "wait for me")
        with pytest.raises(CrashedError):
            handoff.run(crash)
        foreign.executor.go_on.set()
        handoff.retry(by="user:ana", reason="the process died")
        result = handoff.run()

    assert State.COMPLETED is result.state
    assert 1 == len(foreign.executor.heard)


def test_a_message_that_may_have_arrived_is_not_sent_again_unless_that_is_harmless(
    relay: Relay, foreign: ForeignAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died while it sent: a person says whether to repeat it, unless the agent takes a message once."""
    told = {}
    for repeatable in (False, True):
        agent = pinned(relay, foreign.address, repeatable=repeatable)
        name = f"far-{repeatable}".lower()
        relay.register(name, agent)
        with relay.start("Get it done", by="user:ana") as lead:
            handoff = lead.hand_off(name, "Paint it")
            with monkeypatch.context() as patched:
                patched.setattr("batonpass.handoff.live.run_calls.finish_call", _gone)
                patched.setattr("batonpass.handoff.live.run_calls.fail_call", _gone)
                with pytest.raises(_Gone):
                    handoff.run()
            handoff.retry(by="user:ana", reason="the process died")
            told[repeatable] = handoff.run().error

    assert {False: CallInDoubtError.code, True: None} == told


class _Gone(BaseException):
    """The process is gone."""


def _gone(*_: object, **__: object) -> None:
    raise _Gone


def test_a_withdrawn_handoff_stops_the_agent_elsewhere(relay: Relay, foreign: ForeignAgent) -> None:
    """It is told to cancel its task, and the attempt here records nothing more."""
    relay.register("far", pinned(relay, foreign.address))
    with relay.start("Get it done", by="user:ana") as lead:
        handoff = lead.hand_off("far", "wait until you are stopped")
        working = threading.Thread(target=handoff.run)
        working.start()
        until(lambda: bool(foreign.executor.heard))
        relay.handoff(handoff.id).cancel(by="user:ana", reason="not needed")
        assert foreign.executor.cancelled.wait(PATIENCE)
        working.join(PATIENCE)
        assert State.CANCELLED is handoff.state()


def test_a_question_is_answered_or_ends_the_attempt(relay: Relay, foreign: ForeignAgent) -> None:
    """Nobody makes an answer up."""
    relay.register("far", pinned(relay, foreign.address))
    with relay.start("Get it done", by="user:ana") as lead:
        unanswered = lead.hand_off("far", "ask me").run()
    foreign.executor.heard.clear()
    foreign.executor.cancelled.clear()
    relay.register("asked", pinned(relay, foreign.address, answer=lambda question: f"blue, since you ask {question}"))
    with relay.start("Get it done", by="user:ana") as lead:
        answered = lead.hand_off("asked", "ask me again").run()

    assert ("elsewhere.asked", State.COMPLETED) == (unanswered.error, answered.state)
    assert "blue, since you ask Which one?" == foreign.executor.heard[-1]


def test_an_enforced_run_needs_leave_to_send(relay: Relay, foreign: ForeignAgent) -> None:
    """Sending work out is an act that a grant names."""
    relay.register("far", pinned(relay, foreign.address))
    told = {}
    for may in (["read:**"], ["read:**", "call:a2a/far/**"]):
        with relay.start("Get it done", by="user:ana") as lead:
            told[len(may)] = lead.hand_off("far", f"Paint it {len(may)}", may=may).run().error

    assert {1: "grant.denied", 2: None} == told


class Tokens:
    """Gives everybody the same token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def fetch(self, asked: CredentialRequest) -> Credential:
        """Return it."""
        return Credential(name=asked.name, identity="service:peer", secret=Secret(self._token))


def test_two_servers_that_hand_to_each_other_stop(tmp_path: Path) -> None:
    """Depth crosses with the work, signed: the tenth agent, or so, is told that it goes no further."""
    worlds: list[World] = []
    depths: list[int] = []

    def ping(run: LiveRun) -> str:
        here = next(world for world in worlds if world.relay.store is run._desk.store)
        other = worlds[1 - worlds.index(here)]
        if "other" not in here.relay.runners:
            token = other.token("service:peer")
            here.relay.credential("peer", Tokens(token))
            agent = pinned(here.relay, other.url_of("ping"), token, credential="peer", repeatable=True)
            here.relay.register("other", agent)
        depths.append(len(depths))
        result = run.hand_off("other", "Ask the other one", may=["call:a2a/other/send", "call:a2a/other/await"]).run()
        return f"{result.state} {result.error}: {result.report and result.report.result} {result.reason}"

    # A tainted run may send only what was named before it was tainted, exactly.
    may = ("read:**", "call:a2a/other/send", "call:a2a/other/await")
    card = {"ping": a_card("ping", description="Asks the other one.", ceiling=may)}
    # Here nobody has to approve what is sent to others; a person would stop it at the first hop.
    policy = tmp_path / "batonpass.toml"
    policy.write_text('[policy]\nmax_depth = 9\n\n[tiers]\nexternal-write = "none"\n', encoding="utf-8")
    with (
        a_world(tmp_path / "a", {"ping": ping}, card, policy=policy, may=may, workers=5) as one,
        a_world(tmp_path / "b", {"ping": ping}, card, policy=policy, may=may, workers=5) as two,
    ):
        worlds += [one, two]
        with one.http() as http:
            said = {"message": {"messageId": "go", "role": "ROLE_USER", "parts": [{"text": "go"}]}}
            told = http.post("/a2a/agents/ping/message:send", json=said).json()

    assert "handoff.too_deep" in str(told)
    assert 2 <= len(depths) <= 5
