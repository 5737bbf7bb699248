"""Runs of other hosts that went silent: fenced by the collector that reads their log."""

import contextlib
import time
from collections.abc import Callable

from build_events import clock, ids
from build_events.clock import NS_PER_S
from build_events.envelope import StreamHeader
from build_events.errors import LogUnavailableError
from build_events.events import RunFenced
from build_events.kafka_settings import KafkaSettings
from build_events.local_log import run_streams
from build_events.stream import EventStream
from collector.lease import Expired, LeaseWatch
from collector.open_runs import open_runs
from collector.run_records import first_to_declare, run_records
from collector.store import Store
from enginetrail.home import Home

APPEND_S = 5.0


class Fencing:
    """Looks at one store after each read of the log. Only for a log that other hosts write, too."""

    def __init__(self, home: Home, kafka: KafkaSettings, warn: Callable[[str], None]) -> None:
        """Take the home, whose own runs are judged by their locks, the log, and who hears of a fence."""
        self._home = home
        self._kafka = kafka
        self._warn = warn
        self._leases = LeaseWatch()
        self._looked_ns = 0
        self._fenced: dict[str, str] = {}  # run id -> our stream that fenced it, until the store has read it

    def look(self, store: Store, *, at_end: bool) -> None:
        """Fence the runs that are silent for longer than their lease; cheap when called often."""
        now_ns = time.monotonic_ns()
        if at_end and now_ns - self._looked_ns < NS_PER_S:
            return
        self._looked_ns = now_ns
        runs = open_runs(store.cursor()) if at_end else []
        for item in self._leases.expired(runs, at_end=at_end, now_ns=now_ns):
            if item.run.main_stream_id not in run_streams(self._home.log_folder, item.run.run_id):
                self._fence(item)
        self._export(store)

    def _fence(self, item: Expired) -> None:
        """Append the fence to the log; where the log is away, the silence proves nothing, so nothing waits for it."""
        from builder_agent.kafka.log import KafkaLog  # noqa: PLC0415 # a chosen adapter

        run = item.run
        header = StreamHeader(
            stream_id=ids.random_id(),
            role="observer",
            run_id=run.run_id,
            source="enginetrail/collector",
            boot_id=clock.boot_id(),
        )
        fence = RunFenced(
            main_stream_id=run.main_stream_id,
            last_sequence=run.next_sequence - 1,
            lease_ns=run.lease_ns,
            silent_ns=item.silent_ns,
        )
        log = KafkaLog(self._kafka, timeout_s=APPEND_S)
        try:
            EventStream(header, log, clock=clock.system_clock).close(fence)
        except LogUnavailableError as error:
            self._warn(f"run {run.run_id} is silent but could not be fenced: {error}")
        else:
            self._fenced[run.run_id] = header.stream_id
            self._warn(f"run {run.run_id} gave no sign of life for {item.silent_ns / NS_PER_S:.0f} s and is fenced")
        finally:
            log.close()

    def _export(self, store: Store) -> None:
        """Export the spans of runs whose first declarer, by the order of the log, was this collector."""
        if not self._fenced:
            return
        from enginetrail.exporting import export_fenced_runs  # noqa: PLC0415 # rarely needed
        from enginetrail.telemetry import chosen_telemetry  # noqa: PLC0415

        if chosen_telemetry().traces is None:
            self._fenced.clear()
        runs = []
        with contextlib.closing(store.cursor()) as cursor:
            for run_id, stream_id in list(self._fenced.items()):
                first = first_to_declare(cursor, run_id)
                if first is None:
                    continue  # our own fence has not come back yet
                del self._fenced[run_id]
                if first == stream_id:
                    runs.append(run_records(cursor, run_id))
        if not runs:
            return
        from builder_agent.kafka.log import KafkaLog  # noqa: PLC0415 # a chosen adapter

        log = KafkaLog(self._kafka, timeout_s=APPEND_S)
        try:
            export_fenced_runs(log, runs, self._warn)
        except LogUnavailableError as error:
            self._warn(f"what was exported of fenced runs could not be recorded: {error}")
        finally:
            log.close()
