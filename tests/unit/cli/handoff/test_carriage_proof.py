"""`batonpass handoff show --proof`: whether what binds everybody arrived, and how receipts show it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass import Handling
from batonpass.audit.carriage import prove_carriage
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.runtime.run_state import MOST_CARRIED
from batonpass.handoff.transfer.attempt_receipts import Acceptance
from batonpass.model.base.ids import AgentId, Digest, new_handoff_id
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Constraint, Decision, Exclusion
from batonpass.model.bodies.body import HandoffInitiated, Part
from batonpass.model.ledger.content import new_content
from batonpass.relay import Relay, recording_of
from batonpass.testing.clock import NOON
from batonpass.testing.plain_acts import plainly
from tests.unit.cli.desk import Desk, record_in
from tests.unit.cli.handoffs import a_desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


def descend(relay: Relay, *, hops: int) -> LiveRun:
    """Hand off from one to the next, the last time to an editor; return the lead."""
    lead = relay.start("Fix\nplease", by="user:ana", items=[Constraint("never touch the API"), Exclusion("payroll")])
    run = lead
    for hop in range(1, hops):
        run = run.hand_off(f"agent-{hop}", "further").accept()
    run.hand_off("editor", "Edit")
    return lead


def forge_loss(relay: Relay, run: LiveRun) -> None:
    """Record an offer to an editor that leaves out the constraint."""
    honest = run.hand_off("honest", "as it should be").id
    with relay.store.view() as view:
        carried = prove_carriage(view, view.get_handoff(honest)).hops[-1].carried
    body = HandoffInitiated(
        handoff=new_handoff_id(NOON),
        run=run.id,
        to=AgentId("editor"),
        carrier=Carrier.CALLER,
        state=State.OFFERED,
        carries=tuple(item for item in carried if item.part is not Part.CONSTRAINT),
    )
    recording_of(relay).record(run._holding.working, body, (new_content("task", "forged", NOON),))


def proof(desk: Desk) -> list[str]:
    return desk.words("handoff", "show", "editor", "--proof").splitlines()


def test_a_whole_way_is_proven(desk: Desk, relay: Relay) -> None:
    """Each hop names its offer and how many items are as they were; the last line is the verdict."""
    descend(relay, hops=2)
    lines = proof(desk)

    assert ["hop", "from", "to", "offer", "items", "same", "accepted", "on", "the", "way"] == lines[0].split()
    assert re.fullmatch(r"1    lead \w{4}     agent-1  \w{6}  3      3     \w{6}", lines[1].rstrip())
    assert re.fullmatch(r"2    agent-1 \w{4}  editor   \w{6}  3      3     not yet", lines[2].rstrip())
    assert "whole: 3 items over 2 hops, byte for byte" == lines[-1]


def test_items_are_listed_with_their_words(desk: Desk, relay: Relay) -> None:
    """Each item has its digest, who recorded it in which receipt, and what it says."""
    descend(relay, hops=2)
    lines = proof(desk)
    items = lines[lines.index("items") + 1 : lines.index("items") + 4]

    assert [("intent", "Fix…"), ("constraint", "never touch the API"), ("exclusion", "payroll")] == [
        found.groups()
        for line in items
        if (found := re.fullmatch(r'  (\w+) +\w{6}  [0-9a-f]{12}  user:ana · \w{6}  "(.*)"', line))
    ]


def test_a_lost_constraint_is_named(desk: Desk, relay: Relay) -> None:
    """An offer that drops a constraint exits with 1, and says what was lost where."""
    lead = relay.start("Fix", by="user:ana", items=[Constraint("never touch the API")])
    forge_loss(relay, lead.hand_off("planner", "Plan").accept())
    done = desk.run("handoff", "show", "editor", "--proof")
    lines = done.stdout.splitlines()

    assert (1, "", True) == (done.exit_code, done.stderr, lines[2].endswith("lost!"))
    assert re.fullmatch(
        r'not whole: constraint \w{6} "never touch the API" was lost at hop 2, '
        r"where planner \w{4} handed off to editor \(receipt \w{6}\)",
        lines[-1],
    )


def test_programs_get_the_finding(desk: Desk, relay: Relay) -> None:
    """JSON says whether it is whole, each hop with all its items, and each finding with its receipt."""
    lead = relay.start("Fix", by="user:ana", items=[Constraint("never touch the API")])
    forge_loss(relay, lead.hand_off("planner", "Plan").accept())
    done = desk.run("handoff", "show", "editor", "--proof", "--json")
    answer = desk.answer("handoff", "show", "editor", "--proof")

    assert (1, False, [("lost", 2, "constraint")], [2, 1]) == (
        done.exit_code,
        answer["whole"],
        [(finding["fault"], finding["hop"], finding["item"]["part"]) for finding in answer["findings"]],
        [len(hop["items"]) for hop in answer["hops"]],
    )
    assert [("Fix", True), ("never touch the API", False)] == [
        (item["text"], item["arrived"]) for item in answer["items"]
    ]


def test_a_baton_that_nobody_signed_for_is_named(desk: Desk, relay: Relay) -> None:
    """A receiver that accepted something else is a finding of its own."""
    handoff = relay.start("Fix", by="user:ana").hand_off("editor", "Edit")
    plainly(recording_of(relay)).accept(handoff.id, acceptance=Acceptance(baton=Digest("0" * 64)))
    done = desk.run("handoff", "show", "editor", "--proof")

    assert (1, True) == (
        done.exit_code,
        "editor accepted a baton that differs from the offered one at hop 1" in done.stdout,
    )


def test_a_handoff_without_its_intent_is_not_whole(tmp_path: Path) -> None:
    """An offer of the lowest level carries nothing, and the human's words are missed."""
    done = record_in(tmp_path).run("handoff", "show", "editor", "--proof")

    assert (1, True) == (done.exit_code, '"Fix invoice rounding" was lost at hop 1' in done.stdout)


