"""Snapshots as Parquet in a shared folder, for readers on other hosts and for any engine.

``DIR/log=LOG/partition=P/snapshot=N/TABLE.parquet``: hive layout. N grows with the log's positions, so
the greatest N of a partition is its newest snapshot, whichever host wrote it. A snapshot's folder
appears whole, by one rename; it and the one before it are kept, older ones go.
"""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from build_events import ids
from collector.errors import SnapshotError
from collector.partitions import slug

ALL = "all"  # the partition of a store that holds the whole log
_KEPT = 2


def publish_parquet(
    snapshot: Path, folder: Path, *, log_identity: str, partition: str, positions: Mapping[str, int]
) -> Path:
    """Publish a home's snapshot, whose ``positions`` are given; return where it lies.

    One that was published already, here or from another host, is left as it is.

    Raises:
        SnapshotError: it could not be written; what was published before stays.
    """
    place = folder / f"log={slug(log_identity)}" / f"partition={partition}"
    target = place / f"snapshot={sum(positions.values()):020d}"
    if target.exists():
        return target
    draft = place / f".{ids.random_id()}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        _export(snapshot, draft)
        with contextlib.suppress(FileExistsError):
            draft.rename(target)
        _remove_old(place)
    except OSError as error:
        # Another collector that published the same first is no error: the folder is there, and not empty.
        if not target.exists():
            msg = f"{target} could not be published: {error.strerror}. Make {folder} writable, with room in it."
            raise SnapshotError(msg) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target


def _export(snapshot: Path, draft: Path) -> None:
    command = [sys.executable, "-I", "-m", "collector.export_parquet", str(snapshot), str(draft)]
    # In a session of its own, so that the Ctrl-C that ends the collector does not end its last snapshot.
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode != 0:
        last_line = (done.stderr.strip().splitlines() or ["the exporting process was killed"])[-1]
        msg = f"{snapshot} could not be published as Parquet: {last_line}. What was published before stays."
        raise SnapshotError(msg)


def _remove_old(place: Path) -> None:
    for old in sorted(place.glob("snapshot=*"))[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
