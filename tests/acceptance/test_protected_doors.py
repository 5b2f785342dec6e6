"""What is protected is the same at every door: however a path is spelled, the same calls are refused."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.coders.rules.tool_actions import call_of
from batonpass.adapters.mcp.server_declaration import Server
from batonpass.errors import BatonpassError, CallProtectedError
from batonpass.handoff.calls.begin import begin_call
from batonpass.handoff.calls.shell_call import plan_command
from batonpass.handoff.files.path_spellings import leads_to, spellings
from batonpass.handoff.files.protected_paths import Access, Protected, Reach
from batonpass.handoff.tools.declaration import declared_of, tool
from batonpass.handoff.tools.json_values import readable
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.relay import Relay, desk_of
from batonpass.store.factory import open_store
from tests.acceptance.spelled_paths import NEIGHBOURS, TEXTS, VALUES, Spelling
from tests.unit.adapters.mcp.stage import Stage

ANA: Final = "user:ana"
MAY: Final = ["read:**", "write:**", "run:**", "call:**"]
REFUSED: Final = "and no agent may do that"
# What is aimed at, and whether it is refused to be read and changed, in a run that is observed and in one that is not.
AIMS: Final = {
    ".batonpass/relay.key": {(False, True), (False, False), (True, True), (True, False)},
    ".batonpass/runs/run-1.key": {(False, True), (False, False), (True, True), (True, False)},
    ".batonpass/ledger.db": {(False, False), (True, True), (True, False)},
    "batonpass.toml": {(True, False)},
    ".claude/settings.local.json": {(True, False)},
    ".mcp.json": {(True, False)},
    ".git/config": {(True, False)},
    ".git/hooks/pre-commit": {(True, False)},
    "batonpass-keys.toml": {(True, False)},  # whose notes count for everybody
    ".config/batonpass/keys.toml": {(True, False)},  # and for whoever works here
}
MODES: Final = [(enforced, reads) for enforced in (False, True) for reads in (False, True)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a work tree with everything in it that is protected."""
    base = tmp_path_factory.mktemp("doors").resolve()
    tree = base / "caf\u00e9"
    for name in (*AIMS, "src/a.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if name != ".batonpass/relay.key":  # the relay makes that itself
            (tree / name).touch()
    (base / "elsewhere").mkdir()
    return tree


@pytest.fixture(autouse=True)
def elsewhere(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process stand beside the tree, and its user live there."""
    monkeypatch.chdir(tree.parent / "elsewhere")
    monkeypatch.setenv("HOME", str(tree))


Ask = Callable[..., str | None]


class Doors:
    """The ways in: each is asked whether a call may be made that reads or changes what a value names."""

    def __init__(self, tree: Path, relay: Relay) -> None:
        self._tree = tree
        self._relay = relay
        self._protected = Protected.around(tree / ".batonpass", relay.store.url, tree)
        self._runs = {
            True: relay.start("Fix it", by=ANA, may=MAY),
            False: relay.start("Look", by=ANA),
        }
        # Nothing is done here, so nothing has to be found in the tree: every call would ask git twice.
        for run in self._runs.values():
            desk_of(relay).files.unwatch(run.id)

    def pure(self, value: Any, *, enforced: bool, reads: bool) -> str | None:  # noqa: ANN401 - a text
        """Ask the judge itself."""
        access = Access.READS if reads else Access.CHANGES
        paths = (path for one in spellings(value) for path in leads_to(one, [str(self._tree)]) if "\0" not in value)
        found = self._protected.find((Reach(path, access) for path in paths), enforced=enforced)
        return None if found is None else f"x would {found.does}, {REFUSED}; {found.instead}"

    def call(self, value: Any, *, enforced: bool, reads: bool) -> str | None:  # noqa: ANN401 - any argument
        """Call a function of which no more is declared than whether it reads."""
        function = tool("x", reads=reads)(lambda value: value)
        return self._begin(ToolCall(declared_of(function), function, (value,)), enforced=enforced)

    def shell(self, value: Any, *, enforced: bool, reads: bool) -> str | None:  # noqa: ANN401 - a text
        """Run a command."""
        planned = plan_command(desk_of(self._relay), ["cat" if reads else "tee", value])
        return self._begin(ToolCall(planned.declared, planned.command, (), planned.given), enforced=enforced)

    def proxy(self, value: Any, *, enforced: bool, reads: bool) -> str | None:  # noqa: ANN401 - JSON
        """Call a tool of an MCP server."""
        stage = Stage(relay=self._relay, enforced=enforced, server=Server(name="s", reads=("buy",) if reads else ()))
        stage.call(1, arguments={"what": value})
        if stage.to_server:
            return None
        return str(stage.to_client[-1]["result"]["content"][0]["text"])

    def hook(self, value: Any, *, enforced: bool, reads: bool) -> str | None:  # noqa: ANN401 - a text
        """Let Claude Code read or write a file."""
        given = {"file_path": value, "content": ".batonpass/relay.key"}
        return self._hooked("Read" if reads else "Write", given, enforced=enforced)

    def hooked_shell(self, value: Any, *, enforced: bool, reads: bool) -> str | None:  # noqa: ANN401 - a text
        """Let Claude Code tell its shell."""
        command = f"{'cat' if reads else 'tee'} {shlex.quote(value)}"
        return self._hooked("Bash", {"command": command}, enforced=enforced)

    def hooked_tool(self, value: Any, *, enforced: bool, reads: bool) -> str | None:  # noqa: ANN401 - JSON
        """Let Claude Code call another program's tool, of which nobody knows whether it reads."""
        return None if reads else self._hooked("mcp__s__x", {"what": [value]}, enforced=enforced)

    def _hooked(self, name: str, given: dict[str, Any], *, enforced: bool) -> str | None:
        event = HookEvent(name="PreToolUse", session="s", tool=name, input=given, directory=self._tree)
        return self._begin(call_of(event, self._tree, {}), enforced=enforced)

    def _begin(self, call: ToolCall[Any], *, enforced: bool) -> str | None:
        run = self._runs[enforced]
        looking_at_nothing = replace(call, declared=replace(call.declared, any_file=False))  # as above
        try:
            begin_call(run._desk, run._holding, looking_at_nothing)
        except CallProtectedError as refused:
            return str(refused)
        except BatonpassError:
            return None  # for another reason, such as its grant
        return None


@pytest.fixture(scope="module")
def doors(tree: Path) -> Iterator[Doors]:
    """Return the doors of one relay, whose user lives in the tree."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOME", str(tree))
        patched.delenv("XDG_CONFIG_HOME", raising=False)
        with Relay(open_store("memory:"), home=tree / ".batonpass", work_tree=tree) as relay:
            yield Doors(tree, relay)


FOR_TEXTS: Final = ("pure", "call", "shell", "proxy", "hook", "hooked_shell", "hooked_tool")
FOR_VALUES: Final = ("call",)


def refused_at(ask: Ask, value: Any) -> set[tuple[bool, bool]]:  # noqa: ANN401 - any argument
    """Return in which modes, and whether for reading, a call that names something is refused."""
    found = set()
    for enforced, reads in MODES:
        sentence = ask(value, enforced=enforced, reads=reads)
        if sentence is not None and REFUSED in sentence:
            found.add((enforced, reads))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("spelled", TEXTS.values(), ids=TEXTS.keys())
def test_no_spelling_leads_in(tree: Path, doors: Doors, spelled: Spelling) -> None:
    """Observed, the record is not changed and its keys not read; enforced, it is not read, and no rule is changed."""
    expected, found = {}, {}
    for door, (aim, refused) in product(FOR_TEXTS, AIMS.items()):
        value = spelled(tree, aim)
        # run.shell takes nothing that is no text; an enforced proxy passes no half characters on, whatever they name.
        if door in {"shell", "proxy"} and value != readable(value):
            continue
        # Nobody knows whether another program's tool reads, and so it is asked only for changes.
        expected[door, aim] = {one for one in refused if door != "hooked_tool" or not one[1]}
        found[door, aim] = refused_at(getattr(doors, door), spelled(tree, aim))

    assert expected == found


@pytest.mark.parametrize("spelled", VALUES.values(), ids=VALUES.keys())
def test_no_value_hides_a_path(tree: Path, doors: Doors, spelled: Spelling) -> None:
    """Whatever it is made of, and however deep it stands in something else."""
    assert AIMS == {aim: refused_at(doors.call, spelled(tree, aim)) for aim in AIMS}


@pytest.mark.parametrize("name", NEIGHBOURS, ids=lambda name: ascii(name)[:30])
def test_neighbours_are_nobodys_business(doors: Doors, name: str) -> None:
    """A guard that is in the way is switched off."""
    assert {} == {door: found for door in FOR_TEXTS if (found := refused_at(getattr(doors, door), name))}
