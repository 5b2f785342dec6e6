"""Five carriers bring one load across Europe: what was asked for binds all of them, and a missed window has a place.

    python examples/freight.py DIRECTORY

It runs in a second, offline and without a key: the carriers are plain functions and the two days pass on a clock of our
own, everything else is real. A dispatcher hands the load to the first carrier, and each carrier to the next. On the way
the pass is closed and Ana changes the route. The load is late, and the end says which leg lost the window, and which
constraint that was, as `batonpass why ionian-ferries` does.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from batonpass import Brief, Constraint, OpenQuestion, Relay, WorkItem, tool
from batonpass.accounts.why.why import explain
from batonpass.handoff.live.faces import LiveRun

Tell = Callable[[str], None]

WORDS = "Bring 40 pallets of vaccine from Ghent to Athens, Thursday between 02:00 and 06:00, at 2 to 8 degrees."
CHANGE = "The Fréjus is closed: go round by the coast, by Nice."

HOUR = timedelta(hours=1)
HANDOVER = HOUR / 2
OPENS, CLOSES = "2026-11-19T02:00+02:00", "2026-11-19T06:00+02:00"
CENTRAL, ATHENS = timezone(HOUR), timezone(2 * HOUR)


def window(text: str, binds_to: str) -> tuple[Constraint, Constraint]:
    """Return the two ends of the delivery window, bound to where they are to be checked."""
    return (
        Constraint(text, key="arrival", operator=">=", value=OPENS, binds_to=binds_to),
        Constraint(text, key="arrival", operator="<=", value=CLOSES, binds_to=binds_to),
    )


CONSTRAINTS = (
    *window("as a carrier announces it", "call:announce.arrival"),
    *window("at the hospital's door", "result:arrival"),
    Constraint(key="temperature", operator=">=", value="2", unit="°C", binds_to="call:log_temperature.celsius"),
    Constraint(key="temperature", operator="<=", value="8", unit="°C", binds_to="call:log_temperature.celsius"),
)


@dataclass(frozen=True)
class Leg:
    """One carrier's part of the way."""

    carrier: str
    start: str
    end: str
    drive: timedelta
    celsius: float
    detour: timedelta = timedelta()  # so much longer by the coast
    waits: timedelta = timedelta()  # what nobody planned


LEGS = (
    Leg("ghent-haulage", "Ghent", "Luxembourg", 4 * HOUR, 4.1),
    Leg("mosel-rail", "Luxembourg", "Lyon", 6 * HOUR, 4.6),
    Leg("lyon-cold-chain", "Lyon", "Genoa", 7 * HOUR, 5.2, detour=1.5 * HOUR, waits=5 * HOUR),
    Leg("adria-trucks", "Genoa", "Bari", 10 * HOUR, 5.0),
    Leg("ionian-ferries", "Bari", "Athens", 16 * HOUR, 4.8),
)
CAVEAT = "waited 5 hours at the depot in Lyon for a driver: does the hospital know that the load will be late?"


@tool(reads=True)
def log_temperature(celsius: float) -> str:
    """Write down what the sensor among the pallets shows."""
    return f"{celsius} °C"


@tool
def announce(place: str, arrival: str) -> str:
    """Tell everybody who follows the load when it will be in Athens."""
    return f"{place}: in Athens at {arrival}"


class Road:
    """The clock of the journey, and whoever listens to it."""

    def __init__(self, tell: Tell) -> None:
        self._at = datetime(2026, 11, 17, 4, tzinfo=UTC)
        self._tell = tell

    def now(self) -> datetime:
        """Return the time, a little later each time it is asked for."""
        self._at += timedelta(microseconds=1)
        return self._at

    def spend(self, time: timedelta) -> None:
        """Let time pass."""
        self._at += time

    def tell(self, text: str) -> None:
        """Say what happens, and when."""
        self._tell(f"{self._at.astimezone(CENTRAL):%a %H:%M}  {text}")


