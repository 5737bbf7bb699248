"""What the judging commands share: options, exit codes, the printed report, the recorded decision."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from analytics.decisions import Decision
from analytics.errors import PolicyError
from analytics.policy import Policy
from analytics.policy_file import load_policy
from build_events.clock import from_iso
from build_events.events import Verdict
from enginetrail.home import Home
from enginetrail.streams import append_route_events, append_run_events

EXIT_CODES: Mapping[Verdict, int] = {"pass": 0, "reject": 3, "hold": 4}
STYLES: Mapping[str, str] = {"pass": "green", "hold": "yellow", "reject": "red"}
MIN_WIDTH = 100  # columns; a narrower pipe or terminal would tear every sentence


class DigestType(click.ParamType[str]):
    """A SHA-256 in hexadecimal."""

    name = "sha256"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).lower()
        if not re.fullmatch("[0-9a-f]{64}", text):
            self.fail(f"{value!r} is not 64 hexadecimal digits", param, ctx)
        return text


class _Moment(click.ParamType[int]):
    name = "time"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return from_iso(str(value))
        except ValueError as error:
            self.fail(f"{error}; expected ISO 8601, e.g. 2026-01-31T12:00:00Z", param, ctx)


policy_option = click.option(
    "--policy",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Policy in TOML.  [default: analytics/policies/default.toml]",
)
as_of_option = click.option("--as-of", type=_Moment(), help="Judge as if it were then, ISO 8601.  [default: now]")


def read_policy(path: Path | None) -> Policy:
    """Return the policy.

    Raises:
        click.UsageError: the file cannot be read, or holds what no policy has.
    """
    try:
        return load_policy(path)
    except PolicyError as error:
        raise click.UsageError(str(error)) from None


def record_decision(home: Home, decision: Decision) -> None:
    """Append what was decided: about a route to a stream of it, about runs to a stream of each."""
    for planned in decision.planned:
        if planned.event is None:
            continue
        append = append_run_events if planned.event.kind == "sbat" else append_route_events
        append(home, planned.subject, [planned.event])


def print_report(report: Mapping[str, Any], findings: str, how: str) -> None:
    """Print the report: one JSON object, or a table of findings with every reason and what to do next."""
    if how == "json":
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for column in (findings, "verdict", "reason", "next"):
        table.add_column(column, overflow="fold")
    for finding in report[findings]:
        for index, reason in enumerate(finding["reasons"]):
            name, verdict = (finding["id"], finding["verdict"]) if index == 0 else ("", "")
            table.add_row(
                name, Text(verdict, style=STYLES.get(verdict, "")), Text(reason["text"]), Text(reason["next"] or "")
            )
        table.add_row("", "", Text(f"evidence: {len(finding['evidence'])} events", style="dim"), "")
    console = Console(highlight=False, width=max(shutil.get_terminal_size().columns, MIN_WIDTH))
    console.print(table)
    for warning in report.get("warnings", []):
        console.print(Text(f"warning: {warning['text']}"))
    console.print(Text(f"verdict: {report['verdict']}", style=STYLES[report["verdict"]]))
