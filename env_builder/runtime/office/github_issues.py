"""Issues, pull requests and comments of a code host as its REST API writes them, and their changes.

In: a desk. Records: `gh` (key `<repository>#<number>`), `gh_comment` and `gh_review` (key `<issue>/<id>`), `gh_repo` (address,
members that the API's answers have, digits of instants), `gh_user` (type). Out: JSON values, and writes.
Only members that the exported answers of the repository have are shown, as other versions of the API have others.
Does not see: ids of issues as numbers, reactions, sub-issues, checks; who may see a repository (no export says it).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ..company import UNDECIDED, CompanyDesk, ProductRefusal, Undecided

ISSUE, COMMENT, REVIEW, REPOSITORY, USER = "gh", "gh_comment", "gh_review", "gh_repo", "gh_user"
Members = dict[str, Any]
LOGIN = "login"


def compact(value: Any) -> str:
    """Return JSON as the server writes it."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def required(arguments: Members, name: str) -> Any:
    """Return an argument that the server asks for. Errors: ProductRefusal."""
    if arguments.get(name) in (None, ""):
        raise ProductRefusal(f"missing required parameter: {name}")
    return arguments[name]


def repository_of(desk: CompanyDesk, arguments: Members, act: str) -> str:
    """Return the key of the repository that a call means. `act`: the server's words for what failed. Errors: ProductRefusal."""
    full = f"{required(arguments, 'owner')}/{required(arguments, 'repo')}"
    for key in desk.ids(REPOSITORY):
        if str(desk.value(REPOSITORY, key, "full_name")).casefold() == full.casefold():
            return key
    raise ProductRefusal(f"failed to {act}: GET https://api.github.com/repos/{full}: 404 Not Found []")


def issue_of(desk: CompanyDesk, arguments: Members, act: str, number: Any, method: str = "GET") -> str:
    """Return the key of an issue or pull request. Errors: ProductRefusal."""
    repository = repository_of(desk, arguments, act)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or number != int(number):
        raise Undecided(f"what the server says of {number!r} as a number")
    key = f"{repository}#{int(number)}"
    if not desk.exists(ISSUE, key):
        place = f"https://api.github.com/repos/{arguments['owner']}/{arguments['repo']}/issues/{int(number)}"
        raise ProductRefusal(f"failed to {act}: {method} {place}: 404 Not Found []")
    return key


def repository_key(key: str) -> str:
    """Return the key of the repository of an issue."""
    return key.rpartition("#")[0]


def instant_text(desk: CompanyDesk, repository: str, seconds: float | None) -> str | None:
    """Return an instant as the repository's answers write it."""
    if seconds is None:
        return None
    digits = desk.value(REPOSITORY, repository, "digits", 0)
    microseconds = round(seconds * 1_000_000)
    moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC)
    fraction = f".{microseconds % 1_000_000 // 10 ** (6 - digits):0{digits}}" if digits else ""
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"


def person(desk: CompanyDesk, login: str | None) -> Members | None:
    """Return an account as a member of an answer."""
    return None if login is None else {"login": login, "type": desk.value(USER, login, "type", "User")}


def is_pull(desk: CompanyDesk, key: str) -> bool:
    """Return whether it is a pull request."""
    return bool(desk.value(ISSUE, key, "is_pull", False))


def address_of(desk: CompanyDesk, key: str) -> str:
    """Return the web address of an issue or pull request. Errors: Undecided."""
    base = desk.value(REPOSITORY, repository_key(key), "address")
    if base is None:
        raise Undecided(f"the web address of {repository_key(key)}")
    return f"{base}/{'pull' if is_pull(desk, key) else 'issues'}/{key.rpartition('#')[2]}"


def shown_issue(desk: CompanyDesk, key: str) -> Members:
    """Return an issue or pull request with the members that the repository's answers have."""
    repository = repository_key(key)
    members = desk.value(REPOSITORY, repository, "pull_members" if is_pull(desk, key) else "issue_members")
    if not members:   # no answer of this kind was exported: an issue is what a pull request is, but for its branches
        members = [name for name in desk.value(REPOSITORY, repository, "pull_members") or desk.value(
            REPOSITORY, repository, "issue_members") if name not in _OF_PULLS]
    return {name: _MEMBERS[name](desk, key) for name in members if name in _MEMBERS}


def _instant(field: str) -> Callable[[CompanyDesk, str], Any]:
    return lambda desk, key: instant_text(desk, repository_key(key), desk.value(ISSUE, key, field))


def _field(field: str) -> Callable[[CompanyDesk, str], Any]:
    return lambda desk, key: desk.value(ISSUE, key, field)


def _merged_at(desk: CompanyDesk, key: str) -> str | None:
    merged = desk.value(ISSUE, key, "merged", False)
    return instant_text(desk, repository_key(key), desk.changed_at(ISSUE, key, "merged")) if merged else None


def _milestone(desk: CompanyDesk, key: str) -> Members | None:
    title = desk.value(ISSUE, key, "milestone")
    return None if title is None else {"title": title}


def _branch(field: str) -> Callable[[CompanyDesk, str], Any]:
    return lambda desk, key: {"ref": desk.value(ISSUE, key, field)}


