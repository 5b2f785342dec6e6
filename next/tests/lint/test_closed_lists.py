"""The lists of closed.toml say what the code has: a list that grows does so in a diff that a reviewer sees."""

import importlib
import pkgutil
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_type_hints

import click
import pytest

import batonpass.api
from batonpass.api.acts import ACTS
from batonpass.cli.main import NOUNS, commands
from batonpass.errors import error_classes
from batonpass.model.bodies import KINDS

ROOT = Path(__file__).parents[2]
CLOSED = tomllib.loads((ROOT / "closed.toml").read_text(encoding="utf-8"))
WORDS = (ROOT / "docs" / "reference" / "words.md").read_text(encoding="utf-8")


def kinds_in_code() -> list[str]:
    """Return each kind, with its subjects where its body has some."""
    names: list[str] = []
    for kind, body in KINDS.items():
        subjects = get_args(get_type_hints(body).get("subject"))
        names += [f"{kind}.{subject}" for subject in subjects] or [kind]
    return names


def acts_in_code() -> list[str]:
    """Return the acts of the table, with every module of acts loaded."""
    for module in pkgutil.iter_modules(batonpass.api.__path__, "batonpass.api."):
        importlib.import_module(module.name)
    return list(ACTS)


def settings_in_code() -> list[str]:
    """Return the environment variables that the source names."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    return sorted(set(re.findall(r"\bBATONPASS_[A-Z_]+", text)))


def error_codes_in_code() -> list[str]:
    """Return the codes of all classes of errors."""
    return list(error_classes())


def commands_in_code() -> list[str]:
    """Return each noun that is a command, and each verb of the others, with every noun loaded."""
    context = click.Context(commands)
    found: list[str] = []
    for noun in NOUNS:
        command = commands.get_command(context, noun)
        found += [f"{noun} {verb}" for verb in command.commands] if isinstance(command, click.Group) else [noun]
    return found


@pytest.mark.parametrize(
    ("section", "in_code"),
    [
        pytest.param("kinds", kinds_in_code, id="receipt kinds"),
        pytest.param("acts", acts_in_code, id="acts"),
        pytest.param("settings", settings_in_code, id="settings"),
        pytest.param("error_codes", error_codes_in_code, id="error codes"),
        pytest.param("commands", commands_in_code, id="commands"),
    ],
)
def test_the_code_has_what_is_listed(section: str, in_code: Callable[[], list[str]]) -> None:
    """A list in closed.toml is sorted and equal to the list in the code."""
    assert CLOSED[section]["names"] == sorted(in_code())


def normalised(requirement: str) -> str:
    """Return the project that a requirement names, as PyPI spells it."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def test_dependencies_are_listed() -> None:
    """The core and each extra depend on what closed.toml lists, and on nothing else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {"core": project["dependencies"], **project["optional-dependencies"]}

    assert CLOSED["dependencies"] == {name: sorted(map(normalised, rows)) for name, rows in declared.items()}


def kinds_in_words() -> set[str]:
    """Return each receipt kind of section 1 of the vocabulary, with its subject where it has one."""
    section = WORDS.partition("## 1. ")[2].partition("## 2. ")[0]
    kinds: set[str] = set()
    for cell in re.findall(r"^\|([a-z]+\.[^|]*)\|", section, flags=re.MULTILINE):
        names, braces, subjects = cell.partition("{")
        noun = names.split(".")[0]
        full = [noun + name if name.startswith(".") else name for name in names.rstrip(". ").split()]
        suffixes = [f".{subject}" for subject in subjects.rstrip("}").split(", ")] if braces else [""]
        kinds |= {name + suffix for name in full for suffix in suffixes}
    return kinds


def test_receipt_kinds_are_words_of_the_vocabulary() -> None:
    """The code writes no kind that the vocabulary does not define."""
    assert set() == set(CLOSED["kinds"]["names"]) - kinds_in_words()
