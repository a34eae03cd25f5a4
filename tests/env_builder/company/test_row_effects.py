"""Effects of writes, learnt from a change stream: what follows a document of lines, and what is chance."""

from __future__ import annotations

from typing import Any

from env_builder.company.row_changes import RowAct, StreamChange
from env_builder.company.row_effects import learn_effects
from env_builder.runtime.company import CompanyDesk, CompanyWorld, DeskStart, FieldVersion, PersonSight
from env_builder.runtime.office.row_tables import row_of, value_of
from env_builder.runtime.office.row_writes import RowRules, write_row

TABLES: dict[str, dict[str, Any]] = {
    "paper": {"types": {"no": "text", "state": "text", "hand": "text"}, "key": ["no"]},
    "line": {"types": {"id": "text", "paper": "text", "item": "text", "n": "integer"}, "key": ["id"]},
    "item": {"types": {"code": "text", "stock": "integer"}, "key": ["code"]},
    "shelf": {"types": {"code": "text", "label": "text"}, "key": ["code"]}}
PAPERS = 14


def begin() -> list[StreamChange]:
    rows = [StreamChange(0, "item", code, {"code": code, "stock": 50}, True) for code in "ab"]
    rows.append(StreamChange(0, "shelf", "s", {"code": "s", "label": "x"}, True))
    for number in range(PAPERS):
        rows.append(StreamChange(0, "paper", f"P{number}", {"no": f"P{number}", "state": "draft", "hand": "u"}, True))
        rows += [StreamChange(0, "line", f"L{number}{code}", {
            "id": f"L{number}{code}", "paper": f"P{number}", "item": code, "n": number % 3 + 1}, True) for code in "ab"]
    return rows


def acts() -> list[RowAct]:
    stock, made = {"a": 50, "b": 50}, []
    for number in range(PAPERS - 2):
        at = (number + 1) * 1_000_000
        state = "void" if number % 4 == 3 else "posted"
        changes = [StreamChange(at, "paper", f"P{number}", {"state": state}, True)]
        for code in "ab" if state == "posted" else "":
            stock[code] -= number % 3 + 1
            changes.append(StreamChange(at, "item", code, {"stock": stock[code]}, True))
        if number == 5:   # somebody else's act
            changes.append(StreamChange(at, "shelf", "s", {"label": "y"}, True))
        made.append(RowAct(changes))
    return made


def desk() -> CompanyDesk:
    versions = [FieldVersion("db", f"{change.table}/{change.key}", column, value, 0)
                for change in begin() for column, value in change.values.items()]
    versions.append(FieldVersion("person", "a@x.example", "name", "A", 0))
    state = CompanyWorld(versions).at(1)
    return CompanyDesk(DeskStart(state, "a@x.example", {}, PersonSight(state, "a@x.example")))


RULES = RowRules(TABLES, learn_effects(begin(), acts(), TABLES))


def test_rows_two_steps_away_are_undecided_where_the_cause_is_the_one_on_record() -> None:
    own = desk()
    write_row(own, RULES, "paper", "P13", {"state": "posted"}, {})
    assert row_of(own, TABLES, "item", "a") == {"code": "a"}
    assert row_of(own, TABLES, "paper", "P13") == {"no": "P13", "state": "posted", "hand": "u"}


def test_nothing_follows_a_cause_that_nothing_followed() -> None:
    own = desk()
    write_row(own, RULES, "paper", "P13", {"state": "void"}, {})
    write_row(own, RULES, "paper", "P12", {"hand": "v"}, {})
    assert value_of(own, "item", "a", "stock") == 50
    assert row_of(own, TABLES, "item", "b") == {"code": "b", "stock": 50}


def test_what_happened_once_beside_many_acts_is_chance() -> None:
    own = desk()
    write_row(own, RULES, "paper", "P13", {"state": "posted"}, {})
    assert row_of(own, TABLES, "shelf", "s") == {"code": "s", "label": "x"}
