-- completeness: what each stream declared, what is here, and what is missing.
-- Grain:   stream_id
-- Reads:   base.streams, base.dead_letter_counts
-- Units:   counts of events; sequences count from 0
-- Missing: a null declared_events is a stream without a declared end
CREATE OR REPLACE VIEW completeness AS
SELECT
    stream_id, -- the stream
    role, -- main, observer, route
    run_id, -- subject of main and observer streams
    route, -- subject of route streams
    declared_events, -- by stream.closed, or for a main stream by process.exited
    seen_events, -- distinct events here
    missing, -- sequences that are not here, e.g. "3, 7-9"; empty where none is
    first_missing, -- lowest missing sequence; null where none is
    dropped, -- events that the writer gave up; null while the stream is not closed
    complete, -- everything up to the declared end is here and nothing was dropped
    subject_dead_letters -- bad records of the log that count against the stream's run or route
FROM (
    SELECT
        streams.stream_id,
        streams.role,
        streams.run_id,
        streams.route,
        streams.declared_events,
        streams.events AS seen_events,
        streams.missing,
        streams.first_missing,
        streams.dropped,
        streams.complete,
        coalesce(dead.letters, 0) AS subject_dead_letters
    FROM base.streams
    LEFT JOIN (
        SELECT coalesce(run_id, route) AS subject, run_id IS NULL AS of_route, sum(count)::BIGINT AS letters
        FROM base.dead_letter_counts
        GROUP BY ALL
    ) AS dead
        ON dead.subject = coalesce(streams.run_id, streams.route) AND dead.of_route = (streams.run_id IS NULL)
);
