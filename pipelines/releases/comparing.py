"""Compare two releases: what they were built from, which tasks came and went, which figures changed, and why.

In: ids of one registry; their manifests and `about/` are read. Out: one document. The reason for a removed task is looked up in
the newer release (its decision, its sessions' decisions, the task that has them now), for a new one in the older. A figure's
reason is the tools, families or tasks that changed, else the logs, code and settings. Does not see: why the program of a tool,
or a rubric, changed; the code may have changed as well as the logs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pipelines.building.sessions import REASON
from pipelines.releases.registry import Registry
from pipelines.screen import many

_MOST = 3
"""Tools or families that a figure's reason names."""
_STEP = 5e-5
_TASK = re.compile(r"the task \S+")


class _Side(NamedTuple):
    """One of the two releases."""

    manifest: dict[str, Any]
    tasks: dict[str, dict[str, Any]]
    of_session: dict[str, str]
    """Session -> task that it is in."""
    rejected: dict[str, list[str]]
    """Session or task -> `stage: reason` of each rejection."""
    tools: dict[str, dict[str, Any]]
    families: dict[str, dict[str, Any]]
    files: dict[str, int]
    """File -> its records."""
    changes: dict[tuple[str, str], str]
    """(subject, reason) -> what changed in the logs, or in what tools answer; "" in releases of former versions."""


def diff(registry: Registry, before: str, after: str) -> dict[str, Any]:
    """{"from", "to", "inputs", "tasks": {"came", "gone", "moved"}, "changes", "figures", "tools", "families", "parts"}. Each
    change is {"reason", "detail"}, one of the logs or of a tool's rules that the older release did not know; each figure is
    {"name", "before", "after", "why"}. Raises Missing, ReleaseBroken."""
    old, new = _side(registry, before), _side(registry, after)
    inputs = _inputs(old, new)
    tasks = _tasks(old, new)
    tools = _moved(old.tools, new.tools, ("fidelity", "abstains", "n_support", "effect"), "tool")
    families = _moved(old.families, new.families, ("rate", "n_sessions", "n_tasks", "n_succeeded"), "family")
    whys = {"n_published": _of_tasks(tasks), "fidelity": _range_text(tools, "fidelity"),
            "abstains": _range_text(tools, "abstains"), "success": _range_text(families, "rate")}
    before_figures, after_figures = (side.manifest["figures"] | _transfer_figures(side) for side in (old, new))
    figures = [
        {"name": name, "before": one, "after": other, "why": whys.get(name) or inputs["says"]}
        for name in sorted(before_figures.keys() | after_figures.keys())
        if (one := before_figures.get(name)) != (other := after_figures.get(name))]
    was, now = ({(part["kind"], part["name"]): part for part in side.manifest["parts"]} for side in (old, new))
    parts = [
        {"kind": kind, "name": name, "before": one.get("digest"), "after": other.get("digest"),
         "bytes": other.get("bytes", 0) - one.get("bytes", 0)}
        for kind, name in sorted(was.keys() | now.keys())
        if (one := was.get((kind, name), {})) != (other := now.get((kind, name), {}))]
    changes = [{"reason": reason, "detail": detail or subject}
               for (subject, reason), detail in sorted(new.changes.items()) if (subject, reason) not in old.changes]
    return {"from": before, "to": after, "inputs": inputs, "tasks": tasks, "changes": changes, "figures": figures,
            "tools": tools, "families": families, "parts": parts}


def _transfer_figures(side: _Side) -> dict[str, Any]:
    """Return what was measured against the real service, as figures: `transfer ENVIRONMENT spearman` …"""
    carried = side.manifest.get("transfer", {})
    tuned = {f"transfer {name} {figure} of tuning": [row[figure] for row in measured["tuning"]]
             for name, measured in carried.items() if "tuning" in measured for figure in ("arrives", "regret")}
    return tuned | {f"transfer {name} {figure}": measured[figure] for name, measured in carried.items()
                    for figure in ("spearman", "regret", "n_pairs")}


def _side(registry: Registry, release: str) -> _Side:
    tasks = {row["task_id"]: row for row in registry.rows(release, "about/tasks.jsonl")}
    rejected: dict[str, list[str]] = {}
    for row in registry.rows(release, "about/left.jsonl"):
        rejected.setdefault(row["subject"], []).append(f"{row['stage']}: {row['reason']}")
    return _Side(
        registry.manifest(release), tasks,
        {session: task for task, row in tasks.items() for session in row["session_ids"]}, rejected,
        {f"{row['service']}, {row['tool']}": row for row in registry.rows(release, "about/tools.jsonl")},
        {row["family"]: {"n_succeeded": row.get("n_good"), **row}    # releases of former versions call it n_good
         for row in registry.rows(release, "about/families.jsonl")},
        {row["file_id"]: row["n_records"] for row in registry.rows(release, "about/files.jsonl")},
        {(row["subject"], row["reason"]): row.get("detail", "") for row in registry.rows(release, "about/drift.jsonl")})


