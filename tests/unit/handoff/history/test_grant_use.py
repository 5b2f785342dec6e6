"""What a run used of its grant, and grants that are only tried out."""

import json
from datetime import timedelta
from typing import Any, Final

import pytest

from batonpass import Grant
from batonpass.accounts.handoff.grant_chain import read_chain
from batonpass.accounts.why.why import explain
from batonpass.errors import (
    GrantDeniedError,
    GrantDepthError,
    GrantExpiredError,
    GrantRevokedError,
    InvalidValueError,
    NotFoundError,
)
from batonpass.model.base.ids import StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.bodies.body import Body, HandoffInitiated, Kind
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Terms
from batonpass.model.ledger.receipt import Receipt
from batonpass.relay import Relay
from batonpass.testing.clock import FrozenClock
from batonpass.wire.token import decode_part
from tests.offers import grouped
from tests.unit.handoff.places import ANA, Disk, Places, bodies, denials, receipts, words, worker

TOLD: Final = ("would_deny.grant",)
WOULD_REFUSE: Final = ("grant.tried-out", "would_deny.grant")


@pytest.fixture
def relay(places: Places) -> Relay:
    """Return the relay of one process."""
    return places.relay()


@pytest.fixture
def disk() -> Disk:
    """Return a world in which nothing has happened."""
    return Disk()


def used(relay: Relay, kind: Kind = Kind.HANDOFF_COMPLETED) -> Any:  # noqa: ANN401 - a document
    """Return what the last close-out of a kind says of what was used."""
    return json.loads(words(relay, receipts(relay, kind)[-1], "use"))


def of_grants(body: Body) -> tuple[str, ...]:
    """Return what an offer's flags say of grants; others are about what it leaves unsaid."""
    assert isinstance(body, HandoffInitiated)
    return tuple(flag for flag in body.flags if "grant" in flag)


def granted(relay: Relay, offer: Receipt) -> Terms:
    """Return the terms that an offer carries."""
    return decode_part(relay.read(offer.content["terms"].id), Terms).said


