"""What a commit was for, in words of a request, without what gives its change away.

In: a commit, the events of its code host. Out: the text of the issue that it closes, else of its pull request, else its
message. Taken out: trailers, addresses, and each sentence that names a file of the fix, quotes a line of it, or uses a name
that only the fix has (neither the start nor the known tests).

Does not see: a sentence that tells the fix in plain words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Literal, NamedTuple

from extractors.workspaces.changes import HostEvent, MainLine
from extractors.workspaces.repository import Commit

_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? +#(\d+)", re.IGNORECASE)
_CLOSING = re.compile(rf"\s*\(\s*{_CLOSES.pattern}\s*\)|{_CLOSES.pattern}\.?", re.IGNORECASE)
_PULL = re.compile(r"\(#(\d+)\)|^Merge pull request #(\d+)", re.MULTILINE)
_OF_GIT = re.compile(
    r"^Merge (?:pull request|branch|commit|remote-tracking branch)\b.*$|^-{3,}$|^\(cherry picked from .*\)$", re.MULTILINE)
_TRAILER = re.compile(r"^[A-Z][\w-]+-by: .*$|^Change-Id: .*$", re.MULTILINE | re.IGNORECASE)
_KIND = re.compile(r"\A(?:build|chore|ci|docs|feat|fix|perf|refactor|style|test)(?:\(([^)\n]*)\))?!?: +", re.IGNORECASE)
"""Kinds of changes as Conventional Commits writes them before a subject."""
_ADDRESS = re.compile(r"<?[\w.+-]+@[\w-]+\.[\w.-]+>?")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"(])")
_NAME = re.compile(r"[A-Za-z_]\w{3,}")
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{2,}(?![^\W_])")
_MADE_UP = re.compile(r"_|[a-z][A-Z]")
"""What sets a name of code apart from a word."""
_AS_CODE = r"[.@]{word}\b|\b{word}[(=]|\bimport\b.*\b{word}\b"
"""How tests use a name that could be a word."""
_LONG = 12
"""Characters from which on a line of the fix is one that a text can quote."""
FEWEST_WORDS = 3
"""A text with fewer words says nothing."""
_LONG_WORD = 4
_PLENTY = 20
"""A pull request with fewer words, and fewer than the message, stands behind the message."""


class CommitText(NamedTuple):
    """What a commit was for."""

    kind: Literal["issue", "pull_request", "message"]
    """Where it is from."""
    text: str
    numbers: frozenset[int]
    """Of issues and pull requests that are about it."""


class HostTexts:
    """Titles and texts of issues and pull requests, and which commits they became."""

    def __init__(self, line: MainLine, events: Iterable[HostEvent]) -> None:
        """Sort the events of the code host: those that name the repository, or all where none does."""
        of_all = list(events)
        name = line.repository.name
        own = [event for event in of_all if str(event.facts.get("repository", "")).rpartition("/")[2] == name] or of_all
        self._issues = _texts(own, "issues.")
        self._pulls = _texts(own, "pull_request.")
        merged = ((event.facts.get("number"), event) for event in own
                  if event.name.startswith("pull_request.") and event.facts.get("merged") is True)
        commits = ((number, line.merge(number, event)) for number, event in merged if number is not None)
        self._of_commit = {commit.commit_id: number for number, commit in commits if commit is not None}

    def of(self, commit: Commit) -> CommitText:
        """Return what a commit was for: its issue's text, else its pull request's, else its message."""
        stated = [int(number) for match in _PULL.findall(commit.message) for number in match if number]
        pull = self._of_commit.get(commit.commit_id, next((each for each in stated if each in self._pulls), None))
        whole = f"{commit.message}\n{self._pulls.get(pull, '')}" if pull is not None else commit.message
        closed = [int(number) for number in _CLOSES.findall(whole)]
        numbers = frozenset((*stated, *closed, *(() if pull is None else (pull,))))
        issue = next((self._issues[each] for each in closed if says_something(self._issues.get(each, ""))), None)
        if issue is not None:
            return CommitText("issue", issue, numbers)
        of_pull, of_message = (len(_WORD.findall(_plain(text))) for text in (self._pulls.get(pull or 0, ""), commit.message))
        if pull is not None and of_pull >= min(_PLENTY, max(FEWEST_WORDS, of_message)):
            return CommitText("pull_request", self._pulls[pull], numbers)
        return CommitText("message", commit.message, numbers)


class KnownFix(NamedTuple):
    """What a change puts in, and what somebody who has not seen it can know."""

    paths: Collection[str]
    lines: Collection[str]
    """That it puts in."""
    start: str
    """Text of the start."""
    tests: str
    """Text of the known tests."""

    @property
    def own_names(self) -> frozenset[str]:
        """Names of code that it alone has."""
        return frozenset(name for name in self._new - set(_NAME.findall(self.tests))
                         if _MADE_UP.search(name.strip("_")) or name.startswith("_"))

    @property
    def expected_names(self) -> frozenset[str]:
        """Names that it makes and the known tests use: nobody could guess them."""
        words = self._new & set(_NAME.findall(self.tests))
        return frozenset(word for word in words if _MADE_UP.search(word) or re.search(_AS_CODE.format(word=word), self.tests))

    @property
    def _new(self) -> set[str]:
        """Names that the start lacks."""
        return {name for line in self.lines for name in _NAME.findall(line)} - set(_NAME.findall(self.start))


def says_something(text: str) -> bool:
    """Whether a text has enough words for a request, without numbers and versions."""
    return len(_WORD.findall(text)) >= FEWEST_WORDS


def speaks_of(text: str, change: Iterable[str]) -> bool:
    """Whether a word of a text, of four letters or more, stands in what a change is made of: lines, paths, names of tests."""
    whole = "\n".join(change).lower()
    return any(len(word) >= _LONG_WORD and word.lower() in whole for word in _WORD.findall(text))


def request_in(text: str, fix: KnownFix) -> str:
    """Return what a text asks for, without what gives the fix away; empty where it does not say anything else."""
    text = _plain(text)
    paths, names = set(fix.paths) | {path.rpartition("/")[2] for path in fix.paths}, fix.own_names
    quoted = {line.strip() for line in fix.lines if len(line.strip()) >= _LONG}
    kept: list[str] = []
    for paragraph in _paragraphs(text):
        sentences = [each for each in _SENTENCES.split(paragraph) if not (
            any(line in each for line in quoted) or names & set(_NAME.findall(each))
            or any(re.search(rf"(?<![\w/.-]){re.escape(path)}(?![\w/-])", each) for path in paths))]
        words = " ".join(sentences).strip()
        if words and _bare(words) not in map(_bare, kept):
            kept.append(words)
    joined = "".join(f"{words}\n" if _ITEM.match(words) and _ITEM.match(after) else f"{words}\n\n"
                     for words, after in pairwise([*kept, ""])).strip()
    return joined if says_something(joined) else ""


def names_to_use(fix: KnownFix, text: str) -> str:
    """Return a sentence with the names that tests expect and a text does not have; empty where there is none."""
    names = sorted(fix.expected_names - set(_NAME.findall(text)))
    return f"Names to use: {', '.join(f'`{name}`' for name in names)}." if names else ""


def test_words(test: str) -> str:
    """Return what the name of a test says: `tests/test_x.py::test_reads_a_file[1]` is about "reads a file"."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", test.rpartition("::")[2].partition("[")[0])
    words = [word for word in re.split(r"[\W_]+", name) if word]
    return " ".join(words[1:] if words and words[0].lower() == "test" else words)


