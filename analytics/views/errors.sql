-- errors: one row per error that a component of a build reported, in its own words.
-- Grain:   event_id
-- Reads:   events
-- Units:   time is UTC wall clock
-- Missing: a run without an error has no row; nor has one whose error text could not be seen
CREATE OR REPLACE VIEW errors AS
SELECT
    run_id, -- the run
    time, -- when
    component, -- builder, parser, monitor, agent, child
    code, -- the component's own code; null where it has none
    message, -- the component's own text
    event_id -- the fact
FROM (
    SELECT
        run_id,
        time,
        data->>'$.component' AS component,
        data->>'$.code' AS code,
        data->>'$.message' AS message,
        event_id
    FROM events
    WHERE type = 'trt.build.error.recorded.v1'
);
