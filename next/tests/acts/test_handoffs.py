"""Handing off: the offer, the acceptance, the baton, the next attempt."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batonpass import (
    Brief,
    Constraint,
    Decision,
    Handoff,
    HandoffOptions,
    Intent,
    OpenQuestion,
    Relay,
    Run,
    RunState,
    State,
    current_run,
    tool,
)
from batonpass.errors import ConflictError, FencedError, HandoffError, LifecycleError, NotFoundError
from batonpass.testing import Faults, a_relay, a_run, an_attempt, observe, say_in_json


@tool
def send(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@pytest.mark.parity("hand-off-is-durable")
def test_a_handoff_is_durable_when_it_returns(tmp_path: Path) -> None:
    """Before anything of the child runs, another process finds it with everything that travels with it."""
    with a_relay(tmp_path / "l.db") as relay:
        root = a_run(relay, intent="Close the quarter")
        root.record(Decision("half-even", why="the law"), Constraint("no negative totals"))
        handoff = root.hand_off(
            "editor",
            "Round all totals",
            criteria=["tests pass"],
            brief=Brief(rationale="sums differ", inputs=("totals.csv",)),
            items=[OpenQuestion("which cents?", blocking=True)],
        )
        with a_relay(tmp_path / "l.db") as other:
            found = other.handoff(handoff.id)
            info, baton = found.info(), found.baton()

        assert handoff.baton() == baton
    assert (State.OFFERED, 0, None, "editor", "Round all totals") == (
        info.state,
        info.attempt,
        info.run,
        info.to,
        info.task,
    )
    assert (Intent("Close the quarter", by="user:ana"),) == baton.intent
    assert ("Round all totals", ("tests pass",), ("lead",)) == (baton.task, baton.criteria, baton.agents)
    assert (
        Decision("half-even", why="the law"),
        Constraint("no negative totals"),
        OpenQuestion("which cents?", blocking=True),
    ) == baton.items
    assert Brief(rationale="sums differ", inputs=("totals.csv",)) == baton.brief


@pytest.mark.parity("run-records-items")
def test_what_each_hop_recorded_travels_down(tmp_path: Path) -> None:
    """A child is handed what everybody above it knew when they handed on; also in another process."""
    with a_relay(tmp_path / "l.db") as relay:
        root = a_run(relay)
        root.record(Decision("one"))
        child = root.hand_off("a", "x").accept()
        root.record(Decision("too late"))
        child.record(Decision("two"), Decision("three"))
        handoff = child.hand_off("b", "y")
        with a_relay(tmp_path / "l.db") as other:
            leaf = other.handoff(handoff.id).accept()
        recorded = observe(relay).of("run.recorded.items")

    assert ["one", "two", "three"] == [item.text for item in leaf.baton.items]
    assert ("lead", "a") == leaf.baton.agents
    assert [1, 1, 2] == [receipt.body["count"] for receipt in recorded]
    assert [{"item": "decision", "text": "two"}, {"item": "decision", "text": "three"}] == recorded[-1].value("items")


@pytest.mark.parity("offer-and-accept-in-one-commit")
def test_offer_and_acceptance_are_one_commit() -> None:
    """The child's run is the answer; if the commit fails there is neither."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        root = a_run(relay, may=["call:**"])
        before = faults.commits
        child = root.hand_off("editor", "x", may=["call:**"], accept=True)
        assert before + 1 == faults.commits
        assert ["handoff.initiated", "handoff.accepted"] == observe(relay).kinds()[-2:]
        assert ("editor", 1, root.id, State.RUNNING) == (
            child.agent,
            child.attempt,
            child.parent,
            relay.handoff(child.handoff or "").state(),
        )

        seen = observe(relay).receipts
        faults.fail()
        with pytest.raises(Exception, match="disk is full"):
            root.hand_off("tester", "x", may=["call:**"], accept=True)
        assert seen == observe(relay).receipts


@pytest.mark.parity("handoff-accept-runs-the-child")
@pytest.mark.parametrize(
    "begin", [pytest.param(Handoff.accept, id="accept"), pytest.param(Handoff.__enter__, id="with")]
)
def test_accepting_runs_the_child(begin: Callable[[Handoff], Run]) -> None:
    """The attempt has its agent, its task, its parent; its first receipt names the key with which it countersigns."""
    with a_relay() as relay:
        root = a_run(relay)
        handoff = root.hand_off("editor", "Round")
        run = begin(handoff)
        accepted = observe(relay).last("handoff.accepted")
        if current_run() is run:
            handoff.__exit__(None, None, None)
        relay.verify()

    assert ("editor", "Round", root.id, root.id, handoff.id, "user:ana") == (
        run.agent,
        run.task,
        run.parent,
        run.root,
        run.handoff,
        run.principal,
    )
    assert {"handoff": handoff.id, "parent": root.id, "run": run.id, "agent": "editor", "attempt": 1}.items() <= (
        accepted.body.items()
    )
    assert 64 == len(accepted.body["run_key"])


