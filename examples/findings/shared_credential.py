"""Two agents with one credential, and one agent that uses it twice."""

from batonpass import Relay
from batonpass.credentials import FromEnvironment
from examples.findings.tools import push


def _use(relay: Relay, *agents: str) -> None:
    relay.credential("forge", FromEnvironment("TOKEN", "bot:ci", environment={"TOKEN": "a-secret-of-this-page"}))
    with relay.start("Ship it", by="user:ana") as lead:
        for number, agent in enumerate(agents):
            with lead.hand_off(agent, f"Push branch {number}") as child:
                child.call(push, f"branch-{number}")
                child.report("pushed")


def raises(relay: Relay) -> None:
    """For the forge, both are bot:ci."""
    _use(relay, "editor", "releaser")


def near_miss(relay: Relay) -> None:
    """The same agent, twice."""
    _use(relay, "editor", "editor")
