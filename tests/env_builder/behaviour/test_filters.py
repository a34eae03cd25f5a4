"""Searches answered from other searches: never wrong under any conventions, silent where elements may be missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from env_builder.behaviour.filters import filter_rule, removes
from env_builder.runtime.filters import filtered
from tests.env_builder.world.calls import call

PEOPLE = ("ana.silva@x.org", "bo.berg@x.org", "cy.dunn@y.org", "di.silva@y.org")
TITLES = ("red boat", "blue kite", "Red sail", "old rope", "boat hook", "kite string", "rope ladder", "Blue paint")
Row = dict[str, Any]
Pool = list[tuple[Row, str]]
ROWS: list[Row] = [
    {"id": f"N-{n:03}", "title": f"{TITLES[n % 8]} {TITLES[n * 5 % 7]}", "by": PEOPLE[n % 4],
     "at": f"2031-03-{1 + n * 7 % 27:02} {8 + n % 9:02}:{n % 60:02}:00", "size": n * 13 % 40} for n in range(60)]


class Convention(NamedTuple):
    """How a service searches: which rows match, in which order, how many, and what it says of none."""

    matches: Callable[[Row, Row], bool]
    key: Callable[[Row], Any]
    most: int | None
    empty: str
    hidden: int = 0
    """Every so many rows are not found for a reason that no row shows; 0: none."""

    def answer(self, given: Row) -> str:
        rows = sorted((row for n, row in enumerate(ROWS) if self.matches(row, given) and row["id"] != given.get("without")
                       and not (self.hidden and n % self.hidden == 1)), key=self.key)[:self.most]
        return json.dumps(rows) if rows else self.empty


def _within(row: Row, given: Row) -> bool:
    return bool(given.get("since", "") <= row["at"][:10] <= given.get("until", "9"))


CONVENTIONS = {
    "part": Convention(lambda row, given: _within(row, given) and given.get("text", "").lower() in row["title"].lower(),
                       lambda row: row["at"], None, "[]"),
    "cut": Convention(lambda row, given: _within(row, given) and any(
        given.get("text", "").lower() in row[name].lower() for name in ("title", "by")), lambda row: row["at"], 5, "nothing"),
    "latest": Convention(lambda row, given: _within(row, given) and all(
        word in f"{row['title']} {row['by']}".lower() for word in given.get("text", "").lower().split()),
        lambda row: [-ord(character) for character in row["at"]], 4, "none found"),
    "midnight": Convention(lambda row, given: row["by"] == given.get("text", row["by"]) and given.get("since", "") <= row["at"]
                           <= given.get("until", "9") + " 00:00:00", lambda row: row["id"], None, "[]"),
    "sizes": Convention(lambda row, given: _within(row, given) and given.get("text", "") in row["by"],
                        lambda row: (row["size"], row["id"]), 6, "[]"),
}


def searches(seed: int, n: int) -> list[Row]:
    """Return random searches, some of which narrow others."""
    random = Random(seed)
    texts = ["boat", "kite", "red", "Rope", "silva", "BLUE", "ana", "x.org", "bo.berg", "zebra", "red sail", *PEOPLE * 2]
    found: list[Row] = []
    for _ in range(n):
        low, high = sorted(random.sample(range(1, 28), 2))
        given = {"text": random.choice(texts), "since": f"2031-03-{low:02}", "until": f"2031-03-{high:02}"}
        found.append({name: value for name, value in given.items() if random.random() < 0.6} or given)
    return found


def pool(convention: Convention, asked: list[Row]) -> Pool:
    return list({json.dumps(given): (given, convention.answer(given)) for given in asked}.values())


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
@pytest.mark.parametrize("name", CONVENTIONS)
def test_answers_other_searches_and_never_wrongly(name: str, seed: int) -> None:
    convention = CONVENTIONS[name]
    seen = pool(convention, searches(seed, 150))
    rule = filter_rule([seen])
    assert rule is not None
    rule = json.loads(json.dumps(rule))
    asked = [given for given in searches(seed + 100, 100) if (given, convention.answer(given)) not in seen]
    given_and_real = [(filtered(rule, given, seen), convention.answer(given), given) for given in asked]
    assert [one for one in given_and_real if one[0] not in (None, one[1])] == []
    assert sum(ours is not None for ours, _, _ in given_and_real) >= len(asked) // 4


@pytest.mark.parametrize("name", CONVENTIONS)
def test_is_silent_where_rows_are_hidden_for_a_reason_that_no_row_shows(name: str) -> None:
    whole, partial = CONVENTIONS[name], CONVENTIONS[name]._replace(hidden=3)
    seen = [(given, partial.answer(given) if n % 2 else text) for n, (given, text) in enumerate(pool(whole, searches(1, 150)))]
    assert filter_rule([seen]) is None


def test_is_silent_on_searches_that_no_other_contains() -> None:
    convention = CONVENTIONS["part"]
    seen = [one for one in pool(convention, searches(2, 150)) if "text" in one[0]]
    rule = filter_rule([seen])
    assert rule is not None
    assert filtered(rule, {"text": "paint"}, seen) is None
    assert filtered(rule, {"text": "boat"}, [one for one in seen if one[0]["text"] not in ("boat", "red")]) is None


def test_is_silent_on_characters_that_no_search_had() -> None:
    convention = CONVENTIONS["part"]
    seen = pool(convention, [*searches(3, 150), {"text": "boat"}])
    rule = filter_rule([seen])
    assert rule is not None
    assert filtered(rule, {"text": "boat hook"}, seen) == convention.answer({"text": "boat hook"})
    assert filtered(rule, {"text": "boat|kite"}, seen) is None


@pytest.mark.parametrize("name", ["cut", "latest", "part"])
@pytest.mark.parametrize("drops", [True, False])
def test_leaves_out_what_write_calls_were_seen_to_remove(name: str, drops: bool) -> None:
    convention = CONVENTIONS[name]
    seen = pool(convention, searches(5, 200))
    rule = filter_rule([seen])
    assert rule is not None
    after = []
    for n, (given, _) in enumerate(pool(convention, searches(6, 60))):
        rows = [row for row in ROWS if convention.matches(row, given)]
        row = rows[0] if rows else ROWS[n]
        content = convention.answer({**given, "without": row["id"]}) if drops else convention.answer(given)
        write = call("drop", {"which": row["id"]}, "ok", f"s{n}")
        after.append((call("search", given, content, f"s{n}", 1), (write,)))
    rule["removes"] = removes(rule, seen, after)
    assert rule["removes"] == ({"drop": ["which", "id"]} if drops else {})
    answered = [(filtered(rule, given, seen, [("id", "N-007")]), convention.answer({**given, "without": "N-007"}))
                for given in searches(7, 60)]
    assert all(ours in (None, real) for ours, real in answered)
    assert sum(ours is not None for ours, _ in answered) >= len(answered) // 4
