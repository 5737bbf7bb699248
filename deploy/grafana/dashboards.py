"""The two dashboards: ``python -m deploy.grafana.dashboards [--check]`` writes them as JSON."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.grafana.cancellation import CANCELLATION
from deploy.grafana.fleet import FLEET
from deploy.grafana.model import Json, Variable, dashboard

FOLDER: Final = Path(__file__).parent / "dashboards"


def dashboards() -> dict[str, Json]:
    """Return the dashboards by file name."""
    route = Variable(name="route", label="Route", metric="cicd_pipeline_run_active", of="cicd_pipeline_name")
    source = Variable(name="source", label="Source", metric="trt_cancel_latency_seconds_count", of="trt_cancel_source")
    return {
        "fleet.json": dashboard("enginetrail-fleet", "EngineTrail: fleet of builds", [route], FLEET),
        "cancellation.json": dashboard(
            "enginetrail-cancellation", "EngineTrail: cancellation and caches", [source], CANCELLATION
        ),
    }


def main(arguments: Sequence[str]) -> int:
    """Write the files, or with ``--check`` say whether they are up to date: 0 yes, 1 no."""
    texts = {FOLDER / name: json.dumps(found, indent=1) + "\n" for name, found in dashboards().items()}
    if list(arguments) != ["--check"]:
        FOLDER.mkdir(exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        return 0
    if all(path.is_file() and path.read_text(encoding="utf-8") == text for path, text in texts.items()):
        return 0
    sys.stderr.write("deploy/grafana/dashboards does not hold what dashboards.py says; run `make docs`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
