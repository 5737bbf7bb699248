"""Tables for people, and runs named by the beginnings of their ids."""

from typing import Any

import click
import pytest

from enginetrail.rows import plain_table
from enginetrail.store import resolve_runs
from tests.analytics.scenes import Build, number
from tests.analytics.store import collected


def test_a_table_shows_values_as_they_are_and_aligned() -> None:
    """Numbers stand to the right; wide letters count twice; no markup, emoji name or control character acts."""
    rows: list[dict[str, Any]] = [
        {"name": "層", "n": 1.5, "note": ":warning: [bold]x[/bold]"},
        {"name": "conv_1", "n": None, "note": "one\ntwo"},
        {"name": "\x1b[31mred\a", "n": 1200, "note": None},
    ]
    assert plain_table(rows, ["name", "n", "note"]).splitlines() == [
        "name        n  note",
        "層        1.5  :warning: [bold]x[/bold]",
        "conv_1      -  one",
        "               two",
        "[31mred  1200  -",
    ]


def test_a_table_cuts_nothing_and_stands_without_rows() -> None:
    """A value wider than any screen is whole; no rows leave the header."""
    long = "x" * 20_000
    assert plain_table([{"a": long, "b": 1}], ["a", "b"]).splitlines()[1] == f"{long}  1"
    assert plain_table([], ["a", "b"]) == "a  b"
    assert plain_table([], []) == ""


def test_runs_are_named_by_whole_ids_and_by_beginnings_in_the_order_given() -> None:
    """A whole id wins over the longer ones that it begins; what begins none or several is refused by name."""
    runs = [Build(run_id=run_id) for run_id in ("run-1", "run-12", "other")]
    query = collected(number([entry for run in runs for entry in run.entries()]))
    assert resolve_runs(query, ["o", "run-1", "run-12", "run-1"]) == ["other", "run-1", "run-12", "run-1"]
    for wrong, why in (("run-", "begins several"), ("x", "no run"), ("", "no run")):
        with pytest.raises(click.UsageError, match=why):
            resolve_runs(query, ["run-1", wrong])
