"""The OTel Collector: a distribution of its own with the components of the pipeline, made by its builder."""

import shutil
from pathlib import Path

from deploy.services.cache import BuildCache
from deploy.services.gobuild import compile_go, go_program
from deploy.services.ports import HOST
from deploy.services.probe import http_answers
from deploy.services.spec import SOURCES, Launch, Place, Ports, fill
from deploy.services.tools import Tools

_BUILDER = "go.opentelemetry.io/collector/cmd/builder"
_LOWEST, _BELOW = (0, 155), (0, 156)  # names and settings of components change with every release
_RECIPE = ("build", "-mod=readonly", "-trimpath", "-ldflags=-s -w")
_OTHERWISE = "put otelcol-contrib 0.155 on PATH, or give a running one: OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:PORT"


class OTelCollector:
    """An OTel Collector that takes OTLP over HTTP at ``OTEL_EXPORTER_OTLP_ENDPOINT``.

    Traces go to this folder's Jaeger, which may come later: they wait on disk. Span metrics are
    offered to Prometheus.
    """

    name = "otelcol"
    variable = "OTEL_EXPORTER_OTLP_ENDPOINT"
    port_names: tuple[str, ...] = ("otlp_http", "otlp_grpc", "health", "span_metrics", "metrics")
    start_timeout_s = 60.0
    stop_timeout_s = 15.0

    def address(self, ports: Ports) -> str:
        """Return the base URL of OTLP over HTTP, the protocol that OTLP exporters speak unless told otherwise."""
        return f"http://{HOST}:{ports['otlp_http']}"

    def is_ready(self, ports: Ports) -> bool:
        """Return whether the health check says that all pipelines are up."""
        return http_answers(f"http://{HOST}:{ports['health']}/")

    def prepare(self, place: Place, tools: Tools, cache: BuildCache) -> Launch:
        """Obtain the OTel Collector and write its configuration."""
        fill("otelcol.yaml", place, jaeger_otlp=place.peers["jaeger"]["otlp_grpc"])
        return Launch((otelcol_program(tools, cache), "--config", "otelcol.yaml"), tools.passed_on())


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
