"""What became of the change that a session of coding made, and which change solved what the session was asked for.

In: a session's frames and request, where it began, the events of its code host, the repository. Out: a `CodeChange`.

The session's pull request is the one whose number its commands printed, or whose branch it pushed.
It is merged if the host says so; its
commit is the one the host names, else the push to its base at that moment, else the one whose message names its number. It was
reverted if a later commit says so, or puts back what each of its files was before.

The winner is the session's own commit where it was merged and not reverted; else the commit on the main line after the
session's start that is most about the same: its message shares rare words or a ticket with the request, it changes files that
the session changed, and lines that it changed. Without enough of these the winner is unknown. Only commits that
change source files count.

Does not see: squashed changes of several requests; a fix in another repository; whether the change is right (tests decide).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Literal

from extractors.workspaces.file_kinds import kind_of
from extractors.workspaces.frames import CommandRun, FileEdit, Frame
from extractors.workspaces.patches import lines_of
from extractors.workspaces.repository import Commit, Repository, TreeFile

_PULL_NUMBER = re.compile(r"/(?:pull|pulls|merge_requests|pull-requests)/(\d+)\b")
_NEW_BRANCH = re.compile(r"\bgit (?:checkout|switch) (?:-\S+ )*-[bBcC] (\S+)")
_PUSHED = re.compile(r"\bgit push (?:-\S+ )*\S+ (?:HEAD:)?([\w./-]+)")
_REVERTS = re.compile(r"This reverts commit ([0-9a-f]{7,40})")
_REVERT_OF = re.compile(r'^Revert "(.+)"', re.MULTILINE)
_TICKET = re.compile(r"\b[A-Z][A-Z0-9]+-\d+\b|#\d+\b")
_WORD = re.compile(r"[^\W_]{2,}")
_SAME_MOMENT = timedelta(seconds=10)
_SOON = timedelta(days=14)
_FAR = 100
"""Commits before a commit among which the one is looked for that it takes back."""
FEWEST = 0.5
"""Least likeness, of at most 3, from which on a commit is about what a session was asked for."""
State = Literal["merged", "closed", "open", "none"]


@dataclass(frozen=True, slots=True)
class HostEvent:
    """An event of the code host."""

    name: str
    facts: dict[str, Any]
    at: datetime | None


@dataclass(frozen=True, slots=True)
class CodeChange:
    """What became of a session's change."""

    number: int | None = None
    """Of its pull request."""
    state: State = "none"
    merge_commit: str | None = None
    reverted_by: str | None = None
    ci: str | None = None
    """How the last run of CI on the pull request's head ended."""
    winner: str | None = None
    """The commit that solved what the session was asked for."""
    won_by: str = "nothing"
    """itself: what the session made was merged and stayed; likeness: another change, about the same; nothing: none is known."""


class CommitDiff:
    """What a commit changed against its first parent."""

    def __init__(self, commit: Commit, repository: Repository) -> None:
        self.commit = commit
        self._repository = repository
        parent = repository.commits.get(commit.parents[0]) if commit.parents else None
        self.files = repository.changes(parent.tree_id if parent is not None else None, commit.tree_id)
        """Path -> the file before and after."""

    def of_kind(self, kind: str) -> set[str]:
        """Return the changed files of a kind (`kind_of`)."""
        return {path for path in self.files if kind_of(path) == kind}

    @cached_property
    def lines(self) -> Counter[str]:
        """Lines of source that it took out or put in."""
        changed: Counter[str] = Counter()
        for path in self.of_kind("source"):
            texts = (self._repository.text(file.blob_id) if file is not None else None for file in self.files[path])
            changed += changed_lines(*(text or "" for text in texts))
        return changed


def changed_lines(before: str, after: str) -> Counter[str]:
    """Return the lines that only one of two texts has, without white space around them and without empty ones."""
    one, other = (Counter(line.strip() for line in lines_of(text)) for text in (before, after))
    changed = (one - other) + (other - one)
    del changed[""]
    return changed


