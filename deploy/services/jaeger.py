"""Jaeger: OTLP in, traces out by its query API (no web UI: the Go module does not carry its files)."""

from deploy.services.cache import BuildCache
from deploy.services.errors import ServiceError
from deploy.services.gobuild import go_program
from deploy.services.ports import HOST
from deploy.services.probe import http_answers
from deploy.services.spec import Launch, Place, Ports, fill
from deploy.services.tools import Tools

_PACKAGE = "github.com/jaegertracing/jaeger/cmd/jaeger"
_STAMP = "-X github.com/jaegertracing/jaeger/internal/version.latestVersion=v2.13.0"  # module v1.76.0 is Jaeger 2.13.0
_LOWEST, _BELOW = (2, 13), (3,)
_OTHERWISE = "put jaeger 2.13 or newer on PATH, or give a running one: JAEGER_QUERY=http://HOST:PORT"
_STORAGES = {
    # Written twice, a span with the same trace, start and id is stored once.
    "badger": "badger: {ephemeral: false, directories: {keys: data/keys, values: data/values}}",
    # Every span as often as it came: what a test that looks for duplicates needs. Gone at the end.
    "memory": "memory: {max_traces: 100000}",
}


class Jaeger:
    """A Jaeger whose query API is at ``JAEGER_QUERY``.

    It keeps its traces over restarts, unless ``JAEGER_STORAGE=memory``.
    """

    name = "jaeger"
    variable = "JAEGER_QUERY"
    port_names: tuple[str, ...] = ("query", "query_grpc", "otlp_grpc", "otlp_http", "health", "metrics")
    start_timeout_s = 60.0
    stop_timeout_s = 15.0

    def address(self, ports: Ports) -> str:
        """Return the base URL of the query API."""
        return f"http://{HOST}:{ports['query']}"

    def is_ready(self, ports: Ports) -> bool:
        """Return whether every part of Jaeger reports that it works."""
        return http_answers(f"http://{HOST}:{ports['health']}/status")

    def prepare(self, place: Place, tools: Tools, cache: BuildCache) -> Launch:
        """Obtain Jaeger and write its configuration."""
        storage = tools.environ.get("JAEGER_STORAGE", "badger")
        if storage not in _STORAGES:
            raise ServiceError(f"JAEGER_STORAGE={storage} is unknown: use {' or '.join(_STORAGES)}")
        program = tools.fitting("jaeger", ("version",), r'"gitVersion":"v([\d.]+)', _LOWEST, _BELOW)
        if program is None:
            built = go_program(self.name, _PACKAGE, tools, cache, stamp=_STAMP, otherwise=_OTHERWISE)
            program = str(built)
        fill("jaeger.yaml", place, storage=_STORAGES[storage])
        return Launch((program, "--config", "jaeger.yaml"), tools.passed_on())
