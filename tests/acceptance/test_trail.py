"""Trail and why as people use them: on the ledger that the demonstration leaves, and on every store."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass import Brief
from batonpass.accounts.trail.trail import read_trail
from batonpass.accounts.trail.trail_html import render_html
from batonpass.accounts.trail.trail_mermaid import render_mermaid
from batonpass.accounts.trail.trail_text import render_text
from batonpass.accounts.why.why import explain
from batonpass.demo.story import play
from batonpass.handoff.live.faces import LiveRun
from batonpass.relay import Relay
from tests.unit.cli.desk import Desk
from tests.unit.handoff.places import ANA, STORES, Disk, Places, places_at


@pytest.fixture(params=STORES)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Return a ledger, which is verified after every scenario."""
    places = places_at(request, tmp_path)
    yield places
    places.close()


def told(relay: Relay, lead: LiveRun) -> list[str]:
    """Return the trail without times and ids."""
    with relay.store.view() as view:
        trail = read_trail(view, lead.id)
    rows = ["".join((row.tree, *(part.text for part in row.parts))).rstrip() for row in render_text(trail)]
    known = "|".join(known[-4:] for known in (*trail.runs, *trail.handoffs))
    return [re.sub(r"\d+(?:\.\d+)?m?s\b", "T", re.sub(rf" (?:{known})\b", " ID", row)) for row in rows]


def test_every_store_tells_the_same(places: Places) -> None:
    """A held handoff that fails once, is tried again and verified, reads the same wherever it was recorded."""
    relay, disk = places.relay(), Disk()
    lead = relay.start("Fix rounding", by=ANA)
    handoff = lead.hand_off("editor", "Round half-even", may=["write:**"], hold=True, brief=Brief(none=["constraint"]))
    handoff.approve(by=ANA, reason="fine")
    first = handoff.accept()
    first.call(disk.write, "a.py", "one")
    first.fail(ConnectionError("the model is gone"))
    handoff.retry(by=ANA)
    second = handoff.accept()
    second.call(disk.write, "a.py", "one")
    second.report("it rounds half-even")
    second.close()
    handoff.verify(by=ANA, check=lambda: True)
    lead.close()

    lines = told(relay, lead)
    with relay.store.view() as view:
        why = explain(view, handoff.id)

    assert [
        'user:ana: "Fix rounding"',
        "└─ lead ID  completed  T",
        '   └─ editor ID  verified  "Round half-even"',
    ] == lines[:3]
    assert [
        '      │  approved by user:ana · unproven · "fine"',
        "      ├─ editor ID  failed  T  attempt 1",
        "      │     write a.py · completed T · kept: editor ID did not make it again",
        '      │     failed · connection · "ConnectionError: the model is gone" · effects: 1',
        "      │  retried by user:ana",
        "      └─ editor ID  completed  T  attempt 2",
        '            completed "it rounds half-even" · kept 1 of earlier attempts',
    ] == [line for line in lines[4:] if "validation found" not in line][:7]
    assert f"allowed: user:ana approved editor {handoff.id[-4:]} (unproven: no approver's key signed)" == why.sentence


@pytest.mark.slow
def test_the_demonstration_leaves_a_trail(tmp_path: Path) -> None:
    """The killed drafter, the lapse, the next attempt and the verdict can be read, drawn and opened as a page."""
    for _ in play(tmp_path):
        pass
    desk = Desk(tmp_path)
    lines = desk.words("trail", "analyst", "--whole")
    with desk.relay() as relay, relay.store.view() as view:
        root = next(run for run in view.find_runs() if run.parent is None and run.principal == ANA)
        trail = read_trail(view, root.id)

    for words in (
        'user:ana: "What stood out in the third quarter?"',
        "lapsed attempt 1 · its worker was gone",
        "kept: drafter",
        "verified by user:ana · check",
    ):
        assert words in lines
    assert len(trail.runs) == sum(line.startswith("  n") and '["' in line for line in render_mermaid(trail))
    assert len(trail.runs) + 1 == "".join(render_html(trail)).count("<details")
    assert "allowed: " in desk.words("why", "last")
