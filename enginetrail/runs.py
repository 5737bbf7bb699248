"""``enginetrail runs``: which runs there are."""

import click

from enginetrail.home import Home
from enginetrail.rows import Format, render, to_rows
from enginetrail.store import open_store, warn_if_stale

LIST = """
SELECT run_id, route, outcome, complete, started_at, duration_ms, retry_of, artifact_digest
FROM runs
WHERE ? IS NULL OR route = ?
ORDER BY started_at DESC NULLS LAST, run_id DESC
LIMIT ?
"""


@click.command()
@click.option("--route", help="Only runs of this route.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--format", "how", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@click.pass_obj
def runs(home: Home, route: str | None, limit: int, how: Format) -> None:
    """List runs, newest first; an open run has no outcome yet."""
    with open_store(home) as reader:
        table = reader.query(LIST, [route, route, limit])
        warn_if_stale(reader)
    rows = to_rows(table)
    if not rows:
        click.echo(f"no runs in {home.folder}; `enginetrail build` makes one, --home chooses another", err=True)
    click.echo(render(rows, table.column_names, how))
