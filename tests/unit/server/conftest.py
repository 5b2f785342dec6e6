"""A control plane over a ledger in a file, with a tree in it, and a token of each role."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass.dispatch.egress import Egress
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.model.base.content_names import REASON, TASK_KIND
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import AccessRole
from batonpass.relay import Relay, desk_of
from batonpass.server.access import AccessLimits
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.control_plane import ControlPlane
from batonpass.testing.builders import an_alarm
from tests.unit.server.visitor import Visitor

ANA, BEN = "user:ana", "user:ben"
DAY = timedelta(days=1)


@dataclass(slots=True)
class House:
    """A server without a network, and everybody who may come in."""

    relay: Relay
    plane: ControlPlane
    everybody: dict[str, str]  # tokens by role

    def visitor(self, role: str | None = None, **sent: str) -> Visitor:
        """Return somebody with a token of a role, or without one."""
        app = make_app(self.plane, hosts=hosts_for("127.0.0.1"))
        return Visitor(app, None if role is None else self.everybody[role], sent=dict(sent))


def a_house(relay: Relay, limits: AccessLimits | None = None) -> House:
    """Return a server for a relay, with a token of each role. The agent's is for Ana's runs."""
    tokens = {
        role.value: relay.admin.add_token(
            ANA if role is AccessRole.AGENT else f"user:{role}",
            role,
            by=BEN,
            lasts=DAY,
            may=["write:src/**", "read:**", "call:*"],
            may_delegate=["write:src/**", "read:**", "call:*"],
        ).text
        for role in AccessRole
    }
    egress = Egress(EgressRule(), dial=_nobody_there)
    return House(relay, ControlPlane.over(relay, limits=limits, egress=egress), tokens)


def _nobody_there(*_: object) -> socket.socket:
    raise ConnectionRefusedError(111, "Connection refused")


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    """Return a relay over a new ledger, whose runs keep their keys in files."""
    home = tmp_path / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, keys_in_files=True, work_tree=tmp_path) as relay:
        yield relay


@pytest.fixture
def house(relay: Relay) -> House:
    """Return a server for it."""
    return a_house(relay)


def raise_alarm(relay: Relay, agent: str, name: str) -> None:
    """Put an alarm about an agent on record, as whoever counts drift does."""
    desk = desk_of(relay)
    raised = an_alarm(AgentId(agent), name)
    desk.recording.note(raised, (desk.text(REASON, "constraints"), desk.text(TASK_KIND, "analysis")))
