-- decisions: one row per verdict that was recorded about a run or a route.
-- Grain:   event_id
-- Reads:   events
-- Units:   times are UTC wall clock
-- Missing: a run or route that nobody judged has no row
CREATE OR REPLACE VIEW decisions AS
WITH decided AS (
    SELECT
        event_id,
        run_id,
        route,
        time,
        data->>'$.kind' AS kind,
        data->>'$.verdict' AS verdict,
        data->>'$.artifact_sha256' AS artifact_digest,
        make_timestamp_ns((data->>'$.as_of_ns')::BIGINT) AS as_of,
        data->>'$.policy_sha256' AS policy_sha256,
        data->>'$.evaluator_version' AS evaluator_version,
        data->'$.inputs' AS inputs,
        data->>'$.inputs_sha256' AS inputs_sha256,
        data->'$.supersedes' AS supersedes,
        data->'$.report' AS report
    FROM events
    WHERE type = 'trt.decision.recorded.v1'
),
superseded AS (
    SELECT DISTINCT unnest(from_json(supersedes, '["VARCHAR"]')) AS event_id FROM decided
)
SELECT
    run_id, -- subject of an SBAT decision
    route, -- subject of a CBAT decision
    kind, -- sbat or cbat
    verdict, -- pass, hold, reject
    event_id NOT IN (SELECT event_id FROM superseded) AS current, -- superseded by no other decision
    artifact_digest, -- SHA-256 of the judged artifact; null where there is none
    time, -- when the decision was recorded
    as_of, -- the time at which it was evaluated
    policy_sha256, -- digest of the policy that was applied
    evaluator_version, -- of the rules that were applied
    inputs, -- JSON object: stream id to highest sequence used
    inputs_sha256, -- digest of all evidence used
    supersedes, -- JSON array: event ids of the decisions that it replaced
    report, -- JSON object: the report as it was printed
    event_id -- the decision
FROM decided;
