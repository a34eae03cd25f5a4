"""Rows that a statement surely changed, and statements of which nothing is certain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.pgaudit import changes

CERTAIN: list[tuple[str, list[str | None], list[tuple[Any, Any]]]] = [
    ("INSERT INTO refunds (id, n) VALUES ($1, $2)", ["re", "5"], [(None, {"id": "re", "n": "5"})]),
    ('insert into "S"."T" ("Id", b) values (1, \'it\'\'s\'), (-2.5, null) returning id;', [],
     [(None, {"Id": 1, "b": "it's"}), (None, {"Id": -2.5, "b": None})]),
    ("INSERT INTO t (a, b) VALUES ($1::uuid, '2026-01-01'::timestamp with time zone)", ["u"],
     [(None, {"a": "u", "b": "2026-01-01"})]),
    ("INSERT INTO t (a, b, c) VALUES (now(), coalesce($1, (select 1 from x)), true)", ["u"], [(None, {"c": True})]),
    ("UPDATE ONLY public.t AS x SET a = $1, n = n - 1, b=DEFAULT WHERE x.id = $2 AND k = 'v'", ["new", "7"],
     [({"id": "7", "k": "v"}, {"id": "7", "k": "v", "a": "new"})]),
    ("UPDATE t SET id = id + 1 WHERE id = 4", [], [({"id": 4}, {})]),
    ("UPDATE t SET a = CAST('x' AS varchar(10)), b = -2, c = E'x' WHERE (id = 5) AND k = true", [],
     [({"id": 5, "k": True}, {"id": 5, "k": True, "a": "x", "b": -2})]),
    ("DELETE FROM t x WHERE id = $1 -- gone", ["7"], [({"id": "7"}, None)]),
]
UNCERTAIN = [
    "INSERT INTO t VALUES (1)", "INSERT INTO t (a) SELECT 1", "INSERT INTO t (a) VALUES (1) ON CONFLICT DO NOTHING",
    "UPDATE t SET a = 1", "UPDATE t SET a = 1 WHERE b > 2", "UPDATE t SET a = 1 WHERE b = 2 OR c = 3",
    "UPDATE t SET a = u.b FROM u WHERE id = 1", "UPDATE t SET a = 1 WHERE a IN (1, 2)", "UPDATE t SET a = 1 WHERE b = $1",
    "UPDATE t SET (a, b) = (1, 2) WHERE id = 1", "DELETE FROM t", "DELETE FROM t USING u WHERE a = 1",
    "DELETE FROM t WHERE a = b",
    "DELETE FROM t WHERE a = NULL", "WITH x AS (DELETE FROM t) SELECT 1", "TRUNCATE t", "", "<not logged>",
    "UPDATE t SET a = (1",
    "DELETE FROM t WHERE a = 1; DELETE FROM u WHERE a = 1"]


@pytest.mark.parametrize("statement, parameters, images", CERTAIN, ids=lambda each: str(each)[:40])
def test_certain(statement: str, parameters: list[str | None], images: list[tuple[Any, Any]]) -> None:
    row_changes = changes(statement, parameters)
    assert row_changes is not None and [(each.before, each.after) for each in row_changes] == images


@pytest.mark.parametrize("statement", UNCERTAIN)
def test_uncertain(statement: str) -> None:
    assert changes(statement, []) is None


def test_what_is_not_known_is_named() -> None:
    [change] = changes("INSERT INTO t (a, b, c) VALUES ($1, now(), $3)", [None, "x"]) or []
    assert change.after == {} and change.lossy == ["unknown a", "unknown b", "unknown c"]


@given(st.text(alphabet="UPDATE tsetwhr=$1'\"(),;.-+:*/ \n", max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    for start in ("UPDATE t SET ", "INSERT INTO t (", "DELETE FROM ", ""):
        row_changes = changes(start + text, ["x"])
        assert row_changes is None or all(each.before is not None or each.after is not None for each in row_changes)


@given(st.dictionaries(st.from_regex(r"[a-z]{3}_[a-z]{2}", fullmatch=True), st.text(max_size=8), min_size=1, max_size=4))
def test_any_row_comes_back(row: dict[str, str]) -> None:
    columns, places = ", ".join(row), ", ".join(f"${number + 1}" for number in range(len(row)))
    spelled = ", ".join("'" + value.replace("'", "''") + "'" for value in row.values())
    for values, parameters in ((places, list(row.values())), (spelled, [])):
        row_changes = changes(f"INSERT INTO t ({columns}) VALUES ({values})", parameters)
        assert row_changes is not None and [each.after for each in row_changes] == [row]
