"""Results of CI: which commit each file of them is of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from extractors.workspaces.ci_runs import CiRecord, outcomes_by_commit
from tests.extractors.workspaces.commits import FIRST

OUTCOMES = {"lamp::burns": "passed"}


def record(tool: str, path: str, hours: float = 0, **facts: Any) -> CiRecord:
    return CiRecord(tool, facts, path, FIRST + timedelta(hours=hours))


RESULT = record("test_run", "ci/71/junit.xml", outcomes=OUTCOMES)


@pytest.mark.parametrize("beside", [
    [record("ci_job", "ci/71/job.log", commit="a" * 40),
     record("workflow_run.completed", "events", run_id=71, commit="b" * 40)],
    [record("ci_job", "ci/72/job.log", commit="b" * 40),
     record("workflow_run.completed", "events", run_id=71, commit="a" * 40)],
    [record("workflow_run.completed", "events", 0.9, run_id=8, commit="b" * 40),
     record("workflow_run.completed", "events", 0.2, run_id=9, commit="a" * 40)],
], ids=["the job beside it", "the run whose folder it is in", "the run that ended next"])
def test_results_are_of_the_commit_that_was_checked_out(beside: list[CiRecord]) -> None:
    assert outcomes_by_commit([RESULT, *beside]) == {"a" * 40: [OUTCOMES]}


def test_results_of_which_nothing_tells_the_commit_are_left_out() -> None:
    assert outcomes_by_commit([RESULT, record("workflow_run.completed", "events", 3, run_id=9, commit="a" * 40)]) == {}
    assert outcomes_by_commit([RESULT, record("workflow_run.requested", "events", -1, run_id=9, commit="a" * 40)]) == {}
