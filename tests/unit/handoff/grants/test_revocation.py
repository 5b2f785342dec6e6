"""Grants that end before their time."""

from datetime import timedelta
from typing import Final

import pytest

from batonpass import Grant
from batonpass.errors import GrantRevokedError, NotFoundError
from batonpass.grants.verifier import Verifier
from batonpass.handoff.tools.declaration import tool
from batonpass.model.bodies.body import Kind, RunStarted
from batonpass.relay import Relay
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.testing.clock import FrozenClock
from tests.unit.handoff.places import ANA, Disk, Places, bodies, denials, receipts, words

HOUR: Final = timedelta(hours=1)


@pytest.fixture
def disk() -> Disk:
    """Return a world in which nothing has happened."""
    return Disk()


class TestRevoking:
    """What is revoked holds no more, wherever it is used."""

    def test_a_running_child_is_stopped_at_its_next_call(self, places: Places, relay: Relay, disk: Disk) -> None:
        """Another process revokes what the child's grandparent holds: calls and offers below are refused."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        editor = lead.hand_off("editor", "Edit", grant=Grant(may=["write:**"], may_delegate=["write:**"])).accept()
        helper = editor.hand_off("helper", "Help", may=["write:**"]).accept()
        helper.call(disk.write, "a", "")
        places.relay().revoke_grant(lead.id, by=ANA, reason="the wrong repository")
        with pytest.raises(GrantRevokedError):
            helper.call(disk.write, "b", "")
        with pytest.raises(GrantRevokedError):
            editor.hand_off("helper", "More", may=["write:**"])
        helper.close()

        assert [("a", "")] == disk.written
        assert ["grant"] == [rule for rule, _ in denials(relay)]
        assert ["grant.revoked"] == [body.error for body in bodies(relay, Kind.HANDOFF_FAILED)]
        (revoked,) = receipts(relay, Kind.GRANT_REVOKED)
        assert "the wrong repository" == words(relay, revoked, "reason")

    def test_what_would_be_held_is_refused_as_revoked(self, places: Places, relay: Relay, disk: Disk) -> None:
        """Nobody is asked to approve what cannot be made any more, whichever is found out first."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        editor = lead.hand_off("editor", "Edit", may=["write:**"]).accept()
        places.relay().revoke_grant(lead.id, by=ANA, reason="the wrong repository")
        with pytest.raises(GrantRevokedError):
            editor.call(tool("wipe", reversible=False)(disk.write), "a", "")

        assert [] == disk.written
        assert ["grant"] == [rule for rule, _ in denials(relay)]
        assert [] == receipts(relay, Kind.TOOL_HELD)

    def test_what_is_beside_it_goes_on(self, relay: Relay, disk: Disk) -> None:
        """Only what hangs from it is revoked, and every attempt at it."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        one, other = (lead.hand_off("editor", f"Edit {name}", may=["write:**"]) for name in "ab")
        relay.revoke_grant(one.id, by=ANA, reason="no")
        with other as editor:
            editor.call(disk.write, "b", "")
        with pytest.raises(GrantRevokedError), one as editor:
            editor.call(disk.write, "a", "")

        assert [("b", "")] == disk.written

    def test_what_was_not_granted_cannot_be_revoked(self, relay: Relay) -> None:
        """An observed run holds nothing."""
        lead = relay.start("Look", by=ANA)
        with pytest.raises(NotFoundError, match="grant of"):
            relay.revoke_grant(lead.id, by=ANA, reason="no")

    def test_those_offline_get_a_list(self, relay: Relay) -> None:
        """It is signed with the root key and names the terms; a verifier that knows that key takes it."""
        lead = relay.start("Fix it", by=ANA, may=["write:**"])
        started = bodies(relay, Kind.RUN_STARTED)[0]
        assert isinstance(started, RunStarted)
        relay.revoke_grant(lead.id, by=ANA, reason="no")
        with relay.store.view() as view:
            verifier = Verifier(view.info().root_key, audience="mail", revocations=True)

        assert (started.terms,) == verifier.use_revocations(relay.admin.revocations()).terms

    def test_only_keys_that_sign_grants_are_on_the_list(self, relay: Relay) -> None:
        """Whoever approves signs nothing that a tool server takes, and who lost such a key concerns nobody there."""
        relay.start("Look", by=ANA)
        relay.admin.enroll_approver(ANA, Ed25519Signer.generate().public_key)
        relay.admin.revoke_approver(ANA, reason="lost")
        with relay.store.view() as view:
            verifier = Verifier(view.info().root_key, audience="mail", revocations=True)
        listed = verifier.use_revocations(relay.admin.revocations())

        assert (1, ()) == (listed.number, listed.keys)

    def test_the_list_is_fetched_again_and_again(self, places: Places) -> None:
        """Whatever the clock did in between, a list signed anew counts, and one with something new takes its place."""
        clock, server_clock = FrozenClock(), FrozenClock()
        relay = places.relay(clock=clock)
        lead = relay.start("Fix it", by=ANA, grant=Grant(may=["write:**"], may_delegate=["write:**"]))
        handoffs = [lead.hand_off("editor", f"Edit {name}", may=["write:**"]) for name in "ab"]
        with relay.store.view() as view:
            verifier = Verifier(view.info().root_key, audience="mail", revocations=True, clock=server_clock)
        numbers = []
        for step in (0, 10, -20, 15):  # in minutes; the server's own clock is right all along
            clock.tick(timedelta(minutes=step))
            server_clock.tick(timedelta(minutes=5))
            if step in {10, -20}:
                relay.revoke_grant(handoffs.pop().id, by=ANA, reason="no")
            numbers.append(verifier.use_revocations(relay.admin.revocations(good_for=2 * HOUR)).number)

        assert [1, 2, 3, 3] == numbers
