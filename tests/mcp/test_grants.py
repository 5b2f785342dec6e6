"""Real servers behind proxies that are held to grants, each proxy a process of its own."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from batonpass import Grant
from batonpass.relay import Relay
from tests.mcp.ledgers import calls_in
from tests.mcp.servers import PROGRAM, STRANGE, node_server, proxied, surroundings
from tests.mcp.wire import Wire

pytestmark = pytest.mark.slow

INITIALIZE = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "shopper", "version": "1"}, "capabilities": {}}
OURS = '[mcp.files]\nlocal = true\nreversible = ["*"]\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a directory with a ledger's home."""
    (tmp_path / ".batonpass").mkdir()
    return tmp_path


def opened(place: Path) -> Relay:
    """Return the ledger there."""
    return Relay.open(f"sqlite:///{place}/.batonpass/ledger.db", work_tree=place)


def batonpass(place: Path, *words: str) -> str:
    """Return what a command prints."""
    done = subprocess.run(
        [str(PROGRAM), *words], cwd=place, env=surroundings(), check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def greet(wire: Wire) -> None:
    """Let a client introduce itself."""
    wire.ask("initialize", **INITIALIZE)
    wire.send({"method": "notifications/initialized"})


def said(answer: dict[str, Any]) -> str:
    """Return what a model reads, and whether it was a failure."""
    result = answer["result"]
    return f"{'no: ' if result.get('isError') else ''}{result['content'][0]['text']}"


def test_what_was_watched_is_pasted_and_holds(place: Path) -> None:
    """Files of a real server: the permits that `grant suggest` prints let the same calls pass, and no others."""
    (place / "src").mkdir()
    (place / "src" / "a.txt").write_text("one\n", encoding="utf-8")
    (place / "batonpass.toml").write_text(OURS, encoding="utf-8")
    server = proxied(node_server("filesystem", str(place)), "--name", "files")
    with Wire(server, place) as wire:
        greet(wire)
        assert "one" in said(wire.call("read_text_file", path=str(place / "src" / "a.txt")))
    suggested = batonpass(place, "grant", "suggest")
    limited = suggested.replace('"call:files/read_text_file"', '"call:files/read_text_file where path under src"')
    (place / "batonpass.toml").write_text(f"{OURS}\n[policy]\nenforce = true\n\n{limited}", encoding="utf-8")
    batonpass(place, "policy", "check")

    with Wire(server, place) as wire:
        greet(wire)
        read = said(wire.call("read_text_file", path=str(place / "src" / "a.txt")))
        outside = said(wire.call("read_text_file", path=str(place / "c.txt")))
        written = said(wire.call("write_file", path=str(place / "src" / "b.txt"), content="x"))

    assert "[grant.shopper]" in suggested
    assert "one" in read
    assert outside.startswith("no: Denied, and not made: shopper may call:files/read_text_file where path under src")
    assert "tried call:files/write_file" in written
    assert not (place / "src" / "b.txt").exists()


def test_two_proxies_of_one_tree_share_its_calls_and_its_end(place: Path) -> None:
    """Three calls for both of them together; and what is revoked elsewhere stops the next one in either."""
    (place / "batonpass.toml").write_text("[mcp.strange]\nlocal = true\n", encoding="utf-8")
    with opened(place) as relay:
        lead = relay.start(
            "Shop", by="user:ana", grant=Grant(may_delegate=["call:strange/*"], limits="at most 3 calls")
        )
        offers = [lead.hand_off(agent, "Look around", may=["call:strange/look"]) for agent in ("one", "two")]
        wires = []
        for offer in offers:
            # As whoever starts the client would say it; the option says the same.
            command = ["env", f"BATONPASS_HANDOFF={offer.id}", *proxied(STRANGE, "--name", "strange")]
            wires.append(Wire(command, place))
        with wires[0] as one, wires[1] as two:
            first = [said(wire.call("look", at=at)) for wire, at in ((one, "a"), (two, "b"), (one, "c"))]
            fourth = said(two.call("look", at="d"))
            other = said(one.call("touch", at="e"))
            relay.revoke_grant(offers[0].id, by="user:ana", reason="enough")
            revoked = said(one.call("look", at="f"))

        assert ["look {'at': 'a'}", "look {'at': 'b'}", "look {'at': 'c'}"] == first
        assert "at most 3 calls" in fourth
        assert "one may call:strange/look, tried call:strange/touch; lead holds it" in other
        assert "was revoked" in revoked
        lead.close()
        relay.verify()


def test_a_subscription_and_a_task_pass_under_a_grant(place: Path) -> None:
    """Updates of a real server arrive; a task is let begin once, its result is asked for later, and is on record."""
    (place / "batonpass.toml").write_text(
        '[policy]\nenforce = true\n\n[mcp.all]\nlocal = true\n\n[grant.shopper]\nmay = ["call:all/**"]\n',
        encoding="utf-8",
    )
    uri = "demo://resource/dynamic/text/1"
    with Wire(proxied(node_server("everything"), "--name", "all"), place) as wire:
        greet(wire)
        wire.ask("resources/subscribe", uri=uri)
        wire.begin("tools/call", name="toggle-subscriber-updates", arguments={})
        while (heard := wire.receive()).get("method") != "notifications/resources/updated":
            pass
        read = wire.ask("resources/read", uri=uri)["result"]["contents"]
        wire.call("toggle-subscriber-updates")
        begun = wire.ask("tools/call", name="simulate-research-query", arguments={"topic": "tea"}, task={"ttl": 60000})
        task = begun["result"]["task"]["taskId"]
        report = said(wire.ask("tasks/result", taskId=task))

    assert (uri, uri) == (heard["params"]["uri"], read[0]["uri"])
    assert "tea" in report
    with opened(place) as relay:
        assert [
            ("mcp-subscription__all", "completed"),
            ("mcp__all__toggle-subscriber-updates", "completed"),
            ("mcp-resource__all", "completed"),
            ("mcp__all__toggle-subscriber-updates", "completed"),
            ("mcp__all__simulate-research-query", "completed"),
        ] == calls_in(relay)
