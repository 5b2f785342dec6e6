"""Group commit: one writes for all who wait; whoever fails or is interrupted takes nobody along."""

import signal
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import apsw
import pytest

from batonpass.errors import InvalidValueError, StaleHeadError, StoreBusyError, StoreShutError, StoreUnavailableError
from batonpass.store.sqlite import group_commit
from batonpass.store.sqlite.group_commit import GroupCommit
from tests.integration.sqlite.commits import SOON, Desk, InterruptAt, until

REFUSAL = StaleHeadError("run_x", 7)


def refuse(connection: apsw.Connection) -> None:
    """Begin to write, and be refused."""
    connection.execute("INSERT INTO marks VALUES ('refused')")
    raise REFUSAL


def test_one_command_is_one_transaction() -> None:
    """Alone, a caller writes by itself and knows at once."""
    desk = Desk()
    desk.commits.run(desk.mark("one"))

    assert (["one"], 1, 1) == (desk.marks(), desk.gate.entered, desk.gate.left)
    assert not desk.connection.in_transaction


def test_whoever_waits_is_written_with_the_first() -> None:
    """Those who came while the first waited for its turn share its transaction."""
    desk = Desk()
    with desk.crowd("a", "b", "c", "d"):
        assert [] == desk.marks()

    assert (["a", "b", "c", "d"], 1) == (desk.marks(), desk.gate.entered)
    assert {None} == set(desk.outcomes.values())


def test_a_large_crowd_is_written_in_parts() -> None:
    """A transaction takes 256 commands; the rest have the next."""
    desk = Desk()
    names = [f"{number:03}" for number in range(300)]
    with desk.crowd(*names):
        pass

    assert (names, 2) == (desk.marks(), desk.gate.entered)


def test_what_need_not_last_does_not_wait_for_the_disk() -> None:
    """Such commands are committed without waiting; the next one that must last waits, however often that changes."""
    desk = Desk()
    for number, lasting in enumerate((True, False, False, True, False, True, True)):
        desk.commits.run(desk.mark(str(number)), lasting=lasting)

    assert [2, 1, 1, 2, 1, 2, 2] == desk.levels.seen


def test_one_command_that_must_last_makes_its_batch_wait() -> None:
    """A batch waits for the disk if anybody in it relies on that, whoever leads it."""
    desk = Desk()
    desk.gate.open.clear()
    desk.bring("lease", lasting=False)
    assert desk.gate.waiting.wait(SOON)
    desk.bring("another lease", lasting=False)
    until(lambda: len(desk.commits._queue) == 2)
    desk.bring_in_turn("receipt")
    desk.gate.open.set()
    desk.join()

    assert ([2], 3) == (desk.levels.seen, len(desk.marks()))


def test_an_interrupted_switch_leaves_nobody_without_the_disk() -> None:
    """Whoever is interrupted while the connection is told not to wait: what must last waits all the same."""
    for number in count():
        desk = Desk()
        interrupt = InterruptAt(group_commit.__file__, number)
        try:
            with interrupt:
                desk.commits.run(desk.mark("lease"), lasting=False)
        except KeyboardInterrupt:
            pass
        desk.commits.run(desk.mark("receipt"))
        assert 2 == desk.levels.seen[-1], interrupt.struck
        if not interrupt.struck:
            break

    assert number > 10


def test_a_refused_command_takes_no_other_with_it() -> None:
    """Of many in one transaction, the refused one leaves nothing and its caller alone is told."""
    desk = Desk()
    with desk.crowd("a", "b"):
        desk.bring("refused", refuse)
        until(lambda: len(desk.commits._queue) == 3)
        desk.bring_in_turn("c")

    assert ["a", "b", "c"] == desk.marks()
    assert {"a": None, "b": None, "refused": REFUSAL, "c": None} == desk.outcomes
    assert 1 == desk.gate.entered


def test_a_refused_leader_still_writes_for_the_others() -> None:
    """The first may be refused itself; the others are written all the same."""
    desk = Desk()
    with desk.crowd("leader", "a", "b", apply=refuse):
        pass

    assert (["a", "b"], {"leader": REFUSAL, "a": None, "b": None}) == (desk.marks(), desk.outcomes)


def test_a_mistake_in_one_command_is_its_callers_alone() -> None:
    """An error that is not ours, from somebody else's command, does not come out of another's call."""
    desk = Desk()
    mistake = ZeroDivisionError("a bug")

    def fail() -> None:
        raise mistake

    with desk.crowd("a"):
        desk.bring("mistaken", desk.mark("mistaken", then=fail))
        until(lambda: len(desk.commits._queue) == 2)
        desk.bring_in_turn("b")

    assert {"a": None, "mistaken": mistake, "b": None} == desk.outcomes
    assert ["a", "b"] == desk.marks()


