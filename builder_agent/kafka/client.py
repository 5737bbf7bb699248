"""Makes kafka-python producers, and ends them."""

from typing import TYPE_CHECKING

from build_events.kafka_client_log import listen
from build_events.kafka_settings import KafkaSettings
from builder_agent.spool.sink import SinkUnavailableError

if TYPE_CHECKING:
    from kafka import KafkaProducer

HOUR_MS = 3_600_000
# Source of the values: measurements of kafka-python 3.0.12 beside a broker that goes away.
PRODUCER = {
    "acks": "all",
    "enable_idempotence": True,
    "allow_auto_create_topics": False,  # a topic is made with its settings or not at all
    "max_block_ms": 1_000,  # a call without metadata waits this long
    "bootstrap_timeout_ms": 2_000,
    "reconnect_backoff_max_ms": 1_000,  # the default of 30 s outlives most deadlines
    "linger_ms": 5,  # records come in groups already
    "batch_size": 256 << 10,
    "max_request_size": 1 << 20,
    # An outage shorter than this costs no duplicate: the same producer goes on where it stopped.
    "delivery_timeout_ms": HOUR_MS,
    "metrics_enabled": False,
}


def make_producer(settings: KafkaSettings) -> "KafkaProducer":
    """Return a producer that connects in the background.

    Raises:
        SinkUnavailableError: kafka-python is not installed, or refuses a setting.
    """
    try:
        from kafka import KafkaProducer  # noqa: PLC0415 # the light install has none
    except ImportError:
        raise SinkUnavailableError(
            f"{settings.url}: kafka-python is not installed here; pip install 'enginetrail[kafka]'"
        ) from None
    listen()
    try:
        producer = KafkaProducer(**PRODUCER, **settings.client)
    except Exception as error:
        raise SinkUnavailableError(f"{settings.url}: {error}; see the KAFKA_* variables") from error
    # Its exit handler and destructor would wait, and raise, for what is not acknowledged: we close it ourselves.
    producer._unregister_cleanup()  # noqa: SLF001 # there is no public way
    return producer


def end_producer(producer: "KafkaProducer") -> None:
    """Close a producer at once; what is not acknowledged fails.

    ``close`` alone raises where a broker is away and then leaves its thread running.
    """
    from kafka.errors import KafkaError  # noqa: PLC0415 # the light install has none

    sender = producer._sender  # noqa: SLF001 # there is no public way
    sender.force_close()
    sender.join(0.5)
    try:
        producer.close(timeout=0)
    except KafkaError:
        producer._closed = True  # noqa: SLF001 # its destructor would try again
