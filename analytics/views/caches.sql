-- caches: how a run used its timing cache, and why.
-- Grain:   event_id
-- Reads:   events
-- Units:   time is UTC wall clock
-- Missing: a null mode is unobserved; a run that never came to its cache has no row
CREATE OR REPLACE VIEW caches AS
SELECT
    run_id, -- the run
    time, -- when
    mode, -- cold, reused, updated, discarded, quarantined; null where unobserved
    reason, -- why; cache_noop where the builder ignores timing caches
    path, -- the shared cache file
    sha256_before, -- of the shared file before the run; null where there was none
    sha256_after, -- of the shared file after the run
    event_id -- the fact
FROM (
    SELECT
        run_id,
        time,
        data->>'$.mode' AS mode,
        data->>'$.reason' AS reason,
        data->>'$.path' AS path,
        data->>'$.sha256_before' AS sha256_before,
        data->>'$.sha256_after' AS sha256_after,
        event_id
    FROM events
    WHERE type = 'trt.build.timing_cache.recorded.v1'
);
