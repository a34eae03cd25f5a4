"""The stage `starts`: what sessions of coding saw and changed of files, and the commit at which each began.

Sessions without a call that reads, edits or runs anything get no decision: they are of no repository. Without a repository the
stage has nothing to do.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from typing import Any

from extractors.workspaces.frames import CommandRun, FileLines, Frame, frames
from extractors.workspaces.repository import Repository
from extractors.workspaces.starts import Checkout, NoStart, StartCommit, start_of
from pipelines.building.decisions import replace_decisions
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import CodeStart, Decision, WorkspaceStep, frame
from warehouse.store import Store
from warehouse.vocabulary import CHECKOUT

_SESSIONS = """
    with stated as (
        select session_id,
               first(json_extract_string(content, '$.commit') order by happened_at, event_id) as commit_id,
               first(json_extract_string(content, '$.branch') order by happened_at, event_id) as branch
        from core.events where kind = 'log' and tool = $checkout group by session_id)
    select session_id, started_at, commit_id, branch
    from core.sessions left join stated using (session_id) order by session_id"""
_CALLS = """
    select session_id, turn_id, position, arguments, content, is_error from core.turns
    where kind = 'call' and arguments is not null order by session_id, position, turn_id"""


def starts(store: Store, settings: Settings) -> Counts:
    """Find what each session saw and changed of files, and where it began."""
    rows = _Starts()
    if settings.repository_paths:
        checkouts = {session_id: Checkout(at, commit, branch) for session_id, at, commit, branch in
                     store.read(_SESSIONS, checkout=CHECKOUT).iter_rows()}
        with ExitStack() as stack:
            repositories = [stack.enter_context(Repository.open(path)) for path in settings.repository_paths]
            for session_id, calls in groupby(store.read(_CALLS).iter_rows(), itemgetter(0)):
                rows.add(session_id, [call[1:] for call in calls], checkouts[session_id], repositories)
    n_starts = store.replace("mart.starts", frame(CodeStart, rows.starts))
    n_steps = store.replace("mart.workspace_steps", frame(WorkspaceStep, rows.steps))
    replace_decisions(store, "starts", frame(Decision, rows.decisions))
    return {"n_starts": n_starts, "n_workspace_steps": n_steps}


class _Starts:
    """The rows of the stage's tables."""

    def __init__(self) -> None:
        self.starts: list[CodeStart] = []
        self.steps: list[WorkspaceStep] = []
        self.decisions: list[Decision] = []

    def add(self, session_id: str, calls: list[tuple[str, int, str, str | None, bool | None]], checkout: Checkout,
            repositories: list[Repository]) -> None:
        """Add a session. Of several repositories it is of the one in which most of its files are."""
        of_calls = [(turn_id, position, frames(arguments, content, is_error))
                    for turn_id, position, arguments, content, is_error in calls]
        everything = [each for _, _, of_call in of_calls for each in of_call]
        if not everything:
            return
        self.steps += [_step(each, turn_id, place, session_id, position) for turn_id, position, of_call in of_calls
                       for place, each in enumerate(of_call)]
        made = [(repository, start_of(checkout, everything, repository)) for repository in repositories]
        repository, start = next(((of, each) for of, each in made if isinstance(each, StartCommit)), made[0])
        if isinstance(start, NoStart):
            self.decisions.append(Decision(
                stage="starts", subject=session_id, kept=False, reason=start.reason, detail=start.detail))
            return
        self.starts.append(CodeStart(
            session_id=session_id, repository=repository.name, commit_id=start.commit_id, how=start.how,
            rivals=list(start.rivals), dirty=json.dumps(start.dirty, sort_keys=True)))
        self.decisions.append(Decision(
            stage="starts", subject=session_id, kept=True, reason=f"start_by_{start.how}",
            detail=f"It began at {start.commit_id[:12]} of {repository.name}; {len(start.rivals)} other commits fit as well."))


def _step(each: Frame, turn_id: str, place: int, session_id: str, position: int) -> WorkspaceStep:
    of_turn: dict[str, Any] = {"turn_id": turn_id, "place": place, "session_id": session_id, "position": position}
    if isinstance(each, CommandRun):
        return WorkspaceStep(**of_turn, kind="run", path=None, first_line=None, before=None, text=each.command,
                             exit_code=each.exit_code)
    if isinstance(each, FileLines):
        return WorkspaceStep(**of_turn, kind="read", path=each.path, first_line=each.first_line, before=None,
                             text="\n".join(each.lines), exit_code=None)
    before, text = each.before, each.after
    if each.patch is not None:
        before = "\n".join(line for hunk in each.patch.hunks for line in hunk.before)
        text = "\n".join(line for hunk in each.patch.hunks for line in hunk.after)
    return WorkspaceStep(**of_turn, kind="edit", path=each.path, first_line=each.line, before=before, text=text,
                         exit_code=None)
