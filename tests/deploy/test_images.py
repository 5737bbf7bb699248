"""The Dockerfile, as far as it can be checked without a container engine: its lint, its files, its locks, its wheel."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.deploy.files import DOCKERFILE, ROOT, dockerfile, last, stages

PACKAGES = ("build_events", "builder_agent", "collector", "analytics", "enginetrail")
# What an image installs beside the base install, and is locked by the file of the same name.
EXTRAS = {"worker": ("kafka", "otel", "tensorrt-rtx"), "server": ("collector", "analytics", "kafka", "otel")}


def _pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", (ROOT / "requirements" / f"{name}.txt").read_text()))


def _installed(extras: tuple[str, ...]) -> set[str]:
    """Return the names of all that an install with these extras brings, from the packages' own metadata."""
    from packaging.requirements import Requirement  # noqa: PLC0415 # for this alone

    found: set[str] = set()
    open_ends = [("enginetrail", extra) for extra in ("", *extras)]
    while open_ends:
        name, extra = open_ends.pop()
        for text in distribution(name).requires or ():
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
                continue
            key = re.sub(r"[-_.]+", "-", wanted.name).lower()
            if key not in found:
                found.add(key)
                open_ends += [(key, more) for more in ("", *wanted.extras)]
    return found


def _sources() -> list[str]:
    """Return what is copied from the repository."""
    copied = [rest.split() for word, rest in dockerfile() if word == "COPY" and not rest.startswith("--from")]
    return [source for words in copied for source in words[:-1]]


def test_the_linter_has_nothing_to_say() -> None:
    """All rules of hadolint."""
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, DOCKERFILE], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("image", EXTRAS)
def test_an_image_installs_its_extras_and_nothing_else(image: str) -> None:
    """Locked by hash, at the versions that the tests run."""
    pins, tested = _pins(image), _pins("dev")
    assert pins.keys() == _installed(EXTRAS[image])
    assert pins.items() <= tested.items()
    lock = (ROOT / "requirements" / f"{image}.txt").read_text()
    assert all("--hash=sha256:" in part for part in re.split(r"(?m)^(?=[a-z])", lock)[1:])
    assert "://" not in lock


def test_a_worker_carries_no_store_and_a_server_no_builder() -> None:
    """Each image is as light as its work."""
    assert not {"duckdb", "pyarrow"} & _pins("worker").keys()
    assert not {name for name in _pins("server") if name.startswith("tensorrt")}


def test_whatever_is_installed_from_an_index_is_locked() -> None:
    """``pip`` gets a lock with hashes, or no index and no dependencies."""
    commands = [json.loads(rest) for word, rest in dockerfile() if word == "RUN" and rest.startswith("[")]
    installs = [command for command in commands if "install" in command]
    assert len(installs) == 5
    for command in installs:
        assert "--require-hashes" in command or {"--no-index", "--no-deps"} <= set(command), command
    (wheel,) = (command for command in commands if "wheel" in command)
    assert {"--no-deps", "--no-build-isolation"} <= set(wheel)


@pytest.mark.parametrize("image", EXTRAS)
def test_an_image_runs_our_command_under_an_init_and_not_as_root(image: str) -> None:
    """No shell as process 1: a signal reaches the supervising parent."""
    assert json.loads(last(image, "ENTRYPOINT")) == ["tini", "--", "enginetrail"]
    user, _, group = last(image, "USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert last(image, "STOPSIGNAL") == "SIGTERM"
    assert f"--target {image} -t enginetrail-{image}:" in DOCKERFILE.read_text()


def test_only_a_collector_has_a_health_check() -> None:
    """A build is silent for most of its time."""
    assert last("worker", "HEALTHCHECK") == "NONE"
    assert "--alive" in last("server", "HEALTHCHECK")


def test_the_context_holds_what_is_copied_and_little_else() -> None:
    """The ignore file lets in exactly the sources of ``COPY``."""
    lines = DOCKERFILE.with_suffix(".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = [rule[1:] for rule in rules if rule.startswith("!")]
    sources = _sources()
    assert sorted(let_in) == sorted({source.partition("/")[0] for source in sources})
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_the_wheel_of_what_is_copied_is_whole(tmp_path: Path) -> None:
    """Built as the image builds it, from the copied files alone: every file of the packages is in it."""
    context = tmp_path / "context"
    copied = " ".join(rest for word, rest in stages()["wheel"] if word == "COPY").split()
    for source in _sources():
        if source in copied:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, context / source, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (context / source).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, context / source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "--wheel-dir", tmp_path, "."], cwd=context, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    files = (path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file())
    wanted = {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}
    assert wanted <= packed
    assert "collector/schema.sql" in wanted
