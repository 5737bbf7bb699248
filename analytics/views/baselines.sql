-- baselines: what a run built with, read back from the objects and the machine.
-- Grain:   event_id
-- Reads:   events
-- Units:   time is UTC wall clock
-- Missing: a null column is named in unobserved, or has its reason in the *_absence column
CREATE OR REPLACE VIEW baselines AS
SELECT
    run_id, -- the run
    time, -- when
    build_config_hash, -- SHA-256 of inputs, flags, builder configuration, targets and TensorRT version
    tensorrt_package, -- tensorrt or tensorrt_rtx
    tensorrt_version, -- as the package reports it
    targets, -- JSON array of compute capabilities, e.g. ["sm89"]; empty where the library's default holds
    gpu_sku, -- "none" where the machine has no usable GPU
    gpu_absence, -- why gpu_sku is "none"
    driver_version, -- of the GPU driver
    driver_absence, -- why driver_version is null
    network_kind, -- strongly_typed or weakly_typed
    python_version, -- of the building process
    platform, -- of the build host
    output_path, -- artifact to be
    inputs, -- JSON array of {path, role, size_bytes, sha256}
    builder_config, -- JSON object: every property read back by name
    unobserved, -- JSON array: fields that this use of the agent cannot see
    event_id -- the fact
FROM (
    SELECT
        run_id,
        time,
        data->>'$.build_config_hash' AS build_config_hash,
        data->>'$.tensorrt_package' AS tensorrt_package,
        data->>'$.tensorrt_version' AS tensorrt_version,
        data->'$.targets' AS targets,
        data->>'$.gpu_sku' AS gpu_sku,
        data->>'$.gpu_absence' AS gpu_absence,
        data->>'$.driver_version' AS driver_version,
        data->>'$.driver_absence' AS driver_absence,
        data->>'$.network_kind' AS network_kind,
        data->>'$.python_version' AS python_version,
        data->>'$.platform' AS platform,
        data->>'$.output_path' AS output_path,
        data->'$.inputs' AS inputs,
        data->'$.builder_config' AS builder_config,
        data->'$.unobserved' AS unobserved,
        event_id
    FROM events
    WHERE type = 'trt.build.baseline.recorded.v1'
);
