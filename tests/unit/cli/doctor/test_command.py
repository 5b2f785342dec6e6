"""`batonpass doctor`: what is wrong here, and what to do."""

import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from batonpass.cli.doctor import command
from batonpass.cli.nouns import cli
from batonpass.config import find_settings
from batonpass.errors import EditedError
from tests.unit.cli.desk import Desk


def checks(desk: Desk, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return what the doctor found, by name."""
    return {check["name"]: check for check in desk.answer("doctor", *arguments)}


def levels(desk: Desk) -> dict[str, str]:
    return {name: check["level"] for name, check in checks(desk).items() if check["level"] != "ok"}


def test_all_is_well(desk: Desk) -> None:
    """A ledger that is sealed, and whose keys are private, has nothing to complain about."""
    desk.run("ledger", "seal")
    done = desk.run("doctor")

    assert (0, "all is well") == (done.exit_code, done.stdout.splitlines()[-1])
    assert {"ok"} == {line.split()[0] for line in done.stdout.splitlines()[:-2]}


def test_a_policy_that_cannot_be_read_is_bad(desk: Desk) -> None:
    """No run would begin here, and nobody would notice before one does."""
    (desk.directory / "batonpass.toml").write_text("[[[", encoding="utf-8")
    found = checks(desk)["policy"]

    assert ("bad", True) == (found["level"], "batonpass.toml" in found["found"])
    assert 1 == desk.run("doctor").exit_code


def test_a_policy_that_holds_is_named(desk: Desk) -> None:
    """Whoever looks sees which file it is; without one the shipped policy holds."""
    shipped = checks(desk)["policy"]["found"]
    (desk.directory / "batonpass.toml").write_text("", encoding="utf-8")

    assert (True, str(desk.directory / "batonpass.toml")) == ("shipped" in shipped, checks(desk)["policy"]["found"])


def test_no_ledger_is_not_well(tmp_path: Path) -> None:
    """A place where nothing is recorded is said to be one, first of all."""
    nowhere = Desk(tmp_path / "nowhere")
    done = nowhere.run("doctor")

    assert (3, True) == (done.exit_code, done.stdout.startswith("bad  ledger     there is no ledger at "))
    assert not nowhere.ledger.exists()


def test_what_nobody_sealed_is_a_warning(desk: Desk) -> None:
    """A warning comes with what to do, and is no failure."""
    done = desk.run("doctor")

    assert (0, "0 bad, 1 warning") == (done.exit_code, done.stdout.splitlines()[-1])
    assert "→ run batonpass ledger seal, and keep the seal elsewhere" in done.stdout


def test_a_key_that_others_can_read_is_bad(desk: Desk) -> None:
    """A key file with loose permissions is bad, and the exit code says no."""
    (desk.ledger.parent / "relay.key").chmod(0o640)
    desk.ledger.parent.chmod(0o755)

    assert {"home": "warn", "relay.key": "bad", "seal": "warn", "enrolled": "warn"} == levels(desk)
    assert 1 == desk.run("doctor").exit_code


def test_a_relay_that_is_not_enrolled_is_bad(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay that nobody enrolled is told which command does it."""
    monkeypatch.setenv("BATONPASS_HOME", str(tmp_path / "other"))
    before = checks(desk)["enrolled"]["found"]
    desk.run("key", "list")
    found = checks(desk)["enrolled"]

    assert ("this relay has recorded nothing here yet", "bad") == (before, found["level"])
    assert "batonpass key enroll relay_" in found["advice"]


def test_a_revoked_relay_is_bad(desk: Desk) -> None:
    """A relay whose key was revoked cannot record, and is told so."""
    own = desk.answer("key", "list")["here"]["relay"]
    desk.run("key", "revoke", own[-8:], "--reason", "gone")

    assert ("bad", f"{own}, revoked") == tuple(checks(desk)["enrolled"][name] for name in ("level", "found"))


def test_who_is_writing_is_said(desk: Desk) -> None:
    """The holder of the lock is named by its process."""
    with (desk.ledger.parent / "writer.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = checks(desk)["lock"]

    assert ("warn", f"process {os.getpid()} is writing now") == (found["level"], found["found"])


def test_files_that_a_crash_left_are_removed_on_request(desk: Desk) -> None:
    """An old file that no receipt names is reported, then removed; a young one may belong to a commit under way."""
    blobs = desk.ledger.parent / "blobs" / "jp"
    blobs.mkdir(parents=True)
    old, young = (blobs / f"content_01m7ggp9d5esn9rcpxbg36{ending}jp" for ending in ("aa", "bb"))
    for path in (old, young):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 7200,) * 2)
    reported = checks(desk)["files"]
    fixed = checks(desk, "--fix")["files"]

    assert [("warn", "1 file left by a crash"), ("ok", "removed 1 file left by a crash")] == [
        (found["level"], found["found"]) for found in (reported, fixed)
    ]
    assert [young] == [*blobs.iterdir()]


def test_a_ledger_that_cannot_be_opened_is_broken(tmp_path: Path) -> None:
    """Where there is no ledger the doctor says where it looked, and exits with 3."""
    done = Desk(tmp_path).run("doctor")

    assert (3, True) == (done.exit_code, f"there is no ledger at {Desk(tmp_path).ledger}" in done.stdout)


def test_an_empty_ledger_is_a_warning(tmp_path: Path) -> None:
    """A ledger in which nothing was recorded is no failure."""
    desk = Desk(tmp_path)
    desk.relay().close()

    assert {"receipts": "warn"} == levels(desk)


def test_little_room_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is almost full is bad before it is full."""
    for free, level in ((1 << 20, "bad"), (512 << 20, "warn")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: type("Usage", (), {"free": free}))
        assert level == checks(desk)["disk"]["level"]


def test_what_cannot_be_written_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that can only be read is bad for a ledger."""
    monkeypatch.setattr(os, "access", lambda path, _: path != desk.ledger)

    assert ("bad", f"{desk.ledger} cannot be written") == tuple(
        checks(desk)["writable"][name] for name in ("level", "found")
    )


def test_a_ledger_in_memory_has_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The doctor looks at what there is."""
    monkeypatch.setenv("BATONPASS_LEDGER", "memory:")
    done = CliRunner().invoke(cli, ["doctor"])

    assert (0, "in memory only") == (done.exit_code, done.stdout.splitlines()[1].split("  ")[-1].strip())
    assert [] == [*tmp_path.iterdir()]


def test_a_password_is_not_shown() -> None:
    """What a person may paste into a report has no secret in it."""
    found = find_settings("postgresql://ana:secret@db.example/ledger")

    assert "postgresql://db.example/ledger" == command._shown(found)


def test_a_damaged_ledger_is_bad(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever of ours goes wrong inside becomes a line, not the end of the report."""

    def fail(*_: object, **__: object) -> None:
        raise EditedError("a row is wrong")

    monkeypatch.setattr(command, "look_at_ledger", fail)
    done = desk.run("doctor")

    assert (1, True, True) == (done.exit_code, "a row is wrong" in done.stdout, "versions" in done.stdout)


def test_a_home_that_anybody_can_write_is_bad_and_is_said_at_every_command(desk: Desk) -> None:
    """Somebody could put another ledger there: the doctor says what to do, and others do not keep quiet about it."""
    desk.ledger.parent.chmod(0o777)
    (check,) = [one for one in desk.answer("doctor") if one["name"] == "home"]

    assert "bad" == check["level"]
    assert f"chmod 700 {desk.ledger.parent}" in check["advice"]
    assert "can be written by others" in desk.run("run", "list").stderr
