"""Distances and chances, against values that are known."""

import pytest

from batonpass.drift import statistics as stats


def test_distances_of_distributions() -> None:
    """The same is 0, nothing in common is 1, and a half is known."""
    assert (0.0, 1.0) == (stats.jensen_shannon({"a": 3}, {"a": 9}), stats.jensen_shannon({"a": 3}, {"b": 9}))
    assert pytest.approx(0.311278, abs=1e-6) == stats.jensen_shannon({"a": 1, "b": 1}, {"a": 1})
    assert (0.0, 1.0) == (stats.jensen_shannon({}, {}), stats.jensen_shannon({"a": 1}, {}))
    assert (0.0, 1.0) == (stats.cramers_v({"a": 5, "b": 5}, {"a": 50, "b": 50}), stats.cramers_v({"a": 9}, {"b": 9}))
    assert (0.0, 1.0) == (stats.cramers_v({}, {}), stats.cramers_v({"a": 1}, {}))


def test_sequences() -> None:
    """Kitten and sitting differ in three of seven letters."""
    assert (3 / 7, 0.0, 1.0) == (
        stats.edit_distance("kitten", "sitting"),
        stats.edit_distance("", ""),
        stats.edit_distance("a", ""),
    )


def test_roles() -> None:
    """Agents with one kind each are one with their kinds; if all do all, nothing is shared; one alone has no role."""
    apart = {("a", "x"): 5, ("b", "y"): 5}
    mixed = {("a", "x"): 5, ("a", "y"): 5, ("b", "x"): 5, ("b", "y"): 5}
    found = [stats.mutual_information(joint) for joint in (apart, mixed, {("a", "x"): 5}, {})]

    assert [pytest.approx(1.0), pytest.approx(0.0), None, None] == found


def test_rates() -> None:
    """Fisher's tea lady, the extreme of twenty against twenty, and large samples."""
    assert pytest.approx(0.485714, abs=1e-5) == stats.chance_of_rates(3, 4, 1, 4)
    assert pytest.approx(2 / 137846528820, rel=1e-6) == stats.chance_of_rates(20, 20, 0, 20)
    assert (1.0, 1.0) == (stats.chance_of_rates(0, 0, 3, 4), stats.chance_of_rates(0, 400, 0, 400))
    assert pytest.approx(0.04396, abs=1e-5) == stats.chance_of_rates(500, 1000, 545, 1000)


def test_orders() -> None:
    """Samples that do not overlap hardly are of one kind; equal ones are."""
    apart, more = stats.chance_of_order({1: 20}, {5: 20})
    same, half = stats.chance_of_order({1: 10, 2: 10}, {1: 10, 2: 10})

    assert (True, 1.0, 0.5) == (apart < 1e-8, more, half)
    assert pytest.approx(1.0) == same
    assert ((1.0, 0.5), (1.0, 0.5)) == (stats.chance_of_order({}, {1: 1}), stats.chance_of_order({1: 5}, {1: 5}))


def test_mixtures() -> None:
    """A chi-square of 20 with one degree of freedom is known; rare categories are one."""
    assert pytest.approx(7.744e-6, rel=1e-3) == stats._chance_of_square(20.0, 1)
    assert pytest.approx(1.25e-3, rel=0.1) == stats._chance_of_square(20.0, 5)
    assert 1.0 == stats.chance_of_mixture({"a": 10}, {"a": 10})
    assert 1.0 == stats.chance_of_mixture({f"{n}": 1 for n in range(20)}, {f"other {n}": 1 for n in range(20)})
    assert stats.chance_of_mixture({"a": 40, "b": 2}, {"a": 2, "b": 40}) < 1e-10
    assert 1.0 == stats._chance_of_square(0.0, 3)


def test_intervals() -> None:
    """Without spread the interval is the value; with too few groups there is none."""
    assert (0.9, 0.9) == stats.jackknife(0.9, [0.9] * 4)
    assert stats.jackknife(0.9, [0.9]) is None
    low, high = stats.jackknife(0.8, [0.7, 0.8, 0.9, 0.8]) or (0, 0)
    assert (True, True, True) == (low < 0.8 < high, low >= 0, high <= 1)
