"""The stage `code_rooms`: an environment of each repository, from its tasks that hold, and what sessions had left, verified.

Written aside and renamed into place beside the environments of services, under the repository's name. Without tasks of code the
stage has nothing to do.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from env_builder import bundle
from env_builder.perturbations import perturbations
from env_builder.runtime.workspace.sandbox import ChangedFile, SandboxUnavailable
from env_builder.shell.recipe import RepositoryRecipe, Sites
from env_builder.shell.rooms import CodeRoom, RepositoryTask, VerifiedTask, winners_split
from extractors.workspaces.endings import ending
from extractors.workspaces.frames import Frame, frames
from extractors.workspaces.repository import Repository
from extractors.workspaces.starts import below_root
from extractors.workspaces.tool_calls import EFFECTS, as_workspace_tools
from pipelines import progress
from pipelines.building.code_tasks import SITES
from pipelines.building.code_trees import CodeTrees, TaskStart
from pipelines.building.decisions import replace_decisions
from pipelines.building.environments import move, names_of
from pipelines.privacy import guard as privacy
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import CodeRoomRow, CodeVerdict, Decision, frame
from warehouse.store import Store

STAGE = "code_rooms"
_TASKS = """
    select t.*, s.started_at from mart.code_tasks as t left join core.sessions as s using (session_id) order by t.task_id"""
_CALLS = """
    select session_id, arguments, content, is_error from core.turns
    where kind = 'call' and arguments is not null and session_id in (select session_id from mart.code_tasks)
    order by session_id, position, turn_id"""

_TURNS = """
    select t.* from core.turns as t join mart.starts as s using (session_id) where s.repository = $repository
    order by session_id, position, turn_id"""
_MEASURED = ("tool", "n_calls", "n_timed", "latency_ms", "fault_rate", "faults")


def code_rooms(store: Store, settings: Settings) -> Counts:
    """Verify the tasks of each repository, and write an environment of those that hold."""
    rows = _RoomRows()
    tasks = store.read(_TASKS).to_dicts()
    if tasks:
        calls = {session_id: [each for call in of_session for each in frames(*call[1:])]
                 for session_id, of_session in groupby(store.read(_CALLS).iter_rows(), itemgetter(0))}
        records = store.table("mart.host_records").sort("repository", "kind", "number", "valid_from").to_dicts()
        recipes = {row["repository"]: row["recipe"] for row in store.table("mart.recipes").to_dicts()}
        for path in settings.repository_paths:
            with Repository.open(path) as repository:
                own = [task for task in tasks if task["repository"] == repository.name]
                if own and repository.name in recipes:
                    recipe = RepositoryRecipe.from_json(recipes[repository.name])
                    rows.add(RoomSource(repository, recipe, own, calls, _host(records, repository.name),
                                        _perturbations(store, repository.name, recipe), privacy.stated(store)), settings)
    _remove_others(store, settings, {row.environment for row in rows.rooms})
    counts = {"n_code_rooms": store.replace("mart.code_rooms", frame(CodeRoomRow, rows.rooms)),
              "n_code_verdicts": store.replace("mart.code_verdicts", frame(CodeVerdict, rows.verdicts)),
              "n_code_published": sum(row.n_tasks for row in rows.rooms)}
    replace_decisions(store, STAGE, frame(Decision, rows.decisions))
    return counts


def hold(store: Store, settings: Settings) -> bool:
    """Whether the directories are as they were written, by what their manifests say."""
    return all(bundle.stands(settings.environments / row["environment"], row["content_digest"])
               and (settings.rewards / row["environment"] / "rewards.json").is_file()
               for row in store.table("mart.code_rooms").to_dicts())


def environment_of(repository: str) -> str:
    """Return the name of a repository's environment."""
    return f"code-{names_of([repository])[repository]}"


class RoomSource(NamedTuple):
    """What the environment of a repository is made of."""

    repository: Repository
    recipe: RepositoryRecipe
    tasks: list[dict[str, Any]]
    """Rows of `mart.code_tasks`."""
    calls: Mapping[str, list[Frame]]
    """Session -> what its calls saw and changed."""
    host: list[dict[str, Any]]
    """Rows of host.jsonl."""
    perturbations: list[dict[str, Any]]
    """Rows of perturbations.jsonl."""
    privacy: str
    """As manifests state it."""


def _perturbations(store: Store, repository: str, recipe: RepositoryRecipe) -> list[dict[str, Any]]:
    """Return how long the calls of sessions in a repository took, and how often they failed by themselves, by tool."""
    turns = as_workspace_tools(store.read(_TURNS, repository=repository), recipe.command)
    return [{name: row[name] for name in _MEASURED} for row in perturbations(turns, EFFECTS)
            if row["latency_ms"] or row["faults"]]