def test_what_was_added_relaxed_and_said_later_is_shown(desk: Desk, relay: Relay) -> None:
    """Everything that differs from hop to hop says where, and by whom."""
    lead = relay.start("Fix", by="user:ana", items=[Constraint("never touch the API")])
    planner = lead.hand_off("planner", "Plan", items=[Constraint("below 100 lines")]).accept()
    lead.add_intent("Credit notes too")
    planner.relax(
        next(item for item in planner.notes if item.by == "user:ana" and item.part is Part.CONSTRAINT),
        by="user:ana",
        reason="it is ours now",
    )
    planner.hand_off("editor", "Edit")
    lead.add_intent("And quickly")
    lines = proof(desk)

    assert ("+1 constraint", "+1 statement -1 constraint relaxed") == (
        lines[1].partition("  +")[1].strip() + lines[1].partition("  +")[2],
        lines[2].partition("  +")[1].strip() + lines[2].partition("  +")[2],
    )
    assert re.fullmatch(
        r'  hop 2: constraint \w{6} "never touch the API" by user:ana · receipt \w{6}',
        lines[lines.index("relaxed") + 1],
    )
    assert lines[lines.index("recorded later or elsewhere, and not carried") + 1].endswith('"And quickly"')
    assert "whole: 3 items over 2 hops, byte for byte" == lines[-1]


def test_erased_words_are_said_to_be_erased(desk: Desk, relay: Relay) -> None:
    """The way is proven by ids and digests; the words are gone."""
    descend(relay, hops=3)
    content = desk.answer("handoff", "show", "editor", "--proof")["items"][1]["id"]
    desk.words("ledger", "erase", content, "--reason", "privacy", "--yes")
    lines = proof(desk)

    assert "text erased" == lines[lines.index("items") + 2].split("  ")[-1]
    assert "whole: 3 items over 3 hops, byte for byte; the text of 1 is no longer here, only the digest" == lines[-1]


def test_a_very_long_way_fits_the_screen(desk: Desk, relay: Relay) -> None:
    """The hops in the middle are left out, and that is said; JSON has all."""
    descend(relay, hops=40)
    lines = proof(desk)

    assert ("whole: 3 items over 40 hops, byte for byte", True) == (lines[-1], len(lines) <= 45)
    assert "… 10 hops in between are not shown; --json has all" in lines
    assert 40 == len(desk.answer("handoff", "show", "editor", "--proof")["hops"])


def test_what_was_left_behind_is_named(desk: Desk, relay: Relay) -> None:
    """A decision and a file that a caller chose not to carry: what binds arrived, and whole is not said."""
    lead = relay.start("Fix", by="user:ana", items=[Constraint("never touch the API")])
    lead.record(Decision("round half-even", why="tax office"))
    lead.attach("rates.csv", b"1,2")
    lead.hand_off("editor", "Edit", handling=Handling(carry=[])).accept().hand_off("below", "Further")
    done = desk.run("handoff", "show", "editor", "--proof")
    facts = desk.answer("handoff", "show", "below", "--proof")
    left = [line for line in done.stdout.splitlines() if line.startswith("left behind at hop 1: ")]

    assert (0, False) == (done.exit_code, "whole" in done.stdout)
    assert "all that is binding arrived: 2 items over 1 hop, byte for byte" in done.stdout
    assert [True, True] == [f"lead {lead.id[-4:]} did not hand it on to editor, by its choice" in line for line in left]
    assert [True, True] == [words in line for words, line in zip(("round half-even", "rates.csv"), left, strict=True)]
    assert (True, False) == (facts["binds"], facts["whole"])
    assert [("decision", 1, lead.id, True), ("artifact", 1, lead.id, True)] == [
        (each["part"], each["hop"], each["by"], each["chosen"]) for each in facts["left"]
    ]


