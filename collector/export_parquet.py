"""Write a snapshot as Parquet: ``python -m collector.export_parquet SNAPSHOT FOLDER``.

Run in a process of its own, see ``publish.py``: the collector's process may not open other files. The
files lie in FOLDER, one a table, when this ends with 0.
"""

import os
import sys
from pathlib import Path

import duckdb

# Only the collector itself reads the fold's states.
_PRIVATE = ("fold_states",)


def export(snapshot: Path, folder: Path) -> None:
    """Write every table of the store into ``folder``, which is made, and return when all of it is durable."""
    folder.mkdir(parents=True)
    with duckdb.connect(":memory:") as db:
        db.execute(f"ATTACH '{_quoted(snapshot)}' AS snapshot (READ_ONLY)")
        tables = db.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'snapshot' AND schema_name = 'base'"
        ).fetchall()
        for (table,) in tables:
            if table not in _PRIVATE:
                target = folder / f"{table}.parquet"
                db.execute(f"COPY snapshot.base.{table} TO '{_quoted(target)}' (FORMAT parquet, COMPRESSION zstd)")
                _sync(target)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


if __name__ == "__main__":
    export(Path(sys.argv[1]), Path(sys.argv[2]))
