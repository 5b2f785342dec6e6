"""Calls at the same time: each names the others, and an exact claim decides."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from batonpass.attribution.changes.change import digest_of
from batonpass.attribution.worktree.overlap import Ended, OverlapClaim, Underway, unclaimed
from batonpass.attribution.worktree.tree_difference import Difference, Look
from batonpass.attribution.worktree.write_intent import Intent, NamedWrite
from tests.unit.attribution.trees import a_tree

AT: Final = datetime(2026, 1, 2, 12, tzinfo=UTC)


def a_difference(before: bytes | None, after: bytes | None) -> Difference:
    digests = [None if side is None else digest_of(side) for side in (before, after)]
    return Difference(path="a.py", before=before, after=after, before_digest=digests[0], after_digest=digests[1])


def a_claim(before: bytes | None, after: bytes | None, *, path: str = "a.py") -> OverlapClaim:
    return OverlapClaim(call="call_edit", path=path, before=before, after=after)


def test_calls_that_overlap_name_each_other() -> None:
    """Who was under way at any moment while a call was is named, even if it ended long before."""
    underway = Underway()
    look = Look(commit="c")
    underway.begin("first", at=AT)
    underway.keep("first", look)
    underway.keep("nobody", look)
    underway.begin("second", at=AT)
    ended = [underway.end("second")]
    underway.begin("third", at=AT)
    ended += [underway.end("first"), underway.end("third")]

    assert [["first"], ["second", "third"], ["first"]] == [list(each.others) for each in ended]
    assert [None, look, None] == [each.look for each in ended]


def test_calls_one_after_the_other_share_nothing() -> None:
    """Who came later or earlier is not named."""
    underway = Underway()
    underway.begin("first", at=AT)
    underway.end("first")
    underway.begin("second", at=AT)

    assert Ended() == underway.end("second")


def test_a_call_that_never_ran_is_nobodys_candidate() -> None:
    """A call that was denied after it was announced is forgotten by all."""
    underway = Underway()
    underway.begin("first", at=AT)
    underway.begin("denied", at=AT)
    underway.forget("denied")

    assert [Ended(), Ended()] == [underway.end("first"), underway.end("denied")]


def test_a_call_without_an_end_is_over_some_day() -> None:
    """A session that was killed does not cast doubt on all that follows."""
    underway = Underway(longest=timedelta(hours=1))
    underway.begin("killed", at=AT)
    underway.begin("next", at=AT + timedelta(hours=2))

    assert {} == underway.end("next").others


def test_a_claim_is_told_to_those_who_run_at_that_moment() -> None:
    """Not to the one that makes it, nor to those who come later."""
    underway = Underway()
    underway.begin("bash", at=AT)
    underway.begin("call_edit", at=AT)
    underway.claim("call_edit", "a.py", before=b"1", after=b"2")
    edit = underway.end("call_edit")
    underway.begin("later", at=AT)

    assert [(), (a_claim(b"1", b"2"),), ()] == [
        each.claims for each in (edit, underway.end("bash"), underway.end("later"))
    ]


@pytest.mark.parametrize(
    ("claims", "left"),
    [
        pytest.param([a_claim(b"1", b"4")], [], id="all of it"),
        pytest.param([a_claim(b"1", b"2"), a_claim(b"2", b"4")], [], id="two that lead from one to the other"),
        pytest.param([a_claim(b"1", b"2")], [(b"2", b"4")], id="the first part"),
        pytest.param([a_claim(b"3", b"4")], [(b"1", b"3")], id="the last part"),
        pytest.param([a_claim(b"1", b"2"), a_claim(b"3", b"4")], [(b"2", b"3")], id="what is around it"),
        pytest.param([a_claim(b"1", b"2"), a_claim(b"2", b"3"), a_claim(b"3", b"4")], [], id="three in a row"),
        pytest.param([a_claim(b"7", b"8")], [(b"1", b"4")], id="other bytes"),
        pytest.param([a_claim(None, b"4")], [(b"1", None)], id="made anew after a deletion"),
        pytest.param([a_claim(b"1", b"4", path="b.py")], [(b"1", b"4")], id="another file"),
        pytest.param([], [(b"1", b"4")], id="nothing"),
    ],
)
def test_what_a_claim_explains_belongs_to_it(
    claims: list[OverlapClaim], left: list[tuple[bytes | None, bytes | None]]
) -> None:
    """A call gets of a file what no claim of others explains, from their bytes or to their bytes."""
    found = list(unclaimed([a_difference(b"1", b"4")], claims))

    assert [a_difference(*sides) for sides in left] == found


def test_a_command_beside_an_edit_gets_what_the_edit_does_not_explain(tmp_path: Path) -> None:
    """The whole way: looks before and after, a claim in between, and the other call as candidate."""
    tree = a_tree(tmp_path / "tree", {"a.py": "1\n", "b.py": "1\n"})
    looking, underway = tree.looking(), Underway()
    underway.begin("bash", at=AT)
    underway.keep("bash", looking.look())
    underway.begin("edit", at=AT, intent=Intent(writes=(NamedWrite(path="c.py"),), only=True))
    underway.begin("make", at=AT)
    tree.write("a.py", "edited\n")
    underway.claim("edit", "a.py", before=b"1\n", after=b"edited\n")
    tree.write("b.py", "formatted\n")
    underway.end("edit")
    after = looking.look()
    ended = underway.end("bash")
    assert ended.look is not None

    recorded = looking.changes(
        ended.look,
        after,
        call="bash",
        run="run_a",
        at=AT,
        intent=ended.intent,
        others=ended.suspects,
        claims=ended.claims,
    )

    assert [("b.py", ("make",))] == [(change.path, change.overlapping) for change in recorded.changes]
