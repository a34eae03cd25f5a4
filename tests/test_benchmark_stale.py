"""What the benchmark of stale tasks says: of its own judge, and of decisions that are known."""

from __future__ import annotations

import json
import pickle
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from relearning_service import DAY_OF_CHANGE, RULES, days
from stale import Judged, figures, lived, reviews, rules_of
from stale_sentences import SENTENCES, sentence_days, sentences_of


def solution(tool: str, **arguments: object) -> str:
    return json.dumps([{"say": "One moment."}, {"tool": tool, "arguments": arguments}])


def test_a_task_is_stale_by_the_rules_that_its_calls_meet_and_only_if_it_begins_before_the_change() -> None:
    happened = list(days([2] * (DAY_OF_CHANGE + 1), RULES))
    before, after = (happened[at].begun[0][1] for at in (0, DAY_OF_CHANGE))
    rules = tuple(RULES)
    block = solution("potter_block", potter_no="P1001")
    assert rules_of(before, block, rules) == ("block_discount", "block_level")
    assert rules_of(before, block, ("lit_fee", "block_level")) == ("block_level",)
    assert rules_of(after, block, rules) == rules_of(before, solution("kiln_quote", shelves=2), rules) == ()
    assert rules_of(before, solution("potter_level", potter_no="P1001", level="basic"), rules) == ("basic_months",)
    assert rules_of(before, solution("piece_fetch", ticket="T1001"), rules) == ("early_text",)
    names = [json.loads(line)["session_id"] for line in reviews(happened[0])]
    assert len(names) == 1 and names[0] in happened[0].lines[0]


def test_a_task_is_stale_by_a_sentence_if_it_does_what_is_forbidden_since_or_declines_what_is_allowed() -> None:
    happened = list(sentence_days([9] * (DAY_OF_CHANGE + 1), SENTENCES))
    names, judged = tuple(SENTENCES), Counter[tuple[str, ...]]()
    for day in happened:
        for _, session in day.begun:
            (tool, arguments), changed = pickle.loads(session)
            solutions = solution(tool, **arguments), solution("potter", potter_no="P1001")
            own = [name for each in solutions for name in sentences_of(session, each, names)]
            judged[tuple(own)] += 1
            assert not (changed and own)
    assert set(judged) == {(), ("whole",), ("limit",), ("value",), ("dropped",)}
    assert "I cannot do that" in "".join(happened[0].lines) and "Do not glaze a piece." in happened[0].lines[0]
    assert "Do not void a piece." in happened[-1].lines[0] and "glaze a piece" not in happened[-1].lines[0].split("user")[0]


def test_figures_count_what_is_published_and_what_is_withheld() -> None:
    empty = Judged({}, {}, [])
    night = Judged({"a": (), "b": ("lit_fee",)}, {"c": ("lit_fee", "void_fee"), "d": ()}, ["light"])
    got = figures({9: empty, 10: night, 11: empty}, RULES)
    assert (got["stale_tasks"], got["stale_unchecked"], got["withdrawn"], got["withdrawn_wrongly"]) == (1, 2, 2, 1)
    assert (got["n_published"], got["changes_named"], got["stale_tasks_11"], got["withdrawn_before"]) == (2, 1, 0, 0)


@pytest.mark.slow
def test_a_night_withholds_what_two_changed_rules_made_wrong_and_nothing_else(tmp_path: Path) -> None:
    rules = ["gold_discount", "lit_fee"]
    nights = lived(list(days([20] * (DAY_OF_CHANGE - 1) + [60], rules)), rules, tmp_path)
    got = figures(nights, rules)
    assert nights[DAY_OF_CHANGE].named == ["piece_light", "potter_level"]
    assert got["stale_unchecked"] > 20 and got["stale_tasks"] == got["withdrawn_wrongly"] == got["withdrawn_before"] == 0
    assert got["n_published"] > 20
