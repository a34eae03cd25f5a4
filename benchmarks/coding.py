#!/usr/bin/env python3
"""What is made of sessions of coding agents and their repositories.

    benchmarks/coding.py DATA [--privacy on|off]

DATA holds a folder for each repository, with logs/, repo.bundle and truth/. Each is run through `traceroom run LOGS
--repository BUNDLE` into an empty folder; truth/ is read afterwards, to score. Figures:

    starts_right          sessions whose start is the true commit, or has the same files; of all sessions that truth knows
    starts_right_time     the same of the baseline that takes the latest commit of the main branch at that time
    starts_wrong_unsaid   sessions with a start that is another; those without one have a reason
    starts_none           sessions without a start
    merges_right          sessions whose change is known to be merged or not, with the commit that it became
    reverts_right         sessions whose change is known to be reverted or not, with the commit that did it
    winners_right         of sessions about a task: those whose winner is the commit that truth names
    winners_right_merged  the same of the baseline that takes the session's own merged commit
    chores_with_tests     of the other sessions: those with a winner that changes source and tests
    tests_equal_truth     of sessions about a task: those made a task whose fail-to-pass and pass-to-pass sets are truth's
    tasks_from_sessions_right  of sessions about a task: those made a task with the commit that truth names as the winner
    chores_turned_into_tasks   of the other sessions: those made a task
    recipes_accepted      repositories whose recipe gives what CI recorded
    success_auroc         before any verification, over sessions about a task that are not merged, or reverted, or whose CI was
                          red though they are right, or that cheat: how often one that is right is rated above one that is not
    success_rated         of these: those that are rated at all
    cheats_called_good    of sessions that cheat: those rated ½ or more
    code_tasks_seconds    of the stage that finds recipes and runs tests, on average of the repositories

Tables go to stderr; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from extractors.workspaces.repository import Repository  # noqa: E402

OF_SESSIONS = ("starts_right", "starts_right_time", "starts_wrong_unsaid", "starts_none", "merges_right", "reverts_right")
OF_TASKS = ("winners_right", "winners_right_merged", "tests_equal_truth", "tasks_from_sessions_right")
OF_CHORES = ("chores_with_tests", "chores_turned_into_tasks")
OF_REPOSITORIES = ("recipes_accepted", "code_tasks_seconds")
CHEATS = ("skip", "delete", "weaken", "conftest")
"""Attempts that make the tests pass by other means."""
Rated = tuple[dict[str, Any], float | None]
"""A session as truth has it, and how likely it is right."""
_SETS = ("fail_to_pass", "pass_to_pass")


def main() -> int:
    """Measure every repository of the data set and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--privacy", choices=("on", "off"), default="on")
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.data.glob("*/repo.bundle"))
    if not folders:
        parser.error(f"{options.data} has no folder with repo.bundle; name a data set")
    rated: list[list[Rated]] = []
    counts = [_counts(folder, options.privacy, rated) for folder in folders]
    totals = {name: sum(each[name] for each in counts) for name in counts[0]}
    figures = {name: round(totals[name] / totals[of], 4) for of, names in (
        ("n_sessions", OF_SESSIONS), ("n_tasks", OF_TASKS), ("n_chores", OF_CHORES), ("n_repositories", OF_REPOSITORIES))
        for name in names if totals[of]}
    figures |= _success_figures([each for one in rated for each in one])
    print(json.dumps({"benchmark": "coding", "privacy": options.privacy, **{
        name: totals[name] for name in ("n_repositories", "n_sessions", "n_tasks", "n_chores")}, "figures": figures}))
    return 0


def _success_figures(rated: Sequence[Rated]) -> dict[str, float]:
    """Return the figures of how likely sessions are to be right, before any verification."""
    hard = [(session["resolved"], chance) for session, chance in rated if session.get("resolved") is not None and (
        not session["merged"] or session.get("reverted_by") or session.get("attempt") in CHEATS
        or (session["resolved"] and session.get("ci_green") is False))]
    right, wrong = ([chance for is_right, chance in hard if is_right is side and chance is not None] for side in (True, False))
    cheating = [chance for session, chance in rated if session.get("attempt") in CHEATS]
    figures = {}
    if right and wrong:
        figures["success_auroc"] = sum((one > other) + (one == other) / 2 for one in right for other in wrong) / (
            len(right) * len(wrong))
    if hard:
        figures["success_rated"] = (len(right) + len(wrong)) / len(hard)
    if cheating:
        figures["cheats_called_good"] = sum(chance is not None and chance >= 0.5 for chance in cheating) / len(cheating)
    return {name: round(figure, 4) for name, figure in figures.items()}


