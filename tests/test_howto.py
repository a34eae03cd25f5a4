"""docs/howto, done as it stands: each package is installed in an empty folder, its page's commands print what the page shows,
and what it adds keeps the contract of its kind."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.reference import VARIABLES
from tests.conftest import ROOT, SAMPLE
from tests.manual import blocks, play, shell

HOWTO = ROOT / "docs" / "howto"
CONTRACTS = {
    "log-format": ("tests/extractors/formats/test_contract.py", "my_calls", "my_calls"),
    "signal": ("tests/extractors/outcomes/test_signals.py", "my_stars", "my_stars"),
    "check": ("tests/env_builder/runtime/test_kinds.py", "questions", "contract or what_it_takes or in_one_sentence"),
}
"""Page -> the contract that what it adds is held to, its name there, and which of the tests."""
GROUPS = {"log-format": "formats", "signal": "signals", "check": "checks", "binding": "bindings", "consumer": "exports",
          "backend": "backends"}


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted([*GROUPS, "erasure", "privacy"]))
def test_a_page_can_be_done_as_it_stands(page: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if page in ("binding", "consumer", "erasure"):   # the tutorial's run
        shutil.copytree(request.getfixturevalue("sample_run"), tmp_path / "out")
    shutil.copytree(SAMPLE, tmp_path / "tests" / "logs" / "airline")
    assert play(HOWTO / f"{page}.md", tmp_path) >= 2
    if page in CONTRACTS:
        tests, name, chosen = CONTRACTS[page]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-rA", tests, "-k", chosen], cwd=ROOT,
            env=shell(tmp_path), capture_output=True, text=True, timeout=500, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(rf"^PASSED .*\[{name}", done.stdout, re.M), done.stdout


@pytest.mark.parametrize("page", sorted(GROUPS))
def test_a_package_is_whole(page: str) -> None:
    """Its entry point is in the group that the page is about, and its module is saved, and goes into the wheel."""
    files = {block.file: block.text for block in blocks(HOWTO / f"{page}.md") if block.file}
    about = tomllib.loads(files["my_package/pyproject.toml"])
    ((group, points),) = about["project"]["entry-points"].items()
    assert group == f"traceroom.{GROUPS[page]}"
    for value in points.values():
        module = f"{value.partition(':')[0]}.py"
        assert f"my_package/{module}" in files and module in about["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert group in (ROOT / "docs" / "reference" / "extensions.md").read_text("utf-8")


def test_every_page_is_listed() -> None:
    listed = re.findall(r"^\| \[([\w-]+\.md)\]", (HOWTO / "README.md").read_text("utf-8"), re.M)
    assert sorted(listed) == sorted(path.name for path in HOWTO.glob("*.md") if path.name != "README.md")


def test_what_is_said_of_kubernetes_is_in_its_files() -> None:
    page = (HOWTO / "kubernetes.md").read_text("utf-8")
    values: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "values.yaml").read_text("utf-8"))
    volume: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "volumes.yaml").read_text("utf-8"))
    for path in re.findall(r"deploy/[\w./-]+\w", page):
        assert path == "deploy/.env" or (ROOT / path).exists(), path
    (location,) = values["dagster-user-deployments"]["deployments"]
    image = location["image"]
    assert f"{image['repository']}:{image['tag']}" in page and values["dagsterDaemon"]["image"] == image
    assert {"name": values["global"]["postgresqlSecretName"]} != location["envSecrets"][0]
    for secret in (values["global"]["postgresqlSecretName"], location["envSecrets"][0]["name"]):
        assert f"kubectl create secret generic {secret} " in page
    claim = location["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert claim == volume["metadata"]["name"] and f"`{claim}`" in page
    assert volume["spec"]["resources"]["requests"]["storage"].replace("Gi", " Gi") in page
    assert location["volumeMounts"][0]["mountPath"] == next(
        each["value"] for each in location["env"] if each["name"] == "TRACEROOM_OUT")
    locked = re.search(r"^dagster==(\S+)", (ROOT / "deploy" / "requirements.lock").read_text("utf-8"), re.M)
    assert locked and f"--version {locked[1]} " in page


def test_kubernetes_is_told_what_the_compose_file_tells() -> None:
    values = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "values.yaml").read_text("utf-8"))
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))
    (location,) = values["dagster-user-deployments"]["deployments"]
    code = compose["services"]["code"]
    told = {each["name"] for each in location["env"]}
    assert told <= set(VARIABLES) and told <= set(compose["services"]["daemon"]["environment"]) | set(code["environment"])
    assert str(location["port"]) in str(code.get("command", code)) and "pipelines.definitions" in str(code)
    user = re.search(r"^USER (\d+)", (ROOT / "deploy" / "Dockerfile").read_text("utf-8"), re.M)
    assert user and int(user[1]) == location["securityContext"]["runAsUser"]
    named = set(re.findall(r"TRACEROOM_[A-Z_]+", (HOWTO / "kubernetes.md").read_text("utf-8")))
    assert named <= set(VARIABLES)
