"""``make demo``: a real build observed, a second one cancelled, retried, and both judged.

Runs the commands that a user would type, and shows each before it runs.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from demo.models import write_chain

OUT = Path("demo/out")
HOME = OUT / "home"
COMMAND = [str(Path(sys.executable).with_name("enginetrail")), "--home", str(HOME)]
SMALL_LAYERS = 40  # builds in about 0.2 s on two cores
LARGE_LAYERS = 1500  # several seconds, nearly all in one silent window
CANCEL_AFTER_S = 1.0  # from the first event of the build: inside the compile window
SMALL_ROUTE, LARGE_ROUTE = "demo-small/fp32/sm89", "demo-large/fp32/sm89"


def main() -> int:
    """Run the demo; return 0 if every step did what it is there to show."""
    started = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    small = write_chain(OUT / "small.onnx", SMALL_LAYERS)
    large = write_chain(OUT / "large.onnx", LARGE_LAYERS)

    _title("1. Build a real ONNX model with the real builder, observed")
    built = _build(small, "small.engine", SMALL_ROUTE)
    _title(f"2. Build a larger one, and press Ctrl-C from outside {CANCEL_AFTER_S:g} s into it")
    cancelled = _build(large, "large.engine", LARGE_ROUTE, cancel_after_s=CANCEL_AFTER_S)
    _title("3. Retry it by the policy that the cancelled run recorded")
    retried = _build(large, "large.engine", LARGE_ROUTE, "--retry-of", cancelled["run_id"])

    _title("4. Take the events into DuckDB")
    _run("collect")
    _title("5. The phase tree and the measured cancellation of the cancelled run")
    _run("show", cancelled["run_id"])
    _title("6. The retried run, and the artifacts that all runs left")
    _run("show", retried["run_id"])
    _run(
        "query",
        "SELECT route, outcome, path, state, size_bytes FROM artifacts JOIN runs USING (run_id)",
    )
    _title("7. SBAT: could the stuck build be observed, interrupted, cleaned, retried and measured?")
    sbat = _run("accept", "stuck-build", cancelled["run_id"], verdict=True)
    _title("8. CBAT: may this route be promoted?")
    cbat = _run("gate", "evaluate", LARGE_ROUTE, verdict=True)

    _title("Where to look next")
    for line in (
        "runs",
        f"show {cancelled['run_id'][:8]}",
        'query "SELECT name, duration_ms, longest_gap_ms FROM phases ORDER BY longest_gap_ms DESC NULLS LAST LIMIT 5"',
        f"accept stuck-build {cancelled['run_id'][:8]} --format json",
    ):
        print(f"  {shlex.join(COMMAND)} {line}")
    print("  README.md: embed the agent in your own worker in three lines")
    print(f"\ndemo finished in {time.monotonic() - started:.1f} s")
    outcomes = [built["outcome"], cancelled["outcome"], retried["outcome"]]
    expected = ["completed", "cancelled", "completed"]
    if outcomes != expected or sbat not in {0, 4} or cbat != 4:  # noqa: PLR2004 # 4 is hold
        print(f"unexpected: outcomes {outcomes}, SBAT exit {sbat}, CBAT exit {cbat}", file=sys.stderr)
        return 1
    return 0


def _build(model: Path, engine: str, route: str, *more: str, cancel_after_s: float | None = None) -> dict[str, Any]:
    """Run ``enginetrail build`` with live output and return its JSON summary."""
    arguments = ["build", str(model), "-o", str(OUT / engine), "--route", route, "--target", "sm89", *more]
    _show(arguments)
    process = subprocess.Popen([*COMMAND, *arguments, "--format", "json"], stdout=subprocess.PIPE, text=True)
    if cancel_after_s is not None:
        _wait_for_run(process)
        time.sleep(cancel_after_s)
        os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    summary: dict[str, Any] = json.loads(output)
    print(f"-> {summary['outcome']}, exit code {process.returncode}, run {summary['run_id']}")
    return summary


def _wait_for_run(process: subprocess.Popen[str]) -> None:
    """Return when the log, or the spool of a Kafka log, holds a run that it did not: the build has started."""
    runs = HOME / ("spool" if os.environ.get("ENGINETRAIL_LOG") else "log") / "runs"
    before = set(runs.iterdir())
    while set(runs.iterdir()) <= before and process.poll() is None:
        time.sleep(0.02)


def _run(*arguments: str, verdict: bool = False) -> int:
    _show(arguments)
    code = subprocess.run([*COMMAND, *arguments], check=False).returncode
    if code and not verdict:
        sys.exit(f"the command above exited {code}")
    return code


def _show(arguments: list[str] | tuple[str, ...]) -> None:
    print(f"$ enginetrail --home {HOME} {shlex.join(arguments)}", flush=True)


def _title(text: str) -> None:
    print(f"\n== {text} ==", flush=True)


if __name__ == "__main__":
    sys.exit(main())
