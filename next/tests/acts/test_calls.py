"""Calls of tools: judged before, recorded before and after, replayed, in doubt."""

from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from batonpass import Relay, Run, State, current_call, current_run, tool
from batonpass.errors import BatonpassError, CallInDoubtError, ConflictError, InvalidValueError, OutcomeUnknownError
from batonpass.testing import Faults, a_relay, a_run, an_attempt, observe, say_in_json


@tool
def send(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


def keys(relay: Relay) -> list[str]:
    return [receipt.body["key"] for receipt in observe(relay).of("tool.requested")]


@pytest.mark.parity("run-calls-a-tool")
def test_a_call_is_recorded_before_and_after() -> None:
    """When the tool runs its request is durable; when its caller has the result the outcome is."""
    with a_relay() as relay:
        run = an_attempt(relay)

        @tool(action="write", target="path")
        def write(path: str, *, text: str) -> dict[str, Any]:
            assert "tool.requested" == observe(relay).kinds()[-1]
            return {"path": path, "size": len(text)}

        assert {"path": "out.txt", "size": 2} == run.call(write, "out.txt", text="ab")
        seen = observe(relay)
        asked, ended = seen.last("tool.requested"), seen.last("tool.completed")

    assert ["tool.requested", "tool.completed"] == seen.kinds()[-2:]
    assert ("write", "write", "out.txt") == (asked.body["tool"], asked.text("action"), asked.text("target"))
    assert [["out.txt"], {"text": "ab"}] == asked.value("arguments")
    assert {"path": "out.txt", "size": 2} == ended.value("result")
    assert asked.body["call"] == ended.body["call"]


@pytest.mark.parity("tool-knows-its-call")
def test_a_tool_knows_its_run_its_call_and_the_attempt() -> None:
    """An outside system can do a thing once by the key, which the next attempt has as well."""
    with a_relay() as relay:
        known = []

        @tool
        def look() -> None:
            known.append((current_run(), current_call()))
            raise OSError("disk full")

        run = an_attempt(relay)
        with pytest.raises(OSError, match="disk full"):
            run.call(look)
        run.close(ValueError())
        again = relay.handoff(run.handoff or "").retry(by="user:ana").accept()
        with pytest.raises(OSError, match="disk full"):
            again.call(look)
        requested = observe(relay).of("tool.requested")

    assert (current_run(), current_call()) == (None, None)
    runs, calls = [each[0] for each in known], [each[1] for each in known]
    assert [run, again] == runs
    assert [1, 2] == [call.attempt for call in calls if call is not None]
    assert [receipt.body["call"] for receipt in requested] == [call.call for call in calls if call is not None]
    assert 1 == len({call.key for call in calls if call is not None})


@pytest.mark.parity("tool-declares-action-and-target")
@pytest.mark.parametrize(
    ("declared", "permission"),
    [
        pytest.param({}, "call:work_on", id="nothing said"),
        pytest.param({"action": "deploy"}, "deploy:work_on", id="an action"),
        pytest.param({"action": "deploy", "target": "where"}, "deploy:prod", id="an action and a target"),
        pytest.param({"target": "where"}, "write:prod", id="a target"),
        pytest.param({"target": "where", "reads": True}, "read:prod", id="it reads"),
    ],
)
def test_a_call_is_judged_by_what_its_tool_declares(declared: dict[str, Any], permission: str) -> None:
    """The grant that names it lets it through, and no other does."""

    @tool(**declared)
    def work_on(what: str, where: str = "test") -> str:
        return f"{what} {where}"

    with a_relay() as relay:
        assert "app prod" == an_attempt(relay, may=[permission]).call(work_on, "app", where="prod")
        with pytest.raises(BatonpassError, match=f"tried {permission}"):
            an_attempt(relay, may=["other:thing"]).call(work_on, "app", "prod")


def test_a_tool_without_its_target_is_refused() -> None:
    """A call that does not say what it works on cannot be judged."""
    with a_relay() as relay, pytest.raises(InvalidValueError, match="needs where="):
        a_run(relay, may=["write:**"]).call(tool(target="where")(lambda where="x": where))


@pytest.mark.parity("interrupt-leaves-a-call-in-doubt", "sim-in-doubt-for-its-own-run")
@pytest.mark.parametrize("may", [[], ["call:**"]], ids=["observed", "enforced"])
def test_an_interrupt_leaves_a_call_in_doubt(may: list[str]) -> None:
    """It is no outcome: the call is listed, and refused to its own run as well until somebody decides."""
    with a_relay() as relay:
        run = an_attempt(relay, may=may or None)

        @tool("send")
        def interrupted(to: str) -> None:
            raise KeyboardInterrupt(to)

        with pytest.raises(KeyboardInterrupt):
            run.call(interrupted, "ana")
        with pytest.raises(CallInDoubtError, match="send 'send' was requested before"):
            run.call(send, "ana")
        assert "sent to bob" == run.call(send, "bob")
        (call,) = observe(relay).in_doubt
        assert [call.call] == [each.id for each in relay.handoff(run.handoff or "").info().in_doubt]

        with pytest.raises(CallInDoubtError):
            relay.handoff(run.handoff or "").retry(by="user:ana").accept().call(send, "ana")


@pytest.mark.parity("idempotent-tool-is-repeated")
@pytest.mark.parametrize("declared", [{"idempotent": True}, {"reads": True}], ids=["idempotent", "it only reads"])
def test_an_idempotent_tool_is_made_again_with_its_key(declared: dict[str, Any], tmp_path: Path) -> None:
    """In doubt it is made again without asking, and the outside system knows it by the same key."""
    with a_relay(tmp_path / "l.db") as first, a_relay(tmp_path / "l.db") as second:
        run = an_attempt(first)
        begun = run.begin_call("lookup", b'[["a"],{}]', idempotent=True)
        seen_keys = []

        @tool(**declared)
        def lookup(name: str) -> str:
            call = current_call()
            seen_keys.append(None if call is None else call.key)
            return name

        again = second.run(run.id)
        assert [begun.id] == [call.call for call in again.in_doubt]
        assert "a" == again.call(lookup, "a")
        assert [begun.key] == seen_keys
        assert () == second.run(run.id).in_doubt
        assert () == observe(second).in_doubt


@pytest.mark.parity("failed-call-frees-its-number", "call-key-is-stable")
def test_a_failed_call_frees_its_number() -> None:
    """Asked again it is the same call, with the same key; what finished keeps its own."""
    with a_relay() as relay:
        run, left = an_attempt(relay), ["disk full"]

        @tool("send")
        def fails_once(to: str) -> str:
            if left:
                raise OSError(left.pop())
            return to

        with pytest.raises(OSError, match="disk full"):
            run.call(fails_once, "ana")
        run.call(fails_once, "ana")
        run.call(fails_once, "ana")
        first, second, third = keys(relay)
        failed = observe(relay).last("tool.failed")

    assert first == second
    assert second != third
    assert "OSError('disk full')" == failed.text("error")


@pytest.mark.parity("call-key-is-stable")
def test_the_key_of_a_call_is_stable() -> None:
    """The next attempt's equal call has it; other arguments, another tool or another tree have others."""
    with a_relay() as relay:
        run = an_attempt(relay)
        begun = [run.begin_call(name, data).key for name, data in (("a", b"[1]"), ("a", b"[1]"), ("a", b"[2]"))]
        begun.append(run.begin_call("b", b"[1]").key)
        handoff = relay.handoff(run.handoff or "")
        again = handoff.retry(by="user:ana", repeat=[call.id for call in handoff.info().in_doubt]).accept()
        same = [again.begin_call("a", b"[1]").key, again.begin_call("a", b"[1]").key]
        other = an_attempt(relay).begin_call("a", b"[1]").key

    assert 4 == len(set(begun))
    assert begun[:2] == same
    assert other not in begun


def test_calls_with_other_targets_are_not_equal() -> None:
    """The second target alone, asked for by the next attempt, is given what the first attempt got for it."""
    with a_relay() as relay:
        run = an_attempt(relay)
        for target in ("one", "two"):
            run.begin_call("send", b"[]", target=target).succeed(target)
        run.close(RuntimeError("killed"))

        again = relay.handoff(str(run.handoff)).retry(by="user:ana").accept()

        assert "two" == again.begin_call("send", b"[]", target="two").value


@pytest.mark.parity("finished-calls-are-replayed")
def test_the_next_attempt_is_given_the_results_of_finished_calls() -> None:
    """They are not made again, in their order of repetition, and their number is told as kept."""
    made: list[str] = []

    @tool("send")
    def count(to: str) -> int:
        made.append(to)
        return len(made)

    with a_relay() as relay:
        run = an_attempt(relay)
        assert (1, 2) == (run.call(count, "ana"), run.call(count, "ana"))
        run.close(ValueError("tests fail"))
        again = relay.handoff(run.handoff or "").retry(by="user:ana").accept()
        assert (1, 2, 3) == (again.call(count, "ana"), again.call(count, "ana"), again.call(count, "ana"))
        again.close()

        assert 2 == observe(relay).last("handoff.completed").body["kept"]


@pytest.mark.parity("inexact-results-are-not-replayed")
@pytest.mark.parametrize(
    "result",
    [
        pytest.param((1, 2), id="a tuple"),
        pytest.param({1: "a"}, id="integers as keys"),
        pytest.param({"a": {2}}, id="a set"),
        pytest.param(b"bytes", id="bytes"),
        pytest.param(State.OFFERED, id="a member of an enumeration"),
        pytest.param([(1, 2)], id="a tuple in a list"),
        pytest.param(object(), id="an object"),
        pytest.param(float("nan"), id="not a number"),
    ],
)
def test_a_result_that_json_changes_is_not_given_again(result: object) -> None:
    """Its caller gets it as it is; the next attempt does not, and waits for a decision."""
    with a_relay() as relay:
        run = an_attempt(relay)

        @tool("send")
        def inexact(to: str) -> object:
            return result if to else None

        assert result is run.call(inexact, "ana")
        assert {} == observe(relay).last("tool.completed").parts
        handoff = relay.handoff(run.handoff or "")
        (call,) = handoff.info().in_doubt
        with pytest.raises(CallInDoubtError):
            handoff.retry(by="user:ana").accept().call(send, "ana")
        again = handoff.retry(by="user:ana", repeat=[call.id]).accept()

        assert "sent to ana" == again.call(send, "ana")


@pytest.mark.parametrize("result", [None, [1, "a", {"b": [None, True]}], 1.5, "é", {}])
def test_a_result_that_json_keeps_is_given_again(result: object) -> None:
    """Equal, type by type."""
    with a_relay() as relay:
        run = an_attempt(relay)
        run.begin_call("send", b"[]").succeed(result)
        again = relay.handoff(run.handoff or "").retry(by="user:ana").accept()
        begun = again.begin_call("send", b"[]")

        assert (True, result, type(result)) == (begun.is_replayed, begun.value, type(begun.value))


@pytest.mark.parity("sim-one-outcome-a-call")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("may", [[], ["call:**"]], ids=["observed", "enforced"])
def test_a_call_has_one_outcome(when: Any, may: list[str]) -> None:  # noqa: ANN401 - of `Faults.fail`
    """Its commit was cut short: whatever became of it, there is one outcome at most, and its handoff can be retried."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        run = an_attempt(relay, may=may or None)
        begun = run.begin_call("send", b'[["ana"],{}]')
        faults.fail(when)
        try:
            begun.succeed("sent to ana")
        except BatonpassError:
            assert may
        run.call(send, "bob")
        handoff = relay.handoff(run.handoff or "")
        doubtful = [call.id for call in handoff.info().in_doubt]
        again = handoff.retry(by="user:ana", repeat=doubtful).accept()
        outcomes = [receipt for receipt in observe(relay).of("tool.completed") if receipt.body["call"] == begun.id]

        assert "sent to ana" == again.call(send, "ana")
        assert ([] if when == "before" else [begun.id]) == [receipt.body["call"] for receipt in outcomes]
        relay.verify()


def test_a_second_outcome_is_refused() -> None:
    """Of two processes that finish one call the second is told that it has its outcome."""
    with a_relay() as relay:
        run = an_attempt(relay)
        begun = run.begin_call("send", b"[]")
        begun.succeed("first")
        with pytest.raises(BatonpassError, match="no open call"):
            say_in_json(relay, "finish_call", {"run": run.id, "call": begun.id, "result": "second"})

        assert "first" == observe(relay).last("tool.completed").value("result")


def test_a_request_of_which_nobody_heard_is_not_made() -> None:
    """Its commit may have succeeded: the tool does not run, and the next call looks."""
    faults = Faults()
    with a_relay(faults=faults) as relay:
        run = an_attempt(relay, may=["call:**"])
        faults.fail("after")
        with pytest.raises(OutcomeUnknownError):
            run.call(send, "ana")
        with pytest.raises(CallInDoubtError):
            run.call(send, "ana")


def lines_of(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parity("write-keeps-digests-and-hunks")
def test_a_write_keeps_digests_and_hunks(record_place: Path) -> None:
    """The file is looked at before and after: digests in the receipt, lines beside it; the tool says nothing of it."""

    @tool(target="path")
    def write(path: str, text: str) -> None:
        lines_of(record_place / path, text)

    with a_relay(work_tree=record_place) as relay:
        run = an_attempt(relay)
        run.call(write, "src/a.py", "one\ntwo\nthree\n")
        run.call(write, "src/a.py", "one\n2\nthree\nfour\n")
        run.call(write, "src/a.py", "one\n2\nthree\nfour\n")
        first, second = observe(relay).effects

    assert ("src/a.py", None, first.after) == (first.target, first.before, second.before)
    assert ({"at": 1, "removed": 0, "added": ["one", "two", "three"]},) == first.hunks
    assert (
        {"at": 2, "removed": 1, "added": ["2"]},
        {"at": 4, "removed": 0, "added": ["four"]},
    ) == second.hunks


@pytest.mark.parity("write-keeps-digests-and-hunks")
def test_a_write_that_failed_halfway_keeps_what_it_changed(record_place: Path) -> None:
    """The file was changed, whatever the tool says."""

    @tool(target="path")
    def write(path: str) -> None:
        lines_of(record_place / path, "half\n")
        raise OSError("disk full")

    with a_relay(work_tree=record_place) as relay:
        with pytest.raises(OSError, match="disk full"):
            an_attempt(relay).call(write, "a.txt")
        (effect,) = observe(relay).effects

    assert ({"at": 1, "removed": 0, "added": ["half"]},) == effect.hunks


@pytest.mark.parametrize("data", [b"\0\1\2", b"\xff\xfe", b"x" * 1_100_000], ids=["binary", "no UTF-8", "large"])
def test_what_has_no_lines_keeps_its_digests(data: bytes, record_place: Path) -> None:
    """The receipt says that it changed, and holds no copy."""

    @tool(target="path")
    def write(path: str) -> None:
        (record_place / path).write_bytes(data)

    with a_relay(work_tree=record_place) as relay:
        an_attempt(relay).call(write, "a.bin")
        (effect,) = observe(relay).effects

    assert effect.after is not None
    assert () == effect.hunks


def test_a_file_that_is_removed_has_no_digest_after(record_place: Path) -> None:
    """Its lines are told as removed."""
    lines_of(record_place / "a.txt", "one\ntwo\n")

    @tool(action="write", target="path")
    def remove(path: str) -> None:
        (record_place / path).unlink()

    with a_relay(work_tree=record_place) as relay:
        an_attempt(relay).call(remove, "a.txt")
        (effect,) = observe(relay).effects

    assert effect.after is None
    assert ({"at": 1, "removed": 2, "added": []},) == effect.hunks


def nested(run: Run) -> str:
    @tool
    def outer() -> str:
        inner = current_run()
        assert inner is not None
        return inner.call(send, "ana")

    return run.call(outer)


def test_a_tool_may_call_another() -> None:
    """Each is a call of its own, one inside of the other."""
    with a_relay() as relay:
        assert "sent to ana" == nested(an_attempt(relay))
        assert ["outer", "send", "send", "outer"] == [
            {receipt.body["call"]: receipt.body["tool"] for receipt in observe(relay).of("tool.requested")}[
                receipt.body["call"]
            ]
            for receipt in observe(relay).of("tool")
        ]


class Interrupting(tzinfo):
    """A time zone at which somebody presses Ctrl-C, whenever it is asked."""

    def utcoffset(self, _: datetime | None) -> timedelta:
        """Interrupt."""
        raise KeyboardInterrupt

    dst = tzname = utcoffset  # type: ignore[assignment]


def test_an_interrupt_after_the_tool_leaves_the_call_in_doubt() -> None:
    """Between what the tool returned and its outcome nobody knows either: the equal call is that call."""
    made: list[str] = []

    def make(what: str) -> datetime:
        made.append(what)
        return datetime(2026, 1, 1, tzinfo=Interrupting())  # its words are asked for after the tool

    with a_relay() as relay:
        run = a_run(relay)
        with pytest.raises(KeyboardInterrupt):
            run.call(make, "x")
        with pytest.raises(CallInDoubtError):
            run.call(make, "x")

        assert ["x"] == made
        assert ["run.started", "tool.requested"] == observe(relay).kinds()


def test_an_outcome_after_a_decision_in_the_same_process_is_evidence() -> None:
    """A person decides while the tool is at work: what it did then is kept, and delivers nothing."""
    with a_relay() as relay:
        run = an_attempt(relay)
        begun = run.begin_call("send", b"[]")
        run.settle(begun.id, "skip", by="user:ana")
        with pytest.raises(ConflictError):
            begun.succeed("sent")

        assert ["tool.settled", "tool.late_result"] == observe(relay).kinds()[-2:]
