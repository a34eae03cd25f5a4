"""Solutions of failures that are remembered: the same as if they were made, whatever one thing changed in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import polars as pl
import pytest

from env_builder.variants import VariantTables, make
from tests.env_builder.variants.test_variants import tables
from warehouse.records import always

ALL = ["t-b1", "t-b2", "t-b3"]
FAILED = {"b1": ("D35", ["D36"]), "b2": ("D37", []), "b3": ("D38", ["D38"])}


class Memory:
    """Remembers as the cache of a stage does, and notes what was solved."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.solved: list[str] = []

    def __call__(self, arguments: Any, make: Callable[[], Any], holds: Callable[[Any], bool] = always) -> Any:
        key = orjson.dumps(arguments)
        if key not in self.values or not holds(orjson.loads(self.values[key])):
            self.values[key] = orjson.dumps(make())
            self.solved += [arguments[2]] if arguments[0] == "solution" else []
        return orjson.loads(self.values[key])


def replaced(name: str, column: str, which: pl.Expr, old: str, new: str) -> Callable[[VariantTables], VariantTables]:
    """Return a change of one text in one table."""
    def change(given: VariantTables) -> VariantTables:
        text = pl.when(which).then(pl.col(column).str.replace_all(old, new, literal=True)).otherwise(pl.col(column))
        return given._replace(**{name: getattr(given, name).with_columns(text.alias(column))})
    return change


CHANGES = {
    "a fact": (replaced("facts", "value", pl.col("key") == "D35", "keeper35", "keeper39"), ["t-b1"]),
    "a fact that nobody asks": (replaced("facts", "value", pl.col("key") == "D39", "keeper39", "keeper35"), []),
    "an answer": (replaced("recorded", "content", pl.col("recorded_id") == "open D37", "open", "ajar"), ["t-b2"]),
    "what an answer changes": (replaced("recorded", "effects", pl.col("recorded_id") == "open D37", "open", "ajar"), ["t-b2"]),
    "a program": (replaced("behaviours", "program", pl.col("tool") == "look", '{"rule":"recorded"}', ""), ALL),
    "what was said": (replaced("turns", "content", pl.col("session_id") == "b2", "Yes", "No"), ["t-b2"]),
    "what was wanted": (replaced("goals", "slots", pl.col("session_id") == "b1", "D35", "D36"), ["t-b1"]),
    "what good ones do": (replaced("goals", "slots", pl.col("session_id").str.starts_with("g"), "D1", "D2"),
                          ALL),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_remembered_is_what_would_be_made(change: str) -> None:
    given, memory = tables(FAILED), Memory()
    changed, again = CHANGES[change]
    make(given, memoize=memory)
    assert memory.solved == ALL
    for after, solved in ((given, []), (changed(given), again), (given, again)):
        memory.solved.clear()
        one, two = make(after, memoize=memory), make(after)
        assert one.variants.equals(two.variants) and one.decisions.equals(two.decisions)
        assert memory.solved == solved


def test_how_many_bear_it_out_is_counted_each_time() -> None:
    given, memory = tables(FAILED), Memory()
    fewer = given._replace(tasks=given.tasks.filter(pl.col("task_id") != "t-g21"))
    first, memory.solved = make(fewer, memoize=memory), []
    more = make(given, memoize=memory)
    assert not memory.solved and not first.variants.equals(more.variants)
    assert more.variants.equals(make(given).variants)
