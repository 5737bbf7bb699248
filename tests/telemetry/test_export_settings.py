"""What the environment asks to be exported: nothing unless it says so, and what cannot be used is said."""

import subprocess
import sys
from typing import get_args

import pytest

from build_events.clock import NS_PER_S
from builder_agent.telemetry.environment import telemetry_settings
from builder_agent.telemetry.settings import Signal, TelemetrySettings

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@pytest.mark.parametrize(
    ("environment", "traces", "metrics"),
    [
        ({}, None, None),
        ({"OTEL_SERVICE_NAME": "s", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, None, None),
        ({ENDPOINT: ""}, None, None),
        ({ENDPOINT: "http://h:1"}, "http://h:1/v1/traces", "http://h:1/v1/metrics"),
        ({ENDPOINT: "http://h:1/base/"}, "http://h:1/base/v1/traces", "http://h:1/base/v1/metrics"),
        ({ENDPOINT: "http://h:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http://h:1", "http://h:1"),
        ({TRACES_ENDPOINT: "https://h/t"}, "https://h/t", None),
        ({ENDPOINT: "http://h:1", "OTEL_METRICS_EXPORTER": "none"}, "http://h:1/v1/traces", None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318/v1/traces", None),
        ({"OTEL_METRICS_EXPORTER": "console"}, None, "standard error"),
        ({ENDPOINT: "http://h:1", "OTEL_SDK_DISABLED": "True"}, None, None),
    ],
)
def test_a_signal_goes_where_the_standard_variables_say(
    environment: dict[str, str], traces: str | None, metrics: str | None
) -> None:
    """The signal's own address is taken as it is, the common one gets the signal's path."""
    settings = telemetry_settings(environment)
    assert (settings.traces and settings.traces.endpoint) == traces
    assert (settings.metrics and settings.metrics.endpoint) == metrics
    assert settings.problems == ()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin", "give otlp, console, none"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "give grpc, http/protobuf"),
        (TRACES_ENDPOINT, "localhost:4318", "give http://HOST:PORT"),
        (TRACES_ENDPOINT, "http://h:99999", "give http://HOST:PORT"),
    ],
)
def test_a_value_that_cannot_be_used_turns_its_signal_off_and_is_said(variable: str, value: str, said: str) -> None:
    """The other signal goes on."""
    settings = telemetry_settings({ENDPOINT: "http://h:1", variable: value})
    assert settings.traces is None
    assert settings.metrics is not None
    (problem,) = settings.problems
    assert variable in problem
    assert said in problem


def test_intervals_and_the_users_resource_are_taken_and_their_faults_are_said() -> None:
    """A fault in them costs no span."""
    settings = telemetry_settings(
        {
            ENDPOINT: "http://h:1",
            "ENGINETRAIL_TRACE_MARKER_S": "0.5",
            "ENGINETRAIL_TRACE_SLICE_S": "-1",
            "OTEL_RESOURCE_ATTRIBUTES": "team=a%2Cb, service.name=overruled,nonsense",
            "OTEL_SERVICE_NAME": "mine",
        }
    )
    assert settings.resource == {"team": "a,b", "service.name": "mine"}
    assert (settings.intervals.marker_after_ns, settings.intervals.slice_every_ns) == (NS_PER_S // 2, 15 * NS_PER_S)
    assert [text.split(":")[0].split("=")[0] for text in settings.problems] == [
        "OTEL_RESOURCE_ATTRIBUTES",
        "ENGINETRAIL_TRACE_SLICE_S",
    ]


def test_without_the_packages_it_says_what_to_install() -> None:
    """A worker's light install has none of them; choosing loads none either way."""
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from builder_agent.telemetry.environment import telemetry_settings\n"
        f"settings = telemetry_settings({{{ENDPOINT!r}: 'http://h:1'}})\n"
        "print(settings.traces, settings.metrics, *settings.problems, sep='\\n')"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[:2] == ["None", "None"]
    assert said.count("pip install 'enginetrail[otel]'") == len(get_args(Signal))


def test_the_default_is_that_nothing_is_exported() -> None:
    """The value that everybody starts from."""
    assert telemetry_settings({}) == TelemetrySettings()
