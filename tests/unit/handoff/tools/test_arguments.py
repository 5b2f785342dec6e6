"""Arguments: a tool gets what was judged, and what may change afterwards is held to nothing."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.aio import AsyncRelay
from batonpass.errors import ConstraintViolatedError, GrantDeniedError, GuardFailedError, InvalidValueError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.arguments import DEEPEST, copy_arguments, veiled
from batonpass.handoff.tools.declaration import declared_of, tool
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.baton.items import Constraint
from batonpass.model.bodies.body import Kind
from batonpass.model.grants.call import Opaque
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, bodies, denials, nested, receipts, words


class Name(str):
    """A text that says something else of itself than it holds."""

    __slots__ = ()

    def __str__(self) -> str:
        return "src/harmless"

    __repr__ = __str__

    def encode(self, *_: object) -> bytes:
        """Return other bytes."""
        return b"src/harmless"


class Whim(dict[str, Any]):
    """A dict that shows something else than it holds."""

    def items(self) -> Any:  # noqa: ANN401 - it lies
        """Return other items."""
        return {"path": "src/harmless"}.items()


class Fickle:
    """A path that changes its mind each time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __fspath__(self) -> str:
        self.asked += 1
        return "src/harmless" if self.asked == 1 else "/etc/passwd"


class Place(StrEnum):
    """A name for a file."""

    HERE = "src/here"


@dataclass
class Order:
    """What can be changed after it was looked at."""

    amount: int


class Unreadable(Mapping[str, object]):
    """An argument that cannot be looked at."""

    def __getitem__(self, _: str) -> object:
        raise RuntimeError("not for you")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("not for you")

    def __len__(self) -> int:
        return 1


def call(function: Any, *args: object, **kwargs: object) -> ToolCall[Any]:  # noqa: ANN401 - any function
    return ToolCall(declared_of(function), function, args, kwargs)


class TestCopies:
    """What is copied, and that the copy is as good as what it was made of."""

    @given(
        st.recursive(
            st.none() | st.integers() | st.text() | st.binary() | st.sets(st.integers()) | st.builds(bytearray),
            lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
            max_leaves=20,
        )
    )
    def test_a_copy_is_equal_and_shares_nothing_that_can_change(self, value: object) -> None:
        """Whatever it is made of, and however deep."""

        def containers(found: Any) -> Iterator[int]:  # noqa: ANN401 - any value
            if isinstance(found, dict | list | set | bytearray):
                yield id(found)
            for part in found.values() if isinstance(found, dict) else found if isinstance(found, list | tuple) else ():
                yield from containers(part)

        (copied,), _ = copy_arguments((value,), {})

        assert value == copied
        assert not {*containers(value)} & {*containers(copied)}

    def test_what_is_one_object_stays_one(self) -> None:
        """In two places, or in itself, also by way of a tuple; forty doublings take no time."""
        shared: list[Any] = ["ha"]
        around: list[Any] = [shared]
        around.append((around, shared))
        doubled: list[Any] = shared
        for _ in range(40):
            doubled = [doubled, doubled]
        (first, second, again), _ = copy_arguments((around, shared, doubled), {})

        assert first[1][0] is first
        assert first[0] is second
        assert first[1][1] is second
        assert again[0] is again[1]

    def test_what_is_nested_deeper_than_anybody_looks_is_held_to_nothing(self) -> None:
        """It passes as it is, and is opaque from there on."""
        (deep,) = nested(DEEPEST + 40)
        (copied,), _ = copy_arguments((deep,), {})
        seen = veiled(copied)
        for _ in range(DEEPEST + 1):
            assert deep is not copied
            deep, copied, seen = deep[0], copied[0], seen[0]

        assert deep is copied
        assert Opaque("list") == seen

    @pytest.mark.parametrize(
        "value",
        [
            Name("a"),
            Whim(path="a"),
            OrderedDict(path="a"),
            Fickle(),
            Place.HERE,
            Order(1),
            Unreadable(),
            {Place.HERE: 1},
            (letter for letter in "ab"),
            memoryview(b"a"),
        ],
        ids=["text", "dict", "ordered", "path", "enum", "dataclass", "mapping", "keys", "generator", "view"],
    )
    def test_what_is_not_built_in_passes_as_it_is_and_is_opaque(self, value: object) -> None:
        """Alone and inside of something; nobody's code runs for that."""
        (alone, inside), _ = copy_arguments((value, {"a": [value]}), {})

        assert alone is value
        assert inside["a"][0] is value
        assert isinstance(veiled(value), Opaque)
        assert isinstance(veiled(inside)["a"][0], Opaque)

    @pytest.mark.parametrize("value", [Path("a"), PurePosixPath("a"), 1.5, b"a", None, {"a": (1, [2])}], ids=repr)
    def test_what_is_built_in_is_judged_as_it_is(self, value: object) -> None:
        """The same object, so that nothing is made twice."""
        assert value is veiled(value)


