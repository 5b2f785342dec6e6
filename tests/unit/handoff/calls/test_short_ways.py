"""The short ways of a call: each finds what the long way finds, and nothing is remembered from one call to the next."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batonpass.errors import CallProtectedError, GrantDeniedError
from batonpass.guard.grants.least_grant import is_readable
from batonpass.handoff.calls.tainted_files import _find_named, _named
from batonpass.handoff.files.path_spellings import LONGEST_NAME, Looks, flat_texts, look_below, texts_among, texts_in
from batonpass.handoff.files.protected_paths import Protected
from batonpass.handoff.history.grant_use import Use
from batonpass.handoff.runtime.run_taint import MOST_NAMED, OWN, Taint
from batonpass.handoff.shell.call_reach import find_touched
from batonpass.handoff.tools.declaration import declared_of, is_async, tool
from batonpass.handoff.tools.json_values import describe, describe_call, plain
from batonpass.handoff.tools.tool_call import ToolCall
from batonpass.model.base.ids import CallId, PrincipalId
from batonpass.model.base.label import Label, SourceType
from batonpass.model.bodies.body import Kind
from batonpass.model.grants.call import Call
from batonpass.model.grants.pattern import Pattern
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, LONE_SURROGATE, bodies

READERS = (PrincipalId("user:ana"), PrincipalId("user:bob"))
SCALARS = st.none() | st.booleans() | st.text() | st.integers() | st.floats()
VALUES = st.recursive(
    SCALARS
    | st.sampled_from([-0.0, 1e16, 5e-324, 10**22, 1e22])
    | st.sampled_from([31, 32, 63, 64, 9_999, 10_000, 20_000]).map(lambda bits: 2**bits - 1)
    | st.sampled_from([63, 64, 9_999]).map(lambda bits: -(2**bits)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def write(path: str, text: object) -> str:
    """Pretend to write."""
    del text
    return path


@tool("edit", target="path")
def edit(path: str, text: object) -> str:
    """Pretend to edit what an argument names."""
    del text
    return path


def planned(function: Any, *args: object, **kwargs: object) -> ToolCall[Any]:  # noqa: ANN401 - any function
    return ToolCall(declared_of(function), function, args, kwargs)


def long_way(function: Any, *args: object, **kwargs: object) -> ToolCall[Any]:  # noqa: ANN401 - as above
    """Return a call of which nothing is known in advance."""
    call = planned(function, *args, **kwargs)
    known = call.__dict__
    for name in ("named", "bound", "judged", "_described", "_aimed", "target", "path"):
        known.pop(name, None)
    return call


def _alike(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return MappingProxyType({name: _alike(item) for name, item in value.items()})
    return tuple(map(_alike, value)) if isinstance(value, list) else value


class TestArguments:
    """What is asked of arguments is answered at once where they are plain."""

    @given(VALUES, VALUES, st.booleans(), st.sampled_from([write, edit]))
    def test_all_answers_are_those_of_the_long_way(
        self,
        path: object,
        text: object,
        by_name: bool,  # noqa: FBT001 - drawn
        function: Any,  # noqa: ANN401 - any tool
    ) -> None:
        """Whatever is given, by place and by name, to a tool with a target and to one without."""
        args, kwargs = ((path,), {"text": text}) if by_name else ((path, text), {})
        short, long = planned(function, *args, **kwargs), long_way(function, *args, **kwargs)

        for name in (
            "named",
            "bound",
            "judged",
            "arguments",
            "aim",
            "target",
            "path",
            "described",
            "action",
            "resource",
        ):
            assert getattr(long, name) == getattr(short, name), name
        assert [*long.named] == [*short.named]

    @given(st.dictionaries(st.text() | st.just(LONE_SURROGATE), VALUES, max_size=4))
    def test_a_call_is_described_in_the_same_bytes(self, arguments: dict[str, Any]) -> None:
        """Its key is made of them, in every process and every version."""
        known = {name: plain(value) for name, value in arguments.items()}
        expected = describe({"tool": "write", "arguments": known})

        assert expected == describe_call("write", known)

    def test_every_character_is_written_as_it_always_was(self) -> None:
        """Two encoders write these documents."""
        letters = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)]))
        known = {"text": letters, "none": None, "yes": True}
        expected = json.dumps(
            {"tool": "write", "arguments": known}, sort_keys=True, ensure_ascii=False, separators=(",", ":")
        )

        assert expected.encode() == describe_call("write", known)

    def test_a_default_is_among_the_arguments(self) -> None:
        """What a function fills in itself is judged too."""

        def save(path: str, mode: str = "w") -> None:
            del path, mode

        assert {"path": "a", "mode": "w"} == dict(planned(save, "a").named)

    def test_one_place_given_twice_is_no_fit(self) -> None:
        """The call itself says so; it is described all the same."""
        assert {"args": ["a"], "path": "b"} == dict(planned(write, "a", path="b").named)

    @given(
        st.dictionaries(st.text(max_size=8) | st.sampled_from(["content", "path"]), VALUES | st.binary(), max_size=5)
    )
    def test_texts_are_found_in_the_same_order(self, arguments: dict[str, Any]) -> None:
        """The first that must not be touched is the one that is told."""
        found = flat_texts(arguments, ("content",))
        flat = all(value is None or isinstance(value, bool | int | float | str) for value in arguments.values())
        expected = texts_in(arguments, lambda name: name == "content")

        assert found is None or (expected[0] == found)
        assert found is not None or not flat
        assert expected == texts_among(arguments, ("content",))

    @given(st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
    def test_what_json_holds_is_gone_through_as_what_is_like_it(self, arguments: dict[str, Any]) -> None:
        """A dict and a list say by their type what they are; a mapping and a tuple are asked."""
        assert texts_in(arguments, lambda _: False) == texts_in(_alike(arguments), lambda _: False)

    def test_what_is_marked_as_a_coroutine_function_is_one(self) -> None:
        """Whichever way it says so."""

        async def wait() -> None:
            pass

        assert (True, False, True) == (is_async(wait), is_async(write), is_async(partial(wait)))


class TestPaths:
    """Where a path leads is looked at once in a call, and anew in the next."""

    @pytest.fixture
    def tree(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Stand in a work tree with files, links and something that is no directory."""
        tree = Path(os.path.realpath(tmp_path)) / "tree"
        (tree / "src" / "deep").mkdir(parents=True)
        (tree / "src" / "a.py").write_text("a", encoding="utf-8")
        (tree / "out").symlink_to(tmp_path)
        (tree / "src" / "same").symlink_to("a.py")
        (tree / "round").symlink_to("round")
        monkeypatch.chdir(tree)
        monkeypatch.setenv("HOME", str(tree))
        return tree

    @pytest.mark.parametrize(
        "path",
        [
            ".", "./", "src", "src/", "src//a.py", "src/./a.py", "src/a.py", "src/a.py/x", "src/new/b.py",
            "out", "out/x", "out/tree/src/same", "src/same", "src/same/x", "round", "round/x", "x" * 300, "x" * 255,
            "src/" + "x" * 256 + "/./y", "out/" + "\u00e4" * 256,
            "src/\n", " src", "ä/ö", "a\ud800", "...", "..x",
        ],
    )  # fmt: skip
    def test_it_leads_where_the_system_says(self, tree: Path, path: str) -> None:
        """Over links, to nothing, over what is no directory: as if every link were followed by the system."""
        look = look_below(str(tree), path)

        if look is None:
            assert ".." in path
        else:
            expected = os.path.realpath(f"{tree}/{path}") if "\ud800" not in path else f"{tree}/{path}"
            assert (expected, os.path.exists(look[0])) == (look[0], look[1] is not None)  # noqa: PTH110 - without errors

    def test_no_longer_name_can_be_given_to_a_file(self, tree: Path) -> None:
        """That is why nobody looks whether one is there."""
        (tree / ("x" * LONGEST_NAME)).touch()

        with pytest.raises(OSError, match="too long"):
            (tree / ("x" * (LONGEST_NAME + 1))).touch()

    @pytest.mark.parametrize("nested", [False, True], ids=["by itself", "among others"])
    def test_a_file_is_named_wherever_its_path_stands(self, tree: Path, nested: bool) -> None:  # noqa: FBT001
        """The files that a call names are those of the long way, also in lists and tables, beside numbers."""
        given: Any = ["src/a.py", "src/same", {"src/deep": 1, "n": [2.5, None, "src/new.py"]}]
        call = planned(write, "src/a.py", given if nested else "out/tree/src/same")
        looks: Looks = {}
        protected = Protected.around(None, "sqlite:///x.db", tree, environment={})
        assert find_touched(protected, call, enforced=True, looks=looks) is None

        found = _find_named(call, looks)

        assert [*_named(call)] == found == _find_named(call, {})
        assert {*found} == {tree / "src" / "a.py"}

    @pytest.mark.parametrize("path", ["/etc", "..", "../x", "src/../a.py", "src/.."])
    def test_a_way_up_is_not_taken_short(self, tree: Path, path: str) -> None:
        """After a link, `..` is not where it seems."""
        assert look_below(str(tree), path) is None

    @pytest.fixture
    def relay(self, tree: Path) -> Iterator[Relay]:  # noqa: ARG002 - where it is opened
        """Return a relay that keeps its ledger in that tree."""
        with Relay.open("sqlite:///.batonpass/ledger.db") as relay:
            yield relay
            relay.verify()

    def test_a_link_that_was_made_since_is_followed(self, relay: Relay, tree: Path) -> None:
        """The same call, once it leads to the record, is refused."""
        run = relay.start("x", by=ANA)
        assert "notes/ledger.db" == run.call(write, "notes/ledger.db", "x")

        (tree / "notes").symlink_to(".batonpass")

        with pytest.raises(CallProtectedError):
            run.call(write, "notes/ledger.db", "x")

    def test_another_name_that_was_given_since_is_found(self, relay: Relay, tree: Path) -> None:
        """A hard link has no place that it could be followed to."""
        run = relay.start("x", by=ANA)
        run.call(write, "src/b.db", "x")

        os.link(tree / ".batonpass" / "ledger.db", tree / "src" / "b.db")

        with pytest.raises(CallProtectedError):
            run.call(write, "src/b.db", "x")

    def test_a_path_begins_where_the_process_stands_now(
        self, relay: Relay, tree: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From the directory of the record, its name alone leads to it."""
        run = relay.start("x", by=ANA)
        run.call(write, "ledger.db", "x")

        monkeypatch.chdir(tree / ".batonpass")
        with pytest.raises(CallProtectedError):
            run.call(write, "ledger.db", "x")

        monkeypatch.chdir(tree / "src")
        run.call(write, "ledger.db", "x")

    def test_a_home_that_changed_is_another(
        self, relay: Relay, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whose home `~` is decides whether the record lies there."""
        run = relay.start("x", by=ANA)
        monkeypatch.setenv("HOME", str(tmp_path / "other"))
        run.call(write, "~/.batonpass/ledger.db", "x")

        monkeypatch.setenv("HOME", str(tree))
        with pytest.raises(CallProtectedError):
            run.call(write, "~/.batonpass/ledger.db", "x")

    def test_a_grant_sees_where_a_path_leads_now(self, relay: Relay, tree: Path) -> None:
        """A link that leads out of what is granted is followed before the grant is asked, at each call."""
        run = relay.start("x", by=ANA, may=["write:src/**"])
        run.call(write, "src/gate/a.py", "x")

        (tree / "src" / "gate").symlink_to(tree / "round", target_is_directory=False)
        (tree / "round").unlink()

        with pytest.raises(GrantDeniedError):
            run.call(write, "src/gate/a.py", "x")
        assert ["grant"] == [denied.rule for denied in bodies(relay, Kind.TOOL_DENIED)]


class TestJudging:
    """What is asked of every call has a short answer where nothing applies."""

    @pytest.mark.parametrize(
        "resource",
        [
            "a",
            "src/a.py",
            "./~x",
            "a/~x",
            "/etc/x",
            ".",
            "/",
            "a:b",
            "\u0430bc",
            "\u0430pple",
            "a/./b",
            "name with blanks",
        ],
    )
    def test_what_a_permit_can_name_is_what_can_be_read(self, resource: str) -> None:
        """A call on it is counted by its name only if a pattern that names it is read as the same."""
        call = Call("write", "write", resource)
        pattern = Pattern(call.action, call.place.absolute, call.place.segments, more=False)
        use = Use()
        use.make(call)

        assert (is_readable(pattern), not is_readable(pattern)) == (bool(use.made), bool(use.unnamed))

    @given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=30))
    def test_the_first_of_what_came_in_are_known(self, acts: list[tuple[bool, int]]) -> None:
        """A sentence names the same ones, whatever came in and was endorsed, in whichever order."""
        taint = Taint()
        for endorsed, number in acts:
            source = CallId(f"call_{number:02}")
            if endorsed:
                taint.endorse(source)
            else:
                taint.enter((source,), None)

            assert tuple(sorted(taint.entered)[:MOST_NAMED]) == taint.first

    @given(st.lists(st.sampled_from([None, *SourceType]), max_size=6), st.sampled_from([None, READERS]))
    def test_what_was_learned_twice_adds_nothing(
        self, learned: list[SourceType | None], readers: tuple[PrincipalId, ...] | None
    ) -> None:
        """The label of a run is the join of all that it learned, in whichever order and however often."""
        taint, expected = Taint(), OWN
        for number, integrity in enumerate(learned):
            label = None if integrity is None else Label(integrity, readers and readers[: 1 + number % 2])
            for _ in range(1 + number % 3):
                taint.learn(label)
            if label is not None:
                held = SourceType.TOOL_OUTPUT if label.is_external else label.integrity
                expected = expected.joined(Label(held, label.readers))

        assert expected == taint.base

    @pytest.mark.parametrize("more", [{}, {"may": ["write:**", "call:**"]}], ids=["watched", "enforced"])
    def test_what_is_made_unchecked_keeps_to_every_check(self, more: dict[str, Any], tmp_path: Path) -> None:
        """A receipt about a call is the same as one whose parts were all looked at."""
        with Relay.open(f"sqlite:///{tmp_path / 'ledger.db'}", home=tmp_path / "home") as relay:
            run = relay.start("x", by=ANA, **more)
            run.call(write, "src/a.py", "x")
            run.call(len, [1, 2])
            for kind, number in ((Kind.TOOL_REQUESTED, 2), (Kind.TOOL_COMPLETED, 2)):
                made = bodies(relay, kind)
                assert (number, made) == (len(made), [replace(body) for body in made])
            relay.verify()
