"""Runs are named by their id or the beginning of it."""

from collections.abc import Sequence

import click


def one_run(run_ids: Sequence[str], prefix: str) -> str:
    """Return the one run id that begins with ``prefix``.

    Raises:
        click.UsageError: no run, or several, begin with it.
    """
    if prefix and prefix in run_ids:
        return prefix
    found = [run_id for run_id in run_ids if prefix and run_id.startswith(prefix)]
    if not found:
        raise click.UsageError(f"no run {prefix!r} in this home; `enginetrail runs` lists them")
    if len(found) > 1:
        raise click.UsageError(f"{prefix!r} begins several run ids ({', '.join(found[:3])}); give more of it")
    return found[0]