def _counts(folder: Path, privacy: str, rated: list[list[Rated]]) -> dict[str, float]:
    """Return how many sessions of a repository begin where they did."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-P", "-m", "pipelines", "run", str(folder / "logs"), "--repository",
                   str(folder / "repo.bundle"), "--privacy", privacy, "--no-image", "--json", "--out", out]
        ran = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        seconds = next(row["seconds"] for row in json.loads(ran.stdout)["stages"] if row["stage"] == "code_tasks")
        with duckdb.connect(str(Path(out) / "warehouse.published.duckdb"), read_only=True) as warehouse:
            starts = dict(warehouse.sql("select session_id, commit_id from mart.starts order by all").fetchall())
            changes = {row["session_id"]: row for row in warehouse.sql(
                "select * from mart.code_changes order by session_id").pl().iter_rows(named=True)}
            made = {row["session_id"]: row for row in warehouse.sql(
                "select * from mart.code_tasks order by session_id").pl().iter_rows(named=True)}
            recipes = warehouse.sql("select count(*) from mart.recipes").fetchall()[0][0]
            print(*warehouse.sql("""select subject, reason, detail from mart.decisions where stage = 'code_tasks' and
                reason not in ('separates', 'no_winner') order by all""").fetchall(), sep="\n", file=sys.stderr)
    truth, tasks = (_rows(folder / "truth" / f"{name}.jsonl") for name in ("sessions", "tasks"))
    by_id = {task["task_id"]: task for task in tasks}
    rated.append([(session, changes.get(session["session_id"], {}).get("success")) for session in truth])
    with Repository.open(folder / "repo.bundle") as repository:
        counts: dict[str, float] = dict.fromkeys(
            ("n_repositories", "n_sessions", "n_tasks", "n_chores", *OF_SESSIONS, *OF_TASKS, *OF_CHORES, *OF_REPOSITORIES), 0)
        counts |= {"n_repositories": 1, "recipes_accepted": recipes, "code_tasks_seconds": seconds}
        for session in truth:
            start, by_time = starts.get(session["session_id"]), _latest(session, repository)
            counts["n_sessions"] += 1
            counts["starts_right"] += (is_right := start is not None and _is_same(start, session["base_commit"], repository))
            counts["starts_right_time"] += by_time is not None and _is_same(by_time, session["base_commit"], repository)
            counts["starts_none"] += start is None
            counts["starts_wrong_unsaid"] += start is not None and not is_right
            task = by_id.get(session["task_id"])
            _count_change(counts, session, changes.get(session["session_id"], {}), task)
            _count_task(counts, session, made.get(session["session_id"]), task)
    print(folder.name, counts, file=sys.stderr)
    return counts


def _count_change(
    counts: dict[str, float], session: dict[str, Any], change: dict[str, Any], task: dict[str, Any] | None,
) -> None:
    merged, fix = session.get("merge_commit"), task["fix_commit"] if task is not None else None
    counts["merges_right"] += change.get("merge_commit") == merged
    counts["reverts_right"] += change.get("reverted_by") == session.get("reverted_by")
    if fix is None:
        counts["n_chores"] += 1
        counts["chores_with_tests"] += bool(change.get("source_files") and change.get("test_files"))
        return
    counts["n_tasks"] += 1
    counts["winners_right"] += change.get("winner") == fix
    counts["winners_right_merged"] += merged == fix


def _count_task(
    counts: dict[str, float], session: dict[str, Any], made: dict[str, Any] | None, task: dict[str, Any] | None,
) -> None:
    if task is None:
        counts["chores_turned_into_tasks"] += made is not None
        return
    same = {name: made is not None and set(made[name]) == set(task[name]) for name in _SETS}
    counts["tests_equal_truth"] += all(same.values())
    counts["tasks_from_sessions_right"] += made is not None and made["winner"] == task["fix_commit"]
    if made is not None and not all(same.values()):
        print(session["session_id"], made["base"], {name: sorted(set(made[name]) ^ set(task[name]))[:5] for name in _SETS},
              file=sys.stderr)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _is_same(commit_id: str, other: str, repository: Repository) -> bool:
    trees = {each: repository.commits[each].tree_id for each in (commit_id, other) if each in repository.commits}
    return commit_id == other or (len(trees) == 2 and len(set(trees.values())) == 1)


def _latest(session: dict[str, Any], repository: Repository) -> str | None:
    """Return the latest commit of the main branch when a session began."""
    tip, began = repository.branch("main"), datetime.fromisoformat(session["started_at"])
    return next((commit.commit_id for commit in repository.history(tip or "") if commit.at <= began), None)


if __name__ == "__main__":
    raise SystemExit(main())
