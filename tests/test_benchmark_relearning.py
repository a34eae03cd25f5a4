"""What the benchmark of rules that change says: of its service, and of scores that are known."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from relearning import LATE, Score, figures_of, placed
from relearning_service import DAY_OF_CHANGE, RULES, Day, days, probes_of, seen


@pytest.fixture(scope="module")
def happened() -> list[Day]:
    """Twelve days of which the rules change on the tenth."""
    return list(days([12] * 12, RULES))


def test_the_same_days_are_made_each_time_and_differ_only_from_the_day_of_change_on(happened: list[Day]) -> None:
    again, unchanged = list(days([12] * 12, RULES)), list(days([12] * 12, []))
    assert [day.lines for day in happened] == [day.lines for day in again]
    apart = [day.number for day, other in zip(happened, unchanged, strict=True) if day.lines != other.lines]
    assert apart and min(apart) == DAY_OF_CHANGE


def test_late_lines_arrive_the_day_after_and_belong_to_sessions_of_the_day_before(happened: list[Day]) -> None:
    assert [day.number for day in happened if day.late] == [DAY_OF_CHANGE + 1]
    late = {json.loads(line)["metadata"]["session_id"] for line in happened[DAY_OF_CHANGE].late}
    assert late <= {json.loads(line)["metadata"]["session_id"] for line in happened[DAY_OF_CHANGE - 1].lines}


@pytest.mark.parametrize("rule", sorted(RULES))
def test_each_rule_alone_decides_the_last_answer_of_its_probes(happened: list[Day], rule: str) -> None:
    engine = happened[-1].engine
    probes = list(probes_of(engine, [rule]))
    assert len(probes) > 2
    before = json.dumps(engine.pieces) + json.dumps(engine.potters)
    others = list(days([12] * 12, set(RULES) - {rule}))[-1].engine
    for probe in probes:
        last = probe.steps[-1]
        others.pieces, others.potters = json.loads(json.dumps(engine.pieces)), json.loads(json.dumps(engine.potters))
        for step in probe.steps[:-1]:
            others.call(step.tool, step.arguments)
        assert seen(others.call(last.tool, last.arguments).answer, probe.field) != seen(last.answer, probe.field)
    assert json.dumps(engine.pieces) + json.dumps(engine.potters) == before, "a probe leaves the service as it was"


def test_a_score_follows_rules_without_wrong_answers_and_passes_only_beside_its_full_fit() -> None:
    full = Score({"one": ["right", "right"], "two": ["right", "unknown"], "three": ["unknown", "unknown"], LATE: ["right"]})
    assert (full.followed, full.unknown, full.wrong) == ({"one", "two"}, {"three"}, set())
    assert full.passes(full)
    wrong = Score(full.outcomes | {"three": ["right", "wrong"]})
    late = Score(full.outcomes | {LATE: ["unknown"]})
    forgets = Score(full.outcomes | {"two": ["unknown", "unknown"]})
    assert not any(each.passes(full) for each in (wrong, late, forgets))
    found = figures_of({9: full, 10: full, 11: full}, {10: full, 11: full}, {"a": (wrong, 10), "b": (full, 11)})
    assert (found["planted_relearnt"], found["planted_wrong_more"], found["a_wrong_more"]) == (2, 0, 1)
    assert found["cheat_a"] and not found["cheat_b"] and found["passes"]
    worse = figures_of({9: full, 10: wrong, 11: full}, {10: full, 11: full}, {"a": (wrong, 10)})
    assert worse["planted_wrong_more"] == 1 and not worse["passes"] and not worse["cheat_a"]


def test_a_session_is_sampled_whole(happened: list[Day]) -> None:
    places = {json.loads(line)["metadata"]["session_id"]: placed(line) for line in happened[0].lines}
    assert all(placed(line) == places[json.loads(line)["metadata"]["session_id"]] for line in happened[0].lines)
    assert len(set(places.values())) == len(places) and all(0 <= place < 1 for place in places.values())
