"""A real broker: it takes records and keeps them, its port and itself over every kind of end."""

import pytest

from deploy.services import Services
from tests.services.records import partitions, read, write

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


def test_a_produced_record_is_consumed(kafka: Services) -> None:
    """What a client writes, a client reads."""
    address = kafka.address("kafka")
    write(address, "one-record", [b"hello"])
    assert read(address, "one-record", 1) == [b"hello"]


def test_a_client_that_mentions_a_topic_does_not_make_it(kafka: Services) -> None:
    """Topics are made with their settings or not at all."""
    assert partitions(kafka.address("kafka"), "never-made") == set()


def test_starting_again_leaves_what_runs(kafka: Services) -> None:
    """A second start gives the same address of the same process."""
    before = kafka.status("kafka")
    assert kafka.start("kafka") == before.address
    assert kafka.status("kafka") == before
    assert before.state == "running"


def test_port_and_records_stay_over_down_and_up(kafka: Services) -> None:
    """After stop and start the same address serves the same records from a new process."""
    before = kafka.status("kafka")
    write(kafka.address("kafka"), "over-a-stop", [b"kept"])
    kafka.stop("kafka")
    assert kafka.status("kafka").state == "stopped"
    assert kafka.address("kafka") == before.address
    kafka.start("kafka")
    assert kafka.status("kafka").pid != before.pid
    assert read(kafka.address("kafka"), "over-a-stop", 1) == [b"kept"]


def test_acknowledged_records_survive_a_kill(kafka: Services) -> None:
    """SIGKILL returns when the broker is gone and its port free; all it acknowledged is there afterwards."""
    values = [str(number).encode() for number in range(500)]
    write(kafka.address("kafka"), "over-a-kill", values)
    address, killed = kafka.address("kafka"), kafka.status("kafka").pid
    kafka.kill("kafka")
    assert kafka.start("kafka") == address
    assert kafka.status("kafka").pid != killed
    assert read(address, "over-a-kill", len(values)) == values


def test_the_broker_listens_on_loopback_alone(kafka: Services) -> None:
    """Nothing on the network reaches it: its configuration names no other address."""
    configuration = (kafka.log("kafka").parent / "server.properties").read_text()
    listeners = [line for line in configuration.splitlines() if "listeners=" in line]
    assert len(listeners) == 2
    assert all(part.split("://")[1].startswith("127.0.0.1:") for line in listeners for part in line.split(","))
