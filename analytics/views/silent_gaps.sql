-- silent_gaps: where a run was silent, and whether its process was heard meanwhile.
-- Grain:   (run_id, phase_id); phase_id is null for the time after the last callback
-- Reads:   base.phases, base.events
-- Units:   *_ms is milliseconds on the build host's monotonic clock
-- Missing: a phase in which no silence was measured has no row, nor has a builder that did not return
CREATE OR REPLACE VIEW silent_gaps AS
WITH callbacks AS (
    SELECT run_id, stream_id, max(monotonic_ns) AS last_ns
    FROM base.events
    WHERE type IN ('trt.build.phase.started.v1', 'trt.build.phase.progressed.v1', 'trt.build.phase.finished.v1')
    GROUP BY run_id, stream_id
),
heard AS (
    SELECT run_id, phase_id, count(*) AS heartbeats, max(since_callback_ns) AS longest_ns
    FROM base.events
    WHERE type = 'trt.build.heartbeat.recorded.v1'
    GROUP BY run_id, phase_id
),
gaps AS (
    SELECT run_id, phase_id, name, longest_gap_ns AS gap_ns
    FROM base.phases
    WHERE longest_gap_ns IS NOT NULL
    UNION ALL
    SELECT returned.run_id, NULL, 'after the last callback', returned.monotonic_ns - callbacks.last_ns
    FROM base.events AS returned
    JOIN callbacks USING (run_id, stream_id)
    WHERE returned.type = 'trt.build.builder.returned.v1'
)
SELECT
    run_id, -- the run
    phase_id, -- null after the last callback
    name, -- of the phase
    gap_ns / 1e6 AS gap_ms, -- longest silence between two callbacks, that of the phases inside included
    heartbeats, -- recorded while this phase was the innermost one
    heard_ms -- longest silence that a heartbeat saw in this phase; null where none was recorded
FROM (
    SELECT
        gaps.run_id,
        gaps.phase_id,
        gaps.name,
        gaps.gap_ns,
        coalesce(heard.heartbeats, 0) AS heartbeats,
        heard.longest_ns / 1e6 AS heard_ms
    FROM gaps
    LEFT JOIN heard ON heard.run_id = gaps.run_id AND heard.phase_id IS NOT DISTINCT FROM gaps.phase_id
);
