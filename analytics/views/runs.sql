-- runs: one row per build attempt.
-- Grain:   run_id
-- Reads:   base.runs
-- Units:   times are UTC wall clock; duration_ms is milliseconds on the build host's monotonic clock
-- Missing: a null outcome is an open run; a run that the log never heard of has no row
CREATE OR REPLACE VIEW runs AS
SELECT
    run_id, -- unique per attempt; a retry is a new run
    route, -- checkpoint + recipe + target; null where run.started is missing
    outcome, -- completed, completed_despite_cancel, cancelled, failed, killed, crashed, oom_killed, lost; null while open
    retry_of, -- run id of the attempt that this one retries; null for a first attempt
    started_at, -- when run.started was recorded
    finished_at, -- when the end was recorded; null while open, and for a lost run
    duration_ns / 1e6 AS duration_ms, -- from start to end; null while open, and for a lost run
    complete, -- every event up to the declared end is here, none dropped, no dead letter, not lost
    artifact_sha256 AS artifact_digest, -- SHA-256 of the engine that gates may judge; null without one
    mode, -- embedded or supervised
    retry_policy, -- policy that this retry says it follows
    error_type, -- kind of failure, e.g. builder_error, artifact_write
    error_message, -- the builder's own words; "unobserved" where none could be seen
    main_stream_id, -- stream of the building process
    late_outcome -- of a run that was fenced (lost): what its processes said after all; counts in no gate
FROM base.runs;
