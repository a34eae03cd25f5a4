"""The stage `starts`: what sessions of coding saw and changed of files, where each began, and what became of its change;
and the pull requests and issues of the repositories over time.

Sessions without a call that reads, edits or runs anything get no decision: they are of no repository. Without a repository the
stage has nothing to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from extractors.workspaces.changes import CodeChange, HostEvent, MainLine
from extractors.workspaces.endings import ending
from extractors.workspaces.frames import CommandRun, FileEdit, FileLines, Frame, frames
from extractors.workspaces.host_records import NAMES, HostHistory, StoredEvent, by_repository
from extractors.workspaces.repository import Repository
from extractors.workspaces.signs import Texts, signs_of, signs_of_commands
from extractors.workspaces.starts import Checkout, NoStart, StartCommit, below_root, start_of
from extractors.workspaces.success import SessionEnd, Success, success
from pipelines.building.decisions import replace_decisions
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.records import CodeChangeRow, CodeStart, Decision, HostRecord, WorkspaceStep, frame
from warehouse.store import Store
from warehouse.vocabulary import CHECKOUT

_SESSIONS = """
    with stated as (
        select session_id,
               first(json_extract_string(content, '$.commit') order by happened_at, event_id) as commit_id,
               first(json_extract_string(content, '$.branch') order by happened_at, event_id) as branch
        from core.events where kind = 'log' and tool = $checkout group by session_id),
    requests as (
        select session_id, first(content order by position, turn_id) as request,
               case when count(*) > 1 then last(content order by position, turn_id) end as last_words
        from core.turns where kind = 'message' and role = 'user' group by session_id)
    select session_id, started_at, commit_id, branch, coalesce(request, ''), coalesce(last_words, '')
    from core.sessions left join stated using (session_id) left join requests using (session_id) order by session_id"""
_CALLS = """
    select session_id, turn_id, position, arguments, content, is_error from core.turns
    where kind = 'call' and arguments is not null order by session_id, position, turn_id"""
_EVENTS = """
    select event_id, file_id, tool, arguments, happened_at from core.events
    where kind = 'log' and arguments is not null and list_contains($names, split_part(tool, '.', 1))
    order by happened_at, event_id"""


def starts(store: Store, settings: Settings) -> Counts:
    """Find what each session saw and changed of files, where it began, and what became of its change."""
    rows = _Rows()
    if settings.repository_paths:
        events = [StoredEvent(event_id, file_id, HostEvent(name, json.loads(facts), at))
                  for event_id, file_id, name, facts, at in store.read(_EVENTS, names=list(NAMES)).iter_rows()]
        sessions = {session_id: (Checkout(at, commit, branch), _UserWords(request, last))
                    for session_id, at, commit, branch, request, last in
                    store.read(_SESSIONS, checkout=CHECKOUT).iter_rows()}
        with ExitStack() as stack:
            repositories = [stack.enter_context(Repository.open(path)) for path in settings.repository_paths]
            parted = by_repository(events, repositories)
            for repository, own in zip(repositories, parted, strict=True):
                rows.add_records(repository.name, own)
            histories = [MainLine(repository, [each.event for each in own])
                         for repository, own in zip(repositories, parted, strict=True)]
            for session_id, calls in groupby(store.read(_CALLS).iter_rows(), itemgetter(0)):
                rows.add(session_id, [call[1:] for call in calls], *sessions[session_id], histories)
    counts = {"n_starts": store.replace("mart.starts", frame(CodeStart, rows.starts)),
              "n_code_changes": store.replace("mart.code_changes", frame(CodeChangeRow, rows.changes)),
              "n_workspace_steps": store.replace("mart.workspace_steps", frame(WorkspaceStep, rows.steps)),
              "n_host_records": store.replace("mart.host_records", frame(HostRecord, rows.records))}
    replace_decisions(store, "starts", frame(Decision, rows.decisions))
    return counts


class _UserWords(NamedTuple):
    """What the user of a session wrote."""

    request: str
    last: str
    """Behind the request; empty where nothing is."""


class _Rows:
    """The rows of the stage's tables."""

    def __init__(self) -> None:
        self.starts: list[CodeStart] = []
        self.changes: list[CodeChangeRow] = []
        self.steps: list[WorkspaceStep] = []
        self.records: list[HostRecord] = []
        self.decisions: list[Decision] = []

    def add_records(self, repository: str, events: list[StoredEvent]) -> None:
        """Add the pull requests and issues of a repository."""
        history = HostHistory(events)
        self.records += [HostRecord(
            repository=repository, kind=version.kind, number=version.number, valid_from=version.valid_from,
            valid_to=version.valid_to, value=json.dumps(version.value, sort_keys=True)) for version in history.versions]
        self.decisions += [Decision(stage="starts", subject=each.event_id, kept=False, reason=reason, detail=detail)
                           for each, reason, detail in history.rejected]

    def add(self, session_id: str, calls: list[tuple[str, int, str, str | None, bool | None]], checkout: Checkout,
            words: _UserWords, histories: list[MainLine]) -> None:
        """Add a session: of several repositories it is of the first in which it has a start."""
        of_calls = [(turn_id, position, frames(arguments, content, is_error))
                    for turn_id, position, arguments, content, is_error in calls]
        everything = [each for _, _, of_call in of_calls for each in of_call]
        if not everything:
            return
        self.steps += [_step(each, turn_id, place, session_id, position) for turn_id, position, of_call in of_calls
                       for place, each in enumerate(of_call)]
        made = [(history, start_of(checkout, everything, history.repository)) for history in histories]
        history, start = next(((of, each) for of, each in made if isinstance(each, StartCommit)), made[0])
        if isinstance(start, NoStart):
            self.decisions.append(Decision(
                stage="starts", subject=session_id, kept=False, reason=start.reason, detail=start.detail))
            return
        name = history.repository.name
        self.starts.append(CodeStart(
            session_id=session_id, repository=name, commit_id=start.commit_id, how=start.how,
            rivals=list(start.rivals), dirty=json.dumps(start.dirty, sort_keys=True)))
        self.changes.append(_change(session_id, words, everything, start, history))
        self.decisions.append(Decision(
            stage="starts", subject=session_id, kept=True, reason=f"start_by_{start.how}",
            detail=f"It began at {start.commit_id[:12]} of {name}; {len(start.rivals)} other commits fit as well."))