@pytest.mark.parametrize("state", ["running", "failed", "cancelled", "completed"])
def test_only_an_offer_is_accepted(state: str) -> None:
    """The sentence says what is possible instead."""
    with a_relay() as relay:
        root = a_run(relay)
        handoff = root.hand_off("editor", "Round")
        if state == "cancelled":
            root.close()
        else:
            run = handoff.accept()
            if state != "running":
                run.close(ValueError() if state == "failed" else None)
        with pytest.raises(LifecycleError, match=f"is {state}: it cannot accept; what is possible now"):
            handoff.accept()


@pytest.mark.parity("same-offer-is-the-same-handoff")
def test_the_same_offer_is_the_same_handoff(tmp_path: Path) -> None:
    """By the same parent, in whichever process, also after a restart; another word makes another handoff."""
    with a_relay(tmp_path / "l.db") as relay:
        root = a_run(relay)
        first, second = root.hand_off("editor", "Round"), root.hand_off("editor", "Round")
        others = {
            root.hand_off("tester", "Round").id,
            root.hand_off("editor", "Round up").id,
            root.hand_off("editor", "Round", criteria=["tests pass"]).id,
            root.hand_off("editor", "Round", may=["read:a"]).id,
            a_run(relay).hand_off("editor", "Round").id,
        }
        with a_relay(tmp_path / "l.db") as other:
            again = other.resume(root.id).hand_off("editor", "Round")

    assert first.id == second.id == again.id
    assert 5 == len(others - {first.id})


def test_a_key_makes_offers_the_same_or_not() -> None:
    """`options.key` takes the place of the words: where they differ each time, or the same is done twice."""
    with a_relay() as relay:
        root = a_run(relay)
        first = root.hand_off("editor", "Round 12 totals", options=HandoffOptions(key="round"))
        same = root.hand_off("editor", "Round 13 totals", options=HandoffOptions(key="round"))
        another = root.hand_off("editor", "Round 12 totals", options=HandoffOptions(key="again"))

    assert first.id == same.id
    assert first.id != another.id


@pytest.mark.parity("handoff-retry", "finished-calls-are-replayed")
def test_a_failed_handoff_is_retried() -> None:
    """The next attempt has the same baton and the results of the last; who decided, and why, is recorded."""
    with a_relay() as relay:
        handoff = a_run(relay).hand_off("editor", "Round")
        first = handoff.accept()
        first.call(send, "ana")
        first.close(ValueError("tests fail"))
        handoff.retry(by="user:ana", reason="the test was wrong")
        second = handoff.accept()
        seen = observe(relay)
        retried = seen.last("handoff.retried")

        assert (1, 2, first.baton) == (first.attempt, second.attempt, second.baton)
        assert "sent to ana" == second.call(send, "ana")
        assert 1 == observe(relay).counts()["tool.requested"]
    assert ("user:ana", 1, "the test was wrong") == (
        retried.body["by"],
        retried.body["attempt"],
        retried.text("reason"),
    )
    assert first.id == retried.body["ended_run"]["run"]


@pytest.mark.parity("retry-of-a-killed-attempt", "fence-names-the-exact-head")
def test_a_running_handoff_is_retried_and_its_attempt_cannot_come_back(tmp_path: Path) -> None:
    """It is fenced at the head that was read: it can request, deliver and close nothing."""
    with a_relay(tmp_path / "l.db") as old, a_relay(tmp_path / "l.db") as new:
        first = an_attempt(old)
        handoff = new.handoff(first.handoff or "")
        second = handoff.retry(by="user:ana").accept()
        for act in (lambda: first.call(send, "ana"), lambda: first.hand_off("x", "x"), first.close):
            with pytest.raises(FencedError):
                act()
        second.close()
        seen = observe(new)

    assert (RunState.FENCED, RunState.COMPLETED) == (seen.runs[first.id], seen.runs[second.id])


@pytest.mark.parity("fence-names-the-exact-head")
def test_a_retry_that_is_overtaken_by_its_attempt_is_decided_anew(tmp_path: Path) -> None:
    """The attempt lives and writes between the look and the commit: the fence stands behind what it wrote."""
    faults = Faults()
    with a_relay(tmp_path / "l.db") as old, a_relay(tmp_path / "l.db", faults=faults) as new:
        first = an_attempt(old)
        faults.at(faults.commits + 1, "before", lambda: first.call(send, "ana"))
        again = new.handoff(first.handoff or "").retry(by="user:ana").accept()
        ended = observe(new).last("handoff.retried").body["ended_run"]

        assert 3 == ended["seq"]
        assert "sent to ana" == again.call(send, "ana")
        assert 1 == observe(new).counts()["tool.requested"]


