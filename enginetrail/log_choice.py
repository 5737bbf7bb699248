"""Which log the commands use: the local one, or the Kafka topic that ``--log`` or ``ENGINETRAIL_LOG`` names.

Writers append to the home's spool either way; with Kafka it is drained from there. Without, nothing here
does anything.
"""

import importlib.util
import os
from collections.abc import Mapping

import click

from build_events.kafka_settings import KafkaSettings, KafkaSettingsError, kafka_settings
from build_events.log import EventReader
from enginetrail.home import Home

VARIABLE = "ENGINETRAIL_LOG"
SHORT_DRAIN_S = 2.0


def choose_log(option: str | None, environment: Mapping[str, str]) -> KafkaSettings | None:
    """Return the Kafka log that the option, else the variable names; ``None`` for the local log.

    Raises:
        click.UsageError: it names something else, or a ``KAFKA_*`` variable cannot be used.
    """
    url = option or environment.get(VARIABLE, "")
    if not url:
        return None
    try:
        return kafka_settings(url, environment)
    except KafkaSettingsError as error:
        raise click.UsageError(f"{error}; given by {'--log' if option else VARIABLE}") from None


def need_kafka(home: Home) -> KafkaSettings:
    """Return the home's Kafka log.

    Raises:
        click.UsageError: the log is the local one, or no Kafka client is installed.
    """
    if home.kafka is None:
        raise click.UsageError(f"needs a Kafka log: give --log kafka://HOST:PORT/TOPIC or set {VARIABLE}")
    if importlib.util.find_spec("kafka") is None:
        raise click.UsageError("kafka-python is not installed here; pip install 'enginetrail[kafka]'")
    return home.kafka


def open_log(home: Home) -> EventReader:
    """Return the log to read from.

    Raises:
        EngineTrailError: it cannot be opened.
    """
    if home.kafka is None:
        from build_events.local_log import LocalLog  # noqa: PLC0415 # a chosen adapter

        return LocalLog.create(home.log_folder)
    from collector.kafka.reader import KafkaReader  # noqa: PLC0415 # a chosen adapter

    settings = need_kafka(home)
    return KafkaReader(settings.client, settings.topic)


def spool_bytes(home: Home) -> int | None:
    """Return how large the home's spool may grow, ``None`` where it is the log of record.

    Raises:
        click.UsageError: ``ENGINETRAIL_SPOOL_BYTES`` cannot be used.
    """
    if home.kafka is None:
        return None
    from builder_agent.spool.quota import spool_limit  # noqa: PLC0415 # a chosen adapter

    try:
        return spool_limit(os.environ)
    except KafkaSettingsError as error:
        raise click.UsageError(str(error)) from None
