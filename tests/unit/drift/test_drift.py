"""Drift: no alarm while nothing changes, and each change named in words and in alarm soon after."""

import re
import sys
from datetime import timedelta
from random import Random

import pytest

from batonpass.drift import counts
from batonpass.drift.change import ChangeTopic, find_changes
from batonpass.drift.closed_handoff import DIMENSIONS
from batonpass.drift.counts import Counts, summed
from batonpass.drift.drift import AgentDrift, DayCounts, DaySpan, DriftWindow, find_drift
from batonpass.drift.report.drift_text import side_by_side
from batonpass.drift.shape_of_text import log_bin, shape_in_words, shapes_in, vector_of
from batonpass.drift.stability import stability
from batonpass.model.base.ids import AgentId
from tests.unit.drift.fleets import CHANGES, MONDAY, TOPICS, a_handoff, question, weeks_of_a_fleet


@pytest.mark.slow
def test_weeks_in_which_nothing_changes_raise_no_alarm() -> None:
    """Eight weeks of twenty fleets: no alarm, and no change is named either."""
    found = [find_drift(weeks_of_a_fleet(seed), question()) for seed in range(20)]

    named = [change.sentence for report in found for one in report.agents for w in one.windows for change in w.changes]
    windows = sum(len(one.windows) for report in found for one in report.agents)
    assert ([], []) == ([report.alarmed for report in found if report.alarmed], named)
    assert windows > 20 * 3 * 4  # there was something to be wrong about


def after_the_change(drift: AgentDrift) -> tuple[DriftWindow, ...]:
    """Return the windows from the one in which the change came."""
    since = MONDAY + timedelta(weeks=4)
    return tuple(window for window in drift.windows if window.span.last >= since)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_named_within_two_windows_and_in_alarm_within_four(change: str) -> None:
    """Of six fleets, only the agent that changed is in alarm."""
    for seed in range(6):
        report = find_drift(weeks_of_a_fleet(seed, change=change, a_week=30, weeks=10), question(10))
        (drift,) = (one for one in report.agents if one.agent == "analyst")
        windows = after_the_change(drift)
        named = {found.topic for window in windows[:2] for found in window.changes}
        alarmed = [window for window in windows[:4] if window.alarms]

        assert (True, ["analyst"]) == (bool(named & TOPICS[change]), [one.agent for one in report.alarmed]), seed
        assert alarmed, seed
        assert not any(window.alarms for window in drift.windows if window not in windows), seed


@pytest.mark.slow
def test_an_agent_that_does_nearly_everything_else_is_in_alarm_by_its_index() -> None:
    """Another model that says nothing of itself: other words and orders, other errors, reports twice as long."""
    for seed in range(6):
        report = find_drift(weeks_of_a_fleet(seed, change="a silent model swap", a_week=30, weeks=10), question(10))
        (drift,) = (one for one in report.agents if one.agent == "analyst")
        causes = {alarm.cause for window in after_the_change(drift)[:4] for alarm in window.alarms}

        assert "index" in causes, seed


def test_errors_are_compared_with_errors() -> None:
    """Calls that went well hide no new error; a window with hardly any errors says nothing of their mixture."""

    def errors(before: dict[str, int], after: dict[str, int]) -> float | None:
        one, other = ({"closed": {"n": 40}, "error": {"": 2_000, **codes}} for codes in (before, after))
        return stability(one, other).dimensions.get("errors")

    half = {"timeout": 5, "not_found": 5}
    assert (1.0, 0.0, 0.0) == (errors(half, half), errors({"timeout": 5}, {"rejected": 5}), errors({}, {"rejected": 5}))
    assert (1 - 0.311278) / 2 == pytest.approx(errors({"timeout": 5}, half), abs=1e-6)
    assert (None, None) == (errors(half, {}), errors(half, {"rejected": 4}))


@pytest.mark.parametrize("words", [20, 60, 150])
def test_reports_in_other_words_are_not_alike(words: int) -> None:
    """However long they are: words that share a place of the vector by chance do not make two vocabularies one."""
    chance = Random(words)
    usual, other = ([f"{name}{number}" for number in range(3 * words)] for name in ("ledger", "delight"))

    def window(known: list[str], number: int) -> Counts:
        said: Counts = {"closed": {"n": number}, "said": {"1 n": number}}
        for _ in range(number):
            vector = vector_of(chance.sample(known, words), DIMENSIONS)
            length = sum(count * count for count in vector.values()) ** 0.5
            counts.add(said, {"said": {f"1 {place}": round(1000 * count / length) for place, count in vector.items()}})
        return said

    baseline = window(usual, 45)
    alike, unlike = (stability(baseline, window(known, 24)).dimensions for known in (usual, other))

    assert alike["wording of reports"] > 0.9
    assert unlike["wording of reports"] < 0.5


