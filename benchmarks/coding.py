#!/usr/bin/env python3
"""What is made of sessions of coding agents and their repositories.

    benchmarks/coding.py DATA [--privacy on|off] [--twice] [--image NAME] [--only REPOSITORY]

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
    n_derived_commit, n_derived_hunk  tasks of other commits, and of hunks turned back, that hold
    derived_made          both before the verifier: those that do not hold are not published
    code_tasks_seconds    of the stage that finds recipes and runs tests, on average of the repositories
    gold_paid             published tasks whose known solution earns 1; idle_paid: whose unchanged tree earns anything
    recorded_verdicts_right  of sessions about a task: those whose verdict, made of what they had left, is truth's
    cheats_paid           tries of the cheats in DATA/cheats, two tasks a repository, that earned more than 0; cheats_unscored:
                          that nobody can score
    train_margin          lowest reward for training of a resolving change minus the highest of another: known solutions,
                          recorded sessions, unchanged trees, cheats
    honest_commits_pass   commits of the main line whose source part passes the verifier's paths
    leaks                 lines of known solutions and tests that an agent can read anywhere, and commits beside the first
    forgeable             published tasks of whose tests no telling question could be made
    mb_100_tasks          megabytes that a hundred trees of a repository take beside the first (the largest repository's)
    fork_ms, shell_ms     of a workspace with a thousand changed files; of the shell command `true`
    graded_run_share, graded_run_cpu_share, shell_over_exec   beside docker run and docker exec (--image: a base with Python)
    first_graded_s        seconds of the first graded run, that loads the runner the others fork from
    graded_differently    known tests with another outcome than in a process of their own, with known solutions and without
    equal                 --twice: rewards and environments of a second run in another folder have the same bytes

Tables go to stderr; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import coding_rooms, coding_success  # noqa: E402
from extractors.workspaces.repository import Repository  # noqa: E402

OF_SESSIONS = ("starts_right", "starts_right_time", "starts_wrong_unsaid", "starts_none", "merges_right", "reverts_right")
OF_TASKS = ("winners_right", "winners_right_merged", "tests_equal_truth", "tasks_from_sessions_right")
OF_CHORES = ("chores_with_tests", "chores_turned_into_tasks")
OF_REPOSITORIES = ("recipes_accepted", "code_tasks_seconds")
_SETS = ("fail_to_pass", "pass_to_pass")


def main() -> int:
    """Measure every repository of the data set and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--privacy", choices=("on", "off"), default="on")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--image")
    parser.add_argument("--only", default="*")
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.data.glob(f"{options.only}/repo.bundle"))
    if not folders:
        parser.error(f"{options.data} has no folder with repo.bundle; name a data set")
    counts, rooms, rated = [], [], list[coding_success.Rated]()
    for folder in folders:
        with tempfile.TemporaryDirectory() as out:
            counts.append(_counts(folder, options.privacy, Path(out)))
            rated += coding_success.rated(Path(out), folder)
            rooms.append(_rooms(Path(out), folder, options))
            print(folder.name, rooms[-1], file=sys.stderr)
    totals = {name: sum(each[name] for each in counts) for name in counts[0]}
    figures = {name: round(totals[name] / totals[of], 4) for of, names in (
        ("n_sessions", OF_SESSIONS), ("n_tasks", OF_TASKS), ("n_chores", OF_CHORES), ("n_repositories", OF_REPOSITORIES))
        for name in names if totals[of]} | coding_success.figures(rated) | _of_rooms(rooms)
    print(json.dumps({"benchmark": "coding", "privacy": options.privacy, **{
        name: totals[name] for name in ("n_repositories", "n_sessions", "n_tasks", "n_chores")}, "figures": figures}))
    return 0


def _rooms(out: Path, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of the environment of one repository; none where it has none."""
    if not any((out / "environments").glob("code-*")):
        return {}
    cheats = options.data / "cheats"
    row = coding_rooms.figures(out, folder, cheats if cheats.is_dir() else None)
    row |= coding_rooms.beside_docker(out, options.image) if options.image else {}
    if options.twice:
        with tempfile.TemporaryDirectory() as again:
            _run(folder, options.privacy, Path(again))
            row["equal"] = all(_digests(out / part) == _digests(Path(again) / part) for part in ("environments", "rewards"))
    return row


def _of_rooms(rooms: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all repositories with an environment."""
    rows = [row for row in rooms if row]
    if not rows:
        return {}
    total = {name: sum(row[name] for row in rows) for name in rows[0] if isinstance(rows[0][name], int | float)}
    shares = {name: round(total[name] / max(1, total[of]), 4) for name, of in (
        ("gold_paid", "n_published"), ("recorded_verdicts_right", "n_recorded"), ("honest_commits", "n_honest_commits"))}
    shares["honest_commits_pass"] = shares.pop("honest_commits")
    counts = {name: total[name] for name in (
        "n_published", "n_derived_commit", "n_derived_hunk", "derived_made", "idle_paid", "n_cheats", "cheats_paid",
        "cheats_unscored", "leaks", "forgeable")}
    margin = min(row["lowest_resolving"] for row in rows) - max(row["highest_unresolving"] for row in rows)
    names = ("mb_100_tasks", "fork_ms", "shell_ms", "graded_run_share", "graded_run_cpu_share", "shell_over_exec",
             "first_graded_s", "graded_differently")
    worst = {name: round(max(row[name] for row in rows), 4) for name in names if name in rows[0]}
    equal = {"equal": all(row["equal"] for row in rows)} if "equal" in rows[0] else {}
    return {**shares, **counts, "train_margin": round(margin, 4), **worst, **equal}


def _digests(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def _run(folder: Path, privacy: str, out: Path) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "pipelines", "run", str(folder / "logs"), "--repository",
               str(folder / "repo.bundle"), "--privacy", privacy, "--no-image", "--json", "--out", str(out)]
    ran = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def _counts(folder: Path, privacy: str, out: Path) -> dict[str, float]:
    """Return how many sessions of a repository begin where they did."""
    report = _run(folder, privacy, out)
    seconds = next(row["seconds"] for row in report["stages"] if row["stage"] == "code_tasks")
    with duckdb.connect(str(out / "warehouse.published.duckdb"), read_only=True) as warehouse:
        starts = dict(warehouse.sql("select session_id, commit_id from mart.starts order by all").fetchall())
        changes = {row["session_id"]: row for row in warehouse.sql(
            "select * from mart.code_changes order by session_id").pl().iter_rows(named=True)}
        made = {row["session_id"]: row for row in warehouse.sql(
            "select * from mart.code_tasks where session_id is not null order by session_id").pl().iter_rows(named=True)}
        recipes = warehouse.sql("select count(*) from mart.recipes").fetchall()[0][0]
        print(*warehouse.sql("""select subject, reason, detail from mart.decisions where stage in ('code_tasks', 'code_rooms')
            and reason not in ('separates', 'no_winner', 'verified') order by all""").fetchall(), sep="\n", file=sys.stderr)
    truth, tasks = (_rows(folder / "truth" / f"{name}.jsonl") for name in ("sessions", "tasks"))
    by_id = {task["task_id"]: task for task in tasks}
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
