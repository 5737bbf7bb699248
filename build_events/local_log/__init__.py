"""The embedded event log: a folder of append-only segments, no server.

``LocalLog`` is both ports. The functions beside it judge by the streams' locks, so they are only for
processes that use the same home.
"""

from build_events.local_log.abandoned import AbandonedStream, is_locked, read_run, run_streams, unlocked_streams
from build_events.local_log.log import LocalLog
from build_events.local_log.tail import SegmentTail

__all__ = [
    "AbandonedStream",
    "LocalLog",
    "SegmentTail",
    "is_locked",
    "read_run",
    "run_streams",
    "unlocked_streams",
]