def _host(records: list[dict[str, Any]], repository: str) -> list[dict[str, Any]]:
    """Return a repository's pull requests and issues as rows of host.jsonl."""
    return [{"class": row["kind"], "number": row["number"], "from": row["valid_from"].isoformat(),
             "to": row["valid_to"] and row["valid_to"].isoformat(), "value": json.loads(row["value"])}
            for row in records if row["repository"] == repository]


class _RoomRows:
    """The rows of the stage's tables."""

    def __init__(self) -> None:
        self.rooms: list[CodeRoomRow] = []
        self.verdicts: list[CodeVerdict] = []
        self.decisions: list[Decision] = []

    def add(self, source: RoomSource, settings: Settings) -> None:
        """Add a repository with its tasks."""
        repository, recipe, tasks, calls, host, measured, policy = source
        name = environment_of(repository.name)
        draft = Path(settings.out) / ".drafts" / name
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        progress.tell(STAGE, 0, len(tasks), repository.name)
        try:
            site = Sites(Path(settings.out) / SITES).site(recipe) if recipe.minor is not None else None
            room = CodeRoom(name, recipe, site, draft, host)
            verified = room.verified(_repository_tasks(repository, tasks, calls))
        except SandboxUnavailable as error:
            self.decisions.append(Decision(
                stage=STAGE, subject=repository.name, kept=False, reason="no_sandbox", detail=f"{error}."))
            return
        self._note(verified)
        n_holding = sum(each.holds for each in verified)
        detail = f"{n_holding} of {len(verified)} tasks of {repository.name} hold."
        self.decisions.append(Decision(stage=STAGE, subject=name, kept=n_holding > 0,
                                       reason="published" if n_holding else "no_task_holds", detail=detail))
        if n_holding:
            digests = room.write(verified, draft / "environment", draft / "rewards", measured, policy)
            move(draft / "rewards", settings.rewards / name)
            move(draft / "environment", settings.environments / name)
            self.rooms.append(CodeRoomRow(
                environment=name, repository=repository.name, content_digest=digests.content_digest,
                rewards_digest=digests.rewards_digest, n_tasks=n_holding))
        shutil.rmtree(draft, ignore_errors=True)

    def _note(self, verified: list[VerifiedTask]) -> None:
        for each in verified:
            self.decisions.append(Decision(
                stage=STAGE, subject=each.task.task_id, kept=each.holds, reason=each.reason, detail=each.detail))
            self.verdicts += [CodeVerdict(
                task_id=verdict.task_id, session_id=verdict.session_id, resolved=verdict.resolved,
                forgeable=each.questions.forgeable, detail=verdict.detail) for verdict in each.verdicts]


def _repository_tasks(
    repository: Repository, rows: list[dict[str, Any]], calls: Mapping[str, list[Frame]],
) -> list[RepositoryTask]:
    """Return the tasks of rows of `mart.code_tasks`, with what their sessions had left."""
    trees, splits = CodeTrees(repository), winners_split(row["winner"] for row in rows)
    tasks = []
    for row in rows:
        start = TaskStart(row["base_commit"], json.loads(row["dirty"]), row["winner"])
        candidate = trees.undone(start) if row["derived_from"] == "hunk" else trees.candidate(start)
        if candidate is None:
            continue
        began = {**candidate.start}

        def begun(path: str, began: Mapping[str, ChangedFile] = began) -> str | None:
            return began[path].content.decode("utf-8", "replace") if path in began else None

        session_id, at = row["session_id"], row["started_at"] or repository.commits[row["base_commit"]].at
        texts = ending(below_root(calls[session_id], repository), begun) if session_id in calls else None
        sessions = {} if texts is None else {session_id: {
            path: None if text is None else ChangedFile(text.encode(), began[path].mode if path in began else 0o100644)
            for path, text in texts.items()}}
        tasks.append(RepositoryTask(
            row["task_id"], session_id or row["task_id"], at.isoformat(), row["goal"], row["script"], splits[row["winner"]],
            row["winner"], candidate, tuple(row["fail_to_pass"]), tuple(row["pass_to_pass"]), sessions,
            None if row["derived_from"] == "session" else row["derived_from"]))
    return tasks


def _remove_others(store: Store, settings: Settings, names: set[str]) -> None:
    """Remove the environments of repositories that no run makes any more."""
    for name in set(store.table("mart.code_rooms")["environment"]) - names:
        shutil.rmtree(settings.environments / name, ignore_errors=True)
        shutil.rmtree(settings.rewards / name, ignore_errors=True)
