"""``enginetrail trace``: the spans of runs, as a backend or a file holds them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pydantic import JsonValue

from analytics.otlp_json import OtlpJsonError, spans_of
from analytics.trace_lint import Declared, LintFinding, lint
from build_events.events import ExportFinished
from build_events.telemetry.span import Span
from enginetrail.home import Home
from enginetrail.jaeger import read_trace
from enginetrail.output import tell_result

_TRACE_ID = re.compile("[0-9a-f]{32}")
_EXPORTS = "SELECT data FROM events WHERE run_id = ? AND type = ?"
_OUTCOME = "SELECT outcome FROM runs WHERE run_id = ?"
_FOUND = 1


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be looked at: a whole trace, or one run of it with what it declares."""

    trace_id: str | None  # none: every trace of a file
    run_id: str | None = None
    ended: bool = False
    declared: Declared | None = None


@click.group()
def trace() -> None:
    """Look at the spans of runs, as a backend or a file holds them."""


@trace.command("lint")
@click.argument("what", metavar="[RUN|TRACE]", required=False)
@click.option("--jaeger", metavar="URL", help="Base URL of Jaeger's query API, e.g. http://localhost:16686.")
@click.option(
    "--otlp-json",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with OTLP JSON: one document, or one a line.",
)
@click.option("--ended", is_flag=True, help="Runs without a root span are findings, not open ones.")
@click.option("--format", "how", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def lint_(home: Home, *, what: str | None, jaeger: str | None, otlp_json: Path | None, ended: bool, how: str) -> int:
    """Check the spans of a RUN of this home, or of all runs of a TRACE (32 hexadecimal digits).

    A RUN is known by the beginning of its id; what is there is compared with what it declares as exported.
    Exits 0 for a clean trace, 1 for findings, 2 for wrong usage. The codes: docs/telemetry.md.
    """
    if (jaeger is None) == (otlp_json is None):
        raise click.UsageError("give either --jaeger URL or --otlp-json FILE")
    if jaeger is not None and not jaeger.startswith(("http://", "https://")):
        raise click.UsageError(f"--jaeger {jaeger}: give a URL like http://localhost:16686")
    if jaeger is not None and what is None:
        raise click.UsageError("Jaeger is asked for one trace: give a RUN of this home, or a TRACE")
    asked = _Asked(what) if what is None or _TRACE_ID.fullmatch(what) else _of_home(home, what)
    spans: Sequence[Span]
    warnings: Mapping[str, Sequence[str]] = {}
    if otlp_json is not None:
        spans = _of_file(otlp_json)
    else:
        found = read_trace(str(jaeger).rstrip("/"), str(asked.trace_id))
        spans, warnings = found.spans, found.warnings
    traces = dict.fromkeys(span.trace_id for span in spans) if asked.trace_id is None else [asked.trace_id]
    findings = [
        (trace_id, finding)
        for trace_id in traces or [""]
        for finding in lint(
            [span for span in spans if span.trace_id == trace_id],
            run_id=asked.run_id,
            ended=ended or asked.ended,
            declared=asked.declared,
            warnings=warnings,
        )
    ]
    tell_result(_json(len(spans), findings) if how == "json" else _text(len(spans), findings))
    return _FOUND if findings else 0


def _of_home(home: Home, prefix: str) -> _Asked:
    """Return a run of this home with its trace id and what it declares.

    Raises:
        click.UsageError: there is no such run, or it was recorded without a trace id.
    """
    from enginetrail.store import (  # noqa: PLC0415 # only for a RUN
        open_store,
        querying,
        resolve_run,
        trace_id_of,
        warn_if_stale,
    )

    with open_store(home) as reader:
        query = querying(reader)
        run_id = resolve_run(query, prefix)
        trace_id = trace_id_of(query, run_id)
        exports = [
            ExportFinished.model_validate_json(row["data"]) for row in query(_EXPORTS, [run_id, ExportFinished.type])
        ]
        [run] = query(_OUTCOME, [run_id])
        warn_if_stale(reader)
    if trace_id is None:
        raise click.UsageError(f"run {run_id} has no trace id, so no spans either")
    spans = [export for export in exports if export.signal == "traces"]
    declared = Declared(
        exported=sum(export.exported for export in spans),
        dropped=sum(export.dropped for export in spans),
        # Whoever exported the open run died with it, and declared nothing.
        of="final" if run["outcome"] == "lost" and len(spans) == 1 else "all",
    )
    return _Asked(trace_id, run_id, run["outcome"] is not None, declared)


def _of_file(file: Path) -> list[Span]:
    """Return the spans in a file.

    Raises:
        click.UsageError: it holds something else.
    """
    try:
        text = file.read_text(encoding="utf-8")
        return [span for document in _documents(text) for span in spans_of(document)]
    except (OtlpJsonError, ValueError) as error:
        raise click.UsageError(f"{file}: {error}") from None


def _documents(text: str) -> list[Any]:
    """Return the documents of a file: it is one, or it has one a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _json(spans: int, findings: Sequence[tuple[str, LintFinding]]) -> str:
    told: list[JsonValue] = [{"trace_id": trace_id, **finding.to_json()} for trace_id, finding in findings]
    return json.dumps({"spans": spans, "findings": told}, ensure_ascii=False, indent=2)


def _text(spans: int, findings: Sequence[tuple[str, LintFinding]]) -> str:
    lines = [f"{finding.code.value:16} {finding.text}" for _, finding in findings]
    return "\n".join([*lines, f"{spans} spans, {len(findings)} findings"])
