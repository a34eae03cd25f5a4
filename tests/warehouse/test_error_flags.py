"""Error flags that a service never raises say nothing."""

from __future__ import annotations

import polars as pl

from env_builder.world.calls import calls_of as logged_calls_of
from extractors.tasks.arguments import calls_of
from warehouse.records import drop_silent_flags

FAILED = '{"status": "error", "error": {"code": "not_found"}}'


def turns(flags: dict[str, list[bool | None]]) -> pl.DataFrame:
    """Return calls that all answered with an error in words, by service."""
    return pl.DataFrame(
        [{"session_id": service, "service": service, "position": n, "turn_id": f"{service}{n}", "kind": "call", "tool": "find",
          "arguments": "{}", "content": FAILED, "is_error": flag, "happened_at": None, "result_id": None, "requestor": None}
         for service, mine in flags.items() for n, flag in enumerate(mine)],
        schema_overrides={"is_error": pl.Boolean})


def test_a_flag_that_a_service_never_raises_is_cleared() -> None:
    cleared = drop_silent_flags(turns({"never": [False, None], "sometimes": [False, True]}))
    assert cleared["is_error"].to_list() == [None, None, False, True]
    assert drop_silent_flags(turns({"none": [None]}))["is_error"].to_list() == [None]


def test_the_answer_decides_where_no_flag_is_ever_raised() -> None:
    effects = pl.DataFrame({"service": ["never"], "tool": ["find"], "effect": ["read"]})
    never, sometimes = turns({"never": [False, False]}), turns({"sometimes": [False, True]})
    assert calls_of(never, effects)["failed"].to_list() == [True, True]
    assert calls_of(sometimes, effects)["failed"].to_list() == [False, True]
    assert [each.failed for each in logged_calls_of(never)] == [True, True]
    assert [each.failed for each in logged_calls_of(sometimes)] == [False, True]
