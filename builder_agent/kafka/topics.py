"""The topic as this log needs it: made with its settings, or compared with them. Never deleted, never shrunk."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from build_events.kafka_client_log import failure_since, listen
from build_events.kafka_record import MAX_VALUE_BYTES
from build_events.kafka_settings import KafkaSettings
from builder_agent.spool.sink import SinkUnavailableError

ANSWER_MS = 10_000
# A record's headers and framing stand beside its value.
MIN_MESSAGE_BYTES = MAX_VALUE_BYTES + (64 << 10)
CREATED_MESSAGE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """What the topic should be. ``None``: as it is."""

    partitions: int | None = None  # for life: with another count, keys move
    replication: int | None = None
    min_insync: int | None = None  # null: one less than the replicas, at least 1

    def insync(self, replicas: int) -> int:
        """Return how many replicas must acknowledge."""
        return self.min_insync if self.min_insync is not None else max(replicas - 1, 1)


@dataclass(frozen=True, slots=True)
class TopicState:
    """What the topic is."""

    partitions: int
    replicas: int  # of the partition that has the fewest
    configs: Mapping[str, str]


def check_topic(settings: KafkaSettings, plan: TopicPlan) -> list[str]:
    """Return what differs from the plan, or from what an event log needs; one sentence each.

    Raises:
        SinkUnavailableError: the cluster does not answer, or not to us.
    """
    with _admin(settings) as admin:
        state = _state(admin, settings.topic)
    if state is None:
        return [f"topic {settings.topic} does not exist; `enginetrail topics ensure` makes it"]
    return drift(state, plan)


def ensure_topic(settings: KafkaSettings, plan: TopicPlan) -> tuple[list[str], list[str]]:
    """Make the topic, or set what may be set without loss on the one there is; return what was done and what differs.

    Raises:
        SinkUnavailableError: the cluster does not answer, or refuses.
    """
    with _admin(settings) as admin:
        state = _state(admin, settings.topic)
        if state is None:
            return [_create(admin, settings.topic, plan)], []
        wrong = {name: value for name, value in wanted(state, plan).items() if not _fits(name, value, state)}
        if wrong:
            _set(admin, settings.topic, wrong)
            state = _state(admin, settings.topic) or state
        done = [f"set {name}={value}" for name, value in wrong.items()]
        return done, drift(state, plan)


def wanted(state: TopicState, plan: TopicPlan) -> dict[str, str]:
    """Return the settings of a topic that loses no event."""
    return {
        "cleanup.policy": "delete",  # compaction keeps one record per key, and a key is a whole run
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "min.insync.replicas": str(plan.insync(state.replicas)),
        "unclean.leader.election.enable": "false",
        "max.message.bytes": str(CREATED_MESSAGE_BYTES),
    }


def drift(state: TopicState, plan: TopicPlan) -> list[str]:
    """Return what differs, one sentence each. Pure."""
    found = []
    if plan.partitions is not None and state.partitions != plan.partitions:
        found.append(
            f"partitions is {state.partitions}, planned {plan.partitions}: the count is for life, as keys would move; "
            "make another topic instead"
        )
    if plan.replication is not None and state.replicas < plan.replication:
        found.append(f"replication factor is {state.replicas}, planned {plan.replication}: reassign the partitions")
    for name, value in wanted(state, plan).items():
        if not _fits(name, value, state):
            found.append(f"{name} is {state.configs.get(name)}, needed {value}: {_WHY[name]}")
    return found


_WHY = {
    "cleanup.policy": "compaction would delete all but a run's last record",
    "retention.ms": "events would be deleted by age, and a gate could not be decided again",
    "retention.bytes": "events would be deleted by size, and a gate could not be decided again",
    "min.insync.replicas": "an acknowledged event must survive the loss of a broker",
    "unclean.leader.election.enable": "a stale replica would lose acknowledged events",
    "max.message.bytes": f"records of up to {MIN_MESSAGE_BYTES} bytes would be refused",
}


def _fits(name: str, value: str, state: TopicState) -> bool:
    have = state.configs.get(name)
    if name in {"max.message.bytes", "min.insync.replicas"}:
        least = MIN_MESSAGE_BYTES if name == "max.message.bytes" else int(value)
        return have is not None and int(have) >= least
    return have == value


@contextmanager
def _admin(settings: KafkaSettings) -> Iterator[Any]:
    try:
        from kafka import KafkaAdminClient  # noqa: PLC0415 # the light install has none
        from kafka.errors import KafkaError  # noqa: PLC0415
    except ImportError:
        raise SinkUnavailableError(
            f"{settings.url}: kafka-python is not installed here; pip install 'enginetrail[kafka]'"
        ) from None
    listen()
    began = time.monotonic()
    client = {
        "bootstrap_timeout_ms": ANSWER_MS,
        "request_timeout_ms": ANSWER_MS,
        **{name: value for name, value in settings.client.items() if name != "api_version"},
    }
    try:
        with KafkaAdminClient(**client) as admin:
            yield admin
    except KafkaError as error:
        why = failure_since(began) or f"{type(error).__name__}: {error.args[0] if error.args else ''}"
        raise SinkUnavailableError(f"{settings.url}: {why}; check the address and the KAFKA_* settings") from error


def _state(admin: Any, topic: str) -> TopicState | None:
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415 # the light install has none
    from kafka.errors import UnknownTopicOrPartitionError, for_code  # noqa: PLC0415

    found = admin.describe_topics([topic])[0]
    error = for_code(found["error_code"])
    if error is UnknownTopicOrPartitionError:
        return None
    if found["error_code"]:
        raise error
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    configs = admin.describe_configs([resource], config_filter="all")["topic"][topic]
    return TopicState(
        partitions=len(found["partitions"]),
        replicas=min(len(partition["replica_nodes"]) for partition in found["partitions"]),
        configs={name: str(config["value"]) for name, config in configs.items()},
    )


def _create(admin: Any, topic: str, plan: TopicPlan) -> str:
    from kafka.admin import NewTopic  # noqa: PLC0415 # the light install has none

    partitions, replicas = plan.partitions or 1, plan.replication or 1
    state = TopicState(partitions, replicas, {})
    new = NewTopic(topic, partitions, replicas, topic_configs=wanted(state, plan))
    admin.create_topics([new], timeout_ms=ANSWER_MS, wait_for_metadata=True)
    return f"made topic {topic}: {partitions} partition{'s' if partitions > 1 else ''} for life, {replicas} replicas"


def _set(admin: Any, topic: str, configs: Mapping[str, str]) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415 # the light install has none

    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=dict(configs))])
