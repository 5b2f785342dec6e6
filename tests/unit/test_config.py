"""Settings: what was given, else the environment, else what is nearest."""

from pathlib import Path

import pytest

from batonpass.config import Settings, find_settings
from batonpass.signing.approver_key import find_approvers_home


def homes(*places: Path) -> None:
    for place in places:
        (place / ".batonpass").mkdir(parents=True)


def test_the_nearest_home_is_found(tmp_path: Path) -> None:
    """Deep in a project, the ledger is that of the nearest parent that has one."""
    deep = tmp_path / "outer" / "inner" / "src" / "deep"
    deep.mkdir(parents=True)
    homes(tmp_path / "outer", tmp_path / "outer" / "inner")
    home = tmp_path / "outer" / "inner" / ".batonpass"

    assert Settings(ledger=f"sqlite:///{home}/ledger.db", home=home) == find_settings(directory=deep, environment={})


def test_without_a_home_one_begins_here(tmp_path: Path) -> None:
    """Where no parent has a ledger, it will be here."""
    home = tmp_path / ".batonpass"

    assert Settings(ledger=f"sqlite:///{home}/ledger.db", home=home) == (
        find_settings(directory=tmp_path, environment={})
    )
    assert not home.exists()


def test_a_file_of_that_name_is_no_home(tmp_path: Path) -> None:
    """Something else that is called .batonpass is passed over."""
    homes(tmp_path)
    here = tmp_path / "project"
    here.mkdir()
    (here / ".batonpass").touch()

    assert tmp_path / ".batonpass" == find_settings(directory=here, environment={}).home


@pytest.mark.parametrize("url", ["sqlite:////elsewhere/x.db", "memory:", "postgresql://host/x"], ids=str)
def test_the_environment_goes_before_what_is_near(tmp_path: Path, url: str) -> None:
    """BATONPASS_LEDGER names the ledger."""
    homes(tmp_path)

    assert url == find_settings(directory=tmp_path, environment={"BATONPASS_LEDGER": url}).ledger


def test_what_was_given_goes_before_the_environment(tmp_path: Path) -> None:
    """What stands on the command line decides."""
    environment = {"BATONPASS_LEDGER": "sqlite:////elsewhere/x.db"}

    assert "memory:" == find_settings("memory:", directory=tmp_path, environment=environment).ledger


def test_an_empty_setting_is_none(tmp_path: Path) -> None:
    """An environment variable that is set to nothing says nothing."""
    environment = {"BATONPASS_LEDGER": "", "BATONPASS_HOME": ""}

    assert find_settings(directory=tmp_path, environment={}) == find_settings(
        directory=tmp_path,
        environment=environment,
    )


@pytest.mark.parametrize("given", [True, False], ids=["on the command line", "in the environment"])
def test_a_bare_path_is_a_file(tmp_path: Path, given: bool) -> None:  # noqa: FBT001
    """People type a path: it means a file, from here."""
    environment = {} if given else {"BATONPASS_LEDGER": "sub/x.db"}
    settings = find_settings("sub/x.db" if given else None, directory=tmp_path, environment=environment)

    assert (
        Settings(
            ledger=f"sqlite:///{tmp_path}/sub/x.db",
            home=tmp_path / "sub" / "x.db.batonpass",
            is_named=True,
        )
        == settings
    )


def test_memory_may_be_spelled_as_sqlite_spells_it(tmp_path: Path) -> None:
    """Nobody means a file that is called `:memory:`."""
    assert Settings(ledger="memory:", home=None, is_named=True) == find_settings(
        ":memory:", directory=tmp_path, environment={}
    )


def test_an_absolute_path_stays_where_it_is(tmp_path: Path) -> None:
    """A path from the root is not put under the directory."""
    assert "sqlite:////elsewhere/x.db" == find_settings("/elsewhere/x.db", directory=tmp_path, environment={}).ledger


def test_a_bare_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tilde that no shell has expanded, in a variable for instance, means home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = find_settings(directory=Path("/"), environment={"BATONPASS_LEDGER": "~/x.db"})

    assert tmp_path / "x.db.batonpass" == settings.home


@pytest.mark.parametrize(
    ("url", "home"),
    [
        pytest.param("memory:", None, id="memory has none"),
        pytest.param("sqlite:////a/.batonpass/ledger.db", "/a/.batonpass", id="a ledger in a home has that"),
        pytest.param("sqlite:////a/b.db", "/a/b.db.batonpass", id="a file has one beside it"),
    ],
)
def test_keys_are_beside_the_ledger(tmp_path: Path, url: str, home: str | None) -> None:
    """The home follows from the ledger."""
    homes(tmp_path)

    assert (home and Path(home)) == find_settings(url, directory=tmp_path, environment={}).home


def test_keys_of_a_server_are_in_the_nearest_home(tmp_path: Path) -> None:
    """A ledger on a server has its keys where the project is."""
    homes(tmp_path)
    here = tmp_path / "src"
    here.mkdir()

    assert tmp_path / ".batonpass" == find_settings("postgresql://host/x", directory=here, environment={}).home


def test_a_home_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BATONPASS_HOME says where the keys are, whatever the ledger."""
    monkeypatch.setenv("HOME", str(tmp_path))
    environment = {"BATONPASS_HOME": "~/keys"}

    assert [tmp_path / "keys"] * 2 == [
        find_settings(url, directory=tmp_path, environment=environment).home for url in ("memory:", "postgresql://h/x")
    ]


def test_the_real_environment_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without anything given, the process's own directory and environment count."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BATONPASS_LEDGER", "x.db")
    monkeypatch.delenv("BATONPASS_HOME", raising=False)

    assert f"sqlite:///{tmp_path}/x.db" == find_settings().ledger


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({"XDG_CONFIG_HOME": "/xdg"}, Path("/xdg/batonpass/approvers"), id="where the standard says"),
        pytest.param({}, Path.home() / ".config/batonpass/approvers", id="where it says by default"),
        pytest.param(
            {"XDG_CONFIG_HOME": "here"}, Path.home() / ".config/batonpass/approvers", id="not where it is not absolute"
        ),
    ],
)
def test_keys_of_people_have_a_place_of_their_own(environment: dict[str, str], expected: Path) -> None:
    """Not in a project or beside a ledger, where agents work."""
    assert expected == find_approvers_home(environment)
