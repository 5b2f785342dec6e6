"""Roll-ups: the same numbers as the receipts give, whenever and however often they are brought up to date."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batonpass import Claim, Constraint
from batonpass.drift import counts
from batonpass.drift import rollup as rolling
from batonpass.drift.closed_handoff import decode_outcome
from batonpass.drift.rollup import compute_all, keep_up
from batonpass.errors import BatonpassError
from batonpass.model.base.content_names import TASK
from batonpass.model.base.ids import ContentId
from batonpass.model.baton.brief_request import BriefRequest
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RolledQuery, RollupMark
from batonpass.records.text import read_receipt
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from batonpass.store.memory import MemoryStore
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.testing.clock import FrozenClock
from tests.unit.accounts.trees import ANA, fail, read, write

ACTS: Final = ("done", "failed", "refused", "retried", "verified", "refuted", "nested", "erased", "later", "rolled up")


class Fleet:
    """A ledger in which one act follows another, each a second after the one before."""

    def __init__(self, store: LedgerStore) -> None:
        self.store, self.clock = store, FrozenClock()
        self.relay = Relay(store, clock=self.clock)
        self.lead = self.relay.start(
            "Keep the books", by=ANA, items=[Constraint(key="limit", operator="<=", value="3")]
        )
        self.made = 0

    def play(self, act: str) -> None:
        """Do one thing."""
        self.clock.tick(timedelta(seconds=1))
        if not self.made and act in {"retried", "verified", "refuted", "erased"}:
            return  # there is nothing yet
        acts: dict[str, Callable[[], object]] = {
            "done": self.done,
            "failed": lambda: self.done(fails=True),
            "refused": self.refuse,
            "retried": self.retry,
            "verified": lambda: self.handoff.verify(by=ANA, verdict="It adds up"),
            "refuted": lambda: self.handoff.refute("It does not add up", by=ANA),
            "nested": lambda: self.done(nests=True),
            "erased": self.erase,
            "later": lambda: self.clock.tick(timedelta(hours=9)),
            "rolled up": lambda: keep_up(self.store),
        }
        acts[act]()

    def done(self, *, fails: bool = False, nests: bool = False) -> None:
        """Hand something off, and have it done."""
        self.made += 1
        brief = BriefRequest(needs_skills=["sums"] if self.made % 2 else [])
        self.handoff = self.lead.hand_off("editor", f"Add up page {self.made}", brief=brief)
        self.work(fails=fails, nests=nests)

    def work(self, *, fails: bool = False, nests: bool = False) -> None:
        """Work on the handoff."""
        with suppress(ValueError), self.handoff as editor:
            editor.call(read, f"page-{self.made}.csv")
            editor.call(write, "sums.csv", text="3")
            editor.spend(tokens=10, cost="0.5")
            if nests:
                with editor.hand_off("checker", f"Check page {self.made}") as checker:
                    checker.report("checked")
            if fails:
                fail("the page is missing")
            editor.report("added up", claims=[Claim("the sum is right", confidence=900)])

    def refuse(self) -> None:
        """Offer something that nobody takes."""
        self.made += 1
        self.handoff = self.lead.hand_off("editor", f"Do page {self.made}")
        self.handoff.decline("no time")

    def retry(self) -> None:
        """Try the last handoff again."""
        self.handoff.retry(by=ANA)
        self.work()

    def erase(self) -> None:
        """Erase what the last task and a constraint said."""
        with self.store.view() as view:
            found = [read_receipt(stored) for stored in view.find_receipts(ReceiptQuery(kind="handoff.initiated"))]
        contents = {ref.id for name, ref in found[-1].content.items() if name in {TASK, "brief"}}
        self.relay.admin.erase([*contents], by=ANA, reason="asked to")


def kept(store: LedgerStore) -> tuple[object, object]:
    """Return the roll-ups that a store keeps."""
    with store.view() as view:
        days = [*view.find_rolled_days("", "~")]
        return (
            {rolled.handoff: rolled for rolled in view.find_rolled(RolledQuery())},
            {(day.agent, day.task_kind, day.config, day.day): counts.decode(day.body) for day in days},
        )


def computed(store: LedgerStore) -> tuple[object, object]:
    """Return the roll-ups that the receipts give."""
    with store.view() as view:
        return compute_all(view)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(acts=st.lists(st.sampled_from(ACTS), max_size=14), at_once=st.sampled_from([1, 3, 1_000]))
def test_what_is_kept_is_what_the_receipts_give(acts: list[str], at_once: int) -> None:
    """However acts, erasures and roll-ups follow each other, and whatever a step takes at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "_AT_ONCE", at_once)
        fleet = Fleet(MemoryStore())
        for act in acts:
            with suppress(BatonpassError):  # such as a verdict on what failed
                fleet.play(act)
        keep_up(fleet.store)

    assert computed(fleet.store) == kept(fleet.store)


