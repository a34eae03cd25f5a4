"""Where a session of coding began: the commit of its checkout, with the reason and the rivals.

In: what the session states of its checkout, its frames, the repository. Out: a `StartCommit`, or why it is unknown.

The commit that the session states (its log, or what git printed) counts first; then the last one of its branch at that time;
then the latest that fits. Whatever is chosen must fit all that was read and edited before anything else may have changed the
files. A file that was shown whole, and is so in no commit, was changed before: it is laid over the commit (`dirty`).

Does not see: changes of files that the session never looked at; a checkout behind its branch, of which nothing was read that
differs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from extractors.workspaces.frames import CommandRun, FileEdit, FileLines, Frame
from extractors.workspaces.patches import FilePatch, Hunk, lines_of
from extractors.workspaces.repository import Commit, Repository

How = Literal["said", "branch", "time", "files"]
CLOCK_SKEW = timedelta(seconds=30)
"""A push and a session are timed by two clocks."""
MOST_RIVALS = 20
_ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+|(?<=/home/)[^/\s]+|(?<=/Users/)[^/\s]+")
_NUMBER = re.compile(r"\d+(?:\.\d+){3}|\d{5,}")
_CAPITAL = re.compile(r"[^\W\d_a-z][a-z]+(?: [^\W\d_a-z][a-z]+)*")
_GIT_LOG = re.compile(r"^(?:commit )?([0-9a-f]{7,40})\b", re.MULTILINE)
_BRANCH = re.compile(r"^(?:On branch |## )([^\s.]+(?:\.[^\s.]+)*)", re.MULTILINE)
_UNTRACKED = re.compile(r"^( M|M |MM|\?\?|A |AM|D | D) (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Checkout:
    """What a session's log states of its checkout."""

    started_at: datetime | None = None
    commit: str | None = None
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class StartCommit:
    """Where a session began."""

    commit_id: str
    how: How
    """said: the log or git's output names it; branch, time: the last commit of its branch, or of any, at that time; files: the
    latest that fits what was read."""
    rivals: tuple[str, ...] = ()
    """Other commits of that time that fit as well, the latest first."""
    dirty: dict[str, str | None] = field(default_factory=dict)
    """Files that were not as the commit has them: path -> text, None where it is not known."""


@dataclass(frozen=True, slots=True)
class NoStart:
    """Why a session has no start."""

    reason: Literal["no_known_start", "start_contradicts", "not_of_the_repository"]
    detail: str


def start_of(checkout: Checkout, frames: Iterable[Frame], repository: Repository) -> StartCommit | NoStart:
    """Return where a session began."""
    frames = list(frames)
    if _root(frames, repository) is None:
        return NoStart("not_of_the_repository", "no file that the session read or edited is in the repository")
    frames = below_root(frames, repository)
    stated = _stated(checkout, frames, repository)
    branch = checkout.branch or next(iter(_branches(frames)), None)
    candidates = _candidates(checkout, repository)
    ranked = list(_ranked(stated, branch, candidates, repository))
    if not ranked:
        return NoStart("no_known_start", "neither a commit nor a time is known of the session")
    evidence = list(_evidence(frames))
    unsaved = _unsaved(frames)
    judges = _Judge(evidence, repository), _Judge([_masked(frame) for frame in evidence], repository, mask)
    for is_laid_over in (False, True):
        for judge in judges:
            for commit_id, how in ranked:
                dirty = judge.dirty(judge.problems(commit_id))
                if dirty is not None and bool(dirty) <= (is_laid_over or how == "said"):
                    rivals = [each.commit_id for each in candidates if each.commit_id != commit_id
                              and not judge.problems(each.commit_id)]
                    return StartCommit(commit_id, how, tuple(rivals[:MOST_RIVALS]), {**dict.fromkeys(unsaved), **dirty})
    tried = [f"{commit_id[:8]} ({how}): {judges[0].problems(commit_id)[0]}" for commit_id, how in ranked[:3]]
    return NoStart("start_contradicts", "; ".join(tried))


def below_root(frames: Sequence[Frame], repository: Repository) -> list[Frame]:
    """Return frames with paths from the repository's root, as far as they lie in it."""
    root = _root(frames, repository) or ""
    return [_below(frame, root) for frame in frames]


