"""The perturbation `expiry` in the environment of a site: a reader who logs in again is paid, and the grader agrees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.browser_by_heart import Reader, known_clicks, login_of_play, play_of, reward_of
from env_builder import Environment
from pipelines.running.run import run
from pipelines.settings import Settings
from tests.env_builder.site.cards import CardSite, Recorder

NAME = "site-cards-example"


def record() -> Recorder:
    """Let people comment on cards; every second one loses the login before the card, and comes in again."""
    recorder = Recorder(CardSite())
    for number in range(101, 107):
        recorder.sit_down("ivo", f"please comment on card {number}: lens {number} is dull")
        if number % 2:
            recorder.lose()
            recorder.ask("GET", f"/cards/{number}/")
            recorder.ask("POST", f"/login/?next=/cards/{number}/", (
                ("who", "ivo@cards.example"), ("password", "sesame"), ("token", "abc")))
        recorder.change(number, "comment", text=f"lens {number} is dull")
    return recorder


@pytest.mark.slow
def test_whoever_logs_in_again_is_paid_and_the_grader_agrees(tmp_path: Path) -> None:
    record().write_logs(tmp_path / "logs")
    run(Settings(logs=(str(tmp_path / "logs"),), out=str(tmp_path / "out"), image=False))
    environment = Environment.load(tmp_path / "out" / "environments" / NAME)
    (site,) = (row for row in environment.manifest["apps"] if row["name"] == "site")
    assert site["expiry"]["n_lost"] == 3 and environment.tasks
    solutions = map(json.loads, (tmp_path / "out" / "rewards" / NAME / "solutions.jsonl").read_text().splitlines())
    steps = {row["task_id"]: row["steps"] for row in solutions}
    n_lost = n_given_up = 0
    for task in environment.tasks:
        clicks = known_clicks(environment, task.task_id, steps[task.task_id])
        assert len(login_of_play(clicks)) == 3
        for seed in range(12):
            reward, n_logins = play_of(environment, task.task_id, clicks, Reader(), seed, ("expiry",))
            assert reward == 1.0, (task.goal, seed)
            assert environment.grade_journal(task.task_id, environment.journal, seed, ("expiry",)).reward == 1.0
            n_lost += n_logins
            by_refs = reward_of(environment, task.task_id, clicks, lambda wanted, page, carry: wanted.ref, seed, ("expiry",))
            n_given_up += n_logins > 0 and by_refs != 1.0
    assert n_lost > 3 and n_given_up, "who does not log in again gets nowhere"
