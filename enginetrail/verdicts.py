"""What the judging commands share: options, exit codes, the printed report, the recorded decision."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text
from typing_extensions import override

from analytics.decisions import Decision
from analytics.errors import PolicyError
from analytics.policy import Policy
from analytics.policy_file import load_policy
from build_events import ranges
from build_events.clock import from_iso
from build_events.events import Verdict
from enginetrail.home import Home
from enginetrail.streams import append_route_events, append_run_events

EXIT_CODES: Mapping[Verdict, int] = {"pass": 0, "reject": 3, "hold": 4}
STYLES: Mapping[str, str] = {"pass": "green", "hold": "yellow", "reject": "red"}
ID_WIDTH = 17  # of the longest criterion, retried_validated
INDENT = " " * (ID_WIDTH + 8)


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
    """Print the report: one JSON object, or every finding with its reasons, next steps and evidence."""
    if how == "json":
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    console = Console(highlight=False, soft_wrap=True)
    for finding in report[findings]:
        head = Text(f"{finding['id']:{ID_WIDTH}} ").append(f"{finding['verdict']:6} ", STYLES[finding["verdict"]])
        for reason in finding["reasons"]:
            console.print(head + Text(reason["text"]))
            head = Text(INDENT)
            if reason["next"]:
                console.print(Text(f"{INDENT}next: {reason['next']}"))
        if finding["evidence"]:
            console.print(Text(f"{INDENT}evidence: {_by_stream(finding['evidence'])}", style="dim"))
    for warning in report.get("warnings", []):
        console.print(Text(f"warning: {warning['text']}"))
    console.print(Text("verdict: ").append(report["verdict"], STYLES[report["verdict"]]))


def _by_stream(event_ids: Sequence[str]) -> str:
    """Return event ids for people: the beginning of each stream's id, and its sequences."""
    streams: dict[str, list[int]] = {}
    for event_id in event_ids:
        stream, _, sequence = event_id.rpartition("/")
        streams.setdefault(stream, []).append(int(sequence))
    return "; ".join(f"stream {stream[:8]} event {ranges.text(ranges.of(items))}" for stream, items in streams.items())
