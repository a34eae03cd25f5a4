"""Coverage says what a room can answer around its tasks, and names what would have to be logged."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from env_builder.coverage import coverage
from env_builder.rooms import Rows
from env_builder.runtime.programs import FEWEST_TRANSITIONS
from pipelines.running.cache import memoized
from warehouse.store import Store

SUPPORT = {"for": 3, "against": 0, "held_out_exact": None, "held_out_abstains": None,
           "cassette_exact": None, "cassette_abstains": None}
SHOW: dict[str, Any] = {
    "tool": "show", "effect": "read", "class": "box", "relation": {},
    "rules": [{"rule": "recorded"}, {"rule": "document", "class": "box", "argument": "box", "before": "", "after": ""}]}
MOVE = SHOW | {"tool": "move", "effect": "write", "rules": [{"rule": "recorded"}]}
NEVER = MOVE | {"tool": "burn"}
CALLED = {"show": SUPPORT, "move": SUPPORT, "burn": SUPPORT | {"for": 0}}


def _fact(key: str, value: str, since: str | None, until: str | None) -> dict[str, Any]:
    return {"class": "box", "key": key, "value": value, "from": since, "to": until, "session": None, "derivation": "seen",
            "event": f"{key}{since}"}


def _turns(*calls: tuple[str, str, dict[str, Any], str]) -> pl.DataFrame:
    return pl.DataFrame(
        [(session, "call", tool, json.dumps(arguments), content) for session, tool, arguments, content in calls],
        schema=["session_id", "kind", "tool", "arguments", "content"], orient="row")


def _tasks(starts_at: str) -> pl.DataFrame:
    return pl.DataFrame({"task_id": ["t"], "session_ids": [["s1"]], "starts_at": [starts_at]}).with_columns(
        pl.col("starts_at").str.to_datetime(time_zone="UTC"))


def test_calls_around_a_task_are_counted_and_advice_names_what_lacks() -> None:
    facts = [_fact("b-01", '{"box": "b-01", "at": "x"}', None, None),
             _fact("b-02", '{"box": "b-02", "at": "x"}', None, "2024-01-02T"),
             _fact("b-02", '{"box": "b-02", "at": "y"}', "2024-01-05T", None)]
    turns = _turns(
        ("s1", "show", {"box": "b-01"}, '{"box": "b-01", "near": ["b-02", "b-03"], "street": "17a"}'),
        ("s2", "move", {"box": "b-01", "to": "z"}, "moved"), ("s2", "move", {"box": "b-09", "to": "17a"}, "moved"))
    told = coverage(Rows(facts, [], [NEVER, MOVE, SHOW], CALLED), _tasks("2024-01-03T00:00:00Z"), turns)
    assert told["by_tool"] == {"move": {"unknown": 1}, "show": {"unknown": 2}}
    assert told["answered"] == 0 and told["never_called"] == ["burn"]
    assert [(each["kind"], each["of"], each["field"]) for each in told["advice"]] == [
        ("never_seen", "box", None), ("program", "move", None), ("stale", "box", "at")]
    later = coverage(Rows(facts, [], [NEVER, MOVE, SHOW], CALLED), _tasks("2024-01-06T00:00:00Z"), turns)
    assert later["by_tool"]["show"] == {"derived": 1, "unknown": 1} and later["answered"] == 0.3333


def test_what_a_session_asked_is_read_once(tmp_path: Path) -> None:
    facts = [_fact(key, json.dumps({"box": key}), None, None) for key in ("b-01", "b-02")]
    turns = _turns(("s1", "show", {"box": "b-01"}, '{"near": ["b-02", "half-1 \\ud83d"]}'),
                   ("s2", "show", {"box": "b-02"}, "{}"))
    room, tasks = Rows(facts, [], [SHOW], CALLED), _tasks("2024-01-03T00:00:00Z")
    with Store.open(tmp_path / "warehouse.duckdb") as store:
        for n_made in (2, 0):
            made: list[object] = []

            def counted(make: Callable[[], Any], made: list[object] = made) -> Any:
                made.append(make)
                return make()

            with memoized(store, "coverage", "code") as memoize:
                covered = coverage(room, tasks, turns, None, lambda key, make: memoize(key, partial(counted, make)))
            assert covered == coverage(room, tasks, turns) and len(made) == n_made


def test_coverage_stands_in_the_manifest_and_support_of_each_program(sample_environment: Path) -> None:
    told = json.loads((sample_environment / "manifest.json").read_text("utf-8"))["coverage"]
    n_unknown = sum(tiers.get("unknown", 0) for tiers in told["by_tool"].values())
    assert told["n_calls"] == sum(sum(tiers.values()) for tiers in told["by_tool"].values()) > 20
    assert told["answered"] == round(1 - n_unknown / told["n_calls"], 4)
    assert sum(each["n"] for each in told["advice"]) <= n_unknown
    support = json.loads((sample_environment / "manifest.json").read_text("utf-8"))["support"]
    programs = [json.loads(line) for line in (sample_environment / "behaviour.jsonl").read_text("utf-8").splitlines()]
    assert sorted(support) == [program["tool"] for program in programs]
    assert all(set(says) == set(SUPPORT) for says in support.values())
    assert max(says["for"] for says in support.values()) > 20
    assert not any("support" in program for program in programs), "counts move with every call, programs do not"
    enough = {tool for tool, says in support.items() if says["for"] >= FEWEST_TRANSITIONS}
    assert {program["tool"] for program in programs if program.get("borne_out")} == enough
