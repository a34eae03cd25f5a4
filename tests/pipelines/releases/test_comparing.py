"""What came, what went, what moved, and why: two releases whose differences are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipelines.releases.comparing import diff
from pipelines.releases.registry import Registry
from tests.pipelines.releases.conftest import put


def task(name: str, *sessions: str, published: bool = True, split: str = "train", made_from: str = "logged") -> dict[str, Any]:
    return {"task_id": name, "service": "hall", "family": "f1", "split": split, "difficulty": None,
            "session_ids": list(sessions), "made_from": made_from, "published": published}


def left(stage: str, subject: str, reason: str) -> dict[str, str]:
    return {"stage": stage, "subject": subject, "reason": reason}


def released(
    registry: Registry, folder: Path, tasks: list[dict[str, Any]], lefts: list[dict[str, str]], files: dict[str, int],
    fidelity: float, code: str = "c", drift: tuple[dict[str, str], ...] = ()
) -> str:
    tool = {"service": "hall", "tool": "light", "effect": "write", "n_support": 9, "n_against": 0, "fidelity": fidelity,
            "abstains": 0.0}
    family = {"service": "hall", "family": "f1", "name": "light a lamp", "n_sessions": 9, "n_tasks": 3, "n_succeeded": 2,
              "rate": 0.5}
    about = {"tasks": tasks, "left": lefts, "tools": [tool], "families": [family],
             "files": [{"file_id": name, "n_records": n} for name, n in files.items()], "drift": list(drift)}
    figures = {"n_published": sum(row["published"] for row in tasks), "fidelity": fidelity, "n_sessions": len(files)}
    files_of = {f"about/{name}.jsonl": "".join(json.dumps(row) + "\n" for row in rows) for name, rows in about.items()}
    return put(
        registry, folder, files_of, code=code, settings="s", privacy="off", figures=figures, parts=[])


def test_each_difference_has_its_why(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "registry"))
    before = released(registry, tmp_path, [
        task("stays", "s1"), task("fails", "s2"), task("forgotten", "s3"), task("merged", "s4"), task("unlit", "s5"),
        task("waited", "s6", published=False), task("rebound", made_from="rebinding"), task("turns", "s7")],
        [left("rewards", "waited", "doubtful_success")], {"a": 10, "b": 20}, 0.8)
    after = released(registry, tmp_path, [
        task("stays", "s1"), task("fails", "s2", published=False), task("larger", "s4", "s8"), task("waited", "s6"),
        task("fresh", "s9"), task("turns", "s7", split="held_out")],
        [left("verify", "fails", "attack_passed"), left("sessions", "s5", "not_selected")], {"b": 20, "c": 5}, 0.6, code="d")
    found = diff(registry, before, after)
    assert {row["task_id"]: row["why"] for row in found["tasks"]["gone"]} == {
        "fails": "rejected now (verify: attack_passed)", "forgotten": "its sessions are no longer in the logs",
        "merged": "its sessions are in the task larger now", "unlit": "its sessions are rejected now (sessions: not_selected)",
        "rebound": "no longer made (rebinding)"}
    assert {row["task_id"]: row["why"] for row in found["tasks"]["came"]} == {
        "larger": "new in the logs", "waited": "was rejected before (rewards: doubtful_success)", "fresh": "new in the logs"}
    assert [(row["task_id"], row["why"]) for row in found["tasks"]["moved"]] == [("turns", "split train → held_out")]
    assert found["inputs"]["says"] == (
        "chunks of logs: 1 more (5 records), 1 fewer (10 records), another choice of sessions "
        "(0 → 1 rejected by it), other code")
    figures = {row["name"]: row for row in found["figures"]}
    assert figures["fidelity"] == {"name": "fidelity", "before": 0.8, "after": 0.6, "why": "hall, light 0.8 → 0.6"}
    why = figures["n_published"]["why"]
    assert why.startswith("3 came: 2 new in the logs, 1 was rejected before (rewards: doubtful_success); 5 went"), why
    assert "n_sessions" not in figures, "what is the same is not told"


def test_a_release_does_not_differ_from_itself(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "registry"))
    one = released(registry, tmp_path, [task("stays", "s1")], [], {"a": 1}, 0.8)
    found = diff(registry, one, one)
    assert not (found["figures"] or found["tools"] or found["parts"] or any(found["tasks"].values()))
    assert found["inputs"]["says"] == "the same logs, code and settings"


def test_a_change_is_named_where_the_older_release_did_not_know_it(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "registry"))
    old = {"subject": "hall/rules of light/2026-03-02", "reason": "rule_changed"}   # as former versions wrote it
    new = {"subject": "hall/rules of light/2026-03-10", "reason": "rule_changed", "detail": "light answers by other rules."}
    before = released(registry, tmp_path, [task("lit", "s1")], [], {"a": 1}, 0.8, drift=(old,))
    after = released(registry, tmp_path, [task("lit", "s1", published=False)], [left("verify", "lit", "rule_changed")],
                     {"a": 1}, 0.8, code="d", drift=(old, new))
    found = diff(registry, before, after)
    assert found["changes"] == [{"reason": "rule_changed", "detail": "light answers by other rules."}]
    assert [row["why"] for row in found["tasks"]["gone"]] == ["rejected now (verify: rule_changed)"]
    assert diff(registry, after, before)["changes"] == diff(registry, after, after)["changes"] == []
