"""The part of Grafana's dashboard model that is used here (schema version 41). Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote

SCHEMA_VERSION: Final = 41  # of Grafana 12; newer releases migrate it when they load it
COLUMNS: Final = 24
PROMETHEUS: Final = {"type": "prometheus", "uid": "enginetrail-prometheus"}
JAEGER: Final = {"type": "jaeger", "uid": "enginetrail-jaeger"}
SERVICE: Final = "enginetrail-build"

Json = dict[str, Any]
Kind = Literal["stat", "timeseries", "bargauge", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel. Queries of anything but a time series are asked once, for the whole time range."""

    title: str
    description: str
    unit: str  # of Grafana's unit ids: s, bytes, short, percentunit
    queries: Mapping[str, str]  # legend -> PromQL
    kind: Kind = "timeseries"
    width: int = 8
    height: int = 7
    link: Json | None = None  # see ``traces``


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A choice above the panels: the values of a label, several or all of them."""

    name: str
    label: str
    metric: str
    of: str  # the label


def traces(title: str, **search: str) -> Json:
    """Return a link that searches Jaeger in the panel's time range; ``search`` are fields of its query."""
    query = {"refId": "A", "datasource": JAEGER, "queryType": "search", "service": SERVICE, **search}
    panes = {"traces": {"datasource": JAEGER["uid"], "queries": [query], "range": {"from": "FROM", "to": "TO"}}}
    text = quote(json.dumps(panes, separators=(",", ":")), safe="${}.:_")
    for mark, variable in (("FROM", "${__from}"), ("TO", "${__to}")):
        text = text.replace(f"%22{mark}%22", f"%22{variable}%22")
    return {"title": title, "url": f"/explore?schemaVersion=1&orgId=1&panes={text}", "targetBlank": True}


def dashboard(uid: str, title: str, variables: Sequence[Variable], panels: Sequence[Panel]) -> Json:
    """Return the dashboard, its panels from left to right and from top to bottom."""
    return {
        "uid": uid,
        "title": title,
        "tags": ["enginetrail"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": False,
        "graphTooltip": 1,  # one crosshair for all panels
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "utc",
        "templating": {"list": [_variable(item) for item in variables]},
        "annotations": {"list": []},
        "links": [
            {
                "title": "EngineTrail",
                "type": "dashboards",
                "tags": ["enginetrail"],
                "asDropdown": False,
                "includeVars": False,
                "keepTime": True,
            }
        ],
        "panels": _placed(panels),
    }


def _placed(panels: Sequence[Panel]) -> list[Json]:
    placed, x, y, row = [], 0, 0, 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > COLUMNS:
            x, y, row = 0, y + row, 0
        placed.append(_panel(number, panel, x, y))
        x, row = x + panel.width, max(row, panel.height)
    return placed


def _panel(number: int, panel: Panel, x: int, y: int) -> Json:
    over_time = panel.kind == "timeseries"
    defaults: Json = {"unit": panel.unit, "min": 0}
    if panel.link is not None:
        defaults["links"] = [panel.link]
    found: Json = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": PROMETHEUS,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _OPTIONS[panel.kind],
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": PROMETHEUS,
                "expr": query,
                "legendFormat": legend,
                "instant": not over_time,
                "range": over_time,
                "format": "table" if panel.kind == "table" else "time_series",
            }
            for index, (legend, query) in enumerate(panel.queries.items())
        ],
    }
    if panel.kind == "table":
        found["transformations"] = [{"id": "organize", "options": {"excludeByName": {"Time": True}}}]
    return found


def _variable(item: Variable) -> Json:
    query = f"label_values({item.metric}, {item.of})"
    return {
        "name": item.name,
        "label": item.label,
        "type": "query",
        "datasource": PROMETHEUS,
        "definition": query,
        "query": {"query": query, "refId": "values"},
        "refresh": 2,  # when the time range changes
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "sort": 1,
    }


_REDUCED: Final = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: Final[Mapping[Kind, Json]] = {
    "stat": {"reduceOptions": _REDUCED, "colorMode": "none", "graphMode": "none", "textMode": "auto"},
    "bargauge": {"reduceOptions": _REDUCED, "displayMode": "basic", "orientation": "horizontal"},
    "table": {"showHeader": True},
    "timeseries": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
}
