"""Calls behind a proxy are held to grants: given by hand, by the file, or by whoever handed work to the client."""

from pathlib import Path
from typing import Any

import pytest

from batonpass.accounts.grant_suggestions import suggest
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyOrigin
from batonpass.adapters.mcp.server_declaration import Server
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import Gate
from batonpass.model.bodies.body import ToolDenied, ToolRequested
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.grant_request import GrantRequest
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.policy.policy_rules import Policy, Tier
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from tests.unit.adapters.mcp.stage import Stage

OURS = Server(name="shop", local=True)
DONE = {"content": [{"type": "text", "text": "bought"}]}


def granted(*lines: str) -> ProxyOrigin:
    """Return a proxy's origin that was given these permits."""
    return ProxyOrigin(by="user:ana", grant=Grant(may=read_scope(lines)))


def working_on(handoff: LiveHandoff) -> ProxyOrigin:
    """Return the origin of a proxy that works on a handoff."""
    return ProxyOrigin(by="user:ana", handoff=handoff.id)


def refusals(stage: Stage) -> list[str]:
    """Return what models were told of calls that were not made."""
    results = [answer["result"] for answer in stage.to_client if "result" in answer]
    return [result["content"][0]["text"] for result in results if result.get("isError")]


def reached(stage: Stage) -> list[Any]:
    """Return the ids of what reached the server."""
    return [each["id"] for each in stage.to_server]


def test_what_is_not_granted_comes_back_as_a_failed_result() -> None:
    """The model reads what it may and what it tried; the server gets nothing, and the next call passes."""
    stage = Stage(enforced=True, server=OURS, origin=granted("call:shop/price"))
    stage.greet()

    stage.call(1, "buy")
    stage.call(2, "price")

    assert [2] == reached(stage)
    (said,) = refusals(stage)
    assert (
        "Denied, and not made: shopper may call:shop/price, tried call:shop/buy; nobody above holds it, so only "
        "user:ana can grant it"
    ) == said
    assert [("mcp__shop__buy", "grant")] == [(denied.tool, denied.rule) for denied in stage.bodies(ToolDenied)]


@pytest.mark.parametrize("method", ["resources/read", "prompts/get"])
def test_what_is_read_needs_a_permit_as_well(method: str) -> None:
    """A resource or a prompt is no tool, and `call:shop/*` does not mean it; an error of the protocol says so."""
    stage = Stage(enforced=True, server=OURS, origin=granted("call:shop/*"))

    stage.say(method, 1, params={"uri": "file:///x", "name": "x"})

    assert ([], -32010, True) == (
        reached(stage),
        stage.to_client[-1]["error"]["code"],
        f"tried call:shop/{method}" in stage.to_client[-1]["error"]["message"],
    )


def make_calls(stage: Stage) -> None:
    """Let a client do all kinds of things."""
    stage.greet()
    stage.call(1, "price", arguments={"path": "a/b"})
    stage.call(2, "buy", arguments={"what": "tea"})
    stage.call(3, "a tool / with a name")
    stage.say("resources/read", 4, params={"uri": "shop://tea"})
    stage.say("prompts/get", 5, params={"name": "greet"})


def test_what_is_suggested_covers_what_was_watched_and_no_more() -> None:
    """The permits that a watched client would have needed let the same calls pass, and no other."""
    watched = Stage(server=OURS)
    make_calls(watched)
    with watched.relay.store.view() as view:
        (found,) = suggest(view).grants

    held = Stage(enforced=True, server=OURS, origin=ProxyOrigin(by="user:ana", grant=found.grant))
    make_calls(held)
    held.call(6, "sell")

    assert AgentId("shopper") == found.agent
    assert [1, 2, 3, 4, 5] == reached(held)
    assert 1 == len(refusals(held))
    assert {"call:shop/price", "call:shop/buy", "call:shop/prompts/get", "call:shop/resources/read"} < set(
        found.grant.may.lines
    )


def test_the_table_of_the_client_holds_where_the_file_is_enforced() -> None:
    """Who is meant is whom the client calls itself; another has none. What is only watched is told what it would do."""
    tables = {AgentId("shopper"): Grant(may=read_scope(["call:shop/price"]))}
    for name, enforced, passed in (("shopper", True, [2]), ("shopper", False, [1, 2]), ("other", True, [1, 2])):
        stage = Stage(enforced=enforced, server=OURS, policy=Policy(grants=tables))
        stage.greet(name)
        stage.call(1, "buy")
        stage.call(2, "price")

        assert passed == reached(stage), (name, enforced)
        flagged = [body.tool for body in stage.bodies(ToolRequested) if "would_deny.grant" in body.flags]
        assert (["mcp__shop__buy"] if name == "shopper" and not enforced else []) == flagged


