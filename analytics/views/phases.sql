-- phases: one row per phase instance of a run's phase tree.
-- Grain:   (run_id, phase_id)
-- Reads:   base.phases
-- Units:   times are UTC wall clock; *_ms is milliseconds on the build host's monotonic clock
-- Missing: a run whose builder never called back has no row
CREATE OR REPLACE VIEW phases AS
SELECT
    run_id, -- the run
    phase_id, -- ordinal in the run, from 1; names repeat, ids do not
    parent_id, -- phase_id of the enclosing phase; null for a root
    name, -- as the builder displays it
    started_at, -- null where the start is missing from the log
    duration_ns / 1e6 AS duration_ms, -- null until finished
    steps_total, -- declared by the builder, which does not always report them all
    steps_seen, -- reported
    longest_gap_ns / 1e6 AS longest_gap_ms, -- longest silence between two callbacks inside the phase; null where none was seen
    status -- open, finished, cancelled, failed, killed, crashed, oom_killed, lost
FROM base.phases;
