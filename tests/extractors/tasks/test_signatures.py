"""Signatures: where arguments came from, what a task changed or found out, and how often it goes well."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.tasks import Tasks, find
from extractors.tasks.answers import reckonings
from extractors.tasks.words import mentions, spellings
from tests.extractors.tasks.test_tasks import chances, frames

EFFECTS = pl.DataFrame({"service": ["shop"] * 4, "tool": ["show", "swap", "add", "weather"],
                        "effect": ["read", "write", "pure", "read"]})
N = 10
WRONG = "s0"
"""The session that went wrong: what it was given counts for nothing."""


def served(i: int) -> tuple[str, list[tuple[Any, ...]]]:
    """Return a lamp is swapped: its shelf said, its number looked up, the price reckoned, the unit always the same."""
    shelf, lamp, price = f"S-{100 + i}", f"lamp{4000 + i}", 30.5 + i
    prices = {lamp: price, "old": 100.25, "older": 27.3}
    lamps = {"shelf": shelf, "lamps": [{"lamp": each, "price": of} for each, of in prices.items()]}
    given_lamp = "nowhere-77" if f"s{i}" == WRONG else lamp
    swap = {"shelf": shelf, "lamp": given_lamp, "unit": "piece", "due": sum(prices.values()),
            "note": f"swapped it for number {i}"}
    return f"s{i}", [
        ("user", f"please swap the lamp on {shelf}"), ("weather", {"at": "here"}, '{"sun": "bright"}'),
        ("show", {"shelf": shelf}, json.dumps(lamps)), ("add", {"of": f"{price} 100.25"}, str(price + 7)),
        ("swap", swap, '{"ok": "yes"}'), ("assistant", f"{given_lamp} is on {shelf} now")]


@pytest.fixture(scope="module")
def found() -> Tasks:
    sessions, turns = frames(*(served(i) for i in range(N)))
    return find(sessions, turns, chances(sessions, **{WRONG: 0.1}), EFFECTS, {})


def sources(entry: dict[str, Any]) -> dict[str, list[tuple[str, str, str]]]:
    return {path: [(each["source"], each.get("tool", ""), each.get("path", "")) for each in told]
            for path, told in entry["arguments"].items()}


def test_a_signature_tells_what_was_changed_and_where_each_argument_came_from(found: Tasks) -> None:
    (family,) = found.families.to_dicts()
    show, swap = json.loads(family["signature"])
    assert (show["tool"], show["effect"], show["n_sessions"]) == ("show", "read", N - 1)
    assert (swap["tool"], swap["effect"], swap["n_sessions"]) == ("swap", "write", N - 1)
    total = "show total of lamps[].price"
    assert sources(swap) == {
        "shelf": [("said", "", "")], "lamp": [("read", "show", "lamps[].lamp")], "unit": [("constant", "", "")],
        "due": [("computed", "", total)], "note": [("written", "", "")]}
    assert swap["arguments"]["unit"] == [{"source": "constant", "value": "piece", "n_sessions": N - 1}]
    of_task = {row["session_ids"][0]: json.loads(row["signature"]) for row in found.tasks.to_dicts()}
    assert sources(of_task["s3"][1]) == sources(swap)
    wrong = sources(of_task[WRONG][-1])
    assert wrong["lamp"] == [("unknown", "", "")], "what stands nowhere is said to be unknown"


def test_what_was_read_from_a_tool_that_only_reckons_is_computed() -> None:
    def paid(i: int) -> tuple[str, list[tuple[Any, ...]]]:
        return f"s{i}", [("user", f"please swap it on shelf S-{100 + i}"), ("add", {"of": f"{i} and 40"}, f"{i + 0.4}"),
                         ("swap", {"due": i + 0.4}, "ok"), ("assistant", "done")]

    sessions, turns = frames(*(paid(i) for i in range(4)))
    (family,) = find(sessions, turns, chances(sessions), EFFECTS, {}).families.to_dicts()
    (swap,) = [entry for entry in json.loads(family["signature"]) if entry["tool"] == "swap"]
    assert sources(swap) == {"due": [("computed", "add", "")]}


def test_what_may_act_is_told_as_that_and_a_look_without_use_is_not_told() -> None:
    unknown = EFFECTS.with_columns(pl.col("effect").replace("write", "unknown"))
    sessions, turns = frames(*(served(i) for i in range(N)))
    (family,) = find(sessions, turns, chances(sessions), unknown, {}).families.to_dicts()
    effects = {entry["tool"]: entry["effect"] for entry in json.loads(family["signature"])}
    assert effects == {"show": "read", "swap": "unknown"}


def test_a_family_has_a_rate_and_its_tasks_are_told_by_it(found: Tasks) -> None:
    (family,) = found.families.to_dicts()
    assert (family["n_sessions"], family["n_tasks"], family["n_succeeded"]) == (N, N, N - 1)
    assert json.loads(family["asks"]) == ["swap"] and family["goal"].startswith("please swap the lamp")
    assert family["rate_low"] < 0.82 < family["rate_high"] and family["difficulty_band"] == "mostly"
    assert family["first_at"] < family["last_at"]
    rate = {row["session_ids"][0]: (row["rate_low"], row["rate"], row["rate_high"]) for row in found.tasks.to_dicts()}
    assert rate[WRONG][1] < family["rate"] < rate["s3"][1]
    assert all(low < own < high for low, own, high in rate.values())
    assert rate["s3"][2] - rate["s3"][0] > family["rate_high"] - family["rate_low"], "one session says less than ten"


@pytest.mark.parametrize(("said", "value", "held"), [
    ("it is #w123.", "#W123", True), ("it is w123", "#W123", True), ("it is w1234", "#W123", False), ("like it", "Li", False),
    ("on may 5th, or", "2024-05-05", True), ("the 5th of may", "2024-05-05", True), ("may 15", "2024-05-05", False),
    ("pay 1,250 then", "1250", True), ("10 of 100", "0", False)])
def test_a_value_is_mentioned_as_words_of_its_own_in_any_of_its_forms(said: str, value: str, held: bool) -> None:
    assert any(mentions(said, form) for form in spellings(value)) is held


PRICES = st.lists(st.integers(1, 10**5).map(lambda cents: cents / 100), min_size=2, max_size=6, unique=True)


@given(PRICES, st.integers(1, 10**6))
def test_a_number_comes_out_of_others_exactly_where_it_does(prices: list[float], cents: int) -> None:
    read = [("show", [(".price", str(price)) for price in prices])]
    assert any("+" in way or "total" in way for way in reckonings(str(round(prices[0] + prices[1], 2)), read)) or (
        (prices[0] + prices[1]).is_integer())
    values = {*prices, round(sum(prices), 6)}
    out_of = {round(a + b, 6) for a in values for b in values} | {round(a - b, 6) for a in values for b in values} | {
        round(a * b, 6) for a in values for b in values if a > 1} | {round(sum(prices), 6)}
    assert cents / 100 in out_of or not list(reckonings(str(cents / 100), read))
