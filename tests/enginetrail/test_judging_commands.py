"""``accept``, ``gate`` and ``evidence``: verdicts that scripts act on."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from tests.enginetrail.conftest import Build, Cli

CRITERIA = [
    "observable", "explainable", "interruptible", "measured", "clean", "cache_safe", "released", "retried_validated",
]  # fmt: skip
GATES = ["source", "environment", "bundle", "parity", "release"]
SBAT_KEYS = {
    "framework", "tensorrtVersion", "language", "buildConfigHash", "gpuSku", "timingCacheMode", "cancelSource",
    "cancelLatencyMs", "cleanupStatus", "retryPolicy", "validationStatus",
}  # fmt: skip
CBAT_KEYS = {
    "route_name", "checkpoint_revision", "bundle_digest", "runtime_target", "validation_status", "canary_status",
    "rollback_status",
}  # fmt: skip
HOLD, REJECT, USAGE = 4, 3, 2
ROUTE = "r/fp32/sm89"


def _finding(report: dict[str, Any], key: str, name: str) -> dict[str, Any]:
    return next(finding for finding in report[key] if finding["id"] == name)


def _codes(finding: dict[str, Any]) -> set[str]:
    return {reason["code"] for reason in finding["reasons"]}


def _record(cli: Cli, *facts: dict[str, Any], code: int = 0) -> str:
    file = cli.folder / "facts.json"
    file.write_text(json.dumps(list(facts)), encoding="utf-8")
    process = cli("evidence", "record", ROUTE, "facts.json", code=code)
    return process.stdout + process.stderr


def _validation(digest: str, **changes: Any) -> dict[str, Any]:
    data = {
        "artifact_sha256": digest, "status": "pass", "kind": "native_parity", "runtime_target": "sm89", "samples": 10,
    }  # fmt: skip
    return {"type": "trt.validation.recorded.v1", "data": data | changes}


def test_an_uncancelled_build_holds_and_says_what_is_missing(cli: Cli, build: Build) -> None:
    """Eight criteria in their order; nobody interrupted anything, so nothing is known of it."""
    run_id = build()["run_id"]
    report = cli.json("accept", "stuck-build", run_id, code=HOLD)
    assert [finding["id"] for finding in report["criteria"]] == CRITERIA
    assert report["verdict"] == "hold"
    assert "no_cancellation" in _codes(_finding(report, "criteria", "interruptible"))
    assert _finding(report, "criteria", "observable")["verdict"] == "pass"
    assert set(report["summary"]) >= SBAT_KEYS
    assert report["summary"]["gpuSku"] == "none"
    assert len(report["summaries"]) == 1
    for finding in report["criteria"]:
        assert all({"code", "text", "next"} == set(reason) for reason in finding["reasons"])


def test_the_gate_holds_names_each_missing_evidence_and_is_recorded_once(cli: Cli, build: Build) -> None:
    """The same evidence judged twice is one decision; new evidence supersedes it."""
    summary = build()
    report = cli.json("gate", "evaluate", ROUTE, code=HOLD)
    assert [finding["id"] for finding in report["gates"]] == GATES
    assert set(report["summary"]) == CBAT_KEYS
    assert report["summary"]["bundle_digest"] == summary["artifact_digest"]
    assert "canary_missing" in _codes(_finding(report, "gates", "release"))
    cli.json("gate", "evaluate", ROUTE, code=HOLD)
    assert cli.query("SELECT count(*) AS n FROM decisions WHERE kind = 'cbat'") == [{"n": 1}]
    _record(cli, _validation(summary["artifact_digest"]))
    after = cli.json("gate", "evaluate", ROUTE, code=HOLD)
    assert _finding(after, "gates", "parity")["verdict"] == "pass"
    assert len(after["supersedes"]) == 1


def test_evidence_counts_only_for_its_digest_and_its_target(cli: Cli, build: Build) -> None:
    """Another digest's pass is nothing, another target's pass is a hold, a failure rejects."""
    digest = build()["artifact_digest"]
    _record(cli, _validation(hashlib.sha256(b"another").hexdigest()))
    report = cli.json("gate", "evaluate", ROUTE, code=HOLD)
    assert "validation_missing" in _codes(_finding(report, "gates", "parity"))
    _record(cli, _validation(digest, runtime_target="sm120"))
    report = cli.json("gate", "evaluate", ROUTE, code=HOLD)
    assert "wrong_target" in _codes(_finding(report, "gates", "parity"))
    _record(cli, _validation(digest, status="fail"))
    report = cli.json("gate", "evaluate", ROUTE, code=REJECT)
    assert "validation_failed" in _codes(_finding(report, "gates", "parity"))


def test_a_source_is_matched_by_the_digest_of_the_model(cli: Cli, build: Build) -> None:
    """The gate ``source`` passes with a pinned revision of the very file that was built."""
    build()
    model = hashlib.sha256((cli.folder / "model.onnx").read_bytes()).hexdigest()
    source = {"input_sha256": model, "source_uri": "https://example.org/m", "checkpoint_revision": "4f2a91c"}
    _record(cli, {"type": "trt.evidence.source.recorded.v1", "data": source})
    report = cli.json("gate", "evaluate", ROUTE, code=HOLD)
    assert _finding(report, "gates", "source")["verdict"] == "pass"
    assert report["summary"]["checkpoint_revision"] == "4f2a91c"


def test_bad_evidence_is_refused_whole(cli: Cli) -> None:
    """One wrong fact of two: nothing is recorded, and the fault is named."""
    good = _validation("0" * 64)
    assert "samples" in _record(cli, good, _validation("0" * 64, samples=0), code=USAGE)
    assert "is no evidence" in _record(
        cli, {"type": "trt.build.run.lost.v1", "data": {"main_stream_id": "x"}}, code=USAGE
    )
    assert "at least one" in _record(cli, code=USAGE)
    assert cli.query("SELECT * FROM validations") == []


def test_an_unknown_route_run_or_policy_is_told_apart(cli: Cli, build: Build) -> None:
    """A route without runs holds; an unknown run and a bad policy are wrong usage."""
    build()
    report = cli.json("gate", "evaluate", "nothing/here", code=HOLD)
    assert any("no_runs" in _codes(finding) for finding in report["gates"])
    cli("accept", "stuck-build", "feedbeef", code=USAGE)
    policy = cli.folder / "policy.toml"
    policy.write_text('name = "mine"\n[cbat.source]\nallow_licences = ["mit"]\n', encoding="utf-8")
    refused = cli("gate", "evaluate", ROUTE, "--policy", "policy.toml", code=USAGE)
    assert "allow_licences" in refused.stderr
    assert "policy.toml" in refused.stderr
    cli("gate", "evaluate", ROUTE, "--digest", "12ab", code=USAGE)


def test_an_event_removed_from_the_middle_holds_both_tests_and_is_named(cli: Cli, build: Build) -> None:
    """Neither verdict passes over a gap: the reason says which sequence of which stream is gone."""
    run_id = build()["run_id"]
    gone = _remove_a_middle_event(cli.home / "log" / "runs" / run_id)
    sbat = cli.json("accept", "stuck-build", run_id, code=HOLD)
    cbat = cli.json("gate", "evaluate", ROUTE, code=HOLD)
    for report, key in ((sbat, "criteria"), (cbat, "gates")):
        texts = [
            reason["text"] for finding in report[key] for reason in finding["reasons"]
            if reason["code"] == "missing_sequences"
        ]  # fmt: skip
        assert texts
        assert all(f"{gone}" in text for text in texts)


def test_an_event_of_an_unknown_type_is_kept_whole(cli: Cli, build: Build) -> None:
    """A newer writer's event in the middle of a stream is stored, and does not make the run incomplete."""
    run_id = build()["run_id"]
    segment = _main_segment(cli.home / "log" / "runs" / run_id)
    lines = segment.read_bytes().splitlines()
    place = next(index for index, line in enumerate(lines) if b"process.observed" in line)
    event = json.loads(lines[place]) | {"type": "trt.of.tomorrow.v9", "data": {"deep": [1, {"x": None}]}}
    lines[place] = _framed(event)
    segment.write_bytes(b"\n".join(lines) + b"\n")
    (row,) = cli.query("SELECT data FROM events WHERE type = 'trt.of.tomorrow.v9'")
    assert json.loads(row["data"]) == {"deep": [1, {"x": None}]}
    assert cli.query("SELECT complete FROM runs") == [{"complete": True}]


def _main_segment(folder: Path) -> Path:
    return max(folder.glob("*.jsonl"), key=lambda path: path.stat().st_size)


def _remove_a_middle_event(folder: Path) -> int:
    segment = _main_segment(folder)
    lines = segment.read_bytes().splitlines(keepends=True)
    place = len(lines) // 2
    segment.write_bytes(b"".join(lines[:place] + lines[place + 1 :]))
    return int(json.loads(lines[place])["sequence"])


def _framed(event: dict[str, Any]) -> bytes:
    event.pop("crc")
    body = json.dumps(event, separators=(",", ":")).encode()[:-1]
    return body + b',"crc":"%08x"}' % zlib.crc32(body)
