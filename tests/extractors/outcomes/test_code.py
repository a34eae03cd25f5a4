"""Outcomes of sessions that changed a repository: the verifier decides, else what became of the change."""

from __future__ import annotations

from typing import Any

import polars as pl

from extractors.outcomes import judge
from extractors.outcomes.code import CodeOutcomes
from tests.extractors.outcomes.test_outcomes import frames, session, signals_of
from warehouse.records import CodeChangeRow, CodeVerdict, Correction, Feedback, empty, frame


def change(name: str, success: float | None) -> dict[str, Any]:
    return {"session_id": name, "repository": "lamp", "pull_request": 1, "state": "merged", "merge_commit": None,
            "reverted_by": None, "ci": None, "winner": None, "won_by": "nothing", "source_files": [], "test_files": [],
            "success": success, "evidence": ["merged"]}


def verdict(name: str, resolved: bool | None) -> dict[str, Any]:
    return {"task_id": f"code-{name}", "session_id": name, "resolved": resolved, "forgeable": False, "detail": "2 tests fail"}


def chances(changes: dict[str, float | None], verdicts: dict[str, bool | None], corrections: pl.DataFrame | None = None,
            ) -> tuple[dict[str, float | None], pl.DataFrame]:
    """Rate sessions that say nothing about how they went."""
    names = sorted({*changes, *verdicts, "quiet"})
    sessions, turns = frames(*(session(name, ("user", f"the lamp {name} needs oil")) for name in names))
    code = CodeOutcomes(frame(CodeChangeRow, [change(*each) for each in changes.items()]),
                        frame(CodeVerdict, [verdict(*each) for each in verdicts.items()]))
    outcomes = judge(sessions, turns, empty(Feedback), corrections=corrections, code=code).outcomes
    return dict(outcomes.select("session_id", "probability").iter_rows()), outcomes


def test_what_the_verifier_says_is_known_whatever_became_of_the_change() -> None:
    verdicts = {"merged": False, "closed": True, "unsure": None}
    rated, outcomes = chances({"merged": 0.99, "closed": 0.01, "unsure": 0.9}, verdicts)
    assert rated["merged"] is not None and rated["merged"] < 0.1 and rated["closed"] is not None and rated["closed"] > 0.9
    assert signals_of(outcomes, "merged")["verdict"] == -1.0 and signals_of(outcomes, "closed")["verdict"] == 1.0
    assert "verdict" not in signals_of(outcomes, "unsure")


def test_before_it_is_verified_what_became_of_a_change_counts() -> None:
    rated, outcomes = chances({"merged": 0.99, "closed": 0.01, "at_odds": None}, {})
    assert rated["merged"] is not None and rated["closed"] is not None and rated["closed"] < 0.1 < 0.9 < rated["merged"]
    assert signals_of(outcomes, "merged")["code_change"] == 0.98
    assert "code_change" not in signals_of(outcomes, "at_odds") and rated["at_odds"] == rated["quiet"]


def test_a_person_who_looked_is_over_the_verifier() -> None:
    said = frame(Correction, [{**dict.fromkeys(Correction.model_fields), "correction_id": "c", "subject": "merged",
                               "kind": "outcome", "value": '"succeeded"', "author": "Ann", "why": "the test was wrong"}])
    rated, _ = chances({}, {"merged": False}, said)
    assert rated["merged"] is not None and rated["merged"] > 0.9
