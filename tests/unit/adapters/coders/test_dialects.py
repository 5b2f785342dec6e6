"""The table of dialects: what each agent is told, and when."""

import json
import subprocess
import sys
import time

import pytest

from batonpass.accounts.blame import line_candidates
from batonpass.adapters.coders import client
from batonpass.adapters.coders.dialects.dialect import Dialect, LinkKind
from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.hook_settings import TIMEOUT
from batonpass.adapters.tool_kinds import TOOLS, Coder, ToolAccess, find_form

HANGS = """
import sys, time
from batonpass.adapters.coders import client
client.LAST_MOMENT = 0.1
client.attend = lambda call: time.sleep(60)
sys.exit(client.main())
"""


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: str(dialect.coder))
def test_a_hook_that_hangs_denies_before_its_agent_gives_up(dialect: Dialect) -> None:
    """Every agent makes the call after its own time limit, so an enforced hook answers first, whatever hangs."""
    words = ["--agent", dialect.coder, "--enforce", "--patience", "0.2"]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", HANGS, *words], capture_output=True, text=True, check=False, timeout=30
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert time.monotonic() - began < TIMEOUT
    if dialect.deny is None:
        assert "" == done.stdout
    else:
        why = "the hook command did not finish within 0.3 seconds"
        assert json.loads(client.deny(b"", why, dialect.coder)) == json.loads(done.stdout)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: str(dialect.coder))
def test_the_hook_command_denies_as_the_dialect_does(dialect: Dialect) -> None:
    """The command has its own copy of the form, because it may import nothing."""
    if dialect.deny is not None:
        assert dialect.deny("no") == client.denial("no", dialect.coder)


def test_the_hook_command_gives_up_before_its_agent_does() -> None:
    """What we write into settings is longer than all that the command may take."""
    assert client.PATIENCE_OF_ENFORCED + client.LAST_MOMENT < TIMEOUT


def test_every_dialect_says_how_its_sub_agents_are_found() -> None:
    """All but the surest way ends with an inference, and that is said."""
    assert {True} == {dialect.links[-1] is LinkKind.INFERRED for dialect in DIALECTS.values()}


def test_every_agent_has_tools_that_read_write_and_run() -> None:
    """The table of tools is complete for each agent whose tools are known; Aider has none of its own."""
    wanted = {ToolAccess.READ, ToolAccess.WRITE, ToolAccess.RUN}
    lacking = [coder for coder, tools in TOOLS.items() if wanted - {form.access for form in tools.values()}]

    assert [Coder.AIDER] == lacking


def test_blame_knows_every_shell() -> None:
    """A shell that has not returned may have written any line that nobody explains."""
    shells = {name for tools in TOOLS.values() for name, form in tools.items() if form.access is ToolAccess.RUN}

    assert shells == line_candidates._SHELLS


@pytest.mark.parametrize("tool", ["wait_agent", "multi_agent_v1wait_agent", "collaborationwait_agent"])
def test_codex_puts_families_before_names(tool: str) -> None:
    """A sub-agent's changes are not credited to the tool that waits for it."""
    form = find_form(Coder.CODEX, tool)

    assert form is not None
    assert form.is_reading
