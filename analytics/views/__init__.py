"""The SQL views, one file each; ``view_sql`` gives them in an order in which they can be created."""

from importlib import resources

# A view stands after the views that it reads.
VIEWS = (
    "runs", "phases", "cancellations", "artifacts", "events", "caches", "completeness", "silent_gaps",
    "processes", "errors", "baselines", "validations", "decisions", "anomalies", "dead_letters",
)  # fmt: skip


def view_text(name: str) -> str:
    """Return the text of one view: its header and its statement."""
    return resources.files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def view_sql() -> list[str]:
    """Return every ``CREATE OR REPLACE VIEW`` in order, for a database that holds the collector's tables."""
    return [view_text(name) for name in VIEWS]
