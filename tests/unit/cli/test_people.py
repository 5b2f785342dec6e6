"""The routes for people: the page, and a login by a provider if the settings name one; what is missing is named."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from batonpass.cli.server.people import people_routes
from batonpass.errors import MissingExtraError, ServerNotStartedError
from batonpass.relay import Relay
from batonpass.server.control_plane import ControlPlane

LOGIN = """
[login]
issuer = "https://accounts.example.org"
client_id = "batonpass"
secret_variable = "BATONPASS_TEST_SECRET"

[[login.roles]]
claim = "groups"
value = "ops"
role = "operator"
"""


@pytest.fixture
def plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlPlane]:
    """Return a control plane over a ledger in this directory, as a command sees it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATONPASS_TEST_SECRET", "hunter2")
    home = tmp_path / ".batonpass"
    with Relay.open(home / "ledger.db", home=home) as relay, click.Context(click.Command("serve")):
        yield ControlPlane.over(relay)


def paths(plane: ControlPlane) -> set[str]:
    """Return the paths of all routes."""
    return {str(getattr(route, "path", "")) for route in people_routes(plane)}


def test_a_login_is_there_if_the_settings_name_a_provider(plane: ControlPlane, tmp_path: Path) -> None:
    """Without, the page alone."""
    without = paths(plane)
    (tmp_path / "batonpass.toml").write_text(LOGIN)
    both = paths(plane)

    assert {"/login", "/login/callback"} == both - without
    assert "/enter" in without


def test_a_secret_that_is_not_there_is_named(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that nobody could log in to does not start."""
    (tmp_path / "batonpass.toml").write_text(LOGIN)
    monkeypatch.delenv("BATONPASS_TEST_SECRET")
    with pytest.raises(ServerNotStartedError, match="BATONPASS_TEST_SECRET"):
        people_routes(plane)
    (tmp_path / "batonpass.toml").write_text(LOGIN.replace('secret_variable = "BATONPASS_TEST_SECRET"\n', ""))
    assert "/login" in paths(plane)


def test_a_missing_extra_is_named(plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra for servers does not bring it."""
    (tmp_path / "batonpass.toml").write_text(LOGIN)
    for name in [name for name in sys.modules if name.startswith("batonpass.server.login.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jwt", None)

    with pytest.raises(MissingExtraError, match="oidc"):
        people_routes(plane)
