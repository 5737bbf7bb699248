"""Queries over snapshots that collectors on any host published as Parquet."""

from collections.abc import Sequence
from pathlib import Path

from build_events.log import Positions
from collector.access import Reader
from collector.errors import SnapshotError
from collector.guard import Limits
from collector.publish import ALL
from collector.store import connect_memory, lock_settings, passed, read_positions
from collector.union import UnionAnswers, create_store, duckdb_errors


def open_published(
    folder: Path, views: Sequence[str], *, ends: Positions | None = None, limits: Limits | None = None
) -> Reader:
    """Return a reader of the newest published snapshot of every partition, as one store.

    ``folder`` is what collectors publish to, or one ``log=...`` folder in it. The reader is ``behind``
    where ``ends`` of the log are given and the snapshots do not reach them.

    Raises:
        SnapshotError: nothing is published there, or more than one log.
        StoreCorruptError: a file cannot be read.
    """
    newest = [_newest(place) for place in _partitions(_one_log(folder.absolute()))]
    files = {path.stem: [snapshot / path.name for snapshot in newest] for path in newest[0].glob("*.parquet")}

    def open_answers() -> UnionAnswers:
        db = connect_memory()
        try:
            with duckdb_errors(folder):
                # Views read the files by name, so these stay within reach; the guard refuses every other way.
                paths = [str(path) for some in files.values() for path in some]
                db.execute("SET allowed_paths = ?", [paths])
                create_store(db, files, lambda table: f"FROM read_parquet({_list(files[table])}, {_OPTIONS})")
                for view in views:
                    db.execute(view)
                lock_settings(db)
                behind = not passed(read_positions(db), ends or {})
        except BaseException:
            db.close()
            raise
        return UnionAnswers(db, behind=behind, limits=limits or Limits())

    return Reader(open_answers(), open_answers)


_OPTIONS = "union_by_name = true, hive_partitioning = false"


def _one_log(folder: Path) -> Path:
    if folder.name.startswith("log="):
        return folder
    logs = sorted(folder.glob("log=*"))
    if not logs:
        msg = f"{folder} holds no published snapshot. Publish with `enginetrail collect --publish {folder}`."
        raise SnapshotError(msg)
    if len(logs) > 1:
        msg = (
            f"{folder} holds {len(logs)} logs ({', '.join(log.name for log in logs)}): give the folder of one of them."
        )
        raise SnapshotError(msg)
    return logs[0]


def _partitions(log: Path) -> list[Path]:
    places = sorted(place for place in log.glob("partition=*") if any(place.glob("snapshot=*")))
    if not places:
        msg = f"{log} holds no published snapshot. Publish with `enginetrail collect --publish`."
        raise SnapshotError(msg)
    whole = [place for place in places if place.name == f"partition={ALL}"]
    if whole and len(places) > 1:
        msg = (
            f"{log} holds the whole log ({whole[0].name}) and partitions of it: every event would count twice. "
            "Remove what is no longer published to."
        )
        raise SnapshotError(msg)
    return places


def _newest(place: Path) -> Path:
    return max(place.glob("snapshot=*"))


def _list(paths: Sequence[Path]) -> str:
    quoted = ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)
    return f"[{quoted}]"
