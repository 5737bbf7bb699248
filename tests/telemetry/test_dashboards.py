"""The Grafana dashboards: whole, and every query of theirs answered by real builds in real backends."""

import json
import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
import yaml

from build_events.telemetry.measurements import UNOBSERVED
from build_events.telemetry.metrics import METRICS
from deploy.grafana import dashboards
from deploy.grafana.fleet import ENDED
from deploy.services.services import SERVICES
from tests.services.answers import eventually, get
from tests.telemetry.backends import series
from tests.telemetry.conftest import TelemetryServices
from tests.telemetry.endpoints import closed_port
from tests.telemetry.fleet import ROUTE, Fleet, working_fleet

Json = dict[str, Any]
GRAFANA = Path(dashboards.__file__).parent
DASHBOARDS: dict[str, Json] = {path.stem: json.loads(path.read_text()) for path in (GRAFANA / "dashboards").iterdir()}
PANELS = [(name, panel) for name, found in DASHBOARDS.items() for panel in found["panels"]]
QUERIES = [
    pytest.param(target["expr"], id=f"{name}: {panel['title']} {target['refId']}")
    for name, panel in PANELS
    for target in panel["targets"]
]
VARIABLES = {item["name"]: item for found in DASHBOARDS.values() for item in found["templating"]["list"]}
# What Grafana puts in: of six hours, and of a scrape every 15 s.
GIVEN = {"$__range": "21600s", "$__rate_interval": "60s"}


def provisioned(kind: str) -> Json:
    """Return a provisioning file."""
    (path,) = (GRAFANA / "provisioning" / kind).iterdir()
    found: Json = yaml.safe_load(path.read_text())
    return found


def filled(query: str, values: dict[str, str]) -> str:
    """Return a query as Grafana sends it."""
    for name, value in values.items():
        query = query.replace(name, value)
    assert "$" not in query
    return query


def test_the_files_are_what_the_definitions_say() -> None:
    """``make docs`` writes them."""
    assert dashboards.main(["--check"]) == 0
    assert DASHBOARDS.keys() == {"fleet", "cancellation"}


