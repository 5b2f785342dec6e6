"""Handoffs as people use them: a task is handed on, its agent dies, another goes on, and nothing happens twice."""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import batonpass
from batonpass import Handling
from batonpass.default import _RELAYS, default_relay
from batonpass.errors import (
    CallHeldError,
    CallInDoubtError,
    FencedError,
    HandoffAskedError,
    KeyReusedError,
    LeaseLostError,
    NotEntitledError,
    StreamClosedError,
)
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.model.base.kinds import Mode, Settlement
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Constraint, OpenQuestion
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from tests.unit.handoff.places import (
    ANA,
    AT_ONCE,
    LONG,
    STORES,
    Disk,
    Places,
    at_once,
    begin_only,
    bodies,
    fail,
    kinds,
    places_at,
    shared,
    worker,
)


@pytest.fixture(params=STORES)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Return a ledger, which is verified after every scenario."""
    places = places_at(request, tmp_path)
    yield places
    places.close()


@pytest.fixture
def relay(places: Places) -> Relay:
    """Return the relay of one process."""
    return places.relay()


@pytest.fixture
def disk() -> Disk:
    """Return a world in which nothing has happened."""
    return Disk()


def test_the_quick_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that the documentation begins with run as they stand, in any directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    fixed = "def total(): ...\n"

    def write_file(path: str, text: str) -> None:
        Path(path).write_text(text, encoding="utf-8")

    from batonpass import Decision, start  # noqa: PLC0415 - as a reader would write it

    with start("Fix invoice rounding", by="user:ana") as lead:
        lead.record(Decision("round half-even", why="tax office"))
        with lead.hand_off(
            "editor", "Make total() round half-even", may=["write:src/**"]
        ) as editor:  # may= is optional
            editor.call(write_file, "src/invoice.py", fixed)
            editor.report("done", open_questions=["negative totals untested"])

    relay = default_relay()
    assert fixed == (tmp_path / "src" / "invoice.py").read_text(encoding="utf-8")
    assert (2, 1, 0) == (relay.verify().runs, relay.verify().handoffs, relay.verify().erased)
    assert "start" in batonpass.__all__
    _RELAYS.clear()
    relay.close()


class TestTryingAgain:
    """A failed attempt is tried again: what it finished is kept, and nothing happens twice in the world."""

    def steps(self, run: LiveRun, disk: Disk, *, until: int = 3) -> None:
        """Write some files, one after the other."""
        for number in range(until):
            run.call(disk.write, f"{number}.txt", f"text {number}")

    @pytest.mark.parametrize("how", ["retry", "replace", "ask again"])
    def test_finished_calls_are_not_made_again(self, relay: Relay, disk: Disk, how: str) -> None:
        """By the same agent, by another, or by asking for the same once more."""
        lead = relay.start("begin", by=ANA)
        handoff = lead.hand_off("drafter", "write three files")
        run = handoff.accept()
        self.steps(run, disk, until=2)
        fail(run)
        match how:
            case "retry":
                handoff.retry(by=ANA)
            case "replace":
                handoff.replace("expert", by=ANA)
            case _:
                handoff = lead.hand_off("drafter", "write three files")
        with handoff as run:
            self.steps(run, disk)
        lead.close()

        assert [(f"{number}.txt", f"text {number}") for number in range(3)] == disk.written
        assert (2, 1) == (bodies(relay, "handoff.completed")[0].kept, len(bodies(relay, "run.started")))

    @pytest.mark.parametrize("mode", Mode)
    def test_a_model_that_rewords_and_reorders_is_caught_at_the_target(
        self, relay: Relay, disk: Disk, mode: Mode
    ) -> None:
        """Enforced, a changed target is not changed again; observed, it is flagged before it happens."""
        lead = relay.start("begin", by=ANA, mode=mode)
        handoff = lead.hand_off("drafter", "write the letter")
        run = handoff.accept()
        run.call(disk.write, "letter.txt", "Dear customer")
        fail(run)
        handoff.retry(by=ANA)
        with handoff as run:
            run.call(disk.write, "notes.txt", "first something else")
            if mode is Mode.ENFORCED:
                with pytest.raises(CallHeldError):
                    run.call(disk.write, "letter.txt", "Dear valued customer")
            else:
                run.call(disk.write, "letter.txt", "Dear valued customer")
            run.report("done")

        letters = [path for path, _ in disk.written if path == "letter.txt"]
        denied = [body.rule for body in bodies(relay, "tool.denied")]
        flagged = [body.flags for body in bodies(relay, "tool.requested") if body.flags]
        if mode is Mode.ENFORCED:
            assert (1, ["target-changed"], []) == (len(letters), denied, flagged)
        else:
            assert (2, [], [("would_hold.target-changed",)]) == (len(letters), denied, flagged)

    def test_a_model_goes_on_from_its_messages(self, places: Places, disk: Disk) -> None:
        """The next attempt, in another process, starts from what the last one kept after its last finished call."""
        lead = places.relay().start("begin", by=ANA)
        lead.hand_off("worker", "think", carrier=Carrier.WORKER)
        run = worker(places.relay(), AT_ONCE)
        run.call(disk.write, "a.txt", "a")
        run.checkpoint([{"role": "assistant", "content": "wrote a.txt"}])
        places.relay().sweep()
        run = worker(places.relay())

        assert [{"role": "assistant", "content": "wrote a.txt"}] == run.messages()
        assert ["write"] == [call.tool for call in run.earlier.finished]
        run.close()

    def test_calls_in_doubt_are_repeated_only_if_that_is_safe(self, relay: Relay, disk: Disk) -> None:
        """An idempotent tool is; of the others somebody decides: one more time, or taken as done."""
        lead = relay.start("begin", by=ANA)
        handoff = lead.hand_off("mailer", "send two mails")
        run = handoff.accept()
        doubts = [
            begin_only(run, disk.put, "a.txt"),
            begin_only(run, disk.mail, "bob"),
            begin_only(run, disk.mail, "eve"),
        ]
        fail(run)
        handoff.retry(by=ANA)
        with handoff as run:
            run.call(disk.put, "a.txt")
            for to in ("bob", "eve"):
                with pytest.raises(CallInDoubtError):
                    run.call(disk.mail, to)
            handoff.settle(doubts[1], Settlement.REPEAT, by=ANA, reason="not in the outbox")
            handoff.settle(doubts[2], Settlement.SKIP, by=ANA, reason="she has it")
            run.call(disk.mail, "bob")
            run.call(disk.mail, "eve")

        assert doubts == [call.id for call in run.earlier.in_doubt]
        assert [("put", "a.txt"), ("mail", "bob")] == disk.written


class TestProcessesThatDie:
    """Workers and whole processes go away; the tree goes on."""

    def test_a_frozen_worker_comes_back_and_can_do_nothing(self, places: Places, disk: Disk) -> None:
        """Its lease ran out, another took the work: it can request nothing and deliver nothing."""
        there, here = places.relay(), places.relay()
        lead = here.start("begin", by=ANA)
        handoff = lead.hand_off("worker", "do it", carrier=Carrier.WORKER)
        frozen = worker(there, AT_ONCE)
        frozen.call(disk.write, "a.txt", "a")
        here.sweep()
        with worker(here) as run:
            run.call(disk.write, "a.txt", "a")
            run.report("done")

        with pytest.raises((StreamClosedError, FencedError)):
            frozen.call(disk.write, "b.txt", "b")
        with pytest.raises((StreamClosedError, FencedError)):
            frozen.close()
        assert ([("a.txt", "a")], "done", 2) == (
            disk.written,
            handoff.wait(timedelta(seconds=30)).value,
            handoff.info().attempt,
        )

    def test_of_two_workers_one_gets_it(self, places: Places) -> None:
        """Eight claims at once on two relays: each handoff is claimed once."""
        relays = [places.relay(), places.relay()]
        lead = relays[0].start("begin", by=ANA)
        ids = {lead.hand_off("worker", f"task {number}", carrier=Carrier.WORKER).id for number in range(4)}
        found = at_once(
            *[lambda relay=relay: relay.claim(holder="w", lease_for=LONG) for relay in relays for _ in range(4)]
        )
        claimed = [lease.handoff for lease in found if lease is not None]

        assert (len(claimed), ids) == (len(set(claimed)), ids | set(claimed))
        lost = next(lease for lease in found if lease is not None)
        relays[0].release(lost)
        with pytest.raises(LeaseLostError):
            relays[1].handoff(lost.handoff).accept(lease=lost)

    def test_children_of_a_lapsed_attempt_go_on_and_are_adopted(self, places: Places) -> None:
        """The leaf works while its parent is dead; the parent's next attempt finds it by key, finished."""
        relay = places.relay()
        lead = relay.start("begin", by=ANA)
        handoff = lead.hand_off("worker", "middle", carrier=Carrier.WORKER)
        leaf = worker(places.relay(), AT_ONCE).hand_off("leaf", "small", carrier=Carrier.WORKER)
        relay.sweep()
        with worker(places.relay(), agent="leaf") as run:
            run.report("leaf done")
        with worker(relay) as run:
            adopted = run.hand_off("leaf", "small", carrier=Carrier.WORKER)
            result = adopted.wait(timedelta(seconds=30))
            run.report(f"middle done, {result.value}")

        assert (leaf.id, "middle done, leaf done") == (adopted.id, handoff.result().value)
        assert 1 == len([body for body in bodies(relay, "handoff.accepted") if body.agent == "leaf"])

    def test_another_process_goes_on_with_the_whole_tree(self, places: Places, disk: Disk) -> None:
        """The program is started again with the root's id: it runs through, and does only what was left."""

        def program(lead: LiveRun, dies_in: str | None) -> None:
            for name in ("parse", "write"):
                middle = lead.hand_off(name, f"{name} it").accept()
                for part in ("one", "two"):
                    leaf = middle.hand_off("leaf", f"{name} {part}").accept()
                    leaf.call(disk.write, f"{name}-{part}", "text")
                    if dies_in == f"{name} {part}":
                        return
                    leaf.report(part)
                    leaf.close()
                middle.report(name)
                middle.close()
            lead.close()

        dead = places.relay().start("begin", by=ANA)
        program(dead, "write one")
        program(places.relay().resume(dead.id), None)
        relay = places.relay()

        assert ["parse-one", "parse-two", "write-one", "write-two"] == [path for path, _ in disk.written]
        with pytest.raises((FencedError, StreamClosedError)):
            dead.hand_off("late", "too late")
        assert 1 == len(bodies(relay, "run.closed"))

    def test_cancelling_a_handoff_cancels_everything_below(self, places: Places) -> None:
        """In every process: what runs is fenced, what waits is withdrawn."""
        relay = places.relay()
        lead = relay.start("begin", by=ANA)
        handoff = lead.hand_off("worker", "middle", carrier=Carrier.WORKER)
        middle = worker(places.relay())
        leaves = [middle.hand_off("leaf", f"leaf {number}", carrier=Carrier.WORKER) for number in range(2)]
        running = worker(places.relay(), agent="leaf")
        handoff.cancel(reason="not needed")

        assert [State.CANCELLED] * 3 == [one.state() for one in (handoff, *leaves)]
        for run in (middle, running):
            with pytest.raises((StreamClosedError, FencedError)):
                run.close()


