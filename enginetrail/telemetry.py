"""What the commands are asked to export: the one place of them that reads the standard variables."""

import functools
import os

import click

from builder_agent.telemetry.environment import telemetry_settings
from builder_agent.telemetry.settings import TelemetrySettings


@functools.cache
def chosen_telemetry() -> TelemetrySettings:
    """Return what this process exports; the first call says on standard error what cannot be used."""
    settings = telemetry_settings(os.environ)
    for problem in settings.problems:
        click.echo(f"enginetrail: {problem}", err=True)
    return settings
