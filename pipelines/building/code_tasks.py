"""The stage `code_tasks`: the recipe of each repository, the tasks that sessions of coding were about, and derived ones.

Runs the repositories' tests, in sandboxes without a network. Without a repository the stage has nothing to do; a repository
without a recipe, and a session that makes no task, have a decision with the reason.
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from env_builder.runtime.workspace.junit import test_id
from env_builder.runtime.workspace.sandbox import SandboxUnavailable, best_way
from env_builder.shell.acceptance import AcceptedRecipe, Checked, NoRecipe, find_recipe, given_recipe
from env_builder.shell.recipe import RepositoryRecipe, Sites
from env_builder.shell.tasks import Candidate, separation
from env_builder.shell.trials import Trials
from extractors.configuration import CodeRepository
from extractors.workspaces.changes import HostEvent
from extractors.workspaces.ci_runs import CiRecord, outcomes_by_commit
from extractors.workspaces.goal_texts import goal_text
from extractors.workspaces.repository import Repository
from pipelines.building.code_trees import CodeTrees, TaskStart, test_names
from pipelines.building.decisions import replace_decisions
from pipelines.building.derived_tasks import DerivedLimits, DerivedTasks
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import CodeRecipe, CodeTask, Decision, frame
from warehouse.store import Store
from warehouse.vocabulary import CI_JOB, TEST_RUN

_SESSIONS = """
    select session_id, repository, commit_id, dirty, winner, pull_request,
        coalesce((select list(path order by position, place) from mart.workspace_steps as s
                  where s.session_id = c.session_id and kind = 'edit' and path is not null), []) as edited,
        coalesce((select list(content order by position, turn_id) from core.turns as t where t.session_id = c.session_id
                  and kind = 'message' and role = 'user' and content is not null), []) as words
    from mart.starts join mart.code_changes as c using (session_id, repository) order by session_id"""
_CI = """
    select distinct tool, arguments, path, happened_at from core.events join raw.files using (file_id)
    where kind = 'log' and arguments is not null and (tool in ($tests, $job) or split_part(tool, '.', 1) = 'workflow_run')
    order by all"""
_EVENTS = """
    select tool, arguments, happened_at from core.events
    where kind = 'log' and arguments is not null and split_part(tool, '.', 1) in ('push', 'pull_request', 'issues')
    order by happened_at, event_id"""
_MOST_CHECKED = 40
"""Commits of the main line with results of CI with which a recipe is compared, the latest."""
_PULLS = re.compile(r"\(#(\d+)\)|pull request #(\d+)")
SITES = ".sites"
"""Folder of OUT with packages of recipes: a cache."""


def code_tasks(store: Store, settings: Settings) -> Counts:
    """Find the recipe of each repository, and make tasks of the sessions about it."""
    paths = settings.repository_paths
    rows = _CodeRows([HostEvent(name, json.loads(facts), at) for name, facts, at in store.read(_EVENTS).iter_rows()]
                     if paths else ())
    if paths:
        records = [CiRecord(tool, json.loads(facts), path, at) for tool, facts, path, at in
                   store.read(_CI, tests=TEST_RUN, job=CI_JOB).iter_rows()]
        sessions = list(store.read(_SESSIONS).iter_rows(named=True))
        given = {settings.repository_path(each.path): each for each in settings.configured.repositories}
        with tempfile.TemporaryDirectory(prefix="traceroom-") as scratch:
            Path(scratch).chmod(0o755)
            for path in paths:
                with Repository.open(path) as repository:
                    own = [each for each in sessions if each["repository"] == repository.name]
                    rows.add(repository, own, outcomes_by_commit(records), given.get(path),
                             Path(settings.out) / SITES, Path(scratch))
    counts = {"n_recipes": store.replace("mart.recipes", frame(CodeRecipe, rows.recipes)),
              "n_code_tasks": store.replace("mart.code_tasks", frame(CodeTask, rows.tasks)),
              "n_derived": sum(task.session_id is None for task in rows.tasks)}
    replace_decisions(store, "code_tasks", frame(Decision, rows.decisions))
    return counts


class _CodeRows:
    """The rows of the stage's tables."""

    def __init__(self, events: Sequence[HostEvent] = ()) -> None:
        """`events`: of the code host."""
        self._events = events
        self.recipes: list[CodeRecipe] = []
        self.tasks: list[CodeTask] = []
        self.decisions: list[Decision] = []

    def add(
        self, repository: Repository, sessions: list[dict[str, Any]], outcomes: Mapping[str, list[dict[str, str]]],
        given: CodeRepository | None, sites: Path, scratch: Path,
    ) -> None:
        """Add a repository with its sessions."""
        trees = CodeTrees(repository)
        try:
            trials = Trials(Sites(sites), best_way(), scratch)
        except SandboxUnavailable as error:
            result: AcceptedRecipe | NoRecipe = NoRecipe("no_sandbox", f"Its tests cannot be run: {error}.")
        else:
            result = _recipe_of(trees, outcomes, given, trials)
        if isinstance(result, NoRecipe):
            self._decide(repository.name, False, result.reason, result.detail)
            for session in sessions:
                self._decide(session["session_id"], False, "no_recipe", f"{repository.name} has no recipe: {result.reason}.")
            return
        self.recipes.append(CodeRecipe(
            repository=repository.name, recipe_id=result.recipe.digest, recipe=result.recipe.to_json(), share=result.share,
            n_runs=result.n_runs))
        self._decide(repository.name, True, result.reason, result.detail)
        for session in sessions:
            self._add_session(session, trees, result.recipe, trials)
        settings = given or CodeRepository(path="")
        derived = DerivedTasks(trees, self._events, result.recipe, trials).rows(
            {task.winner for task in self.tasks}, DerivedLimits(settings.derived_commits, settings.derived_hunks))
        self.tasks += derived.tasks
        self.decisions += derived.decisions

    def _add_session(self, session: Mapping[str, Any], trees: CodeTrees, recipe: RepositoryRecipe, trials: Trials) -> None:
        subject = session["session_id"]
        if session["winner"] is None:
            self._decide(subject, False, "no_winner", "No change is known that solved what it was about.")
            return
        own = TaskStart(session["commit_id"], json.loads(session["dirty"]), session["winner"])
        chosen = next(_starts(own, session["edited"], trees), None)
        if chosen is None:
            self._decide(subject, False, "fix_not_on_start", "The change that won cannot be made where it began.")
            return
        start, candidate = chosen
        result = separation(candidate, recipe, trials)
        self._decide(subject, result.is_task, result.reason, result.detail)
        if result.is_task:
            goal, *script = (_goal(words, session, candidate, result.fail_to_pass, trees.repository) for words in
                             session["words"] or [""])
            self.tasks.append(CodeTask(
                task_id=f"code-{subject}", session_id=subject, repository=trees.repository.name, recipe_id=recipe.digest,
                start_commit=session["commit_id"], base_commit=start.commit_id,
                base="start" if start is own else "parent", dirty=json.dumps(dict(start.dirty), sort_keys=True),
                winner=session["winner"], goal=goal, script=script, fail_to_pass=list(result.fail_to_pass),
                pass_to_pass=list(result.pass_to_pass), flaky=list(result.flaky), test_files=sorted(candidate.tests),
                fix_files=sorted(candidate.fix), derived_from="session"))

    def _decide(self, subject: str, kept: bool, reason: str, detail: str) -> None:
        self.decisions.append(Decision(stage="code_tasks", subject=subject, kept=kept, reason=reason, detail=detail))


