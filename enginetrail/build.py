"""``enginetrail build``: one engine, supervised."""

import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from rich.console import Console

from build_events import clock, ids
from build_events.errors import LogUnavailableError
from build_events.events import RetryPolicy
from build_events.state import ArtifactRow, RunState
from builder_agent.settings import DeliverySettings
from builder_agent.spool.drainer import DrainReport
from builder_agent.supervised.control import BuildSpec
from builder_agent.supervised.signals import signals_noted
from builder_agent.supervised.supervise import Mailbox, SupervisedResult, supervise
from builder_agent.telemetry.surroundings import QUEUED_AT, queued_at_ns, trace_context_from
from enginetrail.draining import start_draining, tell
from enginetrail.home import Home
from enginetrail.live import build_view
from enginetrail.log_choice import SHORT_DRAIN_S, spool_bytes
from enginetrail.output import tell_result
from enginetrail.recovery import recover_lost_runs
from enginetrail.retry import follow_plan
from enginetrail.telemetry import chosen_telemetry
from enginetrail.usage import check_route

if TYPE_CHECKING:
    from builder_agent.telemetry.run_telemetry import RunTelemetry

POLICIES = get_args(RetryPolicy)
LEGS = ("signalled", "observed", "returned", "cleaned", "exited")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Engine to write.")
@click.option("--route", required=True, help="Route under review, e.g. resnet50/fp16/sm89.")
@click.option("--target", help="Compute capability to build for, e.g. sm89.  [default: the library's own]")
@click.option("--deadline", type=click.FloatRange(min=0, min_open=True), help="Seconds from now to SIGKILL.")
@click.option("--retry-of", help="Run that this build retries, by id or the beginning of it.")
@click.option(
    "--retry-policy", type=click.Choice(POLICIES), help="Policy of the retry.  [default: the plan that run recorded]"
)
@click.option(
    "--queued-at",
    envvar=QUEUED_AT,
    show_envvar=True,
    callback=lambda _context, _option, text: _queued_at(text),
    help="When the build was queued: ISO 8601 with an offset, or seconds since 1970.",
)
@click.option("--discard-late", is_flag=True, help="Quarantine an engine that was ready only after a cancellation.")
@click.option(
    "--drain",
    type=click.FloatRange(min=0),
    default=SHORT_DRAIN_S,
    show_default=True,
    help="With a Kafka log: seconds to wait for it after the build.",
)
@click.option("--format", "how", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_obj
def build(
    home: Home,
    *,
    model: Path,
    output: Path,
    route: str,
    target: str | None,
    deadline: float | None,
    retry_of: str | None,
    retry_policy: RetryPolicy | None,
    queued_at: int | None,
    discard_late: bool,
    drain: float,
    how: str,
) -> int:
    """Build an engine from the ONNX file MODEL in a child process and record everything.

    Exits 0 with an engine, 1 if the builder said no, 2 for wrong usage or input that cannot be read,
    130, 143 or 124 when Ctrl-C, SIGTERM or the deadline ended it.
    """
    if retry_policy is not None and retry_of is None:
        raise click.UsageError("--retry-policy needs --retry-of RUN")
    _check_usage(route, model, output, deadline)
    _declare_lost_runs(home)
    retried = follow_plan(home, retry_of, retry_policy, route) if retry_of is not None else None
    telemetry = chosen_telemetry()
    trace = trace_context_from(os.environ)
    spec = BuildSpec(
        run_id=ids.random_id(),
        trace_id=trace.trace_id,
        main_stream_id=ids.random_id(),
        log_folder=str(home.log_folder),
        model=str(model.absolute()),
        output=str(output.absolute()),
        route=route,
        target=target,
        command_started_monotonic_ns=home.command_started_ns,
        deadline_ns=None if deadline is None else round(deadline * clock.NS_PER_S),
        retry_of=retried.run_id if retried else None,
        retry_policy=retried.policy if retried else None,
        queued_at_ns=queued_at,
        parent_span_id=trace.parent_span_id,
        retried_trace_id=retried.trace_id if retried else None,
        heartbeat_interval_ns=telemetry.heartbeat_ns(DeliverySettings().heartbeat_interval_ns),
        discard_late=discard_late,
        spool_bytes=spool_bytes(home),
    )
    drainer = start_draining(home, run_first=spec.run_id)
    mailbox = Mailbox(clock=clock.system_clock)
    # Around the printing too: once the build is over a signal changes nothing, and its end is told.
    with signals_noted(lambda source, at: mailbox.request_cancel(source, at=at), clock.system_clock):
        with build_view(Console(stderr=True)) as view:
            result = supervise(
                spec,
                clock=clock.system_clock,
                on_event=view.event,
                on_message=view.message,
                on_output=view.message,
                mailbox=mailbox,
                telemetry=_exporter(home),
            )
        drained = drainer.finish(drain) if drainer else None
        if drained is not None:
            tell(home, drained)
        if how == "json":
            tell_result(json.dumps({**_summary(spec, result), **_waiting(drained)}, ensure_ascii=False))
        elif result.state is not None:
            tell_result(_sentence(result.state))
    return result.exit_code


def _exporter(home: Home) -> "RunTelemetry | None":
    if not chosen_telemetry().exports:
        return None
    from enginetrail.exporting import run_telemetry  # noqa: PLC0415 # most builds export nothing

    return run_telemetry(home)


def _queued_at(text: str | None) -> int | None:
    try:
        return queued_at_ns(text) if text else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _declare_lost_runs(home: Home) -> None:
    """Declare the ends that nobody saw; where the log takes none now, the next start does."""
    try:
        recover_lost_runs(home)
    except LogUnavailableError as error:
        click.echo(f"enginetrail: {error} Ends of earlier runs are declared by a later start.", err=True)


def _check_usage(route: str, model: Path, output: Path, deadline: float | None) -> None:
    if deadline is not None and not math.isfinite(deadline):
        raise click.UsageError(f"--deadline {deadline}: give a number of seconds")
    check_route(route)
    for what, text in (("--route", route), ("MODEL", str(model)), ("--output", str(output))):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"{what} {text!r} is not UTF-8, which events are written in: rename it") from None


