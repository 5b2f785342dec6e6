"""The environment of a command: whoever may run a program does not exchange what it is made of, or what it starts."""

import os
from pathlib import Path
from typing import Any

import pytest

from batonpass.credentials import FromEnvironment
from batonpass.errors import GrantDeniedError, InvalidValueError
from batonpass.handoff.shell.environment import environment_of, find_program, find_unsound
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, bodies, denials, receipts, words


@pytest.fixture
def relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Relay:
    """Return a relay whose work tree this process stands in."""
    monkeypatch.chdir(tmp_path)
    return Relay.open("memory:", work_tree=tmp_path)


class Lying(str):
    """A text that says of itself that it is another one."""

    __slots__ = ()

    def __eq__(self, _: object) -> bool:
        return False

    def startswith(self, *_: object) -> bool:
        """Say no."""
        return False

    __hash__ = str.__hash__


DECISIVE = [
    "LD_PRELOAD",
    "DYLD_INSERT_LIBRARIES",
    "GCONV_PATH",
    "LOCPATH",
    "BASH_ENV",
    "ENV",
    "BASH_FUNC_ls%%",
    "IFS",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "SHELL",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PYTHONWARNINGS",
    "PYTHONPYCACHEPREFIX",
    "PYTEST_ADDOPTS",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYLIB",
    "RUBYOPT",
    "NODE_OPTIONS",
    "NODE_PATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_CONFIG_COUNT",
    "GIT_EXEC_PATH",
    "GIT_DIR",
    "GIT_PAGER",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "HOME",
    "XDG_CONFIG_HOME",
    "npm_config_script_shell",
    "PIP_INDEX_URL",
    "UV_INDEX_URL",
    "CC",
    "MAKEFLAGS",
    "RUSTC_WRAPPER",
    "GOFLAGS",
]


@pytest.mark.parametrize("name", [*DECISIVE, pytest.param(Lying("LD_PRELOAD"), id="one that lies")])
def test_what_decides_what_runs_is_not_set_under_a_grant(relay: Relay, name: str) -> None:
    """It is refused before anything runs, on record, and whoever tried is told what to do instead."""
    lead = relay.start("Fix it", by=ANA, may=["run:echo"])
    with pytest.raises(GrantDeniedError, match=r"decides .*; leave it out, or name it in inherit= to pass ours on"):
        lead.shell(["echo"], env={"FINE": "1", name: "src/mine"})
    ((rule, reason),) = denials(relay)

    assert ("env", []) == (rule, receipts(relay, Kind.TOOL_REQUESTED))
    assert f"env: {str.__str__(name)} decides" in reason
    assert "echo" == words(relay, receipts(relay, Kind.TOOL_DENIED)[0], "target")


@pytest.mark.parametrize(
    "name",
    [
        "CI",
        "TMPDIR",
        "HTTPS_PROXY",
        "GREETING",
        "GIT_AUTHOR_NAME",
        "PYTHONUNBUFFERED",
        "ENVIRONMENT",
        "CCACHE_DIR",
        "MY_LD_PRELOAD",
        "HOMEPAGE",
    ],
)
def test_what_decides_nothing_of_the_kind_is_set(relay: Relay, name: str) -> None:
    """Most variables are a program's own."""
    lead = relay.start("Fix it", by=ANA, may=["run:printenv"])

    assert "x\n" == lead.shell(["printenv", name], env={name: "x"}).stdout


def test_what_is_ours_is_inherited_all_the_same(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever started us put it there."""
    monkeypatch.setenv("PYTHONPATH", "/opt/ours")
    lead = relay.start("Fix it", by=ANA, may=["run:printenv"])

    assert "/opt/ours\n" == lead.shell(["printenv", "PYTHONPATH"], inherit=["PYTHONPATH"]).stdout


def test_a_credential_is_not_put_where_it_decides_what_runs(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable of a credential is one that a command is given."""
    monkeypatch.setenv("VAULT", "a-long-secret")
    relay.credential("ci", FromEnvironment("VAULT", identity="ci@example.org"))
    lead = relay.start("Fix it", by=ANA, may=["run:true"])
    with pytest.raises(GrantDeniedError, match="BASH_ENV decides"):
        lead.shell(["true"], credential=("ci", "BASH_ENV"))


@pytest.mark.parametrize("name", ["LD_PRELOAD", "BASH_ENV"])
@pytest.mark.parametrize("may", [(), ("run:printenv",)], ids=["without a grant", "trying one out"])
def test_observed_it_is_only_told(relay: Relay, name: str, may: Any) -> None:  # noqa: ANN401 - a list of permits
    """The command is run with it, and its receipt says what would have been."""
    lead = relay.start("Look", by=ANA, may=may, mode="observed")
    value = "" if name == "LD_PRELOAD" else "x"

    assert f"{value}\n" == lead.shell(["printenv", name], env={name: value}).stdout
    assert [("would_deny.env",)] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]


class TestPath:
    """The PATH: where programs are found that are named and nothing else."""

    @pytest.mark.parametrize(
        "place", ["src", "", ".", "./bin", "{tree}"], ids=["relative", "empty", "dot", "bin", "new"]
    )
    def test_no_place_is_added_under_a_grant(self, relay: Relay, tmp_path: Path, place: str) -> None:
        """Whatever lies there would be started by its name."""
        lead = relay.start("Fix it", by=ANA, may=["run:printenv"])
        added = place.format(tree=tmp_path)
        with pytest.raises(GrantDeniedError, match=r"PATH has .*, which ours has not"):
            lead.shell(["printenv"], env={"PATH": f"/usr/bin:{added}"})

    def test_fewer_places_are_as_good_as_ours(self, relay: Relay) -> None:
        """Nothing is found there that would not be found without it."""
        first = next(place for place in os.environ["PATH"].split(":") if place.startswith("/"))
        lead = relay.start("Fix it", by=ANA, may=["run:printenv"])

        assert f"{first}\n" == lead.shell(["printenv", "PATH"], env={"PATH": first}).stdout

    @pytest.mark.parametrize("given", [False, True], ids=["ours", "given"])
    def test_a_place_that_depends_on_where_one_stands_is_left_out(
        self, monkeypatch: pytest.MonkeyPatch, *, given: bool
    ) -> None:
        """Relative and empty ones, whoever wrote them."""
        path = ":/usr/bin::bin:./here:../there:/bin:."
        if not given:
            monkeypatch.setenv("PATH", path)

        assert "/usr/bin:/bin" == environment_of({"PATH": path} if given else {}, ())["PATH"]

    def test_a_program_is_not_found_where_one_stands(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A relative place of our own PATH would be another place for the command."""
        forged = tmp_path / "bin" / "forged"
        forged.parent.mkdir()
        forged.write_text("#!/bin/sh\n", encoding="utf-8")
        forged.chmod(0o755)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PATH", f"bin:{os.environ['PATH']}")

        assert None is find_program("forged")
        monkeypatch.setenv("PATH", f"{tmp_path}/bin")
        assert str(forged) == find_program("forged")


@pytest.mark.parametrize("variables", [{"A": 1}, {1: "a"}], ids=["a number", "a number as a name"])
def test_variables_are_texts(relay: Relay, variables: Any) -> None:  # noqa: ANN401 - what is none
    """Nothing else can be given to a program."""
    with pytest.raises(InvalidValueError, match="env"):
        relay.start("Look", by=ANA).shell(["true"], env=variables)


def test_nothing_given_is_nothing_wrong() -> None:
    """The usual command sets nothing."""
    assert None is find_unsound(())
