"""Metrics in the text format of Prometheus, and in OpenMetrics, which grew out of it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from batonpass.telemetry.conventions import DURATION_BOUNDS
from batonpass.telemetry.metric_rollup import MetricRollup

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS: Final = "application/openmetrics-text"
OPEN_METRICS_TYPE: Final = f"{OPEN_METRICS}; version=1.0.0; charset=utf-8"
_COUNTED: Final = re.compile(r"^(# (?:HELP|TYPE) \w+)_total ", re.MULTILINE)
_MILLION: Final = 1_000_000
_DURATION: Final = "gen_ai_client_operation_duration_seconds"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels = Mapping[str, str]
Sample = tuple[Labels, float | int]


def metric_text(rollup: MetricRollup, *, waiting: Mapping[str, int], last: int) -> str:
    """Return the metrics of a ledger. `waiting` counts handoffs by state; `last` is the last position of the ledger."""
    use = sorted(rollup.use.items())
    return "".join(
        (
            *_metric(
                "batonpass_receipts_total",
                "counter",
                "Receipts, by kind.",
                (({"kind": kind}, count) for kind, count in sorted(rollup.receipts.items())),
            ),
            *_metric(
                "batonpass_operations_total",
                "counter",
                "Runs, handoffs and calls that are over, by agent, tool and outcome.",
                (
                    (
                        {
                            "gen_ai_operation_name": one.operation,
                            "gen_ai_agent_name": one.agent,
                            "gen_ai_tool_name": one.tool,
                            "outcome": one.outcome,
                        },
                        one.count,
                    )
                    for one in rollup.operations.values()
                ),
            ),
            *_durations(rollup),
            *_metric(
                "batonpass_tokens_total",
                "counter",
                "Tokens of models, by agent, of runs that are over.",
                (({"gen_ai_agent_name": agent}, used.tokens) for agent, used in use),
            ),
            *_metric(
                "batonpass_cost_total",
                "counter",
                "Cost, by agent, of runs that are over, in the unit of their budgets.",
                (({"gen_ai_agent_name": agent}, used.cost / _MILLION) for agent, used in use),
            ),
            *_metric(
                "batonpass_handoffs",
                "gauge",
                "Handoffs that are not over, by state; more than 1000 of a state count as 1000.",
                (({"state": state}, count) for state, count in sorted(waiting.items())),
            ),
            *_metric("batonpass_ledger_position", "gauge", "The last position of the ledger.", [({}, last)]),
            *_metric(
                "batonpass_metrics_position",
                "gauge",
                "The position that these metrics go up to.",
                [({}, rollup.position)],
            ),
        )
    )


def open_metrics_text(text: str) -> str:
    """Return the same metrics in OpenMetrics: a counter is described without its `_total`, and the end is marked."""
    return _COUNTED.sub(r"\1 ", text) + "# EOF\n"


def _durations(rollup: MetricRollup) -> Iterator[str]:
    yield f"# HELP {_DURATION} How long runs, handoffs and calls took.\n# TYPE {_DURATION} histogram\n"
    bounds = [*map(str, DURATION_BOUNDS), "+Inf"]
    for one in rollup.durations.values():
        labels = {"gen_ai_operation_name": one.operation, "gen_ai_agent_name": one.agent}
        for bound, count in zip(bounds, one.up_to(), strict=True):
            yield _sample(f"{_DURATION}_bucket", {**labels, "le": bound}, count)
        yield _sample(f"{_DURATION}_sum", labels, one.microseconds / _MILLION)
        yield _sample(f"{_DURATION}_count", labels, sum(one.counts))


def _metric(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
    for labels, value in samples:
        yield _sample(name, labels, value)


def _sample(name: str, labels: Labels, value: float) -> str:
    said = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
    return f"{name}{{{said}}} {value}\n" if said else f"{name} {value}\n"
