"""``enginetrail query``: one read-only SQL statement."""

from pathlib import Path

import click

from analytics.views import view_sql
from collector.errors import QueryRefusedError
from collector.published import open_published
from enginetrail.home import Home
from enginetrail.rows import Format, render, to_rows
from enginetrail.store import open_store, warn_if_stale


@click.command()
@click.argument("sql")
@click.option("--format", "how", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.option(
    "--published",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Ask what collectors published into this folder, instead of the home.",
)
@click.pass_obj
def query(home: Home, sql: str, how: Format, published: Path | None) -> None:
    """Run one read-only SQL statement on the views (docs/views.md) and print its rows.

    Works while a collector follows the log, too. Exits 2 if the statement is refused: one SELECT or
    EXPLAIN that the database understands, nothing else.
    """
    with open_store(home) if published is None else open_published(published, view_sql()) as reader:
        try:
            table = reader.query(sql)
        except QueryRefusedError as error:
            raise click.UsageError(str(error)) from None
        warn_if_stale(reader)
    rows = to_rows(table)
    columns = list(rows[0]) if rows else table.column_names
    click.echo(render(rows, columns, how))
