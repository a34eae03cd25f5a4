"""The real sample: sixty sessions, every one accounted for, the same bytes in any order."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from extractors.inventory import discover
from extractors.outcomes import judge
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble
from extractors.tasks import find, leakage
from warehouse.records import SPLITS

SAMPLE = Path(__file__).resolve().parents[2] / "logs" / "airline"


@pytest.fixture(scope="module")
def sample() -> AssembledSessions:
    files, _ = discover([SAMPLE])
    readings = [read(file) for file in files]
    return assemble(pl.concat([r.events for r in readings]), pl.concat([r.declarations for r in readings]))


def test_the_sample_gives_tasks_with_known_good_sessions(sample: AssembledSessions) -> None:
    effects = sample.tools.select("service", "tool", pl.lit("unknown").alias("effect"))
    starts = dict.fromkeys(sample.sessions["service"].unique(), "reset")
    judged = judge(sample.sessions, sample.turns, sample.feedback, effects, starts)
    assert judged.outcomes.height == sample.sessions.height
    found = find(sample.sessions, sample.turns, judged.outcomes, effects, starts)
    in_tasks = found.tasks["session_ids"].explode().to_list()
    assert sorted(in_tasks + found.decisions["subject"].to_list()) == sorted(sample.sessions["session_id"])
    assert found.tasks.filter(pl.col("session_ids").list.len() > 1).height >= 10, "tries of one task are found again"
    assert found.tasks.filter(pl.col("succeeded_session_ids").list.len() > 0).height >= 5
    assert set(found.tasks["split"]) == set(SPLITS)
    report = leakage(found.tasks, sample.sessions, sample.turns, effects)
    assert all(each["leaks"] == 0 or each["method"] == "family" for each in report.values())
    shuffled = sample.turns.sample(fraction=1.0, shuffle=True, seed=3)
    again = find(sample.sessions.reverse(), shuffled, judged.outcomes.reverse(), effects.reverse(), starts)
    assert again.tasks.equals(found.tasks)
