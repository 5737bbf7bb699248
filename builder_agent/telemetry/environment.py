"""What the standard ``OTEL_*`` variables, and two of our own, ask for. A pure function of a mapping.

Called by the composition roots alone. A value that cannot be used turns its signal off and is a
problem to be said; it never fails a build.

Source: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and
https://opentelemetry.io/docs/specs/otel/protocol/exporter/ (specification 1.60).
"""

import importlib.util
import math
from collections.abc import Mapping
from typing import Final, cast, get_args
from urllib.parse import unquote, urlsplit

from build_events.clock import NS_PER_S
from build_events.telemetry import names
from build_events.telemetry.live_spans import Intervals
from builder_agent.telemetry.settings import Protocol, Signal, SignalSettings, TelemetrySettings

MARKER_S: Final = "ENGINETRAIL_TRACE_MARKER_S"
SLICE_S: Final = "ENGINETRAIL_TRACE_SLICE_S"
METRIC_INTERVAL_MS: Final = "OTEL_METRIC_EXPORT_INTERVAL"
_EXPORTERS: Final = ("otlp", "console", "none")
_PORTS: Final[Mapping[Protocol, int]] = {"grpc": 4317, "http/protobuf": 4318}


class _UnusableError(ValueError):
    """A variable's value means nothing here."""


def telemetry_settings(environment: Mapping[str, str]) -> TelemetrySettings:
    """Return what is exported, and where to; nothing unless a variable asks for it."""
    if _get(environment, "OTEL_SDK_DISABLED").lower() == "true":
        return TelemetrySettings()
    problems: list[str] = []
    signals = {signal: _signal(environment, signal, problems) for signal in get_args(Signal)}
    traces, metrics = signals["traces"], signals["metrics"]
    if traces is None and metrics is None:
        return TelemetrySettings(problems=tuple(problems))
    defaults = Intervals()
    return TelemetrySettings(
        traces=traces,
        metrics=metrics,
        resource=_resource(environment, problems),
        intervals=Intervals(
            marker_after_ns=_seconds(environment, MARKER_S, defaults.marker_after_ns, problems),
            slice_every_ns=_seconds(environment, SLICE_S, defaults.slice_every_ns, problems),
        ),
        metric_interval_s=_above_zero(environment, METRIC_INTERVAL_MS, 60_000, "milliseconds", problems) / 1000,
        problems=tuple(problems),
    )


def _signal(environment: Mapping[str, str], signal: Signal, problems: list[str]) -> SignalSettings | None:
    try:
        settings = _chosen(environment, signal)
    except _UnusableError as error:
        problems.append(f"{error}; no {signal} are exported")
        return None
    if settings is not None and not _is_installed(settings.package):
        problems.append(
            f"no {signal} are exported: {settings.package} is not installed here; pip install 'enginetrail[otel]'"
        )
        return None
    return settings


def _chosen(environment: Mapping[str, str], signal: Signal) -> SignalSettings | None:
    own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_"
    exporter = _one_of(environment, (f"OTEL_{signal.upper()}_EXPORTER",), _EXPORTERS)
    endpoint, base = _get(environment, f"{own}ENDPOINT"), _get(environment, "OTEL_EXPORTER_OTLP_ENDPOINT")
    if exporter is None and (endpoint or base):
        exporter = "otlp"
    if exporter in {None, "none"}:
        return None
    if exporter == "console":
        return SignalSettings(signal=signal, exporter="console", endpoint="standard error")
    variables = (f"{own}PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = cast("Protocol", _one_of(environment, variables, get_args(Protocol)) or "http/protobuf")
    if not endpoint:
        endpoint = base or f"http://localhost:{_PORTS[protocol]}"
        if protocol == "http/protobuf":
            endpoint = f"{endpoint.removesuffix('/')}/v1/{signal}"
    _check_url(f"{own}ENDPOINT" if _get(environment, f"{own}ENDPOINT") else "OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    return SignalSettings(signal=signal, exporter="otlp", protocol=protocol, endpoint=endpoint)


def _check_url(variable: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise _UnusableError(f"{variable}={url} is no address: give http://HOST:PORT or https://HOST:PORT")


def _one_of(environment: Mapping[str, str], variables: tuple[str, ...], choices: tuple[str, ...]) -> str | None:
    for variable in variables:
        value = _get(environment, variable).lower()
        if value in choices:
            return value
        if value:
            raise _UnusableError(f"{variable}={value} is not supported here: give {', '.join(choices)}")
    return None


def _resource(environment: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    """Return ``OTEL_RESOURCE_ATTRIBUTES``: ``key=value`` pairs, comma-separated, percent-encoded."""
    variable = "OTEL_RESOURCE_ATTRIBUTES"
    found: dict[str, str] = {}
    for pair in filter(None, (text.strip() for text in _get(environment, variable).split(","))):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            problems.append(f"{variable}: {pair!r} is no key=value pair and is left out")
            continue
        found[unquote(key.strip())] = unquote(value.strip())
    service = _get(environment, "OTEL_SERVICE_NAME")
    return {**found, names.SERVICE_NAME: service} if service else found


def _seconds(environment: Mapping[str, str], variable: str, default_ns: int, problems: list[str]) -> int:
    return round(_above_zero(environment, variable, default_ns / NS_PER_S, "seconds", problems) * NS_PER_S)


def _above_zero(environment: Mapping[str, str], variable: str, default: float, unit: str, problems: list[str]) -> float:
    text = _get(environment, variable)
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        problems.append(f"{variable}={text} is no number of {unit} above 0; {default:g} is used")
        return default
    return number


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ModuleNotFoundError, ValueError):  # of a parent of it; ValueError: blocked by ``sys.modules``
        return False


def _get(environment: Mapping[str, str], variable: str) -> str:
    """Return a variable's value; an empty one means unset, as the specification says."""
    return environment.get(variable, "").strip()
