"""What calls changed besides files, as blame, why, the trail and a handoff's screen tell it."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from batonpass import Grant
from batonpass.accounts.blame.other_blame import blame_effect
from batonpass.accounts.handoff.account import read_account
from batonpass.accounts.trail.receipt_lines import tell
from batonpass.accounts.why.constraint_checks import find_way
from batonpass.accounts.why.why import explain
from batonpass.accounts.why.why_values import Why
from batonpass.cli.handoff.handoff_screen import effect_rows
from batonpass.errors import NotFoundError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.call_context import current_call
from batonpass.handoff.tools.declaration import tool
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, receipts
from tests.unit.handoff.repositories import repository

ORDERS = "https://shop.example/orders"


@tool("order")
def order(number: int) -> dict[str, int]:
    """Send an order, and say so."""
    call = current_call()
    assert call is not None
    call.effect("http", ORDERS, how="POST")
    call.effect("message", "ana@example.org", count=number)
    if number == 0:
        raise ConnectionError("gone")
    return {"orders": number}


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """Return a relay in a repository; all that was recorded is verified."""
    monkeypatch.chdir(repository(tmp_path / "work"))
    with Relay.open("memory:") as opened:
        yield opened
        opened.verify()


def editor_of(relay: Relay) -> LiveRun:
    """Return a run under a grant, with a parent that delegates it."""
    lead = relay.start("Ship it", by=ANA, grant=Grant(may_delegate=["call:order", "run:*", "write:src/**"]))
    return lead.hand_off("editor", "Order", may=["call:order", "run:sh", "write:src/a.py"]).accept()


def why(relay: Relay, number: int = 0) -> Why:
    """Return why a call was made."""
    with relay.store.view() as view:
        return explain(view, receipts(relay, Kind.TOOL_REQUESTED)[number].id)


def facts(answer: Why, label: str) -> list[str]:
    """Return the facts of one kind."""
    return [fact.text for fact in answer.facts if fact.label == label]


class TestBlame:
    """Who changed it, by a call or by its target."""

    def test_a_target_names_all_who_changed_it(self, relay: Relay) -> None:
        """The latest first, also a call that failed afterwards; another target is another question."""
        editor = editor_of(relay)
        editor.call(order, 2)
        with pytest.raises(ConnectionError):
            editor.call(order, 0)
        with relay.store.view() as view:
            found, other = blame_effect(view, ORDERS), blame_effect(view, "ana@example.org")

        asked = [receipt.body.call for receipt in receipts(relay, Kind.TOOL_REQUESTED)]  # type: ignore[union-attr]
        assert asked[::-1] == list(found.calls)
        assert [f"http POST {ORDERS}"] * 2 == [note.partition(": ")[2] for note in found.notes]
        assert ["message ana@example.org (0)", "message ana@example.org (2)"] == [
            note.partition(": ")[2] for note in other.notes
        ]

    def test_what_nobody_changed_is_not_found(self, relay: Relay) -> None:
        """The end of an id, as before, or a whole target."""
        editor_of(relay).call(order, 1)
        with relay.store.view() as view, pytest.raises(NotFoundError):
            blame_effect(view, ORDERS[:-1])

    def test_a_call_tells_its_effects(self, relay: Relay) -> None:
        """Erased words are said to be gone; that there was an effect, and of which kind, stays."""
        editor_of(relay).call(order, 1)
        (done,) = receipts(relay, Kind.TOOL_COMPLETED)
        relay.admin.erase([done.content["effect.1"].id], by=ANA, reason="asked to")
        with relay.store.view() as view:
            blame = blame_effect(view, done.id)

        assert ("http erased", "message ana@example.org (1)") == blame.notes


class TestTelling:
    """Why, the trail and the account say the same."""

    def test_why_names_the_permits_and_the_end(self, relay: Relay) -> None:
        """Of each hop the permit that let it, then how it ended and what it changed."""
        editor = editor_of(relay)
        editor.call(order, 1)
        editor.shell(["sh", "-c", "exit 3"])

        assert ["editor may call:order", "lead may delegate call:order"] == facts(why(relay), "permit")
        assert [f"http POST {ORDERS}", "message ana@example.org (1)"] == facts(why(relay), "effect")
        assert ["completed", "completed · exit code 3"] == [
            text for number in (0, 1) for text in facts(why(relay, number), "outcome")
        ]

    def test_the_trail_counts_kinds(self, relay: Relay) -> None:
        """With the call, as well as how its command ended; and what no call did, where the run ends."""
        editor = editor_of(relay)
        editor.call(order, 1)
        editor.shell(["sh", "-c", "exit 3"])
        Path("src/b.py").write_text("by nobody", encoding="utf-8")
        editor.close()
        trail = relay.trail(editor.id)
        lines = [str(line) for event in trail.runs[editor.id].events for line in tell(trail, event)]

        assert [True] * 3 == [
            any(part in line for line in lines)
            for part in ("effect: http · effect: message", "exit code 3", "changes.unexplained")
        ]

    def test_the_screen_of_a_handoff_lists_them(self, relay: Relay) -> None:
        """Each effect once, and the files that changed without any call."""
        editor = editor_of(relay)
        editor.call(order, 1)
        editor.call(order, 1)
        for name in "bcde":
            Path(f"src/{name}.py").write_text("by nobody", encoding="utf-8")
        editor.close()
        with relay.store.view() as view:
            (handoff,) = view.find_handoffs()
            account = read_account(view, handoff)

        assert [
            f"http POST {ORDERS} ×2",
            "message ana@example.org (1) ×2",
            "unexplained: src/b.py, src/c.py, src/d.py and 1 more: no recorded call changed 4 files",
        ] == [click.unstyle("".join(map(str, row))) for row in effect_rows(account)]
        assert [True, True] == [(call.record.took_us or 0) > 0 for call in account.calls]

    def test_a_constraint_on_what_a_call_returned_is_followed(self, relay: Relay) -> None:
        """Where it was checked, and whether it held."""
        limit = Constraint(key="orders", operator="<=", value="1", binds_to="returned:order.orders")
        lead = relay.start("Ship it", by=ANA)
        lead.record(limit)
        for number in (1, 2):
            lead.call(order, number)
        with relay.store.view() as view:
            way = list(find_way(view, view.get_run(lead.id), limit))

        assert [("what a call returned", True), ("what a call returned", False)] == [
            (checked.where, checked.holds) for checked in way
        ]
