"""Verifying a ledger and ending a grant, as acts: who may, what is answered, how they are repeated."""

import pytest

from batonpass import tool
from batonpass.api.acts import Caller
from batonpass.errors import AccessError, CallDeniedError, InvalidValueError, NotFoundError
from batonpass.testing import a_relay, a_run, an_attempt, observe


@tool(action="read")
def look(path: str) -> str:
    """Return what a file says."""
    return path


@pytest.mark.parametrize("role", ["operator", "auditor"])
def test_an_operator_and_an_auditor_verify(role: str) -> None:
    """Whoever answers for a ledger may verify it; the answer is the evidence."""
    with a_relay(caller=Caller("user:eve", role)) as relay:  # type: ignore[arg-type] # it is one of the roles
        assert 1 == relay.verify().receipts


def test_an_agent_does_not_verify() -> None:
    """To read everything is not an agent's."""
    with a_relay(caller=Caller("user:eve", "agent")) as relay:
        for act in (relay.verify, lambda: relay.revoke_grant("run_x")):
            with pytest.raises(AccessError):
                act()


def test_a_grant_ends_with_all_that_hang_from_it() -> None:
    """When the root's grant is ended, a call of its child is denied in the commit, and the reason names the account."""
    with a_relay() as relay:
        root = a_run(relay, may=["read:**"])
        child = an_attempt(relay, parent=root, may=["read:a/**"])
        child.call(look, "a/b")

        relay.revoke_grant(root.id, by="user:ana", reason="enough")

        with pytest.raises(CallDeniedError) as denied:
            child.call(look, "a/c")
        revoked = observe(relay).last("grant.revoked")
        assert "grant.revoked" == denied.value.facts["rule"]
        assert (root.id, "user:ana", "enough") == (revoked.body["account"], revoked.body["by"], revoked.text("reason"))
        relay.verify()


def test_a_grant_ends_once() -> None:
    """Ended again, with or without the same key, nothing is written."""
    with a_relay() as relay:
        run = a_run(relay, may=["read:**"])

        relay.revoke_grant(run.id, by="user:ana", key="k")
        relay.revoke_grant(run.id, by="user:ana", key="k")
        relay.revoke_grant(run.id, by="user:bob")

        assert ["run.started", "grant.revoked"] == observe(relay).kinds()


def test_a_grant_that_nobody_has_is_not_ended() -> None:
    """An account is a root run or a handoff of this ledger, and a person ends it."""
    with a_relay() as relay:
        run = a_run(relay)
        with pytest.raises(NotFoundError):
            relay.revoke_grant("run_" + "0" * 26, by="user:ana")
        with pytest.raises(InvalidValueError):
            relay.revoke_grant(run.id)
        with pytest.raises(NotFoundError):
            relay.revoke_grant(observe(relay).receipts[0].stream, by="user:ana")

        assert ["run.started"] == observe(relay).kinds()
