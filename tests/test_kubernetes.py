"""What deploy/kubernetes says: Dagster's own launcher takes its settings, and Kubernetes the job of a run and the volume.

Not seen: the chart's templates, which no package has. What they do with the values is written out in `launcher` and `run_job`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from dagster import DagsterInvalidConfigError, DagsterRun
from dagster._config import process_config, resolve_to_config_type
from dagster_k8s import K8sRunLauncher
from dagster_k8s.container_context import K8sContainerContext
from dagster_k8s.job import construct_dagster_k8s_job

from tests.conftest import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
NAMES = {"imagePullPolicy": "image_pull_policy", "resources": "resources", "runK8sConfig": "run_k8s_config"}
"""The chart's name of a launcher's setting -> Dagster's."""
INNER = {"podSpecConfig": "pod_spec_config", "jobSpecConfig": "job_spec_config",
         "ttlSecondsAfterFinished": "ttl_seconds_after_finished",
         "automountServiceAccountToken": "automount_service_account_token"}
CLUSTER = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
users: [{name: me, user: {}}]
"""


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((FOLDER / "values.yaml").read_text("utf-8"))
    return read


def launcher(values: dict[str, Any], folder: Path) -> K8sRunLauncher:
    """Return Dagster's launcher with the settings of the values."""
    (folder / "cluster").write_text(CLUSTER)
    settings = {NAMES[name]: renamed(each) for name, each in values["runLauncher"]["config"]["k8sRunLauncher"].items()}
    given = {**settings, "service_account_name": "dagster", "instance_config_map": "dagster-instance",
             "dagster_home": "/opt/dagster/dagster_home", "postgres_password_secret": values["global"]["postgresqlSecretName"],
             "load_incluster_config": False, "kubeconfig_file": str(folder / "cluster")}
    taken = process_config(resolve_to_config_type(K8sRunLauncher.config_type()), given)
    assert taken.success, taken.errors
    return K8sRunLauncher.from_config_value(None, taken.value)


def renamed(value: Any) -> Any:
    """Return a setting with Dagster's names."""
    return {INNER.get(name, name): renamed(each) for name, each in value.items()} if isinstance(value, dict) else value


def run_job(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the job that a run of the code location would be."""
    (location,) = values["dagster-user-deployments"]["deployments"]
    of_location = K8sContainerContext.create_from_config({"k8s": {
        "image_pull_policy": location["image"]["pullPolicy"], "env_secrets": [each["name"] for each in location["envSecrets"]],
        "env_vars": [f"{each['name']}={each['value']}" for each in location["env"]], "volumes": location["volumes"],
        "volume_mounts": location["volumeMounts"], "resources": location["resources"],
        "security_context": location["securityContext"]}})
    launches = launcher(values, folder)
    run = DagsterRun(job_name="everything", run_id="0a1b2c3d-0000-4000-8000-000000000000")
    context = K8sContainerContext.create_for_run(run, launches, include_run_tags=True).merge(of_location)
    image = f"{location['image']['repository']}:{location['image']['tag']}"
    job = construct_dagster_k8s_job(
        context.get_k8s_job_config(image, launches), args=["dagster", "api", "execute_run"], job_name="dagster-run-0a1b2c3d",
        pod_name="dagster-run-0a1b2c3d", component="run_worker", user_defined_k8s_config=context.run_k8s_config)
    written: dict[str, Any] = launches._api_client.batch_api.api_client.sanitize_for_serialization(job)
    return written


def test_a_run_is_a_job_that_kubernetes_takes(values: dict[str, Any], tmp_path: Path) -> None:
    job = run_job(values, tmp_path)
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (location,) = values["dagster-user-deployments"]["deployments"]
    environ = {each["name"]: each.get("value") for each in container["env"]}
    assert environ["TRACEROOM_OUT"] in {each["mountPath"] for each in container["volumeMounts"]}
    assert {"secretRef": {"name": "traceroom"}} in container["envFrom"]
    assert container["image"] == "registry.example.internal/traceroom:1"
    assert container["securityContext"]["runAsUser"] == location["securityContext"]["runAsUser"]
    assert location["volumes"][0] in pod["volumes"], "a run writes where the code location does"
    assert job["spec"]["ttlSecondsAfterFinished"] == 86400


@pytest.mark.parametrize("wrong", [{"securityContext": {"runAsUser": "root"}}, {"volumeMounts": [{"nam": "out"}]}])
def test_a_wrong_setting_of_a_run_is_seen(values: dict[str, Any], tmp_path: Path, wrong: dict[str, Any]) -> None:
    (location,) = values["dagster-user-deployments"]["deployments"]
    deployments = {"deployments": [location | wrong]}
    with pytest.raises((kubernetes_validate.ValidationError, ValueError, DagsterInvalidConfigError)):
        kubernetes_validate.validate(
            run_job(values | {"dagster-user-deployments": deployments}, tmp_path), kubernetes_validate.latest_version())


def test_kubernetes_takes_the_volume() -> None:
    volume = yaml.safe_load((FOLDER / "volumes.yaml").read_text("utf-8"))
    kubernetes_validate.validate(volume, kubernetes_validate.latest_version(), strict=True)
