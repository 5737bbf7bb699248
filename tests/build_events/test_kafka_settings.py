"""Kafka addresses and variables: taken as they are meant, or refused with what was expected."""

from pathlib import Path

import pytest

from build_events.kafka_settings import (
    API_VERSION,
    UNUSABLE,
    VARIABLES,
    KafkaSettingsError,
    is_kafka_url,
    kafka_settings,
)


def test_an_address_names_brokers_and_topic() -> None:
    """The client gets its servers and a fixed protocol version, so that it never waits to learn one."""
    settings = kafka_settings("kafka://a.example:9092,[::1]:9093/builds.v1", {})
    assert (settings.servers, settings.topic) == (("a.example:9092", "[::1]:9093"), "builds.v1")
    assert settings.client == {"bootstrap_servers": ["a.example:9092", "[::1]:9093"], "api_version": API_VERSION}
    assert settings.url == "kafka://a.example:9092,[::1]:9093/builds.v1"


def test_encryption_and_authentication_pass_through() -> None:
    """``KAFKA_*`` variables become the client's settings of the same name; others are left alone."""
    environment = {
        "KAFKA_SECURITY_PROTOCOL": "sasl_ssl",
        "KAFKA_SSL_CAFILE": "/etc/ca.pem",
        "KAFKA_SSL_CHECK_HOSTNAME": "false",
        "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "KAFKA_SASL_PLAIN_USERNAME": "builder",
        "KAFKA_SASL_PLAIN_PASSWORD": "secret",
        "KAFKA_API_VERSION": "3.9",
        "KAFKA_BOOTSTRAP": "elsewhere:1",
        "KAFKA_SSL_KEYFILE": "",
    }
    settings = kafka_settings("kafka://a:1/t", environment)
    assert settings.client == {
        "bootstrap_servers": ["a:1"],
        "api_version": (3, 9),
        "security_protocol": "SASL_SSL",
        "ssl_cafile": "/etc/ca.pem",
        "ssl_check_hostname": False,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "builder",
        "sasl_plain_password": "secret",
    }
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    "url",
    [
        *("kafka://a:1", "kafka://a/t", "kafka:///t", "kafka://a:0/t", "kafka://a:99999/t", "kafka://a:1,/t", "a:1/t"),
        *("kafka://a:1/", "kafka://a:1/t/u", "kafka://a:1/..", "kafka://a:1/" + "t" * 250, "kafka://u:p@a:1/t"),
    ],
)
def test_an_address_of_another_form_is_refused(url: str) -> None:
    """The error shows the address and says what is wrong with it."""
    with pytest.raises(KafkaSettingsError, match=r"expected kafka://HOST:PORT/TOPIC|is no topic name"):
        kafka_settings(url, {})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("KAFKA_SECURITY_PROTOCOL", "TLS"),
        ("KAFKA_SSL_CHECK_HOSTNAME", "maybe"),
        ("KAFKA_API_VERSION", "newest"),
    ],
)
def test_a_variable_without_a_meaning_is_refused(name: str, text: str) -> None:
    """The error names the variable and what it takes."""
    with pytest.raises(KafkaSettingsError, match=f"{name} is '{text}'; expected"):
        kafka_settings("kafka://a:1/t", {name: text})


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_setting_that_the_client_would_ignore_is_refused(name: str) -> None:
    """Who restricts encryption must not believe that it is restricted."""
    with pytest.raises(KafkaSettingsError, match=f"{name} is set, but the client .*: unset it"):
        kafka_settings("kafka://a:1/t", {name: "x"})


def test_every_variable_is_documented() -> None:
    """What is read from the environment stands in docs/kafka.md."""
    page = (Path(__file__).parents[2] / "docs" / "kafka.md").read_text(encoding="utf-8")
    assert [name for name in (*VARIABLES, *UNUSABLE) if f"`{name}`" not in page] == []


def test_only_the_scheme_tells_a_kafka_log() -> None:
    """Everything else is somebody else's to refuse."""
    assert is_kafka_url("kafka://x")
    assert not is_kafka_url("file:///x")
