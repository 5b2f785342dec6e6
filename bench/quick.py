"""The quick form, for people who change the hot path: what each act costs now, beside what it cost when last landed."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.acts import Subject, subjects
from bench.cost import Cost
from bench.cost_table import compare_costs
from bench.effort import Effort
from bench.machine import describe_machine
from bench.table import Row, skipped

LANDED: Final = Path(__file__).resolve().parent / "results" / "landed.json"

_TURNS: Final = 6
_FULL_TURNS: Final = 20
_MACHINE: Final = ("processor", "cores", "kernel", "filesystem", "python", "sqlite")


def run_quick(scratch: Path, *, named: Sequence[str] = (), keep: bool = False) -> None:
    """Print what acts cost and the ratios to what has landed; those whose name has one of these words, or all."""
    landed = read_landed(LANDED)
    costs: list[Cost] = []
    for subject in subjects():
        if not named or any(word in subject.name for word in named):
            print(f"{subject.name} …", flush=True)
            cost = _cost(subject, scratch, _TURNS)
            costs += [] if cost is None else [cost]
    machine = describe_machine(scratch)
    print()
    print(*compare_costs(costs, landed.costs), sep="\n")
    print()
    print(*_explanations(landed, machine), sep="\n")
    if keep:
        LANDED.write_text(write_landed(landed, costs, machine), encoding="utf-8")
        print(f"Kept in bench/results/{LANDED.name}")


def measure(scratch: Path, _: Effort) -> Sequence[Cost | Row]:
    """Measure all acts, for the results of a whole run."""
    costs = {subject.name: _cost(subject, scratch, _FULL_TURNS) for subject in subjects()}
    return [skipped(name, "install what it needs") if cost is None else cost for name, cost in costs.items()]


class Landed:
    """What the file of what has landed says."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        known = {field.name for field in fields(Cost)}
        self.date: str | None = document.get("date")
        self.machine: dict[str, Any] = document.get("machine", {})
        self.acts: dict[str, dict[str, Any]] = document.get("acts", {})
        self.costs = {
            act: Cost(act=act, **{name: value for name, value in figures.items() if name in known})
            for act, figures in self.acts.items()
        }


def read_landed(path: Path) -> Landed:
    """Read what has landed; nothing has where there is no file."""
    return Landed(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})


def write_landed(landed: Landed, costs: Sequence[Cost], machine: Mapping[str, Any]) -> str:
    """Return the file with these costs in the place of older ones; acts that were not measured keep theirs."""
    acts = {**landed.acts, **{cost.act: _figures(cost) for cost in costs}}
    document = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {name: machine[name] for name in _MACHINE},
        "acts": acts,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _cost(subject: Subject, scratch: Path, turns: int) -> Cost | None:
    with tempfile.TemporaryDirectory(prefix="batonpass-bench-", dir=scratch) as folder:
        return subject.cost(Path(folder), turns)


def _figures(cost: Cost) -> dict[str, float | None]:
    # Four digits: a file whose every line changes with each run would say nothing in a review.
    return {
        name: None if value is None else float(f"{value:.4g}") for name, value in asdict(cost).items() if name != "act"
    }


def _explanations(landed: Landed, machine: Mapping[str, Any]) -> Iterator[str]:
    yield f"Load {machine['load']}. Beside each figure: its ratio to what landed {landed.date or '(nothing has)'}."
    yield "Times are compared by a raw append+fsync, CPU by a fixed piece of work, both measured in the same turns."
    differing = [name for name in ("processor", "cores") if landed.machine.get(name, machine[name]) != machine[name]]
    if differing:
        yield f"That was on another machine ({', '.join(differing)} differ): compare the counts, not the times."
