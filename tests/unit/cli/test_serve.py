"""`batonpass serve`: what it refuses before it listens, each in one sentence."""

import sys
from pathlib import Path

import pytest

from tests.unit.cli.desk import Desk


def sentence(desk: Desk, *arguments: str) -> tuple[int, str]:
    """Run it with what it must refuse; return the exit code and what it says."""
    done = desk.run("serve", *arguments)
    return done.exit_code, done.stderr


def test_other_machines_are_not_let_in_without_tls(tmp_path: Path) -> None:
    """Tokens would cross the network for everybody to read; the sentence says what to do."""
    code, said = sentence(Desk(tmp_path), "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - it is refused

    assert (1, True, True) == (code, "--certificate" in said, "--insecure" in said)


def test_a_certificate_comes_with_its_key(tmp_path: Path) -> None:
    """One without the other is no TLS."""
    assert (1, True) == ((told := sentence(Desk(tmp_path), "--certificate", "x.pem"))[0], "both" in told[1])


def test_a_missing_or_wrong_certificate_is_named(tmp_path: Path) -> None:
    """With its file, and not with a trace."""
    desk, wrong = Desk(tmp_path), tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    missing = sentence(desk, "--certificate", str(tmp_path / "none.pem"), "--key", str(wrong))
    broken = sentence(desk, "--certificate", str(wrong), "--key", str(wrong))

    assert (1, True) == (missing[0], "none.pem" in missing[1])
    assert (1, True, 1) == (broken[0], "wrong.pem" in broken[1], broken[1].count("\n"))


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The core does not bring a server."""
    for name in [name for name in sys.modules if name.startswith(("batonpass.server.", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, said = sentence(Desk(tmp_path))

    assert (1, True) == (code, "'.[server]'" in said)
