"""What changed from one session to the next, by topic."""

from datetime import UTC, datetime

import pytest

from batonpass.accounts.session_diff import Change, SessionTurn, Topic, compare_states
from batonpass.model.base.ids import PrincipalId
from batonpass.model.baton.items import Constraint, Decision, Exclusion, ItemValue, OpenQuestion, RejectedPath, WorkItem
from batonpass.model.baton.session import Kept, Revisit, Said, SessionState

AT = datetime(2026, 1, 2, tzinfo=UTC)
THREE = Constraint(key="threshold", operator="<=", value="3", unit="sigma")
FOUR = Constraint(key="threshold", operator="<=", value="4")


def done(what: str, *outputs: str) -> WorkItem:
    """Return work that was verified."""
    return WorkItem(what, outputs, verified_by="user:bob", how="verdict")


def said(value: ItemValue) -> Said:
    """Return something that somebody said."""
    return Said(value=value, by=PrincipalId("user:ana"), at=AT)


def state(*values: ItemValue, revisit: tuple[Revisit, ...] = ()) -> SessionState:
    """Return what a session keeps."""
    return SessionState(kept=tuple(Kept(said=said(value)) for value in values), revisit=revisit)


def reopened(decision: Decision, *reasons: str) -> Revisit:
    """Return a decision that is open again."""
    return Revisit(decision=decision, said=said(decision), reasons=reasons)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([], [Decision("d", why="w")], ("decision", "added", "d", None, "because w"), id="a decision more"),
        pytest.param(
            [Decision("d")], [], ("decision", "gone", "d", "because nobody said why", None), id="a decision fewer"
        ),
        pytest.param(
            [Decision("d", why="w")],
            [Decision("d", why="w", conditions=("until 2026-12-31",))],
            ("decision", "changed", "d", "because w", "because w (if until 2026-12-31)"),
            id="a decision with a condition more",
        ),
        pytest.param(
            [THREE], [FOUR], ("threshold", "changed", "threshold", "<= 3 sigma", "<= 4"), id="a threshold that moved"
        ),
        pytest.param([], [Constraint("be kind")], ("threshold", "added", "be kind", None, "must hold"), id="in prose"),
        pytest.param([Exclusion("api")], [], ("threshold", "gone", "api", "out of scope", None), id="an exclusion"),
        pytest.param(
            [OpenQuestion("q")],
            [OpenQuestion("q", blocking=True)],
            ("open question", "changed", "q", "not blocking", "blocking"),
            id="a question that blocks now",
        ),
        pytest.param(
            [done("count", "3")],
            [done("count", "4")],
            ("verified output", "changed", "count", "3", "4"),
            id="another output",
        ),
        pytest.param(
            [],
            [done("tidy")],
            ("verified output", "added", "tidy", None, "done"),
            id="an output that says nothing",
        ),
    ],
)
def test_each_topic_is_compared(
    before: list[ItemValue], after: list[ItemValue], expected: tuple[str, str, str, str | None, str | None]
) -> None:
    """What is called the same and says something else has changed."""
    topic, turn, what, old, new = expected
    change = Change(topic=Topic(topic), turn=SessionTurn(turn), what=what, before=old, after=new)

    assert (change,) == compare_states(state(*before), state(*after))


def test_what_is_the_same_is_not_told() -> None:
    """In whatever order, and of whatever kind."""
    values: list[ItemValue] = [THREE, Decision("d"), OpenQuestion("q"), RejectedPath("r", why="w")]

    assert () == compare_states(state(*values), state(*reversed(values)))


def test_a_decision_that_became_a_question_is_told_once() -> None:
    """As what it is: open again, and why; not as a decision gone and a question more."""
    decision = Decision("d", why="w")
    question = reopened(decision, "it was good until May").question
    change = Change(
        topic=Topic.DECISION,
        turn=SessionTurn.REOPENED,
        what="d",
        before="because w",
        after="it was good until May (it was decided because: w)",
    )

    assert (change,) == compare_states(state(decision), state(question))


def test_a_decision_that_does_not_hold_now_is_told_as_well() -> None:
    """It would be open again if the session were resumed."""
    decision = Decision("d", why="w")
    (change,) = compare_states(state(decision), state(revisit=(reopened(decision, "one", "two"),)))

    assert (SessionTurn.REOPENED, "one; two") == (change.turn, change.after)


def test_two_limits_of_one_thing_are_told_together() -> None:
    """A threshold has a lower and an upper bound."""
    least = Constraint(key="threshold", operator=">=", value="1")
    (change,) = compare_states(state(), state(THREE, least))

    assert "<= 3 sigma, >= 1" == change.after


def test_changes_come_by_topic() -> None:
    """Decisions first, then thresholds, questions and outputs."""
    changes = compare_states(state(), state(done("w"), OpenQuestion("q"), THREE, Decision("d")))

    assert list(Topic) == [change.topic for change in changes]
