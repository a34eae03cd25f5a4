"""Answer the tools of github-mcp-server over a company's issues, pull requests and files as of an instant.

In: calls with the server's names and arguments. Out: the texts that the server answers: JSON, without spaces, members sorted.
An issue is what the REST API gives (`github_issues`). `issue_write` is offered beside the older `create_issue` and
`update_issue`; a new comment's id is a number, and the id of an issue is `<repository>#<number>`, as no export holds another.
`get_file_contents` gives a file's text, which the real server sends as an embedded resource.
Does not see: branches other than the main line, sub-issues, diffs, checks, statuses, who may do what in a repository.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from ..company import CompanyDesk, ProductRefusal, Undecided
from .github_issues import (
    COMMENT,
    ISSUE,
    LOGIN,
    REPOSITORY,
    Members,
    add_comment,
    address_of,
    change_issue,
    comments_of,
    compact,
    create_issue,
    instant_text,
    is_pull,
    issue_of,
    repository_key,
    repository_of,
    required,
    reviews_of,
    shown_issue,
)
from .github_pulls import COMMIT, FILE, PULL_TOOLS, check_main_line
from .github_search import fits, ordered, parse_query
from .tools import OfficeTool

SERVER = "github-mcp-server"
PAGE, MOST = 30, 100


def _page(keys: list[Any], arguments: Members) -> list[Any]:
    number, size = arguments.get("page", 1), arguments.get("perPage", PAGE)
    if not all(isinstance(own, (int, float)) and own >= 1 for own in (number, size)):
        raise Undecided("what the server makes of such a page")
    size = min(int(size), MOST)
    return keys[(int(number) - 1) * size:int(number) * size]


def issue_read(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `issue_read`."""
    method = arguments.get("method", "get")
    acts = {"get": "get issue", "get_comments": "get issue comments", "get_labels": "get issue labels"}
    if method in ("get_sub_issues", "get_parent"):
        raise Undecided("sub-issues are in no export")
    if method not in acts:
        raise ProductRefusal(f"unknown method: {method}")
    key = issue_of(desk, arguments, acts[method], required(arguments, "issue_number"))
    if method == "get":
        return compact(shown_issue(desk, key))
    if method == "get_comments":
        return compact(_page(comments_of(desk, key), arguments))
    return compact({"labels": [{"name": name} for name in desk.value(ISSUE, key, "labels") or ()]})


