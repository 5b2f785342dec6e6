"""Grants from the tables of a policy: they hold where it is enforced, and block nobody elsewhere."""

import pytest
from msgspec.structs import replace

from batonpass.errors import GrantDeniedError, GrantExpiredError, GrantMissingError
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import Kind
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.limits import Limits
from batonpass.model.policy.policy_rules import Policy
from batonpass.policy.document import parse_document
from batonpass.policy.policy_table import policy_of
from batonpass.testing.clock import FrozenClock
from batonpass.wire.token import decode_part
from tests.unit.handoff.places import ANA, Disk, Places, bodies, receipts

TABLES = """
[policy]
enforce = true

[grant.lead]
may = ["write:docs/**"]
may_delegate = ["write:src/**; at most 2 calls", "write:docs/**"]
limits = "at most 9 calls"

[grant.editor]
may = ["write:src/**", "write:etc/**"]
limits = "at most 50 calls"

[grant.stranger]
may = ["read:**"]
"""


@pytest.fixture
def policy() -> Policy:
    """Return the policy of a file that enforces its tables."""
    return policy_of(parse_document(TABLES.encode()))


@pytest.fixture
def disk() -> Disk:
    """Return a world in which nothing has happened."""
    return Disk()


def test_a_root_begins_the_grant_of_its_table(places: Places, policy: Policy, disk: Disk) -> None:
    """A program that says nothing of grants is held to what the file says of its agent, and its receipts say so."""
    relay = places.relay(policy=policy)
    lead = relay.start("Fix it", by=ANA)
    lead.call(disk.write, "docs/a.md", "")
    with pytest.raises(GrantDeniedError, match="lead may write:docs/"):
        lead.call(disk.write, "src/a.py", "")

    assert [("docs/a.md", "")] == disk.written
    assert {Mode.ENFORCED} == {receipt.mode for receipt in receipts(relay) if receipt.root is not None}


def test_a_file_that_enforces_nothing_blocks_nobody(places: Places, policy: Policy, disk: Disk) -> None:
    """Tables in a file which only reports are tried out; they hold those runs alone that are enforced themselves."""
    relay = places.relay(policy=replace(policy, enforce=False))
    watched = relay.start("Fix it", by=ANA)
    watched.call(disk.write, "src/a.py", "")
    held = relay.start("Fix it", by=ANA, mode="enforced")
    with pytest.raises(GrantDeniedError):
        held.call(disk.write, "src/b.py", "")

    assert [("src/a.py", "")] == disk.written
    assert [("would_deny.grant",)] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]


def test_a_table_that_has_ended_stops_only_what_is_enforced(places: Places, policy: Policy, disk: Disk) -> None:
    """What is only watched goes on without it; what is enforced does not begin."""
    clock = FrozenClock()
    ended = {AgentId("lead"): replace(policy.grants[AgentId("lead")], until=clock.now())}
    relay = places.relay(policy=replace(policy, enforce=False, grants=ended), clock=clock)
    relay.start("Fix it", by=ANA).call(disk.write, "src/a.py", "")
    with pytest.raises(GrantExpiredError):
        relay.start("Fix it", by=ANA, mode="enforced")

    assert [()] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]


def test_what_a_program_says_comes_before_the_table(places: Places, policy: Policy, disk: Disk) -> None:
    """Whoever starts a run with `may` is the operator too, and was more exact."""
    lead = places.relay(policy=policy).start("Fix it", by=ANA, may=["write:src/**"])
    lead.call(disk.write, "src/a.py", "")
    with pytest.raises(GrantDeniedError):
        lead.call(disk.write, "docs/a.md", "")

    assert [("src/a.py", "")] == disk.written


def test_whom_work_is_handed_to_gets_what_of_its_table_can_be_given(places: Places, policy: Policy, disk: Disk) -> None:
    """Nothing that the sender may not delegate, and no more often, though the table would allow it."""
    relay = places.relay(policy=policy)
    lead = relay.start("Fix it", by=ANA)
    with lead.hand_off("editor", "Edit") as editor:
        editor.call(disk.write, "src/a.py", "")
        with pytest.raises(GrantDeniedError, match="tried write:etc/passwd"):
            editor.call(disk.write, "etc/passwd", "")
    (offered,) = receipts(relay, Kind.HANDOFF_INITIATED)
    terms = decode_part(relay.read(offered.content["terms"].id), Terms).said

    assert (("write:src/**; at most 2 calls",), Limits(calls=9)) == (terms.may.lines, terms.limits)


def test_tables_with_nothing_in_common_hand_on_nothing(places: Places, policy: Policy) -> None:
    """The offer is refused, and says what could be given."""
    lead = places.relay(policy=policy).start("Fix it", by=ANA)
    with pytest.raises(GrantMissingError, match="lead can give: write:docs/"):
        lead.hand_off("stranger", "Look around")


def test_a_run_without_a_table_begins_the_grant_of_whom_it_asks(places: Places, policy: Policy, disk: Disk) -> None:
    """Where the file is enforced, an agent with a table is held to it whoever hands it work."""
    relay = places.relay(policy=policy)
    boss = relay.start("Fix it", by=ANA, agent="boss")
    boss.call(disk.write, "anything", "")
    with boss.hand_off("editor", "Edit") as editor:
        editor.call(disk.write, "etc/a", "")
        with pytest.raises(GrantDeniedError):
            editor.call(disk.write, "docs/a.md", "")
    with boss.hand_off("helper", "Help") as helper:
        helper.call(disk.write, "docs/b.md", "")

    assert ["anything", "etc/a", "docs/b.md"] == [path for path, _ in disk.written]
    assert AgentId("boss") not in policy.grants
