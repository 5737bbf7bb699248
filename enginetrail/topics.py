"""``enginetrail topics``: the Kafka topic behind the log."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from builder_agent.kafka.topics import TopicPlan, check_topic, ensure_topic
from enginetrail.home import Home
from enginetrail.log_choice import need_kafka

EXIT_DRIFT = 4


def _plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    count = click.IntRange(min=1)
    for option in (
        click.option("--min-insync", type=count, help="min.insync.replicas.  [default: one less than the replicas]"),
        click.option("--replication", type=count, help="Replicas of each partition.  [default: 1, or as it is]"),
        click.option("--partitions", type=count, help="Partitions, for life.  [default: 1, or as it is]"),
    ):
        command = option(command)
    return command


@click.group()
def topics() -> None:
    """Make the topic of a Kafka log, or check that it keeps everything."""


@topics.command()
@_plan_options
@click.pass_obj
def ensure(home: Home, partitions: int | None, replication: int | None, min_insync: int | None) -> int:
    """Make the topic, or set on the one there is what may be set without loss. Never deletes.

    Exits 0 when the topic is as it should be, 4 where something else differs.
    """
    settings = need_kafka(home)
    done, findings = ensure_topic(settings, TopicPlan(partitions, replication, min_insync))
    for line in done:
        click.echo(line)
    return _report(settings.topic, findings)


@topics.command()
@_plan_options
@click.pass_obj
def check(home: Home, partitions: int | None, replication: int | None, min_insync: int | None) -> int:
    """Report every setting of the topic that could lose events or move keys. Changes nothing.

    Exits 0 when there is none, 4 otherwise.
    """
    settings = need_kafka(home)
    return _report(settings.topic, check_topic(settings, TopicPlan(partitions, replication, min_insync)))


def _report(topic: str, findings: Sequence[str]) -> int:
    for finding in findings:
        click.echo(f"drift: {finding}")
    if not findings:
        click.echo(f"topic {topic} keeps everything")
    return EXIT_DRIFT if findings else 0
