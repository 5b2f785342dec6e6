"""Grants between real processes: one revokes while another works, and one is killed right after it was refused."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from batonpass.errors import GrantDeniedError, HandoffEndedError
from batonpass.handoff.history.past_calls import read_runs
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from tests.children import run_at_once
from tests.unit.handoff.places import receipts

# An editor that writes what it is told to, a line each, and says what came of it.
EDITOR = """
import os, signal, sys
from pathlib import Path
from batonpass import Grant
from batonpass.errors import GrantError
from batonpass.handoff.tools.declaration import tool
from batonpass.relay import Relay

url, home, world, dies = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
relay = Relay.open(url, home=home)
append = relay.store.append

def and_die(entries):
    append(entries)
    if any(entry.signed.receipt.kind == dies for entry in entries):
        os.kill(os.getpid(), signal.SIGKILL)

relay.store.append = and_die
lead = relay.start("Fix it", by="user:ana", grant=Grant(may_delegate=["write:src/**"]))
handoff = lead.hand_off("editor", "Edit", may=["write:src/**"])
editor = handoff.accept()
print(lead.id, handoff.id, editor.id, flush=True)

@tool("write", target="path")
def write(path):
    with world.open("a") as file:
        file.write(path + " ")

for line in sys.stdin:
    try:
        editor.call(write, line.strip())
        print("done", flush=True)
    except GrantError as error:
        print(error.code, flush=True)
"""

REVOKER = """
from pathlib import Path
from batonpass.relay import Relay

with Relay.open(sys.argv[1], home=Path(sys.argv[2])) as relay:
    relay.revoke_grant(sys.argv[3], by="user:ana", reason="the wrong repository")
print(json.dumps("revoked"))
"""


class Editor:
    """A process that works under a grant."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.lead, self.handoff, self.run = self._read().split()

    def tell(self, path: str) -> str:
        """Let it write a file; return what came of it, and nothing if it died."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def wait(self) -> int:
        """Wait until it has ended, and return how."""
        return self._process.wait(timeout=60)


@contextmanager
def an_editor(url: str, home: Path, world: Path, *, dies: str = "never") -> Iterator[Editor]:
    """Start one, and end it."""
    with subprocess.Popen(
        [sys.executable, "-c", EDITOR, url, str(home), str(world), dies],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Editor(process)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, Path]:
    """Return the URL of a ledger, the home of its keys, and the file that is written to."""
    home = tmp_path / ".batonpass"
    on_server = request.param == "postgres"
    url = request.getfixturevalue("postgres_url") if on_server else f"sqlite:///{home / 'ledger.db'}"
    return url, home, tmp_path / "world"


@pytest.mark.slow
def test_one_revokes_and_the_others_next_call_is_refused(place: tuple[str, Path, Path]) -> None:
    """Nobody tells the process that works: its next call finds out in the commit that would have let it."""
    url, home, world = place
    with an_editor(url, home, world) as editor:
        before = editor.tell("src/a.py")
        run_at_once(REVOKER, url, str(home), editor.lead)
        after = editor.tell("src/b.py")

    assert ("done", "grant.revoked", "src/a.py ") == (before, after, world.read_text())
    with Relay.open(url, home=home) as relay:
        relay.verify()


@pytest.mark.slow
def test_what_was_refused_stays_refused_after_a_kill(place: tuple[str, Path, Path]) -> None:
    """Killed when its refusal is durable and nobody has heard of it: nothing is done, in doubt, or to be had again."""
    url, home, world = place
    with an_editor(url, home, world, dies=Kind.TOOL_DENIED) as editor:
        assert ("done", "") == (editor.tell("src/a.py"), editor.tell(".github/ci.yml"))
        assert -signal.SIGKILL == editor.wait()

    @tool("write", target="path")
    def write(path: str) -> None:
        world.write_text(path)

    with Relay.open(url, home=home) as relay:
        with pytest.raises(HandoffEndedError):
            relay.handoff(HandoffId(editor.handoff)).accept()
        with relay.store.view() as view:
            past = read_runs(view, [view.get_run(RunId(editor.run))], StreamId(editor.handoff))
        again = relay.resume(editor.run)
        with pytest.raises(GrantDeniedError):
            again.call(write, ".github/ci.yml")
        relay.verify()

        assert ((), 2, "src/a.py ") == (past.in_doubt, len(receipts(relay, Kind.TOOL_DENIED)), world.read_text())