def _people(field: str) -> Callable[[CompanyDesk, str], Any]:
    return lambda desk, key: [person(desk, login) for login in desk.value(ISSUE, key, field) or ()]


_OF_PULLS = frozenset({"base", "head", "merged", "merged_at", "pull_request", "requested_reviewers"})
_MEMBERS: dict[str, Callable[[CompanyDesk, str], Any]] = {
    "number": _field("number"), "title": _field("title"), "body": _field("body"), "state": _field("state"),
    "comments": _field("comments"), "merged": _field("merged"),
    "user": lambda desk, key: person(desk, desk.value(ISSUE, key, "author")),
    "labels": lambda desk, key: [{"name": name} for name in desk.value(ISSUE, key, "labels") or ()],
    "assignees": _people("assignees"), "requested_reviewers": _people("reviewers"),
    "assignee": lambda desk, key: person(desk, desk.value(ISSUE, key, "assignee")),
    "milestone": _milestone, "head": _branch("branch"), "base": _branch("base"),
    "created_at": _instant("created"), "updated_at": _instant("updated"), "closed_at": _instant("closed"),
    "merged_at": _merged_at, "pull_request": lambda desk, key: {"merged_at": _merged_at(desk, key)},
    "html_url": address_of,
}
"""Member -> its value."""


def comments_of(desk: CompanyDesk, key: str) -> list[Members]:
    """Return the comments of an issue, oldest first."""
    repository = repository_key(key)
    return [{"body": desk.value(COMMENT, own, "body"), "user": person(desk, desk.value(COMMENT, own, "author")),
             "created_at": instant_text(desk, repository, desk.value(COMMENT, own, "created"))}
            for own in sorted(desk.where(COMMENT, "issue", key), key=lambda own: (
                desk.value(COMMENT, own, "created"), _number(own)))]


def reviews_of(desk: CompanyDesk, key: str) -> list[Members]:
    """Return the reviews of a pull request, oldest first."""
    repository = repository_key(key)
    return [{"body": desk.value(REVIEW, own, "body"), "state": desk.value(REVIEW, own, "state"),
             "submitted_at": instant_text(desk, repository, desk.value(REVIEW, own, "created")),
             "user": person(desk, desk.value(REVIEW, own, "author"))}
            for own in sorted(desk.where(REVIEW, "issue", key), key=lambda own: (
                desk.value(REVIEW, own, "created"), _number(own)))]


def _number(key: str) -> int:
    tail = key.rpartition("/")[2]
    return int(tail) if tail.isdigit() else 0


def add_comment(desk: CompanyDesk, key: str, body: str) -> int:
    """Add a comment by the acting person; return its id."""
    number = max((_number(own) for kind in (COMMENT, REVIEW) for own in desk.ids(kind)), default=0) + 1
    count = desk.value(ISSUE, key, "comments", 0) + 1
    login = desk.account_of(LOGIN, desk.address)
    desk.write(COMMENT, f"{key}/{number}", body=body, author=UNDECIDED if login is None else login, created=desk.now, issue=key)
    desk.write(ISSUE, key, comments=count, updated=desk.now)
    return number


def change_issue(desk: CompanyDesk, key: str, arguments: Members) -> None:
    """Carry out an update: what the call names, and what follows from a change of state. Errors: Undecided."""
    values: Members = {name: arguments[name] for name in ("title", "body", "labels", "assignees") if name in arguments}
    if "assignees" in values:
        values["assignee"] = values["assignees"][0] if values["assignees"] else None
    if "milestone" in arguments:
        desk.doubt("which milestone has this number")
        values["milestone"] = UNDECIDED
    state = arguments.get("state")
    if state not in (None, "open", "closed"):
        raise Undecided(f"what the server says of the state {state!r}")
    if state is not None and state != desk.value(ISSUE, key, "state"):
        values |= {"state": state, "closed": desk.now if state == "closed" else None}
    desk.write(ISSUE, key, **values, updated=desk.now)


def create_issue(desk: CompanyDesk, repository: str, arguments: Members) -> str:
    """Create an issue by the acting person; return its key."""
    start = repository + "#"
    number = max((int(key[len(start):]) for key in desk.ids(ISSUE) if key.startswith(start)), default=0) + 1
    recorded = desk.next_id(ISSUE, "repo", repository)
    number = max(number, int(recorded[len(start):]) if recorded is not None else 0)   # exports may lack those before
    login = desk.account_of(LOGIN, desk.address)
    assignees = list(arguments.get("assignees") or ())
    if "milestone" in arguments:
        desk.doubt("which milestone has this number")
    desk.write(ISSUE, f"{start}{number}", number=number, repo=repository, author=UNDECIDED if login is None else login,
               created=desk.now, updated=desk.now, closed=None, merged=False, is_pull=False, branch=None, base=None,
               title=arguments["title"], body=arguments.get("body", ""), state="open", comments=0,
               milestone=UNDECIDED if "milestone" in arguments else None,
               labels=list(arguments.get("labels") or ()), assignees=assignees, reviewers=[],
               assignee=assignees[0] if assignees else None)
    return f"{start}{number}"