def test_the_same_key_from_two_processes_is_one_handoff(places: Places) -> None:
    """Offered at once from two processes that share a run; with something else under it, it is refused."""
    if places.url == "memory:":
        pytest.skip("what is in memory has one process")
    one = places.relay(keys_in_files=True)
    lead, other = shared(one.start("begin", by=ANA), places.relay(keys_in_files=True))
    found = at_once(
        *[
            lambda run=run: run.hand_off("worker", "it", handling=Handling(key="k")).id
            for run in (lead, other)
            for _ in "abc"
        ]
    )

    assert (1, 1) == (len(set(found)), len(bodies(one, "handoff.initiated")))
    with pytest.raises(KeyReusedError, match=r"differs in to .worker, now expert., task"):
        other.hand_off("expert", "something else", handling=Handling(key="k"))


def test_a_question_is_asked_once_and_its_answer_is_countersigned(places: Places) -> None:
    """The answer makes revision 1; the acceptance names it; where nobody may ask, it says that it would have."""
    asking, silent = places.relay(policy=HandoffPolicy(asks=True)), places.relay()
    question = OpenQuestion("before or after tax?", blocking=True)
    lead = asking.start("begin", by=ANA)
    handoff = lead.hand_off("editor", "round it", items=[question])
    with pytest.raises(HandoffAskedError, match="before or after tax"):
        handoff.accept()
    handoff.answer("after", by=ANA)
    handoff.accept().close()
    silent.start("begin", by=ANA).hand_off("editor", "round it", items=[question]).accept()
    accepted = bodies(asking, "handoff.accepted")

    assert (1, "after") == (handoff.baton().revision, handoff.baton().answers[0].answer)
    assert [False, True] == [body.would_ask for body in accepted]
    assert accepted[0].baton != handoff.info().initiated


