"""What is built is built once, from locked sources, whole or not at all."""

import shutil
from pathlib import Path

import pytest

from deploy.services.cache import BuildCache, default_folder
from deploy.services.errors import BuildFailedError
from deploy.services.kafka import _copy_jars
from deploy.services.spec import SOURCES
from deploy.services.tools import Tools


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Sources of a program that a test builds."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "go.sum").write_text("one")
    return folder


def test_a_build_is_done_once_for_the_same_sources_and_anew_for_others(tmp_path: Path, sources: Path) -> None:
    """The name carries the digest of sources and recipe: a change of either is another build."""
    cache, built = BuildCache(tmp_path / "cache", print), list[Path]()
    first = cache.obtain("tool", sources, "recipe", built.append)
    assert cache.obtain("tool", sources, "recipe", built.append) == first
    assert len(built) == 1
    other_recipe = cache.obtain("tool", sources, "recipe -v", built.append)
    (sources / "go.sum").write_text("two")
    other_sources = cache.obtain("tool", sources, "recipe", built.append)
    assert len({first, other_recipe, other_sources}) == 3
    assert len(built) == 3


def test_an_interrupted_build_counts_for_nothing_and_is_begun_anew(tmp_path: Path, sources: Path) -> None:
    """Half a build never has the final name, and its files are not found by the next one."""
    cache = BuildCache(tmp_path / "cache", print)

    def interrupted(folder: Path) -> None:
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.obtain("tool", sources, "recipe", interrupted)
    whole = cache.obtain("tool", sources, "recipe", lambda folder: (folder / "whole").touch())
    assert [path.name for path in whole.iterdir()] == ["whole"]


def test_a_failed_build_shows_its_last_lines_and_where_the_others_are(tmp_path: Path, environ: dict[str, str]) -> None:
    """The person sees the compiler's words, not an exit code alone."""
    log = tmp_path / "tool.log"
    with pytest.raises(BuildFailedError, match=f"(?s)ended with 7.*{log}.*no such module"):
        Tools(environ, print).build(["sh", "-c", "echo no such module; exit 7"], folder=tmp_path, log=log)


def test_the_cache_lies_where_the_user_keeps_caches() -> None:
    """XDG_CACHE_HOME where set, else ``.cache`` in the home folder."""
    assert default_folder({"HOME": "/home/u"}) == Path("/home/u/.cache/enginetrail/services")
    assert default_folder({"HOME": "/home/u", "XDG_CACHE_HOME": "/c"}) == Path("/c/enginetrail/services")


def test_the_locked_modules_are_those_of_the_manifest() -> None:
    """A component changed in the manifest and not in go.mod would be built in its old version."""
    manifest = (SOURCES / "otelcol" / "manifest.yaml").read_text()
    wanted = {line.split("gomod:")[1].strip() for line in manifest.splitlines() if "gomod:" in line}
    locked = {line.strip() for line in (SOURCES / "otelcol" / "go.mod").read_text().splitlines()}
    assert len(wanted) > 10
    assert wanted <= locked


@pytest.mark.service
@pytest.mark.timeout(600)
def test_a_jar_that_is_not_the_recorded_one_is_refused(tmp_path: Path, environ: dict[str, str]) -> None:
    """The registry's files are held against digests: one other byte, and Kafka is not run from them."""
    changed = tmp_path / "kafka"
    shutil.copytree(SOURCES / "kafka", changed)
    recorded = (changed / "jars.sha256").read_text()
    (changed / "jars.sha256").write_text(recorded.replace(recorded[:8], "00000000", 1))
    (tmp_path / "jars").mkdir()
    with pytest.raises(BuildFailedError, match=r"not the recorded ones: HdrHistogram-[\d.]+jar\. If the pom"):
        _copy_jars(Tools(environ, print), changed, tmp_path / "jars")
