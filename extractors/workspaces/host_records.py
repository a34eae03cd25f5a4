"""Pull requests and issues of a repository over time, as the events of its code host show them.

In: events of one repository. Out: versions: what is known of a pull request or an issue from one event on, until an event says
something else. Title and text are those of the first event that has them, until it is edited; a state, a comment, a review, a
result of CI holds from its event on. What an event tells of the time before it is not dated back: nobody knows since when.

Does not see: labels, assignees, reactions; diffs, and the lines that a comment is on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from extractors.workspaces.changes import HostEvent
from extractors.workspaces.repository import Repository

Kind = Literal["pull_request", "issue"]
_COMMENTS = ("issue_comment", "pull_request_review", "pull_request_review_comment")
_CHECKS = ("workflow_run", "check_suite", "check_run")
_GONE = ("deleted", "transferred")
_COMMITS = ("after", "head_commit", "base_commit", "merge_commit", "commit")
NAMES = ("push", "pull_request", "issues", *_COMMENTS, *_CHECKS)
"""Events that tell of pull requests and issues: their names before the full stop."""


class StoredEvent(NamedTuple):
    """An event of a code host, and where it stands."""

    event_id: str
    file_id: str
    event: HostEvent


class HostVersion(NamedTuple):
    """What is known of a pull request or an issue for some time."""

    kind: Kind
    number: int
    valid_from: datetime
    valid_to: datetime | None
    """None: no event says anything else."""
    value: dict[str, Any]


def by_repository(events: Iterable[StoredEvent], repositories: Sequence[Repository]) -> list[list[StoredEvent]]:
    """Return the events of each repository.

    Events belong together by the repository that they name, or that all others of their file name. They are of the repository
    that has most of their commits. If none of all events has a commit of the only repository, all are of it.
    """
    groups: dict[str, list[StoredEvent]] = defaultdict(list)
    events = list(events)
    names: dict[str, set[str]] = defaultdict(set)
    for each in events:
        if each.event.facts.get("repository"):
            names[each.file_id].add(str(each.event.facts["repository"]))
    for each in events:
        of_file = names[each.file_id]
        own = each.event.facts.get("repository") or (min(of_file) if len(of_file) == 1 else f"file {each.file_id}")
        groups[str(own)].append(each)
    parted: list[list[StoredEvent]] = [[] for _ in repositories]
    places = {name: _place(group, repositories) for name, group in groups.items()}
    if len(repositories) == 1 and set(places.values()) == {None}:
        return [events]
    for name, group in sorted(groups.items()):
        place = places[name]
        if place is not None:
            parted[place] += group
    return parted


def _place(group: Iterable[StoredEvent], repositories: Sequence[Repository]) -> int | None:
    """Return which repository has most of the commits that events name."""
    commits = {str(commit) for each in group for name in _COMMITS if (commit := each.event.facts.get(name))}
    votes = Counter({place: n for place, repository in enumerate(repositories)
                     if (n := len(commits & repository.commits.keys()))})
    return votes.most_common(1)[0][0] if votes else None


class HostHistory:
    """The pull requests and issues of one repository, and what events tell of them in order."""

    def __init__(self, events: Iterable[StoredEvent]) -> None:
        self.rejected: list[tuple[StoredEvent, str, str]] = []
        """(event, reason, sentence) of those that tell of a pull request or an issue which nobody can place."""
        self.versions: list[HostVersion] = []
        self._threads: dict[int, _Thread] = {}
        for each in sorted(events, key=lambda each: (each.event.at is None, each.event.at, each.event_id)):
            self._add(each)
        for number in sorted(self._threads):
            self._end(self._threads[number], None)
        self.versions.sort(key=lambda version: (version.kind, version.number, version.valid_from))

    def _add(self, stored: StoredEvent) -> None:
        event = stored.event
        name, _, action = event.name.partition(".")
        if event.at is None:
            if name not in ("push", *_CHECKS):
                self.rejected.append((stored, "no_time", f"{event.name} has no time, so nobody knows when it was visible."))
            return
        if name in ("push", *_CHECKS):
            for reached in self._reached(name, event.facts):
                self._change(reached, event.at)
                _take_push(reached, event.facts) if name == "push" else _take_check(reached, event.facts)
            return
        thread = self._thread(name, event)
        if thread is None:
            self.rejected.append((stored, "unknown_thread", f"{event.name} does not say what it is about."))
            return
        self._change(thread, event.at)
        if name in _COMMENTS:
            _take_comment(thread, action, event)
        elif action in _GONE:
            self._end(self._threads.pop(thread.number), event.at)
        else:
            _take_body(thread, action, event)

    def _thread(self, name: str, event: HostEvent) -> _Thread | None:
        """Return what an event is about, new where it was not known before."""
        number = event.facts.get("number")
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            return None
        if number not in self._threads:
            is_pull = name.startswith("pull_request") or event.facts.get("is_pull_request") is True
            if name == "issue_comment" and not is_pull and event.facts.get("about_title") is None:
                return None
            self._threads[number] = _Thread("pull_request" if is_pull else "issue", number)
        return self._threads[number]

    def _reached(self, name: str, facts: dict[str, Any]) -> Iterator[_Thread]:
        """Yield the pull requests that a push, or a result of CI, is of."""
        named = facts.get("pull_requests") or ()
        for number, thread in sorted(self._threads.items()):
            if thread.kind != "pull_request":
                continue
            if name == "push":
                is_of = thread.head_ref is not None and facts.get("ref") == f"refs/heads/{thread.head_ref}" \
                    and thread.value.get("state") == "open"
            else:
                is_of = number in named if thread.head_commit is None else facts.get("commit") == thread.head_commit
            if is_of:
                yield thread

    def _change(self, thread: _Thread, at: datetime) -> None:
        """End the version before an event; what several events of one moment say is one version."""
        if thread.since != at:
            self._end(thread, at)
            thread.since = at

    def _end(self, thread: _Thread, at: datetime | None) -> None:
        if thread.since is None:
            return
        last = thread.last
        value = thread.shown()
        if last is not None and last.value == value and last.valid_to == thread.since:
            self.versions.remove(last)
            thread.since = last.valid_from
        thread.last = HostVersion(thread.kind, thread.number, thread.since, at, value)
        if thread.since != at:
            self.versions.append(thread.last)


class _Thread:
    """A pull request or an issue while its events are read."""

    def __init__(self, kind: Kind, number: int) -> None:
        self.kind: Kind = kind
        self.number = number
        self.value: dict[str, Any] = {}
        self.comments: list[dict[str, Any]] = []
        self.checks: dict[str, str] = {}
        self.head_ref: str | None = None
        self.head_commit: str | None = None
        self.since: datetime | None = None
        self.last: HostVersion | None = None

    def shown(self) -> dict[str, Any]:
        """Return it as tools show it."""
        comments = [{name: value for name, value in comment.items() if name != "comment_id"} for comment in self.comments]
        return {"number": self.number, **self.value, **({"checks": dict(self.checks)} if self.checks else {}),
                "comments": comments}

    def fill(self, is_edited: bool = False, **fields: Any) -> None:
        """Take fields that are not known yet, or that were edited."""
        for name, value in fields.items():
            if value is not None and (is_edited or not self.value.get(name)):
                self.value[name] = value


def _take_body(thread: _Thread, action: str, event: HostEvent) -> None:
    """Take what an event shows of the pull request or the issue itself."""
    facts, is_edited = event.facts, action == "edited"
    thread.fill(is_edited, title=facts.get("title"), body=facts.get("body"))
    thread.fill(author=facts.get("author_login") or (facts.get("by_login") if action == "opened" else None))
    if action == "opened":
        thread.fill(created_at=_written(event.at))
    state = facts.get("state")
    if facts.get("merged") is True:
        state = "merged"
    thread.fill(is_edited=True, state=state, head_ref=facts.get("head_ref"), base_ref=facts.get("base_ref"))
    thread.head_ref = facts.get("head_ref") or thread.head_ref
    _take_head(thread, facts.get("head_commit"))


def _take_head(thread: _Thread, commit: str | None) -> None:
    """Take the commit of its branch; results of CI are of the one before."""
    if commit is not None and commit != thread.head_commit:
        thread.head_commit, thread.checks = commit, {}


def _take_push(thread: _Thread, facts: dict[str, Any]) -> None:
    _take_head(thread, facts.get("after"))


def _take_check(thread: _Thread, facts: dict[str, Any]) -> None:
    result = facts.get("conclusion") or facts.get("status")
    if result is not None:
        thread.checks = {**thread.checks, str(facts.get("name") or "checks"): str(result)}


def _take_comment(thread: _Thread, action: str, event: HostEvent) -> None:
    """Take a comment or a review: new, edited or taken away."""
    facts = event.facts
    thread.fill(title=facts.get("about_title"), body=facts.get("about_body"), author=facts.get("about_author_login"),
                state=facts.get("about_state"))
    own = facts.get("comment_id")
    earlier = next((each for each in thread.comments if own is not None and each["comment_id"] == own), None)
    if action == "deleted":
        thread.comments = [each for each in thread.comments if each is not earlier]
        return
    if action == "dismissed" and earlier is not None:
        thread.comments = [{**each, "review": action} if each is earlier else each for each in thread.comments]
        return
    is_review = event.name.startswith("pull_request_review.")
    comment = {"comment_id": own, "author": facts.get("author_login") or facts.get("by_login"),
               "created_at": _written(event.at) if action in ("created", "submitted") else None,
               "body": facts.get("body") or "", "path": facts.get("path"), "review": facts.get("state") if is_review else None}
    kept = {name: value for name, value in comment.items() if value is not None or name == "comment_id"}
    if earlier is not None:
        thread.comments = [{**each, "body": kept["body"]} if each is earlier else each for each in thread.comments]
    else:
        thread.comments = [*thread.comments, kept]


def _written(at: datetime | None) -> str | None:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at is not None else None