def test_a_database_that_fails_fails_all_and_keeps_nothing() -> None:
    """If the transaction itself cannot be written, everybody in it is told, and the next one is free to try."""
    desk = Desk()
    with desk.crowd("a", "b", "c"):
        desk.connection.set_exec_trace(lambda *_: False)
    desk.connection.set_exec_trace(None)

    assert {StoreUnavailableError} == {type(outcome) for outcome in desk.outcomes.values()}
    assert [] == desk.marks()
    desk.commits.run(desk.mark("next"))
    assert ["next"] == desk.marks()


def test_a_full_disk_in_the_middle_of_a_crowd_leaves_nothing_half_done() -> None:
    """A limit that is reached while a crowd is written: none of the crowd is there, and all are told why."""
    desk = Desk()
    desk.connection.pragma("max_page_count", 3)
    with desk.crowd("a"):
        desk.bring("big", desk.mark("x" * 50_000))
        until(lambda: len(desk.commits._queue) == 2)

    assert {"StoreFullError"} == {type(outcome).__name__ for outcome in desk.outcomes.values()}
    assert [] == desk.marks()


def test_an_interrupted_leader_leaves_the_others_to_an_heir() -> None:
    """The first is interrupted inside its own command: nothing of it is written, everything of the others is."""
    desk = Desk()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with desk.crowd("leader", "a", "b", "c", apply=desk.mark("leader", then=interrupt)):
        pass

    assert ["a", "b", "c"] == desk.marks()
    assert isinstance(desk.outcomes.pop("leader"), KeyboardInterrupt)
    assert {"a": None, "b": None, "c": None} == desk.outcomes


@pytest.mark.slow
def test_an_interrupt_anywhere_hangs_nobody_and_doubles_nothing() -> None:
    """Interrupt the leader at every point where a signal can strike: the others are written once, and the next too."""
    troubles = {}
    for number in count():
        desk = Desk(wait_for=0.5)
        interrupt = InterruptAt(group_commit.__file__, number)
        trouble = _lead_interrupted(desk, interrupt)
        if not interrupt.struck:
            break
        if trouble:
            troubles[f"{number} {interrupt.struck}"] = trouble

    assert number > 20
    assert {} == troubles


