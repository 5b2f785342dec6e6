"""`batonpass webhook`: added with a secret that is printed once, listed without it, tried, resumed and removed."""

from pathlib import Path

import pytest

from tests.unit.cli.desk import Desk
from tests.unit.dispatch.receiver import URL, Receiver

BY = ("--by", "user:ana")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk without a ledger."""
    return Desk(tmp_path)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """Let every command reach somebody who takes webhooks, and nobody else."""
    found = Receiver()
    monkeypatch.setattr("batonpass.cli.server.webhook.Egress", lambda _: found.egress())
    return found


def test_the_secret_is_printed_once_and_nothing_secret_is_listed(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stdout alone; the list has the place and not the path, which is often a secret."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "batonpass.toml").write_text('[egress]\nallow = ["127.0.0.1:9000"]\n')
    done = desk.run("webhook", "add", "http://127.0.0.1:9000/hunter2", "--kind", "tool.held", *BY)
    (listed,) = desk.answer("webhook", "list")
    words = desk.run("webhook", "list").output

    assert (0, True, 1) == (done.exit_code, done.stdout.startswith("whsec_"), done.stdout.count("\n"))
    assert ("http://127.0.0.1:9000", ["tool.held"], "added", True) == tuple(
        listed[name] for name in ("place", "kinds", "state", "active")
    )
    assert ("hunter2" in words, done.stdout.strip() in words, "active" in words) == (False, False, True)


def test_a_place_that_is_not_public_has_to_be_listed(desk: Desk) -> None:
    """One sentence says what to do."""
    done = desk.run("webhook", "add", "http://127.0.0.1:9000/", *BY)

    assert 1 == done.exit_code
    assert "[egress]" in done.stderr


def test_it_is_rotated_resumed_and_removed_by_the_end_of_its_id(desk: Desk) -> None:
    """Each with a sentence, or as JSON."""
    made = desk.answer("webhook", "add", "https://93.184.215.14/", *BY)
    end = made["id"][-6:]
    rotated = desk.run("webhook", "rotate", end, *BY)
    also = desk.answer("webhook", "rotate", end, *BY)
    resumed = desk.run("webhook", "resume", end, *BY).output
    again = desk.answer("webhook", "resume", end, *BY)
    removed = desk.run("webhook", "remove", end, "--reason", "moved", *BY).output

    assert 3 == len({made["secret"], rotated.stdout.strip(), also["secret"]})
    assert ("is tried again" in resumed, again["resumed"], "removed webhook" in removed) == (True, True, True)
    assert "there is no webhook" in desk.run("webhook", "list").output
    assert ["removed"] == [one["state"] for one in desk.answer("webhook", "list")]


def test_it_delivers_and_says_what_was_given_up(desk: Desk, receiver: Receiver) -> None:
    """Once for a script, with an exit code; whoever looks at the list sees what is wrong and what to do."""
    made = desk.answer("webhook", "add", URL, *BY)
    end = made["id"][-6:]
    tried = desk.run("webhook", "test", end)
    answered = desk.answer("webhook", "test", end)
    with desk.relay() as relay:
        relay.start("Ship", by="user:ana").close()
    delivered = desk.answer("webhook", "deliver", "--once")
    nothing = desk.run("webhook", "deliver", "--once")
    receiver.statuses = [410]
    with desk.relay() as relay:
        relay.start("Ship", by="user:ana").close()
    failed = desk.run("webhook", "deliver", "--once")
    refused = desk.run("webhook", "test", end)
    listed = desk.run("webhook", "list").output

    assert (0, 0, {"status": 204, "taken": True}) == (tried.exit_code, nothing.exit_code, answered)
    assert ({"delivered": 2, "failed": 0}, 1, 1) == (delivered, failed.exit_code, refused.exit_code)
    assert ("it answered 410" in refused.output, "0 delivered, 1 to be tried again" in failed.output) == (True, True)
    assert ("given up" in listed, "answered 410" in listed, f"webhook resume {end[-4:]}" in listed) == (
        True,
        True,
        True,
    )
    assert "hunter2" not in listed
