"""What patterns of grants cover, and how a lineage is judged."""

import pytest

from batonpass.authority.grants import (  # type: ignore[attr-defined]
    Held,
    covers,
    find_refusal,
    make_terms,
    narrow,
    require_pattern,
)
from batonpass.errors import GrantExceededError, InvalidValueError


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        pytest.param("write:src/a", "write:src/a", True, id="itself"),
        pytest.param("write:src/a", "write:src/b", False, id="another file"),
        pytest.param("write:src/a", "read:src/a", False, id="another action"),
        pytest.param("write:src/*", "write:src/a", True, id="a file for one star"),
        pytest.param("write:src/*", "write:src/a/b", False, id="a file in a folder for one star"),
        pytest.param("write:src/*", "write:src", False, id="the folder itself for one star"),
        pytest.param("write:src/*", "write:src/**", False, id="two stars for one"),
        pytest.param("write:src/*", "write:src/*", True, id="one star for one"),
        pytest.param("write:src/**", "write:src/a/b", True, id="any depth for two stars"),
        pytest.param("write:src/**", "write:src", False, id="the folder itself for two stars"),
        pytest.param("write:src/**", "write:src/*", True, id="one star for two"),
        pytest.param("write:src/**", "write:srcs/a", False, id="a folder whose name begins so"),
        pytest.param("write:**", "write:src/**", True, id="everything"),
        pytest.param("write:**", "read:a", False, id="everything of another action"),
        pytest.param("write:*/a", "write:src/a", True, id="a star in the middle"),
        pytest.param("write:*/a", "write:**", False, id="two stars for a star in the middle"),
        pytest.param("write:src/a", "write:src/*", False, id="a star for a file"),
        pytest.param("write:src/a/b", "write:src/a", False, id="less than the pattern has"),
    ],
)
def test_what_a_pattern_covers(outer: str, inner: str, *, expected: bool) -> None:
    """Everything that the inner one matches is matched by the outer one."""
    assert expected is covers(outer, inner)


@pytest.mark.parametrize(
    "pattern",
    [
        "src/a",
        "write",
        "write:",
        ":src",
        "write:/etc",
        "write:src/",
        "write:src//a",
        "write:./a",
        "write:src/../a",
        "write:**/a",
        "write:a*",
        "*:a",
        "write:a\\b",
        "write:a%2fb",
        "write:a\u202eb",
        "write:a\u200bb",
        "write:ﬁle",
        "write:a\nb",
    ],
)
def test_a_pattern_that_can_be_read_in_two_ways_is_refused(pattern: str) -> None:
    """Backslashes, percent signs, hidden letters, ligatures: nothing is repaired."""
    with pytest.raises(InvalidValueError):
        require_pattern(pattern)
    with pytest.raises(InvalidValueError):
        make_terms([pattern], [], None)


@pytest.mark.parametrize("pattern", ["write:src/a b.txt", "mail:ana@example.com", "run:git", "write:日本/語", "a:b:c"])
def test_a_clear_pattern_is_taken(pattern: str) -> None:
    """Spaces, letters of all scripts, a second colon."""
    require_pattern(pattern)


@pytest.mark.parity("grants-only-narrow")
def test_a_chain_that_was_widened_by_force_has_no_effect() -> None:
    """Every hop is asked again at each call: what one of them could not delegate, nobody below it may do."""
    root = Held("run_1", "lead", make_terms(["write:**"], ["write:src/**"], None))
    forged = Held("handoff_1", "a", make_terms(["write:**"], ["write:**"], None))
    own = Held("handoff_2", "b", make_terms(["write:**"], ["write:**"], None))

    assert find_refusal([root, forged, own], "write:src/a", 0) is None
    refusal = find_refusal([root, forged, own], "write:etc/passwd", 0)
    assert refusal is not None
    assert ("grant.exceeded", "b tried write:etc/passwd, which lead may not delegate") == (refusal.rule, refusal.reason)


@pytest.mark.parametrize("target", ["/etc/passwd", "./src/a", "../a", "src//a", "a%2fb"])
def test_a_target_that_no_permit_can_name_is_explained(target: str) -> None:
    """An absolute path, or one with a dot in it, is a matter of the work tree and not of how patterns are written."""
    refusal = find_refusal([Held("run_1", "lead", make_terms(["write:**"], [], None))], f"write:{target}", 0)

    assert refusal is not None
    assert ("value.invalid", True) == (refusal.rule, "is outside of the work tree, or written" in refusal.reason)
    assert refusal.reason.endswith(": name the target from the work tree on, as src/a")


@pytest.mark.parametrize(
    ("ends", "now", "expired"),
    [
        pytest.param((10, None), 9, None, id="before its end"),
        pytest.param((10, None), 10, "lead", id="at the end of the first"),
        pytest.param((None, 10), 10, "a", id="at the end of the last"),
        pytest.param((None, None), 10**15, None, id="without an end"),
    ],
)
def test_a_lineage_ends_with_the_first_that_ends(
    ends: tuple[int | None, int | None], now: int, expired: str | None
) -> None:
    """Whoever is named in the refusal is whose grant has expired."""
    lineage = [
        Held(f"run_{agent}", agent, make_terms(["write:**"], ["write:**"], end))
        for agent, end in zip(("lead", "a"), ends, strict=True)
    ]
    refusal = find_refusal(lineage, "write:a", now)

    assert (refusal is None) == (expired is None)
    if refusal is not None:
        assert f"the grant of {expired} has expired" in refusal.reason


def test_narrowed_terms_name_what_they_were_narrowed_from() -> None:
    """The digest of the parent's terms, and the earlier of both ends."""
    parent = make_terms(["write:**"], ["write:src/**"], 20)
    child = narrow(parent, may=["write:src/a"], may_delegate=["write:src/a"], expires_at=30)
    leaf = narrow(child, may=["write:src/a"], may_delegate=[], expires_at=10)

    assert (20, 10) == (child.expires_at, leaf.expires_at)
    assert child.parent != leaf.parent is not None
    with pytest.raises(GrantExceededError):
        narrow(leaf, may=["write:src/a"], may_delegate=[])
