"""Receipts as they come: each once and in order, also for a client that was gone, and only what it may see."""

import json

import pytest

from batonpass.relay import Relay
from batonpass.server.access import AccessLimits
from tests.unit.server.conftest import ANA, BEN, House, a_house
from tests.unit.server.test_every_route import Scene, a_scene


def positions(heard: list[dict[str, str]]) -> list[int]:
    """Return the positions of events."""
    return [int(one["id"]) for one in heard]


def work(relay: Relay, times: int = 1) -> None:
    """Record some receipts."""
    for _ in range(times):
        with relay.start("Fix it", by=ANA) as run:
            run.hand_off("editor", "Edit it")


def last_of(relay: Relay) -> int:
    """Return the last position."""
    with relay.store.view() as view:
        return view.last_position()


def test_everything_that_was_recorded_is_told_in_order(house: House) -> None:
    """From a position on, more than is read at once, with kind and receipt; and the receipt is as it is elsewhere."""
    work(house.relay, 50)
    last = last_of(house.relay)
    auditor = house.visitor("auditor")
    heard = auditor.listen("/v1/events?after=0", last)
    shown = auditor.get(f"/v1/receipts/{json.loads(heard[-1]['data'])['id']}").json

    assert [*range(1, last + 1)] == positions(heard)
    assert (shown, shown["kind"]) == (json.loads(heard[-1]["data"]), heard[-1]["event"])


def test_what_is_recorded_meanwhile_is_told(house: House) -> None:
    """Without a position, only what comes from now on."""
    before = last_of(house.relay)
    heard = house.visitor("operator").listen("/v1/events", 4, lambda: work(house.relay))

    assert [*range(before + 1, before + 5)] == positions(heard)


def test_a_client_that_was_gone_misses_nothing(house: House) -> None:
    """Wherever it was cut off, the id of its last event is where it goes on, whatever its URL says."""
    work(house.relay, 3)
    last = last_of(house.relay)
    heard: list[int] = []
    auditor, known = house.visitor("auditor"), "0"
    while len(heard) < last:
        some = auditor.listen("/v1/events?after=7", min(5, last - len(heard)), last_event_id=known)
        heard += positions(some)
        known = some[-1]["id"]

    assert [*range(1, last + 1)] == heard


def test_events_are_filtered(house: House) -> None:
    """By kind or family, by run, by tree."""
    work(house.relay, 2)
    (first, *_) = house.visitor("auditor").get("/v1/runs?agent=lead").json["items"]
    auditor = house.visitor("auditor")
    offers = auditor.listen("/v1/events?after=0&kind=handoff.initiated", 2)
    of_run = auditor.listen(f"/v1/events?after=0&run={first['id']}", 2)

    assert {"handoff.initiated"} == {one["event"] for one in offers}
    assert {first["id"]} == {json.loads(one["data"])["stream"] for one in of_run}


def test_an_agent_hears_of_its_own_tree_alone(relay: Relay) -> None:
    """Not of runs of others, nor of what is done to the ledger."""
    scene: Scene = a_scene(relay)
    run = scene.names["run"]
    own = scene.ana.listen("/v1/events?after=0", 4)

    assert {run} == {json.loads(one["data"])["stream"] for one in own}


def test_a_stream_ends_with_the_token(house: House) -> None:
    """Whoever is not let in any more hears nothing more."""
    auditor = house.visitor("auditor")

    def revoke() -> None:
        house.relay.admin.revoke_token(house.everybody["auditor"].partition(".")[0], by=BEN, reason="left")
        work(house.relay)

    assert [] == auditor.listen("/v1/events", 5, revoke)


def test_there_are_only_so_many_streams(relay: Relay) -> None:
    """One more is told to come back later; it takes nothing from those who are there."""
    house = a_house(relay, AccessLimits(streams=1))
    auditor = house.visitor("auditor")
    told = []
    auditor.listen("/v1/events?after=0", 2, lambda: told.append(auditor.get("/v1/events?after=0").code))

    assert (["access.too_many"], None) == (told, auditor.get("/v1/events?after=0").code)


@pytest.mark.parametrize("given", ["-1", "x", "1.5", "9" * 30, "٣"])
def test_an_id_that_is_no_position_is_refused(house: House, given: str) -> None:
    """It is never taken for the beginning or the end."""
    sent = given.encode().decode("latin-1")

    assert "value.invalid" == house.visitor("auditor").get("/v1/events", last_event_id=sent).code
