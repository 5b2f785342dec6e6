"""Lost connections and servers that die: nothing is done twice, and nothing that was acknowledged is lost."""

import json
from collections.abc import Callable

import pytest

from batonpass import tool
from batonpass.client.connection import RemoteReply
from batonpass.errors import KeyMissingError, ServerUnreachableError, SignatureMissingError
from batonpass.handoff.live.faces import LiveRun
from tests.unit.client.conftest import ANA, Elsewhere, Place

MADE: list[str] = []


@tool("look", reads=True)
def look(where: str) -> str:
    """Look somewhere."""
    MADE.append(where)
    return f"seen {where}"


ACTS: dict[str, Callable[[LiveRun], object]] = {
    "a call": lambda run: run.call(look, "here"),
    "an artifact": lambda run: run.attach("a.txt", "words"),
    "a checkpoint": lambda run: run.checkpoint([1, 2]),
    "a handoff that is taken": lambda run: run.hand_off("editor", "Edit", may=["read:**"]).accept().close(),
    "the end": lambda run: run.close(),
}


def once(relay: Elsewhere, place: Place, when: str) -> list[str]:
    """Let the server die once at each request, at one moment of it, and another take its place."""
    died: list[str] = []

    def dies(path: str) -> None:
        place_of = "/v1/acts" if path.startswith("/v1/acts/") else path
        if place_of not in died:
            died.append(place_of)
            place.restart(relay)
            relay.wire.lose(path)

    def before(path: str, _: object) -> None:
        dies(path)

    def after(path: str, reply: RemoteReply) -> RemoteReply:
        parked = reply.status == 202
        if when == "after it was asked for" and parked:
            dies(path)
        if when == "after it was done" and not parked:
            dies(path)
        return reply

    if when == "before it is asked for":
        relay.wire.before = before
    else:
        relay.wire.after = after
    return died


@pytest.mark.parametrize("what", ACTS)
@pytest.mark.parametrize("when", ["before it is asked for", "after it was asked for", "after it was done"])
def test_a_server_that_dies_costs_nothing(place: Place, what: str, when: str) -> None:
    """Whatever it was doing, the receipts are those of a server that lives, and the tool was called once."""
    MADE.clear()
    relay = place.elsewhere()
    run = relay.start("Fix it", by=ANA)
    ACTS[what](run)
    if what != "the end":
        run.close()
    expected, made = place.kinds(), [*MADE]
    MADE.clear()
    again = relay.start("Fix it once more", by=ANA)
    died = once(relay, place, when)
    ACTS[what](again)
    if what != "the end":
        again.close()

    assert (expected, made) == (place.kinds()[len(expected) :], MADE)
    assert died
    place.relay.verify()


@pytest.mark.parametrize("when", ["before it is asked for", "after it was asked for", "after it was done"])
def test_a_start_is_one_run(place: Place, when: str) -> None:
    """Also if the answer was lost: the run is found again, and its key is here."""
    relay = place.elsewhere()
    once(relay, place, when)
    with relay.start("Fix it", by=ANA) as run:
        run.call(look, "here")

    with place.relay.store.view() as view:
        assert [run.id] == [one.id for one in view.find_runs()]
    place.relay.verify()


def test_a_connection_that_breaks_is_asked_again_under_the_same_key(place: Place) -> None:
    """The server knows the act by it, and does it once."""
    relay = place.elsewhere()
    run = relay.start("Fix it", by=ANA)
    lost: list[str] = []

    def after(path: str, reply: RemoteReply) -> RemoteReply:
        if path not in lost:
            lost.append(path)
            relay.wire.lose(path)
        return reply

    relay.wire.after = after
    run.call(look, "here")
    run.close()

    assert ["run.started", "tool.requested", "tool.completed", "run.closed"] == place.kinds()
    place.relay.verify()


def test_a_server_that_stays_away_is_told_with_one_sentence(place: Place) -> None:
    """After the patience is over, and as an error of the store."""
    relay = place.elsewhere()
    run = relay.start("Fix it", by=ANA)
    relay.wire.patience = 0.05
    relay.wire.before = lambda path, _: relay.wire.lose(path)

    with pytest.raises(ServerUnreachableError, match="is `batonpass serve` running there"):
        run.call(look, "here")


def test_who_does_not_sign_gets_nothing_written(place: Place) -> None:
    """The act ends after its time, and the next one is not kept waiting."""
    relay = place.elsewhere()
    run = relay.start("Fix it", by=ANA)
    before = place.kinds()
    place.plane.parked._patience, usual = 0.05, place.plane.parked._patience
    headers = {**relay._exchange._proof(run.id), "Idempotency-Key": "x", "Batonpass-Signer": "-"}
    parked = relay.wire.send_once("POST", f"/v1/runs/{run.id}/calls", {"tool": "look"}, headers)[0]
    place.plane.parked._patience = usual
    with pytest.raises(SignatureMissingError, match="nothing was recorded"):
        until_over(relay, json.loads(parked.body))

    assert before == place.kinds()
    run.close()
    place.relay.verify()


def until_over(relay: Elsewhere, parked: dict[str, object]) -> None:
    """Ask for the next step of an act, which is the same until its time is over."""
    while True:
        relay.wire.send("POST", f"/v1/acts/{parked['act']}", {"number": 99, "signature": None})


def test_nobody_else_acts_in_a_run_whose_key_is_elsewhere(place: Place) -> None:
    """A client that does not offer to sign is refused at once, and waits for nobody."""
    relay = place.elsewhere()
    run = relay.start("Fix it", by=ANA)

    with pytest.raises(KeyMissingError, match="is with the client that began it"):
        relay.wire.send("POST", f"/v1/runs/{run.id}/calls", {"tool": "look"}, relay._exchange._proof(run.id))


def test_a_program_that_comes_back_goes_on_with_its_key(place: Place) -> None:
    """With keys in files, another process of the program has the run."""
    token = place.token()
    run = place.elsewhere(token, in_files=True).start("Fix it", by=ANA)
    place.restart()
    back = place.elsewhere(token, in_files=True)
    back.resume(run.id).close()

    assert ["run.started", "run.closed"] == place.kinds()
    place.relay.verify()
