"""The open runs of a store, with what their leases need."""

import duckdb

from build_events import state_codec
from build_events.events import RunStarted
from collector.lease import OpenRun

_STATES = (
    "SELECT fold_states.state FROM base.runs JOIN base.fold_states USING (run_id) "
    "WHERE runs.outcome IS NULL AND fold_states.stream_id = runs.main_stream_id"
)


def open_runs(cursor: duckdb.DuckDBPyConnection) -> list[OpenRun]:
    """Return every run without an outcome whose ``run.started`` is here. Closes the cursor."""
    found = []
    try:
        states = cursor.execute(_STATES).fetchall()
    finally:
        cursor.close()
    for (payload,) in states:
        state = state_codec.load(payload)
        if state is None or state.header.run_id is None:
            continue
        started = next((record.event for record in state.kept if isinstance(record.event, RunStarted)), None)
        if started is not None:
            stream_id = state.header.stream_id
            found.append(OpenRun(state.header.run_id, stream_id, state.next_sequence, started.lease_ns))
    return found
