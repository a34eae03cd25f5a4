"""Sessions that run programs: what they left in files may be wrong, so only known outcomes label them."""

from __future__ import annotations

import polars as pl
import pytest

from extractors.configuration import Audit
from pipelines.building.datasets import without_guesses

SESSIONS = ("coded", "solved", "failed", "talked")
OUTCOMES = pl.DataFrame({"session_id": SESSIONS, "probability": [0.6, 0.97, 0.02, 0.6]})
TASKS = pl.DataFrame({"task_id": ["t"], "succeeded_session_ids": [["coded", "solved", "talked"]]})


@pytest.mark.parametrize(("running", "good", "labelled"), [
    ((), ["coded", "solved", "talked"], list(SESSIONS)),
    (("coded", "solved", "failed"), ["solved", "talked"], ["solved", "failed", "talked"])])
def test_an_estimate_labels_no_session_that_runs_programs(
    running: tuple[str, ...], good: list[str], labelled: list[str],
) -> None:
    tasks, outcomes = without_guesses(TASKS, OUTCOMES, running, Audit())
    assert tasks["succeeded_session_ids"].to_list() == [good] and outcomes["session_id"].to_list() == labelled


def test_an_outcome_that_is_not_known_at_all_stays_none() -> None:
    outcomes = pl.DataFrame({"session_id": ["coded"], "probability": [None]}, schema_overrides={"probability": pl.Float64})
    assert without_guesses(TASKS, outcomes, ["coded"], Audit())[1].is_empty()