def test_a_middleman_who_leaves_something_is_named(desk: Desk, relay: Relay) -> None:
    """It is told at the hop where it stayed, once, and not as the choice of whoever recorded it."""
    lead = relay.start("Fix", by="user:ana")
    lead.record(Decision("round half-even", why="tax office"))
    middle = lead.hand_off("middle", "Pass it on").accept()
    middle.hand_off("editor", "Edit", handling=Handling(carry=[]))
    facts = desk.answer("handoff", "show", "editor", "--proof")

    assert [("decision", 2, middle.id)] == [(each["part"], each["hop"], each["by"]) for each in facts["left"]]


def test_what_there_was_no_room_for_is_nobodys_choice(desk: Desk, relay: Relay) -> None:
    """More than travels by itself: the older ones stay, and that is said."""
    lead = relay.start("Fix", by="user:ana")
    lead.record(*(Decision(f"decision {number}") for number in range(MOST_CARRIED + 1)))
    lead.hand_off("editor", "Edit")
    done = desk.run("handoff", "show", "editor", "--proof")

    assert "did not hand it on to editor, because there were too many" in done.stdout
    assert [False] == [each["chosen"] for each in desk.answer("handoff", "show", "editor", "--proof")["left"]]


def test_one_figure_says_how_much_arrived(desk: Desk, relay: Relay) -> None:
    """Of all that existed on the way: what the lead had, what its children gave, and what the middleman recorded."""
    lead = relay.start("Fix", by="user:ana", items=[Constraint("never touch the API")])
    (kept, _) = lead.record(Decision("round half-even"), Decision("no floats"))
    with lead.hand_off("finder", "Find the rate") as finder:
        finder.attach("rates.csv", b"1,2")
        finder.report("found")
    editor = lead.hand_off("editor", "Edit", handling=Handling(carry=[kept])).accept()
    editor.record(Decision("tabs"))
    editor.hand_off("below", "Further")
    facts = desk.answer("handoff", "show", "below")["fidelity"]

    assert (7, 4, 0.571) == (facts["upstream"], facts["arrived"], facts["figure"])
    assert [(6, 3, 3, 0, 0.5), (4, 4, 0, 0, 1.0)] == [
        (hop["had"], hop["passed"], hop["dropped"], hop["abridged"], hop["figure"]) for hop in facts["hops"]
    ]
    assert "57 %: 4 of 7 items upstream · hop 1 dropped 3" in desk.run("handoff", "show", "below").stdout
    assert facts == desk.answer("handoff", "show", "below", "--proof")["fidelity"]


def test_what_was_abridged_is_counted_apart(desk: Desk, relay: Relay) -> None:
    """Nobody chose to drop it; it is missing all the same."""
    lead = relay.start("Fix", by="user:ana")
    lead.record(*(Decision(f"decision {number}") for number in range(MOST_CARRIED + 3)))
    lead.hand_off("editor", "Edit")
    facts = desk.answer("handoff", "show", "editor")["fidelity"]

    assert [(0, 3)] == [(hop["dropped"], hop["abridged"]) for hop in facts["hops"]]
    assert "98 %" in desk.run("handoff", "show", "editor").stdout


def test_what_was_relaxed_is_no_loss(desk: Desk, relay: Relay) -> None:
    """Whoever is entitled to it released everybody from it."""
    lead = relay.start("Fix", by="user:ana")
    (item,) = lead.record(Constraint("never touch the API"), by="user:ana")
    lead.relax(item, by="user:ana", reason="it is ours now")
    lead.hand_off("editor", "Edit")

    assert 1.0 == desk.answer("handoff", "show", "editor")["fidelity"]["figure"]


def test_a_lost_constraint_lowers_the_figure(desk: Desk, relay: Relay) -> None:
    """What binds counts like everything else."""
    lead = descend(relay, hops=1)
    forge_loss(relay, lead)
    with relay.store.view() as view:
        *_, forged = view.find_handoffs(to=AgentId("editor"))
    facts = desk.answer("handoff", "show", str(forged.id))["fidelity"]

    assert (3, 2) == (facts["upstream"], facts["arrived"])
