"""Which partitions this collector is to have: its seat in a consumer group.

The group only spreads the work. It moves no data and keeps no position that matters: partitions are
read by ``KafkaReader`` from where their store stands, and the store's lock keeps a second writer out
while a rebalance, or a member that was taken for dead, is under way. The offset committed here is for
tools that show lag.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.structs import OffsetAndMetadata
from typing_extensions import override

from collector.kafka.errors import broker_errors

_SETTINGS: Mapping[str, Any] = {
    "client_id": "enginetrail-collector",
    "bootstrap_timeout_ms": 5_000,
    "request_timeout_ms": 10_000,
    "reconnect_backoff_max_ms": 1_000,
    "metrics_enabled": False,
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "allow_auto_create_topics": False,
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 1_000,
    # How long a commit may take before the partitions go to somebody else; also how long a rebalance waits.
    "max_poll_interval_ms": 60_000,
    # Partitions that stay with a member need not be closed and opened again.
    "partition_assignment_strategy": (CooperativeStickyAssignor,),
}


class Membership:
    """A member of a consumer group that reads nothing itself. Not thread-safe."""

    def __init__(self, client: Mapping[str, Any], topic: str, group: str) -> None:
        """Take kafka-python's settings, the topic, and the group's name. Joins with the first ``poll``.

        Raises:
            LogUnavailableError: the broker does not answer.
        """
        self._topic = topic
        self._committed: dict[int, int] = {}
        with broker_errors(f"joining group {group}"):
            self._consumer = KafkaConsumer(**{**_SETTINGS, **client}, group_id=group)
        self._consumer.subscribe([topic], listener=_Idle(self._consumer))

    def poll(self, *, wait_ms: int = 0) -> frozenset[int]:
        """Return the partitions that this member has now. Called often: who does not call is taken for dead.

        Raises:
            LogUnavailableError: the group cannot be joined; while the broker is away, nothing changes.
        """
        with broker_errors(f"being a member of the group on topic {self._topic}"):
            self._consumer.poll(timeout_ms=wait_ms)
        return frozenset(partition.partition for partition in self._consumer.assignment())

    def show_lag(self, positions: Mapping[int, int]) -> None:
        """Commit positions of own partitions, without waiting; whether it works does not matter."""
        changed = {number: offset for number, offset in positions.items() if self._committed.get(number) != offset}
        if changed:
            self._consumer.commit_async(
                {
                    TopicPartition(self._topic, number): OffsetAndMetadata(offset, "", -1)
                    for number, offset in changed.items()
                }
            )
            self._committed.update(changed)

    def close(self) -> None:
        """Leave the group, so that the others get the partitions at once."""
        self._consumer.close(timeout_ms=2_000)


class _Idle(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python has no types
    """Gives new partitions a position, which the client demands, and fetches nothing from them."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer

    @override
    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        for partition in assigned:
            self._consumer.seek(partition, 0)
            self._consumer.pause(partition)

    @override
    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Nothing to do: who polls sees it, and closes the stores."""
