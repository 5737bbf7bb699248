"""Which policy a retry follows: the plan that the retried run recorded, unless another is given."""

from dataclasses import dataclass
from pathlib import Path

import click

from build_events.events import RetryPlanned, RetryPolicy, RunStarted
from build_events.local_log import read_run
from enginetrail.run_ids import one_run

# The policies that are a build; the others are something else to do first.
BUILDS: tuple[RetryPolicy, ...] = ("retry_cold", "retry_with_cache")


@dataclass(frozen=True, slots=True)
class Retry:
    """The run that is retried, and the policy that the retry follows."""

    run_id: str
    policy: RetryPolicy


def follow_plan(log_folder: Path, prefix: str, given: RetryPolicy | None, route: str) -> Retry:
    """Return what a retry of the run whose id begins with ``prefix`` follows.

    Raises:
        click.UsageError: no such run, another route, no plan, or a plan that is no build.
    """
    run_id = _resolve(log_folder, prefix)
    events = [record.event for record in read_run(log_folder, run_id)]
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    if started is not None and started.route != route:
        raise click.UsageError(f"run {run_id} built route {started.route!r}, not {route!r}; a retry keeps the route")
    if given is not None:
        return Retry(run_id, given)
    plan = next((event for event in events if isinstance(event, RetryPlanned)), None)
    if plan is None:
        raise click.UsageError(f"run {run_id} recorded no retry plan (did it complete?); give --retry-policy")
    if plan.policy not in BUILDS:
        raise click.UsageError(
            f"run {run_id} plans {plan.policy!r} ({plan.reason}): see `enginetrail show {run_id}`, "
            "then give --retry-policy to build all the same"
        )
    return Retry(run_id, plan.policy)


def _resolve(log_folder: Path, prefix: str) -> str:
    folder = log_folder / "runs"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return one_run(names, prefix)
