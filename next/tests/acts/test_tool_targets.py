"""What a call is judged by is what its tool works with, however it is called, wrapped or spelled."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial, update_wrapper, wraps
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from batonpass import aio, tool
from batonpass.errors import BatonpassError, CallDeniedError, CallError, InvalidValueError
from batonpass.frameworks import Recording, recorded_tool
from batonpass.testing import a_relay, a_run, observe

SECRET = "secret/key"


@tool(target="path")
def write(path: str, text: str = "") -> str:
    """Write a file."""
    return path + text


def by_position(path: str, /, **options: str) -> str:
    return path + "".join(options)


@wraps(write)
def passing(*args: Any, **kwargs: Any) -> str:  # noqa: ANN401 - it passes on what it is given
    return write(*args, **kwargs)


@wraps(write)
def with_more(stage: str, *args: Any) -> str:  # noqa: ANN401 - as above
    return stage + write(*args)


class Desk:
    """A tool as a method."""

    @tool(target="path")
    def write(self, path: str, /, **options: str) -> str:
        """Write a file."""
        return path + "".join(options)


@tool(target="path")
class Declared:
    """A class that is declared: making one is the call, and calling one is another."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, text: str, path: str) -> str:
        """Do another thing than what was declared."""
        return path + text


Calls = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


@pytest.mark.parametrize(
    ("call", "permission"),
    [
        pytest.param((by_position, (SECRET,), {"path": "ok"}), f"write:{SECRET}", id="a name that is another's too"),
        pytest.param((tool(target="path")(by_position), (SECRET,), {"path": "ok"}), f"write:{SECRET}", id="declared"),
        pytest.param((Desk().write, (SECRET,), {"path": "ok"}), f"write:{SECRET}", id="a method"),
        pytest.param((passing, (SECRET,), {}), f"write:{SECRET}", id="a wrapper that passes on"),
        pytest.param((passing, (), {"path": SECRET}), f"write:{SECRET}", id="a wrapper that passes on by name"),
        pytest.param((with_more, ("ok", SECRET), {}), "call:write", id="a wrapper with an argument of its own"),
        pytest.param((partial(write, SECRET), (), {"text": "x"}), "call:partial", id="a target given before"),
        pytest.param(
            (update_wrapper(partial(write, SECRET), write), ("ok",), {}), "call:write", id="a partial like a wrapper"
        ),
        pytest.param((update_wrapper(partial(passing, SECRET), write), ("ok",), {}), "call:write", id="both"),
        pytest.param((Declared("a"), ("x",), {"path": SECRET}), f"write:{SECRET}", id="an object of a declared class"),
    ],
)
def test_target_that_is_judged_is_the_one_that_is_used(call: Calls, permission: str) -> None:
    """A grant of what the call only seems to be about does not let it through."""
    function, args, kwargs = call
    with a_relay() as relay:
        with pytest.raises(CallDeniedError, match=f"tried {permission}"):
            a_run(relay, may=["write:ok", "write:a"]).call(function, *args, **kwargs)
        assert SECRET in a_run(relay, may=[permission]).call(function, *args, **kwargs)


@pytest.mark.parametrize("declare", [tool(target="path"), recorded_tool(target="path")], ids=["tool", "recorded_tool"])
@pytest.mark.parametrize("function", [lambda *path: path, lambda **path: path], ids=["*path", "**path"])
def test_many_arguments_are_no_target(declare: Callable[..., Any], function: Callable[..., Any]) -> None:
    """A declaration that names them is refused."""
    with pytest.raises(InvalidValueError, match="no parameter 'path'"):
        declare(function)


class Disguised(str):
    """A text that says another thing than it is."""

    __slots__ = ()

    def __str__(self) -> str:
        return "ok"


class DisguisedPath(type(Path())):  # type: ignore[misc]
    """A path that says another thing than it is."""

    def __fspath__(self) -> str:
        return "ok"

    __str__ = __fspath__


def keep(made: list[object], path: object) -> None:
    made.append(path)


def str_of(path: object) -> str:
    return str(path)


@pytest.mark.parametrize("make", [Disguised, DisguisedPath, lambda path: [path], float], ids=lambda make: make.__name__)
def test_target_with_two_meanings_is_refused(make: Callable[[Any], Any]) -> None:
    """What is no text, path or whole number by its very type is not judged; an observed program goes on."""
    made: list[object] = []
    value = make(SECRET if make is not float else "1.5")
    with a_relay() as relay:
        note = recorded_tool(Recording(relay), target="path")(partial(keep, made))
        with a_run(relay, may=["write:**"]), pytest.raises(InvalidValueError) as refused:
            note(value)
        was_made = list(made)
        with a_run(relay):
            note(value)
        target = observe(relay).last("tool.requested").text("target")

    assert ("value.invalid", [], [value]) == (refused.value.code, was_made, made)
    assert {list: f"['{SECRET}']", float: "1.5"}.get(type(value), "partial") == target


@pytest.mark.parametrize(
    ("value", "target"),
    [(Path("a/b"), "a/b"), (PurePosixPath("a/b"), "a/b"), ("a/b", "a/b"), (7, "7"), (True, "True"), (None, "None")],
    ids=repr,
)
def test_plain_values_are_targets(value: object, target: str) -> None:
    """A text, a path, and what is printed in one way only."""
    with a_relay() as relay:
        note = recorded_tool(Recording(relay), target="path")(str_of)
        with a_run(relay, may=[f"write:{target}"]):
            assert str(value) == note(value)


def in_steps(text: str) -> Iterator[str]:
    yield text


async def in_awaited_steps(text: str) -> AsyncIterator[str]:
    yield text


def hidden_steps(text: str) -> Iterator[str]:
    return (letter for letter in text)


@pytest.mark.parametrize("may", [None, ["call:**"]], ids=["observed", "enforced"])
@pytest.mark.parametrize("function", [in_steps, in_awaited_steps, hidden_steps], ids=lambda each: str(each.__name__))
@pytest.mark.parametrize("face", ["run", "awaited run", "recorded_tool"])
def test_tool_that_works_after_its_call_is_refused(may: list[str] | None, function: Any, face: str) -> None:  # noqa: ANN401 - a tool
    """A generator would begin when its call is already recorded as completed."""
    with a_relay() as relay:
        run = a_run(relay, may=may)

        async def call_awaited() -> None:
            await (await aio.of(relay).run(run.id)).call(function, "abc")

        faces: dict[str, Callable[[], object]] = {
            "run": lambda: run.call(function, "abc"),
            "awaited run": lambda: asyncio.run(call_awaited()),
            "recorded_tool": lambda: recorded_tool(Recording(relay))(function)("abc"),
        }
        with run.as_current(), pytest.raises(CallError, match="works in steps") as refused:
            faces[face]()

        assert "call.guard_failed" == refused.value.code
        assert ["tool.requested", "tool.failed"] == observe(relay).kinds()[-2:]


def test_coroutine_of_a_function_is_refused_by_a_recorded_tool() -> None:
    """It would be awaited after its call, and nobody sees by the function that it is one."""

    async def wait() -> None: ...

    def hidden() -> object:
        return wait()

    with a_relay() as relay, a_run(relay), pytest.raises(BatonpassError, match="has to be awaited"):
        recorded_tool(Recording(relay))(hidden)()
