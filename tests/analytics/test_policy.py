"""Policy files: the packaged default, and errors that say what to write instead."""

from pathlib import Path

import pytest

from analytics.errors import PolicyError
from analytics.policy_file import load_policy, parse_policy


def test_the_packaged_policy_is_used_without_a_file() -> None:
    """The default applies every section; its digest is that of its content."""
    policy = load_policy(None)
    assert policy.name == "default"
    assert all((policy.sbat.explainable, policy.sbat.measured, policy.sbat.cache_safe, policy.sbat.released))
    assert all((policy.cbat.source, policy.cbat.environment, policy.cbat.bundle, policy.validation))


def test_a_policys_digest_is_of_what_it_says_and_not_of_how_it_is_written() -> None:
    """Order, comments and spacing change nothing; a bound does."""
    one = parse_policy("[sbat.measured]\nmax_cleaned_ms = 5\nmax_exited_ms = 6.0", "a")
    same = parse_policy("# comment\n[sbat.measured]\nmax_exited_ms = 6\nmax_cleaned_ms = 5.0", "b")
    other = parse_policy("[sbat.measured]\nmax_cleaned_ms = 5", "c")
    assert one.sha256 == same.sha256
    assert one.sha256 != other.sha256


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[sbat.measured]\nmax_wait_ms = 1", ["sbat.measured.max_wait_ms", "max_observed_ms", "max_exited_ms"]),
        ("threshold = 1", ["unknown key threshold", "name, sbat, cbat, validation"]),
        ("[validation]\nmin_samples = 1", ["missing key validation.kinds"]),
        ("[sbat.measured]\nmax_cleaned_ms = nan", ["sbat.measured.max_cleaned_ms", "finite"]),
        ("[sbat.measured]\nmax_cleaned_ms = -1", ["sbat.measured.max_cleaned_ms", "greater than or equal to 0"]),
        ('[sbat.measured]\nmax_cleaned_ms = "5"', ["sbat.measured.max_cleaned_ms", "number"]),
        ('[sbat.cache_safe]\nallowed_modes = ["hot"]', ["sbat.cache_safe.allowed_modes.0", "quarantined"]),
        ("name = [\n1, 2, ", ["no TOML", "end of document"]),
    ],
)
def test_a_wrong_policy_is_refused_by_file_and_key(tmp_path: Path, text: str, parts: list[str]) -> None:
    """A typing error never becomes a bound that is silently not applied."""
    path = tmp_path / "policy.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        load_policy(path)
    for part in [str(path), *parts]:
        assert part in str(caught.value)


def test_a_policy_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A missing file and one that is no text say so."""
    with pytest.raises(PolicyError, match="No such file"):
        load_policy(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="UTF-8"):
        load_policy(tmp_path / "binary.toml")