def test_a_path_of_our_own_server_is_judged_by_where_it_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is spelled; of a server elsewhere, paths are compared as texts, and `..` is no path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "out").symlink_to(tmp_path)
    paths = ["src/a", f"{tmp_path}/src/a", "src/out/a", "src/../src/a", "etc/a"]
    permit = granted("call:shop/write where path under src")
    quiet = Policy(tiers={Tier.EXTERNAL_WRITE: Gate.NONE})
    for server, passed in ((OURS, [0, 1, 3]), (Server(name="shop"), [0, 2])):
        stage = Stage(enforced=True, server=server, policy=quiet, origin=permit)
        for number, path in enumerate(paths):
            stage.call(number, "write", arguments={"path": path})

        assert passed == reached(stage), server


def test_several_paths_at_once_are_judged_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that leads out is enough to refuse all of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").symlink_to("/")
    stage = Stage(enforced=True, server=OURS, origin=granted("call:shop/read where paths under ."))

    stage.call(1, "read", arguments={"paths": ["a", f"{tmp_path}/b"]})
    stage.call(2, "read", arguments={"paths": ["a", "out/etc/passwd"]})

    assert [1] == reached(stage)


class TestHandoffs:
    """A proxy that works on a handoff is an attempt at it, within what it grants."""

    @pytest.fixture
    def relay(self) -> Relay:
        """Return the relay of whoever hands off."""
        return Relay(open_store("memory:"))

    def test_two_proxies_share_what_their_sender_has(self, relay: Relay) -> None:
        """Of three calls in a tree one proxy makes two and the other one; nobody makes a fourth."""
        lead = relay.start(
            "Shop", by="user:ana", grant=GrantRequest(may_delegate=["call:shop/**"], limits="at most 3 calls")
        )
        offers = [lead.hand_off(agent, "Shop", may=["call:shop/buy"]) for agent in ("one", "two")]
        one, two = (Stage(relay=relay, enforced=True, server=OURS, origin=working_on(offer)) for offer in offers)

        one.call(1)
        two.call(2)
        one.call(3)
        two.call(4)
        one.call(5, "sell")

        assert ([1, 3], [2]) == (reached(one), reached(two))
        assert "at most 3 calls" in refusals(two)[0]
        assert "one may call:shop/buy, tried call:shop/sell; lead holds it" in refusals(one)[0]

    def test_a_revoked_grant_stops_the_next_call(self, relay: Relay) -> None:
        """Whoever revokes need not know which process it is."""
        lead = relay.start("Shop", by="user:ana", grant=GrantRequest(may_delegate=["call:shop/**"]))
        offer = lead.hand_off("one", "Shop", may=["call:shop/buy"])
        stage = Stage(relay=relay, enforced=True, server=OURS, origin=working_on(offer))

        stage.call(1)
        relay.revoke_grant(offer.id, by="user:ana", reason="enough")
        stage.call(2)

        assert [1] == reached(stage)
        assert "was revoked" in refusals(stage)[0]

    def test_the_attempt_ends_with_the_proxy(self, relay: Relay) -> None:
        """What the client did is the work on the handoff, and who asked for it finds it done."""
        lead = relay.start("Shop", by="user:ana", grant=GrantRequest(may_delegate=["call:shop/**"]))
        offer = lead.hand_off("one", "Shop", may=["call:shop/buy"])
        stage = Stage(relay=relay, enforced=True, server=OURS, origin=working_on(offer))
        stage.call(1)
        stage.tell(None, 1, result=DONE)
        store = relay.store

        stage.recorder.close()

        with Relay(store).store.view() as view:
            known = view.get_handoff(offer.id)
            assert ("completed", "one") == (known.state, view.get_run(known.run or lead.id).agent)

    def test_what_is_held_goes_on_in_the_next_attempt(self, relay: Relay) -> None:
        """A held call ends the attempt; once it is approved, the same call is made, and what was done is not again."""
        lead = relay.start("Shop", by="user:ana", grant=GrantRequest(may_delegate=["call:shop/**"]))
        offer = lead.hand_off("one", "Shop", may=["call:shop/*"])
        server = Server(name="shop", local=True, irreversible=("buy",))
        stage = Stage(relay=relay, enforced=True, server=server, origin=working_on(offer))
        stage.call(1, "price")
        stage.tell(None, 1, result=DONE)

        stage.call(2, "buy")
        stage.call(3, "buy")
        offer.approve(by="user:ana", reason="fine")
        stage.call(4, "price")
        stage.call(5, "buy")

        first, waits = refusals(stage)
        assert first.startswith("Held, and not made")
        assert "approve" in waits
        assert [1, 5] == reached(stage)
        assert [DONE] == [answer["result"] for answer in stage.to_client if answer.get("id") == 4]
