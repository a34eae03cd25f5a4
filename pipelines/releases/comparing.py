"""Two releases side by side: what they were built from, which tasks came and went, which figures moved, and why.

In: ids of one registry; read are their manifests and `about/`. Out: one document. A task that went is asked for in the newer
release (its own verdict, its sessions' verdicts, the task that has them now), one that came in the older. A figure's why is
what it is made of: tools, families, tasks that moved, else the logs, code and settings that changed. Sees: what stands in
`about/`. Does not see: why a program of a tool, or a rubric, is another one now; the code may have changed as well as the logs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pipelines import selecting
from pipelines.releases.registry import Registry
from pipelines.screen import many

_MOST = 3
"""Tools or families that a figure's why names."""
_OF_TOOLS, _OF_FAMILIES, _OF_TASKS = ("fidelity", "abstains"), ("success",), ("n_published",)
_STEP = 5e-5
_UNCHOSEN = f"sessions: {selecting.REASON}"
_TASK = re.compile(r"the task \S+")


class _Side(NamedTuple):
    """What one release tells of itself."""

    manifest: dict[str, Any]
    tasks: dict[str, dict[str, Any]]
    of_session: dict[str, str]
    """Session -> task that it is in."""
    left: dict[str, list[str]]
    """Session or task -> `stage: reason` of what it was left for."""
    tools: dict[str, dict[str, Any]]
    families: dict[str, dict[str, Any]]
    files: dict[str, int]
    """File -> its records."""


def diff(registry: Registry, before: str, after: str) -> dict[str, Any]:
    """{"from", "to", "inputs", "tasks": {"came", "gone", "moved"}, "figures", "tools", "families", "parts"}.

    Each figure is {"name", "before", "after", "why"}. Raises Missing, ReleaseBroken.
    """
    old, new = _side(registry, before), _side(registry, after)
    inputs = _inputs(old, new)
    tasks = _tasks(old, new)
    tools = _moved(old.tools, new.tools, ("fidelity", "abstains", "n_support", "effect"), "tool")
    families = _moved(old.families, new.families, ("rate", "n_sessions", "n_tasks", "n_good"), "family")
    whys = {
        **dict.fromkeys(_OF_TASKS, _of_tasks(tasks)),
        **{name: _told(tools, name) for name in _OF_TOOLS}, **{name: _told(families, "rate") for name in _OF_FAMILIES}}
    figures = [
        {"name": name, "before": one, "after": other, "why": whys.get(name) or inputs["says"]}
        for name in sorted(old.manifest["figures"].keys() | new.manifest["figures"].keys())
        if (one := old.manifest["figures"].get(name)) != (other := new.manifest["figures"].get(name))]
    return {"from": before, "to": after, "inputs": inputs, "tasks": tasks, "figures": figures, "tools": tools,
            "families": families, "parts": _parts(old, new)}


def _side(registry: Registry, release: str) -> _Side:
    tasks = {row["task_id"]: row for row in registry.rows(release, "about/tasks.jsonl")}
    left: dict[str, list[str]] = {}
    for row in registry.rows(release, "about/left.jsonl"):
        left.setdefault(row["subject"], []).append(f"{row['stage']}: {row['reason']}")
    return _Side(
        registry.manifest(release), tasks,
        {session: task for task, row in tasks.items() for session in row["session_ids"]}, left,
        {f"{row['service']}, {row['tool']}": row for row in registry.rows(release, "about/tools.jsonl")},
        {row["family"]: row for row in registry.rows(release, "about/families.jsonl")},
        {row["file_id"]: row["n_records"] for row in registry.rows(release, "about/files.jsonl")})


def _inputs(old: _Side, new: _Side) -> dict[str, Any]:
    """What the two were built from, and a sentence of what differs."""
    came, gone = new.files.keys() - old.files.keys(), old.files.keys() - new.files.keys()
    n_came, n_gone = sum(new.files[each] for each in came), sum(old.files[each] for each in gone)
    others = [name for name in ("code", "settings", "privacy") if old.manifest[name] != new.manifest[name]]
    one, other = (sum(_UNCHOSEN in reasons for reasons in side.left.values()) for side in (old, new))
    chosen = [f"another choice of sessions ({one:,} → {other:,} left by it)"] if one != other else []
    pieces = [f"{n} {than} ({many(n_records, 'record')})"
              for n, than, n_records in ((len(came), "more", n_came), (len(gone), "fewer", n_gone)) if n]
    told = [*([f"pieces of logs: {', '.join(pieces)}"] if pieces else []), *chosen, *(f"other {name}" for name in others)]
    return {"files_came": len(came), "files_gone": len(gone), "records_came": n_came, "records_gone": n_gone,
            **{name: name in others for name in ("code", "settings", "privacy")},
            "says": ", ".join(told) or "the same logs, code and settings"}