STORES: Final[dict[str, Callable[[Path], LedgerStore]]] = {
    "memory": lambda _: MemoryStore(),
    "SQLite": lambda place: open_store(f"sqlite:///{place / 'ledger.db'}"),
}


@pytest.mark.parametrize("store", STORES)
def test_every_act_is_rolled_up(store: str, tmp_path: Path) -> None:
    """What was done, failed, declined, retried, verified and refuted is counted once, under its agent and kind."""
    fleet = Fleet(STORES[store](tmp_path))
    for act in ("done", "verified", "failed", "retried", "refused", "done", "refuted", "nested"):
        fleet.play(act)
    keep_up(fleet.store)

    assert computed(fleet.store) == kept(fleet.store)
    with fleet.store.view() as view:
        told = [decode_outcome(rolled.body)[1] for rolled in view.find_rolled(RolledQuery(oldest_first=True))]
    assert [
        ("completed", "verified", 1),
        ("completed", "unverified", 2),
        ("declined", "unverified", 0),
        ("completed", "refuted", 1),
        ("completed", "unverified", 1),
        ("completed", "unverified", 1),
    ] == [(one.end, one.standing, one.attempts) for one in told]
    fleet.store.close()


def test_erased_words_are_erased_in_roll_ups_too() -> None:
    """A constraint that was erased stands in no roll-up, neither of a handoff nor of a day."""
    fleet = Fleet(MemoryStore())
    fleet.done()
    keep_up(fleet.store)
    with fleet.store.view() as view:
        (rolled,) = view.find_rolled(RolledQuery())
        item = ContentId(decode_outcome(rolled.body)[1].constraints[0])
    before = b"limit <= 3" in rolled.body

    fleet.relay.admin.erase([item], by=ANA, reason="asked to")

    with fleet.store.view() as view:
        bodies = [
            *(one.body for one in view.find_rolled(RolledQuery())),
            *(d.body for d in view.find_rolled_days("", "~")),
        ]
    assert (True, 2, False) == (before, len(bodies), any(b"limit" in body for body in bodies))
    assert computed(fleet.store) == kept(fleet.store)


def test_another_version_of_the_computation_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roll-ups of an earlier version are dropped and made again."""
    fleet = Fleet(MemoryStore())
    fleet.done()
    first = keep_up(fleet.store)
    monkeypatch.setattr(rolling, "VERSION", rolling.VERSION + 1)

    again = keep_up(fleet.store)

    assert (RollupMark(version=2, position=first.position), 3) == (first, again.version)
    assert computed(fleet.store) == kept(fleet.store)


class Late(MemoryStore):
    """A store in which another process is always first, once."""

    was_late = False

    def roll(
        self, after: RollupMark, upto: RollupMark, handoffs: Sequence[RolledHandoff], days: Sequence[RolledDay]
    ) -> bool:
        """Let the other process roll up first."""
        if not self.was_late:
            self.was_late = True
            keep_up(self)
        return super().roll(after, upto, handoffs, days)


def test_two_that_roll_up_at_once_do_it_once() -> None:
    """If another process was first, its roll-ups stay, and nothing is counted twice."""
    store = Late()
    fleet = Fleet(store)
    fleet.done()

    keep_up(store)

    assert (True, computed(store)) == (store.was_late, kept(store))


def test_what_an_agent_is_made_of_is_told_apart() -> None:
    """The same work with another model is another configuration, in words as the agent said it."""
    fleet = Fleet(MemoryStore())
    for model in ("m1", "m1", "m2"):
        fleet.clock.tick()
        handoff = fleet.lead.hand_off("editor", f"Add up with {model} at {fleet.clock.now()}")
        with handoff.accept(config={"model": model, "tools": ["read", "write"]}) as editor:
            editor.report("done")
    keep_up(fleet.store)

    with fleet.store.view() as view:
        rolled = [*view.find_rolled(RolledQuery())]
    models = [min(decode_outcome(one.body)[0]["config"]) for one in rolled]
    same = [one.config == rolled[-1].config for one in rolled]
    assert (["model: m2", "model: m1", "model: m1"], [False, True, True]) == (models, same)