def _change(
    session_id: str, words: _UserWords, everything: Sequence[Frame], start: StartCommit, history: MainLine,
) -> CodeChangeRow:
    commits, own = history.repository.commits, below_root(everything, history.repository)
    change = history.change_of(words.request, own, commits[start.commit_id])
    diff = history.diff(commits[change.winner]) if change.winner is not None else None
    ended = _ended(own, words, start, history, change)
    return CodeChangeRow(
        session_id=session_id, repository=history.repository.name, pull_request=change.number, state=change.state,
        merge_commit=change.merge_commit, reverted_by=change.reverted_by, ci=change.ci, winner=change.winner,
        won_by=change.won_by, source_files=sorted(diff.of_kind("source")) if diff else [],
        test_files=sorted(diff.of_kind("tests")) if diff else [], success=ended.probability, evidence=list(ended.evidence))


def _ended(own: list[Frame], words: _UserWords, start: StartCommit, history: MainLine, change: CodeChange) -> Success:
    """Return how likely a session solved what it was asked for; one that changed nothing is not guessed."""
    repository = history.repository
    commit = repository.commits[start.commit_id]

    def begun(path: str) -> str | None:
        file = repository.file(commit, path)
        return start.dirty.get(path) or (repository.text(file.blob_id) if file is not None else None)

    edits = [frame for frame in own if isinstance(frame, FileEdit)]
    if not edits:
        return Success(None, ())
    signs = signs_of(*_texts(own, edits, begun)) | signs_of_commands(own)
    if change.winner is not None and change.won_by == "likeness":
        files = history.diff(repository.commits[change.winner]).files
        won = [{path: repository.text(file.blob_id) if file is not None else None for path, pair in files.items()
                for file in (pair[side],)} for side in (0, 1)]
        own_too = signs_of(*won)
        signs = {sign: file for sign, file in signs.items() if own_too.get(sign) != file}
    merge = repository.commits.get(change.merge_commit or "")
    return success(SessionEnd(change, history.has_pull_requests, merge is not None and history.is_rewritten(merge), signs,
                              words.last, own))


def _texts(own: list[Frame], edits: list[FileEdit], begun: Callable[[str], str | None]) -> tuple[Texts, Texts]:
    """Return the texts of the files that a session changed, before and after."""
    texts = ending(own, begun)
    if texts is None:   # an edit does not fit: what edits took out and put in is all that is known
        paths = {frame.path for frame in edits}
        before, after = ({path: "\n".join(frame.texts[side] or "" for frame in edits if frame.path == path) for path in paths}
                         for side in (0, 1))
        return before, after
    return {path: begun(path) for path in texts}, {**{frame.path: "" for frame in edits}, **texts}


def _step(each: Frame, turn_id: str, place: int, session_id: str, position: int) -> WorkspaceStep:
    of_turn: dict[str, Any] = {"turn_id": turn_id, "place": place, "session_id": session_id, "position": position}
    if isinstance(each, CommandRun):
        return WorkspaceStep(**of_turn, kind="run", path=None, first_line=None, before=None, text=each.command,
                             exit_code=each.exit_code)
    if isinstance(each, FileLines):
        return WorkspaceStep(**of_turn, kind="read", path=each.path, first_line=each.first_line, before=None,
                             text="\n".join(each.lines), exit_code=None)
    before, text = each.texts
    return WorkspaceStep(**of_turn, kind="edit", path=each.path, first_line=each.line, before=before, text=text,
                         exit_code=None)
