"""A collector of traces: an OTLP endpoint over real HTTP that keeps the spans it receives."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

__all__ = ["Collector", "ReceivedSpan", "collecting"]


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it arrived. `parent` is empty for the root of a trace; times are in nanoseconds."""

    name: str
    id: str
    parent: str
    trace_id: str
    service: str
    attributes: dict[str, Any]
    failed: bool
    kind: int
    start: int
    end: int


@dataclass
class Collector:
    """What arrived at `endpoint`."""

    endpoint: str = ""
    requests: int = 0
    spans: list[ReceivedSpan] = field(default_factory=list)

    def named(self, beginning: str) -> list[ReceivedSpan]:
        """Return the spans whose name begins like that, the earliest first."""
        found = [span for span in self.spans if span.name.startswith(beginning)]
        return sorted(found, key=lambda span: span.start)


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            collector.requests += 1
            if self.path == "/v1/traces":
                collector.spans += _spans(ExportTraceServiceRequest.FromString(body))
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _spans(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    for group in request.resource_spans:
        resource = {pair.key: _value(pair.value) for pair in group.resource.attributes}
        for scope in group.scope_spans:
            for span in scope.spans:
                yield ReceivedSpan(
                    name=span.name,
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    trace_id=span.trace_id.hex(),
                    service=resource.get("service.name", ""),
                    attributes={pair.key: _value(pair.value) for pair in span.attributes},
                    failed=span.status.code == 2,
                    kind=span.kind,
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                )


def _value(value: AnyValue) -> Any:
    if value.WhichOneof("value") == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, str(value.WhichOneof("value")))
