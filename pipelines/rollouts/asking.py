"""Ask real tools what an environment did not know: the items of a shopping list, one after the other, at a bounded rate.

In: items (shopping.py), a binding for each tool, and maybe a reset, which brings the service into the state in which a
session began. Out: rows for a person to accept: the calls with the real answers. A sequence with a tool that may write is not
asked unless that is allowed. Detects an earlier call that the real tool answers otherwise than the environment: `differs` names
it. After a call that may write and worked, the reads before it are made again (`looks`): they show what it changed. Does not
see: whether the service is in the state in which the session began, without a reset; then `as_of` is `now`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from env_builder.runtime.answers import failed, parse
from env_builder.runtime.bindings import Ask, Binding, Reply, reply_of
from env_builder.runtime.canonical import canonical
from pipelines.rollouts.real import RESET
from warehouse.errors import Unavailable

Row = dict[str, Any]


class RealTools(NamedTuple):
    """Real tools, and how they may be asked."""

    bound: Mapping[str, Binding]
    """By the tool's name."""
    reset: Binding | None
    """Asked before each item, as by `pipelines.rollouts.real`."""
    may_write: bool
    per_second: float
    """Calls per second at most."""


def answers_of(items: Iterable[Row], tools: RealTools, sleep: Callable[[float], None] = time.sleep) -> Iterator[Row]:
    """Yield a row per item: what was answered, or with `problem` why nothing was. Raises Unavailable if a service is gone."""
    pause, n_calls = 1 / tools.per_second, 0

    def call(tool: str, arguments: Row, instant: str | None) -> Reply | None:
        nonlocal n_calls
        if n_calls:
            sleep(pause)
        n_calls += 1
        binding = tools.reset if tool == RESET and tools.reset is not None else tools.bound[tool]
        try:
            reply = reply_of(binding(Ask(tool, arguments, lambda _class, _key: None, (), instant)))
        except OSError as error:
            raise Unavailable(f"the real tool cannot be reached ({error})", tool, "start the service, and ask again") from error
        return reply and reply._replace(is_error=reply.is_error or failed(reply.content, parse(reply.content)))

    for item in items:
        problem = _problem(item, tools)
        yield {**item, "problem": problem} if problem else _answered(item, tools.reset is not None, call)


def _problem(item: Row, tools: RealTools) -> str | None:
    """Return why an item is not asked."""
    if item["writes"] and not tools.may_write:
        return "one of its calls may write (--allow-writes)"
    if item["writes"] and tools.reset is None:
        return "one of its calls may write, and nothing brings the service into the state before it (--reset)"
    unbound = sorted({call["tool"] for call in item["tool_calls"]} - {*tools.bound})
    return f"nothing is bound to {', '.join(unbound)} (--bind)" if unbound else None


def _reads(calls: list[Row]) -> list[Row]:
    """Return the calls that may not write, each once."""
    reads = {canonical([each["tool"], each["arguments"]]): each for each in calls if each.get("may_write") is False}
    return list(reads.values())


def _answered(item: Row, resets: bool, call: Callable[[str, Row, str | None], Reply | None]) -> Row:
    """Make an item's calls and return its row."""
    instant = item["starts_at"]
    if resets:
        call(RESET, {"task_id": item["task_id"], "session_ids": [item["session_id"]], "starts_at": instant, "seed": 0,
                     "attempt": 0}, instant)
    calls, differs = [], None
    for wanted in item["tool_calls"]:
        reply = call(wanted["tool"], wanted["arguments"], instant)
        if reply is None:
            return {**item, "problem": f"the real {wanted['tool']} does not know"}
        if differs is None and wanted["content"] is not None and wanted["content"] != reply.content:
            differs = wanted["tool"]
        calls.append({**wanted, "content": reply.content, "is_error": reply.is_error})
    looks = []
    for wanted in _reads(calls) if calls[-1].get("may_write") and not calls[-1]["is_error"] else ():
        reply = call(wanted["tool"], wanted["arguments"], instant)
        looks += [{**wanted, "content": reply.content, "is_error": reply.is_error}] if reply else []
    return {
        **{name: item[name] for name in ("service", "session_id", "task_id")}, "tool_calls": calls, "looks": looks,
        "differs": differs,
        "as_of": "start" if resets else "now", "asked_at": datetime.now(UTC).isoformat(timespec="seconds"), "accepted": None,
        "reviewer": ""}
