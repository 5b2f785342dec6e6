"""Sends spans and metrics to a collector of OpenTelemetry, by OTLP over HTTP, with the exporters of its SDK.

Only this module imports the SDK, and only when something is sent. The exporters read all other settings (headers,
certificates, timeouts) from `OTEL_EXPORTER_OTLP_…`, as everywhere.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from batonpass.errors import MissingExtraError
from batonpass.errors.egress import CollectorError
from batonpass.model.base.ids import LedgerId
from batonpass.telemetry.conventions import DURATION, DURATION_BOUNDS, SCHEMA_URL, SCOPE
from batonpass.telemetry.metric_rollup import MetricRollup
from batonpass.telemetry.otlp_json import resource_facts
from batonpass.telemetry.span_record import SpanRecord, nanoseconds

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData
    from opentelemetry.sdk.trace import ReadableSpan

TRACES: Final = "/v1/traces"
METRICS: Final = "/v1/metrics"
_MILLION: Final = 1_000_000


class OtlpCollector:
    """A collector. `endpoint` is its address without the path; None leaves it to the environment."""

    def __init__(self, ledger: LedgerId, endpoint: str | None = None) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - needs the extra
                OTLPMetricExporter,
            )
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - as above
                OTLPSpanExporter,
            )
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - as above
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415 - as above
        except ModuleNotFoundError:
            raise MissingExtraError("OpenTelemetry", "telemetry") from None
        base = None if endpoint is None else endpoint.rstrip("/")
        self._spans = OTLPSpanExporter(None if base is None else base + TRACES)
        self._metrics = OTLPMetricExporter(None if base is None else base + METRICS)
        self._resource = Resource(dict(resource_facts(ledger)))
        self._scope = InstrumentationScope(SCOPE, _version(), SCHEMA_URL)
        parts = urlsplit(endpoint or "")
        # Never more of a URL than this: the rest is often a secret.
        at = f" at {parts.scheme}://{parts.hostname}:{parts.port}" if endpoint else ""
        self._where = f"the collector{at}"

    def send_spans(self, spans: Sequence[SpanRecord]) -> None:
        """Send spans. Raises `CollectorError` if they did not arrive for certain."""
        from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415 - as above

        if spans and self._spans.export([self._span(one) for one in spans]) is not SpanExportResult.SUCCESS:
            raise CollectorError(self._where)

    def send_metrics(self, rollup: MetricRollup, at: datetime | None = None) -> None:
        """Send the totals of the receipts so far. Raises `CollectorError` unless it is certain that they arrived."""
        from opentelemetry.sdk.metrics.export import MetricExportResult  # noqa: PLC0415 - as above

        data = self._data(rollup, nanoseconds(at or datetime.now(UTC)))
        if self._metrics.export(data) is not MetricExportResult.SUCCESS:
            raise CollectorError(self._where)

    def close(self) -> None:
        """Give back its connections."""
        self._spans.shutdown()  # type: ignore[no-untyped-call]
        self._metrics.shutdown()

    def _span(self, span: SpanRecord) -> "ReadableSpan":
        from opentelemetry.sdk.trace import Event, ReadableSpan  # noqa: PLC0415 - as above
        from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags  # noqa: PLC0415 - as above
        from opentelemetry.trace.status import Status, StatusCode  # noqa: PLC0415 - as above

        def place(trace: str, number: str) -> SpanContext:
            return SpanContext(int(trace, 16), int(number, 16), is_remote=False, trace_flags=TraceFlags(1))

        return ReadableSpan(
            name=span.name,
            context=place(span.place.trace, span.place.span),
            parent=None if span.parent is None else place(span.place.trace, span.parent),
            resource=self._resource,
            attributes=_plain(span.facts),
            events=[Event(str(one.name), _plain(one.facts), nanoseconds(one.at)) for one in span.events],
            links=[Link(place(one.place.trace, one.place.span), _plain(one.facts)) for one in span.links],
            kind=SpanKind.INTERNAL,
            status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=nanoseconds(span.began),
            end_time=nanoseconds(span.ended),
            instrumentation_scope=self._scope,
        )

    def _data(self, rollup: MetricRollup, now: int) -> "MetricsData":
        from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - as above
            AggregationTemporality,
            Histogram,
            HistogramDataPoint,
            Metric,
            MetricsData,
            NumberDataPoint,
            ResourceMetrics,
            ScopeMetrics,
            Sum,
        )

        began = now if rollup.began is None else nanoseconds(rollup.began)
        always = AggregationTemporality.CUMULATIVE

        def counted(name: str, about: str, points: Sequence[tuple[dict[str, str], float]], unit: str = "1") -> Metric:
            data = [NumberDataPoint(facts, began, now, value) for facts, value in points]
            return Metric(name, about, unit, Sum(data, always, is_monotonic=True))

        durations = [
            HistogramDataPoint(
                {"gen_ai.operation.name": one.operation, "gen_ai.agent.name": one.agent},
                began,
                now,
                sum(one.counts),
                one.microseconds / _MILLION,
                one.counts,
                DURATION_BOUNDS,
                0.0,
                0.0,
            )
            for one in rollup.durations.values()
        ]
        operations = [
            (
                {
                    "gen_ai.operation.name": one.operation,
                    "gen_ai.agent.name": one.agent,
                    "gen_ai.tool.name": one.tool,
                    "batonpass.outcome": one.outcome,
                },
                one.count,
            )
            for one in rollup.operations.values()
        ]
        use = [({"gen_ai.agent.name": agent}, used) for agent, used in rollup.use.items()]
        metrics = [
            counted("batonpass.receipts", "Receipts, by kind.", [({"kind": k}, n) for k, n in rollup.receipts.items()]),
            counted("batonpass.operations", "Runs, handoffs and calls that are over.", operations),
            counted("batonpass.tokens", "Tokens of models.", [(facts, one.tokens) for facts, one in use], "{token}"),
            counted(
                "batonpass.cost", "Cost, as budgets count it.", [(facts, one.cost / _MILLION) for facts, one in use]
            ),
            Metric(DURATION, "How long runs, handoffs and calls took.", "s", Histogram(durations, always)),
        ]
        scope = ScopeMetrics(self._scope, metrics, SCHEMA_URL)
        return MetricsData([ResourceMetrics(self._resource, [scope], SCHEMA_URL)])


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 - it takes long to import

    return version("batonpass")


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts as the SDK takes them: no subclass of `str`."""
    return {name: str(said) if isinstance(said, str) else said for name, said in facts.items()}