def _recipe_of(
    trees: CodeTrees, outcomes: Mapping[str, list[dict[str, str]]], given: CodeRepository | None, trials: Trials,
) -> AcceptedRecipe | NoRecipe:
    repository = trees.repository
    line = repository.history(repository.main) if repository.main else []
    with_results = [commit for commit in line if commit.commit_id in outcomes][:_MOST_CHECKED]
    latest = [commit for commit in line[:1] if commit not in with_results]
    checked = []
    for commit in [*latest, *with_results] or line[:2]:
        tree = trees.tree(commit)
        checked.append(Checked(commit.commit_id, tree, [
            {test_id(*_place(test), tree): outcome for test, outcome in run.items()}
            for run in outcomes.get(commit.commit_id, ())]))
    if len(checked) == 1:
        checked += [Checked(commit.commit_id, trees.tree(commit), ()) for commit in line[1:2]]
    if given is not None and given.command:
        recipe = RepositoryRecipe(command=tuple(shlex.split(given.command)), results=given.junit,
                        setup=tuple(shlex.split(given.setup or "")))
        return given_recipe(recipe, checked, trials)
    if not line:
        return NoRecipe("no_main_line", "It has no commit on a main line.")
    return find_recipe(checked, line[0].at, trials)


def _place(test: str) -> tuple[str, str]:
    """Return the class and the name of a test, of its id in JUnit files."""
    place, separator, name = test.partition("::")
    return (place, name) if separator else ("", place)


def _starts(own: TaskStart, edited: list[str], trees: CodeTrees) -> Iterator[tuple[TaskStart, Candidate]]:
    """Yield where a task may begin: where the session did, else at the winner's parent."""
    for start in (own, trees.parent_start(own, edited)):
        candidate = trees.candidate(start) if start is not None else None
        if start is not None and candidate is not None:
            yield start, candidate


def _goal(
    words: str, session: Mapping[str, Any], candidate: Candidate, fail_to_pass: tuple[str, ...], repository: Repository,
) -> str:
    visible = test_names(candidate.start)
    names = {test.rpartition("::")[2].partition("[")[0] for test in fail_to_pass}
    winner = repository.commits[session["winner"]]
    numbers = {int(number) for each in _PULLS.findall(winner.message) for number in each if number}
    own = {session["pull_request"]} - {None}
    return goal_text(words, lambda short: repository.resolve(short) is not None, numbers | own,
                     {name for name in names if len(name) > 4 and name not in visible})
