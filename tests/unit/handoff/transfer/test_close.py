"""Closing: the last receipt of a run; and withdrawing what nobody waits for any more."""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import pytest

from batonpass import Brief
from batonpass.errors import ConstraintViolatedError, IllegalTransitionError, StreamClosedError, UnverifiedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.handoff.transfer.close import withdraw
from batonpass.model.base.kinds import Kind, Mode, Outcome
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Constraint, WorkItem
from batonpass.model.ledger.entry import Entry
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay, desk_of
from tests.unit.handoff.places import ANA, LONE_SURROGATE, Disk, Places, at_once, bodies, kinds, receipts, words

write = tool("write", target="path")(lambda path: path)


def test_a_close_out_lists_children_effects_and_what_was_kept(lead: LiveRun, relay: Relay) -> None:
    """The parent's last receipt proves where its children stood."""
    with lead.hand_off("worker", "one") as child:
        child.call(write, "a")
        child.call(tool("look", reads=True)(lambda: 1))
    lead.close()
    (completed,), (closed,) = bodies(relay, "handoff.completed"), bodies(relay, "run.closed")

    assert [child.id] == [head.run for head in closed.children]
    assert [bodies(relay, "tool.requested")[0].call] == list(completed.effects)
    assert (lead.id, 0) == (completed.parent, completed.kept)