class TestCalls:
    """What is judged, what is recorded and what the tool gets."""

    def test_a_tool_gets_what_was_judged(self, relay: Relay) -> None:
        """Whoever changes its own dict while the call is judged changes nothing any more."""
        got: list[str] = []
        options = {"path": "src/a"}

        def target(arguments: Mapping[str, Any]) -> str:
            found: str = arguments["options"]["path"]
            options["path"] = "/etc/passwd"
            return found

        write = tool("write", target=target)(lambda options: got.append(options["path"]))
        relay.start("Fix it", by=ANA, may=["write:src/**"]).call(write, options)

        assert (["src/a"], {"path": "/etc/passwd"}) == (got, options)

    @pytest.mark.parametrize("asynchronous", [False, True], ids=["a function", "a coroutine function"])
    def test_an_asynchronous_tool_gets_what_was_judged(self, tmp_path: Path, *, asynchronous: bool) -> None:
        """The call is judged in a thread, and whoever made it goes on meanwhile."""
        got: list[str] = []
        options = {"path": "src/a"}

        def target(arguments: Mapping[str, Any]) -> str:
            found: str = arguments["options"]["path"]
            options["path"] = "/etc/passwd"
            return found

        async def later(options: dict[str, str]) -> None:
            got.append(options["path"])

        def now(options: dict[str, str]) -> None:
            got.append(options["path"])

        async def work() -> None:
            async with AsyncRelay.open(f"sqlite:///{tmp_path}/ledger.db") as relay:
                lead = await relay.start("Fix it", by=ANA, may=["write:src/**"])
                await lead.call(tool("write", target=target)(later if asynchronous else now), options)

        asyncio.run(work())

        assert ["src/a"] == got

    def test_what_a_partial_function_holds_is_copied_too(self, relay: Relay) -> None:
        """It is among the arguments that are judged."""
        got: list[str] = []
        held = {"path": "src/a"}

        @tool("write", target=lambda arguments: held.update(path="/etc/passwd") or arguments["options"]["path"])
        def write(options: dict[str, str]) -> None:
            got.append(options["path"])

        relay.start("Fix it", by=ANA, may=["write:src/**"]).call(partial(write, held))

        assert ["src/a"] == got

    def test_a_tool_that_changes_its_arguments_changes_its_own(self, lead: LiveRun, relay: Relay) -> None:
        """Neither the record nor the caller sees it."""
        items = [1, 2]

        assert 2 == lead.call(lambda items: items.pop(), items)
        assert [1, 2] == items
        assert '"items":[1,2]' in words(relay, receipts(relay, Kind.TOOL_REQUESTED)[0], "arguments")

    def test_a_tool_fills_what_it_declares_to_fill(self, relay: Relay) -> None:
        """That passes by reference, also where the same object is another argument, and nothing is granted by it."""
        out: list[str] = []

        @tool("list", fills=("out",))
        def listing(out: list[str], other: list[str] | None = None) -> list[str] | None:
            out.append("found")
            return other

        lead = relay.start("Look", by=ANA, may=["call:list"])
        lead.call(listing, out)
        held = relay.start("Look", by=ANA, may=['call:list where other in ["found"]'])
        with pytest.raises(GrantDeniedError, match="an object of type list, which may change"):
            held.call(listing, out, out)
        held.call(listing, out, ["found"])

        assert ["found", "found"] == out


