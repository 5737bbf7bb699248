"""What several commands refuse alike."""

import click

from build_events.local_log.layout import check_route as _check_route


def check_route(route: str) -> None:
    """Refuse a route that is empty or that no log folder can be named after.

    Raises:
        click.UsageError: with what is wrong and what to give instead.
    """
    try:
        _check_route(route)
    except ValueError as error:
        raise click.UsageError(f"route: {error}") from None
