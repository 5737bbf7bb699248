-- processes: resources of the building process at one moment.
-- Grain:   event_id
-- Reads:   events
-- Units:   time is UTC wall clock; *_bytes is bytes; cpu_ms is user + system time since the process began
-- Missing: a null gpu_memory_bytes has its reason in gpu_unobserved
CREATE OR REPLACE VIEW processes AS
SELECT
    run_id, -- the run
    time, -- when
    moment, -- before, during, after the build
    pid, -- of the building process
    rss_bytes, -- resident memory
    cpu_ns / 1e6 AS cpu_ms, -- CPU time used
    threads, -- count
    open_files, -- count of file descriptors
    gpu_memory_bytes, -- memory of the GPU that the process holds; null where unobserved
    gpu_unobserved, -- why gpu_memory_bytes is null
    event_id -- the fact
FROM (
    SELECT
        run_id,
        time,
        data->>'$.moment' AS moment,
        (data->>'$.pid')::BIGINT AS pid,
        (data->>'$.rss_bytes')::BIGINT AS rss_bytes,
        (data->>'$.cpu_ns')::BIGINT AS cpu_ns,
        (data->>'$.threads')::BIGINT AS threads,
        (data->>'$.open_files')::BIGINT AS open_files,
        (data->>'$.gpu_memory_bytes')::BIGINT AS gpu_memory_bytes,
        data->>'$.gpu_unobserved' AS gpu_unobserved,
        event_id
    FROM events
    WHERE type = 'trt.build.process.observed.v1'
);
