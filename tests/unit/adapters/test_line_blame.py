"""`blame()` as programs call it: on the ledger of this directory, on a relay's, or on transcripts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import batonpass
from batonpass import default
from batonpass.accounts.blame.blame_values import HowKnown
from batonpass.adapters import line_blame
from batonpass.adapters.line_blame import blame, project_of
from batonpass.errors import InvalidValueError, StoreUnavailableError
from batonpass.relay import Relay
from tests.unit.accounts.shop import AFTER, ANA, BEFORE, write_file
from tests.unit.adapters.claude_code.histories import History
from tests.unit.cli.transcripts import an_edit


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stand in a project without a ledger, and forget the relays of other tests."""
    for name in ("BATONPASS_LEDGER", "BATONPASS_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    monkeypatch.setattr(default, "_RELAYS", {})
    project = tmp_path / "shop"
    project.mkdir()
    monkeypatch.chdir(project)
    (project / "a.py").write_text(BEFORE, encoding="utf-8")
    yield project
    for relay in default._RELAYS.values():
        relay.close()


def test_a_line_of_a_run_that_was_started_here(here: Path) -> None:
    """What `start` recorded is what `blame` reads; lines may be one, some or all."""
    with batonpass.start("Fix it", by=ANA) as lead:
        lead.call(write_file, "a.py", AFTER)

    assert [1, 2, 3] == [len(batonpass.blame(here / "a.py", line).lines) for line in (2, (1, 2), None)]
    assert HowKnown.RECORDED is batonpass.blame("a.py", line=2).lines[0].known


def test_another_ledger_can_be_asked() -> None:
    """By the relay that has it open."""
    with Relay.open("memory:") as relay:
        relay.start("Fix it", by=ANA).call(write_file, "a.py", AFTER)

        assert HowKnown.RECORDED is blame("a.py", 2, relay=relay).lines[0].known


def test_without_a_ledger_transcripts_are_read(here: Path) -> None:
    """And the answer says how many; no ledger is made."""
    an_edit(History(here.parent, here))
    found = blame("a.py", 2)

    assert (1, True, False) == (found.transcripts, found.is_explained, (here / ".batonpass").exists())


def test_many_transcripts_are_kept_in_a_file_for_a_while(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into memory gives the same answer, and leaves nothing behind."""
    an_edit(History(here.parent, here))
    monkeypatch.setattr(line_blame, "_IN_MEMORY", 0)
    monkeypatch.setenv("TMPDIR", str(here.parent))
    monkeypatch.setattr("tempfile.tempdir", str(here.parent))

    assert blame("a.py", 2).is_explained
    assert [] == list(here.parent.glob("batonpass-blame-*"))


def test_with_neither_it_says_so() -> None:
    """There is nobody to ask."""
    with pytest.raises(StoreUnavailableError, match="no ledger here, and no coding agent has kept a session"):
        blame("a.py", 2)


def test_a_ledger_that_cannot_be_opened_is_not_taken_for_none(here: Path) -> None:
    """Transcripts do not stand in for a ledger that is broken."""
    an_edit(History(here.parent, here))
    (here / ".batonpass").mkdir()
    (here / ".batonpass" / "ledger.db").write_bytes(b"no ledger")

    with pytest.raises(batonpass.BatonpassError):
        blame("a.py", 2)


def test_a_file_elsewhere_is_asked_about_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger nearest to it answers, if there is none here."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with monkeypatch.context() as there:
        there.chdir(elsewhere)
        with Relay.open(f"sqlite:///{elsewhere / '.batonpass' / 'ledger.db'}") as relay:
            relay.start("Write it", by=ANA).call(write_file, "a.py", AFTER)

    assert blame(elsewhere / "a.py", 2).is_explained


def test_a_ledger_that_was_named_has_to_be_there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names one does not mean transcripts."""
    an_edit(History(here.parent, here))
    monkeypatch.setenv("BATONPASS_LEDGER", "nowhere.db")

    with pytest.raises(StoreUnavailableError, match="there is no ledger at"):
        blame("a.py", 2)


def test_a_mistake_is_a_mistake() -> None:
    """A directory has no lines."""
    with Relay.open("memory:") as relay, pytest.raises(InvalidValueError):
        blame(".", relay=relay)


def test_a_file_belongs_to_its_repository(here: Path, tmp_path: Path) -> None:
    """Else to this directory, if it lies in it, else to its own."""
    (here / "sub").mkdir()
    (tmp_path / "elsewhere").mkdir()
    assert [here, tmp_path / "elsewhere"] == [
        project_of(here / "sub" / "a.py"),
        project_of(tmp_path / "elsewhere" / "b"),
    ]
    (here / "sub" / ".git").mkdir()

    assert here / "sub" == project_of(here / "sub" / "a.py")
