"""A collector of OpenTelemetry on loopback, which decodes what it gets with the protocol's own messages."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class LoopbackCollector:
    """Takes spans and metrics, or refuses them."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        self.metrics: dict[str, Any] = {}
        self.refuses = False
        self.address = ""

    def take(self, path: str, body: bytes) -> int:
        """Take one request, and return the status of the answer."""
        if self.refuses:
            return 400  # not one that the exporter tries again by itself
        if path == "/v1/traces":
            for one in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append({fact.key: fact.value.string_value for fact in one.resource.attributes})
                self.spans += [span for scope in one.scope_spans for span in scope.spans]
        else:
            for told in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics.update({one.name: one for scope in told.scope_metrics for one in scope.metrics})
        return 200


@contextmanager
def listening() -> Iterator[LoopbackCollector]:
    """Yield a collector that listens."""
    collector = LoopbackCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            self.send_response(collector.take(self.path, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
