"""``python -m deploy.services up|down|status|purge [NAME...]``: what the Makefile calls."""

import os
import sys
from pathlib import Path

import click

from deploy.services import NAMES, ServiceError, Services
from deploy.services.services import SERVICES

_DEFAULT_FOLDER = Path(__file__).parents[2] / ".services"


def _tell(text: str) -> None:
    click.echo(text, err=True)


@click.group()
@click.option("--folder", type=click.Path(path_type=Path), default=_DEFAULT_FOLDER, help="Where data and ports lie.")
@click.pass_context
def main(context: click.Context, folder: Path) -> None:
    """Run the real services that tests and docs use."""
    context.obj = Services(folder, os.environ, _tell)


@main.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.pass_obj
def up(services: Services, names: tuple[str, ...]) -> None:
    """Start services (kafka without NAMES) and print NAME=ADDRESS lines; what runs is left alone."""
    for name in names or ("kafka",):
        click.echo(f"{SERVICES[name].variable}={services.start(name)}")


@main.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.pass_obj
def down(services: Services, names: tuple[str, ...]) -> None:
    """Stop services (all without NAMES). Their data and ports stay."""
    for name in names or reversed(NAMES):
        services.stop(name)


@main.command()
@click.pass_obj
def status(services: Services) -> None:
    """Print one line for each service."""
    for name in NAMES:
        known = services.status(name)
        where = known.address or "never started"
        process = f" (process {known.pid})" if known.pid is not None else ""
        click.echo(f"{name:<11} {known.state:<9} {where}{process}")


@main.command()
@click.pass_obj
def purge(services: Services) -> None:
    """Stop all services and remove their data and ports."""
    services.purge()


if __name__ == "__main__":
    try:
        main()
    except (ServiceError, OSError) as error:
        _tell(f"error: {error}")
        sys.exit(1)
