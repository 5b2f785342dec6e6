"""A condition of a decision holds, fails, cannot be told, or is prose."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from batonpass.guard.constraints.conditions import (
    CheckAnswer,
    ConditionFinding,
    ConditionVerdict,
    KnownWorld,
    SeenState,
    evaluate,
    find_artifacts,
    find_checks,
    find_files,
)
from batonpass.model.base.ids import Digest
from batonpass.testing.clock import FrozenClock

A, B = Digest("a" * 64), Digest("b" * 64)
NOON: Final = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOLDS, FAILS, UNKNOWN, UNCHECKED = (
    ConditionVerdict.HOLDS,
    ConditionVerdict.FAILS,
    ConditionVerdict.UNKNOWN,
    ConditionVerdict.UNCHECKED,
)

KNOWN: Final = KnownWorld(
    at=NOON,
    artifacts={
        "rates.csv": SeenState(A),
        "our rates": SeenState(A),
        "page": SeenState(None, "came from outside: fetch it anew"),
    },
    files={"src/rates.csv": SeenState(A)},
    constraints={"threshold": ("3",), "regions": ("north", "south"), "note": ("three",)},
    checks={
        "yes": CheckAnswer(holds=True),
        "no": CheckAnswer(holds=False, why="0.21 became 0.23"),
        "plain-no": CheckAnswer(holds=False),
        "broken": CheckAnswer(holds=None, why="ConnectionError: the bank is closed"),
    },
)


@pytest.mark.parametrize(
    ("condition", "verdict", "reason"),
    [
        pytest.param(f"artifact:rates.csv sha256:{A}", HOLDS, "", id="an artifact as it was"),
        pytest.param(f"artifact:rates.csv sha256:{A.upper()}", HOLDS, "", id="its digest in capitals"),
        pytest.param(f"artifact:our rates  sha256:{A}", HOLDS, "", id="a name with a blank"),
        pytest.param(
            f"artifact:rates.csv sha256:{B}", FAILS, "artifact 'rates.csv' has changed since", id="an artifact changed"
        ),
        pytest.param(f"artifact:old.csv sha256:{A}", UNKNOWN, "artifact 'old.csv' is not there", id="no artifact"),
        pytest.param(
            f"artifact:page sha256:{A}",
            UNKNOWN,
            "artifact 'page' came from outside: fetch it anew",
            id="an artifact from outside",
        ),
        pytest.param(f"file:src/rates.csv sha256:{A}", HOLDS, "", id="a file as it was"),
        pytest.param(
            f"file:src/rates.csv sha256:{B}", FAILS, "file 'src/rates.csv' has changed since", id="a file changed"
        ),
        pytest.param(f"file:gone sha256:{A}", UNKNOWN, "file 'gone' is not there", id="a file gone"),
        pytest.param("constraint:threshold <= 3", HOLDS, "", id="a threshold that still is so"),
        pytest.param("constraint:threshold=3.0", HOLDS, "", id="the same number in another spelling"),
        pytest.param(
            "constraint:threshold < 3", FAILS, "'threshold' is '3' now, not < '3'", id="a threshold that moved"
        ),
        pytest.param("constraint:regions in north, south", HOLDS, "", id="every value that binds is looked at"),
        pytest.param(
            "constraint:regions not in south, west",
            FAILS,
            "'regions' is 'south' now, not not in 'south, west'",
            id="one of the values does not fit",
        ),
        pytest.param(
            "constraint:note < 3",
            UNKNOWN,
            "'note' is 'three' now, which cannot be compared with < '3'",
            id="a word is not less than a number",
        ),
        pytest.param("constraint:rate < 3", UNKNOWN, "no constraint 'rate' binds any more", id="no such constraint"),
        pytest.param("until 2026-11-16", HOLDS, "", id="the last day counts as a whole"),
        pytest.param("until 2026-11-15", FAILS, "it was good until 2026-11-15", id="the day after"),
        pytest.param("until 2026-11-16T12:00", HOLDS, "", id="the last moment, in UTC unless told"),
        pytest.param(
            "until 2026-11-16T12:59+01:00", FAILS, "it was good until 2026-11-16 12:59:00+01:00", id="in a zone"
        ),
        pytest.param("from 2026-11-16", HOLDS, "", id="the first day"),
        pytest.param("from 2026-11-17", FAILS, "it is good from 2026-11-17", id="the day before"),
        pytest.param("until 9999-12-31", HOLDS, "", id="the last day that there is"),
        pytest.param("check:yes", HOLDS, "", id="a check that says yes"),
        pytest.param("check:no", FAILS, "check 'no' says no: 0.21 became 0.23", id="a check that says no, and why"),
        pytest.param("check:plain-no", FAILS, "check 'plain-no' says no", id="a check that only says no"),
        pytest.param(
            "check:broken",
            UNKNOWN,
            "check 'broken' failed: ConnectionError: the bank is closed",
            id="a check that raises is not a yes",
        ),
        pytest.param(
            "check:other", UNKNOWN, "no check 'other' is registered here", id="a check that nobody registered"
        ),
        pytest.param(
            "artifact:x sha256:12",
            UNKNOWN,
            "'artifact:x sha256:12' is not artifact:NAME sha256:HEX",
            id="half a digest",
        ),
        pytest.param(f"file: sha256:{A}", UNKNOWN, f"'file: sha256:{A}' is not file:PATH sha256:HEX", id="no path"),
        pytest.param("constraint:x", UNKNOWN, "'constraint:x' is not constraint:KEY OP VALUE", id="no operator"),
        pytest.param("check:", UNKNOWN, "'check:' is not check:NAME", id="no name of a check"),
        pytest.param(
            "until 2026-13-45",
            UNKNOWN,
            "'until 2026-13-45' has no date of the calendar; write it as 2026-12-31",
            id="no such day",
        ),
    ],
)
def test_what_can_be_checked_is_checked(condition: str, verdict: ConditionVerdict, reason: str) -> None:
    """Each form is held against the world as it was found, and says why it does not hold."""
    assert ConditionFinding(condition, verdict, reason) == evaluate(condition, KNOWN)


@pytest.mark.parametrize(
    "condition",
    [
        "rates stay as they are",
        "until the audit is over",
        "until 3 people agree",
        "from here on",
        "",
        f"artifact:{'x' * 9000} sha256:{A}",
    ],
)
def test_everything_else_is_prose(condition: str) -> None:
    """It is left standing, and said to be unchecked."""
    found = evaluate(condition, KNOWN)

    assert (UNCHECKED, True) == (found.verdict, found.stands)


def test_where_checks_cannot_be_made_they_are_unchecked() -> None:
    """Whoever only looks at a session has no checks at hand, and claims nothing about them."""
    assert UNCHECKED == evaluate("check:yes", KnownWorld(at=NOON, checks=None)).verdict


@pytest.mark.parametrize(("verdict", "stands"), [(HOLDS, True), (UNCHECKED, True), (FAILS, False), (UNKNOWN, False)])
def test_only_what_holds_and_prose_leave_a_decision_standing(verdict: ConditionVerdict, stands: bool) -> None:  # noqa: FBT001 - a case
    """What cannot be told is not taken for good."""
    assert stands == ConditionFinding("c", verdict).stands


def test_what_has_to_be_looked_at_is_found_once() -> None:
    """Files, artifacts and checks that several conditions name are looked at once."""
    conditions = [f"file:a sha256:{A}", f"file:a sha256:{B}", f"artifact:b sha256:{A}", "check:c", "check:c", "prose"]

    assert (["a"], ["b"], ["c"]) == (
        list(find_files(conditions)),
        list(find_artifacts(conditions)),
        list(find_checks(conditions)),
    )


def test_a_clock_that_jumps_back_makes_it_good_again() -> None:
    """What a date says depends on the time it is asked at, and on nothing else: there is no memory to go wrong."""
    clock = FrozenClock(NOON)
    found = []
    for jump in (timedelta(0), timedelta(days=30), timedelta(days=-60), timedelta(days=29)):
        clock.tick(jump)
        found.append(evaluate("until 2026-11-20", KnownWorld(at=clock.now())).verdict)

    assert [HOLDS, FAILS, HOLDS, HOLDS] == found


words = st.text(max_size=80)
prefixes = st.sampled_from(
    ["artifact:", "file:", "constraint:", "until ", "from ", "check:", "constraint:threshold <= ", ""]
)
moments = st.datetimes(timezones=st.just(UTC))


@given(prefix=prefixes, rest=words, at=moments)
@example(prefix="artifact:", rest="a" + " " * 8000, at=NOON)
@example(prefix="until ", rest="0001-01-01T00:00+14:00", at=NOON)
@example(prefix="from ", rest="9999-12-31T23:59:59-23:59", at=datetime.max.replace(tzinfo=UTC))
def test_whatever_somebody_wrote_gets_an_answer(prefix: str, rest: str, at: datetime) -> None:
    """No text and no clock makes it raise, and whatever does not stand says why."""
    found = evaluate(prefix + rest, KnownWorld(at=at, constraints={"threshold": (rest,)}))

    assert found.stands or found.reason


@given(day=st.dates(), at=st.datetimes(timezones=st.just(UTC)))
def test_a_day_divides_time_into_two(day: object, at: datetime) -> None:
    """Before it only `until` holds, after it only `from`, and on the day itself both do."""
    known = KnownWorld(at=at)
    holds = [evaluate(f"{word} {day}", known).verdict is HOLDS for word in ("until", "from")]

    assert [str(at.date()) <= str(day), str(at.date()) >= str(day)] == holds