def _tasks(old: _Side, new: _Side) -> dict[str, list[dict[str, Any]]]:
    """Published tasks that came and went, each with its why, and those whose side of the split or family moved."""
    one, other = _published(old), _published(new)
    moved = [
        {"task_id": task, "family": _name(new, task), "why": ", ".join(
            f"{name} {old.tasks[task][name]} → {new.tasks[task][name]}" for name in changed)}
        for task in sorted(one & other)
        if (changed := [name for name in ("split", "family") if old.tasks[task][name] != new.tasks[task][name]])]
    return {
        "came": [{"task_id": task, "family": _name(new, task), "why": _came(task, old, new)} for task in sorted(other - one)],
        "gone": [{"task_id": task, "family": _name(old, task), "why": _gone(task, old, new)} for task in sorted(one - other)],
        "moved": moved}


def _published(side: _Side) -> set[str]:
    return {task for task, row in side.tasks.items() if row["published"]}


def _name(side: _Side, task: str) -> str:
    family = side.tasks[task]["family"]
    return str(side.families.get(family, {}).get("name", family))


def _came(task: str, old: _Side, new: _Side) -> str:
    if task in old.tasks:
        return f"was left before ({', '.join(old.left.get(task, ['not verified']))})"
    sessions = new.tasks[task]["session_ids"]
    if not sessions:
        return f"made anew ({new.tasks[task]['made_from']})"
    if any(session not in old.of_session and session not in old.left for session in sessions):
        return "new in the logs"
    before = sorted({old.of_session[session] for session in sessions if session in old.of_session})
    if before:
        return f"its sessions were in the task {before[0]}"
    return f"its sessions were left before ({', '.join(old.left[sessions[0]])})"


def _gone(task: str, old: _Side, new: _Side) -> str:
    if task in new.tasks or task in new.left:
        return f"left now ({', '.join(new.left.get(task, ['not verified']))})"
    sessions = old.tasks[task]["session_ids"]
    if not sessions:
        return f"no longer made ({old.tasks[task]['made_from']})"
    now = sorted({new.of_session[session] for session in sessions if session in new.of_session})
    if now:
        return f"its sessions are in the task {now[0]} now"
    reasons = sorted({reason for session in sessions for reason in new.left.get(session, ())})
    return f"its sessions are left now ({', '.join(reasons)})" if reasons else "its sessions are no longer in the logs"


def _moved(
    old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]], names: Iterable[str], kind: str
) -> list[dict[str, Any]]:
    """What came, went, or has other figures: {kind: its name, figure: [before, after], …}."""
    found = []
    for key in sorted(old.keys() | new.keys()):
        one, other = old.get(key, {}), new.get(key, {})
        changed = {name: [one.get(name), other.get(name)] for name in names if _differ(one.get(name), other.get(name))}
        if changed:
            found.append({kind: str((other or one).get("name", key)), **changed})
    return found


def _differ(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) >= _STEP
    return bool(one != other)


def _told(rows: list[dict[str, Any]], figure: str) -> str:
    """The rows whose figure moved most, in words."""
    told = [(row, row[figure]) for row in rows if figure in row]
    told.sort(key=lambda each: -abs((each[1][1] or 0.0) - (each[1][0] or 0.0)))
    words = [f"{next(iter(row.values()))} {_number(one)} → {_number(other)}" for row, (one, other) in told[:_MOST]]
    more = f" and {len(told) - _MOST} more" if len(told) > _MOST else ""
    return "; ".join(words) + more


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _of_tasks(tasks: dict[str, list[dict[str, Any]]]) -> str:
    told = []
    for way, word in (("came", "came"), ("gone", "went")):
        whys = Counter(_TASK.sub("another task", row["why"]) for row in tasks[way])
        if whys:
            shown = ", ".join(f"{n} {why}" for why, n in sorted(whys.items(), key=lambda each: (-each[1], each[0]))[:_MOST])
            told.append(f"{len(tasks[way])} {word}: {shown}")
    return "; ".join(told)


def _parts(old: _Side, new: _Side) -> list[dict[str, Any]]:
    one, other = ({(part["kind"], part["name"]): part for part in side.manifest["parts"]} for side in (old, new))
    return [
        {"kind": kind, "name": name, "before": (was or {}).get("digest"), "after": (now or {}).get("digest"),
         "bytes": (now or {}).get("bytes", 0) - (was or {}).get("bytes", 0)}
        for kind, name in sorted(one.keys() | other.keys())
        if (was := one.get((kind, name))) != (now := other.get((kind, name)))]