def a_window(chance: Random, number: int = 60, change: str | None = None) -> Counts:
    """Return some handoffs together."""
    return summed(a_handoff(chance, change) for _ in range(number))


def test_a_constraint_that_took_the_place_of_another_is_said_as_one() -> None:
    """Both values stand in one sentence."""
    chance = Random(1)

    (found,) = find_changes(a_window(chance), a_window(chance, change="a threshold change"))

    assert "constraint threshold >= 3.0 sigma → >= 2.5 sigma (100% of handoffs)" == found.sentence


@pytest.mark.parametrize(
    ("aspect", "before", "after", "sentence"),
    [
        ("duration", 20_000, 50_000, "duration: about 19 s → 55 s"),
        ("duration", 50_000, 400_000, "duration: about 55 s → 7.3 min"),
        ("cost", 300_000, 1_200_000, "cost: about 0.31 → 1.2"),
        ("tokens", 8_000, 30_000, "cost: about 6,900 → 28,000 tokens"),
        ("size", 400, 1_500, "length of reports: about 430 → 1,700 bytes"),
    ],
)
def test_magnitudes_are_told_in_units_that_people_use(aspect: str, before: int, after: int, sentence: str) -> None:
    """Seconds and minutes, whole amounts of money; two digits, because bins have no sharp values."""
    held: list[Counts] = [{"closed": {"n": 60}, aspect: {str(log_bin(value)): 60}} for value in (before, after)]

    assert [sentence] == [change.sentence for change in find_changes(*held)]


def test_shapes_of_arguments_are_told_in_words() -> None:
    """A range of numbers, or a class of text with a range of lengths, instead of the number of a bin."""
    told = {
        shape: shape_in_words(shape)
        for given in (2.5, -3.0, 0.5, "src/a.py", "", [], [1, 2, 3], True, float("nan"))
        for shape in (next(shapes_in({"x": given})).removeprefix("x="),)
    }

    assert {
        "number.3": "2 to 2.8",
        "-number.4": "-2.8 to -4",
        "number.0": "0 to 1",
        "path.4": "path of 8 to 15 characters",
        "empty.0": "empty of no characters",
        "list.0": "list of no items",
        "list.2": "list of 2 to 3 items",
        "true": "true",
        "number.odd": "number.odd",
    } == told


@pytest.mark.parametrize("given", [sys.float_info.max, 10**400, -sys.float_info.max])
def test_the_largest_numbers_are_told_too(given: float) -> None:
    """Agents choose their arguments: the largest float, which often means "no limit", stops no report."""
    shape = next(shapes_in({"x": given})).removeprefix("x=")
    ours, theirs = (a_window(Random(seed)) for seed in (1, 2))
    ours["param"], theirs["param"] = {"run.x=number.0": 60}, {f"run.x={shape}": 60}

    (found,) = (one for one in find_changes(ours, theirs) if one.topic is ChangeTopic.ARGUMENTS)

    assert "1.3e+308 and beyond" == shape_in_words(shape).removeprefix("-")
    assert shape_in_words(shape) in found.sentence


def test_side_by_side_names_only_what_is_frequent() -> None:
    """Files of which each task has another one are counted, not listed."""
    days = weeks_of_a_fleet(1, weeks=4, a_week=40)
    for number, day in enumerate(days):
        day.counts["used"] = {f"read:data/{number}-{one}.csv": 1 for one in range(counts.closed(day.counts))}
    (drift,) = (one for one in find_drift(days, question(4)).agents if one.agent == "analyst")
    rows = {row[0]: row[1:] for row in side_by_side(drift, drift.windows[-1])}

    assert all(re.fullmatch(r"\d+ different, each in \d% or less", told) for told in rows["scope used"])
    assert ("read:data/** 100%, write:reports/** 100%",) * 2 == rows["scope granted"]


def test_side_by_side_shows_what_is_new_before_what_is_as_ever() -> None:
    """A fourth tool is not one more."""
    days = weeks_of_a_fleet(1, weeks=8, a_week=40, change="a prompt change")
    (drift,) = (one for one in find_drift(days, question()).agents if one.agent == "analyst")
    rows = {row[0]: row[1:] for row in side_by_side(drift, drift.windows[-1])}

    assert ("summarise" in rows["tools"][0], "summarise" in rows["tools"][1]) == (False, True)


def test_the_index_of_the_same_handoffs_is_one() -> None:
    """Whatever is counted: the same counts are as stable as can be."""
    held = a_window(Random(2))
    held["standing"] = {"verified": 60}
    held["confidence"] = {"9 verified": 30, "9 sum": 30_000}
    held["error"] = {"": 150, "timeout": 6}

    found = stability(held, held, roles=1.0)

    assert (1.0, 1.0) == (found.value, round(found.coverage, 9))


