"""What acts cost, beside what they cost when last landed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.acts import InProcess, Subject, subjects
from bench.cost import Cost
from bench.cost_table import compare_costs, write_costs
from bench.quick import LANDED, read_landed, write_landed

MACHINE = {
    "processor": "A",
    "cores": 2,
    "kernel": "6",
    "filesystem": "ext4",
    "python": "3.11",
    "sqlite": "3",
    "load": 1,
}


def a_cost(act: str = "handoff", *, cpu: float = 0.004, yardstick: float = 0.001, calls: float | None = 1000) -> Cost:
    return Cost(act=act, wall=0.005, cpu=cpu, raw=0.0005, yardstick=yardstick, calls=calls, written=None)


def cells(costs: list[Cost], landed: list[Cost]) -> list[str]:
    _, *lines = compare_costs(costs, {cost.act: cost for cost in landed})
    return lines[0].split()


def test_counts_are_compared_as_they_are() -> None:
    """Half as many calls are 0.50 of what landed."""
    assert ["500", "0.50"] == cells([a_cost(calls=500)], [a_cost(calls=1000)])[-2:]


def test_processor_time_is_compared_by_what_the_processor_could_do() -> None:
    """Twice the processor time, while a fixed piece of work took twice as long as well, is no change."""
    busy = a_cost(cpu=0.008, yardstick=0.002)

    assert "8 ms 1.00" in " ".join(cells([busy], [a_cost()]))


def test_wall_time_is_compared_by_what_the_disk_could_do() -> None:
    """Twice as long while a sync took twice as long is no change; of what writes nothing, no disk can say that."""
    slow, quick = (replace(a_cost(), wall=wall, raw=wall / 10, written=4096) for wall in (0.010, 0.005))

    assert "10 ms 1.00 10 ×" in " ".join(cells([slow], [quick]))
    assert "10 ms 4 ms" in " ".join(cells([replace(slow, written=0)], [quick]))


def test_an_act_that_never_landed_has_no_ratios() -> None:
    """A new act is told without being compared with anything."""
    assert ["handoff", "5", "ms", "4", "ms", "1,000"] == cells([a_cost()], [a_cost("another")])


def test_what_is_not_measured_is_left_empty() -> None:
    """No figure is not the figure 0."""
    (line,) = write_costs([a_cost(calls=None)])[2:]

    assert "0" not in line.partition("4 ms")[2]


def test_keeping_some_acts_leaves_the_others(tmp_path: Path) -> None:
    """Who measured one act lands that one only."""
    path = tmp_path / "landed.json"
    path.write_text(write_landed(read_landed(path), [a_cost("a"), a_cost("b")], MACHINE), encoding="utf-8")
    path.write_text(write_landed(read_landed(path), [a_cost("b", calls=7)], MACHINE), encoding="utf-8")

    assert {"a": 1000, "b": 7} == {act: cost.calls for act, cost in read_landed(path).costs.items()}


def test_a_figure_that_is_not_known_any_more_is_passed_over(tmp_path: Path) -> None:
    """A file that landed before a figure was dropped can be read."""
    path = tmp_path / "landed.json"
    document = json.loads(write_landed(read_landed(path), [a_cost()], MACHINE))
    document["acts"]["handoff"]["forks"] = 3
    path.write_text(json.dumps(document), encoding="utf-8")

    assert [a_cost()] == list(read_landed(path).costs.values())


def test_what_landed_is_what_is_measured() -> None:
    """The file names the acts that there are, and no others: a renamed one would be compared with nothing."""
    assert sorted(subject.name for subject in subjects()) == sorted(read_landed(LANDED).costs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "subject",
    [pytest.param(subject, id=subject.name) for subject in subjects() if isinstance(subject, InProcess)],
)
def test_an_act_can_be_measured(subject: Subject, tmp_path: Path) -> None:
    """Every act still runs as the product's names are now, and does something."""
    cost = subject.cost(tmp_path, 1)

    assert cost is not None
    assert (True, True) == (cost.cpu > 0, bool(cost.calls))
