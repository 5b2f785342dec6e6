"""`batonpass hook claude-code`: an event by hand, and what is said if it goes wrong."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batonpass.adapters.coders.client import HookInvocation
from batonpass.cli import hook_event
from batonpass.cli.nouns import cli


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with the home of a ledger; where we stand afterwards is where we stood before."""
    (tmp_path / "shop" / ".batonpass").mkdir(parents=True, mode=0o700)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "shop"


EVENT = '{"hook_event_name": "SessionStart"}'


def hook(*words: str, event: str = EVENT) -> Result:
    return CliRunner().invoke(cli, ["hook", "claude-code", *words], input=event, prog_name="batonpass")


def test_the_answer_is_printed(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With whatever the hook command would have been told."""
    told: list[tuple[bool, str | None, bytes]] = []

    def ask(call: HookInvocation, event: bytes) -> bytes:
        told.append((call.enforce, call.told, event))
        return b'{"a": 1}'

    monkeypatch.setattr(hook_event, "ask", ask)
    done = hook("--project", str(shop), "--enforce", "--ledger", "shop/.batonpass/ledger.db")

    assert (0, '{"a": 1}\n') == (done.exit_code, done.stdout)
    assert [(True, str(shop / ".batonpass" / "ledger.db"), EVENT.encode())] == told
    assert "SessionStart is recorded" in done.stderr


def test_no_answer_prints_nothing(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is what most events get."""
    monkeypatch.setattr(hook_event, "ask", lambda *_: b"")

    assert (0, "") == (hook("--project", str(shop)).exit_code, hook("--project", str(shop)).stdout)


def test_without_a_ledger_it_says_so(tmp_path: Path) -> None:
    """Unlike the hook command, which must not get in the way."""
    done = hook("--project", str(tmp_path))

    assert (3, True) == (done.exit_code, "the event was not recorded" in done.stderr)


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ("", "does not hold an event of Claude Code"),
        ("[1]", "does not hold an event of Claude Code"),
        ('{"hook_event_name": "Teatime"}', "'Teatime' is not recorded"),
    ],
    ids=["nothing", "no object", "unknown"],
)
def test_what_is_no_event_is_said_to_be(shop: Path, event: str, says: str) -> None:
    """By hand, one wants to know."""
    done = hook("--project", str(shop), event=event)

    assert (2, True) == (done.exit_code, says in done.stderr)
