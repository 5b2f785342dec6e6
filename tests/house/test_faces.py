"""The asynchronous face of everything has the same names and parameters as the synchronous one."""

import inspect
from typing import Any, Final

import pytest

from batonpass import aio
from batonpass.admin import Admin
from batonpass.aio import AsyncCall, AsyncHandoff, AsyncRelay, AsyncRun
from batonpass.aio.relay import AsyncAdmin
from batonpass.client import RemoteRelay
from batonpass.client.remote_call import RemoteCallHeld
from batonpass.client.remote_handoff import RemoteHandoff
from batonpass.client.remote_run import RemoteRun
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.live.held_call import LiveCall
from batonpass.relay import Relay
from tests.house.tree import document

PAIRS: Final = [
    pytest.param(Relay, AsyncRelay, id="relay"),
    pytest.param(Admin, AsyncAdmin, id="admin"),
    pytest.param(LiveRun, AsyncRun, id="run"),
    pytest.param(LiveHandoff, AsyncHandoff, id="handoff"),
    pytest.param(LiveCall, AsyncCall, id="held call"),
]

# Not for those who use a relay, but for what lies below both faces.
BELOW: Final = frozenset({"sync"})


def public(face: type[Any]) -> dict[str, Any]:
    """Return what a class offers, as it stands in the class."""
    return {
        name: inspect.getattr_static(face, name) for name in dir(face) if not name.startswith("_") and name not in BELOW
    }


def parameters(member: Any) -> list[tuple[str, Any, Any]] | None:  # noqa: ANN401 - a method or a property
    """Return what a method takes: names, kinds and defaults; None for a property."""
    if isinstance(member, property):
        return None
    function = getattr(member, "__func__", member)
    _, *taken = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.kind, parameter.default) for parameter in taken]


@pytest.mark.parametrize(("sync", "other"), PAIRS)
def test_both_faces_have_the_same_names(sync: type[Any], other: type[Any]) -> None:
    """Same act, same name: whoever knows one face knows the other."""
    assert sorted(public(sync)) == sorted(public(other))


@pytest.mark.parametrize(("sync", "other"), PAIRS)
def test_both_faces_take_the_same(sync: type[Any], other: type[Any]) -> None:
    """Each method takes the same parameters, of the same kind, with the same defaults."""
    theirs = {name: parameters(member) for name, member in public(other).items()}

    assert {name: parameters(member) for name, member in public(sync).items()} == theirs


# A program that moves to a server changes only how it opens its relay.
MOVED: Final = [
    pytest.param(Relay, RemoteRelay, id="relay"),
    pytest.param(LiveRun, RemoteRun, id="run"),
    pytest.param(LiveHandoff, RemoteHandoff, id="handoff"),
    pytest.param(LiveCall, RemoteCallHeld, id="held call"),
]


@pytest.mark.parametrize(("here", "there"), MOVED)
def test_where_the_ledger_is_elsewhere_everything_takes_the_same(here: type[Any], there: type[Any]) -> None:
    """Through a control plane, each method has the same parameters, of the same kind, with the same defaults."""
    theirs = public(there)

    assert {name: parameters(member) for name, member in public(here).items()} == {
        name: parameters(theirs[name]) for name in public(here)
    }


# Those that open something may be awaited or entered; the others touch no ledger.
OPENING: Final = {
    AsyncRelay: {"open", "start", "resume", "resume_session", "handoff", "held_call"},
    AsyncRun: {"hand_off", "handoff"},
    AsyncHandoff: {"accept"},
}
AT_ONCE: Final = {
    AsyncRelay: {"register", "introduce", "agent", "check", "credential"},
    AsyncRun: {"report", "note_message", "is_limited", "as_current"},
}


@pytest.mark.parametrize("face", [other for _, other in [pair.values for pair in PAIRS]])
def test_one_rule_says_what_is_awaited(face: type[Any]) -> None:
    """Every method is, except those that open something or touch no ledger; no property is."""
    methods = [name for name, member in public(face).items() if not isinstance(member, property)]
    plain = {name for name in methods if not inspect.iscoroutinefunction(getattr(face, name))}

    assert OPENING.get(face, set()) | AT_ONCE.get(face, set()) == plain


@pytest.mark.parametrize("text", [aio.__doc__, document("guide/handoffs.md")], ids=["docstring", "guide"])
def test_the_rule_is_written_down(text: str) -> None:
    """Whoever reads the package or the guide finds each method that is called without `await`."""
    assert [] == [name for names in AT_ONCE.values() for name in sorted(names) if f"`{name}`" not in text]


# Words of the inside, and words that tell a newcomer nothing.
NOT_PUBLIC: Final = {"desk", "recording", "holding", "give", "given", "said", "say", "look", "counts", "take_in"}


@pytest.mark.parametrize(("sync", "other"), PAIRS)
def test_public_names_are_words_of_the_domain(sync: type[Any], other: type[Any]) -> None:
    """Nothing that lies below the faces can be reached through them, and no name has to be explained."""
    assert set() == NOT_PUBLIC & (public(sync).keys() | public(other).keys())


@pytest.mark.parametrize("face", [one for pair in PAIRS for one in pair.values])
def test_parameters_have_names_too(face: type[Any]) -> None:
    """What is passed by name says what it is."""
    named = {name: {taken for taken, _, _ in parameters(member) or ()} for name, member in public(face).items()}

    assert {} == {name: found for name, taken in named.items() if (found := taken & (NOT_PUBLIC | {"what"}))}


@pytest.mark.parametrize("face", [other for _, other in [pair.values for pair in PAIRS]])
def test_no_property_is_awaited(face: type[Any]) -> None:
    """A property is there at once: nothing that has to be awaited hides behind one."""
    kept = {name: one.fget for name, one in public(face).items() if isinstance(one, property) and one.fget}
    told = {name: str(inspect.signature(getter).return_annotation) for name, getter in kept.items()}
    words = ("Awaitable", "Coroutine", "Opening", "Future")

    assert [] == [name for name, getter in kept.items() if inspect.iscoroutinefunction(getter)]
    assert {} == {name: kind for name, kind in told.items() if any(word in kind for word in words)}


def test_a_difference_is_seen() -> None:
    """Another default, another kind or another name is another signature."""

    class One:
        def act(self, first: int, *, second: int = 1) -> None: ...

    class Other:
        async def act(self, first: int, *, second: int = 2) -> None: ...

    class Third:
        async def act(self, first: int, second: int = 1) -> None: ...

    assert 3 == len({str(parameters(face.act)) for face in (One, Other, Third)})
