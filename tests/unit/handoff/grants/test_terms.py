"""Grants in runs: they begin, are narrowed, hold every call, and end."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from batonpass import Brief, Grant
from batonpass.aio import AsyncRelay
from batonpass.errors import (
    CallProtectedError,
    ConstraintViolatedError,
    DeadlinePassedError,
    GrantDeniedError,
    GrantExceededError,
    GrantExpiredError,
    GrantIntegrityError,
    GrantMissingError,
    GuardFailedError,
    InvalidValueError,
)
from batonpass.handoff.runtime.bounds import read_terms
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.baton import Budget
from batonpass.model.baton.card import Card
from batonpass.model.bodies.body import HandoffFailed, Kind
from batonpass.model.grants.grant import Terms
from batonpass.relay import Relay
from batonpass.testing.clock import FrozenClock
from batonpass.wire.token import decode_part
from tests.unit.handoff.places import ANA, Disk, Places, at_once, bodies, denials, fail, receipts, words, worker

HOUR: Final = timedelta(hours=1)


@pytest.fixture
def relay(places: Places) -> Relay:
    """Return the relay of one process."""
    return places.relay()


@pytest.fixture
def disk() -> Disk:
    """Return a world in which nothing has happened."""
    return Disk()


def terms_of(relay: Relay, kind: Kind) -> list[Terms]:
    """Return what was granted by the receipts of a kind."""
    return [
        decode_part(relay.read(receipt.content["terms"].id), Terms).said
        for receipt in receipts(relay, kind)
        if "terms" in receipt.content
    ]


class TestBeginning:
    """A grant begins with a root, or where an observed run gives one."""

    def test_a_root_with_a_grant_is_held_to_it(self, relay: Relay, disk: Disk) -> None:
        """What it may not use it cannot use, though it may pass it on; every receipt says that it is enforced."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may=["write:docs/**"], may_delegate=["write:src/**"]))
        lead.call(disk.write, "docs/a.md", "")
        with pytest.raises(GrantDeniedError) as refused:
            lead.call(disk.write, "src/a.py", "")

        assert [("docs/a.md", "")] == disk.written
        assert "lead may write:docs/**, tried write:src/a.py; nobody above" in str(refused.value)
        assert [("grant", str(refused.value))] == denials(relay)
        lead.close()
        assert {Mode.ENFORCED} == {receipt.mode for receipt in receipts(relay) if receipt.root is not None}

    def test_an_observed_run_gives_what_it_likes(self, relay: Relay, disk: Disk) -> None:
        """The child is enforced, and its chain begins there, on behalf of the principal; the parent stays observed."""
        lead = relay.start("Fix it", by=ANA)
        with (
            lead.hand_off("editor", "Edit", may=["write:src/**"]) as editor,
            pytest.raises(GrantDeniedError, match="nobody above holds it, so only user:ana can grant it"),
        ):
            editor.call(disk.write, "etc/passwd", "")
        lead.call(disk.write, "anything", "")
        (terms,) = terms_of(relay, Kind.HANDOFF_INITIATED)

        assert (ANA, "editor", None, None) == (terms.principal, terms.agent, terms.parent, terms.run)
        assert [Mode.OBSERVED, Mode.ENFORCED] == [
            receipts(relay, kind)[0].mode for kind in (Kind.RUN_STARTED, Kind.HANDOFF_ACCEPTED)
        ]

    def test_nothing_is_granted_with_words_that_cannot_be_read(self, relay: Relay) -> None:
        """A pattern that is none, and limits of nothing, are mistakes of the caller."""
        lead = relay.start("Fix it", by=ANA)
        with pytest.raises(InvalidValueError, match="pattern"):
            lead.hand_off("editor", "Edit", may=["everything"])
        with pytest.raises(InvalidValueError, match="may: is missing"):
            lead.hand_off("editor", "Edit", grant=Grant(limits="at most 3 calls"))

    def test_a_resumed_run_has_the_grant_that_it_had(self, places: Places, relay: Relay, disk: Disk) -> None:
        """It is read back from the ledger, and checked."""
        lead = relay.start("Fix it", by=ANA, may=["write:docs/**"])
        again = places.relay().resume(lead.id)
        again.call(disk.write, "docs/a.md", "")
        with pytest.raises(GrantDeniedError):
            again.call(disk.write, "src/a.py", "")

        assert [("docs/a.md", "")] == disk.written


class TestNarrowing:
    """A child of a run with a grant holds at most what its parent may delegate."""

    def test_more_is_refused_with_what_exceeds(self, relay: Relay) -> None:
        """The refusal names each part and what the parent holds, and is on record; nothing was offered."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may=["read:**"], may_delegate=["write:src/**"]))
        with pytest.raises(GrantExceededError) as refused:
            lead.hand_off("editor", "Edit", may=["write:src/a.py", "write:etc/**", "read:**"])

        assert ("may read:** (which it may use, and may not delegate)", "may write:etc/**") == refused.value.excess
        assert ("write:src/**",) == refused.value.held
        (failed,) = receipts(relay, Kind.HANDOFF_FAILED)
        assert isinstance(failed.body, HandoffFailed)
        assert (0, "grant.exceeded") == (failed.body.attempt, failed.body.error)
        assert str(refused.value) == words(relay, failed, "message")
        assert [] == bodies(relay, Kind.HANDOFF_INITIATED)

    def test_a_ceiling_says_what_nobody_asked_for(self, relay: Relay, disk: Disk) -> None:
        """Without `may` a child gets what of its ceiling its parent may delegate; without both it gets no work."""
        relay.register("editor", lambda _: None, card=Card(agent=AgentId("editor"), ceiling=("write:src/**",)))
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/billing/**", "read:**"]))
        with lead.hand_off("editor", "Edit") as editor:
            editor.call(disk.write, "src/billing/a.py", "")
            with pytest.raises(GrantDeniedError):
                editor.call(disk.write, "src/other.py", "")
        with pytest.raises(GrantMissingError, match="helper would be granted nothing"):
            lead.hand_off("helper", "Help")

        assert [("write:src/billing/**",)] == [terms.may.lines for terms in terms_of(relay, Kind.HANDOFF_INITIATED)]
        assert ["grant.missing"] == [body.error for body in bodies(relay, Kind.HANDOFF_FAILED)]

    def test_a_ceiling_cuts_what_was_asked_for(self, relay: Relay) -> None:
        """Of what is asked for, an agent holds what its card lets it; of nothing of it, nothing is made."""
        relay.register("editor", lambda _: None, card=Card(agent=AgentId("editor"), ceiling=("write:src/**",)))
        lead = relay.start("Fix it", by=ANA)
        lead.hand_off("editor", "Edit", may=["write:**"])
        with pytest.raises(GrantMissingError):
            lead.hand_off("editor", "Tidy", may=["write:etc/**"])

        assert [("write:src/**",)] == [terms.may.lines for terms in terms_of(relay, Kind.HANDOFF_INITIATED)]

    def test_every_hop_has_to_agree(self, places: Places, relay: Relay, disk: Disk) -> None:
        """Three processes, each with its own relay: the last is held to what all above may delegate."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:src/**"]))
        lead.hand_off(
            "worker", "Edit", grant=Grant(may=["write:src/own"], may_delegate=["write:src/*"]), carrier=Carrier.WORKER
        )
        middle = worker(places.relay())
        middle.hand_off("helper", "Help", may=["write:src/a.py"], carrier=Carrier.WORKER)
        last = worker(places.relay(), agent="helper")
        last.call(disk.write, "src/a.py", "")
        with pytest.raises(GrantDeniedError, match=r"helper may write:src/a\.py, tried write:src/own; worker holds it"):
            last.call(disk.write, "src/own", "")
        middle.call(disk.write, "src/own", "")

        assert ["src/a.py", "src/own"] == [name for name, _ in disk.written]

    def test_another_grant_is_another_handoff(self, relay: Relay) -> None:
        """The same task with other rights to pass on is not the same offer."""
        lead = relay.start("Fix it", by=ANA)
        one = lead.hand_off("editor", "Edit", may=["write:src/**"])

        assert one.id == lead.hand_off("editor", "Edit", may=["write:src/**"]).id
        assert (
            one.id
            != lead.hand_off("editor", "Edit", grant=Grant(may=["write:src/**"], may_delegate=["write:src/**"])).id
        )

    def test_terms_that_no_relay_signed_are_not_taken(self, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
        """What a receipt commits to has to be signed by a key that this ledger enrolled."""
        relay.start("Fix it", by=ANA, may=["write:**"])
        (first,) = receipts(relay, Kind.RUN_STARTED)
        with relay.store.view() as view:
            assert read_terms(view, first) is not None
            monkeypatch.setattr(type(view), "find_keys", lambda _: iter(()))
            with pytest.raises(GrantIntegrityError):
                read_terms(view, first)


class TestGuarding:
    """Every call passes the guard, and what it refuses is not made."""

    def test_an_awaited_call_is_held_to_the_grant(self, places: Places) -> None:
        """The other face asks the same guard."""
        made: list[str] = []

        @tool("send", target="to", action="send")
        async def send(to: str) -> None:
            made.append(to)

        async def work() -> None:
            async with AsyncRelay(places.relay()).start("Tell them", by=ANA, may=["send:ana@example.org"]) as lead:
                await lead.call(send, "ana@example.org")
                with pytest.raises(GrantDeniedError, match=r"tried send:eve@example\.org"):
                    await lead.call(send, "eve@example.org")

        asyncio.run(work())

        assert ["ana@example.org"] == made

    def test_a_link_is_followed_before_anything_is_compared(
        self, relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A path inside that leads outside is outside, and `..` is where it leads."""
        tree = tmp_path / "tree"
        (tree / "src").mkdir(parents=True)
        (tree / "src" / "link").symlink_to(tmp_path)
        monkeypatch.chdir(tree)
        made: list[str] = []
        write = tool("write", target="path")(lambda path: made.append(str(path)))
        relay = Relay(relay.store, home=tmp_path / "home", work_tree=tree)
        lead = relay.start("Fix it", by=ANA, may=["write:src/**"])
        for path in ("src/link/secret", "src/../../secret", str(tmp_path / "secret")):
            with pytest.raises(GrantDeniedError):
                lead.call(write, path)
        for path in ("src/a", "src/../src/b", str(tree / "src/c")):
            lead.call(write, path)

        assert ["src/a", "src/../src/b", str(tree / "src/c")] == made

    def test_arguments_are_compared_as_well(self, relay: Relay) -> None:
        """A permit with conditions holds the arguments to them."""
        made: list[int] = []
        refund = tool("refund", action="refund", target="order")(
            lambda order, amount: made.append(amount if order else 0)
        )
        lead = relay.start("Help", by=ANA, may=["refund:orders/** where amount <= 100"])
        lead.call(refund, "orders/7", 100)
        with pytest.raises(GrantDeniedError, match="with amount 101"):
            lead.call(refund, "orders/7", 101)

        assert [100] == made

    def test_a_guard_that_fails_stops_the_call(self, relay: Relay) -> None:
        """Whatever goes wrong in it, an enforced call is not made, and that is on record."""

        def broken(_: object) -> str:
            raise ZeroDivisionError("oops")

        made: list[str] = []
        write = tool("write", target=broken)(lambda path: made.append(str(path)))
        lead = relay.start("Fix it", by=ANA, may=["write:**"])
        with pytest.raises(GuardFailedError, match="ZeroDivisionError"):
            lead.call(write, "a")

        assert ([], ["guard"]) == (made, [rule for rule, _ in denials(relay)])

    @pytest.mark.parametrize("enforced", [True, False])
    def test_the_record_is_out_of_reach(self, tmp_path: Path, *, enforced: bool) -> None:
        """No agent changes the ledger or reads its keys; under a grant none reads it or edits the settings."""
        home = tmp_path / ".batonpass"
        relay = Relay.open(f"sqlite:///{home}/ledger.db", work_tree=tmp_path)
        touched: list[str] = []
        write = tool("write", target="path")(lambda path: touched.append(str(path)))
        read = tool("read", target="path", reads=True)(lambda path: touched.append(str(path)))
        run = tool("run", action="run")(lambda argv: touched.append(argv[-1]))
        may = ["write:/**", "read:/**", "write:**", "read:**", "run:*"] if enforced else []
        lead = relay.start("Fix it", by=ANA, may=may)
        link = tmp_path / "link"
        link.symlink_to(home)
        tries: list[tuple[Any, Any]] = [
            (write, str(home / "ledger.db")),
            (write, str(link / "relay.key")),
            (read, str(home / "relay.key")),
            (run, ["cat", str(home / "relay.key")]),
            (run, ["cp", "x", f"--target={home}"]),
        ]
        only_enforced: list[tuple[Any, Any]] = [
            (read, str(home / "ledger.db")),
            (write, str(tmp_path / ".claude/settings.json")),
        ]
        for function, argument in tries + (only_enforced if enforced else []):
            with pytest.raises(CallProtectedError):
                lead.call(function, argument)
        lead.call(write, str(tmp_path / "src.py"))

        assert [str(tmp_path / "src.py")] == touched
        relay.close()


class TestLimits:
    """Limits are shared by everybody below, in all processes, and never overshot."""

    def test_two_processes_race_for_the_last_unit(self, places: Places, relay: Relay, disk: Disk) -> None:
        """Two children of one grant want the only call that is left: one gets it."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], limits="at most 3 calls"))
        for number in range(2):
            lead.hand_off("worker", f"Part {number}", may=["write:**"], carrier=Carrier.WORKER)
        one, other = worker(places.relay()), worker(places.relay())
        one.call(disk.write, "a", "")
        other.call(disk.write, "b", "")
        found = at_once(lambda: one.call(disk.write, "c", ""), lambda: other.call(disk.write, "d", ""))

        assert (3, 1) == (len(disk.written), sum(isinstance(each, ConstraintViolatedError) for each in found))
        assert ["limit"] == [rule for rule, _ in denials(relay)]

    def test_a_budget_is_shared_by_attempts_and_children(self, relay: Relay, disk: Disk) -> None:
        """What a brief allows is counted for the handoff: whoever works on it, and whoever works for them."""
        lead = relay.start("Fix it", by=ANA, mode="enforced")
        handoff = lead.hand_off("editor", "Edit", brief=Brief(budget=Budget(calls=3)))
        first = handoff.accept()
        first.call(disk.write, "a", "")
        fail(first)
        handoff.retry(by=ANA)
        second = handoff.accept()
        with second.hand_off("helper", "Help") as helper:
            helper.call(disk.write, "b", "")
        second.call(disk.write, "c", "")
        with pytest.raises(ConstraintViolatedError, match="at most 3 calls is violated: this is call 4"):
            second.call(disk.write, "d", "")

        assert ["budget"] == [rule for rule, _ in denials(relay)]

    def test_a_permit_that_is_used_up_leaves_the_others(self, relay: Relay, disk: Disk) -> None:
        """Of two permits that allow a call, the one that has room lets it through."""
        lead = relay.start("Fix it", by=ANA, may=["write:a/**; at most 1 calls", "write:a/b; at most 1 calls"])
        lead.call(disk.write, "a/b", "1")
        lead.call(disk.write, "a/b", "2")
        with pytest.raises(ConstraintViolatedError, match="at most 1 calls"):
            lead.call(disk.write, "a/b", "3")

        assert ["1", "2"] == [text for _, text in disk.written]

    def test_what_is_known_only_afterwards_stops_the_next_call(self, relay: Relay) -> None:
        """Spend and rows are counted with the outcome; once nothing is left, nothing more is called."""
        buy = tool("buy", cost=lambda _: 2)(lambda: None)
        pull = tool("pull")(lambda: [1, 2, 3])
        lead = relay.start("Buy", by=ANA, grant=Grant(may=["call:*"], limits="at most 3 spend, 3 rows"))
        lead.call(buy)
        lead.call(pull)
        with pytest.raises(ConstraintViolatedError, match="at most 3 rows"):
            lead.call(pull)

    def test_a_grant_ends(self, places: Places, disk: Disk) -> None:
        """By its own end; and the deadline of a handoff, which comes first, is named as what ended its work."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], until=clock.now() + HOUR))
        editor = lead.hand_off("editor", "Edit", may=["write:**"], deadline=clock.now() + HOUR / 2).accept()
        editor.call(disk.write, "a", "")
        other = lead.hand_off("editor", "Edit on", may=["write:**"]).accept()
        clock.tick(HOUR / 2)
        with pytest.raises(DeadlinePassedError):
            editor.call(disk.write, "b", "")
        clock.tick(HOUR / 2)
        with pytest.raises(GrantExpiredError):
            other.call(disk.write, "c", "")
        with pytest.raises(GrantExpiredError):
            lead.hand_off("editor", "Edit more", may=["write:**"])

        assert [("a", "")] == disk.written