def pull_request_read(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `pull_request_read`: details, comments and reviews."""
    key = issue_of(desk, arguments, "get pull request", required(arguments, "pullNumber"))
    if not is_pull(desk, key):
        place = f"https://api.github.com/repos/{arguments['owner']}/{arguments['repo']}/pulls/{int(arguments['pullNumber'])}"
        raise ProductRefusal(f"failed to get pull request: GET {place}: 404 Not Found []")
    reads: dict[Any, Callable[[], Any]] = {
        "get": lambda: shown_issue(desk, key), "get_comments": lambda: _page(comments_of(desk, key), arguments),
        "get_reviews": lambda: reviews_of(desk, key)}
    method = arguments.get("method", "get")
    if method not in reads:
        raise Undecided(f"what {method!r} of a pull request gives")
    return compact(reads[method]())


def _in_repository(desk: CompanyDesk, repository: str, pulls: bool) -> list[str]:
    return [key for key in desk.where(ISSUE, "is_pull", pulls) if repository_key(key) == repository]


def list_issues(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `list_issues`: newest first unless another order is asked for; pull requests are no issues here."""
    if arguments.get("after") or arguments.get("field_filters") or arguments.get("fields"):
        raise Undecided("what the server gives for this cursor or these fields")
    repository = repository_of(desk, arguments, "list issues")
    keys = _in_repository(desk, repository, pulls=False)
    state = str(arguments.get("state") or "").casefold()
    if state in ("open", "closed"):
        keys = [key for key in keys if desk.value(ISSUE, key, "state") == state]
    wanted = set(arguments.get("labels") or ())
    if wanted:
        keys = [key for key in keys if wanted & set(desk.value(ISSUE, key, "labels") or ())]
    if arguments.get("since"):
        query = parse_query(f"updated:>={arguments['since']}")
        keys = [key for key in keys if fits(desk, key, query)]
    field = {"CREATED_AT": "created", "UPDATED_AT": "updated", "COMMENTS": "comments"}.get(
        arguments.get("orderBy", "CREATED_AT"), "created")
    keys.sort(key=lambda key: (desk.value(ISSUE, key, field), desk.value(ISSUE, key, "number")),
              reverse=arguments.get("direction", "DESC") == "DESC")
    return compact({"issues": [shown_issue(desk, key) for key in _page(keys, arguments)], "totalCount": len(keys)})


def list_pull_requests(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `list_pull_requests`: open ones, newest first, unless the call asks for others."""
    if arguments.get("fields") or arguments.get("sort") in ("popularity", "long-running"):
        raise Undecided("what the server gives for these fields or this order")
    repository = repository_of(desk, arguments, "list pull requests")
    state = arguments.get("state", "open")
    keys = [key for key in _in_repository(desk, repository, pulls=True)
            if state == "all" or desk.value(ISSUE, key, "state") == state]
    if arguments.get("base"):
        keys = [key for key in keys if desk.value(ISSUE, key, "base") == arguments["base"]]
    if arguments.get("head"):
        branch = arguments["head"].rpartition(":")[2]
        keys = [key for key in keys if desk.value(ISSUE, key, "branch") == branch]
    field = "updated" if arguments.get("sort") == "updated" else "created"
    is_rising = arguments.get("direction", "asc" if "sort" in arguments and field != "created" else "desc") == "asc"
    keys.sort(key=lambda key: (desk.value(ISSUE, key, field), desk.value(ISSUE, key, "number")), reverse=not is_rising)
    return compact([shown_issue(desk, key) for key in _page(keys, arguments)])


def _searched(kind: str) -> Callable[[CompanyDesk, Members], str]:
    def search(desk: CompanyDesk, arguments: Members) -> str:
        text = required(arguments, "query")
        if arguments.get("owner") and arguments.get("repo"):
            text = f"repo:{arguments['owner']}/{arguments['repo']} {text}"
        query = parse_query(f"is:{kind} {text}")
        keys = [key for key in desk.ids(ISSUE) if fits(desk, key, query)]
        sort = arguments.get("sort") or query.sort
        keys = ordered(desk, keys, sort, arguments.get("order") == "asc" if arguments.get("sort") else query.is_rising)
        items = [shown_issue(desk, key) for key in _page(keys, arguments)]
        return compact({"incomplete_results": False, "items": items, "total_count": len(keys)})
    return search


def add_issue_comment(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `add_issue_comment`."""
    body = required(arguments, "body")
    key = issue_of(desk, arguments, "create comment", required(arguments, "issue_number"), "POST")
    return compact({"id": add_comment(desk, key, body), "url": address_of(desk, key)})


def update_issue(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `update_issue`."""
    key = issue_of(desk, arguments, "update issue", required(arguments, "issue_number"), "PATCH")
    change_issue(desk, key, arguments)
    return compact({"id": key, "url": address_of(desk, key)})


def new_issue(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `create_issue`."""
    required(arguments, "title")
    key = create_issue(desk, repository_of(desk, arguments, "create issue"), arguments)
    return compact({"id": key, "url": address_of(desk, key)})


def issue_write(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `issue_write`."""
    method = arguments.get("method")
    if method not in ("create", "update"):
        raise ProductRefusal("invalid method, must be either 'create' or 'update'")
    return new_issue(desk, arguments) if method == "create" else update_issue(desk, arguments)


def get_file_contents(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `get_file_contents`: the text of a file of the main line, or the entries of a folder."""
    repository = repository_of(desk, arguments, "get file contents")
    if arguments.get("sha") or arguments.get("ref"):
        raise Undecided("files of other branches and commits")
    check_main_line(desk, repository)
    path = str(arguments.get("path") or "/").strip("/")
    key = f"{repository}:{path}"
    if desk.exists(FILE, key):
        text = desk.value(FILE, key, "text")
        if text is None:
            raise Undecided("the content of a file that is no text")
        return str(text)
    start = f"{repository}:{path}/" if path else f"{repository}:"
    inside = sorted({own[len(start):].split("/", 1)[0] for own in desk.ids(FILE) if own.startswith(start)})
    if not inside:
        place = f"{arguments['owner']}/{arguments['repo']}"
        raise ProductRefusal(f"failed to get file contents: path {path!r} not found in {place}")
    return compact([_entry(desk, start, name, path) for name in inside])


def _entry(desk: CompanyDesk, start: str, name: str, folder: str) -> Members:
    path = f"{folder}/{name}" if folder else name
    if not desk.exists(FILE, start + name):
        return {"name": name, "path": path, "type": "dir"}
    content = str(desk.value(FILE, start + name, "text", "")).encode()
    digest = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return {"name": name, "path": path, "sha": digest, "size": len(content), "type": "file"}


def list_commits(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `list_commits`: those of the main line, newest first."""
    if any(arguments.get(name) for name in ("sha", "path", "fields", "since", "until")):
        raise Undecided("commits of other branches, of a path or of a time")
    repository = repository_of(desk, arguments, "list commits")
    check_main_line(desk, repository)
    keys = [key for key in desk.ids(COMMIT) if key.startswith(repository + "@")]
    author = arguments.get("author")
    if author:
        keys = [key for key in keys if author in (desk.value(COMMIT, key, "email"), _login_of(desk, key))]
    return compact([_commit(desk, repository, key) for key in _page(keys[::-1], arguments)])


def _login_of(desk: CompanyDesk, key: str) -> str | None:
    return desk.account_of(LOGIN, str(desk.value(COMMIT, key, "email") or ""))


def _commit(desk: CompanyDesk, repository: str, key: str) -> Members:
    sha, login = key.rpartition("@")[2], _login_of(desk, key)
    author = {"name": desk.value(COMMIT, key, "author"), "email": desk.value(COMMIT, key, "email"),
              "date": instant_text(desk, repository, desk.value(COMMIT, key, "authored"))}
    return {"sha": sha, "html_url": f"{desk.value(REPOSITORY, repository, 'address')}/commit/{sha}",
            "commit": {"message": desk.value(COMMIT, key, "message"), "author": author},
            **({"author": {"login": login}} if login is not None else {})}


_NUMBERS = frozenset({"issue_number", "pullNumber", "page", "perPage", "milestone", "duplicate_of"})
_LISTS = frozenset({"labels", "assignees", "fields", "field_filters"})


def _typed(answer: Callable[[CompanyDesk, Members], str]) -> Callable[[CompanyDesk, Members], str]:
    """Return an answer that is unknown where an argument has another type than the server's schema says."""
    def answer_typed(desk: CompanyDesk, arguments: Members) -> str:
        for name, value in arguments.items():
            fits = isinstance(value, list) and all(isinstance(own, str) for own in value) if name in _LISTS else (
                isinstance(value, (int, float)) and not isinstance(value, bool) if name in _NUMBERS else isinstance(value, str))
            if not fits:
                raise Undecided(f"what the server says of {name!r} as {value!r}")
        return answer(desk, arguments)
    return answer_typed


_WRITTEN = (ISSUE, COMMENT)
TOOLS = {
    "issue_read": OfficeTool(_typed(issue_read)),
    "list_issues": OfficeTool(_typed(list_issues)),
    "search_issues": OfficeTool(_typed(_searched("issue"))),
    "search_pull_requests": OfficeTool(_typed(_searched("pr"))),
    "pull_request_read": OfficeTool(_typed(pull_request_read)),
    "list_pull_requests": OfficeTool(_typed(list_pull_requests)),
    "get_file_contents": OfficeTool(_typed(get_file_contents)),
    "list_commits": OfficeTool(_typed(list_commits)),
    "add_issue_comment": OfficeTool(_typed(add_issue_comment), writes=_WRITTEN),
    "update_issue": OfficeTool(_typed(update_issue), writes=_WRITTEN),
    "create_issue": OfficeTool(_typed(new_issue), writes=_WRITTEN),
    "issue_write": OfficeTool(_typed(issue_write), writes=_WRITTEN),
    **PULL_TOOLS,
}