def test_what_is_not_over_and_not_at_work_is_not_retried() -> None:
    """An offer waits; a completed or withdrawn handoff is over."""
    with a_relay() as relay:
        root = a_run(relay)
        offered, done = root.hand_off("a", "x"), root.hand_off("b", "x", accept=True)
        done.close()
        for handoff in (offered, relay.handoff(done.handoff or "")):
            with pytest.raises(LifecycleError, match="it cannot retry"):
                handoff.retry(by="user:ana")


@pytest.mark.parity("acceptance-names-the-handoff-head")
def test_an_acceptance_that_was_overtaken_is_decided_anew(tmp_path: Path) -> None:
    """Between the look and the commit another accepts, and is retried: the late one is the second attempt."""
    faults = Faults()
    with a_relay(tmp_path / "l.db", faults=faults) as late, a_relay(tmp_path / "l.db") as early:
        handoff = a_run(late).hand_off("editor", "Round")

        def overtake() -> None:
            early.handoff(handoff.id).accept()
            early.handoff(handoff.id).retry(by="user:ana")

        faults.at(faults.commits + 1, "before", overtake)
        run = handoff.accept()
        late.verify()

    assert 2 == run.attempt


@pytest.mark.parity("relay-resumes-a-killed-root", "finished-calls-are-replayed")
def test_a_root_is_resumed_by_another_process(tmp_path: Path) -> None:
    """It has its finished calls and its children; the process that had it before is fenced."""
    with a_relay(tmp_path / "l.db") as old, a_relay(tmp_path / "l.db") as new:
        root = a_run(old)
        root.call(send, "ana")
        child = root.hand_off("editor", "Round")
        again = new.resume()
        assert (root.id, "sent to ana", child.id) == (
            again.id,
            again.call(send, "ana"),
            again.hand_off("editor", "Round").id,
        )
        with pytest.raises(FencedError):
            root.call(send, "bob")
        again.close()
        with pytest.raises(NotFoundError, match="nothing to resume"):
            new.resume()

        assert 1 == observe(new).counts()["tool.requested"]


def test_an_attempt_is_not_resumed() -> None:
    """Its handoff is retried: that says who decided."""
    with a_relay() as relay, pytest.raises(HandoffError, match="retry the handoff"):
        relay.resume(an_attempt(relay).id)


@pytest.mark.parity("newer-epoch-is-not-adopted")
def test_a_process_that_lost_its_run_does_not_go_on_in_the_newer_epoch(tmp_path: Path) -> None:
    """Also after an append of which it did not hear, when it reads the head again."""
    faults = Faults()
    with a_relay(tmp_path / "l.db", faults=faults) as old, a_relay(tmp_path / "l.db") as new:
        root = a_run(old)
        faults.fail("after")
        root.record(Decision("one"))
        new.resume(root.id)
        for _ in range(2):
            with pytest.raises(FencedError):
                root.record(Decision("two"))


@pytest.mark.parity("fenced-comes-before-closed", "sim-fenced-run-hears-fenced")
def test_a_fenced_run_hears_that_it_was_taken_over(tmp_path: Path) -> None:
    """Also when its stream has been closed meanwhile, and whatever it tries."""
    with a_relay(tmp_path / "l.db") as old, a_relay(tmp_path / "l.db") as new:
        root = a_run(old)
        attempt = an_attempt(old, parent=root)
        new.handoff(attempt.handoff or "").retry(by="user:ana").accept().close()
        new.resume(root.id).close()
        for act in (root.close, attempt.close, lambda: attempt.call(send, "ana")):
            with pytest.raises(FencedError, match="was taken over") as raised:
                act()
            assert "ledger.fenced" == raised.value.code


@pytest.mark.parity("interrupt-after-commit-loses-no-handoff")
def test_an_interrupt_right_after_the_commit_of_an_offer_loses_no_child() -> None:
    """The program never got the handoff; the close of its run withdraws it."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        root = a_run(relay)

        def interrupt() -> None:
            raise KeyboardInterrupt

        faults.at(faults.commits + 1, "after", interrupt)
        with pytest.raises(KeyboardInterrupt):
            root.hand_off("editor", "Round")
        root.close()

        assert [State.CANCELLED] == list(observe(relay).handoffs.values())


@pytest.mark.parity("sim-listed-heads-mean-at-least")
def test_a_child_that_goes_on_while_its_parent_closes_breaks_nothing(tmp_path: Path) -> None:
    """The close lists the child's head as it was read; what the child wrote since is there as well."""
    faults = Faults()
    with a_relay(tmp_path / "l.db", faults=faults) as relay, a_relay(tmp_path / "l.db") as other:
        root = a_run(relay)
        child = root.hand_off("editor", "Round", accept=True)
        elsewhere = other.run(child.id)
        faults.at(faults.commits + 1, "before", lambda: elsewhere.call(send, "ana"))
        root.close()
        (head,) = observe(relay).last("run.closed").body["children"]

        assert (child.id, 1) == (head["run"], head["seq"])
        assert 4 + 4 == relay.verify().receipts


