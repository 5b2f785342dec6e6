"""Metrics of the whole ledger, for callers who may read all of it."""

from typing import Final

from batonpass.server.endpoint import PEOPLE, ApiRequest, Endpoint, RawAnswer
from batonpass.telemetry.metric_text import MEDIA_TYPE, OPEN_METRICS, OPEN_METRICS_TYPE, open_metrics_text


def read_metrics(asked: ApiRequest) -> RawAnswer:
    """Return the metrics as they were at the last look, in OpenMetrics for who takes that. Nothing is read for it."""
    text = asked.plane.metrics.text()
    if OPEN_METRICS in asked.accepts:
        return RawAnswer(body=open_metrics_text(text).encode(), media_type=OPEN_METRICS_TYPE)
    return RawAnswer(body=text.encode(), media_type=MEDIA_TYPE)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/metrics",
        name="readMetrics",
        about="Read metrics in the text format of Prometheus, or in OpenMetrics if Accept names it.",
        roles=PEOPLE,
        act=read_metrics,
        answers=str,
        raw_types=("text/plain", OPEN_METRICS),
    ),
)
