-- The store's tables: what the collector writes and the SQL views read. Version 2.
-- Units: *_ns are nanoseconds on the monotonic clock, times are UTC wall clock in nanoseconds.
-- Names are those of build_events/state.py and build_events/events.py, where each field is explained.
CREATE SCHEMA base;

-- One row per event, each once. Grain: (stream_id, sequence); the event id is stream_id || '/' || sequence.
-- No key and no index: duplicates are known by each stream's sequence ranges, and an index on events
-- costs a third of the rate (measured). Types without typed columns keep their data in payload; for the
-- four types with typed columns (phase.started, phase.progressed, phase.finished, heartbeat.recorded)
-- payload is null.
CREATE TABLE base.events (
    stream_id         VARCHAR NOT NULL,
    stream_role       VARCHAR NOT NULL,  -- main, observer, route
    sequence          UINTEGER NOT NULL,
    type              VARCHAR NOT NULL,
    run_id            VARCHAR,           -- exactly one of run_id and route is set
    route             VARCHAR,
    source            VARCHAR NOT NULL,
    time              TIMESTAMP_NS NOT NULL,
    monotonic_ns      BIGINT NOT NULL,   -- comparable within one boot_id only
    boot_id           VARCHAR NOT NULL,
    trace_id          VARCHAR,
    span_id           VARCHAR,
    phase_id          BIGINT,            -- of a heartbeat: the innermost open phase
    parent_id         BIGINT,
    name              VARCHAR,
    steps_total       BIGINT,
    steps_seen        BIGINT,
    thread_id         BIGINT,
    build_id          VARCHAR,
    cancel_state      VARCHAR,           -- none, requested, observed
    callbacks         BIGINT,            -- phase.progressed: builder calls that it stands for
    longest_gap_ns    BIGINT,            -- phase.progressed, phase.finished
    duration_ns       BIGINT,            -- phase.finished
    after_error       BOOLEAN,           -- phase.finished
    since_callback_ns BIGINT,            -- heartbeat.recorded
    payload           JSON
);

-- The fold of all events of a run. Grain: run_id.
CREATE TABLE base.runs (
    run_id          VARCHAR NOT NULL,
    route           VARCHAR,
    mode            VARCHAR,      -- embedded, supervised
    outcome         VARCHAR,      -- null while open
    late_outcome    VARCHAR,      -- of a fenced run: what its processes said after all; counts for nothing
    retry_of        VARCHAR,      -- run id
    retry_policy    VARCHAR,
    started_at      TIMESTAMP_NS,
    finished_at     TIMESTAMP_NS, -- null while open, and for a lost run
    duration_ns     BIGINT,
    complete        BOOLEAN NOT NULL,
    artifact_sha256 VARCHAR,
    error_type      VARCHAR,
    error_message   VARCHAR,
    main_stream_id  VARCHAR
);

-- Phases in two tables behind one view, so that no commit searches the phases of all history: settled
-- ones are written once, and open ones again with each commit that touches their run.
-- Grain: (run_id, phase_id).
CREATE TABLE base.settled_phases (
    run_id         VARCHAR NOT NULL,
    phase_id       BIGINT NOT NULL,
    parent_id      BIGINT,
    name           VARCHAR NOT NULL,
    started_at     TIMESTAMP_NS,
    duration_ns    BIGINT,      -- null until finished
    steps_total    BIGINT NOT NULL,
    steps_seen     BIGINT NOT NULL,
    longest_gap_ns BIGINT,
    status         VARCHAR NOT NULL
);
CREATE TABLE base.open_phases AS FROM base.settled_phases LIMIT 0;
CREATE VIEW base.phases AS FROM base.settled_phases UNION ALL FROM base.open_phases;

-- The winning request of a run. Grain: run_id. Legs are nanoseconds since the request, null where never reached.
CREATE TABLE base.cancellations (
    run_id            VARCHAR NOT NULL,
    request_id        VARCHAR NOT NULL,
    source            VARCHAR NOT NULL,
    deadline          BOOLEAN NOT NULL,
    requested_at      TIMESTAMP_NS NOT NULL,
    signalled_ns      BIGINT,
    observed_ns       BIGINT,
    observed_phase_id BIGINT,
    returned_ns       BIGINT,
    cleaned_ns        BIGINT,
    exited_ns         BIGINT
);

-- Files of a run and what became of them. Grain: (run_id, path).
CREATE TABLE base.artifacts (
    run_id     VARCHAR NOT NULL,
    path       VARCHAR NOT NULL,
    state      VARCHAR NOT NULL, -- publishing, published, quarantined, removed
    moved_to   VARCHAR,
    sha256     VARCHAR,
    size_bytes BIGINT,
    "by"       VARCHAR,
    reason     VARCHAR
);

-- Streams of runs and of routes. Grain: stream_id.
CREATE TABLE base.streams (
    stream_id        VARCHAR NOT NULL,
    role             VARCHAR NOT NULL,
    run_id           VARCHAR,
    route            VARCHAR,
    events           BIGINT NOT NULL, -- distinct sequences seen
    highest_sequence BIGINT,
    declared_events  BIGINT,          -- null while no end is declared
    dropped          BIGINT,          -- null while not closed
    missing          VARCHAR NOT NULL, -- sequences that are not in the log, e.g. '3, 7-9'; empty: none
    first_missing    BIGINT,
    complete         BOOLEAN NOT NULL -- everything up to the declared end, nothing dropped
);

-- What the contract does not allow but history holds. Grain: all columns.
CREATE TABLE base.anomalies (
    run_id    VARCHAR NOT NULL,
    stream_id VARCHAR,
    code      VARCHAR NOT NULL,
    detail    VARCHAR NOT NULL
);

-- Dead letters that count against completeness (all but torn tails). Grain: (run_id, route, stream_id), each
-- null where neither the record nor its place in the log tells.
CREATE TABLE base.dead_letter_counts (
    run_id    VARCHAR,
    route     VARCHAR,
    stream_id VARCHAR,
    count     BIGINT NOT NULL
);

-- The fold's state per stream, with the sequence ranges seen: advanced by each commit. Grain: stream_id.
CREATE TABLE base.fold_states (
    stream_id        VARCHAR NOT NULL,
    run_id           VARCHAR, -- null for a route stream
    highest_phase_id BIGINT NOT NULL, -- a later event of a phase below it is out of place: the run is folded again
    state            BLOB NOT NULL
);

-- Outside the replay comparison: where things stood and when they were read.
CREATE TABLE base.positions (
    source      VARCHAR PRIMARY KEY,
    next_offset BIGINT NOT NULL
);

-- Bytes of the log that hold no event of the contract. Grain: (source, offset) and, where one record holds
-- several events, each of them that is bad.
CREATE TABLE base.dead_letters (
    source    VARCHAR NOT NULL,
    "offset"  BIGINT NOT NULL,
    reason    VARCHAR NOT NULL,
    payload   BLOB NOT NULL,
    stream_id VARCHAR,
    run_id    VARCHAR,
    route     VARCHAR,
    noted_at  TIMESTAMP_NS NOT NULL
);

-- One row: whose log this store holds, and which release's tables and views.
CREATE TABLE base.meta (
    log_identity   VARCHAR NOT NULL,
    schema_version INTEGER NOT NULL,
    views_sha256   VARCHAR NOT NULL
);
