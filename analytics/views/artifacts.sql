-- artifacts: every file that a run's events name, and what became of it.
-- Grain:   (run_id, path)
-- Reads:   base.artifacts
-- Units:   size_bytes is bytes
-- Missing: a run that wrote nothing has no row; what else lies at the target is in the inventory events
CREATE OR REPLACE VIEW artifacts AS
SELECT
    run_id, -- the run
    path, -- where the file was meant to be, or lay
    state, -- publishing, published, quarantined, removed: the furthest that it came
    sha256 AS digest, -- SHA-256 of the file; null where it was not read
    size_bytes, -- null where unknown
    moved_to, -- where a quarantined file lies now
    "by" AS published_by, -- build or sweep; what a sweep found counts for no gate
    reason -- why quarantined or removed
FROM base.artifacts;
