"""A review is an input like a log: it settles its session, recalibrates the others, and disagreement settles nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from extractors.reviews import agreement_of
from pipelines.quality import rules
from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from tests.pipelines.conftest import same, tables
from warehouse.store import Store

UP_TO_OUTCOMES = STAGES[: [stage.name for stage in STAGES].index("tasks")]


def line(session_id: str, right: object, reviewer: str = "Ada", minute: int = 0, **more: object) -> str:
    return json.dumps({"session_id": session_id, "right": right, "reviewer": reviewer, "reason": "I looked",
                       "reviewed_at": f"2026-11-22T10:{minute:02}:00Z", **more}) + "\n"


def computed(settings: Settings) -> None:
    for stage in [*UP_TO_OUTCOMES, STAGES[-1]]:
        carry_out(stage, settings)


def outcomes(settings: Settings) -> dict[str, dict[str, Any]]:
    with Store.open(settings.warehouse) as store:
        return {row["session_id"]: row for row in store.table("mart.outcomes").to_dicts()}


@pytest.mark.slow
def test_a_review_settles_its_session_and_disagreement_settles_none(logs: Path, tmp_path: Path) -> None:
    settings = Settings(logs=(str(logs),), out=str(tmp_path / "out"), image=False, only=("logs", "tools", "reviews"))
    computed(settings)
    before = outcomes(settings)
    wrong, right, torn, majority, again, *_ = sorted(before, key=lambda name: -(before[name]["probability"] or 0))
    (logs / "reviews").mkdir()
    (logs / "reviews" / "ada.jsonl").write_text(
        line(wrong, False) + line(right, True, reason="as asked", task_id="t") + line(torn, True)
        + line(torn, False, "Grace", 1) + line(majority, False) + line(majority, False, "Grace") + line(majority, True, "Joan")
        + line(again, True) + line(again, False, minute=5) + line("lost", True)
        + line(right, "yes") + json.dumps({"session_id": right, "right": True}) + "\n" + line(right, True, reviewed_at="noon")
        + "{broken\n")
    computed(settings)
    after = outcomes(settings)
    assert after[wrong]["probability"] < 0.05 < 0.95 < after[right]["probability"]
    assert after[majority]["probability"] < 0.05 and after[again]["probability"] < 0.05
    votes = {vote["name"]: vote for vote in json.loads(after[right]["signals"])}
    assert votes["review"]["vote"] == 1 and votes["review"]["description"] == "Ada reviewed it as right: as asked"
    assert "review" not in {vote["name"] for vote in json.loads(after[torn]["signals"])}
    assert after[torn]["model"] != before[torn]["model"]
    with Store.open(settings.warehouse) as store:
        reviews = store.table("core.reviews")
        assert agreement_of(reviews)[:3] == (2, 4, 0.25)
        assert reviews.filter("stands").height == 5
        reasons = store.read(
            "select reason, count(*) as n from mart.decisions where not kept and (subject in (select review_id from "
            "core.reviews) or file_id in (select file_id from raw.files where format = 'review')) group by reason")
        assert dict(reasons.iter_rows()) == {
            "malformed_review": 3, "reviewed_again": 1, "reviewers_disagree": 3, "unknown_session": 1, "unreadable_record": 1}
        assert not [name for name in rules.broken(store) if "review" in name or "vanish" in name]


@pytest.mark.slow
def test_the_same_reviews_give_the_same_rows_wherever_they_are_stored(logs: Path, tmp_path: Path) -> None:
    first = Settings(logs=(str(logs),), out=str(tmp_path / "first"), image=False, only=("logs", "tools"))
    computed(first)
    names = sorted(outcomes(first))
    first.reviews.write_text("".join(line(name, number % 3 > 0) for number, name in enumerate(names[:5])))
    computed(first)
    second = Settings(logs=first.logs, out=str(tmp_path / "second"), image=False, only=first.only)
    second.reviews.parent.mkdir()
    second.reviews.write_bytes(first.reviews.read_bytes())
    computed(second)
    assert outcomes(first) == outcomes(second)
    assert same(tables(tmp_path / "first"), tables(tmp_path / "second")) == []