def test_what_binds_is_relaxed_by_whoever_may(relay: Relay) -> None:
    """Its author or the root's principal; nobody else, and never silently."""
    lead = relay.start("begin", by=ANA, items=[Constraint("never touch the API")])
    (bound,) = lead.notes
    child = lead.hand_off("editor", "change it").accept()
    for by in ("agent:editor", "agent:lead", "user:bob"):
        with pytest.raises(NotEntitledError):
            child.relax(bound, by=by, reason="in my way")
    child.relax(bound, by=ANA, reason="version 2 is out")
    grandchild = child.hand_off("helper", "help").accept()
    assert grandchild.baton is not None

    assert ((), [ANA]) == (grandchild.baton.constraints, [body.by for body in bodies(relay, "run.relaxed")])


def test_held_handoffs_wait_for_a_person_and_overdue_ones_end(relay: Relay) -> None:
    """Approved, denied, or expired by the store's clock."""
    lead = relay.start("begin", by=ANA)
    yes, no = (lead.hand_off("ops", task, hold=True, carrier=Carrier.WORKER) for task in ("deploy", "drop tables"))
    late = lead.hand_off("ops", "late", hold=True, deadline=datetime(2020, 1, 1, tzinfo=UTC))
    assert None is relay.claim(holder="w", lease_for=LONG)
    yes.approve(by=ANA)
    no.deny(by=ANA, reason="never")
    relay.sweep()

    assert (State.READY, State.DENIED, State.EXPIRED) == (yes.state(), no.state(), late.state())
    assert "never" == no.result().reason


