-- events: every event, once, with its data as it was written.
-- Grain:   event_id
-- Reads:   base.events
-- Units:   time is UTC wall clock; *_ns is nanoseconds, and in data 64-bit nanoseconds are decimal strings
-- Missing: fields that this release does not know are kept in the log only, for the four types with typed columns
CREATE OR REPLACE VIEW events AS
SELECT
    stream_id || '/' || sequence AS event_id, -- the same for every delivery of the event
    stream_id, -- one writer process about one subject
    stream_role, -- main, observer, route
    sequence, -- from 0 without gaps: orders the events of a stream
    type, -- versioned, e.g. trt.build.run.started.v1
    run_id, -- subject of main and observer streams
    route, -- subject of route streams
    source, -- program that recorded it
    time, -- when it happened
    monotonic_ns, -- compares within one boot_id only
    boot_id, -- boot of the host that monotonic_ns belongs to
    trace_id, -- W3C trace id of the run
    span_id, -- span that the event belongs to
    CASE type
        WHEN 'trt.build.phase.started.v1' THEN json_object(
            'phase_id', phase_id, 'parent_id', parent_id, 'name', name, 'unit', 'step',
            'steps_total', steps_total, 'steps_seen', steps_seen, 'thread_id', thread_id,
            'build_id', build_id, 'cancel_state', cancel_state)
        WHEN 'trt.build.phase.progressed.v1' THEN json_object(
            'phase_id', phase_id, 'parent_id', parent_id, 'name', name, 'unit', 'step',
            'steps_total', steps_total, 'steps_seen', steps_seen, 'thread_id', thread_id,
            'build_id', build_id, 'cancel_state', cancel_state, 'callbacks', callbacks,
            'longest_gap_ns', longest_gap_ns::VARCHAR)
        WHEN 'trt.build.phase.finished.v1' THEN json_object(
            'phase_id', phase_id, 'parent_id', parent_id, 'name', name, 'unit', 'step',
            'steps_total', steps_total, 'steps_seen', steps_seen, 'thread_id', thread_id,
            'build_id', build_id, 'cancel_state', cancel_state, 'duration_ns', duration_ns::VARCHAR,
            'longest_gap_ns', longest_gap_ns::VARCHAR, 'after_error', after_error)
        WHEN 'trt.build.heartbeat.recorded.v1' THEN json_object(
            'open_phase_id', phase_id, 'since_callback_ns', since_callback_ns::VARCHAR,
            'cancel_state', cancel_state)
        ELSE payload
    END AS data -- JSON; its fields are those of build_events/schema/ for the type
FROM base.events;
