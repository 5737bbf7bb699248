"""Collectors killed, rebalanced and out of room under load: the tables are those of an undisturbed one."""

import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from collector.published import open_published
from tests.collector_kafka.load import Load, seeded
from tests.collector_kafka.members import Site, end, undisturbed
from tests.collector_kafka.tables import tables, views
from tests.collector_kafka.topics import Topic
from tests.seeds import REPEAT
from tests.waiting import until

PARTITIONS = 3  # of a topic, unless told otherwise

pytestmark = [pytest.mark.service, pytest.mark.fault, pytest.mark.timeout(1800)]


def test_a_collector_killed_at_any_moment_loses_and_doubles_nothing(site: Site, tmp_path: Path) -> None:
    """Kill -9 while it reads, parses, commits, checkpoints or starts."""
    chance = seeded()
    with Load(site.topic, chance).running():
        for _ in range(max(REPEAT, 4)):
            process = site.start()
            time.sleep(chance.uniform(0.5, 3.0))
            end(process, signal.SIGKILL)
    site.command("collect")
    assert site.tables() == undisturbed(site.topic, tmp_path)


@pytest.mark.parametrize("members", [2, 3])
def test_a_rebalance_in_the_middle_of_a_batch_loses_and_doubles_nothing(
    site: Site, tmp_path: Path, members: int
) -> None:
    """Members come and go every few seconds; together their stores are a single collector's."""
    chance = seeded()
    running: list[subprocess.Popen[str]] = []
    with Load(site.topic, chance).running():
        for _ in range(members):
            running.append(site.start("--group", "g"))
            time.sleep(chance.uniform(0.5, 2.0))
        for _ in range(REPEAT):
            time.sleep(chance.uniform(1.0, 3.0))
            leaving = running.pop(chance.randrange(len(running)))
            end(leaving)
            running.append(site.start("--group", "g"))
        time.sleep(chance.uniform(1.0, 3.0))
    found = site.union()
    for process in running:
        end(process)
    assert found == undisturbed(site.topic, tmp_path)
    assert site.union() == found


def test_members_killed_at_any_moment_are_replaced(site: Site, tmp_path: Path) -> None:
    """The lock goes with the killed process, and its partitions go to others after the session's time."""
    chance = seeded()
    running = [site.start("--group", "g") for _ in range(3)]
    with Load(site.topic, chance).running():
        for _ in range(REPEAT):
            time.sleep(chance.uniform(1.0, 4.0))
            end(running.pop(0), signal.SIGKILL)
            running.append(site.start("--group", "g"))
    found = site.union()
    for process in running:
        end(process)
    assert found == undisturbed(site.topic, tmp_path)


def test_two_hosts_publish_what_one_collector_would_store(site: Site, topic: Topic, tmp_path: Path) -> None:
    """Two homes in one group publish Parquet; whoever reads it sees one store, also after a host took over."""
    chance = seeded()
    sites = [site, Site(tmp_path / "there", topic, site.started)]
    shared = tmp_path / "shared"
    load = Load(topic, chance)
    with load.running():
        running = [site.start("--group", "g", "--publish", str(shared)) for site in sites]
        until(lambda: len({path.parent for path in shared.glob("log=*/partition=*/snapshot=*")}) == PARTITIONS)
        until(lambda: load.events > 500)
        end(running.pop(0))
    process = running.pop()
    expected = undisturbed(topic, tmp_path)
    ends = _ends(topic)

    def complete() -> bool:
        with open_published(shared, views(), ends=ends) as store:
            return not store.behind

    until(complete)
    end(process)
    with open_published(shared, views(), ends=ends) as store:
        assert tables(store.query) == expected
    asked = sites[0].command("query", "--published", str(shared), "SELECT count(*) FROM events", "--format", "csv")
    assert int(asked.split()[1]) == len(expected["events"])


@pytest.mark.parametrize("when", ["before the store is there", "in the middle"])
def test_a_full_disk_is_waited_out(site: Site, tmp_path: Path, when: str) -> None:
    """The collector says so, keeps what is committed, and goes on by itself when there is room."""
    chance = seeded()
    load = Load(site.topic, chance)
    process = site.start()
    with load.running():
        until(lambda: load.events > 500)
        if when == "in the middle":
            until(lambda: site.status()["events"] > 500)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        until(lambda: "cannot be written" in site.said())
        assert process.poll() is None
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    until(lambda: site.status()["lag"] == 0)
    end(process)
    assert site.tables() == undisturbed(site.topic, tmp_path)


def _ends(topic: Topic) -> dict[str, int]:
    from collector.kafka.reader import KafkaReader  # noqa: PLC0415 # beside its only use

    reader = KafkaReader(topic.client, topic.name)
    try:
        return reader.ends()
    finally:
        reader.close()
