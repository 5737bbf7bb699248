"""The views: created over the collector's tables, documented column by column, and true to the events."""

import dataclasses
import json

import duckdb
from hypothesis import given, settings

from analytics import view_docs
from analytics.views import VIEWS, view_text
from build_events.codec import decode_event
from build_events.envelope import Recorded
from tests.analytics.store import collected, empty_store
from tests.build_events.strategies import histories, records

# What others script against: these columns, in this order, before any other.
PROMISED = {
    "runs": "run_id route outcome retry_of started_at finished_at duration_ms complete artifact_digest",
    "phases": "run_id phase_id parent_id name started_at duration_ms steps_total steps_seen longest_gap_ms status",
    "cancellations": "run_id source requested_at observed_ms returned_ms cleaned_ms exited_ms",
}


def _columns(store: duckdb.DuckDBPyConnection, view: str) -> list[str]:
    return [row[0] for row in store.execute(f"DESCRIBE {view}").fetchall()]


def test_every_view_stands_over_an_empty_store_and_has_no_rows() -> None:
    """The collector's schema and our views fit together without a single event."""
    store = empty_store()
    for view in VIEWS:
        assert store.execute(f"SELECT count(*) FROM {view}").fetchall() == [(0,)]


def test_every_column_is_documented_in_order() -> None:
    """The documentation names exactly the columns that DuckDB sees."""
    store = empty_store()
    for view in VIEWS:
        assert list(view_docs.parse(view, view_text(view)).columns) == _columns(store, view)


def test_the_document_is_up_to_date() -> None:
    """docs/views.md says what the headers say."""
    assert view_docs.main(["--check"]) == 0


def test_promised_columns_come_first() -> None:
    """The names that others script against keep their places."""
    store = empty_store()
    for view, names in PROMISED.items():
        assert _columns(store, view)[: len(names.split())] == names.split()


@settings(max_examples=50, deadline=None)
@given(record=records())
def test_the_events_view_gives_back_every_event_as_it_was_written(record: Recorded) -> None:
    """Typed columns and payloads come to the same data, for every type that fits the store."""
    record = dataclasses.replace(record, wall_ns=record.wall_ns % 2**62)  # TIMESTAMP_NS ends in 2262
    query = collected([record])
    rows = query("SELECT event_id, type, data FROM events", [])
    refused = [row["reason"] for row in query("SELECT reason FROM dead_letters", [])]
    assert len(rows) + len(refused) == 1
    assert all(reason.endswith("does not fit a 64-bit column") for reason in refused)
    for row in rows:
        assert row["event_id"] == record.event_id
        assert decode_event(row["type"], json.loads(row["data"])) == record.event


@settings(max_examples=20, deadline=None)
@given(history=histories())
def test_views_over_any_history_can_be_read(history: list[Recorded]) -> None:
    """No history makes a view fail."""
    query = collected(history)
    for view in VIEWS:
        query(f"SELECT * FROM {view}", [])
    assert len(query("SELECT * FROM events", [])) == len(history)
