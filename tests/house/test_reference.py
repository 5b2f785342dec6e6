"""Every command and every setting is in the reference."""

import ast
import re
from collections.abc import Iterator

import click

from tests.house.tree import PACKAGE, document, module, nodes, parsed

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
SETTING = re.compile(r"BATONPASS_[A-Z0-9_]+")


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands that do something, with the words that a person types to reach them."""
    if command.hidden:
        return
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, f"{path} {name}")
    else:
        yield path, command


def our_commands() -> dict[str, click.Command]:
    """Return every command that `--help` leads to."""
    found = dict(commands(module("batonpass.cli.nouns").cli, "batonpass"))
    assert found
    return found


def test_every_command_is_documented() -> None:
    """docs/reference/cli.md has each command, as a heading or as code."""
    paths = list(our_commands())
    text = document("reference/cli.md")

    assert [] == [path for path in paths if not re.search(rf"(^#+ |`){path}\b", text, re.MULTILINE)]


def test_no_line_of_a_list_of_commands_is_cut_off() -> None:
    """The help of a group lists each command with a whole sentence, in a terminal of 80 columns."""
    groups: dict[str, dict[str, click.Command]] = {}
    for path, command in our_commands().items():
        groups.setdefault(path.rpartition(" ")[0], {})[path.rpartition(" ")[2]] = command
    del groups["batonpass"]  # has lines of its own, so that no command is loaded to list them
    cut = {
        f"{group} {name}": line
        for group, listed in groups.items()
        for name, command in listed.items()
        if (line := command.get_short_help_str(78 - 6 - max(map(len, listed)))).endswith("...")  # as click counts
    }

    assert {} == cut


def test_every_option_is_documented() -> None:
    """docs/reference/cli.md names each option that a command takes."""
    taken = {
        option
        for command in our_commands().values()
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }

    assert set() == taken - set(OPTION.findall(document("reference/cli.md")))


def test_no_documented_command_is_gone() -> None:
    """A heading that names a command names one that exists, or a group of them."""
    known = {" ".join(words[:count]) for words in map(str.split, our_commands()) for count in range(1, len(words) + 1)}
    headings = re.findall(r"^#+ `?(batonpass(?: [a-z][a-z-]*)*)`?$", document("reference/cli.md"), re.MULTILINE)

    assert set() == set(headings) - known


def test_every_setting_is_documented() -> None:
    """docs/reference/settings.md has each environment variable that we read, and none that we do not."""
    read = {
        node.value
        for _, tree in parsed(PACKAGE)
        for node in nodes(tree, ast.Constant)
        if isinstance(node.value, str) and SETTING.fullmatch(node.value)
    }
    documented = set(SETTING.findall(document("reference/settings.md"))) if read else set()

    assert read == documented
