"""A run in a container of its own, begun by Dagster's Docker launcher with what deploy/ says, on a real engine and PostgreSQL.

Not deploy/Dockerfile's image, which wants a package index: the small base image, with this checkout, its interpreter and
this machine's libraries (the same Debian) mounted where they lie, and the network of this machine, where the database is.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml
from dagster import DagsterInstance, DagsterRunStatus
from dagster._core.instance.ref import InstanceRef

from tests.conftest import ROOT
from tests.pipelines.conftest import part_of_sample
from tests.postgres import Postgres
from warehouse.store import Store

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SECRET = "m0del-5ecret-of-the-launcher"
PATIENCE_S = 600


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_a_run_is_done_in_a_container_of_its_own(postgres: Postgres, base_image: str, tmp_path: Path) -> None:
    home, out = tmp_path / "dagster", tmp_path / "out"
    inbox = part_of_sample(tmp_path / "inbox")
    environ = told(postgres, home, out, inbox, base_image)
    asked = subprocess.run(
        [sys.executable, "-m", "dagster", "job", "launch", "--module-name", "pipelines.definitions", "--job", "everything",
         "--config-json", json.dumps({"execution": {"config": {"in_process": {}}}}),   # steps start no processes: sooner done
         "--tags", json.dumps({"dagster/partition": f"{datetime.now(UTC):%Y-%m-%d}"})],
        env=environ, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert asked.returncode == 0, asked.stderr
    engine = docker.from_env()
    containers = engine.containers.list(all=True, filters={"label": "dagster/job_name=everything", "ancestor": base_image})
    mine = [one for one in containers if any(mount["Source"] == str(out) for mount in one.attrs["Mounts"])]
    assert len(mine) == 1, "one run, one container"
    try:
        code = mine[0].wait(timeout=PATIENCE_S)["StatusCode"]
        said = mine[0].logs().decode("utf-8", "replace")
    finally:
        mine[0].remove(force=True)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        with DagsterInstance.from_ref(InstanceRef.from_dir(str(home))) as instance:
            [run] = instance.get_runs()
            events = [event.message for event in instance.all_logs(run.run_id)]
    assert code == 0 and run.status == DagsterRunStatus.SUCCESS, "\n".join([*events[-12:], said[-3000:]])
    assert any("Launching run in a new container" in event for event in events)
    with Store.published(out / "warehouse.duckdb") as store:
        assert store.read("select count(*) as n from core.sessions")["n"][0] == 20
    assert list((out / "environments").glob("*/manifest.json")), "what it made lies outside of the container"
    dump = postgres.run("pg_dump", "--dbname", environ["DAGSTER_PG_DB"])
    assert run.run_id in dump and SECRET not in dump and postgres.password not in dump and SECRET not in said


def told(postgres: Postgres, home: Path, out: Path, inbox: Path, image: str) -> dict[str, str]:
    """Return the variables of the process that launches: compose.yaml's, with this machine's folders; fills DAGSTER_HOME."""
    home.mkdir()
    out.mkdir()
    instance = yaml.safe_load((DEPLOY / "dagster.yaml").read_text("utf-8").replace("/opt/dagster/local", str(home / "local")))
    # Without a daemon nobody works off a queue.
    instance["run_coordinator"] = {"module": "dagster._core.run_coordinator", "class": "DefaultRunCoordinator"}
    (home / "dagster.yaml").write_text(yaml.safe_dump(instance))
    names = COMPOSE["services"]["daemon"]["environment"]
    settings = {
        "DAGSTER_PG_HOST": postgres.host, "DAGSTER_PG_PORT": str(postgres.port), "DAGSTER_PG_USER": postgres.user,
        "DAGSTER_PG_PASSWORD": postgres.password, "DAGSTER_PG_DB": postgres.database().rpartition("/")[2],
        "TRACEROOM_INBOX": str(inbox), "TRACEROOM_OUT": str(out), "TRACEROOM_IMAGE": "off", "TRACEROOM_MODEL_KEY": SECRET}
    assert settings.keys() <= names.keys()
    defaults = {name: re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", str(value)) for name, value in names.items()}
    return os.environ | defaults | settings | {
        "DAGSTER_HOME": str(home), "DAGSTER_CURRENT_IMAGE": image, "DO_NOT_TRACK": "1",
        "DAGSTER_CONTAINER_CONTEXT": json.dumps(context([home, out], [inbox, ROOT, Path("/usr"), Path(sys.base_prefix)]))}


def context(written: list[Path], read: list[Path]) -> dict[str, Any]:
    """How compose.yaml has a run's container made, with these folders mounted, and removed by the test."""
    found: dict[str, Any] = json.loads(COMPOSE["services"]["code"]["environment"]["DAGSTER_CONTAINER_CONTEXT"])
    found["docker"]["networks"] = []
    found["docker"]["env_vars"] += ["DAGSTER_HOME", f"PATH={Path(sys.prefix) / 'bin'}:/usr/bin:/bin", f"PYTHONPATH={ROOT}"]
    found["docker"]["container_kwargs"] |= {
        "auto_remove": False, "network_mode": "host", "working_dir": str(ROOT),
        "volumes": [*(f"{path}:{path}" for path in written), *(f"{path}:{path}:ro" for path in read)]}
    return found
