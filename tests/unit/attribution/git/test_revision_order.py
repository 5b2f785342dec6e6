"""In which order revisions are looked at: parents first, whatever the clocks say and whoever made them up."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from batonpass.attribution.changes.change import FileChange
from batonpass.attribution.git.git_history import History, Revision
from batonpass.attribution.git.revision_order import order_revisions
from batonpass.attribution.git.rewrites import Rewrites
from batonpass.model.base.ids import Digest

BEGAN = datetime(2026, 1, 5, tzinfo=UTC)
COMMITS = st.integers(0, 7)


@st.composite
def histories(draw: st.DrawFn, *, with_circles: bool) -> History:
    """Return commits with any clocks; in a circle, a commit may be its own ancestor, which git cannot make."""
    size = draw(st.integers(1, 8))
    revisions = [
        Revision(
            commit=str(number),
            at=BEGAN + timedelta(seconds=draw(st.integers(-5, 5))),
            path="a.py",
            digest=Digest(f"{number:064x}"),
            parents=tuple(
                map(str, draw(st.lists(COMMITS if with_circles else st.integers(0, number), max_size=3, unique=True)))
            ),
        )
        for number in range(size)
    ]
    if not with_circles:
        revisions = [
            Revision(
                commit=one.commit,
                at=one.at,
                path=one.path,
                digest=one.digest,
                parents=tuple(parent for parent in one.parents if parent != one.commit),
            )
            for one in revisions
        ]
    return History(revisions=draw(st.permutations(revisions)))


@given(histories(with_circles=False))
def test_every_revision_comes_after_its_parents(history: History) -> None:
    """And not before them in time."""
    found = list(order_revisions(history, Rewrites(history.revisions), ()))
    places = {revision.commit: place for place, (revision, _) in enumerate(found)}
    times = {revision.commit: at for revision, at in found}

    assert len(history.revisions) == len(found)
    for revision in history.revisions:
        for parent in revision.parents:
            assert places[parent] < places[revision.commit]
            assert times[parent] <= times[revision.commit]


@given(histories(with_circles=True))
def test_a_circle_ends(history: History) -> None:
    """Each is looked at once, in some order."""
    rewrites = Rewrites(history.revisions)
    found = [revision.commit for revision, _ in order_revisions(history, rewrites, ())]

    assert sorted(found) == sorted(revision.commit for revision in history.revisions)
    for one in found:
        assert rewrites.leads_to(one, one)
        assert all(rewrites.base_of(one, other) in {None, *found} for other in found)


def a_change(call: str, at: datetime, before: int, after: int) -> FileChange:
    return FileChange(
        path="a.py", call=call, run="run", at=at, before=Digest(f"{before:064x}"), after=Digest(f"{after:064x}")
    )


def test_a_commit_is_not_older_than_a_change_before_the_one_that_begins_with_it() -> None:
    """A call, a person and a commit within one second, and then a call that begins with what was committed."""
    first = a_change("call_1", BEGAN + timedelta(milliseconds=200), 0, 1)
    second = a_change("call_2", BEGAN + timedelta(milliseconds=700), 2, 3)
    committed = Revision(commit="c", at=BEGAN, path="a.py", digest=Digest(f"{2:064x}"))

    ((_, at),) = order_revisions(History(revisions=[committed]), Rewrites([committed]), [first, second])

    assert first.at <= at < second.at


def test_what_was_committed_and_rebased_in_the_second_of_a_call_is_not_older_than_the_call() -> None:
    """Both have one author, one subject and one time: the commit that was left behind is not taken for the copy."""
    wrote = a_change("call_1", BEGAN + timedelta(milliseconds=200), 0, 1)

    def a_commit(name: str, text: int, at: datetime, *parents: str, aside: bool = False) -> Revision:
        return Revision(
            commit=name,
            at=at,
            path="a.py",
            digest=Digest(f"{text:064x}"),
            parents=parents,
            author="Pat",
            authored_at=at,
            subject=f"at {at}",
            aside=aside,
        )

    base = a_commit("base", 0, BEGAN - timedelta(minutes=1))
    copy, first = a_commit("copy", 2, BEGAN, "base"), a_commit("first", 1, BEGAN, "base", aside=True)
    revisions = [base, copy, first]
    found = list(order_revisions(History(revisions=revisions), Rewrites(revisions), [wrote]))

    assert [("first", wrote.at), ("copy", wrote.at)] == [(one.commit, at) for one, at in found[1:]]
