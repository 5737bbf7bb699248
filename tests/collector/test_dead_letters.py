"""Bytes that hold no event: kept with their place, and counted against the run they belong to."""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import duckdb
import pytest

from build_events import codec
from build_events.events import UnknownEvent
from build_events.local_log import LocalLog
from collector.ingest import Ingester
from collector.store import Store
from tests.collector.scenes import header, record, whole_run
from tests.collector.stores import payloads, store_of


def changed(payload: bytes, **attributes: object) -> bytes:
    """Return an event with other attributes; ``None`` takes one out."""
    document = {**json.loads(payload), **attributes}
    return json.dumps({name: value for name, value in document.items() if value is not None}).encode()


RUN = payloads(whole_run())
POISON = {
    "not JSON": b"nope",
    "no object": b"[1, 2]",
    "a wrong type": changed(RUN[0], monotonicns="soon"),
    "a missing attribute": changed(RUN[0], bootid=None),
    "another contract": changed(RUN[0], contract=2),
    "data that its type does not allow": changed(RUN[0], data={"route": 5}),
    "a cancel state that does not exist": RUN[1].replace(b'"none"', b'"some"'),
    "no text": b'{"specversion":"\xff"}',
}


@pytest.mark.parametrize("kind", POISON)
@pytest.mark.parametrize("sql_from_payloads", [1, 10**9])
def test_a_poison_record_is_kept_with_its_bytes_and_place(kind: str, sql_from_payloads: int) -> None:
    """Records around it are stored; the dead letter holds the bytes, the offset and the reason."""
    log = [*RUN[:3], POISON[kind], *RUN[3:]]
    with store_of(log, sql_from_payloads=sql_from_payloads) as db:
        [(source, offset, payload, reason)] = db.execute(
            'SELECT source, "offset", payload, reason FROM base.dead_letters'
        ).fetchall()
        assert (source, offset, payload) == ("memory", 3, POISON[kind])
        assert reason
        assert db.execute("SELECT count(*) FROM base.events").fetchone() == (len(RUN),)


def test_a_poison_record_that_names_its_run_makes_the_run_incomplete() -> None:
    """The count stands by run and stream, and the run's row says that it is not complete."""
    poison = changed(RUN[1], contract=2)
    with store_of(RUN) as db:
        assert db.execute("SELECT complete FROM base.runs").fetchall() == [(True,)]
    with store_of(RUN, [poison], [poison, b"nope"]) as db:
        assert db.execute("SELECT complete FROM base.runs").fetchall() == [(False,)]
        counts = db.execute("SELECT run_id, stream_id, count FROM base.dead_letter_counts ORDER BY ALL").fetchall()
        assert counts == [("run-1", "run-1-main", 2), (None, None, 1)]


def test_a_poison_record_alone_makes_no_run() -> None:
    """A run has a row once there is an event of it, and then the dead letter counts."""
    poison = changed(RUN[1], contract=2)
    with store_of([poison]) as db:
        assert db.execute("SELECT count(*) FROM base.runs").fetchone() == (0,)
    with store_of([poison], RUN) as db:
        assert db.execute("SELECT complete FROM base.runs").fetchall() == [(False,)]


def test_an_unknown_type_is_an_event_and_kept_whole() -> None:
    """A type of a later release is no dead letter: its data is there for who understands it."""
    data: Any = {"deep": [{"number": 12345678901234567890, "text": "ß"}], "null": None}
    unknown = record(UnknownEvent(type="trt.build.tactic.chosen.v9", data=data), len(RUN), header())
    with store_of([*RUN, codec.encode(unknown)]) as db:
        [(payload,)] = db.execute("SELECT payload FROM base.events WHERE type LIKE '%v9'").fetchall()
        assert json.loads(payload) == data
        assert db.execute("SELECT count(*) FROM base.dead_letters").fetchone() == (0,)


def local_log(folder: Path) -> tuple[LocalLog, Path]:
    """Return a local log with one run, and the segment that holds it."""
    log = LocalLog.create(folder)
    log.append(whole_run())
    [segment] = folder.rglob("*.jsonl")
    return log, segment


def collected(log: LocalLog) -> duckdb.DuckDBPyConnection:
    """Return a store that took the log in, twice."""
    store = Store.open(Path(":memory:"), log_identity=log.identity(), views=[])
    with Ingester(log, store) as ingester:
        ingester.ingest()
        ingester.ingest()
    return store.cursor()


def test_a_line_that_was_changed_on_disk_is_a_dead_letter_and_a_gap(tmp_path: Path) -> None:
    """The checksum tells; the bytes are kept, the run is incomplete, and the sequence is named."""
    log, segment = local_log(tmp_path / "log")
    lines = segment.read_bytes().splitlines(keepends=True)
    bad = lines[4].replace(b"layer", b"liar!")
    segment.write_bytes(b"".join([*lines[:4], bad, *lines[5:]]))
    db = collected(log)
    letters = db.execute('SELECT "offset", payload, reason, run_id FROM base.dead_letters').fetchall()
    assert letters == [(len(b"".join(lines[:4])), bad.rstrip(b"\n"), "bad_checksum", "run-1")]
    assert db.execute("SELECT complete FROM base.runs").fetchall() == [(False,)]
    assert db.execute("SELECT missing FROM base.streams").fetchall() == [("4",)]


def test_a_record_too_bad_to_name_its_run_counts_against_the_one_it_stands_in(tmp_path: Path) -> None:
    """Its checksum fits, so it was written like that; the folder that holds it tells whose it is."""
    log, segment = local_log(tmp_path / "log")
    body = b'{"specversion":"1.0","runid":7'
    line = body + b',"crc":"%08x"}' % crc32(body)
    segment.write_bytes(segment.read_bytes() + line + b"\n")
    db = collected(log)
    letters = db.execute("SELECT payload, stream_id, run_id FROM base.dead_letters").fetchall()
    assert letters == [(body + b"}", "run-1-main", "run-1")]
    assert db.execute("SELECT complete FROM base.runs").fetchall() == [(False,)]


def test_a_torn_tail_is_kept_and_counts_against_nobody(tmp_path: Path) -> None:
    """Its bytes were never acknowledged; what is missing by it shows as a gap, here nothing."""
    log, segment = local_log(tmp_path / "log")
    whole = segment.read_bytes()
    segment.write_bytes(whole + b'{"half":')
    db = collected(log)
    letters = db.execute('SELECT "offset", payload, reason FROM base.dead_letters').fetchall()
    assert letters == [(len(whole), b'{"half":', "torn_tail")]
    assert db.execute("SELECT complete FROM base.runs").fetchall() == [(True,)]
    assert db.execute("SELECT count(*) FROM base.dead_letter_counts").fetchone() == (0,)


def test_an_event_taken_out_of_the_middle_makes_the_run_incomplete_and_is_named() -> None:
    """The stream's row says which sequence is missing, and an anomaly says so too."""
    with store_of([*RUN[:4], *RUN[5:7], *RUN[9:]]) as db:
        assert db.execute("SELECT complete FROM base.runs").fetchall() == [(False,)]
        streams = db.execute("SELECT missing, first_missing, complete FROM base.streams").fetchall()
        assert streams == [("4, 7-8", 4, False)]
        codes = db.execute("SELECT detail FROM base.anomalies WHERE code = 'missing_sequences'").fetchall()
        assert codes == [("not in the log: 4, 7-8",)]
