"""``enginetrail show``: one run for a person."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from analytics.tree import PhaseNode, phase_tree
from enginetrail.home import Home
from enginetrail.rows import plain_table, text
from enginetrail.store import Query, open_store, querying, resolve_run, warn_if_stale

Row = Mapping[str, Any]

RUN = "SELECT * FROM runs WHERE run_id = ?"
PHASES = "SELECT * FROM phases WHERE run_id = ? ORDER BY phase_id"
CANCELLATION = "SELECT * FROM cancellations WHERE run_id = ?"
ARTIFACTS = "SELECT path, state, size_bytes, digest, moved_to, reason FROM artifacts WHERE run_id = ? ORDER BY path"
ERRORS = "SELECT component, code, message FROM errors WHERE run_id = ? ORDER BY time"
ANOMALIES = "SELECT code, detail FROM anomalies WHERE run_id = ? ORDER BY ALL"
RETRIES = "SELECT run_id, outcome, retry_policy FROM runs WHERE retry_of = ? ORDER BY started_at"
UNBOUNDED = 10_000  # columns
LEGS = ("observed", "returned", "cleaned", "exited")


@click.command()
@click.argument("run")
@click.pass_obj
def show(home: Home, run: str) -> None:
    """Show a run, given by its id or the beginning of it: phase tree, cancellation, artifacts, anomalies."""
    with open_store(home) as reader:
        query = querying(reader)
        run_id = resolve_run(query, run)
        lines = _sections(query, run_id)
        warn_if_stale(reader)
        phases = query(PHASES, [run_id])
    # A tree is torn by wrapping: as wide as it needs to be, everywhere but in a terminal.
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = UNBOUNDED
    console.print(Text("\n".join(lines[0])))
    console.print(_tree(phases))
    for section in lines[1:]:
        console.print(Text("\n".join(["", *section])))


def _sections(query: Query, run_id: str) -> list[list[str]]:
    """Return the head and every further section that has something to say."""
    head = _head(query(RUN, [run_id])[0])
    rest = [
        _cancellation(query(CANCELLATION, [run_id])),
        _table("artifacts", query(ARTIFACTS, [run_id])),
        _table("errors", query(ERRORS, [run_id])),
        _table("anomalies", query(ANOMALIES, [run_id])),
        _table("retried by", query(RETRIES, [run_id])),
    ]
    return [head, *(section for section in rest if section)]


def _head(run: Row) -> list[str]:
    state = run["outcome"] or "open"
    complete = "complete" if run["complete"] else "not complete: see anomalies"
    lines = [
        f"run       {run['run_id']}",
        f"route     {text(run['route'])}",
        f"outcome   {state} ({complete})",
        f"started   {text(run['started_at'])}",
        f"duration  {_ms(run['duration_ms'])}",
    ]
    if run["retry_of"]:
        lines.append(f"retry of  {run['retry_of']} ({text(run['retry_policy'])})")
    if run["error_type"]:
        lines.append(f"error     {run['error_type']}: {text(run['error_message'])}")
    return lines


def _tree(phases: Sequence[Row]) -> Tree:
    root = Tree("phases" if phases else "phases: none, the builder never called back")
    _grow(root, phase_tree(phases))
    return root


def _grow(tree: Tree, nodes: Sequence[PhaseNode]) -> None:
    for node in nodes:
        gap = f"  longest silence {_ms(node.longest_gap_ms)}" if node.longest_gap_ms else ""
        status = "" if node.status == "finished" else f"  {node.status}"
        label = f"{node.name}  {_ms(node.duration_ms)}  {node.steps_seen} steps{gap}{status}"
        _grow(tree.add(Text(label)), node.children)


def _cancellation(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    row = rows[0]
    cause = "the deadline" if row["deadline"] else row["source"]
    legs = [f"  {leg:9} {_ms(row[f'{leg}_ms'])}" for leg in LEGS]
    return [f"cancellation requested by {cause} at {row['requested_at']}; since then", *legs]


def _table(title: str, rows: Sequence[Row]) -> list[str]:
    return [title, *(f"  {line}" for line in plain_table(rows, list(rows[0])).splitlines())] if rows else []


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f} ms" if value < 1000 else f"{value / 1000:.2f} s"  # noqa: PLR2004 # milliseconds in a second
