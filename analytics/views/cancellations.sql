-- cancellations: the winning cancellation request of a run and how long each leg took.
-- Grain:   run_id
-- Reads:   base.cancellations
-- Units:   times are UTC wall clock; *_ms is milliseconds since the request, monotonic, 0 where already past
-- Missing: a run that nobody asked to stop has no row; a null leg was never reached
CREATE OR REPLACE VIEW cancellations AS
SELECT
    run_id, -- the run
    source, -- ctrl_c, ci, ide, service, api, event_loop, policy
    requested_at, -- when a process of the run's host learned of the request
    observed_ns / 1e6 AS observed_ms, -- until the builder was first told to stop
    returned_ns / 1e6 AS returned_ms, -- until the call into the builder came back
    cleaned_ns / 1e6 AS cleaned_ms, -- until nothing of the run was left at the target
    exited_ns / 1e6 AS exited_ms, -- until the supervisor reaped the process; null when embedded
    signalled_ns / 1e6 AS signalled_ms, -- until the builder's thread could see the flag
    request_id, -- of the request that won
    deadline, -- the request was the run's own deadline
    observed_phase_id -- innermost phase when the builder was told; null outside any
FROM base.cancellations;
