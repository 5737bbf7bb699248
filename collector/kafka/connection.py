"""One topic of one cluster: who it is, and the two clients that a reader needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import UnknownTopicOrPartitionError, for_code

from build_events.errors import LogCorruptError, LogUnavailableError
from build_events.kafka_client_log import listen
from collector.kafka.errors import broker_errors

# kafka-python's defaults are for programs that may wait for minutes.
_COMMON: Mapping[str, Any] = {
    "bootstrap_timeout_ms": 5_000,
    "request_timeout_ms": 10_000,
    "reconnect_backoff_max_ms": 1_000,
}
CONSUMER: Mapping[str, Any] = {
    "client_id": "enginetrail-collector",
    "metrics_enabled": False,
    "enable_auto_commit": False,
    "auto_offset_reset": "none",  # an offset that is gone is an error, never a silent reset
    "isolation_level": "read_committed",  # a foreign producer's aborted transaction never happened
    "allow_auto_create_topics": False,
    "max_partition_fetch_bytes": 4 << 20,  # the client copies an answer eight times: larger ones leave the CPU caches
    "max_poll_records": 1_000,
    # Fetches are sent where there is something to fetch; a longer wait would only hold up the next seek.
    "fetch_max_wait_ms": 20,
}


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """Which topic it is, whatever it is called: a topic made anew under the same name is another one."""

    cluster_id: str
    topic_id: str
    partitions: int

    @property
    def text(self) -> str:
        """The log's identity as stores keep it."""
        return f"kafka:{self.cluster_id}/{self.topic_id}"


class Connection:
    """A consumer assigned to all partitions of a topic, and an admin client. Not thread-safe."""

    def __init__(self, client: Mapping[str, Any], topic: str) -> None:
        """Connect.

        Raises:
            LogUnavailableError: the broker does not answer, or has no such topic.
        """
        self.topic = topic
        listen()
        with broker_errors(f"connecting to {client.get('bootstrap_servers')} for topic {topic}"):
            # Its answer about the cluster cannot be read under an older protocol version (kafka-python 3.0.12).
            negotiated = {name: value for name, value in client.items() if name != "api_version"}
            self._admin = KafkaAdminClient(**{**_COMMON, **negotiated, "client_id": "enginetrail-collector"})
            try:
                self.identity = self._identify()
                self.consumer = KafkaConsumer(**{**_COMMON, **CONSUMER, **client})
            except BaseException:
                self._admin.close()
                raise
        self.partitions = [TopicPartition(topic, number) for number in range(self.identity.partitions)]
        self.consumer.assign(self.partitions)
        for partition in self.partitions:
            self.consumer.seek(partition, 0)
            self.consumer.pause(partition)

    def close(self) -> None:
        """Hang up."""
        self.consumer.close(timeout_ms=1_000)
        self._admin.close()

    def check(self) -> None:
        """Return if the topic is still the one that was connected to: what was fetched so far came from it.

        Raises:
            LogCorruptError: it was deleted, or deleted and made anew.
            LogUnavailableError: the broker does not answer.
        """
        found = self._describe()
        if str(found["topic_id"]) != self.identity.topic_id:
            msg = (
                f"topic {self.topic} was deleted and made anew (id {self.identity.topic_id}, now {found['topic_id']}). "
                "Nothing was read from the new one: collect it with another home."
            )
            raise LogCorruptError(msg)

    def _identify(self) -> TopicIdentity:
        found = self._describe()
        cluster_id = self._admin.describe_cluster()["cluster_id"]
        return TopicIdentity(str(cluster_id), str(found["topic_id"]), len(found["partitions"]))

    def _describe(self) -> dict[str, Any]:
        with broker_errors(f"describing topic {self.topic}"):
            found: dict[str, Any] = self._admin.describe_topics([self.topic])[0]
        error = for_code(found["error_code"])
        if error is UnknownTopicOrPartitionError:
            msg = f"there is no topic {self.topic}. Make it with `enginetrail topics ensure`."
            raise LogUnavailableError(msg)
        if found["error_code"]:
            msg = f"topic {self.topic} cannot be read now ({error.__name__}). Try again when its broker is up."
            raise LogUnavailableError(msg)
        return found
