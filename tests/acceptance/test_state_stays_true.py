"""State that stays true: a refuted rate in a tree, and three sessions of a series, acted out and asked about.

The truth is planted by the program. Every answer that a command prints is compared with it.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from batonpass import Brief, Constraint, Decision, Handling, OpenQuestion, RejectedPath, Relay, WorkItem, tool
from batonpass.errors.handoff import TaskInFlightWarning
from batonpass.handoff.live.faces import LiveHandoff
from tests.unit.cli.desk import Desk
from tests.unit.handoff.scripts import a_program

ANA: Final = "user:ana"

write = tool("write_file", target="path", reversible=True)(lambda path, text: f"{path}: {text}")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return where commands are given."""
    return Desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    """Return the relay of the same ledger."""
    with desk.relay() as opened:
        yield opened


class Tree:
    """A tree in which a rate is refuted while some work on it, some have delivered, and some have yet to begin."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.lead = lead = relay.start("Convert the invoices", by=ANA, items=[Constraint("never guess")])
        self.rate = self.find("3", "April")
        with lead.hand_off("adder", "Add it up") as adder:
            adder.report("103")
        lead.attach("style.md", "short")
        self.careless = lead.hand_off("drafter", "Draft it").accept()
        self.careful = lead.hand_off("checker", "Check it").accept()
        self.apart = lead.hand_off("layouter", "Lay it out", brief=Brief(inputs=["style.md"])).accept()
        lead.hand_off("mailer", "Mail it", carrier="worker")

    def find(self, rate: str, month: str) -> LiveHandoff:
        """Let the finder find a rate; the second time, this is its second attempt."""
        handoff = self.lead.hand_off("finder", "Find the rate")
        with handoff as finder:
            finder.attach("rates.csv", rate)
            finder.report(f"{rate} %", decisions=[Decision(f"use the rate of {month}")])
        return handoff

    def refute(self) -> str:
        """Refute the first rate, as a person does while a program calls a tool."""
        self.rate.refute("the rate of May is 2.5 %", by=ANA)
        return "refuted"

    def convert(self) -> Any:  # noqa: ANN401 - JSON
        """Let a program work through the refutation; return what it was told."""
        program = a_program(
            """
            told = ask(type="call", tool="refute")["revisions"]
            ask(type="acknowledge", revision=told[-1]["revision"])
            say({"type": "report", "value": [one["fallen"] for one in told]})
            """,
            tools={"refute": self.refute},
        )
        return self.lead.hand_off("converter", "Convert", run=program).wait().value

    def finish(self) -> bytes:
        """Let everybody deliver; return the rate that the one reads who begins last."""
        for run, result in ((self.careful, "102.50"), (self.careless, "a draft with 103"), (self.apart, "laid out")):
            run.report(result)
            run.close()
        lease = self.relay.claim(holder="here", lease_for=timedelta(minutes=5), agents=["mailer"])
        assert lease is not None
        with self.relay.handoff(lease.handoff).accept(lease=lease) as mailer:
            mailer.report("mailed")
            return mailer.read("rates.csv")


def test_a_refuted_rate_is_known_to_everybody_who_builds_on_it(desk: Desk, relay: Relay) -> None:
    """Who knew, who did not, what is stale, and how much arrived."""
    tree = Tree(relay)
    said = "refuted: user:ana refuted the result of finder, attempt 1: the rate of May is 2.5 %"
    assert f"rates.csv: {said}" in tree.convert()[0]
    tree.find("2.5", "May")
    tree.careful.acknowledge()
    assert (b"2.5", b"2.5") == (tree.careful.read("rates.csv"), tree.finish())

    assert {"adder", "drafter"} == {one["to"] for one in desk.answer("handoff", "list", "--stale")}
    known = {
        agent: [one["awareness"] for one in desk.answer("handoff", "show", agent)["revisions"]]
        for agent in ("checker", "drafter", "layouter", "mailer", "converter")
    }
    assert {
        "checker": ["acknowledged", "acknowledged"],
        "drafter": ["ignored", "ignored"],
        "layouter": [],
        "mailer": ["began-with", "began-with"],
        "converter": ["acknowledged"],
    } == known
    assert "attempt 1 never acknowledged it: its result is stale" in desk.words("handoff", "show", "drafter")
    assert "acknowledged by attempt 1" in desk.words("handoff", "show", "checker")
    assert 2 == desk.words("trail", "last").count("acknowledged")

    above = desk.answer("handoff", "show", "mailer")["fidelity"]
    assert (1.0, 0) == (above["figure"], above["hops"][0]["dropped"])
    bare = tree.lead.hand_off("outsider", "Read it", handling=Handling(carry=[]))
    (hop,) = desk.answer("handoff", "show", bare.id)["fidelity"]["hops"]
    assert (hop["had"] - 2, 2) == (hop["dropped"], hop["passed"]), "only what binds everybody: intent and constraint"
    tree.lead.close()
    desk.words("ledger", "verify")


def test_three_sessions_of_a_series_lose_nothing_and_contradict_in_the_open(desk: Desk, relay: Relay) -> None:
    """What was left undone, rejected, decided twice, in flight and past its date, session by session."""
    threshold = Constraint(key="threshold", operator="<=", value="3", unit="sigma")
    with relay.start("Monday", by=ANA, series="weekly", items=[threshold]) as lead:
        lead.record(
            Decision("include returns", why="Ana wants them"),
            Decision("use the rates of May", conditions=("until 2024-06-30",)),
            RejectedPath("parse the PDF", why="it is a scan"),
            OpenQuestion("is the east complete?"),
        )
        work = lead.hand_off("editor", "Update the dashboards", brief=Brief(expects=["north.json", "south.json"]))
        with work as editor:
            editor.call(write, "north.json", "{}")
            editor.report("done", completed=[WorkItem("both", outputs=("north.json", "south.json"))])
        checked = lead.hand_off("counter", "Count the rows")
        with checked as counter:
            counter.report("118")
        checked.verify(by=ANA, verdict="counted too")
    shown = desk.words("handoff", "show", "editor")
    assert "untouched: south.json should have changed, and no call changed it" in shown
    assert "unrecorded: south.json is said to be made, and no recorded call made it" in shown

    lead = relay.start("Tuesday", by=ANA, series="weekly", agent="deputy")
    assert [("Update the dashboards", ("south.json",))] == [(one.what, one.untouched) for one in lead.session.checks]
    assert ["use the rates of May"] == [one.decision.what for one in lead.session.revisit]
    lead.record(Decision("exclude returns", why="they are booked late"))
    lead.hand_off("counter", "Count the south", carrier="worker")
    del lead  # its process is gone

    state = desk.answer("session", "show", "weekly")
    assert [["exclude returns", "agent:deputy"], ["include returns", "agent:lead"]] == [
        [side["words"], side["by"]] for side in state["contradictions"][0]["sides"]
    ]
    with relay.start("Wednesday", by=ANA, series="weekly") as lead:
        assert ["Count the south"] == [one.task for one in lead.session.in_flight]
        with pytest.warns(TaskInFlightWarning, match="counter has exactly this task of an earlier session already"):
            lead.hand_off("counter", "Count the south")
        told = {item.value.what for item in lead.notes if isinstance(item.value, RejectedPath | WorkItem)}
        assert {"parse the PDF", "Count the rows"} == told
        assert [work.id] == [one.handoff for one in lead.session.checks], "asked again, and not dropped"
        disputed = desk.answer("handoff", "show", lead.hand_off("writer", "Write it up").id)["contradictions"]
        assert [["exclude returns", "include returns"]] == [
            [side["words"] for side in one["sides"]] for one in disputed
        ]
    relay.handoff(work.id).verify(by=ANA, verdict="wrote the south by hand")
    desk.words("session", "prune", "weekly", "include returns", "--by", ANA, "--reason", "the deputy is right")

    state = desk.answer("session", "show", "weekly")
    assert ([], []) == (state["checks"], state["contradictions"])
    kept = {one["value"].get("what") or one["value"].get("text") for one in state["kept"]}
    assert {"exclude returns", "parse the PDF", "Count the rows", "is the east complete?"} <= kept
    assert "include returns" not in kept
    desk.words("ledger", "verify")
