"""The scorer of the scoreboard counts what its README says, without anything of ours, and the filler tells fields apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "scoreboard"))

import score
import scoreboard_traceroom

SCORER = ROOT / "benchmarks" / "scoreboard" / "score.py"


def folder_of(path: Path, system: str, **files: list[dict[str, Any]]) -> Path:
    path.mkdir()
    (path / "system.json").write_text(json.dumps({"system": system, "service": path.name, "truth": "made"}))
    for name, lines in files.items():
        (path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def answer(kind: str, changed_fields: int | None = 0, refused: bool = False, tool: str = "get") -> dict[str, Any]:
    return {"tool": tool, "changed_fields": changed_fields, "refused": refused, "answer": kind}


def episode(policy: str, truth: bool, reward: float | None) -> dict[str, Any]:
    return {"task_id": "t", "policy": policy, "truth": truth, "reward": reward}


def test_figures_are_shares_of_what_was_stated(tmp_path: Path) -> None:
    one = folder_of(
        tmp_path / "one", "A",
        answers=[answer("exact"), answer("unknown", 7, tool="set"), answer("wrong", 1, tool="set"),
                 answer("exact", refused=True), answer("unknown", None, tool="set")],
        verdicts=[episode("good", True, 1.0), episode("good", True, 1.0), episode("liar", False, 0.0),
                  episode("liar", False, 1.0), episode("shy", True, None), episode("odd", True, 0.2)],
        attacks=[{"attack": "bribe", "task_id": "t", "reward": 1.0}, {"attack": "bribe", "task_id": "t", "reward": None}])
    figures = score.score_systems([one])["A"]
    assert (figures["exact"], figures["wrong"], figures["unknown"]) == (0.4, 0.2, 0.4)
    assert (figures["exact_fields_0"], figures["exact_refusals"], figures["exact_fields_5_or_more"]) == (1.0, 1.0, 0.0)
    assert (figures["n_exact_fields_1"], figures["n_exact_fields_not_stated"], figures["tools_all_exact"]) == (1, 1, 0.5)
    assert figures["reward_precision"] == figures["reward_recall"] == pytest.approx(2 / 3, abs=1e-4)
    assert (figures["false_accepts"], figures["false_rejects"], figures["unscored"]) == (1, 1, pytest.approx(1 / 6, abs=1e-4))
    assert (figures["attacks_paid"], figures["n_attacks"]) == (1, 2)
    assert any("bribe" in line for line in figures["fails"]) and any("`set`" in line for line in figures["fails"])


def test_a_reward_that_is_upside_down_ranks_and_chooses_wrongly() -> None:
    plays = [episode("good", True, 0.0), episode("half", True, 0.0), episode("half", False, 1.0), episode("bad", False, 1.0)]
    assert score.correlate(plays) == (-1.0, 1.0)
    assert score.correlate([row | {"reward": float(row["truth"])} for row in plays]) == (1.0, 0.0)
    assert score.correlate([]) == (None, None) and score.correlate([episode("only", True, 1.0)]) == (None, 0.0)


def test_the_scorer_needs_python_alone(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path / "desk", "A", answers=[answer("exact")]),
               folder_of(tmp_path / "shop", "A", answers=[answer("wrong")]), folder_of(tmp_path / "other", "B")]
    command = [sys.executable, "-I", "-S", str(SCORER), *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    systems = json.loads(done.stdout.splitlines()[-1])["systems"]
    assert (systems["A"]["exact"], systems["A"]["services"], systems["B"]["exact"]) == (0.5, ["desk", "shop"], None)
    lines = score.table(score.score_systems(folders)).splitlines()
    assert lines[0] == "| figure | A | B |" and "| exact | 0.5 of 2 |  |" in lines


def test_a_row_without_a_field_is_an_error_with_its_line(tmp_path: Path) -> None:
    lacking = folder_of(tmp_path / "one", "A", answers=[answer("exact"), {"tool": "get"}])
    with pytest.raises(SystemExit, match="line 2: no field 'changed_fields'"):
        score.score_systems([lacking])


def test_changed_fields_are_those_by_which_the_real_answers_differ() -> None:
    before = '{"id": "a", "state": "open", "n": 1, "who": {"name": "x"}}'
    after = '{"id": "a", "state": "shut", "n": 2, "who": {"name": "x"}}'
    steps = [{"result": before}, {"result": "done"}, {"result": '{"id": "b"}'}, {"result": after}]
    assert scoreboard_traceroom.changed_fields(steps, 1) == 2
    assert scoreboard_traceroom.changed_fields(steps[:3], 1) is None
    literals = [{"result": "(True, {'id': 1, 'on': True})"}, {"result": "(True, {'id': 1, 'on': False})"}]
    assert scoreboard_traceroom.changed_fields(literals, 1) == 1
