"""OTLP endpoints that work, and every way in which they do not. All are real sockets on loopback."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span
from typing_extensions import override

from deploy.services.ports import HOST


@dataclass
class HttpEndpoint:
    """An OTLP endpoint over HTTP whose answer a test sets; keeps what it acknowledged."""

    status: int = 200
    kind: str = "application/x-protobuf"
    rejected: int = 0
    delay_s: float = 0.0  # before an answer
    requests: int = 0
    resource_spans: list[ResourceSpans] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """For ``OTEL_EXPORTER_OTLP_ENDPOINT``."""
        return f"http://{HOST}:{self.port}"

    @property
    def spans(self) -> list[Span]:
        """What was acknowledged, in order."""
        return [span for of in self.resource_spans for scope in of.scope_spans for span in scope.spans]

    def take(self, path: str, body: bytes) -> bytes:
        """Take a request and return the body of the answer; metrics are acknowledged and forgotten."""
        if path != "/v1/traces":
            return b""
        self.requests += 1
        if self.status == 200 and self.kind == "application/x-protobuf":
            self.resource_spans += ExportTraceServiceRequest.FromString(body).resource_spans
        partial = ExportTracePartialSuccess(rejected_spans=self.rejected)
        answer: bytes = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
        return answer


@contextlib.contextmanager
def http_endpoint(**how: object) -> Iterator[HttpEndpoint]:
    """Serve until the end of the context."""
    endpoint = HttpEndpoint(**how)  # type: ignore[arg-type] # its fields

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(endpoint.delay_s)  # this is the slowness itself
            with contextlib.suppress(OSError):  # nobody waits any more
                answer = endpoint.take(self.path, body)
                self.send_response(endpoint.status)
                self.send_header("Content-Type", endpoint.kind)
                self.send_header("Location", endpoint.url)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((HOST, endpoint.port), Handler) as server:
        server.daemon_threads = True
        endpoint.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()


def closed_port() -> str:
    """Return the address of a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return f"http://{HOST}:{probe.getsockname()[1]}"


@contextlib.contextmanager
def raw_endpoint(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """Take connections, each for ``serve`` on a thread of its own."""
    with socket.create_server((HOST, 0)) as listener:
        connections: list[socket.socket] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connections.append(connection)
                    threading.Thread(target=_quietly, args=(serve, connection), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://{HOST}:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for connection in connections:
                connection.close()


def say_nothing(connection: socket.socket) -> None:
    """Read, and never answer."""
    while connection.recv(65536):
        pass


def drip(connection: socket.socket) -> None:
    """Answer a byte at a time, so that no read ever times out."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.3)  # this is the slowness itself


def babble(connection: socket.socket) -> None:
    """Answer with what is no protocol."""
    connection.sendall(b"\x00\xff lorem ipsum\r\n" * 50)
    say_nothing(connection)


def _quietly(serve: Callable[[socket.socket], None], connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        serve(connection)
