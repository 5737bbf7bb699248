"""Where a Kafka log is and how to get in: ``kafka://HOST:PORT[,HOST:PORT...]/TOPIC`` and ``KAFKA_*`` variables.

Pure: knows no Kafka client. The names of ``client`` are those of kafka-python, which agent and
collector hand over to every client they make.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from build_events.errors import EngineTrailError

SCHEME = "kafka://"
# The client's first request would otherwise wait for a broker that may be away. Topic ids came with
# 2.8, and brokers 4.x still speak all of it.
API_VERSION = (2, 8)
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # org.apache.kafka.common.internals.Topic
_SERVER = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s\[\]:,/@]+):(?P<port>[0-9]{1,5})")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class KafkaSettingsError(EngineTrailError):
    """A Kafka address or a ``KAFKA_*`` variable cannot be used."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """One topic on one cluster, and the client settings to reach it."""

    servers: tuple[str, ...]  # host:port
    topic: str
    # kafka-python keyword arguments: bootstrap_servers, api_version, security_protocol, ssl_*, sasl_*.
    client: Mapping[str, Any] = field(repr=False)  # holds passwords

    @property
    def url(self) -> str:
        """The address, without any secret."""
        return f"{SCHEME}{','.join(self.servers)}/{self.topic}"


def is_kafka_url(text: str) -> bool:
    """Say whether ``text`` means a Kafka log."""
    return text.startswith(SCHEME)


def kafka_settings(url: str, environment: Mapping[str, str]) -> KafkaSettings:
    """Return what ``url`` and the ``KAFKA_*`` variables of ``environment`` say.

    Raises:
        KafkaSettingsError: the address has another form, or a variable a value that means nothing.
    """
    servers, topic = _address(url)
    for name, why in UNUSABLE.items():
        if environment.get(name):
            raise KafkaSettingsError(f"{name} is set, but {why}")
    client: dict[str, Any] = {"bootstrap_servers": list(servers), "api_version": API_VERSION}
    for name, read in VARIABLES.items():
        text = environment.get(name, "")
        if text:
            client[name.removeprefix("KAFKA_").lower()] = _value(name, text, read)
    return KafkaSettings(servers, topic, client)


def _address(url: str) -> tuple[tuple[str, ...], str]:
    hosts, slash, topic = url.removeprefix(SCHEME).partition("/")
    servers = tuple(hosts.split(","))
    if not url.startswith(SCHEME) or not slash or not all(_is_server(server) for server in servers):
        raise KafkaSettingsError(
            f"log {url!r}: expected kafka://HOST:PORT/TOPIC, several brokers as HOST:PORT,HOST:PORT"
        )
    if not _TOPIC.fullmatch(topic) or topic in {".", ".."}:
        raise KafkaSettingsError(
            f"log {url!r}: {topic!r} is no topic name; use up to 249 letters, digits, '.', '_' and '-'"
        )
    return servers, topic


def _is_server(text: str) -> bool:
    found = _SERVER.fullmatch(text)
    return found is not None and 0 < int(found["port"]) < 1 << 16


def _value(name: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except (KeyError, ValueError):
        raise KafkaSettingsError(f"{name} is {text!r}; {_EXPECTED[read]}") from None


def _protocol(text: str) -> str:
    if text.upper() not in PROTOCOLS:
        raise ValueError(text)
    return text.upper()


def _flag(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


_EXPECTED: Mapping[Callable[[str], Any], str] = {
    _protocol: f"expected one of {', '.join(PROTOCOLS)}",
    _flag: "expected true or false",
    _version: "expected a broker version such as 2.8",
}

# Never ignored in silence: who sets one of these relies on it. Source: kafka-python 3.0.12.
UNUSABLE: Mapping[str, str] = {
    "KAFKA_SSL_CIPHERS": "the client ignores it: unset it, and restrict `ssl.cipher.suites` at the broker",
    "KAFKA_SSL_CRLFILE": "the client cannot read it: unset it, and have brokers signed by a new authority",
}

# What is read from the environment: the settings of kafka-python for encryption and authentication.
VARIABLES: Mapping[str, Callable[[str], Any]] = {
    "KAFKA_API_VERSION": _version,
    "KAFKA_SECURITY_PROTOCOL": _protocol,
    "KAFKA_SSL_CHECK_HOSTNAME": _flag,
    "KAFKA_SSL_CAFILE": str,
    "KAFKA_SSL_CERTFILE": str,
    "KAFKA_SSL_KEYFILE": str,
    "KAFKA_SSL_PASSWORD": str,
    "KAFKA_SASL_MECHANISM": str,
    "KAFKA_SASL_PLAIN_USERNAME": str,
    "KAFKA_SASL_PLAIN_PASSWORD": str,
    "KAFKA_SASL_KERBEROS_SERVICE_NAME": str,
    "KAFKA_SASL_KERBEROS_DOMAIN_NAME": str,
}
