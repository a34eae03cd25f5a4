"""Folders of logs that hold programs: modules of usual names, customisations, settings; no command runs or obeys one of
them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.logs import conversation
from tests.attacks.report import Report
from tests.command_line import environ

MODULES = ("json", "re", "random", "polars", "duckdb", "typer", "sitecustomize", "usercustomize", "encodings", "pipelines",
    "extractors", "warehouse", "orjson",
           "yaml", "rich", "__main__", "conftest", "site", "zstandard", "pydantic")


def attack(folder: Path, share: float) -> Report:
    """Plant modules and settings in the folder of logs, and run commands there."""
    logs, planted = folder / "logs", folder / "planted"
    logs.mkdir()
    (logs / "a.jsonl").write_bytes(conversation(1))
    for name in MODULES:
        (logs / f"{name}.py").write_text(f"open({str(planted)!r}, 'a').write({name!r})\n")
    (logs / "pipelines").mkdir()
    (logs / "pipelines" / "__init__.py").write_text(f"open({str(planted)!r}, 'a').write('package')\n")
    for name, text in {".env": "TRACEROOM_OUT=/planted\n", "pyproject.toml": "[tool.traceroom]\nout = '/planted'\n",
        "setup.cfg": "", "dagster.yaml": "{",
                       "pytest.ini": "", ".duckdbrc": f".shell touch {planted}\n", "traceroom.toml": "[sources"}.items():
        (logs / name).write_text(text)
    problems, commands = [], (["sniff", "."], ["sniff", "a.jsonl"], ["show"], ["doctor"])
    for command in commands if share >= 0.1 else commands[:1]:
        done = subprocess.run([sys.executable, "-P", "-m", "pipelines", *command], cwd=logs, env=environ(HOME=str(logs)),
            capture_output=True, text=True, check=False)
        problems += [f"{command}: {done.stderr[-200:]}"] if done.returncode > 2 or "Traceback" in done.stderr else []
    problems += [f"these ran: {planted.read_text()}"] if planted.exists() else []
    return Report(len(MODULES) + len(commands), tuple(problems))


@pytest.mark.slow
def test_nothing_beside_logs_is_run(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
