"""Each error has a part of its own in the reference: what happened, what to do, its class and its exit code."""

import re
from typing import Final

from batonpass.cli.output.exits import exit_code
from batonpass.errors import BatonpassError
from tests.house.test_errors import codes
from tests.house.tree import document

PART: Final = re.compile(
    r'<a id="(?P<anchor>[^"]+)"></a>\n\n### `(?P<code>[^`]+)`\n\n'
    r"\*\*What happened\.\*\* (?P<happened>[^*]+)\n\n"
    r"\*\*What to do\.\*\* (?P<todo>[^*]+)\n\n"
    r"`(?P<name>\w+)`, exit code (?P<exit>\d)\.\n"
)
FAMILIES: Final = {"batonpass.error", "verify.failed"}  # never raised by themselves


def parts() -> dict[str, re.Match[str]]:
    """Return the parts of the page by their code."""
    return {part["code"]: part for part in PART.finditer(document("reference/errors.md"))}


def test_every_error_says_what_happened_and_what_to_do() -> None:
    """No code is left out, none is invented, and each has all of its sentences."""
    assert sorted(set(codes().values()) - FAMILIES) == sorted(parts())


def test_every_heading_is_such_a_part() -> None:
    """A part that lost one of its sentences is not overlooked."""
    headings = re.findall(r"^### `(.+)`$", document("reference/errors.md"), re.MULTILINE)

    assert headings == list(parts())


def test_an_error_is_found_by_its_code() -> None:
    """The anchor of a part is the code, so that a program can lead somebody to it."""
    assert [] == [code for code, part in parts().items() if part["anchor"] != code]


def test_class_and_exit_code_are_as_the_page_says() -> None:
    """What a program catches and what a shell sees are as they are documented."""

    def told(error: type[Exception]) -> tuple[str, str]:
        made = error.__new__(error)
        assert isinstance(made, BatonpassError)
        return error.__name__, str(exit_code(made))

    expected = {code: told(error) for error, code in codes().items() if code not in FAMILIES}

    assert expected == {code: (part["name"], part["exit"]) for code, part in parts().items()}
