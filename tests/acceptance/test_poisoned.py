"""A page that tells an agent to pay: no money moves by it, and nothing that is clean is held up."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import pytest

from batonpass import Relay
from batonpass.demo import poisoned_page
from batonpass.demo.examples import load_example
from batonpass.demo.poisoned_page import Bank, Poisoned, play_poisoned
from batonpass.errors import VerificationError
from batonpass.model.bodies.body import ToolHeld
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.cli.shell import batonpass_in

EXAMPLE: Final = cast("Poisoned", load_example("poisoned.py"))


def holds(place: Path) -> list[str]:
    """Return by which rules calls were held in a ledger, or would have been for taint."""
    found: list[str] = []
    with Relay.open(f"sqlite:///{place}/.batonpass/ledger.db", create=False) as relay, relay.store.view() as view:
        for stored in view.find_receipts(ReceiptQuery(kind="tool")):
            body = decode_receipt(stored.payload).body
            found += [body.rule] if isinstance(body, ToolHeld) else []
            found += [flag for flag in getattr(body, "flags", ()) if flag in {"would_hold.taint", "would_hold.readers"}]
        relay.verify()
    return found


@pytest.mark.parametrize(("page", "held"), [("POISONED", ["taint"]), ("HONEST", [])])
def test_the_same_agents_read_both_pages(tmp_path: Path, page: str, held: list[str]) -> None:
    """Both came from outside; what differs is that one orders something that nobody had named."""
    relay, bank = EXAMPLE.main(tmp_path, lambda _: None, getattr(EXAMPLE, page))
    relay.close()

    assert ([(EXAMPLE.ON_FILE, 420)], held) == (bank.paid, holds(tmp_path))


@pytest.mark.slow
def test_the_demonstration_shows_all_of_it(tmp_path: Path) -> None:
    """From the order in the page to the person who denied it; what it says to try can be tried."""
    done = batonpass_in(tmp_path, "demo", "poisoned", "--keep", str(tmp_path / "kept"))
    commands = re.findall(r"^  batonpass (?!ui$)(.+)$", done.stdout, re.MULTILINE)

    assert (0, "", 4) == (done.returncode, done.stderr, len(commands))
    assert "held        pay DE89370400440532013000 · the page's words are in it" in done.stdout
    assert 'denied      by user:ana: "I know of no such account"' in done.stdout
    assert "0 calls held" in done.stdout
    for command in commands:
        assert 0 == batonpass_in(tmp_path / "kept", *command.split()).returncode, command


@pytest.mark.slow
def test_one_command_traces_the_payment_to_the_page(tmp_path: Path) -> None:
    """From the clerk who was held to the page that the researcher read, for programs."""
    EXAMPLE.main(tmp_path, lambda _: None, EXAMPLE.POISONED)[0].close()
    (way,) = json.loads(batonpass_in(tmp_path, "taint", "clerk", "--json").stdout)
    (tracing,) = json.loads(batonpass_in(tmp_path, "taint", "clerk", "--all", "--json").stdout)
    hops = [hop["way"] for hop in (*way["hops"], *way["since"])]
    (quote,) = way["hops"][-1]["quotes"]
    ((first, last),) = quote["spans"]

    assert ("read_page", [True]) == (way["name"][:9], [hop["quoted"] for hop in way["hops"] if hop["way"] == "held"])
    assert ["read", "reported", "came back", "handed on", "began with", "held", "denied"] == hops
    assert ("argument account", EXAMPLE.ACCOUNT) == (quote["where"], quote["text"][first:last])
    assert (4, {*way}) == (tracing["runs"], {*tracing})


def test_a_story_that_is_not_true_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the bank had moved something else, the demonstration fails."""
    honest = EXAMPLE.main

    def crooked(directory: Path, tell: Callable[[str], None], page: str) -> tuple[Relay, Bank]:
        relay, bank = honest(directory, tell, page)
        bank.paid.append((EXAMPLE.ACCOUNT, 9800))
        return relay, bank

    monkeypatch.setattr(EXAMPLE, "main", crooked)
    monkeypatch.setattr(poisoned_page, "load_example", lambda _: EXAMPLE)
    with pytest.raises(VerificationError, match="please report this"):
        list(play_poisoned(tmp_path))


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(("demo", "support"), id="support"),
        pytest.param(("demo", "sessions"), id="sessions"),
        pytest.param(("demo", "pull-request"), id="pull-request"),
        pytest.param(("demo", "freight"), id="freight"),
        pytest.param(("demo",), id="the main one"),
    ],
)
@pytest.mark.slow
def test_nothing_is_held_in_the_other_stories(tmp_path: Path, story: tuple[str, ...]) -> None:
    """Some of them read what came from outside, and all they do with it goes on."""
    place = tmp_path / "kept"
    assert 0 == batonpass_in(tmp_path, *story, "--keep", str(place)).returncode

    assert [] == holds(place)
