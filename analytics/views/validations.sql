-- validations: one row per comparison of an artifact with its reference, a fact apart from the build.
-- Grain:   event_id
-- Reads:   events
-- Units:   time is UTC wall clock; samples counts comparisons
-- Missing: an artifact that nobody validated has no row
CREATE OR REPLACE VIEW validations AS
SELECT
    artifact_digest, -- SHA-256 of the artifact that ran
    status, -- pass or fail
    kind, -- what was compared, e.g. native_parity
    runtime_target, -- where it ran, e.g. sm89
    samples, -- comparisons made
    detail, -- the validator's own words
    time, -- when
    run_id, -- subject, where a validator recorded it about a run
    route, -- subject, where it was recorded about a route
    event_id -- the fact
FROM (
    SELECT
        data->>'$.artifact_sha256' AS artifact_digest,
        data->>'$.status' AS status,
        data->>'$.kind' AS kind,
        data->>'$.runtime_target' AS runtime_target,
        (data->>'$.samples')::BIGINT AS samples,
        data->>'$.detail' AS detail,
        time,
        run_id,
        route,
        event_id
    FROM events
    WHERE type = 'trt.validation.recorded.v1'
);
