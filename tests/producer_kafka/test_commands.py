"""Every command with a Kafka log: nothing but where the events are is different."""

import json
import signal
import time

import pytest

from build_events.kafka_settings import KafkaSettings
from builder_agent.spool.drain import waiting_events
from deploy.services import Services
from tests.enginetrail.test_lost_runs import kill_whole
from tests.producer_kafka.conftest import NOWHERE, KafkaCli, unmade_topic
from tests.producer_kafka.wire import assert_whole_and_in_order, read_topic, streams

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


def test_a_build_is_in_the_topic_and_nothing_in_the_spool(cli: KafkaCli, settings: KafkaSettings) -> None:
    """Both streams of the run arrive whole; the views say of it what they say with the local log."""
    summary = cli.build()
    assert (summary["outcome"], summary["complete"], summary["events_waiting"]) == ("completed", True, 0)
    assert assert_whole_and_in_order(streams(read_topic(settings))) == 0
    assert waiting_events(cli.spool) == 0
    assert not list((cli.spool / "runs").iterdir())
    (row,) = cli.query("SELECT run_id, complete, artifact_digest FROM runs")
    assert row == {"run_id": summary["run_id"], "complete": True, "artifact_digest": summary["artifact_digest"]}


def test_evidence_and_decisions_go_to_the_topic(cli: KafkaCli, settings: KafkaSettings) -> None:
    """Short streams are delivered before their command ends, and the next command reads them."""
    summary = cli.build()
    fact = {
        "type": "trt.validation.recorded.v1",
        "data": {
            "artifact_sha256": summary["artifact_digest"],
            "status": "pass",
            "kind": "native_parity",
            "runtime_target": "sm89",
            "samples": 3,
        },
    }
    (cli.folder / "facts.json").write_text(json.dumps([fact]))
    cli("evidence", "record", "r/fp32/sm89", "facts.json")
    cli("gate", "evaluate", "r/fp32/sm89", code=4)
    cli("accept", "stuck-build", summary["run_id"][:8], code=4)
    assert waiting_events(cli.spool) == 0
    types = {event.event.type for record in read_topic(settings) for event in record.events}
    assert {"trt.validation.recorded.v1", "trt.decision.recorded.v1"} <= types
    rows = cli.query("SELECT stream_role, count(*) AS n FROM events GROUP BY ALL ORDER BY ALL")
    assert {row["stream_role"] for row in rows} == {"main", "observer", "route"}


@pytest.mark.quiet
def test_a_retry_finds_the_plan_of_a_run_that_was_delivered(cli: KafkaCli) -> None:
    """The spool has given the run away; the store knows it."""
    killed = cli.build("--deadline", "1.5", model="large.onnx", code=124)
    assert not list((cli.spool / "runs").iterdir())
    again = cli.build("--retry-of", killed["run_id"][:8])
    (row,) = cli.query(f"SELECT retry_of, retry_policy FROM runs WHERE run_id = '{again['run_id']}'")
    assert row == {"retry_of": killed["run_id"], "retry_policy": "retry_cold"}
    (context,) = cli.query(
        "SELECT data->>'retried_trace_id' AS retried, (SELECT trace_id FROM events "
        f"WHERE run_id = '{killed['run_id']}' AND type = 'trt.build.run.started.v1') AS of_the_retried FROM events "
        f"WHERE run_id = '{again['run_id']}' AND type = 'trt.build.context.recorded.v1'"
    )
    assert context["retried"] == context["of_the_retried"]


@pytest.mark.quiet
def test_without_a_broker_a_build_succeeds_and_leaves_within_its_bound(away: KafkaCli) -> None:
    """It says how many events wait, and where; ``--drain`` is the whole price."""
    plain = away.at("").build()
    assert plain["outcome"] == "completed"
    for drain in (0.0, 2.0):
        began = time.monotonic()
        process = away(
            *("build", "model.onnx", "-o", "m.engine", "--route", "r", "--target", "sm89", "--drain", str(drain))
        )
        took = time.monotonic() - began
        assert "events wait in" in process.stderr
        assert "`enginetrail relay` or the next start delivers them" in process.stderr
        assert "no broker answers there" in process.stderr or drain == 0
        assert took < drain + 5, "interpreter, library and build take about a second of it"


