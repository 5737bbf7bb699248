-- anomalies: what a run's history holds although the contract does not allow it.
-- Grain:   all columns
-- Reads:   base.anomalies
-- Units:   none
-- Missing: a run without anomalies has no row
CREATE OR REPLACE VIEW anomalies AS
SELECT
    run_id, -- the run
    stream_id, -- null where no single stream is at fault
    code, -- e.g. missing_sequences, unclosed_observer, phase_unfinished, clock_domain
    detail -- for people
FROM base.anomalies;
