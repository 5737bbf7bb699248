"""What the files of ``deploy/`` say, read as those who run them would."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
DOCKERFILE = DEPLOY / "Dockerfile"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OURS = re.compile(r"enginetrail-(?:worker|server):(?P<version>.+)")
_COMMAND = "enginetrail"
_PROGRAM = "/opt/enginetrail/bin/enginetrail"
# Compose: ${NAME:-default}
_INTERPOLATED = re.compile(r"\$\{(?P<name>\w+):-(?P<default>[^}]*)\}")


@dataclass(frozen=True, slots=True)
class Line:
    """One command line of ours, and the variables that it is started with."""

    where: str
    arguments: tuple[str, ...]  # of enginetrail
    variables: frozenset[str]


def compose() -> dict[str, Any]:
    """Return the compose file with the defaults of its variables."""
    text = _INTERPOLATED.sub(lambda found: found["default"], COMPOSE.read_text())
    return dict(yaml.safe_load(text))


def kubernetes() -> list[tuple[str, dict[str, Any]]]:
    """Return (file name, document) of every Kubernetes object."""
    return [(path.name, document) for path in KUBERNETES for document in yaml.safe_load_all(path.read_text())]


def kubernetes_object(kind: str) -> dict[str, Any]:
    """Return the one object of a kind."""
    (found,) = (document for _, document in kubernetes() if document["kind"] == kind)
    return found


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all containers of a pod's specification."""
    return [*pod.get("initContainers", []), *pod["containers"]]


def pods() -> list[tuple[str, dict[str, Any]]]:
    """Return (kind, pod specification) of every workload."""
    return [
        (document["kind"], document["spec"]["template"]["spec"])
        for _, document in kubernetes()
        if "template" in document.get("spec", {})
    ]


def settings_of(path: Path) -> dict[str, list[str]]:
    """Return the settings of a unit file, or the variables of an environment file, commented ones included."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if match := re.fullmatch(r"#?(?P<key>[A-Za-z_]+)=(?P<value>.*)", line):
            found.setdefault(match["key"], []).append(match["value"])
    return found


def dockerfile() -> list[tuple[str, str]]:
    """Return (instruction, its text) with continued lines joined and comments left out."""
    text = re.sub(r"(?m)^\s*#.*\n", "", DOCKERFILE.read_text()).replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [(word.upper(), rest.strip()) for word, rest in lines]


def stages() -> dict[str, list[tuple[str, str]]]:
    """Return the instructions of each stage, those of the stages that it builds on first."""
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for word, rest in dockerfile():
        if word == "FROM":
            base, _, name = rest.split()
            found[name] = list(found.get(base, []))
        found[name].append((word, rest))
    return found


def last(stage: str, instruction: str) -> str:
    """Return the text of the instruction that counts in a stage."""
    return [rest for word, rest in stages()[stage] if word == instruction][-1]


def lines() -> Iterator[Line]:
    """Yield every command line of ours in all the files."""
    yield from _lines_of_images()
    yield from _lines_of_compose()
    yield from _lines_of_units()
    yield from _lines_of_kubernetes()


def _lines_of_images() -> Iterator[Line]:
    image = frozenset(re.findall(r"(\w+)=", " ".join(rest for word, rest in dockerfile() if word == "ENV")))
    for stage in ("worker", "server"):
        yield Line(f"Dockerfile {stage} CMD", tuple(json.loads(last(stage, "CMD"))), image)
    check = json.loads(last("server", "HEALTHCHECK").partition("CMD ")[2])
    yield Line("Dockerfile server HEALTHCHECK", _ours(check), image)


def _lines_of_compose() -> Iterator[Line]:
    for name, service in compose()["services"].items():
        if OURS.fullmatch(service["image"]) and "entrypoint" not in service:
            yield Line(f"compose {name}", tuple(service["command"]), frozenset(service.get("environment", {})))


def _lines_of_units() -> Iterator[Line]:
    for path in UNITS:
        unit = settings_of(path)
        variables = {text.partition("=")[0] for text in unit["Environment"]}
        example = path.with_name(re.sub(r"enginetrail-(\w+)@?", r"\1", path.stem) + ".env.example")
        given = {key: values[0] for key, values in settings_of(example).items()}
        parts = shlex.split(unit["ExecStart"][0])
        # systemd: ${NAME} is one argument, $NAME is split.
        expanded = [
            word
            for part in parts
            for word in (shlex.split(given[part[1:]]) if re.fullmatch(r"\$\w+", part) else [_one(part, given)])
        ]
        used = set(re.findall(r"\$\{?(\w+)", unit["ExecStart"][0]))
        yield Line(path.name, _ours(expanded, _PROGRAM), frozenset(variables | (given.keys() - used)))


def _one(part: str, given: dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda found: given[found[1]], part)


def _lines_of_kubernetes() -> Iterator[Line]:
    configured = frozenset(kubernetes_object("ConfigMap")["data"])
    for kind, pod in pods():
        for container in containers(pod):
            where = f"{kind} {container['name']}"
            variables = configured | {item["name"] for item in container.get("env", [])}
            yield Line(where, tuple(container["args"]), variables)
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if probe in container:
                    yield Line(f"{where} {probe}", _ours(container[probe]["exec"]["command"]), variables)


def _ours(command: list[str], program: str = _COMMAND) -> tuple[str, ...]:
    assert command[0] == program, command
    return tuple(command[1:])
