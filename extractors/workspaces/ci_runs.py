"""Which commit each file of test results is of.

In: results (`test_run`), jobs (`ci_job`) and runs of the code host (`workflow_run`) with the path of the file they stand in.
Out: commit -> outcomes of each of its runs. A file of results is of the commit that the job log in its folder checked out; else
of the run whose id is the name of a folder above it; else of the run that ended next after the tests began, within an hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from warehouse.vocabulary import CI_JOB, TEST_RUN

_LONGEST = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CiRecord:
    """An event of CI."""

    tool: str
    """test_run, ci_job, or workflow_run with its action."""
    facts: Mapping[str, Any]
    path: str
    """Of the file that it stands in."""
    at: datetime | None


def outcomes_by_commit(records: Iterable[CiRecord]) -> dict[str, list[dict[str, str]]]:
    """Return the outcomes of tests by commit, each run's apart, in the order of their files."""
    ordered = sorted(records, key=lambda record: (record.path, record.tool))
    jobs = {_folder(each.path): str(each.facts["commit"]) for each in ordered
            if each.tool == CI_JOB and each.facts.get("commit")}
    runs = [each for each in ordered if each.tool.startswith("workflow_run") and each.facts.get("commit")]
    by_id = {str(each.facts.get("run_id")): str(each.facts["commit"]) for each in runs}
    results: dict[str, list[dict[str, str]]] = {}
    for each in ordered:
        if each.tool == TEST_RUN and each.facts.get("outcomes"):
            parts = reversed(PurePosixPath(each.path).parts)
            commit = (jobs.get(_folder(each.path)) or next((by_id[part] for part in parts if part in by_id), None)
                      or _by_time(each, runs))
            if commit is not None:
                results.setdefault(commit, []).append(dict(each.facts["outcomes"]))
    return results


def _folder(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _by_time(result: CiRecord, runs: Iterable[CiRecord]) -> str | None:
    at = result.at
    after = [(run.at - at, str(run.facts["commit"])) for run in runs
             if at is not None and run.at is not None and timedelta() <= run.at - at <= _LONGEST]
    return min(after)[1] if after else None