def test_what_is_not_known_is_left_out_and_never_counts_as_stable() -> None:
    """With two dimensions of twelve, the index is their mean by weight, and the coverage says so."""
    held: Counts = {"closed": {"n": 20}, "load": {"attempts": 20}, "agreed": {"n": 20}}
    worse: Counts = {"closed": {"n": 20}, "load": {"attempts": 40}, "agreed": {"n": 10}}

    found = stability(held, worse)

    assert {"agreement": 0.5, "handoffs": 0.5, "overrides": 1.0} == found.dimensions
    assert (0.25 * 0.5 + 0.20 * 1.0) / 0.45 == pytest.approx(found.value)
    assert 0.25 * 2 / 3 + 0.20 / 3 == pytest.approx(found.coverage)


def days_of(handoffs: list[int], config: str = "", *, start: int = 0) -> list[DayCounts]:
    """Return one day for each number of closed handoffs."""
    chance = Random(3)
    return [
        DayCounts(
            agent=AgentId("analyst"),
            task_kind="analysis",
            config=config,
            day=MONDAY + timedelta(days=start + number),
            counts={"config": {f"model: {config}": closed}} | a_window(chance, closed),
        )
        for number, closed in enumerate(handoffs)
        if closed
    ]


def test_a_window_with_too_few_handoffs_goes_on_until_there_are_enough() -> None:
    """Twenty make a window; what is left at the end waits."""
    days = days_of([40, *[0] * 6, 12, *[0] * 6, 12, *[0] * 6, 5])

    (drift,) = find_drift(days, question(4)).agents

    spans = [(window.span.words, window.closed) for window in drift.windows]
    assert ("2026-03-02 to 2026-03-08", [("2026-03-09 to 2026-03-22", 24)], 5) == (
        drift.baseline.words,
        spans,
        drift.pending,
    )


def test_too_few_handoffs_for_a_baseline_are_said_to_be_so() -> None:
    """Nineteen closed handoffs are no baseline."""
    report = find_drift(days_of([19]), question(4))

    assert ((), {"analyst · analysis": 19}) == (report.agents, dict(report.scarce))


def test_another_configuration_begins_a_new_baseline_and_is_shown() -> None:
    """The windows of the new configuration are compared with its own beginning."""
    days = [*days_of([40] * 14, "m1"), *days_of([40] * 14, "m2", start=14)]

    first, second = sorted(find_drift(days, question(4)).agents, key=lambda one: one.baseline.first)

    assert (None, "m2", "2026-03-16 to 2026-03-22") == (first.replaces, second.config, second.baseline.words)
    assert second.replaces is not None
    assert second.replaces.sentence.startswith("configuration: model: m1 → model: m2; a new baseline begins")
    assert ((), ()) == (first.alarms, second.alarms)


def test_a_baseline_can_be_chosen() -> None:
    """All windows are compared with the days that were named."""
    days = weeks_of_a_fleet(4, change="a threshold change", a_week=30)
    chosen = DaySpan(first=MONDAY + timedelta(weeks=5), last=MONDAY + timedelta(weeks=7))
    asked = question()

    (drift,) = find_drift(days, type(asked)(span=asked.span, baseline=chosen, agent=AgentId("analyst"))).agents

    assert chosen == drift.baseline
    assert [ChangeTopic.CONSTRAINTS] == [change.topic for change in drift.windows[0].changes]
    assert [] == [change.topic for change in drift.windows[-1].changes]


def test_an_index_below_three_quarters_three_times_is_an_alarm() -> None:
    """Once or twice is none."""
    bad: Counts = {"closed": {"n": 40}, "load": {"attempts": 160}, "agreed": {"n": 10}, "human": {"overridden": 20}}
    good: Counts = {"closed": {"n": 40}, "load": {"attempts": 40}, "agreed": {"n": 40}}
    days = [
        DayCounts(agent=AgentId("a"), task_kind="k", config="", day=MONDAY + timedelta(weeks=week), counts=held)
        for week, held in enumerate((good, bad, bad, bad))
    ]

    (drift,) = find_drift(days, question(4)).agents

    causes = [[alarm.cause for alarm in window.alarms] for window in drift.windows]
    assert ([], [], True) == (causes[0], causes[1], "index" in causes[2])
    assert "Agent Stability Index" in drift.alarms[0].sentence


def test_counts_can_be_taken_away_again() -> None:
    """What was added and taken away leaves nothing."""
    chance = Random(5)
    held: Counts = {}
    parts = [a_handoff(chance) for _ in range(20)]
    for part in parts:
        counts.add(held, part)
    before = summed(parts)
    assert before == held
    for part in parts:
        counts.add(held, part, -1)

    assert {} == held
