"""`batonpass handoff show`: which permit each call used, what went beyond its grant, and what would be enough."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass import Grant
from batonpass.handoff.tools.declaration import tool
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoff.test_command import section
from tests.unit.cli.handoffs import a_desk
from tests.unit.handoff.places import receipts

ANA = "user:ana"
write = tool("write_file", target="path")(lambda path: path)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


def shown(desk: Desk, agent: str = "editor") -> list[list[str]]:
    """Return what the screen says of what was used, not used, and would have been enough."""
    sheet = desk.words("handoff", "show", agent)
    return [section(sheet, label) if f"\n{label} " in sheet else [] for label in ("used", "unused", "enough")]


def scope(desk: Desk, agent: str = "editor") -> Any:  # noqa: ANN401 - a document
    """Return the same for programs."""
    return desk.answer("handoff", "show", agent)["scope"]


def test_each_call_says_by_which_permit_it_was_made(desk: Desk, relay: Relay) -> None:
    """Two permits that let calls be made are told apart; the one that let none be made is unused."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["*:**"]))
    with lead.hand_off("editor", "Edit", may=["write:src/**", "write:docs/**; at most 2 calls", "read:**"]) as editor:
        for path in ("src/a.py", "docs/a.md", "docs/a.md"):
            editor.call(write, path)

    limited = "write:docs/**; at most 2 calls"
    assert [
        ["write_file src/a.py · by write:src/**", f"write_file docs/a.md ×2 · by {limited}"],
        ["read:**"],
        ["write:docs/a.md; at most 2 calls (2 calls), write:src/a.py (1 call)"],
    ] == shown(desk)
    assert [("write:src/**", False), (limited, False), (limited, False)] == [
        (call["permit"], call["beyond"]) for call in scope(desk)["used"]
    ]
    assert ["read:**"] == scope(desk)["enough"]["unused"]


def test_what_goes_beyond_a_grant_that_is_tried_out_is_marked(desk: Desk, relay: Relay) -> None:
    """Its offer says why it would have been refused, its calls which of them would have been; enough covers all."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**"]), mode="observed")
    with lead.hand_off("editor", "Edit", may=["write:**"]) as editor:
        editor.call(write, "src/a.py")
        editor.call(write, "b.py")
    sheet = desk.words("handoff", "show", "editor")

    assert [
        ["write_file src/a.py · by write:src/**", "write_file b.py · beyond the grant"],
        [],
        ["write:src/a.py (1 call)", "beyond the grant: write:b.py (1 call)"],
    ] == shown(desk)
    assert "offer: would_deny.grant: lead cannot give may write:**: it may delegate write:src/**" in sheet
    enough = scope(desk)["enough"]
    assert ({"write:src/a.py": 1}, {"write:b.py": 1}, 0) == (enough["least"], enough["beyond"], enough["unnamed"])
    policy = desk.answer("handoff", "show", "editor")["policy"]["offer"]
    assert "would_deny.grant" in policy["flags"]
    assert "lead cannot give" in policy["reason"]["text"]
    why = desk.words("why", "editor")
    assert "would have been refused: lead cannot give may write:**" in why


@pytest.mark.parametrize(
    ("granted", "mode"),
    [
        pytest.param({}, "enforced", id="an observed run gives a grant: it is enforced from there on"),
        pytest.param({"grant": Grant(may_delegate=["write:src/**"]), "mode": "observed"}, "observed", id="tried out"),
    ],
)
def test_every_answer_has_the_mode_of_the_receiver(
    desk: Desk, relay: Relay, granted: dict[str, Any], mode: str
) -> None:
    """The offer is recorded by the sender, whose own mode may be another one."""
    with relay.start("Fix it", by=ANA, **granted) as lead, lead.hand_off("editor", "Edit", may=["write:src/**"]):
        pass
    trail = desk.answer("trail", lead.id)

    assert [mode] * 4 == [
        section(desk.words("handoff", "show", "editor"), "how")[0].rpartition(" · ")[2],
        desk.answer("handoff", "show", "editor")["mode"],
        *(one["mode"] for one in trail["handoffs"]),
        desk.answer("grant", "show", "editor")["mode"],
    ]


def test_who_was_given_nothing_is_told_against_all_that_could_have_been_given(desk: Desk, relay: Relay) -> None:
    """There are no terms, and yet it says what of its calls went beyond, and why that was tried at all."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**"]), mode="observed")
    with lead.hand_off("editor", "Edit") as editor:
        editor.call(write, "b.py")

    assert [
        ["write_file b.py · beyond the grant"],
        ["write:src/**"],
        ["beyond the grant: write:b.py (1 call)"],
    ] == shown(desk)
    assert "it has no grant: its calls were compared with the rights above it" in desk.words("why", "editor")


