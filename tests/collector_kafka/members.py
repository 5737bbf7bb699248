"""Collectors as processes of their own, as users start them."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collector.collect import replay
from collector.kafka.reader import KafkaReader
from collector.union import open_union
from tests.collector_kafka.tables import Tables, tables, tables_of, views
from tests.collector_kafka.topics import Topic

COMMAND = str(Path(sys.executable).with_name("enginetrail"))
PATIENCE_S = 90.0


@dataclass(frozen=True)
class Site:
    """One home that collects one topic."""

    home: Path
    topic: Topic
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start a following collector; the caller ends it."""
        self.home.mkdir(parents=True, exist_ok=True)
        command = [COMMAND, "--home", str(self.home), "--log", self.topic.url, "collect", "--follow", *options]
        with (self.home / "stderr.txt").open("a") as errors:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, text=True)
        self.started.append(process)
        return process

    def kill_all(self) -> None:
        """End what a failed test left running."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait(timeout=PATIENCE_S)

    def command(self, *arguments: str, code: int = 0) -> str:
        """Run a command to its end and return its output."""
        command = [COMMAND, "--home", str(self.home), "--log", self.topic.url, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        """Return what ``collect --status`` says."""
        found: dict[str, Any] = json.loads(self.command("collect", "--status", "--format", "json"))
        return found

    def said(self) -> str:
        """Return what the collectors said on standard error so far."""
        return (self.home / "stderr.txt").read_text()

    def tables(self) -> Tables:
        """Return the tables of the single store."""
        return tables_of(self.home / "store.duckdb")

    def union(self) -> Tables:
        """Return the tables of all partitions, once their snapshots hold all of the log."""
        reader = KafkaReader(self.topic.client, self.topic.name)
        try:
            with open_union(self.home, reader, views(), wait_s=PATIENCE_S) as store:
                assert not store.behind
                return tables(store.query)
        finally:
            reader.close()


def undisturbed(topic: Topic, folder: Path) -> Tables:
    """Return the tables of a collector that nobody disturbs."""
    reader = KafkaReader(topic.client, topic.name)
    try:
        replay(reader, folder / "undisturbed.duckdb", views())
    finally:
        reader.close()
    return tables_of(folder / "undisturbed.duckdb")


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> None:
    """End a collector and wait for it; asked politely, it exits with 0, unless it had only just begun."""
    os.kill(process.pid, number)
    code = process.wait(timeout=PATIENCE_S)
    assert code in ({0, -number} if number == signal.SIGTERM else {-number})