class TestTargets:
    """What a call acts on is named by something that stays as it is, or it is not made under a grant."""

    @pytest.mark.parametrize(
        ("path", "sentence"),
        [
            (Name("/etc/passwd"), "Name, which may change when the tool asks"),
            (Fickle(), "Fickle, which may change"),
            (Place.HERE, "Place, which may change"),
            ("", "the argument path is empty"),
            (None, "the argument path is not given"),
        ],
        ids=["a text of its own type", "a path of its own type", "an enum", "nothing", "none"],
    )
    @pytest.mark.parametrize("declared", [tool("write", target="path"), tool("write")], ids=["declared", "by its name"])
    def test_what_names_nothing_certain_is_refused(
        self,
        relay: Relay,
        path: Any,  # noqa: ANN401 - any argument
        sentence: str,
        declared: Any,  # noqa: ANN401 - a decorator
    ) -> None:
        """Neither is it `call:NAME` then: an empty path is no way from one permit to another."""
        made: list[object] = []
        write = declared(lambda path: made.extend([path]))
        lead = relay.start("Fix it", by=ANA, may=["write:**", "call:**"])
        if path is None and declared_of(write).target is None:
            lead.call(write, path)  # nobody said that it acts on one
            return
        with pytest.raises(GrantDeniedError, match=sentence):
            lead.call(write, path)
        ((rule, reason),) = denials(relay)

        assert ([], "target") == (made, rule)
        assert sentence in reason

    @pytest.mark.parametrize(
        ("function", "kwargs"),
        [
            (tool("write", target="pth")(lambda path: path), {"path": "src/a"}),
            (tool("write", target="path")(lambda **options: options), {"path": "src/a"}),
        ],
        ids=["misspelled", "among the rest"],
    )
    def test_a_target_that_is_no_parameter_is_refused(self, relay: Relay, function: Any, kwargs: Any) -> None:  # noqa: ANN401
        """Its declaration says what it acts on, and the call does not."""
        lead = relay.start("Fix it", by=ANA, may=["write:**", "call:**"])
        with pytest.raises(GrantDeniedError, match="is not given; give it, by a parameter of its own"):
            lead.call(function, **kwargs)

        assert ["target"] == [rule for rule, _ in denials(relay)]

    @pytest.mark.parametrize(
        "target",
        [lambda arguments: f"src/{arguments['order']}", lambda arguments: f"src/{arguments['order']['amount']}"],
        ids=["spelled", "looked into"],
    )
    def test_a_target_is_not_made_of_what_may_change(self, relay: Relay, target: Callable[..., str]) -> None:
        """A function that names it is asked once more without a look into what is opaque."""
        write = tool("write", target=target)(lambda order: order)
        lead = relay.start("Fix it", by=ANA, may=["write:**"])
        with pytest.raises(GrantDeniedError, match="is made of an object that may say something else"):
            lead.call(write, Order(1))

    def test_a_target_beside_what_may_change_is_one(self, relay: Relay) -> None:
        """What does not look into it does not depend on it."""
        write = tool("write", target=lambda arguments: arguments["path"])(lambda path, order: (path, order.amount))

        assert ("src/a", 1) == relay.start("Fix it", by=ANA, may=["write:**"]).call(write, "src/a", Order(1))

    @pytest.mark.parametrize("path", [Path("src/a"), PurePosixPath("src/a")], ids=repr)
    def test_a_path_of_the_standard_library_is_a_name(self, relay: Relay, path: PurePosixPath) -> None:
        """The tool gets the path itself."""
        write = tool("write", target="path")(lambda path: path)
        function = tool("write", target=lambda _: path)(lambda path: path)  # type: ignore[arg-type, return-value]
        lead = relay.start("Fix it", by=ANA, may=["write:src/*"])

        assert [path, "x"] == [lead.call(write, path), lead.call(function, "x")]

    @pytest.mark.parametrize(
        ("path", "flag"), [("", "would_deny.target"), (Fickle(), "would_deny.target"), ("src/a", None)]
    )
    @pytest.mark.parametrize("may", [(), ("write:**",)], ids=["without a grant", "trying one out"])
    def test_observed_it_is_only_told(self, relay: Relay, path: Any, flag: str | None, may: Any) -> None:  # noqa: ANN401
        """The call is made, and its receipt says that it would not have been, and why."""
        write = tool("write", target="path")(lambda path: path)
        lead = relay.start("Look", by=ANA, may=may, mode="observed")

        assert path is lead.call(write, path)
        (asked,) = receipts(relay, Kind.TOOL_REQUESTED)
        assert (() if flag is None else (flag,)) == asked.body.flags  # type: ignore[union-attr]
        assert (flag is not None) == ("reason" in asked.content)

    def test_what_a_target_function_raises_stops_only_what_is_enforced(self, relay: Relay) -> None:
        """Observed, the call is made."""
        write = tool("write", target=lambda arguments: arguments["missing"])(lambda path: path)
        with pytest.raises(GuardFailedError, match="KeyError"):
            relay.start("Fix it", by=ANA, may=["write:**"]).call(write, "a")

        assert "a" == relay.start("Look", by=ANA).call(write, "a")
        assert [("would_deny.guard",)] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]