@pytest.mark.slow
def test_a_second_interrupt_hangs_nobody_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody hammers on Ctrl-C: what cleans up after the first interrupt is interrupted too, wherever it stands."""
    troubles = {}
    recover = GroupCommit._recover

    def recover_interrupted(self: GroupCommit, command: Any) -> None:  # noqa: ANN401 - one of its own
        interrupt.rearm()
        recover(self, command)

    monkeypatch.setattr(GroupCommit, "_recover", recover_interrupted)
    monkeypatch.setattr(group_commit, "_LOOK_SECONDS", 0.01)
    interrupt = InterruptAt(group_commit.__file__)
    for first in count():
        for second in count():
            desk = Desk(wait_for=2.0)
            interrupt = InterruptAt(group_commit.__file__, first, second)
            trouble = _lead_interrupted(desk, interrupt)
            if trouble:
                troubles[f"{first} {second} {interrupt.struck}"] = trouble
            if len(interrupt.struck) < 2:
                break
        if not interrupt.struck:
            break

    assert first > 20
    assert {} == troubles


def _lead_interrupted(desk: Desk, interrupt: InterruptAt) -> str:
    """Let a leader be interrupted while three wait, and one comes later; return what went wrong."""

    def lead() -> None:
        with interrupt:
            try:
                desk.commits.run(desk.mark("leader"))
            except KeyboardInterrupt:
                return

    leader = threading.Thread(target=lead, daemon=True)
    desk.gate.open.clear()
    leader.start()
    until(lambda: desk.gate.waiting.is_set() or not leader.is_alive())
    others = [desk.bring(name) for name in ("a", "b", "c")]
    until(lambda: len(desk.commits._queue) >= 3)
    desk.gate.open.set()
    for thread in (leader, *others):
        thread.join(1.0)
    late = desk.bring("late")
    late.join(1.0)
    told = {name: repr(desk.outcomes.get(name, "hangs")) for name in ("a", "b", "c", "late")}
    marks = desk.marks() if not leader.is_alive() else []
    wrong = [f"{name}: {outcome}" for name, outcome in told.items() if outcome != "None"]
    doubled = sorted({mark for mark in marks if marks.count(mark) > 1})
    held = [] if desk.gate.entered == desk.gate.left else ["the gate is not given back"]
    return "; ".join([*wrong, *(f"{mark} twice" for mark in doubled), *held])


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let a signal interrupt this thread, as Ctrl-C would."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("interruptible")
def test_a_waiter_who_is_interrupted_holds_nobody_up() -> None:
    """Somebody presses Ctrl-C while waiting in line: those before and after are written as if nothing had been."""
    desk = Desk(wait_for=2.0)
    here = threading.get_ident()
    writing, go = threading.Event(), threading.Event()

    def write_slowly() -> None:
        writing.set()
        go.wait(SOON)

    def press() -> None:
        until(lambda: len(desk.commits._queue) == 2)
        signal.pthread_kill(here, signal.SIGUSR1)

    desk.bring("leader", desk.mark("leader", then=write_slowly))
    writing.wait(SOON)
    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        desk.commits.run(desk.mark("waiter"))
    desk.bring("after")
    go.set()
    desk.join()
    desk.commits.run(desk.mark("later"))

    assert {"leader": None, "after": None} == desk.outcomes
    assert {"leader", "after", "later"} <= set(desk.marks())
    assert len(set(desk.marks())) == len(desk.marks())
    desk.commits.shut()


def test_who_waits_too_long_is_told_which_process_to_look_at() -> None:
    """The turn does not come in time: first in line or behind, each is told who has it, and nothing is written."""
    desk = Desk(wait_for=0.4)
    desk.gate.open.clear()
    desk.bring_in_turn("first")
    desk.commits._wait_for = 0.1
    desk.bring_in_turn("behind")
    desk.join()
    desk.gate.open.set()
    desk.commits.run(desk.mark("later"))

    assert [StoreBusyError, StoreBusyError] == [type(outcome) for outcome in desk.outcomes.values()]
    assert [] == [str(outcome) for outcome in desk.outcomes.values() if "4711" not in str(outcome)]
    assert ["later"] == desk.marks()


def test_a_leader_that_gives_up_takes_nobody_along() -> None:
    """The first has waited too long; those who came later still have time, and get their turn."""
    desk = Desk(wait_for=0.3)
    desk.gate.open.clear()
    desk.bring_in_turn("first")
    until(lambda: "first" in desk.outcomes or len(desk.commits._queue) == 1)
    desk.commits._wait_for = SOON
    desk.bring_in_turn("second")
    until(lambda: "first" in desk.outcomes)
    desk.gate.open.set()
    desk.join()

    assert isinstance(desk.outcomes["first"], StoreBusyError)
    assert (None, ["second"]) == (desk.outcomes["second"], desk.marks())


def test_a_shut_desk_takes_nothing_more() -> None:
    """After shutting, a command is refused and not written."""
    desk = Desk()
    desk.commits.run(desk.mark("before"))
    desk.commits.shut()

    with pytest.raises(StoreShutError):
        desk.commits.run(desk.mark("after"))

    assert ["before"] == desk.marks()


def test_shutting_waits_for_what_is_under_way() -> None:
    """Whoever was in line before the shutting is written."""
    desk = Desk()
    with desk.crowd("a", "b"):
        shutting = threading.Thread(target=desk.commits.shut)
        shutting.start()
        until(lambda: desk.commits._shut)
        assert shutting.is_alive()
    shutting.join(SOON)

    assert (["a", "b"], False) == (desk.marks(), shutting.is_alive())


def test_a_command_outside_transactions_runs_between_them() -> None:
    """What cannot run inside a transaction runs while nobody else uses the connection; its error is its caller's."""
    desk = Desk()
    seen: list[bool] = []
    desk.commits.run_alone(lambda connection: seen.append(connection.in_transaction))

    assert [False] == seen
    with pytest.raises(StoreUnavailableError, match="no such table"):
        desk.commits.run_alone(lambda connection: connection.execute("DELETE FROM absent"))
    desk.commits.run(desk.mark("next"))
    assert ["next"] == desk.marks()


def test_our_own_errors_come_out_as_they_went_in() -> None:
    """A command's refusal reaches its caller unchanged, and the gate is given back."""
    desk = Desk()
    refusal = InvalidValueError("field", "is wrong")

    def apply(_connection: apsw.Connection) -> None:
        raise refusal

    with pytest.raises(InvalidValueError) as refused:
        desk.commits.run(apply)

    assert refusal is refused.value
    assert (1, 1) == (desk.gate.entered, desk.gate.left)