class TestUsing:
    """The close-out sets what was granted against what was used of it."""

    def test_the_close_out_says_what_would_have_been_enough(self, relay: Relay, disk: Disk) -> None:
        """Each permit with its calls, refusals by rule, and permits that cover what was done and nothing else."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**", "read:**"]))
        with lead.hand_off("editor", "Edit", may=["write:src/**", "read:**"]) as editor:
            for path in ("src/a.py", "src/a.py", "src/deep/b.py"):
                editor.call(disk.write, path, str(len(disk.written)))
            with pytest.raises(GrantDeniedError):
                editor.call(disk.write, "docs/a.md", "")
        lead.close()

        assert {
            "may": [{"permit": "read:**", "calls": 0}, {"permit": "write:src/**", "calls": 3}],
            "denied": {"grant": 1},
            "least": [{"permit": "write:src/a.py", "calls": 2}, {"permit": "write:src/deep/b.py", "calls": 1}],
        } == used(relay)
        assert {"may": [], "denied": {}, "least": []} == used(relay, Kind.RUN_CLOSED)

    def test_whoever_goes_on_counts_what_was_done_before(self, places: Places, relay: Relay, disk: Disk) -> None:
        """The process that began the run is gone; what it did stands in receipts."""
        lead = relay.start("Fix it", by=ANA, may=["write:**"])
        lead.call(disk.write, "a", "")
        with pytest.raises(GrantDeniedError):
            lead.call(disk.mail, "bob")
        again = places.relay().resume(lead.id)
        again.call(disk.write, "b", "")
        again.close()

        assert {
            "may": [{"permit": "write:**", "calls": 2}],
            "denied": {"grant": 1},
            "least": [{"permit": "write:a", "calls": 1}, {"permit": "write:b", "calls": 1}],
        } == used(relay, Kind.RUN_CLOSED)

    def test_a_run_without_a_grant_says_nothing(self, relay: Relay, disk: Disk) -> None:
        """There is nothing that it could have used too little of."""
        with relay.start("Fix it", by=ANA) as lead:
            lead.call(disk.write, "a", "")

        assert "use" not in receipts(relay, Kind.RUN_CLOSED)[-1].content


class TestTryingOut:
    """A grant that stops nobody: what it would have refused is told, in the whole tree."""

    def test_nothing_is_stopped_and_all_is_told(self, relay: Relay, disk: Disk) -> None:
        """What is covered has no flag, what is not has one, and the close-out counts both."""
        lead = relay.start("Fix it", by=ANA, may=["write:docs/**"], mode="observed")
        lead.call(disk.write, "docs/a.md", "")
        lead.call(disk.write, "src/a.py", "")
        lead.close()

        assert [("docs/a.md", ""), ("src/a.py", "")] == disk.written
        assert [(), ("would_deny.grant",)] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]
        assert [] == denials(relay)
        assert {Mode.OBSERVED} == {receipt.mode for receipt in receipts(relay) if receipt.root is not None}
        assert [{"permit": "write:docs/**", "calls": 1}] == used(relay, Kind.RUN_CLOSED)["may"]

    def test_whoever_is_handed_work_is_not_stopped_either(self, places: Places, relay: Relay, disk: Disk) -> None:
        """Its grant is narrowed as ever, in another process too, and it is told what that would have refused."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**"]), mode="observed")
        with lead.hand_off("editor", "Edit", may=["write:src/**"]) as editor:
            editor.call(disk.write, "src/a.py", "")
            editor.call(disk.write, "b.py", "")
        lead.hand_off("worker", "Edit more", may=["write:src/c.py"], carrier=Carrier.WORKER)
        child = worker(places.relay())
        child.call(disk.write, "c.py", "")
        child.close()

        assert ["src/a.py", "b.py", "c.py"] == [path for path, _ in disk.written]
        told = ("would_deny.grant",)
        assert [(), told, told] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]
        assert [("grant.tried-out",)] * 2 == [of_grants(body) for body in bodies(relay, Kind.HANDOFF_INITIATED)]
        with relay.store.view() as view:
            assert "tried out: nothing was enforced" in explain(view, child.id).answer
            call = explain(view, bodies(relay, Kind.TOOL_REQUESTED)[-1].call)
        assert "only tried out, so nothing was enforced; it would have been denied by rule grant" in call.answer
        assert any("worker may write:src/c.py, tried write:c.py" in fact.text for fact in call.facts)

    def test_who_asks_for_too_much_is_tried_against_what_could_be_given(
        self, places: Places, relay: Relay, disk: Disk
    ) -> None:
        """The offer is made and says why it would be refused; here and in another process, calls are told beyond it."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**"]), mode="observed")
        editor = lead.hand_off("editor", "Edit", may=["write:**", "read:**"]).accept()
        editor.call(disk.write, "src/a.py", "")
        editor.call(disk.write, "b.py", "")
        editor.close()
        lead.hand_off("worker", "Edit", may=["write:**"], carrier=Carrier.WORKER)
        child = worker(places.relay())
        child.call(disk.write, "src/c.py", "")
        child.call(disk.write, "d.py", "")
        child.close()

        assert ["src/a.py", "b.py", "src/c.py", "d.py"] == [path for path, _ in disk.written]
        assert [(), TOLD, (), TOLD] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]
        offers = receipts(relay, Kind.HANDOFF_INITIATED)
        assert [WOULD_REFUSE] * 2 == [of_grants(offer.body) for offer in offers]
        assert "lead cannot give may read:**; may write:**: it may delegate write:src/**" in words(
            relay, offers[0], "reason"
        )
        assert [("write:src/**",)] * 2 == [granted(relay, offer).may.lines for offer in offers]
        assert [] == denials(relay)

    @pytest.mark.parametrize(
        ("held", "asked"),
        [
            pytest.param(
                {"may_delegate": ["write:docs/**"]}, {"may": ["write:src/**"]}, id="nothing of it can be given"
            ),
            pytest.param({"may_delegate": ["write:docs/**"]}, {}, id="nobody says what it may"),
            pytest.param(
                {"may_delegate": ["write:docs/**"], "max_depth": 0}, {"may": ["write:docs/**"]}, id="it is too deep"
            ),
        ],
    )
    def test_who_can_be_given_nothing_is_tried_against_all_that_is_held(
        self, places: Places, relay: Relay, disk: Disk, held: dict[str, Any], asked: dict[str, Any]
    ) -> None:
        """No terms are signed, in which case nothing can be proven or handed on; and still each call is told."""
        lead = relay.start("Fix it", by=ANA, mode="observed", **grouped(may=["write:**"], **held))
        editor = lead.hand_off("editor", "Edit", **asked).accept()
        editor.call(disk.write, "docs/a.md", "")
        editor.call(disk.write, "src/a.py", "")
        helper = editor.hand_off("helper", "Help", may=["write:src/**"]).accept()
        helper.call(disk.write, "src/b.py", "")
        again = places.relay().resume(helper.id)
        again.call(disk.write, "src/c.py", "")
        offers = receipts(relay, Kind.HANDOFF_INITIATED)

        assert ["docs/a.md", "src/a.py", "src/b.py", "src/c.py"] == [path for path, _ in disk.written]
        assert [(), TOLD, TOLD, TOLD] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]
        assert [(False, WOULD_REFUSE)] * 2 == [("terms" in offer.content, of_grants(offer.body)) for offer in offers]
        assert all(words(relay, offer, "reason") for offer in offers)
        with pytest.raises(NotFoundError, match="grant of"):
            editor.prove(Call("write", "write", "docs/a.md"), audience="disk")
        with relay.store.view() as view, pytest.raises(NotFoundError, match="grant of"):
            read_chain(view, StreamId(editor.id))

    def test_who_was_given_nothing_may_hand_on_what_could_have_been_given(self, relay: Relay, disk: Disk) -> None:
        """What is within all that those above may delegate has no flag; nobody below begins a grant that stops them."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**"]), mode="observed")
        editor = lead.hand_off("editor", "Edit").accept()
        helper = editor.hand_off("helper", "Help", may=["write:src/a.py"]).accept()
        helper.call(disk.write, "src/a.py", "")
        helper.call(disk.write, "b.py", "")
        first, second = bodies(relay, Kind.HANDOFF_INITIATED)

        assert (WOULD_REFUSE, ("grant.tried-out",)) == (of_grants(first), of_grants(second))
        assert (None, None) == (first.terms, second.terms)
        assert [(), TOLD] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]

    def test_a_grant_with_far_too_many_permits_stops_nobody(self, relay: Relay, disk: Disk) -> None:
        """What two scopes have in common may be more than anybody can hold; the offer is made all the same."""
        held = [f"write:{name}/*/*/*" for name in range(100)]
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=held), mode="observed")
        asked = [f"*:*/{name}/*/*" for name in range(100)]
        with lead.hand_off("editor", "Edit", may=asked) as editor:
            editor.call(disk.write, "b.py", "")

        assert [WOULD_REFUSE] == [of_grants(body) for body in bodies(relay, Kind.HANDOFF_INITIATED)]
        assert [TOLD] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]

    def test_limits_revocation_and_the_end_are_told(self, places: Places) -> None:
        """Each is a flag of its own rule, and the calls are made."""
        clock, disk = FrozenClock(), Disk()
        relay = places.relay(clock=clock)
        until = clock.now() + timedelta(hours=1)
        lead = relay.start(
            "x", by=ANA, grant=Grant(may=["write:**"], limits="at most 1 calls", until=until), mode="observed"
        )
        lead.call(disk.write, "a", "")
        lead.call(disk.write, "b", "")
        relay.revoke_grant(lead.id, by=ANA, reason="no")
        lead.call(disk.write, "c", "")
        clock.tick(timedelta(hours=2))
        lead.call(disk.write, "d", "")
        lead.hand_off("editor", "Edit")

        assert [WOULD_REFUSE] == [of_grants(body) for body in bodies(relay, Kind.HANDOFF_INITIATED)]
        flags = [set(body.flags) for body in bodies(relay, Kind.TOOL_REQUESTED)]
        limit, grant = "would_deny.limit", "would_deny.grant"
        assert [set(), {limit}, {limit, grant}, {limit, grant}] == flags
        assert ["a", "b", "c", "d"] == [path for path, _ in disk.written]

    def test_what_is_handed_on_under_a_revoked_grant_is_told(self, relay: Relay, disk: Disk) -> None:
        """Enforced, the offer would be refused and so would each call; tried out, both say so, and why."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]), mode="observed")
        relay.revoke_grant(lead.id, by=ANA, reason="no")
        with lead.hand_off("editor", "Edit", may=["write:**"]) as editor:
            editor.call(disk.write, "a", "")
        (offer,) = receipts(relay, Kind.HANDOFF_INITIATED)

        assert WOULD_REFUSE == of_grants(offer.body)
        assert "was revoked" in words(relay, offer, "reason")
        assert [("a", "")] == disk.written
        assert [TOLD] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]

    def test_a_guard_that_fails_is_told(self, relay: Relay, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
        """The call is made, and its receipt says that nobody could have let it pass."""
        lead = relay.start("x", by=ANA, may=["write:**"], mode="observed")
        monkeypatch.setattr("batonpass.handoff.calls.authority.authorise_here", lambda *_: 1 / 0)
        lead.call(disk.write, "a", "")

        assert [("would_deny.guard",)] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]


class TestGoingOn:
    """A session that goes on is held to the grant that it had."""

    def test_the_grant_begins_again(self, relay: Relay, disk: Disk) -> None:
        """Nobody gets more by starting once more."""
        with relay.start("Fix it", by=ANA, grant=Grant(may=["write:docs/**"], limits="at most 1 calls")) as lead:
            lead.call(disk.write, "docs/a.md", "")
        again = relay.resume_session(lead.id, by=ANA)
        again.call(disk.write, "docs/b.md", "")
        with pytest.raises(GrantDeniedError):
            again.call(disk.write, "src/a.py", "")

        assert ["docs/a.md", "docs/b.md"] == [path for path, _ in disk.written]

    def test_one_that_has_ended_has_to_be_asked_for(self, places: Places) -> None:
        """Going on does not bring it back."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        lead = relay.start("Fix it", by=ANA, grant=Grant(may=["write:**"], until=clock.now() + timedelta(hours=1)))
        lead.close()
        clock.tick(timedelta(hours=2))
        with pytest.raises(GrantExpiredError):
            relay.resume_session(lead.id, by=ANA)

    def test_one_that_was_revoked_does_not_come_back(self, relay: Relay) -> None:
        """Going on is no way around whoever took it away."""
        lead = relay.start("Fix it", by=ANA, may=["write:**"])
        relay.revoke_grant(lead.id, by=ANA, reason="no")
        lead.close()
        with pytest.raises(GrantRevokedError):
            relay.resume_session(lead.id, by=ANA)

    def test_one_that_was_only_tried_out_keeps_nobody_from_going_on(self, places: Places, disk: Disk) -> None:
        """Ended or revoked, it stopped nobody before, and does not now."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        lead = relay.start(
            "x", by=ANA, grant=Grant(may=["write:a"], until=clock.now() + timedelta(hours=1)), mode="observed"
        )
        relay.revoke_grant(lead.id, by=ANA, reason="no")
        lead.close()
        again = relay.resume_session(lead.id, by=ANA)
        again.call(disk.write, "b", "")
        again.close()
        clock.tick(timedelta(hours=2))
        relay.resume_session(lead.id, by=ANA).call(disk.write, "c", "")

        assert ["b", "c"] == [path for path, _ in disk.written]
        assert [TOLD, ()] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]


class TestDepth:
    """A grant says how far it may be handed on."""

    def test_the_last_one_may_not_hand_on(self, relay: Relay) -> None:
        """The root stands at depth 0; with a depth of 1 its children do the work themselves."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], max_depth=1))
        child = lead.hand_off("editor", "Edit", grant=Grant(may_delegate=["write:**"])).accept()
        with pytest.raises(GrantDepthError):
            child.hand_off("helper", "Help", may=["write:a"])

        assert ["grant.depth"] == [body.error for body in bodies(relay, Kind.HANDOFF_FAILED)]

    def test_without_a_grant_it_limits_nothing(self, relay: Relay) -> None:
        """It would be a promise that nobody keeps."""
        with pytest.raises(InvalidValueError, match="max_depth"):
            relay.start("Fix it", by=ANA, grant=Grant(max_depth=1))