def _root(frames: Sequence[Frame], repository: Repository) -> str | None:
    """Return the folder that paths lie in, "" where they are relative; None where no path is of the repository.

    It is the folder below which the most paths are files of some commit."""
    votes: Counter[str] = Counter()
    for frame in frames:
        if isinstance(frame, CommandRun):
            continue
        parts = frame.path.split("/")
        for n in range(len(parts)):
            if "/".join(parts[n:]) in repository.paths:
                votes["/".join(parts[:n])] += 1
    if not votes:
        return None if any(not isinstance(frame, CommandRun) for frame in frames) else ""
    return max(votes, key=lambda folder: (votes[folder], -len(folder), folder))


def _below(frame: Frame, root: str) -> Frame:
    if isinstance(frame, CommandRun) or not root or not frame.path.startswith(f"{root}/"):
        return frame
    path = frame.path[len(root) + 1:]
    if isinstance(frame, FileLines):
        return FileLines(path, frame.first_line, frame.lines, frame.is_whole)
    return FileEdit(path, frame.before, frame.after, frame.everywhere, frame.patch, frame.line)


def _stated(checkout: Checkout, frames: list[Frame], repository: Repository) -> list[str]:
    """Return the commits that the log names, or git printed before anything was committed or switched."""
    stated: list[str | None] = [repository.resolve(checkout.commit)] if checkout.commit else []
    for frame in frames:
        if not isinstance(frame, CommandRun):
            continue
        if frame.switches or "commit" in frame.command.split():
            break
        if re.search(r"\bgit\b(?: -\S+)* (?:log|rev-parse|show)\b", frame.command) and _is_of_head(frame.command):
            match = _GIT_LOG.search(frame.output)
            stated.append(repository.resolve(match[1]) if match is not None else None)
    return list(dict.fromkeys(each for each in stated if each is not None))


def _is_of_head(command: str) -> bool:
    """Whether the first commit that a command of git prints is that of the checkout: it names no other, and no path."""
    words = command.split()
    at = next(n for n, word in enumerate(words) if word in ("log", "rev-parse", "show"))
    named = (word for word in words[at + 1:] if not word.startswith("-") and not word.isdecimal())
    return "--all" not in words and all(word in ("HEAD", "|", "head", "cat") for word in named)


def _branches(frames: list[Frame]) -> Iterator[str]:
    for frame in frames:
        if isinstance(frame, CommandRun):
            if frame.switches:
                return
            if "git status" in frame.command and (match := _BRANCH.search(frame.output)) is not None:
                yield match[1]


def _candidates(checkout: Checkout, repository: Repository) -> list[Commit]:
    """Return the commits that were there when the session began, the latest first."""
    before = [commit for commit in repository.commits.values()
              if checkout.started_at is None or commit.at <= checkout.started_at + CLOCK_SKEW]
    return sorted(before, key=lambda commit: commit.at, reverse=True)


def _ranked(
    stated: list[str], branch: str | None, candidates: list[Commit], repository: Repository,
) -> Iterator[tuple[str, How]]:
    """Return commits in the order in which they are tried, each with how it is known. Of a branch that the repository lacks, as
    one that the session's user made, the main line comes first."""
    yield from ((commit_id, "said") for commit_id in stated)
    tip = repository.branch(branch) if branch else None
    is_local = branch is not None and tip is None
    tip = repository.main if is_local else tip
    of_branch = {commit.commit_id for commit in repository.history(tip)} if tip else set()
    on_branch = [commit.commit_id for commit in candidates if commit.commit_id in of_branch]
    if on_branch:
        yield on_branch[0], "time" if is_local else "branch"
    elif candidates and tip is None:
        yield candidates[0].commit_id, "time"
    yield from ((commit_id, "files") for commit_id in on_branch[1:])
    yield from ((commit.commit_id, "files") for commit in candidates if commit.commit_id not in of_branch)


def _unsaved(frames: list[Frame]) -> list[str]:
    """Return the files that `git status` listed as changed or not tracked before the session changed any."""
    for frame in frames:
        if isinstance(frame, FileEdit) or (isinstance(frame, CommandRun) and (frame.switches or frame.writes)):
            return []
        if isinstance(frame, CommandRun) and re.search(r"git status\b.* (-s|--short|--porcelain)", frame.command):
            return [match[2].split(" -> ")[-1].strip('"') for match in _UNTRACKED.finditer(frame.output)]
    return []