class TestOpaque:
    """What may change is recorded as it looked, and keeps to nothing."""

    @pytest.mark.parametrize(
        ("permit", "value"),
        [
            ("call:pay where order.amount <= 5", Order(1)),
            ('call:pay where order starts with "src"', Name("src/a")),
            ("call:pay where order under src", Name("src/a")),
            ('call:pay where order is "src/here"', Place.HERE),
            ("call:pay where order.path under src", Whim(path="/etc/passwd")),
            ('call:pay where order.shown starts with "Order"', object()),
            ("call:pay where order.deep.amount <= 5", {"deep": Order(1)}),
            ('call:pay where order in ["src/a"]', ["src/a", Name("src/a")]),
        ],
    )
    def test_no_condition_holds_for_it(self, relay: Relay, permit: str, value: object) -> None:
        """Whatever it says of itself; a dict and a list are judged by what is in them."""
        pay = tool("pay")(lambda order: order)
        with pytest.raises(GrantDeniedError, match="which may change"):
            relay.start("Pay", by=ANA, may=[permit]).call(pay, value)

    @pytest.mark.parametrize(
        ("operator", "bound"),
        [("<=", "order.amount"), ("!=", "order.amount"), ("!=", "order"), ("!=", "order.a.b")],
    )
    def test_it_keeps_to_no_constraint(self, relay: Relay, operator: str, bound: str) -> None:
        """Neither to one that only says what must not be: it is there, and nobody can see it."""
        pay = tool("pay")(lambda order: order)
        lead = relay.start("Pay", by=ANA, may=["call:pay"])
        lead.record(Constraint(key="amount", operator=operator, value="5", binds_to=f"call:pay.{bound}"))
        with pytest.raises(ConstraintViolatedError, match="which may change"):
            lead.call(pay, Order(1))

    def test_it_is_recorded_as_what_it_holds(self, lead: LiveRun, relay: Relay) -> None:
        """What is built on a built-in type is read as that type holds it, not as it tells of itself."""
        lead.call(lambda *things: len(things), Name("/etc/passwd"), Whim(path="/etc/passwd"), Order(3))
        (asked,) = receipts(relay, Kind.TOOL_REQUESTED)

        assert '{"things":["/etc/passwd",{"path":"/etc/passwd"},{"amount":3}]}' in words(relay, asked, "arguments")

    def test_what_does_not_want_to_be_looked_at_stops_only_what_is_enforced(self, relay: Relay) -> None:
        """Observed, the call is made with it, and flagged."""
        note = tool("note")(lambda thing: len(thing) * 1)
        with pytest.raises(GuardFailedError, match="RuntimeError"):
            relay.start("Fix it", by=ANA, may=["call:note"]).call(note, Unreadable())

        assert 1 == relay.start("Look", by=ANA).call(note, Unreadable())
        assert [("would_deny.guard",)] == [body.flags for body in bodies(relay, Kind.TOOL_REQUESTED)]


def test_a_declaration_names_what_is_filled_as_texts() -> None:
    """One text alone would be many names of one letter."""
    with pytest.raises(InvalidValueError, match="fills"):
        tool("list", fills="out")(lambda out: out)
