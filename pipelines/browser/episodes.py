"""List the episodes of an environment's rollouts, by policy, task, outcome, tool and tier.

Input: the trajectories of OUT/rollouts/NAME, also during a rollout, and the filters of a page's address. Output: pages of
episodes, newest attempt of the least rewarded first. What tools an episode called, and which tiers answered it, is read once
for each state of the file. Does not see rollouts in another folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from env_builder.runtime.trajectory import OWN
from pipelines.browser.library import Library
from pipelines.browser.trajectories import ROLLOUTS, episodes_by_task
from pipelines.inspection.views import SIZE, Paged, begins, paged
from pipelines.rollouts.kept import TRAJECTORIES, trajectories
from pipelines.rollouts.results import is_good
from warehouse.errors import InputError
from warehouse.vocabulary import FAILED, OUTCOMES, SUCCEEDED, UNDECIDED

Row = dict[str, Any]
FILTERS = ("id", "policy", "task", "outcome", "tool", "tier", "sort")
"""Parameters of the list; `id`: the environment."""
ORDERS: Mapping[str, Callable[[Row], Any]] = {
    "lowest reward first": lambda row: -1.0 if row["reward"] is None else row["reward"],
    "highest reward first": lambda row: 1.0 if row["reward"] is None else -row["reward"],
    "most moves first": lambda row: -row["n_moves"], "most unknown answers first": lambda row: -row["n_unknown"]}


def outcome_of_episode(reward: float | None) -> str:
    """Return the outcome of an episode: one without a reward is undecided."""
    return UNDECIDED if reward is None else SUCCEEDED if is_good(reward) else FAILED


def episodes(library: Library, wanted: Mapping[str, str], after: str | None = None, size: int | None = SIZE) -> Paged:
    """Return a page of episodes under the filters, each with its tools, tiers and outcome. Raises InputError."""
    outcome, sort = wanted.get("outcome", ""), wanted.get("sort", "") or next(iter(ORDERS))
    if outcome and outcome not in OUTCOMES:
        raise InputError(f"invalid outcome {outcome!r}", hint=f"choose one of: {', '.join(OUTCOMES)}")
    if sort not in ORDERS:
        raise InputError(f"invalid order {sort!r}", hint=f"choose one of: {', '.join(ORDERS)}")
    tests: list[Callable[[Row], bool]] = [
        lambda row: not outcome or row["outcome"] == outcome,
        *(lambda row, name=name: wanted[name] in (row[name] if isinstance(row[name], list) else [row[name]])
          for name in ("policy", "tool", "tier") if wanted.get(name)),
        lambda row: not wanted.get("task") or row["task_id"].startswith(wanted["task"])]
    rows = [row for row in all_episodes(library, wanted.get("id", "")) if all(test(row) for test in tests)]
    rows = [{**row, "place": place} for place, row in enumerate(
        sorted(rows, key=lambda row: (ORDERS[sort](row), row["task_id"], row["policy"], row["episode_id"])), 1)]
    if size is None:
        return Paged(rows, None)
    begin = next((key for key in begins(after, 1) if isinstance(key, int) and key > 0), 0)
    return paged(rows[begin:begin + size + 1], ("place",))


def all_episodes(library: Library, name: str = "") -> list[Row]:
    """Return every episode of an environment, or of all: what is known of it, with `environment`, `outcome`, `tool`, `tier`."""
    folder = library.out / ROLLOUTS
    rooms = sorted(path.parent for path in folder.glob(f"*/{TRAJECTORIES}")) if folder.is_dir() else []
    listed = []
    for room in rooms:
        if name in ("", room.name):
            used = library.read(room / TRAJECTORIES, lambda path: dict(_used(trajectories(path.parent))), "used") or {}
            listed += [{"environment": room.name, **row, "outcome": outcome_of_episode(row["reward"]),
                        **used.get(row["episode_id"], {"tool": [], "tier": []})}
                       for rows in episodes_by_task(library, room).values() for row in rows]
    return listed


def _used(rows: Iterable[Row]) -> Iterable[tuple[str, Row]]:
    """Yield (episode, the tools that it called and the tiers of their answers)."""
    for row in rows:
        tools, tiers = set[str](), set[str]()
        for step in row["steps"]:
            tools |= {call["function_name"] for call in step.get("tool_calls") or ()}
            tiers |= {tier for result in (step.get("observation") or {}).get("results", ())
                      if (tier := (result.get("extra") or {}).get("tier"))}
        yield row["extra"][OWN]["episode_id"], {"tool": sorted(tools), "tier": sorted(tiers)}


def choices(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Return what the filters offer."""
    listed = list(rows)
    return {"policy": sorted({row["policy"] for row in listed}),
            **{name: sorted({value for row in listed for value in row[name]}) for name in ("tool", "tier")}}