def test_relay_delivers_what_a_worker_left(away: KafkaCli, settings: KafkaSettings) -> None:
    """An ephemeral worker has no next start: one command empties its spool, and says so."""
    runs = [away.build("--drain", "0")["run_id"] for _ in range(3)]
    assert away("relay", "--timeout", "0.5", code=1).stdout.startswith("0 events delivered")
    cli = away.at(settings.url)
    waiting = waiting_events(cli.spool)
    assert cli("relay").stdout == f"{waiting} events delivered, 0 refused, 0 wait\n"
    assert assert_whole_and_in_order(streams(read_topic(settings))) == 0
    assert not list((cli.spool / "runs").iterdir())
    assert {row["run_id"] for row in cli.query("SELECT run_id FROM runs WHERE complete")} == set(runs)
    assert cli("relay").stdout == "0 events delivered, 0 refused, 0 wait\n"


def test_the_next_start_delivers_what_the_last_one_left(away: KafkaCli, settings: KafkaSettings) -> None:
    """A build drains the whole spool of its home, its own run first."""
    first = away.build("--drain", "0")["run_id"]
    cli = away.at(settings.url)
    second = cli.build("--drain", "20")
    assert second["events_waiting"] == 0
    found = {event.stream.run_id for record in read_topic(settings) for event in record.events}
    assert found == {first, second["run_id"]}


def test_a_side_car_delivers_while_builds_run(away: KafkaCli, settings: KafkaSettings) -> None:
    """``relay --follow`` empties the spool of builds that never wait for it, until it is told to stop."""
    cli = away.at(settings.url)
    process = cli.start("relay", "--follow")
    try:
        runs = {away.build("--drain", "0")["run_id"] for _ in range(3)}
        deadline = time.monotonic() + 30
        while waiting_events(cli.spool) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert waiting_events(cli.spool) == 0
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert output.endswith(" refused, 0 wait\n")
    records = read_topic(settings)
    assert_whole_and_in_order(streams(records))
    assert {event.stream.run_id for record in records for event in record.events} == runs


def test_a_side_car_that_is_told_to_stop_tells_of_a_build_that_was_killed(
    away: KafkaCli, settings: KafkaSettings
) -> None:
    """The kernel kills a container whole for its memory; the side-car is stopped right after it."""
    cli = away.at(settings.url)
    relay = cli.start("relay", "--follow", "--drain", "20")
    assert relay.stderr is not None
    assert relay.stderr.readline().startswith("relaying ")  # what it declares at its start is behind it
    build = away.start("build", "large.onnx", "-o", "m.engine", "--route", "r", "--target", "sm89")
    deadline = time.monotonic() + 30
    while not waiting_events(cli.spool) and "trt.build.run.started.v1" not in _types(settings):
        assert time.monotonic() < deadline, "the build did not start"
        time.sleep(0.01)
    kill_whole(build.pid)
    relay.send_signal(signal.SIGTERM)
    build.communicate(timeout=30)
    output, errors = relay.communicate(timeout=60)
    assert relay.returncode == 0, output + errors
    types = _types(settings)
    assert types.count("trt.build.run.started.v1") == types.count("trt.build.run.lost.v1") == 1


def _types(settings: KafkaSettings) -> list[str]:
    return [event.event.type for record in read_topic(settings) for event in record.events]


def test_relay_without_a_kafka_log_is_wrong_usage(away: KafkaCli) -> None:
    """There is nowhere to deliver to."""
    assert "--log kafka://HOST:PORT/TOPIC" in away.at("")("relay", code=2).stderr


@pytest.mark.parametrize("url", ["kafka://host/topic", "http://127.0.0.1:9/t"])
def test_a_log_that_is_none_is_wrong_usage(away: KafkaCli, url: str) -> None:
    """Given by variable or option, the error says by which and what was expected."""
    assert "given by ENGINETRAIL_LOG" in away.at(url)("runs", code=2).stderr
    assert "given by --log" in away("--log", url, "runs", code=2).stderr


