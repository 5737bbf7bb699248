"""A broker that asks who is there: one listener for client certificates, one for names and passwords, both over TLS."""

import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from deploy.services.cache import BuildCache, default_folder
from deploy.services.kafka import Kafka
from deploy.services.ports import HOST, choose
from deploy.services.process import Daemon, spawn
from deploy.services.spec import Place
from deploy.services.tools import Tools
from tests.programs import program

USER, PASSWORD, KEY_PASSWORD = "builder", "let me in", "of the key"
LISTENERS = """
listeners=BROKER://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller},SSL://127.0.0.1:{tls},SASL_SSL://127.0.0.1:{sasl}
advertised.listeners=BROKER://127.0.0.1:{broker},SSL://127.0.0.1:{tls},SASL_SSL://127.0.0.1:{sasl}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL
ssl.keystore.type=PEM
ssl.keystore.location=server.keys.pem
ssl.truststore.type=PEM
ssl.truststore.location=ca.pem
listener.name.ssl.ssl.client.auth=required
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  user_{user}="{password}";
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
"""


@dataclass(frozen=True)
class SecureBroker:
    """Where it listens, and the files of its clients."""

    folder: Path
    ports: Mapping[str, int]

    def certificate(self) -> tuple[str, dict[str, str]]:
        """Return address and ``KAFKA_*`` variables of a client with a certificate."""
        return self._at("tls"), {
            "KAFKA_SECURITY_PROTOCOL": "SSL",
            "KAFKA_SSL_CAFILE": self._file("ca.pem"),
            "KAFKA_SSL_CERTFILE": self._file("client.pem"),
            "KAFKA_SSL_KEYFILE": self._file("client.key"),
            "KAFKA_SSL_PASSWORD": KEY_PASSWORD,
        }

    def password(self, mechanism: str) -> tuple[str, dict[str, str]]:
        """Return address and ``KAFKA_*`` variables of a client with name and password."""
        return self._at("sasl"), {
            "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "KAFKA_SSL_CAFILE": self._file("ca.pem"),
            "KAFKA_SASL_MECHANISM": mechanism,
            "KAFKA_SASL_PLAIN_USERNAME": USER,
            "KAFKA_SASL_PLAIN_PASSWORD": PASSWORD,
        }

    def stranger(self) -> str:
        """Return the file of a certificate authority that the broker has nothing to do with."""
        _make_authority(self.folder, "stranger")
        return self._file("stranger.pem")

    def _at(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"

    def _file(self, name: str) -> str:
        return str(self.folder / name)


@contextmanager
def secure_broker(folder: Path, environ: Mapping[str, str]) -> Iterator[SecureBroker]:
    """Start a broker of its own in ``folder``; it is gone at the end."""
    kafka, tools = Kafka(), Tools(environ, print)
    place = Place(folder, choose((*kafka.port_names, "tls", "sasl")), {})
    launch = kafka.prepare(place, tools, BuildCache(default_folder(environ), print))
    _make_certificates(folder)
    with (folder / "server.properties").open("a") as properties:  # what comes later replaces what came before
        properties.write(LISTENERS.format(**place.ports, user=USER, password=PASSWORD))
    daemon = spawn(folder / "process.json", folder / "log", folder, launch.command, launch.environ)
    try:
        _await(kafka, place, daemon)
        _add_scram_user(kafka.address(place.ports))
        yield SecureBroker(folder, place.ports)
    finally:
        daemon.send(signal.SIGKILL)
        assert daemon.wait(kafka.stop_timeout_s)


def _await(kafka: Kafka, place: Place, daemon: Daemon) -> None:
    deadline = time.monotonic() + kafka.start_timeout_s
    while not kafka.is_ready(place.ports):
        assert daemon.is_running(), (place.folder / "log").read_text()
        assert time.monotonic() < deadline, (place.folder / "log").read_text()
        time.sleep(0.05)


def _add_scram_user(address: str) -> None:
    credential = UserScramCredentialUpsertion(USER, ScramMechanism.SCRAM_SHA_512, PASSWORD)
    with KafkaAdminClient(bootstrap_servers=address) as admin:
        assert admin.alter_user_scram_credentials([credential]) == {USER: None}


def _make_certificates(folder: Path) -> None:
    """Make an authority, the broker's certificate for its address, and a client's with a key that has a password."""
    _make_authority(folder, "ca")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key")
    _openssl(folder, "server", *signed, "-nodes", "-addext", f"subjectAltName=IP:{HOST}")
    _openssl(folder, "client", *signed, "-passout", f"pass:{KEY_PASSWORD}")
    whole = (folder / "server.key").read_bytes() + (folder / "server.pem").read_bytes()
    (folder / "server.keys.pem").write_bytes(whole)


def _make_authority(folder: Path, name: str) -> None:
    _openssl(folder, name, "-nodes")


def _openssl(folder: Path, name: str, *options: str) -> None:
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", f"{name}.key")
    made = ("req", "-x509", *key, "-out", f"{name}.pem", "-subj", f"/CN={name}", "-days", "2")
    subprocess.run(
        [program("openssl"), *made, *options],
        cwd=folder,
        check=True,
        capture_output=True,
    )
