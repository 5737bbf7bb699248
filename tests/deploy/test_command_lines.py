"""Every command line in ``deploy/`` is one of ours, and every variable one that we read."""

import re
from typing import Any

import click
import pytest
from typing_extensions import override

from build_events import home
from build_events.kafka_settings import VARIABLES as KAFKA
from builder_agent.spool import quota
from builder_agent.telemetry import surroundings
from builder_agent.telemetry.environment import telemetry_settings
from enginetrail import log_choice
from enginetrail.cli import COMMANDS, enginetrail
from tests.deploy.files import ROOT, Line, lines

LINES = list(lines())


class _Asked(dict[str, str]):
    """An environment that notes what it is asked for."""

    def __init__(self, *args: tuple[str, str]) -> None:
        super().__init__(args)
        self.names: set[str] = set()

    @override
    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return super().get(key, default)


def _of_telemetry() -> set[str]:
    """Return the variables that decide what is exported, as they are really read."""
    asked = _Asked(("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"))
    assert telemetry_settings(asked).traces is not None
    return asked.names


# What our code reads, each where it is defined; then what Python and pip read.
SETTINGS = {
    home.VARIABLE,
    log_choice.VARIABLE,
    quota.VARIABLE,
    surroundings.QUEUED_AT,
    "XDG_RUNTIME_DIR",  # enginetrail/home.py
    *KAFKA,
    *_of_telemetry(),
    *("PATH", "PYTHONUNBUFFERED", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_CACHE_DIR", "PIP_ROOT_USER_ACTION"),
}


def _leaf(arguments: tuple[str, ...]) -> tuple[str, click.Context]:
    """Parse as ``enginetrail`` does, without running anything; return the subcommand that it leads to."""
    command: click.Command = enginetrail
    rest, name, parent = list(arguments), "enginetrail", None
    while True:
        context = command.make_context(name, rest, parent=parent)
        if not isinstance(command, click.Group):
            return name, context
        found, resolved, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        assert resolved is not None
        name, command, parent = found, resolved, context


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.where)
def test_a_command_line_is_taken_by_the_command_itself(line: Line) -> None:
    """Names, options, values and the number of arguments, by the parser that will read them."""
    if line.arguments == ("--help",):
        return
    name, context = _leaf(line.arguments)
    assert name in COMMANDS or name == "ensure"
    assert context.params


@pytest.mark.parametrize("wrong", [("collect", "--folow"), ("build", "m.onnx"), ("topics", "make"), ("relay", "now")])
def test_the_parser_refuses_what_is_no_command_line(wrong: tuple[str, ...]) -> None:
    """What the test above stands on."""
    with pytest.raises(click.UsageError):
        _leaf(wrong)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.where)
def test_a_variable_is_one_that_is_read(line: Line) -> None:
    """A variable that nobody reads is a mistake that nobody sees."""
    assert line.variables - SETTINGS == set()


def test_there_are_command_lines_in_every_kind_of_file() -> None:
    """None of the readers found nothing."""
    kinds = {line.where.split()[0] for line in LINES}
    assert {"Dockerfile", "compose", "enginetrail-build@.service", "Deployment", "Job"} <= kinds


def test_the_page_names_files_that_are_there_and_commands_of_ours() -> None:
    """``docs/deploy.md``: paths, and every ``enginetrail`` with options."""
    page = (ROOT / "docs" / "deploy.md").read_text()
    paths = set(re.findall(r"(?:deploy|requirements)/[\w./-]+", page))
    assert len(paths) > 8
    assert [path for path in paths if not (ROOT / path).exists()] == []
    shown = re.findall(r"`enginetrail ([^`]+)`", page)
    assert len(shown) >= 3
    for command in shown:
        _leaf(tuple(command.replace("SECONDS", "30").split()))
