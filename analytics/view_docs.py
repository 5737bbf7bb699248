"""``docs/views.md`` from the headers of the SQL files: ``python -m analytics.view_docs [--check]``."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analytics.views import VIEWS, view_text

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "views.md"
HEADINGS = ("Grain", "Reads", "Units", "Missing")
INTRODUCTION = """\
# Views

What `enginetrail query` can read. Generated from the headers in `analytics/views/`; change those, then run `make docs`.
The tables behind the views, in schema `store`, may change with any release; these names and columns stay.
"""
_COLUMN = re.compile(r"^    (?:.*[\s.])?\"?(\w+)\"?,? -- (.+)$")


@dataclass(frozen=True, slots=True)
class ViewDoc:
    """What a view's file says of it."""

    name: str
    summary: str
    header: dict[str, str]  # by heading
    columns: dict[str, str]  # name -> meaning, in order


def parse(name: str, text: str) -> ViewDoc:
    """Return the documentation in a view's SQL.

    Raises:
        ValueError: the header lacks a line; the message says which.
    """
    comments = [line[3:] for line in text.splitlines() if line.startswith("-- ")]
    title, _, summary = comments[0].partition(": ")
    header = {key: value.strip() for key, _, value in (line.partition(":") for line in comments[1:])}
    if title != name or list(header) != list(HEADINGS):
        msg = f"{name}.sql: begin with '-- {name}: what a row is.' and then one line each for {', '.join(HEADINGS)}"
        raise ValueError(msg)
    selected = text[text.rindex("\nSELECT\n") :] if text.count("\nSELECT\n") else ""
    found = (_COLUMN.match(line) for line in selected.splitlines())
    return ViewDoc(name, summary, header, {match[1]: match[2] for match in found if match})


def render(docs: Sequence[ViewDoc]) -> str:
    """Return the document."""
    return "\n".join([INTRODUCTION, *(_section(doc) for doc in docs)])


def document() -> str:
    """Return what ``docs/views.md`` must hold."""
    return render([parse(name, view_text(name)) for name in VIEWS])


def _section(doc: ViewDoc) -> str:
    facts = "\n".join(f"* {key}: {doc.header[key]}" for key in HEADINGS)
    rows = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in doc.columns.items())
    summary = doc.summary[0].upper() + doc.summary[1:]
    return f"## {doc.name}\n\n{summary}\n\n{facts}\n\n| column | meaning |\n|---|---|\n{rows}\n"


def main(arguments: Sequence[str]) -> int:
    """Write the document, or with ``--check`` say whether it is up to date: 0 yes, 1 no."""
    text = document()
    if list(arguments) != ["--check"]:
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(text, encoding="utf-8")
        return 0
    if DOCUMENT.is_file() and DOCUMENT.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write("docs/views.md does not say what analytics/views/*.sql say; run `make docs`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