def test_the_option_wins_over_the_variable(away: KafkaCli, settings: KafkaSettings) -> None:
    """``--log`` is for one command."""
    assert "keeps everything" in away("--log", settings.url, "topics", "check").stdout


def test_topics_are_made_checked_and_never_deleted(away: KafkaCli, kafka: Services) -> None:
    """A finite retention is drift; ``ensure`` sets it back, and leaves a partition count that differs."""
    settings = unmade_topic(kafka)
    cli = away.at(settings.url)
    assert "does not exist" in cli("topics", "check", code=4).stdout
    assert "made topic" in cli("topics", "ensure", "--partitions", "3").stdout
    assert "keeps everything" in cli("topics", "check", "--partitions", "3").stdout
    _alter(settings, {"retention.ms": "60000", "cleanup.policy": "compact"})
    findings = cli("topics", "check", code=4).stdout
    assert "drift: retention.ms is 60000, needed -1" in findings
    assert "drift: cleanup.policy is compact, needed delete" in findings
    healed = cli("topics", "ensure", "--partitions", "4", code=4).stdout
    assert "set retention.ms=-1" in healed
    assert "drift: partitions is 3, planned 4" in healed
    assert "keeps everything" in cli("topics", "check").stdout


def test_what_the_log_refused_is_listed_with_its_dead_letters(cli: KafkaCli, settings: KafkaSettings) -> None:
    """It stays in the spool with its bytes; a retry names it and leaves it, and the run is not complete."""
    _alter(settings, {"max.message.bytes": "2000"})
    cli.build()
    rows = cli.json("deadletters", "list", "--payload")
    assert {row["kept_in"] for row in rows} == {"spool"}
    assert all(len(bytes.fromhex(row["payload"])) == row["size_bytes"] for row in rows)
    retried = cli("deadletters", "retry")
    assert retried.stdout == "0 dead letters tried, 0 healed, 0 events stored\n"
    assert f"{len(rows)} more were refused by the log" in retried.stderr
    assert cli.query("SELECT complete FROM runs") == [{"complete": False}]


def test_a_cluster_that_does_not_answer_is_a_fault(away: KafkaCli) -> None:
    """One line, exit 1, within the client's bound."""
    process = away("topics", "check", code=1)
    assert process.stderr.startswith(f"enginetrail: {NOWHERE}: ")
    assert len(process.stderr.splitlines()) == 1


def test_an_embedded_run_arrives_too(cli: KafkaCli, settings: KafkaSettings) -> None:
    """``observe`` reads the same variable; the host waits for the topic at most at its own exit."""
    code = """
import pathlib, sys
import tensorrt_rtx as trt
from builder_agent import observe
logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger)
network = builder.create_network(0)
trt.OnnxParser(network, logger).parse(pathlib.Path("model.onnx").read_bytes())
config = builder.create_builder_config()
config.num_compute_capabilities = 1
config.set_compute_capability(trt.ComputeCapability.SM89, 0)
with observe(route="r/fp32/sm89", output="m.engine") as run:
    run.build(builder, network, config, inputs=["model.onnx"])
print(run.result.outcome)
"""
    process = cli.python(code)
    assert (process.stdout, process.stderr) == ("completed\n", "")
    assert assert_whole_and_in_order(streams(read_topic(settings))) == 0
    assert waiting_events(cli.spool) == 0
    (row,) = cli.query("SELECT complete, mode FROM runs")
    assert row == {"complete": True, "mode": "embedded"}
    without = cli.at(NOWHERE).python(code)
    assert without.stdout == "completed\n"
    assert "events wait in" in without.stderr
    assert waiting_events(cli.spool) > 0


def _alter(settings: KafkaSettings, configs: dict[str, str]) -> None:
    from kafka import KafkaAdminClient  # noqa: PLC0415 # beside its only use
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415

    with KafkaAdminClient(bootstrap_servers=list(settings.servers)) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, settings.topic, configs=configs)])