class MainLine:
    """The main line of a repository, read once for all sessions."""

    def __init__(self, repository: Repository, events: Iterable[HostEvent]) -> None:
        self.repository = repository
        self.events = sorted(events, key=lambda event: (event.at is None, event.at, event.name))
        self.commits = list(reversed(repository.history(repository.main))) if repository.main else []
        """The oldest first."""
        self._diffs: dict[str, CommitDiff] = {}
        words = [set(_words(commit.message)) for commit in self.commits]
        counts = Counter(word for each in words for word in each)
        self._rarity = {word: math.log((1 + len(words)) / n) for word, n in counts.items()}

    def diff(self, commit: Commit) -> CommitDiff:
        """Return what a commit changed."""
        if commit.commit_id not in self._diffs:
            self._diffs[commit.commit_id] = CommitDiff(commit, self.repository)
        return self._diffs[commit.commit_id]

    def change_of(self, request: str, frames: Sequence[Frame], start: Commit) -> CodeChange:
        """Return what became of what a session changed. `request`: the words of its user."""
        edited = {frame.path for frame in frames if isinstance(frame, FileEdit)}
        number, pulls = self._pull_request(frames)
        state: State = "none"
        merge = reverted = None
        if pulls:
            last = pulls[-1].facts
            state = "merged" if last.get("merged") is True else "closed" if last.get("state") == "closed" else "open"
            merge = self.merge(number, pulls[-1]) if state == "merged" else None
            reverted = self.reverted_by(merge) if merge is not None else None
        ci = self._ci({event.facts.get("head_commit") for event in pulls})
        winner, won_by = merge if merge is not None and self.diff(merge).of_kind("source") else None, "itself"
        if merge is None or reverted is not None:
            excluded = {each.commit_id for each in (merge, reverted) if each is not None}
            is_code = any(kind_of(path) in ("source", "tests") for path in edited)
            winner, won_by = self._most_alike(request, frames, start, excluded) if is_code else None, "likeness"
        return CodeChange(number, state, merge.commit_id if merge else None, reverted.commit_id if reverted else None, ci,
                          winner.commit_id if winner else None, won_by if winner else "nothing")

    @property
    def has_pull_requests(self) -> bool:
        """Whether changes are proposed by pull requests here."""
        return any(event.name.startswith("pull_request.") for event in self.events)

    def is_rewritten(self, merge: Commit) -> bool:
        """Return whether most lines of source that a commit put in are gone two weeks later."""
        until = [commit for commit in self.commits if commit.at <= merge.at + _SOON]
        if merge not in until:
            return False
        put_in = gone = 0
        for path in self.diff(merge).of_kind("source"):
            before, after, later = (self._counted(file) for file in (
                *self.diff(merge).files[path], self.repository.file(until[-1], path)))
            put_in += (new := after - before).total()
            gone += (new - later).total()
        return gone > put_in / 2

    def _counted(self, file: TreeFile | None) -> Counter[str]:
        text = self.repository.text(file.blob_id) if file is not None else None
        return Counter(line.strip() for line in lines_of(text or "") if line.strip())

    def _pull_request(self, frames: Sequence[Frame]) -> tuple[int | None, list[HostEvent]]:
        """Return the session's pull request: its number, and its events in order."""
        runs = [frame for frame in frames if isinstance(frame, CommandRun)]
        numbers = [int(match[1]) for run in runs for match in _PULL_NUMBER.finditer(run.output)]
        branches = {match[1] for run in runs for pattern in (_NEW_BRANCH, _PUSHED) for match in pattern.finditer(run.command)}
        pulls = [event for event in self.events if event.name.startswith("pull_request.")]
        number = numbers[-1] if numbers else next((event.facts.get("number") for event in reversed(pulls)
                                             if event.facts.get("head_ref") in branches), None)
        return number, [event for event in pulls if number is not None and event.facts.get("number") == number]

    def merge(self, number: int | None, closed: HostEvent) -> Commit | None:
        """Return the commit that a pull request became on the main line."""
        named = self.repository.commits.get(str(closed.facts.get("merge_commit")))
        if named is not None:
            return named
        pushes = (event.facts.get("after") for event in self.events if event.name == "push" and event.at is not None
                  and closed.at is not None and abs(event.at - closed.at) <= _SAME_MOMENT)
        pushed = next((self.repository.commits[each] for each in pushes if each in self.repository.commits), None)
        marks = re.compile(rf"\(#{number}\)|Merge pull request #{number}\b")
        return pushed or next((commit for commit in self.commits if marks.search(commit.message)
                               and not _REVERT_OF.search(commit.message)), None)

    def reverted_by(self, merge: Commit) -> Commit | None:
        """Return the commit that took a change back."""
        subject, files = merge.message.partition("\n")[0], self.diff(merge).files
        after = False
        for commit in self.commits:
            if after:
                by_id, by_subject = _REVERTS.search(commit.message), _REVERT_OF.search(commit.message)
                if (by_id is not None and merge.commit_id.startswith(by_id[1])) or (
                        by_subject is not None and by_subject[1] == subject):
                    return commit
                if files and commit.parents and all(
                        self.repository.file(commit, path) == before for path, (before, _) in files.items()):
                    return commit
            after = after or commit.commit_id == merge.commit_id
        return None

    def is_revert(self, commit: Commit) -> bool:
        """Return whether a commit takes an earlier one back: it says so, or its files are as they were before that one."""
        if _REVERTS.search(commit.message) or _REVERT_OF.search(commit.message):
            return True
        files = self.diff(commit).files
        before = self.commits[max(0, self.commits.index(commit) - _FAR):self.commits.index(commit)]
        return any(files.keys() == self.diff(each).files.keys() and each.parents and all(
            after == self.diff(each).files[path][0] for path, (_, after) in files.items()) for each in before)

    def _ci(self, heads: set[str | None]) -> str | None:
        ended = [event.facts.get("conclusion") for event in self.events
                 if event.facts.get("commit") in heads - {None} and event.facts.get("conclusion") is not None]
        return ended[-1] if ended else None

    def _most_alike(self, request: str, frames: Sequence[Frame], start: Commit, without: set[str]) -> Commit | None:
        """Return the commit after a session's start that is most about what it was asked for."""
        paths = {frame.path for frame in frames if isinstance(frame, FileEdit)}
        lines = sum((changed_lines(*(text or "" for text in frame.texts)) for frame in frames if isinstance(frame, FileEdit)),
                    Counter[str]())
        best: tuple[float, Commit] | None = None
        for commit in self.commits:
            if commit.at <= start.at or commit.commit_id in without or _REVERT_OF.search(commit.message):
                continue
            diff = self.diff(commit)
            if not diff.of_kind("source"):
                continue
            score = self._words_alike(request, commit.message) + _share(paths, set(diff.files)) / 2 + _shared(lines, diff.lines)
            if score > (best[0] if best is not None else 0.0):
                best = score, commit
        return best[1] if best is not None and best[0] >= FEWEST and self._words_alike(request, best[1].message) > 0 else None

    def _words_alike(self, request: str, message: str) -> float:
        """Return how much of a message's rare words a request has; 1 for a ticket that both name."""
        if set(_TICKET.findall(request)) & set(_TICKET.findall(message)):
            return 1.0
        words = set(_words(request))
        weights = {word: self._rarity.get(word, 0.0) for word in set(_words(message.partition("\n\n")[0]))}
        total = sum(weights.values())
        return sum(weight for word, weight in weights.items() if word in words) / total if total else 0.0


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(re.sub(r"\(#\d+\)", "", text))]


def _share(some: set[str], others: set[str]) -> float:
    return len(some & others) / len(some) if some else 0.0


def _shared(some: Counter[str], others: Counter[str]) -> float:
    return sum((some & others).values()) / max(1, min(sum(some.values()), sum(others.values())))
