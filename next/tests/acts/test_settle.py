"""A call in doubt, and who decides about it."""

from pathlib import Path
from typing import Literal

import pytest

from batonpass import Relay, Run, tool
from batonpass.errors import CallError, CallInDoubtError, FencedError
from batonpass.testing import a_relay, a_run, an_attempt, observe


def a_call_in_doubt(run: Run) -> str:
    """Begin a call that nobody ends, and return its id."""
    return run.begin_call("send", b'[["a"],{}]').id


def in_doubt(relay: Relay) -> list[str]:
    return [call.call for call in observe(relay).in_doubt]


MADE: list[str] = []


@tool
def send(to: str) -> str:
    """Send a mail."""
    MADE.append(to)
    return f"sent to {to}"


@pytest.mark.parametrize("owner", ["root", "attempt"])
@pytest.mark.parametrize(
    ("how", "expected", "made"),
    [
        pytest.param("repeat", "sent to a", ["a"], id="repeat makes it again"),
        pytest.param("skip", None, [], id="skip never does"),
    ],
)
@pytest.mark.parity("in-doubt-call-is-settled")
def test_a_call_in_doubt_is_settled(
    owner: str, how: Literal["repeat", "skip"], expected: str | None, made: list[str]
) -> None:
    """A person decides, with a reason; then the call is asked for again, and made or not."""
    MADE.clear()
    with a_relay() as relay:
        first = a_run(relay) if owner == "root" else an_attempt(relay)
        call = a_call_in_doubt(first)
        run = relay.run(first.id)
        with pytest.raises(CallInDoubtError, match="repeat or skip it"):
            run.call(send, "a")
        run.settle(call, how, by="user:ana", reason="asked the receiver")

        assert expected == run.call(send, "a")
        assert made == MADE
        settled = observe(relay).last("tool.settled")
        assert {"call": call, "settlement": how, "by": "user:ana"}.items() <= settled.body.items()
        assert "asked the receiver" == settled.text("reason")
        assert [] == in_doubt(relay)


@pytest.mark.parity("settlements-and-attempt-are-one-commit")
def test_decisions_and_the_next_attempt_are_one_commit() -> None:
    """A retry with decisions writes all of them or nothing: one that is wrong refuses the whole."""
    with a_relay() as relay:
        run = an_attempt(relay)
        call = a_call_in_doubt(run)
        handoff = relay.handoff(run.handoff or "")
        before = observe(relay).receipts
        with pytest.raises(CallError, match="not in doubt"):
            handoff.retry(by="user:ana", repeat=[call], skip=["call_0"])
        assert before == observe(relay).receipts
        handoff.retry(by="user:ana", reason="its process is gone", repeat=[call])

        assert ["tool.settled", "handoff.retried"] == observe(relay).kinds()[-2:]


def test_what_is_not_in_doubt_is_not_settled() -> None:
    """A finished call, an unknown one, and one that was decided before have nothing to decide."""
    with a_relay() as relay:
        run = an_attempt(relay)
        done = run.begin_call("send", b'[["b"],{}]')
        done.succeed(1)
        call = a_call_in_doubt(run)
        run.settle(call, "skip", by="user:ana")
        for each in (done.id, "call_0", call):
            with pytest.raises(CallError):
                run.settle(each, "repeat", by="user:ana")

        assert 1 == observe(relay).counts()["tool.settled"]


def test_a_fenced_attempt_settles_nothing(tmp_path: Path) -> None:
    """What was decided with the retry stands: who has lost the attempt does not decide otherwise."""
    with a_relay(tmp_path / "l.db") as old, a_relay(tmp_path / "l.db") as new:
        run = an_attempt(old)
        call = a_call_in_doubt(run)
        new.handoff(run.handoff or "").retry(by="user:ana", skip=[call])
        with pytest.raises(FencedError):
            run.settle(call, "repeat", by="user:ana")

        assert ["skip"] == [receipt.body["settlement"] for receipt in observe(new).of("tool.settled")]


def test_a_call_is_settled_once(tmp_path: Path) -> None:
    """Of two people who decide at once the second is told: the first decision may have been acted on."""
    with a_relay(tmp_path / "l.db") as first, a_relay(tmp_path / "l.db") as second:
        run = an_attempt(first)
        call = a_call_in_doubt(run)
        other = second.run(run.id)
        run.settle(call, "skip", by="user:ana")
        with pytest.raises(CallError, match="not in doubt"):
            other.settle(call, "repeat", by="user:bob")

        assert 1 == observe(first).counts()["tool.settled"]
