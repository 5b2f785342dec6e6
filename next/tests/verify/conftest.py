"""A rich ledger for the tests of verification, made once a process and put back before each test."""

from pathlib import Path
from shutil import copyfile

import pytest

from batonpass import Relay
from tests.verify.rich import make_rich_ledger


class RichLedger:
    """A ledger file, with what lies beside it: keys, and older copies of it."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = directory / "ledger.db"
        self.state = directory / "state"
        monkeypatch.setenv("BATONPASS_STATE_DIR", str(self.state))
        monkeypatch.chdir(directory)
        self.older = make_rich_ledger(self.path, monkeypatch)
        self._whole = directory / "whole.db"
        copyfile(self.path, self._whole)

    def restore(self, copy: Path | None = None) -> None:
        """Put the ledger back as it was made, or an older copy in its place."""
        for beside in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + beside).unlink(missing_ok=True)
        copyfile(copy or self._whole, self.path)

    def key(self, name: str) -> bytes:
        """Return a secret of this ledger: `relay` or `root`."""
        return next((self.state / "ledgers").glob("ledger-*")).joinpath(f"{name}.key").read_bytes()

    def open(self) -> Relay:
        """Open it."""
        return Relay.open(self.path)


@pytest.fixture(scope="module")
def made_ledger(tmp_path_factory: pytest.TempPathFactory) -> RichLedger:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return RichLedger(tmp_path_factory.mktemp("rich"), monkeypatch)


@pytest.fixture
def ledger(made_ledger: RichLedger, monkeypatch: pytest.MonkeyPatch) -> RichLedger:
    """Return the rich ledger, whole."""
    monkeypatch.setenv("BATONPASS_STATE_DIR", str(made_ledger.state))
    made_ledger.restore()
    return made_ledger
