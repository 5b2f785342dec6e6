"""Tools: functions that a run calls, and what is declared about them."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from batonpass.errors import InvalidValueError
from batonpass.handoff.tools.declaration import Declared, declared_of, name_of, tool
from batonpass.handoff.tools.tool_call import ToolCall
from tests.unit.handoff.places import LONE_SURROGATE


def write(path: str, text: str = "empty") -> int:
    """Write a file, one would think."""
    return len(path + text)


class Disk:
    """Something with a method that is a tool."""

    @tool("disk.write", target="path")
    def write(self, path: str) -> str:
        """Return what was to be written."""
        return path


class Callable:
    """Something that can be called and has no name of its own."""

    def __call__(self, value: int) -> int:
        """Return the value."""
        return value


def call(function: Any, *args: object, **kwargs: object) -> ToolCall[Any]:  # noqa: ANN401 - any function
    return ToolCall(declared_of(function), function, args, kwargs)


def test_nothing_good_is_assumed_of_a_tool() -> None:
    """A function that nobody declared may not be repeated, nor undone, and may change anything."""
    assert Declared(name="write") == declared_of(write)


def test_a_bare_declaration_takes_the_name_of_the_function() -> None:
    """`@tool` alone and `@tool()` declare under the function's own name."""

    @tool
    def one() -> None: ...

    @tool()
    def two() -> None: ...

    assert ["one", "two"] == [declared_of(one).name, declared_of(two).name]


def test_what_is_declared_is_kept_with_the_function() -> None:
    """The declaration says what a call changes, and how it may be treated."""

    @tool("fs.write", target="path", idempotent=True, reversible=True)
    def declared(path: str) -> None: ...

    found = declared_of(declared)

    assert ("fs.write", True, True, False) == (found.name, found.idempotent, found.reversible, found.reads)
    assert "a.txt" == call(declared, "a.txt").target


def test_a_method_keeps_its_declaration() -> None:
    """A bound method is the tool that its function was declared as."""
    assert ("disk.write", "a") == (declared_of(Disk().write).name, call(Disk().write, "a").target)


@pytest.mark.parametrize(
    ("declared", "args", "expected"),
    [
        pytest.param(tool("a", target="path"), ("x.py", ""), "write:x.py", id="what is changed is written"),
        pytest.param(tool("b", target="path", reads=True), ("x.py", ""), "read:x.py", id="what is not is read"),
        pytest.param(tool("c", target="path", action="send"), ("x.py", ""), "send:x.py", id="an action has its name"),
        pytest.param(tool("d"), ("x.py", ""), "write:x.py", id="an argument called path is what it acts on"),
        pytest.param(tool("e", target=lambda _: None), ("x.py", ""), "call:e", id="what names nothing is called"),
    ],
)
def test_a_call_does_something_to_something(declared: Any, args: tuple[str, ...], expected: str) -> None:  # noqa: ANN401 - a decorator
    """A grant sees an action and a resource, and by default nothing good is assumed of a tool."""
    function = declared(lambda path, text: (path, text))
    call: ToolCall[Any] = ToolCall(declared_of(function), function, args)

    assert expected == f"{call.action}:{call.resource}"


@pytest.mark.parametrize("name", ["", " ", "a b", "ä", "x" * 129, "\x1b[0m", "a\0", "\u202ea"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    """A declared name stands in signed bytes: it is an id, and no text."""
    with pytest.raises(InvalidValueError):
        Declared(name=name)


@pytest.mark.parametrize("builtin", [print, len, str.upper])
def test_what_cannot_be_declared_says_so(builtin: Any) -> None:  # noqa: ANN401 - any function
    """A built-in function holds no declaration; it has to be wrapped."""
    with pytest.raises(InvalidValueError, match="wrap it"):
        tool("builtin")(builtin)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (write, "write"),
        (lambda: None, "lambda"),
        (partial(write, "a"), "write"),
        (partial(partial(write, "a"), "b"), "write"),
        (Disk().write, "write"),
        (Callable(), "Callable"),
        (print, "print"),
        (str.upper, "upper"),
        (int, "int"),
    ],
    ids=["a function", "a lambda", "a partial", "a partial of one", "a method", "an object", "builtin", "slot", "type"],
)
def test_functions_are_recorded_under_their_names(function: Any, expected: str) -> None:  # noqa: ANN401 - any function
    """Whatever can be called has a name that can stand in a receipt."""
    assert expected == name_of(function)


@pytest.mark.parametrize("name", ["größe", "書く", "x" * 300, "\x1b[2J", LONE_SURROGATE, "a b", "", "...", "\0"])
def test_any_name_becomes_one_that_can_be_recorded(name: str) -> None:
    """A function may be called anything; two that look alike afterwards are still told apart."""

    def function() -> None: ...

    function.__name__ = name

    assert declared_of(function).name == name_of(function)
    function.__name__ = name + "é"
    other = name_of(function)
    function.__name__ = name + "è"
    assert other != name_of(function)


def test_arguments_are_named_as_the_function_names_them() -> None:
    """By position or by name, with defaults or without, it is the same call."""
    expected = {"path": "a", "text": "empty"}

    assert [expected] * 3 == [
        call(write, "a").arguments,
        call(write, path="a").arguments,
        call(write, "a", "empty").arguments,
    ]


def test_what_a_partial_holds_is_among_the_arguments() -> None:
    """Two partial functions that hold different arguments are different calls."""
    first, second = call(partial(write, "a"), "x"), call(partial(write, path="b"), text="x")

    assert [{"path": "a", "text": "x"}, {"path": "b", "text": "x"}] == [first.arguments, second.arguments]


def test_arguments_that_do_not_fit_are_described_as_they_are() -> None:
    """That a call cannot be made is for the call to say."""
    assert {"args": ["a", "b", "c"], "more": 1} == call(write, "a", "b", "c", more=1).arguments


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (lambda arguments: arguments["path"], "a"),
        (lambda _: None, None),
        (lambda _: Path("p") / "q", "p/q"),
        (lambda _: 5, "5"),
        (lambda _: LONE_SURROGATE, "half \\ud83d a character"),
    ],
    ids=["a text", "nothing", "a path", "a number", "half a character"],
)
def test_a_target_is_text_whatever_names_it(target: Any, expected: str | None) -> None:  # noqa: ANN401 - any function
    """A function of the arguments says what a call changes."""
    declared = Declared(name="write", target=target)

    assert expected == ToolCall(declared, write, ("a",)).target


def test_a_target_that_was_not_given_is_none() -> None:
    """An argument that is not there names nothing."""
    declared = Declared(name="write", target=lambda arguments: arguments.get("missing"))

    assert None is ToolCall(declared, write, ("a",)).target
