"""What Kafka's client says, as errors of the log port."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kafka.errors import AuthorizationError, KafkaError, SaslAuthenticationFailedError

from build_events.errors import LogUnavailableError
from build_events.kafka_client_log import failure_since


@contextmanager
def broker_errors(doing: str) -> Iterator[None]:
    """Turn the client's errors into ``LogUnavailableError`` that says what could not be done."""
    began = time.monotonic()
    try:
        yield
    except (AuthorizationError, SaslAuthenticationFailedError) as error:
        msg = f"{doing} is refused: {error}. Check the user, its rights and the KAFKA_* settings."
        raise LogUnavailableError(msg) from error
    except KafkaError as error:
        why = failure_since(began) or error
        msg = f"{doing} failed: {why}. Check that the broker runs, its address, and the KAFKA_* settings."
        raise LogUnavailableError(msg) from error
