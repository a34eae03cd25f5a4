"""The table of conditions: what logs bear out, what the instructions alone state, and what comes before an act."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from extractors.outcomes.condition_rows import condition_rows
from extractors.outcomes.evidence import Evidence, gather
from extractors.tasks import goals_of
from pipelines.building.tasks import with_stances
from tests.extractors.outcomes.test_outcomes import feedback, frames, session

POLICY = ("Before anything, look up who asks and verify the name. Sealed walls must not be painted. "
          "Basic members may get at most 3 lamps.")
EFFECTS = pl.DataFrame([("shop", "look", "read"), ("shop", "paint", "write"), ("shop", "lamp", "write")],
                       schema=["service", "tool", "effect"], orient="row")
NO = ("assistant", "I'm sorry, I can't do that.")
Made = tuple[dict[str, Any], list[dict[str, Any]]]


def talk(name: str, request: str, answer: str, *then: Any) -> Made:
    head, turns = session(name, ("user", POLICY), ("user", request), ("assistant", "Your name, please?"), ("user", "Kim"),
                          ("look", {}, answer), *then)
    turns[0]["role"] = "system"
    return head, turns


def paint(n: int, state: str, acts: bool, tier: str = "gold", lamps: int = 1) -> Made:
    act = ("paint", {"wall": f"hut{n:02}x"}, "done")
    answer = f'{{"state": "{state}", "tier": "{tier}", "lamps": {lamps}}}'
    return talk(f"p{n:02}", f"please paint wall hut{n:02}x blue", answer, act if acts else NO)


def lamp(n: int, lamps: int, acts: bool) -> Made:
    act = ("lamp", {"room": f"hut{n:02}x"}, "done")
    return talk(f"q{n:02}", f"one lamp for room hut{n:02}x", f'{{"tier": "gold", "lamps": {lamps}}}', act if acts else NO)


def evidence(*sessions: Made) -> Evidence:
    heads, turns = frames(*sessions)
    return gather(heads, with_stances(turns), feedback(), EFFECTS, {"shop": "shared"}, goals_of(heads, turns, EFFECTS))


def desk() -> Evidence:
    """Twelve walls painted, eight sealed ones declined; eight lamps given, two declined to those who have three."""
    walls = [paint(n, "open" if n < 12 else "sealed", n < 12) for n in range(20)]
    return evidence(*walls, *(lamp(n, n % 3, n < 8) for n in range(8)), lamp(8, 3, False), lamp(9, 4, False))


def of(rows: pl.DataFrame, status: str) -> list[dict[str, Any]]:
    return rows.filter(pl.col("status") == status).to_dicts()


def test_a_condition_borne_out_names_its_sentence_and_its_sessions() -> None:
    (row,) = of(condition_rows(desk()), "borne_out")
    assert (row["tool"], row["sentence"]) == ("paint", "Sealed walls must not be painted.")
    assert row["declined_session_ids"] == [f"p{n}" for n in range(12, 20)] and row["acted_session_ids"] == []
    assert "sealed" in row["condition"] or "open" in row["condition"]


def test_a_sentence_that_few_cases_bear_out_is_stated_alone() -> None:
    (row,) = of(condition_rows(desk()), "stated")
    assert (row["tool"], row["field"]) == ("lamp", "look.lamps")
    assert row["condition"] in ("look.lamps is at least 3", "look.lamps is above 3")
    assert set(row["declined_session_ids"]) <= {"q08", "q09"} and row["acted_session_ids"] == []
    assert row["sentence"] == "Basic members may get at most 3 lamps."


def test_a_condition_without_a_sentence_is_borne_out_all_the_same() -> None:
    silent = [paint(n, "open", n < 12, "gold" if n < 12 else "loan") for n in range(20)]
    (row,) = of(condition_rows(evidence(*silent)), "borne_out")
    assert row["sentence"] == "" and "look.tier" in row["condition"]


def test_a_fact_that_holds_or_not_reads_as_words() -> None:
    given = [paint(n, "open", n < 12) for n in range(20)]
    for n, (_, turns) in enumerate(given):
        turns[4]["content"] = json.dumps({"frozen": None if n < 12 else f"{n} March"})
    (row,) = of(condition_rows(evidence(*given)), "borne_out")
    assert row["condition"] == "not: look.frozen is missing"


def test_steps_before_an_act_have_the_sentence_that_asks_for_them() -> None:
    rows = {(row["tool"], row["field"]): row["sentence"] for row in of(condition_rows(desk()), "step")}
    assert rows[("paint", "look")] == rows[("lamp", "")] == "Before anything, look up who asks and verify the name."
    without = evidence(*(session(f"s{n}", ("user", f"paint hut{n:02}x"), ("look", {}, "grey"), ("paint", {"wall": n}, "done"))
                         for n in range(8)))
    assert not of(condition_rows(without), "step"), "no sentence asks for it"


def test_the_order_of_sessions_changes_nothing() -> None:
    walls = [paint(n, "open" if n < 12 else "sealed", n < 12) for n in range(20)]
    assert condition_rows(evidence(*walls)).equals(condition_rows(evidence(*reversed(walls))))
