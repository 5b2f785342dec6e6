"""A ledger with every kind of receipt and every part of it, made by acts alone; the same bytes for the same seed."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from shutil import copyfile

import apsw
import pytest

from batonpass import Claim, Decision, HandoffOptions, Relay, tool
from batonpass.errors import BatonpassError, FencedError
from batonpass.testing import Faults, FrozenClock, a_relay

BY = "user:ana"


class SeededClock(FrozenClock):
    """A system of which everything follows from a seed: a millisecond passes at each look at the time."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = Random(seed)

    def now(self) -> int:
        """Return the next millisecond."""
        self.advance(0.001)
        return super().now()

    def entropy(self, size: int) -> bytes:
        """Return bytes that follow from the seed."""
        return self._random.randbytes(size)


@tool(action="read")
def look(path: str) -> str:
    """Return what no file holds."""
    return f"what {path} says"


@tool
def write(path: str, text: str) -> int:
    """Write a file."""
    return Path(path).write_text(text, encoding="utf-8")


@tool
def spoil(path: str) -> None:
    """Write half of a file, and raise."""
    Path(path).write_text("half", encoding="utf-8")
    raise OSError(path)


def make_rich_ledger(path: Path, monkeypatch: pytest.MonkeyPatch, *, seed: int = 1) -> list[Path]:
    """Make the ledger in a file, and return older copies of it, the oldest first."""
    copies: list[Path] = []

    def keep_copy() -> None:
        copy = path.with_suffix(f".{len(copies)}")
        _backup(path, copy)
        copies.append(copy)

    clock = SeededClock(seed)
    with a_relay(path, system=clock) as relay:
        _work_under_a_grant(relay)
        keep_copy()
        _retry_and_adopt(relay)
        keep_copy()
        _work_without_a_grant(relay, clock)
        keep_copy()
    _enrol_another_relay(path, monkeypatch, clock)
    with a_relay(path, system=clock, faults=(faults := Faults())) as relay:
        _leave_a_gap(relay, faults)
        left = relay.start("Left open", by=BY)
        left.begin_call("mail", b"{}", action="send", target="bob")
    return copies


def _backup(path: Path, copy: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()


def _work_under_a_grant(relay: Relay) -> None:
    may = ["read:**", "write:**"]
    with relay.start(
        "Round half-even", by=BY, may=may or None, may_delegate=may or None, key="start", items=[Claim("bank")]
    ) as root:
        root.record(Decision("half-even", why="as banks do"), key="decision")
        root.call(look, "rules.md")
        with root.hand_off("editor", "Fix rounding", may=["write:src/**"], key="offer") as editor:
            editor.call(write, _file("src/a.py"), "x = 1\n")
            editor.call(write, "src/a.py", "x = 2\ny = 3\n")
            _expect(lambda: editor.call(spoil, "src/none.py"))
            _expect(lambda: editor.call(look, "etc/passwd"))
            editor.report("done", completed=["rounding"], confidence=800)
        with root.hand_off("reader", "Read it", may=["read:src/**"], accept=True) as reader:
            reader.call(look, "src/a.py")
            relay.revoke_grant(reader.handoff or "", by=BY, reason="enough was read")
            _expect(lambda: reader.call(look, "src/b.py"))
        root.hand_off("nobody", "Never taken", may=["read:src/**"])
        root.hand_off("slow", "Never ended", may=["read:src/**"]).accept().call(look, "src/c.py")


def _retry_and_adopt(relay: Relay) -> None:
    root = relay.start("Ship", by=BY, agent="owner")
    handoff = root.hand_off("shipper", "Ship it", options=HandoffOptions(key="ship"))
    first = handoff.accept()
    child = first.hand_off("tester", "Test it", accept=True)
    child.call(look, "tests")
    child.close()
    deploy = first.begin_call("deploy", b"{}", action="call", target="prod")
    first.begin_call("mail", b"{}", action="send", target="ana")
    first.report("half of it")
    first.close(RuntimeError("the build broke"))
    handoff.retry(by=BY, reason="once more", repeat=[deploy.id], key="retry")
    second = handoff.accept()
    again = second.hand_off("tester", "Test it")
    with suppress(BatonpassError), again as replayed:
        replayed.call(look, "tests")
    second.hand_off("tester", "Test it twice").accept().close()
    late = second.begin_call("deploy", b"{}", action="call", target="prod")
    broken = second.begin_call("write", b"{}", action="write", target="late.txt")
    Path("late.txt").write_text("too late", encoding="utf-8")
    handoff.retry(by="user:bob", reason="it hangs")
    with pytest.raises(FencedError):
        late.succeed("deployed")
    with pytest.raises(FencedError):
        broken.fail("the disk is full")
    third = handoff.accept()
    third.settle(late.id, "skip", by=BY, reason="it was deployed", key="settle")
    third.close()
    root.close()


def _work_without_a_grant(relay: Relay, clock: FrozenClock) -> None:
    root = relay.start("Explore", by=BY)
    doubtful = root.begin_call("mail", b"{}", action="send", target="ana")
    root = relay.resume(root.id)
    root.settle(doubtful.id, "repeat", by=BY)
    root.call(look, "map")
    clock.advance(3600)
    with root.hand_off("guest", "Under a grant of its own", may=["read:**"]) as guest:
        guest.call(look, "door")
    root.report("nothing was found")
    root.close(ValueError("lost"))


def _enrol_another_relay(path: Path, monkeypatch: pytest.MonkeyPatch, clock: FrozenClock) -> None:
    """Let another place of the same owner, with the same root key, record in this ledger."""
    here = Path(os.environ["BATONPASS_STATE_DIR"])
    there = here.with_name("elsewhere")
    own = next((here / "ledgers").glob(f"{path.stem}-*"))
    other = there / "ledgers" / own.name
    other.mkdir(parents=True, mode=0o700)
    copyfile(own / "root.key", other / "root.key")
    (other / "root.key").chmod(0o600)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("BATONPASS_STATE_DIR", str(there))
        with a_relay(path, system=clock) as relay, relay.start("From elsewhere", by="user:bob") as root:
            root.call(look, "there")


def _leave_a_gap(relay: Relay, faults: Faults) -> None:
    root = relay.start("Observe", by=BY)
    faults.fail()
    root.record(Decision("lost"))
    root.record(Decision("kept"))
    root.close()


def _file(name: str) -> str:
    Path(name).parent.mkdir(exist_ok=True)
    return name


def _expect(refused: Callable[[], object]) -> None:
    with suppress(BatonpassError, OSError):
        refused()
