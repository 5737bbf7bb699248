"""The OTel Collector: a distribution of its own with the components of the pipeline, made by its builder.

It runs with ``otel-config.yaml`` of the repository, the configuration for everywhere else as well.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from deploy.services.cache import BuildCache
from deploy.services.gobuild import compile_go, go_program
from deploy.services.ports import HOST
from deploy.services.probe import http_answers
from deploy.services.spec import SOURCES, Launch, Place, Ports
from deploy.services.tools import Tools

CONFIG = Path(__file__).parents[2] / "otel-config.yaml"
_FEATURE_GATES = "--feature-gates=connector.spanmetrics.excludeResourceMetrics"  # why: the head of the configuration
_BUILDER = "go.opentelemetry.io/collector/cmd/builder"
_LOWEST, _BELOW = (0, 155), (0, 156)  # names and settings of components change with every release
_RECIPE = ("build", "-mod=readonly", "-trimpath", "-ldflags=-s -w")
_OTHERWISE = "put otelcol-contrib 0.155 on PATH, or give a running one: OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:PORT"


class OTelCollector:
    """An OTel Collector that takes OTLP over HTTP at ``OTEL_EXPORTER_OTLP_ENDPOINT``.

    Traces go to this folder's Jaeger and Kafka, which may come later: they wait on disk. Metrics are
    offered to Prometheus. Settings of the configuration can be given in the environment; addresses
    and folders are of this folder, apart from ``KAFKA_BOOTSTRAP``.
    """

    name = "otelcol"
    variable = "OTEL_EXPORTER_OTLP_ENDPOINT"
    port_names: tuple[str, ...] = ("otlp_http", "otlp_grpc", "queued", "health", "prometheus", "metrics")
    start_timeout_s = 60.0
    stop_timeout_s = 15.0

    def address(self, ports: Ports) -> str:
        """Return the base URL of OTLP over HTTP, the protocol that OTLP exporters speak unless told otherwise."""
        return f"http://{HOST}:{ports['otlp_http']}"

    def is_ready(self, ports: Ports) -> bool:
        """Return whether the health check says that all pipelines are up."""
        return http_answers(f"http://{HOST}:{ports['health']}/")

    def prepare(self, place: Place, tools: Tools, cache: BuildCache) -> Launch:
        """Obtain the OTel Collector, and address its configuration to this folder."""
        command = (otelcol_program(tools, cache), f"--config={CONFIG}", _FEATURE_GATES)
        return Launch(command, tools.passed_on(**_settings(place, tools.environ)))


def _settings(place: Place, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration's variables: the caller's, and the addresses of the place."""
    given = {key: value for key, value in environ.items() if key.startswith("OTELCOL_")}
    kafka = environ.get("KAFKA_BOOTSTRAP", f"{HOST}:{place.peers['kafka']['broker']}")
    listen = {name: f"{HOST}:{port}" for name, port in place.ports.items()}
    return {
        "OTELCOL_RETRY_MAX_INTERVAL": "5s",  # who starts Jaeger by hand looks at once
        "OTELCOL_SPAN_METRICS_INTERVAL": "1s",
        **given,
        "OTELCOL_OTLP_GRPC_LISTEN": listen["otlp_grpc"],
        "OTELCOL_OTLP_HTTP_LISTEN": listen["otlp_http"],
        "OTELCOL_QUEUED_LISTEN": listen["queued"],
        "OTELCOL_HEALTH_LISTEN": listen["health"],
        "OTELCOL_PROMETHEUS_LISTEN": listen["prometheus"],
        "OTELCOL_METRICS_HOST": HOST,
        "OTELCOL_METRICS_PORT": str(place.ports["metrics"]),
        "OTELCOL_STORAGE": str(place.folder / "queues"),
        "JAEGER_OTLP_ENDPOINT": f"{HOST}:{place.peers['jaeger']['otlp_grpc']}",
        "KAFKA_BOOTSTRAP": kafka,
    }


def otelcol_program(tools: Tools, cache: BuildCache) -> str:
    """Return the path of the OTel Collector, for whoever wants it for ``validate`` alone too.

    Raises:
        MissingToolError, BuildFailedError: it is not here and could not be made.
    """
    found = tools.fitting("otelcol-contrib", ("--version",), r"version v?([\d.]+)", _LOWEST, _BELOW)
    if found is not None:
        return found
    builder = go_program("ocb", _BUILDER, tools, cache, otherwise=_OTHERWISE)
    sources = SOURCES / "otelcol"
    recipe = f"{builder.parent.name} {' '.join(_RECIPE)}"
    built = cache.obtain("otelcol", sources, recipe, lambda folder: _build(builder, sources, tools, folder))
    return str(built / "otelcol")


def _build(builder: Path, sources: Path, tools: Tools, folder: Path) -> None:
    """Generate the main program from the manifest, put the locked modules beside it, and compile."""
    for file in ("manifest.yaml", "go.mod", "go.sum"):
        shutil.copy(sources / file, folder)
    generate = (str(builder), "--config", "manifest.yaml", "--skip-compilation", "--skip-get-modules")
    log = folder.with_suffix(".log")
    tools.build(generate, folder=folder, log=log)
    main = folder / "main"  # `output_path` of the manifest
    for file in ("go.mod", "go.sum"):
        shutil.copy(sources / file, main)
    command = (*_RECIPE, "-o", str(folder / "otelcol"), ".")
    compile_go(tools, command, name="otelcol", module=main, log=log, otherwise=_OTHERWISE)
