"""``enginetrail accept``: acceptance tests over runs."""

from pathlib import Path

import click

from analytics import sbat
from analytics.decisions import decide
from build_events.clock import system_clock
from enginetrail.home import Home
from enginetrail.store import open_store, querying, resolve_runs, warn_if_stale
from enginetrail.verdicts import EXIT_CODES, as_of_option, policy_option, print_report, read_policy, record_decision


@click.group()
def accept() -> None:
    """Judge runs by an acceptance test."""


@accept.command("stuck-build")
@click.argument("runs", nargs=-1, required=True)
@policy_option
@as_of_option
@click.option("--format", "how", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def stuck_build(home: Home, *, runs: tuple[str, ...], policy: Path | None, as_of: int | None, how: str) -> int:
    """Judge RUNS with their retry chains as one test: eight criteria, and the worst of them.

    Exits 0 for pass, 3 for reject, 4 for hold, 2 for wrong usage. The decision goes back to the log.
    """
    rules = read_policy(policy)
    with open_store(home) as reader:
        query = querying(reader)
        run_ids = resolve_runs(query, runs)
        as_of_ns = as_of if as_of is not None else system_clock().wall_ns
        report = sbat.judge(query, run_ids, rules, as_of_ns=as_of_ns, behind=lambda: reader.behind)
        warn_if_stale(reader)
    decision = decide(report)
    record_decision(home, decision)
    print_report(decision.report, "criteria", how)
    return EXIT_CODES[report.verdict]