def test_what_is_left_is_withdrawn_all_the_way_down(lead: LiveRun) -> None:
    """What works for it is cancelled, with everything that waits below that work, for whomever it waits."""
    running = lead.hand_off("worker", "runs")
    child = running.accept()
    left = [running, child.hand_off("leaf", "a"), child.hand_off("leaf", "b", carrier=Carrier.WORKER)]
    left += [child.hand_off("leaf", "c", hold=True), child.hand_off("leaf", "d")]
    left[-1].ask("which?")
    lead.close()

    assert [State.CANCELLED] * 5 == [one.state() for one in left]
    with pytest.raises(StreamClosedError):
        child.close()


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_an_offer_that_is_committed_late_is_withdrawn_too(
    lead: LiveRun, relay: Relay, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    """Ctrl-C gives up a commit that the server makes all the same, after the close has looked for it."""
    append = relay.store.append
    given_up: list[Entry | None] = []

    def interrupted(entries: Sequence[Entry]) -> None:
        if not given_up:
            given_up.extend(entries)
            raise KeyboardInterrupt
        if entries[0].signed.receipt.kind is Kind.RUN_CLOSED and len(given_up) == 1:
            append([entry for entry in given_up if entry is not None])
            given_up.append(None)
        append(entries)

    monkeypatch.setattr(relay.store, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lead.hand_off("worker", "one", carrier=Carrier.WORKER)
    lead.close(outcome)

    with relay.store.view() as view:
        assert [State.CANCELLED] == [handoff.state for handoff in view.find_handoffs()]


def test_a_failed_attempt_leaves_its_children_to_the_next_one(lead: LiveRun) -> None:
    """They go on; a failed root, which has no next attempt, withdraws its own."""
    handoff = lead.hand_off("worker", "mid")
    child = handoff.accept()
    leaf = child.hand_off("leaf", "leaf", carrier=Carrier.WORKER)
    child.fail(ValueError("died"))
    assert State.READY is leaf.state()
    lead.fail(ValueError("all over"))

    assert (State.FAILED, State.CANCELLED) == (handoff.state(), leaf.state())


def test_leaving_the_block_closes_and_an_error_fails(lead: LiveRun, relay: Relay) -> None:
    """The error is recorded with its code and its words, and goes on."""
    handoff = lead.hand_off("worker", "fail")

    def work() -> None:
        with handoff as child:
            child.report("half done")
            raise ValueError(f"boom {LONE_SURROGATE}")

    with pytest.raises(ValueError, match="boom"):
        work()
    (failed,) = receipts(relay, "handoff.failed")

    assert ("value", "ValueError: boom half \\ud83d a character") == (failed.body.error, handoff.result().reason)  # type: ignore[union-attr]
    assert "test_close.py" in words(relay, failed, "message")


def test_closing_twice_is_once(lead: LiveRun, relay: Relay) -> None:
    """And nothing is recorded after the end."""
    lead.close()
    lead.close()
    lead.fail(ValueError())

    assert (1, "run.closed") == (kinds(relay).count("run.closed"), kinds(relay)[-1])
    with pytest.raises(Exception, match=r"key of|closed"):
        lead.hand_off("worker", "late")


def test_a_root_says_how_it_ended(relay: Relay) -> None:
    """Completed, failed or cancelled."""
    for outcome in Outcome:
        relay.start("begin", by=ANA).close(outcome)

    assert list(Outcome) == [body.outcome for body in bodies(relay, "run.closed")]


def test_a_refused_close_leaves_the_run_open(places: Places) -> None:
    """Whoever verifies what was missing can close it then."""
    lead = places.relay(policy=HandoffPolicy(verified_only=True)).start("begin", by=ANA)
    handoff = lead.hand_off("worker", "one")
    with handoff as child:
        child.report("done")
    with pytest.raises(UnverifiedError):
        lead.close()
    handoff.verify(verdict="right", by=ANA)
    lead.close()

    assert State.VERIFIED is handoff.state()


def test_what_must_have_changed_and_did_not_is_flagged(lead: LiveRun, relay: Relay) -> None:
    """A result that left an expected target untouched says so; patterns and kept calls count."""
    for number, targets in enumerate([["src/a.py", "docs/x.md"], ["src/a.py"], []]):
        with lead.hand_off("worker", f"task {number}", brief=Brief(expects=["src/*.py", "docs/**"])) as child:
            for target in targets:
                child.call(write, target)

    assert [(), ("expects.untouched",), ("expects.untouched",)] == [
        body.flags for body in bodies(relay, "handoff.completed")
    ]


def test_what_an_earlier_attempt_or_a_child_changed_has_changed(lead: LiveRun, relay: Relay) -> None:
    """Who has work done by others has it done; whoever changed it before this work or beside it does not count."""
    expects = Brief(expects=["src/a.py"])
    retried = lead.hand_off("worker", "in two attempts", brief=expects)
    with suppress(RuntimeError), retried as child:
        child.call(write, "src/a.py")
        raise RuntimeError
    retried.retry(by=ANA)
    with retried:
        pass
    with lead.hand_off("worker", "by a child", brief=expects) as child, child.hand_off("typist", "type") as typist:
        typist.call(write, "src/a.py")
    with lead.hand_off("other", "beside it") as other, lead.hand_off("worker", "by nobody", brief=expects):
        other.call(write, "src/a.py")

    flags = [body.flags for body in bodies(relay, "handoff.completed")]
    assert [False, False, False, True, False] == ["expects.untouched" in one for one in flags]


@pytest.mark.parametrize("mode", Mode)
def test_a_result_that_breaks_a_constraint(relay: Relay, mode: Mode) -> None:
    """An enforced run does not close with it; an observed one does, and it is flagged."""
    limit = Constraint(key="total", operator=">=", value="0", binds_to="result:total")
    lead = relay.start("begin", by=ANA, items=[limit], mode=mode)
    handoff = lead.hand_off("worker", "count", run=lambda _: {"total": -1})
    result = handoff.wait()

    if mode is Mode.ENFORCED:
        assert (State.FAILED, ConstraintViolatedError.code) == (result.state, bodies(relay, "handoff.failed")[0].error)
    else:
        assert ("would_deny.constraint",) == bodies(relay, "handoff.completed")[0].flags


@pytest.mark.parametrize("mode", Mode)
def test_a_root_is_held_to_what_was_asked_of_it(relay: Relay, mode: Mode) -> None:
    """What it reports is checked like what anybody else reports: enforced it stays open, observed it is flagged."""
    limit = Constraint(key="total", operator=">=", value="0", binds_to="result:total")
    lead = relay.start("begin", by=ANA, items=[limit], mode=mode)
    lead.report("counted", value='{"total": -1}')
    if mode is Mode.ENFORCED:
        with pytest.raises(ConstraintViolatedError):
            lead.close()
    else:
        lead.close()

    flags = [] if mode is Mode.ENFORCED else [("would_deny.constraint",)]
    assert flags == [body.flags for body in bodies(relay, "run.closed")]


def test_cancelling_what_is_over_changes_nothing(lead: LiveRun, relay: Relay) -> None:
    """What was delivered stays; withdrawing it is no error."""
    handoff = lead.hand_off("worker", "one")
    with handoff as child:
        child.report("done")
    withdraw(desk_of(relay), handoff.id, by=ANA, reason="too late")
    with pytest.raises(IllegalTransitionError):
        handoff.cancel(reason="too late")

    assert State.COMPLETED is handoff.state()


def test_a_close_and_a_cancel_at_once_leave_one_end(lead: LiveRun, relay: Relay) -> None:
    """Whichever comes first counts, and the other is told."""
    for number in range(5):
        handoff = lead.hand_off("worker", f"task {number}")
        child = handoff.accept()
        at_once(child.close, partial(relay.handoff(handoff.id).cancel, by=ANA, reason="race"))

        assert handoff.state() in {State.COMPLETED, State.CANCELLED}


def told_at_close(relay: Relay, name: str) -> list[str]:
    """Return the names in a list of the last close-out; none if there is no such list."""
    closing = receipts(relay, "handoff.completed")[-1]
    ref = closing.content.get(name)
    return [] if ref is None else list(json.loads(relay.read(ref.id)))


def test_untouched_targets_are_named(lead: LiveRun, relay: Relay) -> None:
    """Whoever verifies the result sees which of them was forgotten."""
    disk = Disk()
    with lead.hand_off("editor", "Write both", brief=Brief(expects=["a.json", "b/*.json"])) as editor:
        editor.call(disk.write, "a.json", "{}")
        editor.report("done")

    assert ["b/*.json"] == told_at_close(relay, "untouched")


def test_a_file_that_no_call_made_is_named(lead: LiveRun, relay: Relay) -> None:
    """What it says it made is compared with its effects; sentences and verified work are no files."""
    disk = Disk()
    with lead.hand_off("editor", "Write it") as editor:
        editor.call(disk.write, "src/a.py", "1")
        editor.attach("table.csv", "1,2")
        made = ("src/a.py", "./src/a.py", "src/ghost.py", "table.csv", "all rows, checked. Twice.", "v1.2")
        seen = WorkItem("seen by Ana", outputs=("seen.txt",), verified_by=ANA, how="looked")
        editor.report("done", completed=[WorkItem("wrote it", outputs=made), seen])

    (body,) = bodies(relay, "handoff.completed")
    assert (["src/ghost.py"], ("outputs.unrecorded",)) == (told_at_close(relay, "unrecorded"), body.flags)


def test_what_a_child_made_or_an_argument_names_is_accounted_for(lead: LiveRun, relay: Relay) -> None:
    """A lead may report what its children did, and a tool need not declare what it changes."""
    disk = Disk()
    with lead.hand_off("editor", "Write it") as editor:
        editor.call(lambda path: disk.written.append(("plain", path)), "plain.txt")
        with editor.hand_off("helper", "Help") as helper:
            helper.call(disk.write, "deep/below.txt", "x")
            helper.report("done")
        editor.report("done", completed=[WorkItem("all of it", outputs=("plain.txt", "deep/below.txt"))])

    assert [] == told_at_close(relay, "unrecorded")


def test_work_that_was_noted_is_compared_too(lead: LiveRun, relay: Relay) -> None:
    """Not only what stands in the report."""
    with lead.hand_off("editor", "Write it") as editor:
        editor.record(WorkItem("wrote it", outputs=("src/ghost.py",)))
        editor.report("done")

    assert ["src/ghost.py"] == told_at_close(relay, "unrecorded")
