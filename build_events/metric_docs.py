"""The table of metrics in ``docs/telemetry.md``: ``python -m build_events.metric_docs [--check]``."""

import sys
from collections.abc import Sequence
from pathlib import Path

from build_events.telemetry.metrics import METRICS, Metric

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "telemetry.md"
BEGIN = "<!-- metrics: made by `make docs` from build_events/telemetry/metrics.py -->\n"
END = "<!-- end of metrics -->\n"


def table(metrics: Sequence[Metric] = METRICS) -> str:
    """Return the table."""
    rows = "".join(
        f"| `{metric.name}` | {metric.instrument} | {metric.unit} | {metric.description} "
        f"| {', '.join(f'`{label}`' for label in sorted(metric.labels)) or 'none'} |\n"
        for metric in metrics
    )
    return f"| metric | instrument | unit | what | labels |\n|---|---|---|---|---|\n{rows}"


def with_table(text: str) -> str:
    """Return the document with its table made anew.

    Raises:
        ValueError: it has no place for the table.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        msg = f"{DOCUMENT.name}: put the lines {BEGIN.strip()} and {END.strip()} where the table belongs"
        raise ValueError(msg)
    return f"{before}{BEGIN}{table()}{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Write the table, or with ``--check`` say whether it is up to date: 0 yes, 1 no."""
    text = DOCUMENT.read_text(encoding="utf-8")
    wanted = with_table(text)
    if list(arguments) != ["--check"]:
        DOCUMENT.write_text(wanted, encoding="utf-8")
        return 0
    if text == wanted:
        return 0
    sys.stderr.write(
        "docs/telemetry.md does not list the metrics of build_events/telemetry/metrics.py; run `make docs`\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
