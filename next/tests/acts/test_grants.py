"""Grants: narrowed at each hop, asked again at each call, expired and revoked."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from batonpass import Grant, HandoffOptions, Relay, Run, tool
from batonpass.errors import CallDeniedError, ConflictError, GrantExceededError, InvalidValueError
from batonpass.testing import Faults, FrozenClock, a_relay, a_run, an_attempt, observe


@tool(action="write", target="path")
def write(path: str) -> str:
    """Pretend to write a file."""
    return f"wrote {path}"


@pytest.mark.parity("grants-only-narrow")
@pytest.mark.parametrize(
    ("may_delegate", "asked", "extra"),
    [
        pytest.param(["write:src/**"], ["write:**"], "write:**", id="a wider folder"),
        pytest.param(["write:src/**"], ["write:src/a", "read:src/a"], "read:src/a", id="another action"),
        pytest.param(["write:src/*"], ["write:src/**"], "write:src/**", id="deeper than one level"),
        pytest.param(["write:src/a"], ["write:src/*"], "write:src/*", id="more than one file"),
        pytest.param([], ["write:src/a"], "write:src/a", id="what may be used, but not handed on"),
    ],
)
def test_a_wider_grant_is_not_offered(may_delegate: list[str], asked: list[str], extra: str) -> None:
    """The refusal names what is too much, what is held, and is no receipt."""
    with a_relay() as relay:
        root = a_run(relay, may=["write:**"], may_delegate=may_delegate)
        before = observe(relay).receipts
        with pytest.raises(GrantExceededError) as raised:
            root.hand_off("editor", "x", may=asked)

        assert {"extra": [extra], "held": may_delegate} == raised.value.facts
        assert before == observe(relay).receipts


@pytest.mark.parity("grants-only-narrow")
def test_a_grant_narrows_at_each_hop() -> None:
    """Each hop is asked again at each call, and an expiry is the earliest of all above."""
    clock = FrozenClock()
    with a_relay(system=clock) as relay:
        grant = Grant(may=("write:**",), may_delegate=("write:src/**",), expires="2h")
        root = relay.start("x", by="user:ana", grant=grant)
        child = root.hand_off(
            "a", "x", grant=Grant(may=("write:src/**",), may_delegate=("write:src/a",), expires="4h"), accept=True
        )
        leaf = child.hand_off("b", "x", may=["write:src/a"], accept=True)
        ends = int((clock.at + timedelta(hours=2)).timestamp() * 1_000_000)
        accepted = observe(relay).of("handoff.accepted")

        assert [ends, ends] == [receipt.body["expires_at"] for receipt in accepted]
        assert "wrote src/a" == leaf.call(write, "src/a")
        with pytest.raises(CallDeniedError, match="b may write:src/a, tried write:src/b"):
            leaf.call(write, "src/b")
        clock.advance(timedelta(hours=2))
        with pytest.raises(CallDeniedError, match="the grant of lead has expired"):
            leaf.call(write, "src/a")


@pytest.mark.parity("call-beyond-its-grant-is-denied")
def test_a_call_beyond_its_grant_is_denied_before_the_tool_runs() -> None:
    """The receipt names the permit that is missing, with what was tried; no request is made."""
    made: list[str] = []

    @tool(action="write", target="path")
    def write(path: str) -> None:
        made.append(path)

    with a_relay() as relay:
        run = an_attempt(relay, may=["write:src/**"])
        with pytest.raises(CallDeniedError, match=r"editor may write:src/\*\*, tried write:etc/passwd"):
            run.call(write, "etc/passwd")
        seen = observe(relay)

    assert [("grant.exceeded", "editor may write:src/**, tried write:etc/passwd")] == seen.denied
    assert ("write", "etc/passwd", [["etc/passwd"], {}]) == (
        seen.last("tool.denied").text("action"),
        seen.last("tool.denied").text("target"),
        seen.last("tool.denied").value("arguments"),
    )
    assert "tool.requested" not in seen.counts()
    assert [] == made


def test_a_call_without_an_action_needs_its_name() -> None:
    """A tool that names no target is granted by its own name."""
    with a_relay() as relay:
        run = an_attempt(relay, may=["call:send"])

        @tool
        def send(to: str) -> str:
            return f"sent to {to}"

        assert "sent to ana" == run.call(send, "ana")
        with pytest.raises(CallDeniedError, match="tried call:repr"):
            run.call(repr, 1)


@pytest.mark.parametrize(
    "pattern",
    ["write", "write:", ":src", "write:../x", "write:src//a", "write:src/./a", "write:a**", "write:**/a", "wri*:a"],
)
def test_a_pattern_that_can_be_read_in_two_ways_is_refused(pattern: str) -> None:
    """Nothing is repaired: the program that grants it is told."""
    with a_relay() as relay, pytest.raises(InvalidValueError, match="action:segment/segment"):
        a_run(relay, may=[pattern])


def test_a_moment_without_zone_is_no_expiry() -> None:
    """It would be another moment on another machine."""
    naive = datetime(2030, 1, 1)  # noqa: DTZ001 - what is refused
    with a_relay() as relay, pytest.raises(InvalidValueError, match="time zone"):
        relay.start("x", by="user:ana", grant=Grant(may=("read:a",), expires=naive))
    with a_relay() as relay:
        relay.start("x", by="user:ana", grant=Grant(may=("read:a",), expires=naive.replace(tzinfo=UTC)))


def is_denied(run: Run) -> bool:
    try:
        run.call(write, "src/a")
    except CallDeniedError:
        return True
    return False


def test_revoking_ends_a_grant_and_all_that_hang_from_it() -> None:
    """Of a chain of three the middle one is revoked: it and its child are denied, its parent is not."""
    with a_relay() as relay:
        root = a_run(relay, may=["write:**"])
        child = root.hand_off("a", "x", may=["write:**"], may_delegate=["write:**"], accept=True)
        leaf = child.hand_off("b", "x", may=["write:**"], accept=True)
        relay.revoke_grant(child.handoff or "", by="user:ana", reason="its key leaked")
        relay.revoke_grant(child.handoff or "", by="user:ana")
        seen = observe(relay)

        assert (False, True, True) == (is_denied(root), is_denied(child), is_denied(leaf))
        assert 1 == seen.counts()["grant.revoked"]
        assert "its key leaked" == seen.last("grant.revoked").text("reason")


@pytest.mark.parity("revocation-decides-in-the-commit")
def test_a_call_that_was_judged_before_its_grant_was_revoked_is_refused(tmp_path: Path) -> None:
    """Between the look at the grant and the commit another process revokes it: the tool does not run."""
    faults, made = Faults(), list[str]()

    @tool(action="write", target="path")
    def write(path: str) -> None:
        made.append(path)

    with a_relay(tmp_path / "l.db", faults=faults) as relay, a_relay(tmp_path / "l.db") as other:
        run = an_attempt(relay, may=["write:**"])
        faults.at(faults.commits + 1, "before", lambda: other.revoke_grant(run.handoff or "", by="user:ana"))
        with pytest.raises(CallDeniedError, match="was revoked"):
            run.call(write, "src/a")
        seen = observe(relay)

    assert [] == made
    assert ["grant.revoked", "tool.denied"] == seen.kinds()[-2:]
    assert "grant.revoked" == seen.denied[0][0]


def test_a_permit_for_files_counts_from_the_work_tree_on(record_place: Path) -> None:
    """Wherever in the tree a program works, `write:src/**` means the same files."""
    (record_place / ".git").mkdir()
    (record_place / "below" / "src").mkdir(parents=True)
    os.chdir(record_place / "below")

    def write_file(path: str) -> None:
        Path(path).write_text("text\n", encoding="utf-8")

    with (
        Relay.open() as relay,
        relay.start("Write", by="user:ana", may=["write:src/**"]) as run,
        pytest.raises(CallDeniedError) as denied,
    ):
        run.call(write_file, "src/a.py")

    assert "lead may write:src/**, tried write:below/src/a.py" == str(denied.value)


@pytest.mark.parametrize("expires", ["999999999d", datetime(9999, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)])
def test_an_expiry_beyond_what_can_be_recorded_is_refused(expires: datetime | str) -> None:
    """It would be offered, and nobody could accept it or read the ledger again."""
    with a_relay() as relay:
        with pytest.raises(InvalidValueError):
            relay.start("Write", by="user:ana", grant=Grant(may=("write:a",), expires=expires))

        assert [] == observe(relay).kinds()


def test_an_action_has_no_slash() -> None:
    """`write/src:a.py` could be read as `write:src/a.py`."""
    with a_relay() as relay, pytest.raises(InvalidValueError):
        a_run(relay, may=["write/src:a.py"])


def test_an_offer_with_a_moving_expiry_is_the_same_offer() -> None:
    """Twenty-four hours from now is another moment each time that it is said."""
    with a_relay() as relay:
        lead = a_run(relay, may_delegate=["call:**"])
        first, again = (
            lead.hand_off("b", "work", grant=Grant(may=("call:**",), expires=datetime.now(UTC) + timedelta(hours=24)))
            for _ in range(2)
        )

        assert first.id == again.id


def test_a_recorded_result_is_not_given_after_a_revocation() -> None:
    """Nothing is written when a result is given again, and still the grant has to hold."""
    with a_relay() as relay:
        lead = a_run(relay, may_delegate=["call:**"])
        handoff = lead.hand_off("reader", "Read", may=["call:**"])
        first = handoff.accept()
        first.call(print)
        handoff.retry(by="user:ana")
        relay.revoke_grant(handoff.id, by="user:ana")

        with pytest.raises(CallDeniedError):
            handoff.accept().call(print)


def test_a_key_with_another_grant_is_another_offer() -> None:
    """The same key does not give an agent what it was granted under the first offer."""
    with a_relay() as relay:
        lead = a_run(relay, may_delegate=["write:**"])
        options = HandoffOptions(key="k")
        lead.hand_off("editor", "Do", may=["write:**"], options=options)

        with pytest.raises(ConflictError):
            lead.hand_off("editor", "Do", may=["write:src/**"], options=options)
        with pytest.raises(ConflictError):
            lead.hand_off("auditor", "Do", may=["write:**"], options=options)
