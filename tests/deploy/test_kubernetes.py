"""The Kubernetes objects, by the schemas of its API and against what our processes need."""

from typing import Any

import kubernetes_validate
import pytest

from build_events.home import VARIABLE
from tests.deploy.budget import cancel_budget_s, drain_s, option
from tests.deploy.files import containers, kubernetes, kubernetes_object, pods

OLDEST = "1.33"  # side-cars are stable
NEWEST = kubernetes_validate.latest_version()
PODS = pytest.mark.parametrize("pod", [pytest.param(pod, id=kind) for kind, pod in pods()])


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("document", [pytest.param(item, id=f"{name} {item['kind']}") for name, item in kubernetes()])
def test_an_object_is_what_the_api_takes(document: dict[str, Any], version: str) -> None:
    """Strictly: an unknown field is an error."""
    kubernetes_validate.validate(document, version, strict=True)


def test_the_schemas_refuse_an_unknown_field() -> None:
    """What the test above stands on."""
    job = kubernetes_object("Job")
    job["spec"]["backofLimit"] = 0
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, NEWEST, strict=True)


@PODS
def test_a_pod_is_confined(pod: dict[str, Any]) -> None:
    """No root, no new privileges, nothing to write but its volumes, bounded memory, no token of the cluster."""
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    for container in containers(pod):
        confined = container["securityContext"]
        assert confined["allowPrivilegeEscalation"] is False
        assert confined["readOnlyRootFilesystem"] is True
        assert confined["capabilities"]["drop"] == ["ALL"]
        assert {"memory"} <= container["resources"]["limits"].keys()
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()


@PODS
def test_every_volume_and_every_claim_is_there(pod: dict[str, Any]) -> None:
    """Except for the models, which are the user's own."""
    names = {volume["name"] for volume in pod["volumes"]}
    mounted = {mount["name"] for container in containers(pod) for mount in container["volumeMounts"]}
    assert mounted == names
    claims = {
        volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume
    }
    made = {item["metadata"]["name"] for _, item in kubernetes() if item["kind"] == "PersistentVolumeClaim"}
    assert claims - made <= {"enginetrail-models"}


def test_the_store_has_one_writer() -> None:
    """Never two pods at once, not while a new version rolls out either."""
    spec = kubernetes_object("Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    modes = {
        item["metadata"]["name"]: item["spec"]["accessModes"]
        for _, item in kubernetes()
        if item["kind"] == "PersistentVolumeClaim"
    }
    assert modes["enginetrail-store"] == ["ReadWriteOncePod"]


def test_a_killed_pod_leaves_a_build_the_time_of_its_ladder() -> None:
    """The build's, then the side-car's own drain: Kubernetes ends side-cars last, within the same grace."""
    job = kubernetes_object("Job")["spec"]
    pod = job["template"]["spec"]
    (relay,), (build,) = pod["initContainers"], pod["containers"]
    assert relay["restartPolicy"] == "Always"
    grace = pod["terminationGracePeriodSeconds"]
    assert grace >= cancel_budget_s(build["args"]) + drain_s(relay["args"])
    deadline = float(option(build["args"], "--deadline") or "inf")
    assert job["activeDeadlineSeconds"] > deadline + grace, "the build's own deadline comes first"


def test_kubernetes_never_repeats_a_build_nor_takes_silence_for_death() -> None:
    """Retries are decided by the route's policy; a long build says nothing for most of its time."""
    job = kubernetes_object("Job")["spec"]
    assert (job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) == (0, "Never")
    for container in job["template"]["spec"]["containers"]:
        assert not [key for key in container if key.endswith("Probe")]


def test_the_side_car_looks_after_the_builds_own_home() -> None:
    """The same folder under the same path: it drains the spool, and sweeps what a lost build left."""
    pod = kubernetes_object("Job")["spec"]["template"]["spec"]
    (relay,), (build,) = pod["initContainers"], pod["containers"]
    homes = [{item["name"]: item["value"] for item in container["env"]}[VARIABLE] for container in (relay, build)]
    assert homes[0] == homes[1]
    assert [mount for mount in build["volumeMounts"] if mount not in relay["volumeMounts"]] == [
        {"name": "models", "mountPath": "/models", "readOnly": True}
    ]
    assert (option(build["args"], "--output") or "").startswith("/builds/")


def test_probes_wait_longer_the_more_they_cost() -> None:
    """Ready within a minute, killed only after many: a snapshot or a full disk is no reason to start anew."""
    (collector,) = kubernetes_object("Deployment")["spec"]["template"]["spec"]["containers"]
    ages = {
        probe: float(option(collector[probe]["exec"]["command"], "--alive") or 0)
        for probe in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    assert 0 < ages["startupProbe"] <= ages["readinessProbe"] < ages["livenessProbe"]
