"""The command line: subcommands are loaded when they are called, so ``--help`` stays fast."""

import importlib
import os
from collections.abc import Sequence
from pathlib import Path

import click
from typing_extensions import override

from build_events.errors import EngineTrailError
from enginetrail.home import Home
from enginetrail.log_choice import choose_log

EXIT_FAULT = 1

# name -> module with a click command of the same name (dashes as underscores), and its summary
COMMANDS = {
    "build": ("enginetrail.build", "Build an engine under supervision and record everything."),
    "runs": ("enginetrail.runs", "List runs, newest first."),
    "show": ("enginetrail.show", "Show one run: phase tree, cancellation, artifacts."),
    "collect": ("enginetrail.collect", "Materialize the event log into DuckDB."),
    "query": ("enginetrail.query", "Run one read-only SQL statement."),
    "accept": ("enginetrail.accept", "Judge runs by an acceptance test."),
    "gate": ("enginetrail.gate", "Decide whether a route may be promoted."),
    "trace": ("enginetrail.trace", "Check the spans of runs, as a backend holds them."),
    "evidence": ("enginetrail.evidence", "Record evidence about a route."),
    "relay": ("enginetrail.relay", "Deliver what waits in the spool of a Kafka log."),
    "deadletters": ("enginetrail.deadletters", "List records that hold no event, or try them again."),
    "topics": ("enginetrail.topics", "Make or check the topic of a Kafka log."),
}


class _LazyGroup(click.Group):
    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        try:
            command: click.Command = getattr(importlib.import_module(module), cmd_name)
        except ModuleNotFoundError as error:
            raise click.ClickException(
                f"{cmd_name} needs {error.name}, which a build worker's install leaves out: "
                "pip install 'enginetrail[collector]'"
            ) from None
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=_LazyGroup)
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the event log and the store.  [default: $ENGINETRAIL_HOME or .enginetrail]",
)
@click.option(
    "--log",
    metavar="kafka://HOST:PORT/TOPIC",
    help="Event log.  [default: $ENGINETRAIL_LOG or the one in the home]",
)
@click.version_option(package_name="enginetrail")
@click.pass_context
def enginetrail(ctx: click.Context, home: Path | None, log: str | None) -> None:
    """Observe, cancel, retry and judge TensorRT engine builds."""
    chosen = choose_log(log, os.environ)
    ctx.obj = Home.from_environment(home, os.environ, command_started_ns=ctx.obj, kafka=chosen)


def run(arguments: Sequence[str], *, started_ns: int) -> int:
    """Run one command, which started at ``started_ns`` of CLOCK_MONOTONIC, and return its exit code."""
    try:
        result = enginetrail.main(list(arguments), prog_name="enginetrail", standalone_mode=False, obj=started_ns)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return 130
    except EngineTrailError as error:
        click.echo(f"enginetrail: {error}", err=True)
        return EXIT_FAULT
    return result if isinstance(result, int) else 0
