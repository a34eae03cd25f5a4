"""Agents of other frameworks play an environment's tasks without a change of their code (docs/howto/agent.md)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelines.rollouts.agents.adapters import ADAPTERS
from tests.conftest import lacking
from tests.consumers.frameworks import AGENTS, FRAMEWORKS, Framework, different, solved_tasks
from tests.consumers.interpreters import Lacking

CHOSEN = [framework for framework in FRAMEWORKS if framework.required or os.environ.get("TRACEROOM_CONSUMERS") == "all"]


@pytest.mark.slow
@pytest.mark.parametrize("framework", CHOSEN, ids=lambda framework: framework.adapter)
def test_an_agent_of_a_framework_plays_as_the_plain_loop(
    framework: Framework, sample_environment: Path, tmp_path: Path
) -> None:
    task_ids = solved_tasks(sample_environment)[:2]
    try:
        assert different(framework, sample_environment, tmp_path, task_ids) == {}
    except Lacking as error:
        lacking(f"{framework.adapter} cannot be had: {error}")


def test_every_adapter_has_an_agent_that_knows_nothing_of_ours() -> None:
    assert sorted(framework.adapter for framework in FRAMEWORKS) == sorted(ADAPTERS)
    for path in AGENTS.iterdir():
        if path.is_file():
            assert "traceroom" not in path.read_text("utf-8").lower()
