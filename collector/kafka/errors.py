"""What Kafka's client says, as errors of the log port."""

from collections.abc import Iterator
from contextlib import contextmanager

from kafka.errors import AuthorizationError, KafkaError, SaslAuthenticationFailedError

from build_events.errors import LogUnavailableError


@contextmanager
def broker_errors(doing: str) -> Iterator[None]:
    """Turn the client's errors into ``LogUnavailableError`` that says what could not be done."""
    try:
        yield
    except (AuthorizationError, SaslAuthenticationFailedError) as error:
        msg = f"{doing} is refused: {error}. Check the user, its rights and the KAFKA_* settings."
        raise LogUnavailableError(msg) from error
    except KafkaError as error:
        msg = f"{doing} failed: {error}. Check that the broker runs and that its address is right."
        raise LogUnavailableError(msg) from error
