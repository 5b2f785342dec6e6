"""`batonpass why`: the answer first, then what it rests on, then hop by hop up to the human."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass import Grant
from batonpass.errors import OutsideGrantError
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay, recording_of
from tests.unit.accounts.trees import find, tried
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoffs import a_desk, tell
from tests.unit.handoff.places import bodies
from tests.unit.handoff.repositories import repository

SIGMA = Constraint(key="threshold", operator="<=", value="3", unit="sigma", binds_to="call:find.threshold")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


def test_the_first_line_is_the_answer(desk: Desk, relay: Relay) -> None:
    """A denied call: the constraint, what was tried, who set it, and which hop carried it."""
    lead = relay.start("Find what is off", by="user:ana", items=[SIGMA], mode="enforced")
    finder = lead.hand_off("finder", "Find it", may=["call:*"]).accept()
    tried(lambda: finder.call(find, 4))
    lines = desk.words("why", "last").splitlines()
    ends = [run.id[-4:] for run in (lead, finder)]
    rest = "enforced; the constraint was carried here; approval: none needed"

    assert (
        f'denied: finder {ends[1]} must keep to "threshold <= 3 sigma", tried find, '
        "where 'threshold' is 4; user:ana set it" == lines[0]
    )
    assert [
        "hop by hop",
        f"  finder {ends[1]}  may call:* (granted by lead {ends[0]} for user:ana); {rest}",
        f"  lead {ends[0]}    enforced; no grant is recorded",
        '  user:ana     "Find what is off"',
    ] == lines[4:8]
    assert "enforced · rule constraint" in lines[-1]


def test_programs_get_facts(desk: Desk, relay: Relay) -> None:
    """The verdict, the rule, receipts for everything, and every hop."""
    told = tell(relay)
    answer = desk.answer("why", told.drafter.id)

    assert ("allowed", "handoff", told.drafter.id, "observed", None) == tuple(
        answer[name] for name in ("verdict", "kind", "id", "mode", "rule")
    )
    assert [[], []] == [hop["may"] for hop in answer["hops"]]
    assert ["offered", "flagged", "missing", "accepted"] == [fact["label"] for fact in answer["facts"]]
    assert ("user:ana", "Fix invoice rounding") == (answer["principal"], answer["intent"]["text"])


def test_what_is_gone_is_not_made_up(desk: Desk, relay: Relay) -> None:
    """Terms whose words were erased are said to be no longer here."""
    told = tell(relay)
    offer = desk.answer("why", told.drafter.id)["receipt"]
    desk.words("ledger", "erase", offer, "--reason", "they asked", "--yes")

    assert "may: the words are no longer here" in desk.words("why", told.drafter.id)


def test_a_relay_receipt_has_no_hops(desk: Desk, relay: Relay) -> None:
    """Nothing was asked for, and that is the answer."""
    tell(relay)
    enrolled = desk.words("receipt", "grep", "relay.enrolled", "--kind", "relay.enrolled", "--json")
    receipt = enrolled.partition('"receipt": "')[2].partition('"')[0]
    lines = desk.words("why", receipt).splitlines()

    assert (True, False) == (
        lines[0].startswith("recorded: relay.enrolled; nothing was requested"),
        "hop by hop" in lines,
    )


@pytest.mark.parametrize("given", ["nobody", "last"])
def test_nothing_there(desk: Desk, relay: Relay, given: str) -> None:
    """Exit code 1, and what was looked for."""
    assert recording_of(relay) is not None
    done = desk.run("why", given)

    assert (1, True) == (done.exit_code, done.stderr.startswith("batonpass: no call"))


def test_a_line_of_a_file_is_for_blame(desk: Desk) -> None:
    """It is no id, and which command answers is said."""
    done = desk.run("why", "src/a.py:12")

    assert (2, True) == (done.exit_code, "'src/a.py:12' is a line of a file: `batonpass blame`" in done.stderr)


@pytest.mark.parametrize("command", ["why", "trail"])
def test_what_is_not_there_leads_to_what_is(desk: Desk, command: str) -> None:
    """As with `run show`."""
    with desk.relay() as relay:
        relay.start("Fix it", by="user:ana")

    assert re.search("`batonpass run list` lists? all", desk.run(command, "nope").stderr)


def test_a_narrow_terminal_gets_every_word(desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer, what it rests on and each hop go on in the next line; a word that has no room is broken."""
    monkeypatch.setattr("batonpass.cli.output.terminal.is_terminal", lambda: True)
    lead = relay.start("Find what is off in the books of the north", by="user:ana", mode="enforced", items=[SIGMA])
    finder = lead.hand_off("finder", "Find it", may=["call:*"]).accept()
    tried(lambda: finder.call(find, 4))
    monkeypatch.setenv("COLUMNS", "1000")
    wide = desk.words("why", "last")
    monkeypatch.setenv("COLUMNS", "40")
    narrow = desk.words("why", "last")

    assert "…" not in narrow
    assert wide.split() == narrow.split()
    assert all(len(line) <= 40 for line in narrow.splitlines()[:-1])  # ids stand in the last
    assert narrow.startswith("denied: finder")


def test_a_command_that_wrote_too_much_was_not_just_allowed(desk: Desk, tmp_path: Path) -> None:
    """Of the run, the handoff and the call: what was granted was exceeded, by which files; tried out, it is told."""
    place = repository(tmp_path / "work")
    with Relay.open(f"sqlite:///{desk.ledger}", home=desk.ledger.parent, work_tree=place) as relay:
        for mode in ("enforced", "observed"):
            lead = relay.start("Tidy up", by="user:ana", grant=Grant(may_delegate=["run:sh"]), mode=mode)
            child = lead.hand_off("tidier", f"Tidy up, {mode}", may=["run:sh"]).accept()
            try:
                child.shell(["sh", "-c", "echo tidy > list.txt"], cwd=place)
                child.close()
            except OutsideGrantError as error:
                child.fail(error)
            (place / "list.txt").unlink()
            call = bodies(relay, Kind.TOOL_REQUESTED)[-1].call
            told = [desk.answer("why", one) for one in (child.id, child._holding.scope, call)]
            verdict = "exceeded" if mode == "enforced" else "allowed"

            assert [verdict] * 3 == [one["verdict"] for one in told]
            assert all("list.txt" in str(one["facts"]) for one in told)
            tried_out = "its grant is only tried out, so nothing was enforced"
            assert [mode == "observed"] * 3 == [tried_out in one["answer"] for one in told]