def mask(text: str) -> str:
    """Return a text without what privacy may have replaced in a log: addresses, long numbers, words with a capital letter.

    Lines that differ in nothing else are taken for the same where no commit fits exactly."""
    return _CAPITAL.sub("A", _NUMBER.sub("0", _ADDRESS.sub("@", text)))


def _masked(frame: FileLines | FileEdit) -> FileLines | FileEdit:
    if isinstance(frame, FileLines):
        return FileLines(frame.path, frame.first_line, tuple(map(mask, frame.lines)), frame.is_whole)
    patch = frame.patch and FilePatch(
        frame.patch.path, [Hunk([*map(mask, hunk.before)], [*map(mask, hunk.after)], hunk.line) for hunk in frame.patch.hunks],
        frame.patch.is_new, frame.patch.is_deleted, frame.patch.moved_to)
    before, after = (None if text is None else mask(text) for text in (frame.before, frame.after))
    return FileEdit(frame.path, before, after, frame.everywhere, patch, frame.line)


def _evidence(frames: list[Frame]) -> Iterator[FileLines | FileEdit]:
    """Return what was seen and edited before the files may have been changed otherwise."""
    for frame in frames:
        if not isinstance(frame, CommandRun):
            if not frame.path.startswith(("/", "..")):
                yield frame
        elif frame.switches or frame.writes:
            return


class _Judge:
    """Whether commits fit what a session saw and edited. A file is judged once for each of its versions."""

    def __init__(self, evidence: list[FileLines | FileEdit], repository: Repository, mask: Callable[[str], str] = str) -> None:
        self._repository, self._mask = repository, mask
        self._by_path: dict[str, list[FileLines | FileEdit]] = {}
        for frame in evidence:
            self._by_path.setdefault(frame.path, []).append(frame)
        self._verdicts: dict[tuple[str, str | None], str | None] = {}
        self._commits: dict[str, list[str]] = {}

    def problems(self, commit_id: str) -> list[str]:
        """Return the files that do not fit a commit, each with why."""
        if commit_id not in self._commits:
            commit = self._repository.commits[commit_id]
            files = ((path, self._repository.file(commit, path)) for path in self._by_path)
            verdicts = ((path, self._verdict(path, file.blob_id if file is not None else None)) for path, file in files)
            self._commits[commit_id] = [f"{path}: {why}" for path, why in verdicts if why is not None]
        return self._commits[commit_id]

    def dirty(self, problems: list[str]) -> dict[str, str | None] | None:
        """Return the text of the files with problems, if each was shown whole before it was edited; None if not."""
        laid: dict[str, str | None] = {}
        for problem in problems:
            path = problem.partition(": ")[0]
            first = self._by_path[path][0]
            if not isinstance(first, FileLines) or not first.is_whole:
                return None
            text = "".join(f"{line}\n" for line in first.lines)
            if _contradiction(self._by_path[path], text) is not None:
                return None
            laid[path] = text
        return laid

    def _verdict(self, path: str, blob_id: str | None) -> str | None:
        key = (path, blob_id)
        if key not in self._verdicts:
            text = self._repository.text(blob_id) if blob_id is not None else None
            self._verdicts[key] = _contradiction(self._by_path[path], None if text is None else self._mask(text))
        return self._verdicts[key]


def _contradiction(frames: list[FileLines | FileEdit], text: str | None) -> str | None:
    """Return what of a file's frames its text at the start contradicts, None if nothing."""
    for frame in frames:
        if isinstance(frame, FileEdit):
            if frame.before is None and frame.patch is None and frame.line is None:
                text = frame.after   # overwritten, whatever was there
                continue
            after = frame.applied(text)
            if after is None:
                return "what was replaced does not stand in it"
            text = after
        elif text is None:
            return "it is not there"
        else:
            lines = lines_of(text)
            at = frame.first_line - 1
            if tuple(lines[at:at + len(frame.lines)]) != frame.lines and not _is_same_text(frame, lines):
                return f"line {frame.first_line} is another" if len(frame.lines) == 1 else "its lines are others"
            if frame.is_whole and len(lines) > len(frame.lines):
                return f"it has {len(lines)} lines, not {len(frame.lines)}"
    return None


def _is_same_text(frame: FileLines, lines: list[str]) -> bool:
    """Whether lines are the same but for white space at their ends."""
    at = frame.first_line - 1
    return [line.rstrip() for line in lines[at:at + len(frame.lines)]] == [line.rstrip() for line in frame.lines]
