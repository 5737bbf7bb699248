"""Which policy a retry follows: the plan that the retried run recorded, unless another is given."""

from dataclasses import dataclass

import click

from build_events.events import RetryPlanned, RetryPolicy, RunStarted
from build_events.local_log import read_run
from enginetrail.home import Home
from enginetrail.run_ids import one_run

# The policies that are a build; the others are something else to do first.
BUILDS: tuple[RetryPolicy, ...] = ("retry_cold", "retry_with_cache")
PLAN = "SELECT data FROM events WHERE run_id = ? AND type = ? ORDER BY stream_id, sequence LIMIT 1"
ROUTE = "SELECT route FROM runs WHERE run_id = ?"


@dataclass(frozen=True, slots=True)
class Retry:
    """The run that is retried, and the policy that the retry follows."""

    run_id: str
    policy: RetryPolicy
    trace_id: str | None


@dataclass(frozen=True, slots=True)
class _Retried:
    """What the log tells of the run to be retried."""

    run_id: str
    route: str | None
    plan: RetryPlanned | None
    trace_id: str | None


def follow_plan(home: Home, prefix: str, given: RetryPolicy | None, route: str) -> Retry:
    """Return what a retry of the run whose id begins with ``prefix`` follows.

    Raises:
        click.UsageError: no such run, another route, no plan, or a plan that is no build.
        EngineTrailError: the run is not in this home's folder, and its log cannot be read.
    """
    run = _in_folder(home, prefix) or _in_store(home, prefix)
    if run.route is not None and run.route != route:
        raise click.UsageError(f"run {run.run_id} built route {run.route!r}, not {route!r}; a retry keeps the route")
    if given is not None:
        return Retry(run.run_id, given, run.trace_id)
    if run.plan is None:
        raise click.UsageError(f"run {run.run_id} recorded no retry plan (did it complete?); give --retry-policy")
    if run.plan.policy not in BUILDS:
        raise click.UsageError(
            f"run {run.run_id} plans {run.plan.policy!r} ({run.plan.reason}): see `enginetrail show {run.run_id}`, "
            "then give --retry-policy to build all the same"
        )
    return Retry(run.run_id, run.plan.policy, run.trace_id)


def _in_folder(home: Home, prefix: str) -> _Retried | None:
    """Return the run as the home's own folder holds it; ``None`` where it may be in the log behind it."""
    folder = home.log_folder / "runs"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if home.kafka is not None and not any(name.startswith(prefix) for name in names):
        return None
    run_id = one_run(names, prefix)
    records = read_run(home.log_folder, run_id)
    events = [record.event for record in records]
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    plan = next((event for event in events if isinstance(event, RetryPlanned)), None)
    trace_id = next((record.stream.trace_id for record in records if record.stream.role == "main"), None)
    return _Retried(run_id, started.route if started else None, plan, trace_id) if events else None


def _in_store(home: Home, prefix: str) -> _Retried:
    """Return the run as the store knows it: a spool keeps none that is delivered."""
    try:
        from enginetrail.store import open_store, querying, resolve_run, trace_id_of  # noqa: PLC0415 # a worker may have no store
    except ImportError as error:
        raise click.UsageError(
            f"run {prefix!r} is not in {home.log_folder}, and looking further needs {error.name}; "
            "pip install 'enginetrail[collector,analytics]'"
        ) from None
    with open_store(home) as reader:
        query = querying(reader)
        run_id = resolve_run(query, prefix)
        [row] = query(ROUTE, [run_id])
        plans = query(PLAN, [run_id, RetryPlanned.type])
        trace_id = trace_id_of(query, run_id)
    plan = RetryPlanned.model_validate_json(plans[0]["data"]) if plans else None
    return _Retried(run_id, row["route"], plan, trace_id)