test_words.__test__ = False  # type: ignore[attr-defined]


def _texts(events: Iterable[HostEvent], prefix: str) -> Mapping[int, str]:
    """Return title and text of each number, as they were first stated."""
    first: dict[int, dict[str, str]] = {}
    for event in events:
        if event.name.startswith(prefix) and isinstance(number := event.facts.get("number"), int):
            for part in ("title", "body"):
                if text := event.facts.get(part):
                    first.setdefault(number, {}).setdefault(part, str(text))
    return {number: "\n\n".join(parts[part] for part in ("title", "body") if part in parts) for number, parts in first.items()}


def _paragraphs(text: str) -> list[str]:
    """Return paragraphs and items of lists, each without its line breaks."""
    paragraphs: list[str] = []
    goes_on = False
    for line in text.splitlines():
        if not line.strip():
            goes_on = False
        elif goes_on and not _ITEM.match(line):
            paragraphs[-1] += f" {line.strip()}"
        else:
            paragraphs.append(line.strip())
            goes_on = True
    return paragraphs


def _plain(text: str) -> str:
    """Return a text without what belongs to git and its host."""
    for pattern in (_TRAILER, _OF_GIT):
        text = pattern.sub("", text)
    text = _CLOSING.sub("", _ADDRESS.sub("[address]", text)).strip()
    return _KIND.sub(lambda match: f"{match[1]}: " if match[1] else "", text)


def _bare(text: str) -> str:
    return " ".join(_WORD.findall(text)).lower()