def test_uids_of_data_sources_exist_and_the_provider_reads_where_the_dashboards_are_mounted() -> None:
    """Grafana loads a dashboard with a wrong uid without a word, and shows nothing in it."""
    sources = {source["uid"]: source for source in provisioned("datasources")["datasources"]}
    named = set(re.findall(r'\\?"uid\\?": \\?"(enginetrail-[a-z]+)\\?"', json.dumps(DASHBOARDS)))
    linked = {uid for name in DASHBOARDS for uid in re.findall(r"enginetrail-jaeger", json.dumps(DASHBOARDS[name]))}
    assert named | linked == {*sources, "enginetrail-fleet", "enginetrail-cancellation"}
    assert {source["type"] for source in sources.values()} == {"prometheus", "jaeger"} <= set(SERVICES)
    assert [source["uid"] for source in sources.values() if source.get("isDefault")] == ["enginetrail-prometheus"]
    (provider,) = provisioned("dashboards")["providers"]
    assert (provider["type"], provider["options"]["path"]) == ("file", "/var/lib/grafana/dashboards")


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_say_what_they_show_and_lie_side_by_side(name: str) -> None:
    """Title, description, unit and a query each; ids once; nothing overlaps or leaves the 24 columns."""
    panels: list[Json] = DASHBOARDS[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["targets"]
        assert [target["refId"] for target in panel["targets"]] == ["A", "B", "C", "D"][: len(panel["targets"])]
        at = panel["gridPos"]
        cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    tops = [(panel["gridPos"]["y"], panel["gridPos"]["x"]) for panel in panels]
    assert all(before < after for before, after in pairwise(tops))


def test_every_metric_of_ours_is_in_a_dashboard() -> None:
    """What nobody looks at need not be measured."""
    text = json.dumps(DASHBOARDS)
    assert [metric.name for metric in METRICS if metric.name.replace(".", "_") not in text] == []


@pytest.fixture(scope="module")
def fleet(telemetry_services: TelemetryServices, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Real builds, and collectors that go on until the last query is asked."""
    with working_fleet(telemetry_services, tmp_path_factory.mktemp("fleet"), closed_port()) as done:
        yield done


def numbers(prometheus: str, query: str) -> list[float]:
    """Return the values that a query gives now, without those that are none."""
    values = [float(one["value"][1]) for one in series(prometheus, query)]
    return [value for value in values if math.isfinite(value)]


@pytest.mark.service
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("query", QUERIES)
def test_every_query_has_an_answer(telemetry_services: TelemetryServices, fleet: Fleet, query: str) -> None:
    """For all values of the variables, and for one; a number, not an empty panel."""
    assert fleet.instance
    prometheus = telemetry_services.prometheus
    asked = filled(query, {**GIVEN, "$route": ".*", "$source": ".*"})
    assert eventually(lambda: numbers(prometheus, asked), bool) != []
    chosen = filled(query, {**GIVEN, "$route": re.escape(ROUTE), "$source": "ctrl_c"})
    assert numbers(prometheus, chosen) != []


@pytest.mark.service
@pytest.mark.timeout(1800)
def test_the_numbers_are_those_of_the_builds(telemetry_services: TelemetryServices, fleet: Fleet) -> None:
    """Four kinds of runs, two of them cancelled, one failed: as they were made, none twice."""
    assert fleet.trace
    by_result = filled(f"sum by (cicd_pipeline_result) ({ENDED})", {**GIVEN, "$route": re.escape(ROUTE)})

    def found() -> dict[str, float]:
        answer = series(telemetry_services.prometheus, by_result)
        return {one["metric"]["cicd_pipeline_result"]: float(one["value"][1]) for one in answer}

    wanted = {"success": 3.0, "failure": 1.0, "cancellation": 2.0}
    assert eventually(found, wanted.__eq__) == wanted


@pytest.mark.service
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", VARIABLES)
def test_variables_have_values(telemetry_services: TelemetryServices, fleet: Fleet, name: str) -> None:
    """As Grafana asks for the values of a label."""
    assert fleet.instance
    asked = re.fullmatch(r"label_values\((?P<metric>\w+), (?P<label>\w+)\)", VARIABLES[name]["query"]["query"])
    assert asked is not None
    url = f"{telemetry_services.prometheus}/api/v1/label/{asked['label']}/values?match[]={asked['metric']}"
    assert {ROUTE, "ctrl_c"} & set(get(url)["data"])


LINKED = [
    pytest.param(panel, id=f"{name}: {panel['title']}")
    for name, panel in PANELS
    if panel["fieldConfig"]["defaults"].get("links")
]


@pytest.mark.service
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("panel", LINKED)
def test_links_lead_to_traces(telemetry_services: TelemetryServices, fleet: Fleet, panel: Json) -> None:
    """With the labels of the panel's own series, Jaeger finds traces; the link of one run finds that run alone."""
    (link,) = panel["fieldConfig"]["defaults"]["links"]
    (search,) = json.loads(unquote(link["url"].partition("&panes=")[2]))["traces"]["queries"]
    query = filled(panel["targets"][0]["expr"], {**GIVEN, "$route": ".*", "$source": ".*"})

    def observed() -> list[dict[str, str]]:
        """Return the series that traces can have, in whatever order they come: no span says that it lacks a label."""
        found = [one["metric"] for one in series(telemetry_services.prometheus, query)]
        return [labels for labels in found if UNOBSERVED not in labels.values()]

    labels = eventually(observed, bool)[0]
    values = {f"${{__field.labels.{name}}}": value for name, value in labels.items()}
    values["${__data.fields.instance}"] = fleet.instance
    url = f"{telemetry_services.jaeger}/api/traces?service={search['service']}&limit=50"
    if "operation" in search:
        url += f"&operation={quote(filled(search['operation'], values))}"
    if "tags" in search:
        key, _, value = filled(search["tags"], values).partition("=")
        url += f"&tags={quote(json.dumps({key: value}))}"

    def traces() -> set[str]:
        return {trace["traceID"] for trace in (get(url) or {}).get("data") or ()}

    found = eventually(traces, bool)
    assert found
    if "service.instance.id" in search.get("tags", ""):
        assert found == {fleet.trace}
