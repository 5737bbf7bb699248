"""``enginetrail collect --follow``: one store, or one per partition as a member of a group."""

import signal
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from analytics.views import view_sql
from build_events.log import EventReader, Positions
from collector.collect import OnSnapshot, follow
from collector.commit import CollectStats
from collector.errors import StoreWriteError
from collector.publish import ALL, publish_parquet
from collector.status import StatusWriter
from collector.steady import SteadyReader
from collector.store import Store
from enginetrail.collector_metrics import CollectorMetrics, collector_metrics
from enginetrail.fencing import Fencing
from enginetrail.home import Home
from enginetrail.housekeeping import housekeeping
from enginetrail.log_choice import need_kafka
from enginetrail.telemetry import chosen_telemetry

RETRY_S = 2.0


def warn(text: str) -> None:
    """Say something on standard error."""
    click.echo(f"enginetrail: {text}", err=True)


class Stop:
    """True once SIGINT or SIGTERM came."""

    def __init__(self) -> None:
        self._came = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda _number, _frame: setattr(self, "_came", True))

    def __call__(self) -> bool:
        """Say whether to end."""
        return self._came


@dataclass(frozen=True, slots=True)
class _Watch:
    """What is looked at after each read of one store's log."""

    log: SteadyReader
    status: StatusWriter
    fencing: Fencing | None
    metrics: CollectorMetrics | None

    def look(self, store: Store) -> None:
        self.status.note(store, at_end=self.log.at_end)
        if self.metrics is not None:
            self.metrics.look(store)
        if self.fencing is not None:
            self.fencing.look(store, at_end=self.log.at_end)

    def close(self) -> None:
        self.status.close()
        if self.metrics is not None:
            self.metrics.close()


def follow_whole(home: Home, log: EventReader, publish: Path | None) -> CollectStats:
    """Take the whole log into the home's store until SIGINT or SIGTERM; a full disk is waited out."""
    stop, done = Stop(), CollectStats()
    steady = SteadyReader(log, warn)
    fencing = Fencing(home, home.kafka, warn) if home.kafka else None
    metrics = collector_metrics(home, chosen_telemetry(), steady, folder=home.folder, warn=warn)
    watch = _Watch(steady, StatusWriter(home.folder), fencing, metrics)
    click.echo(f"following {home.kafka.url if home.kafka else home.log_folder}; stop with Ctrl-C", err=True)
    with housekeeping(home, warn) as keep_house, closing(watch):
        while True:
            try:
                return done + follow(
                    home.folder,
                    steady,
                    view_sql(),
                    runtime_dir=home.runtime_dir,
                    stop=stop,
                    housekeeping=keep_house,
                    warn=warn,
                    watch=watch.look,
                    on_snapshot=publisher(log.identity(), publish, ALL) if publish else None,
                )
            except StoreWriteError as error:
                warn(f"{error} Trying again every {RETRY_S:g} s.")
            if not _wait(RETRY_S, stop):
                return done


def follow_group(home: Home, group: str, publish: Path | None) -> tuple[CollectStats, bool]:
    """Take in the partitions that the group gives to this process, until SIGINT or SIGTERM.

    The second value says whether records were gone before they could be read.
    """
    from collector.kafka.group import GroupCollector, PartitionStore  # noqa: PLC0415 # a chosen adapter
    from collector.kafka.membership import Membership  # noqa: PLC0415
    from collector.kafka.reader import KafkaReader  # noqa: PLC0415

    settings = need_kafka(home)
    stop = Stop()
    reader = KafkaReader(settings.client, settings.topic)
    telemetry = chosen_telemetry()
    watches: dict[int, _Watch] = {}
    gaps: list[str] = []

    def watch_of(part: PartitionStore) -> _Watch:
        measured = collector_metrics(home, telemetry, part.log, folder=part.folder, warn=warn)
        return _Watch(part.log, StatusWriter(part.folder), Fencing(home, settings, warn), measured)

    def forget(numbers: set[int]) -> None:
        for number in numbers:
            watches.pop(number).close()

    def look(part: PartitionStore) -> None:
        known = watches.get(part.number)
        if known is None or known.log is not part.log:  # opened anew: its leases begin anew
            forget({part.number} & watches.keys())
            known = watches[part.number] = watch_of(part)
        known.look(part.store)
        while reader.gaps:
            gaps.append(reader.gaps.pop(0))
            warn(gaps[-1])

    def published(part: PartitionStore, snapshot: Path) -> None:
        if publish is not None:
            publisher(reader.identity(), publish, f"{part.number:04d}")(snapshot, part.ingester.positions)

    click.echo(f"following {settings.url} in group {group}; stop with Ctrl-C", err=True)
    try:
        collector = GroupCollector(
            home=home.folder,
            reader=reader,
            member=Membership(settings.client, settings.topic, group),
            views=view_sql(),
            warn=warn,
            watch=look,
            published=published,
        )
        with housekeeping(home, warn) as declare:

            def keep_house() -> None:
                forget(watches.keys() - collector.stores.keys())  # another member counts what they hold
                declare()

            return collector.follow(stop=stop, housekeeping=keep_house), bool(gaps)
    finally:
        reader.close()
        forget(set(watches))


def publisher(identity: str, folder: Path, partition: str) -> OnSnapshot:
    """Return what publishes each snapshot as Parquet.

    It raises SnapshotError where it cannot; whoever follows says so and tries again.
    """

    def publish(snapshot: Path, positions: Positions) -> None:
        publish_parquet(snapshot, folder, log_identity=identity, partition=partition, positions=positions)

    return publish


def _wait(seconds: float, stop: Callable[[], bool]) -> bool:
    """Wait; say whether to go on."""
    deadline = time.monotonic() + seconds
    while not stop():
        if time.monotonic() >= deadline:
            return True
        time.sleep(0.05)
    return False
