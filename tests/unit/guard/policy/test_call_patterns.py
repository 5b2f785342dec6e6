"""Patterns of rules and the objects of calls: one spelling is enough to be held, and all of them to be let go on."""

from typing import Any

import pytest

from batonpass.guard.policy.call_patterns import Used, UsedOn, is_covered, is_named
from batonpass.model.policy.tool_pattern import read_tools


def used_on(kind: Used, *objects: str, **known: Any) -> UsedOn:  # noqa: ANN401 - whatever a test is about
    """Return the objects of a call, spelled as they are written."""
    return UsedOn(kind=kind, written=objects, spelled=objects, roots=("/repo", "/link"), home="/home/ana", **known)


@pytest.mark.parametrize(
    ("pattern", "used", "fits"),
    [
        pytest.param("Bash(git *)", used_on(Used.COMMAND, "git push origin"), True, id="more words"),
        pytest.param("Bash(git *)", used_on(Used.COMMAND, "git"), True, id="no more words"),
        pytest.param("Bash(git *)", used_on(Used.COMMAND, "gitk"), False, id="a word that goes on"),
        pytest.param("Bash(git:*)", used_on(Used.COMMAND, "git push"), True, id="a prefix with more words"),
        pytest.param("Bash(git:*)", used_on(Used.COMMAND, "git"), True, id="a prefix alone"),
        pytest.param("Bash(git:*)", used_on(Used.COMMAND, "gitk"), False, id="a prefix is a whole word"),
        pytest.param("Bash(make)", used_on(Used.COMMAND, "make"), True, id="exactly these words"),
        pytest.param("Bash(make)", used_on(Used.COMMAND, "make all"), False, id="words that nobody named"),
        pytest.param("Bash(cp * out)", used_on(Used.COMMAND, "cp a/b out"), True, id="a star goes across words"),
        pytest.param("Edit(src/**)", used_on(Used.PATH, "/repo/src/a/b.py"), True, id="a path below the root"),
        pytest.param("Edit(src/**)", used_on(Used.PATH, "/link/src/a.py"), True, id="a path below the other root"),
        pytest.param("Edit(src/**)", used_on(Used.PATH, "/home/src/a.py"), False, id="a path below no root"),
        pytest.param("Edit(src/*)", used_on(Used.PATH, "/repo/src/a/b.py"), False, id="a star is one name of a path"),
        pytest.param("Edit(./src/*)", used_on(Used.PATH, "/repo/src/a.py"), True, id="from here"),
        pytest.param("Edit(/src/*)", used_on(Used.PATH, "/repo/src/a.py"), True, id="one slash begins at the root"),
        pytest.param("Edit(//etc/*)", used_on(Used.PATH, "/etc/hosts"), True, id="two slashes are absolute"),
        pytest.param("Edit(~/notes/*)", used_on(Used.PATH, "/home/ana/notes/a"), True, id="a path at home"),
        pytest.param("WebFetch(domain:Example.org)", used_on(Used.DOMAIN, "example.org"), True, id="the domain"),
        pytest.param("WebFetch(domain:example.org)", used_on(Used.DOMAIN, "a.example.org"), True, id="one below it"),
        pytest.param("WebFetch(domain:example.org)", used_on(Used.DOMAIN, "myexample.org"), False, id="one beside it"),
        pytest.param("Task(explore*)", used_on(Used.NAME, "explorer"), True, id="a name"),
        pytest.param("Task(explore)", used_on(Used.NAME, "explorer"), False, id="another name"),
    ],
)
def test_a_pattern_is_read_as_the_kind_of_its_object(pattern: str, used: UsedOn, fits: bool) -> None:  # noqa: FBT001
    """A rule that holds and one that lets go on read it alike, where a call has one object in one spelling."""
    patterns, tool = read_tools("tools", pattern), (pattern.partition("(")[0],)

    assert (fits, fits) == (is_named(patterns, tool, used), is_covered(patterns, tool, used))


def test_a_pattern_without_brackets_is_about_all_calls_of_its_tool() -> None:
    """Whatever they do, and of whichever kind. Other tools are other tools."""
    patterns = read_tools("tools", ["Bash", "mcp__github__*"])

    for used in (None, used_on(Used.COMMAND, "ls"), UsedOn(kind=Used.COMMAND, unreadable=True)):
        assert [True, True, False] == [is_named(patterns, (name,), used) for name in ("Bash", "mcp__github__x", "Edit")]
        assert [True, True, False] == [
            is_covered(patterns, (name,), used) for name in ("Bash", "mcp__github__x", "Edit")
        ]


def test_one_object_is_enough_to_be_named_and_all_have_to_be_covered() -> None:
    """`git push && rm x` is held by a rule about `rm`, and not let go on by a rule about `git`."""
    used = used_on(Used.COMMAND, "git push", "rm x")
    git, both = read_tools("tools", "Bash(git *)"), read_tools("tools", ["Bash(git *)", "Bash(rm *)"])

    assert (True, False) == (is_named(git, ("Bash",), used), is_covered(git, ("Bash",), used))
    assert (True, True) == (is_named(both, ("Bash",), used), is_covered(both, ("Bash",), used))


def test_each_list_has_its_own_use() -> None:
    """A spelling holds a call; only what is written, with all that it leads to, lets it go on."""
    used = UsedOn(kind=Used.COMMAND, written=("/bin/rm x",), spelled=("rm x",))
    spelled, written = read_tools("tools", "Bash(rm *)"), read_tools("tools", "Bash(/bin/rm *)")

    assert (True, False) == (is_named(spelled, ("Bash",), used), is_covered(spelled, ("Bash",), used))
    assert (False, True) == (is_named(written, ("Bash",), used), is_covered(written, ("Bash",), used))


def test_a_path_is_held_in_any_case_and_let_go_on_only_as_it_is_written() -> None:
    """Some file systems take `SRC` for `src`. A rule that holds is hard to avoid, one that allows hard to stretch."""
    patterns, used = read_tools("tools", "Edit(SRC/**)"), used_on(Used.PATH, "/repo/src/a.py")

    assert (True, False) == (is_named(patterns, ("Edit",), used), is_covered(patterns, ("Edit",), used))


def test_what_cannot_be_read_may_be_anything() -> None:
    """It is held by every rule about its tool, and let go on by none that names an object."""
    patterns, used = read_tools("tools", "Bash(git *)"), UsedOn(kind=Used.COMMAND, unreadable=True)

    assert (True, False) == (is_named(patterns, ("Bash",), used), is_covered(patterns, ("Bash",), used))
    assert not is_named(patterns, ("Edit",), used)


def test_a_call_without_an_object_is_meant_by_no_pattern_that_names_one() -> None:
    """Neither to be held nor to be let go on."""
    patterns = read_tools("tools", "Bash(git *)")

    assert (False, False) == (is_named(patterns, ("Bash",), None), is_covered(patterns, ("Bash",), None))


def test_any_name_of_a_tool_is_enough() -> None:
    """Rules that hold mean a tool by the names of its kin as well."""
    assert is_named(read_tools("tools", "Write"), ("create_file", "Write"), None)
