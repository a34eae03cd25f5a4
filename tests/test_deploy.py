"""What deploy/ says: one set of names, a whole lock, an instance on a real PostgreSQL, and no secret but in the environment."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster import DagsterInstance, Failure, SensorResult, asset, build_sensor_context, materialize
from dagster._core.instance.ref import InstanceRef
from dagster_shared.serdes import serialize_value
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipelines.dagster_assets.alerts import alerts
from pipelines.definitions import defs
from pipelines.reference import used_variables
from tests.conftest import ROOT
from tests.pipelines.conftest import quiet
from tests.postgres import Postgres

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SECRETS = {"TRACEROOM_MODEL_KEY": "m0del-5ecret", "AWS_SECRET_ACCESS_KEY": "aws-5ecret",
           "TRACEROOM_ALERT_WEBHOOK": "http://127.0.0.1:9/webh00k-5ecret"}

ELSEWHERE = {
    "TRACEROOM_ADAPTERS": "of an agent's process", "TRACEROOM_EPISODE_URL": "of an agent's process",
    "TRACEROOM_ANSWERS": "of runners in sandboxes", "TRACEROOM_ORDER": "of runners in sandboxes",
    "TRACEROOM_CHROMIUM": "of whoever looks at a site",
    "TRACEROOM_BASE_IMAGE": "runs in containers build no images", "TRACEROOM_COMMAND": "of ./traceroom",
    "TRACEROOM_DEBUG": "of the command line", "TRACEROOM_GRADE_TOKEN": "of `serve`",
    "TRACEROOM_KEY_FILE": "compose asks for the key itself",
    "TRACEROOM_OPENENV_PYTHON": "of `serve`",
    "TRACEROOM_PULL": "a run's container may not write the inbox",
    "TRACEROOM_RECEIVE_TOKEN": "of `receive`", "TRACEROOM_SERVE_TOKENS": "of `serve`",
    "TRACEROOM_SERVE_TOKENS_FILE": "of `serve`", "TRACEROOM_UI_TOKEN": "of `ui`"}
"""Variables that no run in a container needs, and why."""


def pins(path: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==([^ ;\\]+)", path.read_text("utf-8"), re.M))


def test_the_image_is_made_from_a_whole_lock_of_the_same_versions() -> None:
    locked, developed = pins(DEPLOY / "requirements.lock"), pins(ROOT / "requirements.lock")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [Requirement(line) for line in (*project["dependencies"], *extras["production"], *extras["s3"])]
    assert [str(one) for one in wanted if not one.specifier.contains(locked.get(canonicalize_name(one.name), "0"))] == []
    assert {name: (version, developed[name]) for name, version in locked.items()
            if developed.get(name, version) != version} == {}
    assert "pytest" not in locked


def test_a_run_is_told_what_the_daemon_is_told() -> None:
    services = COMPOSE["services"]
    context = json.loads(services["code"]["environment"]["DAGSTER_CONTAINER_CONTEXT"])["docker"]
    daemon = services["daemon"]["environment"]
    assert sorted(context["env_vars"]) == sorted(daemon), "the launcher refuses a name that the daemon does not know"
    assert not [name for name in context["env_vars"] if "=" in name], "names, no values"
    assert set(services["webserver"]["environment"]) == set(COMPOSE["x-database"]), "the pages need no secret of the logs"
    for name, told in daemon.items():
        secret = re.search(r"PASSWORD|SECRET|KEY|TOKEN|WEBHOOK|SMTP", name)
        assert not secret or re.fullmatch(r"\$\{\w+:[-?][^}]*\}", str(told)), name
        asked_for = name in ("DAGSTER_PG_PASSWORD", "TRACEROOM_KEY")
        assert not secret or ":?" in str(told) if asked_for else not secret or str(told).endswith(":-}"), "it has no default"
    volumes = {volume.split("_")[-1].split(":")[0] for volume in context["container_kwargs"]["volumes"]}
    assert volumes == {"out", "inbox", "logs"} <= set(COMPOSE["volumes"])
    assert [port for service in services.values() for port in service.get("ports", [])] == [
        "127.0.0.1:${TRACEROOM_PORT:-3000}:3000"]


def test_what_the_code_reads_can_be_told_in_the_env_file() -> None:
    told = set(COMPOSE["x-settings"])
    ours = {name for name in used_variables() if name.startswith("TRACEROOM_")}
    assert sorted(name for name in told if name.startswith("TRACEROOM_")) == sorted(ours - set(ELSEWHERE))
    assert {"PGPASSWORD", "AWS_SESSION_TOKEN"} <= told, "what a lake is reached by"
    named = set(re.findall(r"^#?([A-Z_]+)=", (DEPLOY / "example.env").read_text("utf-8"), re.M))
    asked = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text("utf-8")))
    assert named <= asked, "what compose asks for"
    (deployment,) = yaml.safe_load((DEPLOY / "kubernetes" / "values.yaml").read_text("utf-8"))["dagster-user-deployments"][
        "deployments"]
    assert deployment["envSecrets"] == [{"name": "traceroom"}], "the env file, whole"


def test_what_is_written_for_kubernetes_says_that_no_cluster_was_there() -> None:
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        text = path.read_text("utf-8")
        assert "not tried on a cluster" in text.splitlines()[0].lower() and yaml.safe_load(text)
    values = yaml.safe_load((DEPLOY / "kubernetes" / "values.yaml").read_text("utf-8"))
    told = {**values["additionalInstanceConfig"]}
    instance = yaml.safe_load((DEPLOY / "dagster.yaml").read_text("utf-8"))
    assert told["concurrency"]["pools"] == instance["concurrency"]["pools"] and values["telemetry"] == instance["telemetry"]
    assert values["postgresql"]["postgresqlScheme"] == instance["storage"]["postgres"]["postgres_db"]["scheme"]


@pytest.fixture
def instance(postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DagsterInstance]:
    """Dagster as deploy/dagster.yaml says, but for the folders, which are this test's."""
    told = (DEPLOY / "dagster.yaml").read_text("utf-8").replace("/opt/dagster/local", str(tmp_path / "local"))
    (tmp_path / "dagster.yaml").write_text(told)
    url = postgres.database()
    for name, value in {"HOST": postgres.host, "PORT": str(postgres.port), "USER": postgres.user,
                        "PASSWORD": postgres.password, "DB": url.rpartition("/")[2]}.items():
        monkeypatch.setenv(f"DAGSTER_PG_{name}", value)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with DagsterInstance.from_ref(InstanceRef.from_dir(str(tmp_path))) as found:
        yield found