@pytest.mark.parity("sim-request-repeated-at-once")
@pytest.mark.parametrize("act", ["start", "hand_off", "accept", "close", "retry", "resume"])
def test_a_request_that_is_repeated_at_once_is_answered_from_its_receipt(act: str, tmp_path: Path) -> None:
    """Another process makes the same request between our look and our commit: one receipt, and one answer."""
    faults = Faults()
    with a_relay(tmp_path / "l.db", faults=faults) as relay, a_relay(tmp_path / "l.db") as other:
        root = a_run(relay)
        handoff = root.hand_off("editor", "Round")
        if act == "retry":
            handoff.accept()
        requests: dict[str, dict[str, Any]] = {
            "start": {"intent": "x", "by": "user:ana"},
            "hand_off": {"run": root.id, "to": "tester", "task": "Test", "accept": True},
            "accept": {"handoff": handoff.id},
            "close": {"run": root.id},
            "retry": {"handoff": handoff.id, "by": "user:ana"},
            "resume": {"run": root.id},
        }
        answers = []

        def ask(relay: Relay) -> None:
            answer = say_in_json(relay, act, requests[act], key="k")
            answers.append({name: each for name, each in answer.items() if name not in {"is_replayed", "run"}})

        faults.at(faults.commits + 1, "before", lambda: ask(other))
        ask(relay)
        caused = [receipt for receipt in observe(relay).receipts if receipt.request is not None]

    assert answers[0] == answers[1]
    assert {"start": 1, "hand_off": 2, "accept": 1, "close": 2, "retry": 1, "resume": 1}[act] == len(caused)


def test_eight_threads_that_ask_at_once_are_answered_once() -> None:
    """The index in the commit decides, not a memory; another request with the key is refused."""
    with a_relay() as relay:
        runs: list[str] = []
        threads = [
            threading.Thread(target=lambda: runs.append(relay.start("x", by="user:ana", key="k").id)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert (8, 1) == (len(runs), len(set(runs)))
        assert ["run.started"] == observe(relay).kinds()
        with pytest.raises(ConflictError, match="take a new key"):
            relay.start("y", by="user:ana", key="k")


@pytest.mark.parity("late-result-is-evidence")
def test_a_late_result_is_evidence(tmp_path: Path) -> None:
    """It stands in the handoff's stream with its words, and changes no state; the tool's caller is told."""
    with a_relay(tmp_path / "l.db") as old, a_relay(tmp_path / "l.db") as new:
        run = an_attempt(old)
        begun = run.begin_call("send", b"[]")
        new.handoff(run.handoff or "").retry(by="user:ana", skip=[begun.id])
        with pytest.raises(FencedError):
            begun.succeed("sent to ana")
        seen = observe(new)
        late = seen.last("tool.late_result")

    assert (run.handoff, begun.id, "completed", "sent to ana") == (
        late.stream,
        late.body["call"],
        late.body["outcome"],
        late.value("result"),
    )
    assert State.OFFERED == seen.handoffs[run.handoff or ""]


@pytest.mark.parity("sim-retried-then-killed-is-still-open-work")
def test_a_handoff_that_was_retried_and_not_accepted_is_still_open_work(tmp_path: Path) -> None:
    """Whoever retried it is gone: another process accepts it, and may retry it again."""
    with a_relay(tmp_path / "l.db") as relay:
        run = an_attempt(relay)
        relay.handoff(run.handoff or "").retry(by="user:ana")
    with a_relay(tmp_path / "l.db") as relay:
        handoff = relay.handoff(run.handoff or "")
        assert 2 == handoff.accept().attempt
        assert 3 == handoff.retry(by="user:ana").accept().attempt


def test_a_completed_handoff_gives_again_what_it_did() -> None:
    """A program that was resumed enters its finished children again: nothing is made, and nothing is written."""
    with a_relay() as relay:
        root = a_run(relay)
        with root.hand_off("editor", "Round") as first:
            first.call(send, "ana")
            first.report("done")
        before = observe(relay).receipts
        with relay.resume(root.id).hand_off("editor", "Round") as again:
            assert (True, "sent to ana") == (again.is_replayed, again.call(send, "ana"))
            again.report("another")

        assert ["run.rekeyed"] == [receipt.kind for receipt in observe(relay).receipts[len(before) :]]
        assert "done" == relay.handoff(first.handoff or "").result().report.result  # type: ignore[union-attr]