def _summary(spec: BuildSpec, result: SupervisedResult) -> dict[str, Any]:
    state = result.state
    artifact = _published(state)
    return {
        "run_id": result.run_id if state else None,
        "route": spec.route,
        "outcome": state.run.outcome if state else None,
        "exit_code": result.exit_code,
        "duration_ms": _ms(state.run.duration_ns) if state else None,
        "artifact": None if artifact is None else {"path": artifact.path, "size_bytes": artifact.size_bytes},
        "artifact_digest": state.run.artifact_sha256 if state else None,
        "latencies": _latencies(state),
        "error_type": state.run.error_type if state else None,
        "error_message": state.run.error_message if state else None,
        "complete": state.run.complete if state else None,
        "recorded": state is not None and result.recorded,
    }


def _waiting(drained: DrainReport | None) -> dict[str, int]:
    """Return how many events of the home the log behind the spool has not acknowledged."""
    return {} if drained is None else {"events_waiting": drained.waiting}


def _latencies(state: RunState | None) -> dict[str, float | str | None] | None:
    """Return the legs in milliseconds since the request, ``None`` where nobody asked to stop."""
    row = state.cancellation if state else None
    if row is None:
        return None
    return {"source": row.source, **{f"{leg}_ms": _ms(getattr(row, f"{leg}_ns")) for leg in LEGS}}


def _published(state: RunState | None) -> ArtifactRow | None:
    return next((row for row in state.artifacts if row.state == "published"), None) if state else None


def _sentence(state: RunState) -> str:
    run, artifact = state.run, _published(state)
    text = f"run {run.run_id}: {run.outcome}"
    if artifact is not None:
        text += f", {artifact.path} ({artifact.size_bytes} bytes, sha256 {artifact.sha256})"
    if run.error_message:
        text += f", {run.error_type}: {run.error_message}"
    return f"{text}\nnext: {Path(sys.argv[0]).name} show {run.run_id[:8]}"


def _ms(duration_ns: int | None) -> float | None:
    return None if duration_ns is None else duration_ns / clock.NS_PER_MS