def test_what_an_earlier_attempt_did_counts_as_used(desk: Desk, relay: Relay) -> None:
    """The next attempt keeps what is finished and says nothing of it: both together are what was used."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
    handoff = lead.hand_off("editor", "Edit", may=["write:src/**", "write:docs/**"])
    first = handoff.accept()
    first.call(write, "src/a.py")
    first.fail(ConnectionError("gone"))
    handoff.retry()
    again = handoff.accept()
    again.call(write, "src/a.py")
    again.close()

    assert [["write_file src/a.py · by write:src/**"], ["write:docs/**"], ["write:src/a.py (1 call)"]] == shown(desk)


def test_what_no_permit_can_name_is_said_and_not_left_out(desk: Desk, relay: Relay) -> None:
    """A name that others read differently, a pattern, and one that mixes alphabets stand in no grant."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**"]), mode="observed")
    with lead.hand_off("editor", "Edit", may=["write:src/**"]) as editor:
        for path in ("src/a\u202eb", "b*", "sr\u0441/a.py"):
            editor.call(write, path)

    used, _, enough = shown(desk)
    assert 3 == len(used) == sum(line.endswith(" · beyond the grant") for line in used)
    assert ["not covered: 3 calls that no permit can name"] == enough
    assert 3 == scope(desk)["enough"]["unnamed"]


@pytest.mark.slow
def test_more_places_than_a_grant_holds_are_not_nothing(desk: Desk, relay: Relay) -> None:
    """Three hundred files at the top have no directory that could stand for them: as many as fit, and the rest."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:*"]))
    with lead.hand_off("editor", "Edit", may=["write:*"]) as editor:
        for number in range(300):
            editor.call(write, f"f{number}")

    fitting, rest = shown(desk)[2]

    assert fitting.startswith("write:f0 (1 call), write:f1 (1 call), ")
    assert "not covered: 44 calls that no permit can name" == rest


def test_a_permit_whose_words_were_erased_is_not_made_up(desk: Desk, relay: Relay) -> None:
    """The call stays, and no permit is named for it."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
    with lead.hand_off("editor", "Edit", may=["write:src/**"]) as editor:
        editor.call(write, "src/a.py")
    call = desk.answer("handoff", "show", "editor")["scope"]["used"][0]
    (requested,) = receipts(relay, Kind.TOOL_REQUESTED)
    relay.admin.erase([requested.content["permit"].id], by=ANA, reason="asked to")

    assert "write:src/**" == call["permit"]
    assert ["write_file src/a.py"] == shown(desk)[0]
    assert scope(desk)["used"][0]["permit"] is None


def test_who_gave_a_grant_is_the_same_everywhere(desk: Desk, relay: Relay) -> None:
    """A run without a grant begins one for its principal; with one, it gives of its own."""
    planner = relay.start("Plan it", by=ANA, agent="planner")
    editor = planner.hand_off(
        "editor", "Edit", grant=Grant(may=["write:src/**"], may_delegate=["write:src/**"])
    ).accept()
    editor.hand_off("helper", "Help", may=["write:src/a.py"]).accept()
    told = {
        name: [
            re.sub(r"planner \w{4}|editor \w{4}", lambda found: found[0].split()[0], found)
            for command in (("handoff", "show"), ("why",), ("grant", "show"))
            for found in re.findall(r"granted by ([^·;)\n]+?)(?: ·|\)|;|$)", desk.words(*command, name), re.MULTILINE)
        ]
        for name in ("editor", "helper")
    }

    begun = "planner for user:ana"
    assert {"editor": [begun] * 3, "helper": ["editor", "editor", begun, begun, "editor"]} == told
    assert ["planner", "editor"] == [hop["granted_by"] for hop in desk.answer("grant", "show", "helper")["chain"]]
