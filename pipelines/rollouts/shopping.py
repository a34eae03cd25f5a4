"""The shopping list: which calls, made once at the real tools, would let the grader decide most of the unscored episodes.

In: an environment, its recorded episodes. Out: items, the most useful first: the calls that led to an unknown answer, in order,
from the start of the task's session. An episode needs an answer to each unknown call that may have written, as the end state
hangs on them; without one, to each unknown call. Which items come first is greedy cover: an item's worth is the sum over the
unscored episodes that need it of one over what they still need. Does not see: what the agent would have done had it been
answered; whether an answer of today holds for the day of the task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.trajectory import OWN, journal

MOST = 20
Row = dict[str, Any]


class ShoppingItem(NamedTuple):
    """A sequence of calls to make at the real tools; the last one is what is unknown."""

    service: str
    session_id: str
    task_id: str
    """One of the tasks that begin together with the session."""
    starts_at: str | None
    tool_calls: tuple[Row, ...]
    """{"tool", "arguments", "content", "is_error", "may_write"}: what the environment answered, content null where it is
    unknown."""
    writes: bool
    """Whether one of the calls may write."""
    n_episodes: int
    """Unscored episodes that need it."""
    n_scoreable: int
    """Unscored episodes that need nothing but this item and those before it in the list."""


class ShoppingList(NamedTuple):
    """What to ask, and how much of it helps."""

    items: list[ShoppingItem]
    n_episodes: int
    n_unscored: int
    n_not_helped: int
    """Unscored episodes without an unknown answer: a judge was not available, or a reward is missing."""


def shopping_list(environment: Environment, trajectories: Iterable[Row], most: int = MOST) -> ShoppingList:
    """List what to ask, `most` items at most. Episodes of another content of the environment are replayed in this one."""
    episodes = list(trajectories)
    needs = needs_of(environment, episodes)
    helped = [each for each in needs if each]
    return ShoppingList(list(_covering(helped, most)), len(episodes), len(needs), len(needs) - len(helped))


def needs_of(environment: Environment, trajectories: Iterable[Row]) -> list[dict[str, ShoppingItem]]:
    """Return of each unscored episode the items that it needs, by their names."""
    return [dict(_needed(environment, about, journal(each))) for each in trajectories
            if (about := each["extra"][OWN]).get("reward") is None]


def _covering(needs: list[dict[str, ShoppingItem]], most: int) -> Iterator[ShoppingItem]:
    """Yield the items in greedy order."""
    open_needs, n_scoreable = [dict(each) for each in needs], 0
    for _ in range(most):
        worth: dict[str, float] = {}
        n_needing: dict[str, int] = {}
        for each in open_needs:
            for name in each:
                worth[name] = worth.get(name, 0.0) + 1 / len(each)
                n_needing[name] = n_needing.get(name, 0) + 1
        if not worth:
            return
        best = min(worth, key=lambda name: (-round(worth[name], 9), name))
        item = next(each[best] for each in open_needs if best in each)
        for each in open_needs:
            each.pop(best, None)
        n_scoreable += sum(not each for each in open_needs)
        open_needs = [each for each in open_needs if each]
        yield item._replace(n_episodes=n_needing[best], n_scoreable=n_scoreable)


def _needed(environment: Environment, about: Row, rows: Iterable[Row]) -> Iterator[tuple[str, ShoppingItem]]:
    """Yield what an unscored episode needs, by a replay of it: (name, item)."""
    task = next((each for each in environment.tasks if each.task_id == about["task_id"]), None)
    if task is None or not task.session_ids:
        return
    twin = environment.replaying(task.task_id, about["seed"], about["perturbations"])
    for row in list(rows)[len(twin.journal):]:
        if row["kind"] == "call":
            twin.retrace(row)
        elif row["kind"] == "say":
            twin.say(row["content"])
    if twin.grade().reward is not None:   # what was unknown then is known by now
        return
    made = [row for row in twin.journal if row["kind"] == "call"]
    may_have_worked = twin.episode().unknown_writes
    writing = [place for place, row in enumerate(made) if any(row is each for each in may_have_worked)]
    for place in writing or [place for place, row in enumerate(made) if row["tier"] == "unknown"]:
        before = [row for row in made[:place] if row["tier"] != "unknown" or row["tool"] in environment.writes]
        calls = tuple(_call(row, row["tool"] in environment.writes) for row in (*before, made[place]))
        acts = [[call["tool"], call["arguments"]] for call in calls[:-1] if call["may_write"]]
        name = canonical([task.session_ids[0], acts, calls[-1]["tool"], calls[-1]["arguments"]])
        yield name, ShoppingItem(environment.manifest["service"], task.session_ids[0], task.task_id, task.starts_at, calls,
                           any(call["may_write"] for call in calls), 0, 0)


def _call(row: Mapping[str, Any], may_write: bool) -> Row:
    is_known = row["tier"] != "unknown"
    return {"tool": row["tool"], "arguments": row["arguments"], "content": row["content"] if is_known else None,
            "is_error": row["is_error"] if is_known else None, "may_write": may_write}