class Journey:
    """One load on its way: a dispatcher, and the carriers that it goes through."""

    def __init__(self, relay: Relay, road: Road) -> None:
        self.dispatcher = relay.start(WORDS, by="user:ana", agent="dispatcher", items=CONSTRAINTS)
        self._relay = relay
        self._road = road
        for leg in LEGS:
            relay.register(leg.carrier, self.carry)

    def travel(self) -> None:
        """Hand the load to the first carrier; when it has gone through all five, say what came of it."""
        delivered = self.dispatcher.hand_off(
            LEGS[0].carrier,
            task_of(LEGS[0]),
            brief=Brief(
                rationale="it has cold trucks in Ghent", none=["exclusion", "decision", "question", "rejected"]
            ),
            criteria=["the load is at the hospital"],
        ).wait()
        self.dispatcher.report("the load is at the hospital", value=json.dumps(delivered.value))
        self.dispatcher.close()

    def carry(self, run: LiveRun) -> None:
        """Work as every carrier does: take over, announce, drive, hand on to the next, and report what came of it."""
        number = next(number for number, leg in enumerate(LEGS) if leg.carrier == run.agent)
        leg, rest = LEGS[number], LEGS[number:]
        # All that a carrier knows is in its baton: whoever took over before Ana spoke plans over the pass.
        by_coast = any("coast" in said.text for said in run.baton.intent)
        needed = sum((one.drive + HANDOVER + by_coast * one.detour for one in rest), timedelta())
        run.call(log_temperature, leg.celsius)
        self._announce(run, f"took over in {leg.start} at {leg.celsius} °C", leg, needed)
        if leg.waits:
            self._road.spend(leg.waits)
            run.record(OpenQuestion(CAVEAT))
            self._announce(run, "waited 5 hours for a driver", leg, needed)
        self._road.spend(leg.drive + by_coast * leg.detour)
        if leg is LEGS[1]:
            self._change_route()
        self._road.spend(HANDOVER)
        if len(rest) == 1:
            arrival = {"arrival": minutes(self._road.now().astimezone(ATHENS))}
            self._road.tell(f"{run.agent} is at the hospital in {leg.end}, reports {arrival['arrival']}")
            run.report("the load is at the hospital", value=json.dumps(arrival))
        else:
            run.report(f"handed on in {leg.end}", value=json.dumps(self._hand_on(run, leg, rest[1])))

    def _announce(self, run: LiveRun, what: str, leg: Leg, needed: timedelta) -> None:
        arrival = minutes((self._road.now() + needed).astimezone(CENTRAL))
        run.call(announce, leg.start, arrival)
        self._road.tell(f"{run.agent} {what}, announces {arrival}")

    def _hand_on(self, run: LiveRun, leg: Leg, following: Leg) -> object:
        asked = run.baton.open_questions or leg.waits
        return (
            run.hand_off(
                following.carrier,
                task_of(following),
                brief=Brief(relation="peer-to-peer", none=["rejected"] if asked else ["rejected", "question"]),
                items=[WorkItem(f"brought 40 pallets from {leg.start} to {leg.end}")],
            )
            .wait()
            .value
        )

    def _change_route(self) -> None:
        """Let Ana speak while carriers are on the road; they stay as they are, and she is told so."""
        unaware = self.dispatcher.add_intent(CHANGE, by="user:ana")
        self._road.tell(f"ana: {CHANGE}")
        for handoff in reversed(unaware):
            self._road.tell(f"  on the road, and goes on without it: {self._relay.handoff(handoff).info().to}")


def task_of(leg: Leg) -> str:
    """Return what a carrier is asked to do."""
    return f"Take over 40 pallets of vaccine in {leg.start}, bring them to {leg.end}, and hand them on"


def minutes(moment: datetime) -> str:
    """Return a moment with its offset: the carriers' clocks and the hospital's differ."""
    return moment.isoformat(timespec="minutes")


def main(directory: Path, tell: Tell = print) -> Relay:
    """Bring the load to Athens, with a ledger in a directory; return the relay, to look around."""
    road = Road(tell)
    relay = Relay.open(f"sqlite:///{directory}/.batonpass/ledger.db", clock=road)
    Journey(relay, road).travel()
    return relay


def trace(relay: Relay, tell: Tell = print) -> None:
    """Tell where the window was lost: the constraint, the leg that kept it last, and the leg that broke it first."""
    with relay.store.view() as view:
        why = explain(view, LEGS[-1].carrier)
    tell("")
    tell(why.sentence)
    for fact in why.facts:
        if fact.label in {"constraint", "kept last", "broken first", "question"}:
            tell(f"  {fact.label}: {fact.text}")


if __name__ == "__main__":
    with main(Path(sys.argv[1]).absolute()) as journey:
        trace(journey)
