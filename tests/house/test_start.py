"""What must not be loaded by whoever does not need it: each of these takes longer than all of a short command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from batonpass import Relay

# Drivers, frameworks and protocols; of our own, what acts.
FOREIGN = frozenset(
    {"anthropic", "asyncio", "email", "http", "httpx", "mcp", "openai", "psycopg", "psycopg_pool", "pydantic"}
    | {"pydantic_ai", "rich", "ssl"}
)
# Of the standard library, what is large and was loaded for one name: archives for the size of a terminal, a compiler
# for the definition of a value.
HEAVY = frozenset(
    {
        "bz2",
        "concurrent",
        "dataclasses",
        "importlib.resources",
        "logging",
        "lzma",
        "multiprocessing",
        "shutil",
        "socket",
    }
    | {"tempfile", "tomllib", "zipfile"}
)
SIGNING = frozenset(
    {"nacl", "batonpass.grants", "batonpass.handoff.runtime.membership", "batonpass.signing", "batonpass.wire"}
)
STORES = frozenset({"apsw", "batonpass.store.memory", "batonpass.store.postgres", "batonpass.store.sqlite.store"})
ACTING = frozenset({"batonpass.adapters", "batonpass.agents", "batonpass.aio", "batonpass.handoff.runtime.desk"})
RELAY = frozenset({"batonpass.relay", "batonpass.ledger.act_receipts", "nacl"})


def loaded_by(*words: str, directory: Path) -> frozenset[str]:
    """Return which modules a Python program has loaded when it ends well."""
    program = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        "sys.argv[1:], program = json.loads(sys.argv[2]), sys.argv[1]\n"
        "exec(program)\n"
    )
    first, *rest = words
    command = [sys.executable, "-c", program, first, json.dumps(rest)]
    done = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)
    return frozenset(json.loads(done.stderr.splitlines()[-1]))


COMMAND = "from batonpass.cli.main import main; main()"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a directory with a ledger that holds one handoff."""
    with Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db") as relay:
        lead = relay.start("Fix invoice rounding", by="user:ana")
        with lead.hand_off("editor", "Round half-even"):
            pass
        lead.close()
    return tmp_path


def test_the_package_alone_loads_nothing(tmp_path: Path) -> None:
    """Its names are loaded when they are first used."""
    loaded = loaded_by("import batonpass", directory=tmp_path)

    assert {"batonpass"} == {name for name in loaded if name.partition(".")[0] == "batonpass"}


def test_a_relay_loads_no_act_before_it_is_done(tmp_path: Path) -> None:
    """A program that opens a ledger pays for the use cases with the first of them."""
    loaded = loaded_by("from batonpass import Relay", directory=tmp_path)

    assert frozenset() == loaded & (
        FOREIGN | ACTING | {"click", "batonpass.handoff.live.faces", "batonpass.ledger.act_receipts"}
    )
    assert frozenset() == loaded & (HEAVY | STORES | SIGNING)
    assert frozenset() == loaded & {"batonpass.guard", "batonpass.model.grants.scope", "batonpass.policy.document"}


def test_the_version_is_said_before_options_are_parsed(tmp_path: Path) -> None:
    """Nothing of the command line is loaded for it."""
    loaded = loaded_by(COMMAND, "--version", directory=tmp_path)

    assert {"batonpass", "batonpass.cli", "batonpass.cli.main"} == {name for name in loaded if "batonpass" in name}
    assert "click" not in loaded


@pytest.mark.parametrize(
    "words",
    [
        ("run", "list"),
        ("run", "show", "last"),
        ("handoff", "list"),
        ("handoff", "show", "last"),
        ("receipt", "grep", "."),
        ("trail", "last"),
    ],
    ids=" ".join,
)
def test_a_command_that_reads_loads_no_relay(project: Path, words: tuple[str, ...]) -> None:
    """It opens a store, and takes no keys."""
    loaded = loaded_by(COMMAND, *words, directory=project)

    assert frozenset() == loaded & (FOREIGN | ACTING | RELAY)
    assert frozenset() == loaded & (HEAVY | {"batonpass.policy.document", "batonpass.store.memory"})


def test_a_small_ledger_is_verified_without_processes(project: Path) -> None:
    """Helpers, and all that git is asked with, are loaded by whoever needs them."""
    loaded = loaded_by(COMMAND, "ledger", "verify", directory=project)

    assert frozenset() == loaded & (FOREIGN | ACTING | {"concurrent", "logging", "multiprocessing", "subprocess"})
    assert frozenset() == loaded & {"batonpass.attribution.git.file_git", "batonpass.audit.verification.signature_pool"}


def test_a_proxy_loads_what_acts_with_the_first_call(tmp_path: Path) -> None:
    """A client starts all of its servers, and calls few of them."""
    loaded = loaded_by("import batonpass.cli.mcp_proxy", directory=tmp_path)

    acting = {"batonpass.relay", "batonpass.handoff.runtime.desk", "batonpass.handoff.calls.begin"}
    assert frozenset() == loaded & (FOREIGN | STORES | acting)


@pytest.mark.parametrize("words", [("run", "list"), ("trail", "last"), ("why", "last")], ids=" ".join)
def test_no_dataclass_is_made_for_a_command(project: Path, words: tuple[str, ...]) -> None:
    """Each takes as long to define as twenty structs: its methods are compiled from text, at every start."""
    watching = (
        "import atexit, dataclasses, sys\n"
        "made, make = [], dataclasses._process_class\n"
        "dataclasses._process_class = lambda kind, *given: made.append(kind.__qualname__) or make(kind, *given)\n"
        "atexit.register(lambda: print(made, file=sys.stderr))\n"
    )
    command = [sys.executable, "-c", f"{watching}{COMMAND}", *words]
    done = subprocess.run(command, cwd=project, check=False, capture_output=True, text=True)

    assert "[]" == done.stderr.splitlines()[-1]


def test_help_opens_no_store(tmp_path: Path) -> None:
    """Whoever asks what there is, asks no database."""
    loaded = loaded_by(COMMAND, "--help", directory=tmp_path)

    assert frozenset() == loaded & (FOREIGN | ACTING | RELAY | {"apsw", "msgspec", "batonpass.cli.run"})


def test_no_attribute_opens_a_ledger(tmp_path: Path) -> None:
    """Whoever looks through what the packages offer, as an editor does, leaves no file behind and loads no database."""
    looking = (
        "import importlib, sys\n"
        "for name in ('batonpass', 'batonpass.aio', 'batonpass.agents'):\n"
        "    module = importlib.import_module(name)\n"
        "    for part in {*dir(module), *module.__all__}: getattr(module, part)\n"
        "print(sorted({'batonpass.store.sqlite.store', 'batonpass.store.postgres.store'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", looking], cwd=tmp_path, check=True, capture_output=True, text=True)

    assert ("[]", []) == (done.stdout.strip(), [*tmp_path.iterdir()])
