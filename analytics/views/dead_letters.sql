-- dead_letters: bytes of the log that hold no event of the contract.
-- Grain:   one row per place in the log; the place itself is in base.dead_letters
-- Reads:   base.dead_letters
-- Units:   size_bytes is bytes
-- Missing: a log without damage has no row; null subjects are where neither record nor place tells
CREATE OR REPLACE VIEW dead_letters AS
SELECT
    run_id, -- run whose completeness it counts against
    route, -- route whose completeness it counts against
    stream_id, -- stream that it stood in
    reason, -- e.g. bad_checksum, not_json; a torn_tail counts against nothing
    octet_length(payload) AS size_bytes, -- of the damaged record
    payload -- its bytes
FROM base.dead_letters;
