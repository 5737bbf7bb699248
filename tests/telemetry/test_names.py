"""The standard names are those of the pinned version of the semantic conventions."""

from pathlib import Path
from typing import get_args

from opentelemetry.semconv._incubating.attributes import (
    cicd_attributes,
    host_attributes,
    hw_attributes,
    process_attributes,
    service_attributes,
)
from opentelemetry.semconv.attributes import error_attributes
from opentelemetry.semconv.schemas import Schemas

from build_events.telemetry import names

MODULES = (cicd_attributes, host_attributes, hw_attributes, process_attributes, service_attributes, error_attributes)
STANDARD = {value for module in MODULES for name, value in vars(module).items() if name.isupper()}
OURS = ("trt.", "enginetrail.")
ATTRIBUTES = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)} - {
    names.SCHEMA_URL,
    names.SCOPE,
}
DOCUMENT = Path(__file__).parents[2] / "docs" / "telemetry.md"


def test_every_attribute_is_a_standard_one_or_in_our_namespace() -> None:
    """A name that the conventions do not hold must not look like one of theirs."""
    unknown = {name for name in ATTRIBUTES if name not in STANDARD and not name.startswith(OURS)}
    assert unknown == set()
    assert names.PIPELINE_RESULT in STANDARD


def test_the_document_has_every_attribute() -> None:
    """Whoever writes a query finds the name there."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert {name for name in ATTRIBUTES if f"`{name}`" not in text} == set()


def test_the_schema_is_the_newest_of_the_installed_conventions() -> None:
    """An upgrade of the package is an upgrade of the names, looked through by a person."""
    newest = max((tuple(map(int, name[1:].split("_"))), schema.value) for name, schema in Schemas.__members__.items())
    assert newest[1] == names.SCHEMA_URL


def test_results_and_states_are_those_of_the_conventions() -> None:
    """The values are as fixed as the names."""
    results = {item.value for item in cicd_attributes.CicdPipelineResultValues}
    assert set(get_args(names.Result)) <= results
    states = {item.value for item in cicd_attributes.CicdPipelineRunStateValues}
    assert set(get_args(names.RunStage)) == states
