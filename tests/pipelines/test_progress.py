"""Progress of a run: counts and the time left, for the terminal and for the browser's page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines import progress
from pipelines.progress import NAME, RunProgress, Step
from pipelines.screen import duration


def test_the_time_left_follows_the_pace_of_the_stage() -> None:
    now = [100.0]
    state = RunProgress(lambda: now[0])
    state.add(Step("read", 0, 40, ""))
    assert state.stages["read"]["seconds_left"] is None
    now[0] = 110.0
    state.add(Step("read", 10, 40, "a file"))
    assert state.stages["read"] == {
        "stage": "read", "done": 10, "total": 40, "note": "a file", "finished": False, "seconds_left": 30.0}
    state.add(Step("read", 40, 40, "", finished=True))
    state.add(Step("read", 0, None, "a warning", warning=True))
    assert state.stages["read"]["finished"] and state.stages["read"]["seconds_left"] is None


def test_a_file_shows_the_progress_while_the_run_is_going_and_the_watcher_still_hears_of_it(tmp_path: Path) -> None:
    heard: list[Step] = []
    with pytest.raises(RuntimeError), progress.watched_by(heard.append), progress.written_to(tmp_path / "out", 12):
        progress.tell("read", 1, 4, "one")
        state = json.loads((tmp_path / "out" / NAME).read_text("utf-8"))
        rows = [(row["stage"], row["done"], row["total"]) for row in state["stages"]]
        assert state["n_stages"] == 12 and rows == [("read", 1, 4)]
        raise RuntimeError
    assert [step.done for step in heard] == [1] and not (tmp_path / "out" / NAME).exists()


@pytest.mark.parametrize(("seconds", "text"), [
    (0.0124, "12 ms"), (3.44, "3.4 s"), (125, "2 min 5 s"), (3840, "1 h 4 min")])
def test_a_duration_is_written_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text
