"""Distances between distributions, and whether a difference can be chance. Plain formulas over counts; no I/O.

Logarithms of divergences have base 2, so they lie between 0 and 1.
"""

from collections.abc import Mapping, Sequence
from math import erfc, exp, lgamma, log, log2, sqrt
from typing import Final

_FEW: Final = 1e-12
_MANY: Final = 300


def jensen_shannon(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Return the Jensen-Shannon divergence of two distributions: 0 if they are the same, 1 if they share nothing."""
    first, second = sum(one.values()), sum(other.values())
    if not first or not second:
        return 0.0 if first == second else 1.0
    found = 0.0
    for key in one.keys() | other.keys():
        p, q = one.get(key, 0) / first, other.get(key, 0) / second
        mean = (p + q) / 2
        found += (p * log2(p / mean) if p else 0.0) / 2 + (q * log2(q / mean) if q else 0.0) / 2
    return min(1.0, max(0.0, found))


def cramers_v(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Return Cramér's V of a table of two rows: how far the counts depend on which row they are in."""
    first, second = sum(one.values()), sum(other.values())
    both = first + second
    if not first or not second:
        return 0.0 if first == second else 1.0
    found = 0.0
    for key in one.keys() | other.keys():
        column = one.get(key, 0) + other.get(key, 0)
        for row, seen in ((first, one.get(key, 0)), (second, other.get(key, 0))):
            expected = row * column / both
            found += (seen - expected) ** 2 / expected if expected else 0.0
    return min(1.0, sqrt(found / both))


def mutual_information(joint: Mapping[tuple[str, str], int]) -> float | None:
    """Return the normalised mutual information of two names; None if one of them is always the same."""
    whole = sum(joint.values())
    rows: dict[str, int] = {}
    columns: dict[str, int] = {}
    for (row, column), count in joint.items():
        rows[row] = rows.get(row, 0) + count
        columns[column] = columns.get(column, 0) + count
    entropies = [-sum(n / whole * log2(n / whole) for n in part.values() if n) for part in (rows, columns) if whole]
    if len(entropies) != len((rows, columns)) or min(entropies) <= _FEW:
        return None
    shared = sum(n / whole * log2(n * whole / (rows[row] * columns[column])) for (row, column), n in joint.items() if n)
    return max(0.0, shared) / sqrt(entropies[0] * entropies[1])


def edit_distance(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the Levenshtein distance of two sequences, divided by the longer one's length."""
    if not one and not other:
        return 0.0
    row = [*range(len(other) + 1)]
    for number, left in enumerate(one, 1):
        corner, row[0] = row[0], number
        for column, right in enumerate(other, 1):
            corner, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, corner + (left != right))
    return float(row[-1]) / max(len(one), len(other))


def chance_of_rates(one: int, of_one: int, other: int, of_other: int) -> float:
    """Return how likely two rates differ at least as much by chance, to either side.

    Fisher's exact test; for large samples its normal approximation.
    """
    if not of_one or not of_other:
        return 1.0
    whole, marked = of_one + of_other, one + other
    if min(of_one, of_other) > _MANY:
        spread = sqrt(marked * (whole - marked) / whole * (1 / of_one + 1 / of_other) / whole)
        return erfc(abs(one / of_one - other / of_other) / spread / sqrt(2)) if spread else 1.0
    least, most = max(0, marked - of_other), min(marked, of_one)
    base = -_ways(whole, of_one)

    def weight(k: int) -> float:
        return _ways(marked, k) + _ways(whole - marked, of_one - k) + base

    seen = weight(one) + 1e-9
    return min(1.0, sum(exp(found) for k in range(least, most + 1) if (found := weight(k)) <= seen))


def _ways(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def chance_of_order(one: Mapping[int, int], other: Mapping[int, int]) -> tuple[float, float]:
    """Return how likely two samples in ordered bins are of one kind, and how often the second is the greater one.

    A rank-sum test (Mann and Whitney) with the correction for ties, by its normal approximation.
    """
    first, second = sum(one.values()), sum(other.values())
    whole = first + second
    if not first or not second:
        return 1.0, 0.5
    below = wins = 0.0
    ties = 0
    for key in sorted(one.keys() | other.keys()):
        here, there = one.get(key, 0), other.get(key, 0)
        wins += there * (below + here / 2)
        below += here
        ties += (here + there) ** 3 - (here + there)
    spread = first * second / 12 * (whole + 1 - ties / (whole * (whole - 1)))
    share = wins / (first * second)
    if spread <= 0:
        return 1.0, share
    return erfc(abs(wins - first * second / 2) / sqrt(2 * spread)), share


def chance_of_mixture(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Return how likely two samples of categories are of one kind: a G-test, by Wilson and Hilferty's approximation.

    Categories that are seen fewer than five times together are one category.
    """
    pooled: dict[str, list[int]] = {}
    for place, sample in enumerate((one, other)):
        for key, count in sample.items():
            name = key if one.get(key, 0) + other.get(key, 0) >= _FEWEST else ""
            pooled.setdefault(name, [0, 0])[place] += count
    first, second = sum(one.values()), sum(other.values())
    whole = first + second
    if not first or not second or len(pooled) < len(("one", "other")):
        return 1.0
    found = 0.0
    for here, there in pooled.values():
        for row, seen in ((first, here), (second, there)):
            expected = row * (here + there) / whole
            found += 2 * seen * log(seen / expected) if seen else 0.0
    return _chance_of_square(found, len(pooled) - 1)


_FEWEST: Final = 5


def _chance_of_square(value: float, freedom: int) -> float:
    """Return how likely a chi-square of so many degrees of freedom is at least this large."""
    if value <= 0:
        return 1.0
    if freedom == 1:
        return erfc(sqrt(value / 2))
    width = 2 / (9 * freedom)
    z = ((value / freedom) ** (1 / 3) - (1 - width)) / sqrt(width)
    return erfc(z / sqrt(2)) / 2


_STUDENT: Final = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365}  # by the number of groups


def jackknife(value: float, without: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval in which a value lies with 95 %, from the values without one group each; None for too few."""
    groups = len(without)
    if groups not in _STUDENT:
        return None
    mean = sum(without) / groups
    error = sqrt((groups - 1) / groups * sum((each - mean) ** 2 for each in without))
    return max(0.0, value - _STUDENT[groups] * error), min(1.0, value + _STUDENT[groups] * error)