@pytest.mark.parametrize(
    ("judge", "state", "exit_code"),
    [
        (lambda h: h.verify(command=[sys.executable, "-c", "print('ok')"]), State.VERIFIED, 0),
        (lambda h: h.verify(command=[sys.executable, "-c", "raise SystemExit(2)"]), State.REFUTED, 2),
        (lambda h: h.verify(check=lambda: True), State.VERIFIED, None),
        (lambda h: h.verify(check=list), State.REFUTED, None),
        (lambda h: h.verify(verdict="read it", by="agent:editor"), State.VERIFIED, None),
        (lambda h: h.refute("wrong sign"), State.REFUTED, None),
    ],
    ids=["a command", "a failing command", "a check", "a failing check", "its producer", "a refutation"],
)
def test_results_are_judged_with_evidence(
    relay: Relay, judge: Callable[[LiveHandoff], Any], state: State, exit_code: int | None
) -> None:
    """A verdict comes with what it rests on; a second one stands beside the first."""
    lead = relay.start("begin", by=ANA)
    handoff = lead.hand_off("editor", "go")
    handoff.run(lambda _: "done")
    judge(handoff)
    handoff.verify(verdict="once more", by=ANA)
    verdict = next(body for kind in ("verification.passed", "verification.failed") for body in bodies(relay, kind))

    assert (state, exit_code, 1) == (handoff.state(), verdict.exit_code, len(bodies(relay, "verification.repeated")))
    assert (verdict.by == "agent:editor") is verdict.by_producer
    if exit_code == 0:
        assert sha256(b"ok\n").hexdigest() == verdict.output


@pytest.mark.filterwarnings("ignore::batonpass.errors.handoff.ReusedResultWarning")
def test_a_decline_is_an_answer_and_a_replay_is_no_second_run(relay: Relay) -> None:
    """A parent gets a value either way; going through a finished handoff again leaves no trace."""
    lead = relay.start("begin", by=ANA)
    declined = lead.hand_off("tester", "not my job", carrier=Carrier.WORKER)
    relay.handoff(declined.id).decline("I only test")

    def work() -> list[str]:
        with lead.hand_off("editor", "go") as run:
            run.report(f"done {run.attempt}")
        assert "done 1" == lead.hand_off("editor", "go").result().value
        return kinds(relay)

    assert (State.DECLINED, "I only test") == (declined.result().state, declined.result().reason)
    assert work() == work()
