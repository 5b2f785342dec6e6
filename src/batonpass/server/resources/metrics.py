"""Metrics of the whole ledger, for whoever may read all of it."""

from typing import Final

from batonpass.server.endpoint import PEOPLE, ApiRequest, Endpoint, RawAnswer
from batonpass.telemetry.metric_text import MEDIA_TYPE


def read_metrics(asked: ApiRequest) -> RawAnswer:
    """Return the metrics as they were at the last look. Nothing is read for it."""
    return RawAnswer(body=asked.plane.metrics.text().encode(), media_type=MEDIA_TYPE)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/metrics",
        name="readMetrics",
        about="Read metrics in the text format of Prometheus.",
        roles=PEOPLE,
        act=read_metrics,
        answers=str,
    ),
)
