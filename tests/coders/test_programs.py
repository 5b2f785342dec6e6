"""The real programs with the hooks that `init` writes: who did what, who was refused, and who wrote each line.

`make test-coders` installs those that anybody may install, and runs this. Copilot CLI is tried if it is there.
"""

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from batonpass.adapters.tool_kinds import Coder
from batonpass.model.bodies.body import HandoffAccepted, RunGap, RunStarted, ToolDenied
from batonpass.relay import Relay
from tests.coders.agents import CHILD_TASK, KEPT, PROGRAMS, SERVERS
from tests.coders.model import scripted_model
from tests.integration.cli.hooking import Hooked
from tests.integration.cli.shell import batonpass_in
from tests.unit.adapters.coders.stories import RULES, maker_of

PLACE: Final = Path(os.environ.get("BATONPASS_CODERS", ""))
PATIENCE: Final = 300.0
HOOKS_END: Final = 20.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("BATONPASS_CODERS" not in os.environ, reason="`make test-coders` installs the programs"),
]


def is_there(coder: Coder) -> bool:
    """Return whether a program can be started."""
    return Path(PROGRAMS[coder].command(PLACE)[-1 if coder is Coder.QWEN else 0]).exists() or coder is Coder.QWEN


def left_behind(home: Path) -> list[int]:
    """Return the processes that a program left, which still have its home: Cline leaves one that waits for more."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and f"HOME={home}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def wait_for_hooks(home: Path) -> None:
    """Wait until no hook is under way: Cline's daemon tells the last events after the program ended."""
    ends = time.monotonic() + HOOKS_END
    while time.monotonic() < ends:
        lines = [Path(f"/proc/{pid}/cmdline") for pid in left_behind(home)]
        under_way = 0
        for line in lines:
            with suppress(OSError):
                under_way += b"hook" in line.read_bytes()
        if not under_way:
            return
        time.sleep(0.2)


def a_project(root: Path) -> Path:
    """Return a repository with two small files."""
    project = root / "shop"
    project.mkdir()
    (project / "a.py").write_text("def f():\n    return 1\n", encoding="utf-8")
    (project / "b.txt").write_text("alpha\nbeta\n", encoding="utf-8")
    settings = (["config", "user.email", "ana@example.org"], ["config", "user.name", "ana"])
    for words in (["init", "-q"], *settings, ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    return project


def run_program(
    command: Sequence[str], project: Path, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run a program from which nothing but the scripted model can be reached."""
    nowhere = dict.fromkeys(("HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9")
    near = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    return subprocess.run(
        command,
        cwd=project,
        env={**nowhere, **near, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("coder", PROGRAMS)
def test_a_session_is_recorded_and_judged(coder: Coder, tmp_path: Path) -> None:
    """The story of the recorded payloads, played by the program itself."""
    if not is_there(coder):
        pytest.skip(f"{coder} is not installed in {PLACE}")
    program = PROGRAMS[coder]
    project, home = a_project(tmp_path), tmp_path / "home"
    init = batonpass_in(project, "init", str(coder))
    assert 0 == init.returncode, init.stderr
    (project / "batonpass.toml").write_text(RULES, encoding="utf-8")

    with scripted_model(program.script(project)) as model:
        for path, text in program.settings(home, project, model).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        home.mkdir(exist_ok=True)
        done = run_program(
            program.command(PLACE),
            project,
            {"HOME": str(home), "PATH": os.environ["PATH"], **program.variables(model)},
        )
    wait_for_hooks(home)
    hooked = Hooked(project)
    for pid in (*hooked.recorders(), *left_behind(home)):
        hooked.kill(pid)

    assert 0 == done.returncode, done.stderr
    assert not (project / "denied.txt").exists()
    assert "def f():\n    return 2\n" == (project / "a.py").read_text(encoding="utf-8")
    assert "ALPHA\nBETA\n" == (project / "b.txt").read_text(encoding="utf-8")
    bodies = hooked.bodies()
    assert [str(coder)] == [body.agent for body in bodies if isinstance(body, RunStarted)]
    kinds = (ToolDenied, HandoffAccepted, RunGap)
    assert [int(program.refuses), 1, 0] == [sum(isinstance(body, kind) for body in bodies) for kind in kinds]
    with Relay.open(f"sqlite:///{project}/.batonpass/ledger.db", home=project / ".batonpass") as relay:
        places = (("a.py", 2), ("b.txt", 2), ("b.txt", 1))
        edited, changed, below = (maker_of(relay, project / file, line) for file, line in places)
    assert edited.run.id == changed.run.id == below.run.parent
    assert below.hops[0].task is not None
    assert CHILD_TASK == below.hops[0].task.words


@pytest.mark.parametrize("coder", KEPT)
def test_a_session_that_was_kept_is_read(coder: Coder, tmp_path: Path) -> None:
    """Without a ledger the line is the agent's by hearsay; imported, it has its run and what the person said."""
    program = KEPT[coder]
    project, home = a_project(tmp_path), tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    with scripted_model({"PARENT-TASK": program.steps(project)}) as model:
        done = run_program(program.command(PLACE), project, {**environment, **program.variables(model)})
    assert 0 == done.returncode, done.stderr
    assert "def f():\n    return 2\n" == (project / "a.py").read_text(encoding="utf-8")

    heard = batonpass_in(project, "blame", "a.py:2", environment=environment)
    assert 0 == batonpass_in(project, "import", str(coder), environment=environment).returncode
    kept = json.loads(batonpass_in(project, "blame", "a.py", "--json", environment=environment).stdout)

    assert (True, True) == (f"{coder} " in heard.stdout, "hearsay" in heard.stderr)
    (maker,) = kept["makers"].values()
    assert [None, maker["run"]] == [line["run"] for line in kept["lines"]]
    assert (str(coder), True) == (maker["agent"], program.said in json.dumps(maker))


@pytest.mark.parametrize("coder", SERVERS)
def test_a_program_reads_the_servers_that_we_put_behind_the_proxy(coder: Coder, tmp_path: Path) -> None:
    """Added by its own command, changed by ours, told by its own again; and back."""
    words = SERVERS[coder]
    home, project = tmp_path / "home", tmp_path / "shop"
    for folder in (home / ".codex", project):
        folder.mkdir(parents=True)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    place = (home if words.of_person else project) / words.place
    ours = ("init", "mcp", "--client", str(coder), *(["--user"] if words.of_person else []))

    def told(asked: Sequence[str]) -> str:
        done = run_program([*words.program(PLACE), *asked], project, environment)
        assert 0 == done.returncode, done.stderr
        return done.stdout + done.stderr

    told(words.add)
    before = place.read_bytes()
    assert 0 == batonpass_in(project, *ours, environment=environment).returncode
    wrapped = place.read_bytes()
    assert words.says in told(words.tell)
    place.write_bytes(wrapped)
    undone = batonpass_in(project, *ours, "--undo", environment=environment)

    assert (0, before) == (undone.returncode, place.read_bytes())
    assert b"mcp-server-time" in before
    assert b"mcp-proxy" in wrapped
