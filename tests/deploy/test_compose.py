"""The compose file: by the specification's schema, with the versions that the tests run, on loopback."""

import json
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
import yaml

from deploy.services import jaeger, otelcol, prometheus
from deploy.services.spec import SOURCES
from tests.deploy.budget import cancel_budget_s, drain_s, seconds
from tests.deploy.files import DEPLOY, OURS, ROOT, compose, containers, pods

SERVICES: Mapping[str, dict[str, Any]] = compose()["services"]
OTEL_COLLECTOR = SERVICES["otel-collector"]


def _tested() -> dict[str, str]:
    """Return image and tag of each service as ``deploy/services`` has its version."""
    pom = (SOURCES / "kafka" / "pom.xml").read_text()
    manifest = (SOURCES / "otelcol" / "manifest.yaml").read_text()
    return {
        "apache/kafka": _one(r"kafka_2\.13</artifactId>\s*<version>([\d.]+)<", pom),
        "otel/opentelemetry-collector-contrib": _one(r"\n  version: ([\d.]+)\n", manifest),
        "jaegertracing/jaeger": _one(r"=v([\d.]+)$", jaeger._STAMP),
        "prom/prometheus": "v" + _one(r"=([\d.]+)$", prometheus._STAMP),
    }


def _one(pattern: str, text: str) -> str:
    (found,) = re.findall(pattern, text)
    return str(found)


def test_the_file_is_what_the_compose_specification_says() -> None:
    """By its JSON Schema, which refuses unknown names."""
    text = files("check_jsonschema.builtin_schemas").joinpath("vendor/compose-spec.json").read_text()
    validator = jsonschema.Draft202012Validator(json.loads(text))
    validator.validate(compose())
    wrong = compose()
    wrong["services"]["kafka"]["imagee"] = "x"
    assert not validator.is_valid(wrong)


def test_images_have_the_versions_that_the_tests_run() -> None:
    """Theirs as built by ``deploy/services``, ours as the project's; each with a full version."""
    tested, version = _tested(), tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    images = {service["image"] for service in SERVICES.values()}
    assert tested.keys() <= {image.partition(":")[0] for image in images}
    images |= {container["image"] for _, pod in pods() for container in containers(pod)}
    for image in images:
        name, _, tag = image.partition(":")
        assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag), image
        assert tag == (version if OURS.fullmatch(image) else tested.get(name, tag)), image


def test_only_loopback_is_published() -> None:
    """No server here asks who is there."""
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_every_file_that_is_mounted_is_in_the_repository() -> None:
    """A missing one becomes an empty folder of root, without a word."""
    mounted = {
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
        if isinstance(volume, str) and volume.startswith(".")
    }
    assert mounted
    missing = [path for path in mounted if not (DEPLOY / path).exists()]
    assert not missing


def test_every_named_volume_is_declared_and_used() -> None:
    """State lies in volumes that outlive a container."""
    used = {
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
        if isinstance(volume, str) and not volume.startswith(".")
    }
    assert used == compose()["volumes"].keys()


def test_who_waits_for_whom_can_come_true() -> None:
    """Healthy needs a check, completed an end, and nobody waits for a profile that is not his."""
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            awaited = SERVICES[other]
            if how["condition"] == "service_healthy":
                assert "test" in awaited["healthcheck"], (name, other)
            ends = awaited["restart"] == "no"
            assert ends == (how["condition"] == "service_completed_successfully"), (name, other)
            assert set(awaited.get("profiles", [])) <= set(service.get("profiles", [])), (name, other)


def test_a_stop_leaves_a_build_the_time_of_its_ladder() -> None:
    """Compose kills the container after the grace."""
    build, relay = SERVICES["build"], SERVICES["relay"]
    assert seconds(build["stop_grace_period"]) >= cancel_budget_s(build["command"])
    assert seconds(relay["stop_grace_period"]) > drain_s(relay["command"])
    assert build["restart"] == "no"
    homes = [[volume for volume in service["volumes"] if isinstance(volume, str)] for service in (build, relay)]
    assert homes[0] == homes[1], "the relay drains and sweeps what the build's container left"


