"""What `import batonpass` offers."""

import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any, Final

import pytest

from batonpass.admin import Admin
from batonpass.handoff.live.held_call import LiveCall
from tests.house.tree import module

PACKAGES: Final = ("batonpass", "batonpass.aio", "batonpass.agents")
AT_MOST = 32
MOST = 12

# One says what a function is, beside the function itself; each parameter is a fact of its own, and most need none.
DECLARES = {("tool", "")}


def place_of(name: str) -> tuple[bool, bool, str]:
    """Return where a name belongs in `__all__`: constants, then classes, then the rest, each by the alphabet."""
    return (not name.isupper(), not name[0].isupper(), name)


def test_exports_are_sorted_and_unique() -> None:
    """`__all__` lists every name once: constants, classes, functions, each by the alphabet."""
    exported = list(module("batonpass").__all__)

    assert sorted(set(exported), key=place_of) == exported


def test_exports_are_few() -> None:
    """A newcomer can read the whole list of public names."""
    exported = module("batonpass").__all__

    assert 0 < len(exported) <= AT_MOST


def test_every_export_exists() -> None:
    """Each name in `__all__` can be imported, also those that are loaded on first use."""
    batonpass = module("batonpass")

    assert [] == [name for name in batonpass.__all__ if not hasattr(batonpass, name)]


def parameters_of(face: Any) -> dict[str, int]:  # noqa: ANN401 - a class or a function
    """Return how many parameters each public function of something takes; what a value is made of is not counted."""
    if not inspect.isclass(face):
        return {"": len(inspect.signature(face).parameters)} if inspect.isfunction(face) else {}
    methods = {name: member for name, member in inspect.getmembers(face, inspect.isroutine) if name[0] != "_"}
    if not is_dataclass(face) and inspect.isfunction(face.__init__):
        methods["__init__"] = face.__init__
    own = {name: member for name, member in methods.items() if inspect.isfunction(inspect.unwrap(member))}
    return {name: len(inspect.signature(member).parameters) - 1 for name, member in own.items()}


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_public_takes_more_than_twelve(package: str) -> None:
    """Whoever reads a signature can keep it in mind; what belongs together is one value, such as `Brief`."""
    faces = {name: getattr(module(package), name) for name in module(package).__all__}
    if package == "batonpass":
        faces |= {"LiveCall": LiveCall}
    counted = {(name, part): number for name, face in faces.items() for part, number in parameters_of(face).items()}

    assert {} == {name: number for name, number in counted.items() if number > MOST and name not in DECLARES}


def public_parameters() -> Iterator[tuple[str, inspect.Parameter]]:
    """Yield each parameter of what the packages offer, with the place where a caller writes it."""
    faces = {name: getattr(module(package), name) for package in PACKAGES for name in module(package).__all__}
    for name, face in (faces | {"Admin": Admin, "LiveCall": LiveCall}).items():
        members = {part: getattr(face, part) for part in dir(face) if part[0] != "_"} if inspect.isclass(face) else {}
        for part, member in ({"": face} | members).items():
            if callable(member) and str(getattr(member, "__module__", None)).startswith("batonpass."):
                with suppress(ValueError):  # an enum, whose members nobody makes
                    for parameter in inspect.signature(member).parameters.values():
                        yield f"{name}{part and '.'}{part}({parameter.name})", parameter


def test_a_duration_is_written_as_people_write_it() -> None:
    """Wherever a `timedelta` is taken, a text such as "10m" is taken too."""
    found = {place: str(one.annotation) for place, one in public_parameters()}
    lasting = {place: annotation for place, annotation in found.items() if "timedelta" in annotation}

    assert {"Run.shell(timeout)", "tool(cache_for)", "Worker(lease_for)"} <= lasting.keys()
    assert {} == {place: annotation for place, annotation in lasting.items() if "str" not in annotation}


def test_a_path_is_a_path_or_a_text() -> None:
    """Nobody has to import `Path` in order to name a file or a directory."""
    found = {place: str(one.annotation) for place, one in public_parameters()}
    named = {place: annotation for place, annotation in found.items() if re.search(r"\bPath(Like)?\b", annotation)}

    assert {"Relay.open(home)", "Relay.open(work_tree)", "Handoff.verify(cwd)"} <= named.keys()
    assert {} == {place: annotation for place, annotation in named.items() if "str" not in annotation}


def test_a_parameter_says_what_it_is() -> None:
    """One word for one thing, in native agents as elsewhere: `limit` for how many, `source` or `tool` for which."""
    called = {place: one.name for place, one in public_parameters() if "." in place or place[0].islower()}

    assert {} == {place: name for place, name in called.items() if name in {"what", "most", "given", "said", "thing"}}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_offered_prints_as_something(package: str) -> None:
    """Whoever prints an object learns more of it than where it is in memory."""
    faces = {name: getattr(module(package), name) for name in module(package).__all__}
    mute = [
        name
        for name, face in faces.items()
        if inspect.isclass(face) and face.__repr__ is object.__repr__ and not getattr(face, "_is_protocol", False)
    ]

    assert [] == mute


def test_nothing_public_is_missing_from_the_exports() -> None:
    """A name that `batonpass` defines or imports is public on purpose, or begins with an underscore."""
    batonpass = module("batonpass")
    public = {
        name for name, value in vars(batonpass).items() if not name.startswith("_") and not inspect.ismodule(value)
    }

    assert set() == public - set(batonpass.__all__)