@asset
def lamp() -> None:
    """Fails as a step of ours does."""
    raise Failure("the endpoint does not answer")


@pytest.mark.xdist_group("postgres")
def test_the_instance_is_on_postgresql_and_no_secret_is_in_it(
    instance: DagsterInstance, postgres: Postgres, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failed = materialize([lamp], instance=instance, raise_on_error=False, run_config=quiet())
    context = build_sensor_context(instance=instance, repository_def=defs.get_repository_def())
    found = alerts(context)
    assert isinstance(found, SensorResult) and failed.run_id in str(found.cursor), "the webhook did not answer: it waits"
    instance.daemon_cursor_storage.set_cursor_values({"alerts": str(found.cursor)})
    assert type(instance.run_launcher).__name__ == "DockerRunLauncher" and instance.freshness_enabled
    command = serialize_value(instance.get_ref())   # what a run's container is begun with
    dump = postgres.run("pg_dump", "--dbname", instance.run_storage._engine.url.database)  # type: ignore[attr-defined]
    assert failed.run_id in dump and "the endpoint does not answer" in dump
    files = [path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file()]
    said = "\n".join([dump, command, caplog.text, *files])
    for secret in (postgres.password, *SECRETS.values(), "webh00k-5ecret"):
        assert secret not in said


def test_nothing_of_the_folder_but_what_it_needs_goes_into_the_image() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.M)
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    for source in " ".join(copied).split():
        assert (ROOT / source).exists() and any(Path(source).match(pattern) for pattern in let_in), source
    assert not any(Path("deploy/.env").match(pattern) for pattern in let_in)
    assert "/deploy/.env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