def _inputs(old: _Side, new: _Side) -> dict[str, Any]:
    """Compare what the two were built from; `says` is a sentence of what differs."""
    came, gone = new.files.keys() - old.files.keys(), old.files.keys() - new.files.keys()
    n_came, n_gone = sum(new.files[each] for each in came), sum(old.files[each] for each in gone)
    others = [name for name in ("code", "settings", "privacy") if old.manifest[name] != new.manifest[name]]
    one, other = (sum(f"sessions: {REASON}" in reasons for reasons in side.rejected.values()) for side in (old, new))
    chosen = [f"another choice of sessions ({one:,} → {other:,} rejected by it)"] if one != other else []
    chunks = [f"{n} {than} ({many(n_records, 'record')})"
              for n, than, n_records in ((len(came), "more", n_came), (len(gone), "fewer", n_gone)) if n]
    sentences = [*([f"chunks of logs: {', '.join(chunks)}"] if chunks else []), *chosen, *(f"other {name}" for name in others)]
    return {"files_came": len(came), "files_gone": len(gone), "records_came": n_came, "records_gone": n_gone,
            **{name: name in others for name in ("code", "settings", "privacy")},
            "says": ", ".join(sentences) or "the same logs, code and settings"}


def _tasks(old: _Side, new: _Side) -> dict[str, list[dict[str, Any]]]:
    """List published tasks that came and went, each with its reason, and those whose split or family changed."""
    one, other = ({task for task, row in side.tasks.items() if row["published"]} for side in (old, new))
    moved = [
        {"task_id": task, "family": _name(new, task), "why": ", ".join(
            f"{name} {old.tasks[task][name]} → {new.tasks[task][name]}" for name in changed)}
        for task in sorted(one & other)
        if (changed := [name for name in ("split", "family") if old.tasks[task][name] != new.tasks[task][name]])]
    return {
        "came": [{"task_id": task, "family": _name(new, task), "why": _came(task, old, new)} for task in sorted(other - one)],
        "gone": [{"task_id": task, "family": _name(old, task), "why": _gone(task, old, new)} for task in sorted(one - other)],
        "moved": moved}


def _name(side: _Side, task: str) -> str:
    family = side.tasks[task]["family"]
    return str(side.families.get(family, {}).get("name", family))


def _came(task: str, old: _Side, new: _Side) -> str:
    if task in old.tasks:
        return f"was rejected before ({', '.join(old.rejected.get(task, ['unverified']))})"
    sessions = new.tasks[task]["session_ids"]
    if not sessions:
        return f"made anew ({new.tasks[task]['made_from']})"
    if any(session not in old.of_session and session not in old.rejected for session in sessions):
        return "new in the logs"
    before = sorted({old.of_session[session] for session in sessions if session in old.of_session})
    if before:
        return f"its sessions were in the task {before[0]}"
    return f"its sessions were rejected before ({', '.join(old.rejected[sessions[0]])})"


def _gone(task: str, old: _Side, new: _Side) -> str:
    if task in new.tasks or task in new.rejected:
        return f"rejected now ({', '.join(new.rejected.get(task, ['unverified']))})"
    sessions = old.tasks[task]["session_ids"]
    if not sessions:
        return f"no longer made ({old.tasks[task]['made_from']})"
    now = sorted({new.of_session[session] for session in sessions if session in new.of_session})
    if now:
        return f"its sessions are in the task {now[0]} now"
    reasons = sorted({reason for session in sessions for reason in new.rejected.get(session, ())})
    return f"its sessions are rejected now ({', '.join(reasons)})" if reasons else "its sessions are no longer in the logs"


def _moved(
    old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]], names: Iterable[str], kind: str
) -> list[dict[str, Any]]:
    """List what came, went, or has other figures: {kind: its name, figure: [before, after], …}."""
    rows = []
    for key in sorted(old.keys() | new.keys()):
        one, other = old.get(key, {}), new.get(key, {})
        changed = {name: [one.get(name), other.get(name)] for name in names if _differ(one.get(name), other.get(name))}
        if changed:
            rows.append({kind: str((other or one).get("name", key)), **changed})
    return rows


def _differ(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) >= _STEP
    return bool(one != other)


def _range_text(rows: list[dict[str, Any]], figure: str) -> str:
    """Describe the rows whose figure changed most."""
    values = [(row, row[figure]) for row in rows if figure in row]
    values.sort(key=lambda each: -abs((each[1][1] or 0.0) - (each[1][0] or 0.0)))
    words = [" ".join([str(next(iter(row.values()))), " → ".join("none" if each is None else f"{each:.3g}" for each in moved)])
             for row, moved in values[:_MOST]]
    return "; ".join(words) + (f" and {len(values) - _MOST} more" if len(values) > _MOST else "")


def _of_tasks(tasks: dict[str, list[dict[str, Any]]]) -> str:
    sentences = []
    for change, word in (("came", "came"), ("gone", "went")):
        whys = Counter(_TASK.sub("another task", row["why"]) for row in tasks[change])
        if whys:
            shown = ", ".join(f"{n} {why}" for why, n in sorted(whys.items(), key=lambda each: (-each[1], each[0]))[:_MOST])
            sentences.append(f"{len(tasks[change])} {word}: {shown}")
    return "; ".join(sentences)