def test_the_settings_of_kafka_are_those_of_the_tested_broker() -> None:
    """Names are known; a single node needs the same exceptions as that of the tests."""
    template = (SOURCES.parent / "templates" / "server.properties").read_text()
    tested = dict(line.split("=", 1) for line in template.splitlines() if line and not line.startswith("#"))
    ours = {
        name.removeprefix("KAFKA_").replace("_", ".").lower(): str(value)
        for name, value in SERVICES["kafka"]["environment"].items()
        if name not in {"CLUSTER_ID", "KAFKA_HEAP_OPTS"}
    }
    assert ours.keys() <= tested.keys()
    alike = [key for key in ours if re.search(r"factor|isr|create|delay|roles|names", key)]
    assert len(alike) >= 8
    assert {key: ours[key] for key in alike} == {key: tested[key] for key in alike}


def test_the_otel_collector_is_given_variables_of_its_configuration() -> None:
    """And listens where other containers reach it, on the ports that are published and scraped."""
    known = dict(re.findall(r"\$\{env:(\w+):-([^}]*)\}", otelcol.CONFIG.read_text()))
    given = OTEL_COLLECTOR["environment"]
    assert given.keys() <= known.keys()
    for name, default in known.items():
        if default.startswith("127.0.0.1"):
            assert given[name] == default.replace("127.0.0.1", "0.0.0.0"), name  # noqa: S104 # inside its container
    topic = known["OTELCOL_KAFKA_TOPIC"]
    assert f"--topic={topic}" in SERVICES["span-topic"]["command"], "the OTel Collector makes no topic"
    assert f"otel-queues:{given['OTELCOL_STORAGE']}" in OTEL_COLLECTOR["volumes"]


def test_the_otel_collector_starts_as_in_the_tests() -> None:
    """With the configuration and the feature gate that ``deploy/services`` runs it with."""
    gates = [argument for argument in OTEL_COLLECTOR["command"] if "feature-gates" in argument]
    assert gates == [otelcol._FEATURE_GATES]
    mounted = {(DEPLOY / volume.split(":")[0]).resolve() for volume in OTEL_COLLECTOR["volumes"]}
    assert otelcol.CONFIG in mounted


def test_grafana_is_provisioned_for_the_services_beside_it() -> None:
    """Data sources are services with their ports; panels take the step that Prometheus really scrapes at."""
    provisioning = DEPLOY / "grafana" / "provisioning"
    sources = yaml.safe_load((provisioning / "datasources" / "enginetrail.yaml").read_text())["datasources"]
    published = {
        (name, port.rpartition(":")[2]) for name, service in SERVICES.items() for port in service.get("ports", [])
    }
    assert {tuple(source["url"].removeprefix("http://").split(":")) for source in sources} <= published
    (step,) = {source["jsonData"]["timeInterval"] for source in sources if source["type"] == "prometheus"}
    assert step == yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["global"]["scrape_interval"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "enginetrail.yaml").read_text())["providers"]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in SERVICES["grafana"]["volumes"]


def test_our_containers_are_confined() -> None:
    """Nothing to write but volumes and /tmp, no capabilities, no new privileges."""
    ours = {name for name, service in SERVICES.items() if OURS.fullmatch(service["image"])}
    assert {"collector", "build", "relay", "topic"} <= ours
    for name in ours - {"otel-queues"}:
        service = SERVICES[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
        assert "no-new-privileges:true" in service["security_opt"]
    assert SERVICES["otel-queues"]["cap_add"] == ["CHOWN"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_says_whether_it_comes_back(name: str) -> None:
    """One-shots and builds end; everything else comes back and has a bound for its end."""
    service = SERVICES[name]
    assert service["restart"] in {"no", "unless-stopped"}
    if service["restart"] == "unless-stopped":
        assert service["stop_grace_period"]
        assert service["mem_limit"]


def test_folders_are_those_of_the_image() -> None:
    """Volumes of our containers lie where the image has folders of its user."""
    made = (DEPLOY / "Dockerfile").read_text()
    for name in ("collector", "build", "relay"):
        for volume in SERVICES[name]["volumes"]:
            if isinstance(volume, str):
                assert f" {volume.split(':')[1]}" in made, (name, volume)
