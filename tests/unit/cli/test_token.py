"""`batonpass token`: shown once, kept as a digest, listed without secrets, revoked by the end of its id."""

from pathlib import Path

import pytest

from tests.unit.cli.desk import Desk

BY = ("--by", "user:ana")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk without a ledger."""
    return Desk(tmp_path)


def test_a_token_is_printed_once_and_nothing_of_it_is_listed(desk: Desk) -> None:
    """On stdout alone, so that it can be kept without the words beside it; the first makes the ledger."""
    done = desk.run(
        "token", "add", "service:nightly", "--role", "agent", "--may", "write:src/**", "--agent", "lead", *BY
    )
    token = done.stdout.strip()
    (listed,) = desk.answer("token", "list")

    assert (0, listed["id"]) == (done.exit_code, token.partition(".")[0])
    assert ("service:nightly", "agent", ["lead"], ["write:src/**"], True) == tuple(
        listed[name] for name in ("principal", "role", "agents", "may", "valid")
    )
    assert token.partition(".")[2] not in desk.run("token", "list").stdout + str(listed)


def test_json_has_the_token_with_its_fields(desk: Desk) -> None:
    """For scripts that make tokens for others."""
    made = desk.answer("token", "add", "ana", "--role", "auditor", *BY)

    assert (True, "user:ana", "user:ana") == (made["token"].startswith(made["id"]), made["principal"], made["added_by"])


def test_a_token_is_revoked_by_the_end_of_its_id(desk: Desk) -> None:
    """And is listed as that, with who did it."""
    made = desk.answer("token", "add", "ana", "--role", "operator", *BY)
    done = desk.run("token", "revoke", made["id"][-6:], "--reason", "left", "--by", "user:ben")
    (listed,) = desk.answer("token", "list")

    assert (0, False, "user:ben") == (done.exit_code, listed["valid"], listed["revoked_by"])
    assert "revoked" in desk.words("token", "list")
    assert {"id": made["id"], "revoked": True} == desk.answer("token", "revoke", made["id"], "--reason", "again", *BY)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["add", "ana"], 2, id="no role"),
        pytest.param(["add", "two words", "--role", "auditor"], 2, id="no principal"),
        pytest.param(["add", "ana", "--role", "king"], 2, id="no such role"),
        pytest.param(["add", "ana", "--role", "agent"], 2, id="an agent without a ceiling"),
        pytest.param(["add", "ana", "--role", "agent", "--may", "fly"], 2, id="no permit"),
        pytest.param(["add", "ana", "--role", "auditor", "--lasts", "soon"], 2, id="no duration"),
        pytest.param(["add", "ana", "--role", "auditor", "--lasts", "900d"], 2, id="for years"),
        pytest.param(["add", "ana", "--role", "auditor", "--agent", "the editor"], 2, id="no agent"),
        pytest.param(["revoke", "abcd", "--reason", "x"], 1, id="nothing to revoke"),
    ],
)
def test_what_cannot_be_is_refused(desk: Desk, arguments: list[str], code: int) -> None:
    """With the exit code of what is wrong, and no token."""
    desk.relay().start("Begin", by="user:ana").close()

    assert (code, []) == (desk.run("token", *arguments).exit_code, desk.answer("token", "list"))


def test_adding_and_revoking_are_receipts_that_verify(desk: Desk) -> None:
    """Every administrative act is in the ledger, with who did it."""
    made = desk.answer("token", "add", "ana", "--role", "admin", *BY)
    desk.run("token", "revoke", made["id"], "--reason", "left", *BY)
    found = desk.answer("receipt", "grep", ".", "--kind", "token")

    assert {"token.added", "token.revoked"} == {one["kind"] for one in found}
    assert 0 == desk.run("ledger", "verify").exit_code


def test_without_tokens_the_list_says_how_to_make_one(desk: Desk) -> None:
    """On stderr, so that a program sees an empty list."""
    desk.relay().start("Begin", by="user:ana").close()
    done = desk.run("token", "list")

    assert ("", True) == (done.stdout, "batonpass token add" in done.stderr)
