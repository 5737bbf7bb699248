"""TLS and SASL: the documented settings let every command in, and a broker that refuses says why."""

import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from typing_extensions import override

from tests.enginetrail.conftest import TIMEOUT_S
from tests.producer_kafka.conftest import KafkaCli
from tests.producer_kafka.secure_broker import SecureBroker, secure_broker
from tests.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class SecureCli(KafkaCli):
    """The command with ``KAFKA_*`` variables."""

    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    @override
    def environment(self) -> dict[str, str]:
        return {**super().environment, **self.variables}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, environ: dict[str, str]) -> Iterator[SecureBroker]:
    """One broker for all tests here."""
    with secure_broker(tmp_path_factory.mktemp("secure"), environ) as started:
        yield started


def caught_up(cli: "SecureCli") -> bool:
    """Say whether the follower has read everything; a partition without a snapshot yet is told by exit 1."""
    try:
        status = cli.json("collect", "--status")
    except AssertionError as early:
        if "Ask again in a moment" in str(early):
            return False
        raise
    return bool(status["lag"] == 0)


@pytest.mark.parametrize("way", ["certificate", "PLAIN", "SCRAM-SHA-512"])
def test_every_command_gets_in_with_the_documented_settings(broker: SecureBroker, away: KafkaCli, way: str) -> None:
    """Topic, delivery, collectors that follow and read once: each makes clients of its own."""
    address, variables = broker.certificate() if way == "certificate" else broker.password(way)
    cli = SecureCli(away.folder, f"kafka://{address}/{way}", variables)
    cli("topics", "ensure", "--partitions", "2")
    assert cli.build()["events_waiting"] == 0
    away.build("--drain", "0")
    assert cli("relay").stdout.endswith(" 0 refused, 0 wait\n")
    follower = cli.start("collect", "--follow", *(("--group", "g") if way == "PLAIN" else ()))
    try:
        until(lambda: caught_up(cli))
    finally:
        follower.send_signal(signal.SIGTERM)
        _, said = follower.communicate(timeout=TIMEOUT_S)
    assert follower.returncode == 0, said
    assert cli.query("SELECT count(*) AS n FROM runs WHERE complete") == [{"n": 2}]


def test_a_broker_that_refuses_says_why(broker: SecureBroker, away: KafkaCli) -> None:
    """The reason is that of the refusal, not of the time that ran out; what waits stays in the spool."""
    away.build("--drain", "0")
    by_certificate, certificate = broker.certificate()
    by_password, password = broker.password("PLAIN")
    _, scram = broker.password("SCRAM-SHA-512")
    unknown = {name: certificate[name] for name in ("KAFKA_SECURITY_PROTOCOL", "KAFKA_SSL_CAFILE")}
    # What the broker says, or, where the client lost that with the connection, what it may have said.
    sasl = "SaslAuthenticationFailedError|a broker hangs up on a user, password"
    wrong = {"KAFKA_SASL_PLAIN_PASSWORD": "wrong"}
    refused = [
        (by_certificate, {**certificate, "KAFKA_SSL_CAFILE": broker.stranger()}, "certificate verify failed"),
        (by_certificate, unknown, "alert bad certificate"),
        (by_password, {**password, **wrong}, sasl),
        (by_password, {**scram, **wrong}, sasl),
    ]
    for address, variables, why in refused:
        # Two at once: eight on two busy cores outlast the time that a handshake has.
        secure = SecureCli(away.folder, f"kafka://{address}/t", variables)
        tried = [secure.start(*command) for command in (("relay", "--timeout", "4"), ("collect",))]
        said_by = [(process, process.communicate(timeout=TIMEOUT_S)[1]) for process in tried]
        for process, said in said_by:
            assert process.returncode == 1, said
            assert re.search(why, said), said
            assert "KAFKA_* settings" in said
            assert "wrong" not in said
