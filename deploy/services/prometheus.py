"""Prometheus: scrapes the OTel Collector of the same folder, and answers PromQL."""

from deploy.services.cache import BuildCache
from deploy.services.gobuild import go_program
from deploy.services.ports import HOST
from deploy.services.probe import http_answers
from deploy.services.spec import Launch, Place, Ports, fill
from deploy.services.tools import Tools

_PACKAGE = "github.com/prometheus/prometheus/cmd/prometheus"
_STAMP = "-X github.com/prometheus/common/version.Version=3.16.0"  # of module v0.316.0
_TAGS = "remove_all_sd"  # no discovery in clouds: a third of the build
_LOWEST, _BELOW = (3,), (4,)
_OTHERWISE = "put prometheus 3.x on PATH, or give a running one: PROMETHEUS=http://HOST:PORT"


class Prometheus:
    """A Prometheus at ``PROMETHEUS`` that scrapes every second, or every ``PROMETHEUS_SCRAPE_INTERVAL``."""

    name = "prometheus"
    variable = "PROMETHEUS"
    port_names: tuple[str, ...] = ("web",)
    start_timeout_s = 60.0
    stop_timeout_s = 15.0

    def address(self, ports: Ports) -> str:
        """Return the base URL of the HTTP API."""
        return f"http://{HOST}:{ports['web']}"

    def is_ready(self, ports: Ports) -> bool:
        """Return whether Prometheus says that it serves queries."""
        return http_answers(f"{self.address(ports)}/-/ready")

    def prepare(self, place: Place, tools: Tools, cache: BuildCache) -> Launch:
        """Obtain Prometheus and write its configuration."""
        program = prometheus_program(tools, cache)
        fill(
            "prometheus.yml",
            place,
            interval=tools.environ.get("PROMETHEUS_SCRAPE_INTERVAL", "1s"),
            pipeline=place.peers["otelcol"]["prometheus"],
            otelcol_metrics=place.peers["otelcol"]["metrics"],
            jaeger_metrics=place.peers["jaeger"]["metrics"],
        )
        options = ("--config.file=prometheus.yml", "--storage.tsdb.path=data")
        listen = f"--web.listen-address={HOST}:{place.ports['web']}"
        return Launch((program, *options, listen), tools.passed_on())


def prometheus_program(tools: Tools, cache: BuildCache) -> str:
    """Return the path of Prometheus, for whoever has a configuration of another place.

    Raises:
        MissingToolError, BuildFailedError: it is not here and could not be made.
    """
    found = tools.fitting("prometheus", ("--version",), r"version ([\d.]+)", _LOWEST, _BELOW)
    if found is not None:
        return found
    return str(go_program("prometheus", _PACKAGE, tools, cache, stamp=_STAMP, tags=_TAGS, otherwise=_OTHERWISE))
