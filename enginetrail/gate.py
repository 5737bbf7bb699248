"""``enginetrail gate``: may a route be promoted?"""

from pathlib import Path

import click

from analytics import cbat
from analytics.decisions import decide
from build_events.clock import system_clock
from enginetrail.home import Home
from enginetrail.store import open_store, querying, warn_if_stale
from enginetrail.verdicts import (
    EXIT_CODES,
    DigestType,
    as_of_option,
    policy_option,
    print_report,
    read_policy,
    record_decision,
)


@click.group()
def gate() -> None:
    """Decide whether a route may be promoted."""


@gate.command()
@click.argument("route")
@policy_option
@click.option("--digest", type=DigestType(), help="SHA-256 of the artifact.  [default: the newest completed run's]")
@as_of_option
@click.option("--format", "how", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_obj
def evaluate(home: Home, *, route: str, policy: Path | None, digest: str | None, as_of: int | None, how: str) -> int:
    """Judge one artifact of ROUTE: five gates, and the worst of them.

    Exits 0 for pass, 3 for reject, 4 for hold, 2 for wrong usage. The decision goes back to the log.
    """
    rules = read_policy(policy)
    with open_store(home) as reader:
        as_of_ns = as_of if as_of is not None else system_clock().wall_ns
        report = cbat.evaluate(
            querying(reader), route, rules, digest=digest, as_of_ns=as_of_ns, behind=lambda: reader.behind
        )
        warn_if_stale(reader)
    decision = decide(report)
    record_decision(home, decision)
    print_report(decision.report, "gates", how)
    return EXIT_CODES[report.verdict]
