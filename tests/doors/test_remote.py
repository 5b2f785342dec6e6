"""The door of Python programs whose ledger is elsewhere: `Relay.open("https://…")`, with the key of the run here."""

from datetime import timedelta

import pytest

from batonpass.client.remote_handoff import RemoteHandoff
from batonpass.client.remote_run import RemoteRun
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.runtime.run_state import Holding
from batonpass.ledger.position import Working
from batonpass.model.base.ids import RunId
from batonpass.relay import Relay
from batonpass.server.acts.call_acts import ELSEWHERE
from batonpass.server.control_plane import ControlPlane
from batonpass.signing.runkeys import RunKeysInFiles
from batonpass.testing.doors import PERSON, Door, DoorConformance, HandoffConformance, Opened, Stage
from tests.doors.test_python import OpenedRun, PythonDoor
from tests.unit.client.conftest import Elsewhere


class OpenedElsewhere(OpenedRun):
    """A program whose ledger is elsewhere. The keys of its runs are with it, and nowhere else."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._relay: Elsewhere | None = None

    def _open(self) -> LiveRun:
        if self._run is None:
            self._run = self._start() if self._stage.handoff is None else self._take(self._stage.handoff)
        return self._run

    def _start(self) -> LiveRun:
        relay = self._stage.relay()
        # Through a control plane every root is enforced; this one is as the row of the table says.
        live = relay.start("Do it", by=PERSON, mode=self._stage.mode, items=self._stage.allowed.constraints)
        program = self._program(relay)
        program.wire.plane.runs.add(live)
        self._move_key(program, live.id)
        program.wire.plane.runs.forget(live.id)
        holding = live._holding
        return self._made(program, holding.working)

    def _take(self, handoff: LiveHandoff) -> LiveRun:
        """Take the next attempt, in the name of the lead that handed it off."""
        known = handoff.info()
        if self._relay is None:
            self._relay = self._program(self._stage.relay())
            self._move_key(self._relay, known.parent)
        with self._stage.store.view() as view:
            lead = Holding(working=Working(run=view.get_run(known.parent), mode=self._stage.mode))
        relay = self._relay
        exchange = relay._exchange
        return RemoteHandoff(exchange, known.id, opener=relay._opened, runners={}, parent=lead).accept()

    def _program(self, relay: Relay) -> Elsewhere:
        token = relay.admin.add_token(PERSON, "agent", by=PERSON, lasts=timedelta(days=30), may=["read:**"])
        plane = ControlPlane.over(relay, clock=self._stage.clock)
        return Elsewhere(plane, token.text, self._stage.directory)

    def _move_key(self, program: Elsewhere, run: RunId) -> None:
        kept = RunKeysInFiles(self._stage.home)
        signer, epoch = kept.get(run)
        program._exchange.keys.keep(run, epoch, signer)
        kept.drop(run)

    def _made(self, program: Elsewhere, working: Working) -> RemoteRun:
        return RemoteRun(
            program._exchange,
            working.run,
            working.mode,
            told={},
            runners={},
            work_tree=self._stage.directory,
        )


class RemoteDoor(PythonDoor):
    """A program that calls functions, and whose ledger is elsewhere."""

    always = (ELSEWHERE,)

    def open(self, stage: Stage) -> Opened:
        """Start a run."""
        if self.on_handoff:
            stage.offer()
        return OpenedElsewhere(stage)


class RemoteDoorOnHandoff(RemoteDoor):
    """The same, for what was handed off."""

    agent = "worker"
    on_handoff = True


class TestRemote(DoorConformance):
    """The suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return RemoteDoor()


class TestRemoteHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return RemoteDoor()


class TestRemoteOnHandoff(DoorConformance):
    """The suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return RemoteDoorOnHandoff()


class TestRemoteOnHandoffHandsOff(HandoffConformance):
    """The table of handoffs, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return RemoteDoorOnHandoff()
