"""Relays on one ledger: threads of a process, and processes; each with the same keys."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from batonpass import Relay
from batonpass.errors import StoreError
from batonpass.testing import observe

_WORKER = """
import sys
from batonpass import Relay, tool

@tool(action="read", target="path")
def read(path: str) -> str:
    return path

with Relay.open(sys.argv[1]) as relay:
    print("ready", flush=True)
    sys.stdin.readline()
    with relay.start("Work", by="user:ana", agent=sys.argv[2], may=["read:**"], may_delegate=["read:**"]) as run:
        for number in range(4):
            with run.hand_off("editor", f"Task {number}", may=["read:**"]) as editor:
                assert "a" == editor.call(read, "a")
"""
_PROCESSES = 8


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a ledger that nobody has begun, as a program names it."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.mark.slow
@pytest.mark.parity("relay-opens-its-ledger")
def test_processes_share_a_ledger(address: str) -> None:
    """Eight open it at once: one founds it, all record in it, and what they recorded holds together."""
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, address, f"worker-{number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(_PROCESSES)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert "ready\n" == worker.stdout.readline()
    for worker in workers:
        print("go", file=worker.stdin, flush=True)

    assert [0] * _PROCESSES == [worker.wait(60) for worker in workers]
    for worker in workers:
        worker.communicate()
    seen = observe(address)
    assert 1 == len(seen.of("key.enrolled"))
    assert list(range(1, len(seen.receipts) + 1)) == [receipt.position for receipt in seen.receipts]
    assert {"completed"} == {str(state) for state in (*seen.handoffs.values(), *seen.runs.values())}
    assert 4 * _PROCESSES == len(seen.handoffs)
    with Relay.open(address) as relay:
        relay.verify()


@pytest.mark.parity("relay-opens-its-ledger")
def test_threads_share_a_relay(address: str) -> None:
    """Each hands off for a run of its own, and none waits for another's turn for good."""
    failed: list[BaseException] = []

    def work(relay: Relay, number: int) -> None:
        try:
            run = relay.start("Work", by="user:ana", agent=f"worker-{number}")
            for task in range(5):
                with run.hand_off("editor", f"Task {task}"):
                    pass
        except BaseException as error:  # noqa: BLE001 - said by the test
            failed.append(error)

    with Relay.open(address) as relay:
        threads = [threading.Thread(target=work, args=(relay, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [] == failed
        assert 40 == len(observe(relay).handoffs)
        relay.verify()


@pytest.mark.postgres
def test_another_machine_without_the_root_key_is_refused(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relay is enrolled by the root key of its ledger: one that was made elsewhere is another's."""
    Relay.open(postgres_url).close()
    monkeypatch.setenv("BATONPASS_STATE_DIR", str(tmp_path / "elsewhere"))

    with pytest.raises(StoreError, match="hangs from another root key"):
        Relay.open(postgres_url)
