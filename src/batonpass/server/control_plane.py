"""The state that all doors of one server share: the relay, the access rules, and the open runs."""

from pathlib import Path

from msgspec import Struct

from batonpass.clock import Clock, SystemClock
from batonpass.dispatch.egress import Egress
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.relay import Relay, let_keys_be_elsewhere
from batonpass.server.access import AccessLimits, Doorkeeper
from batonpass.server.entrance import OneTimeEntrance
from batonpass.server.idempotency import AnswerMemory
from batonpass.server.open_runs import OpenRuns
from batonpass.server.parked_acts import ParkedActs
from batonpass.telemetry.metric_board import MetricBoard


class ControlPlane(Struct, frozen=True, kw_only=True, eq=False):
    """The state that all doors of one server share."""

    relay: Relay
    clock: Clock
    limits: AccessLimits
    doorkeeper: Doorkeeper
    runs: OpenRuns
    answers: AnswerMemory
    entrance: OneTimeEntrance
    egress: Egress  # the only way to somebody else
    parked: ParkedActs
    metrics: MetricBoard

    @classmethod
    def over(
        cls,
        relay: Relay,
        *,
        clock: Clock | None = None,
        limits: AccessLimits | None = None,
        egress: Egress | None = None,
        home: Path | None = None,
    ) -> "ControlPlane":
        """Return the control plane of a relay. With a `home`, the sums of its metrics outlive the process."""
        let_keys_be_elsewhere(relay)
        at, most = clock or SystemClock(), limits or AccessLimits()
        return cls(
            relay=relay,
            clock=at,
            limits=most,
            doorkeeper=Doorkeeper(relay.store, at, most),
            runs=OpenRuns(relay),
            answers=AnswerMemory(),
            entrance=OneTimeEntrance(relay, at),
            egress=egress or Egress(EgressRule()),
            parked=ParkedActs(most.signs_within),
            metrics=MetricBoard(relay.store, home),
        )
