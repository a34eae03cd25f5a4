"""Open, change and merge pull requests, and push files, as github-mcp-server does.

In: a desk, arguments. Out: the server's JSON; writes of `gh`, `commit`, `file`.
Exports hold the main line alone: that the head branch of a pull request exists is taken as given, a push to another branch is
undecided, and after a merge in the episode the files and commits of the main line are, as nobody knows what the branch held
(`gh_merge`). Does not see: checks, protections, who may push or merge; drafts.
"""

from __future__ import annotations

from typing import Any

from ..company import CompanyDesk, ProductRefusal, Undecided
from .github_issues import (
    ISSUE,
    REPOSITORY,
    Members,
    address_of,
    compact,
    create_issue,
    is_pull,
    issue_of,
    repository_key,
    repository_of,
    required,
)
from .tools import OfficeTool

FILE, COMMIT, MERGE = "file", "commit", "gh_merge"
_API = "https://api.github.com/repos"


def check_main_line(desk: CompanyDesk, repository: str) -> None:
    """Raise `Undecided` if the episode merged into the repository's main line what no export holds."""
    if desk.exists(MERGE, repository):
        raise Undecided(f"what a merge of this episode brought to the main line of {repository}")


def _place(arguments: Members) -> str:
    return f"{_API}/{arguments['owner']}/{arguments['repo']}"


def _pull_of(desk: CompanyDesk, arguments: Members, act: str, method: str) -> str:
    key = issue_of(desk, arguments, act, required(arguments, "pullNumber"), method)
    if not is_pull(desk, key):
        number = int(arguments["pullNumber"])
        raise ProductRefusal(f"failed to {act}: {method} {_place(arguments)}/pulls/{number}: 404 Not Found []")
    return key


def create_pull_request(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `create_pull_request`. Errors: ProductRefusal, Undecided."""
    title, head, base = (str(required(arguments, name)) for name in ("title", "head", "base"))
    repository = repository_of(desk, arguments, "create pull request")
    if arguments.get("draft"):
        raise Undecided("drafts are in no export")
    branch = head.rpartition(":")[2]
    if any(desk.value(ISSUE, key, "state") == "open" and repository_key(key) == repository
           for key in desk.where(ISSUE, "branch", branch)):
        raise ProductRefusal(f"failed to create pull request: POST {_place(arguments)}/pulls: 422 Validation Failed "
                             f"[{{Resource:PullRequest Field: Code:custom Message:A pull request already exists for "
                             f"{arguments['owner']}:{branch}.}}]")
    key = create_issue(desk, repository, {"title": title, "body": arguments.get("body", "")})
    desk.write(ISSUE, key, is_pull=True, branch=branch, base=base, reviewers=list(arguments.get("reviewers") or ()))
    return compact({"id": key, "url": address_of(desk, key)})


def update_pull_request(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `update_pull_request`. Errors: ProductRefusal, Undecided."""
    key = _pull_of(desk, arguments, "update pull request", "PATCH")
    if "draft" in arguments:
        raise Undecided("drafts are in no export")
    values: dict[str, Any] = {name: arguments[name] for name in ("title", "body", "base") if name in arguments}
    state = arguments.get("state")
    if state is not None and state != desk.value(ISSUE, key, "state"):
        if desk.value(ISSUE, key, "merged", False):
            raise Undecided("what the server says of a merged pull request that is opened again")
        values |= {"state": state, "closed": desk.now if state == "closed" else None}
    if arguments.get("reviewers"):
        values["reviewers"] = sorted({*(desk.value(ISSUE, key, "reviewers") or ()), *arguments["reviewers"]})
    if not values:
        raise ProductRefusal("No update parameters provided.")
    desk.write(ISSUE, key, **values, updated=desk.now)
    return compact({"id": key, "url": address_of(desk, key)})


def merge_pull_request(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `merge_pull_request`. Errors: ProductRefusal."""
    key = _pull_of(desk, arguments, "merge pull request", "PUT")
    if desk.value(ISSUE, key, "state") != "open":
        number = int(arguments["pullNumber"])
        raise ProductRefusal(f"failed to merge pull request: PUT {_place(arguments)}/pulls/{number}/merge: "
                             "405 Pull Request is not mergeable []")
    desk.write(ISSUE, key, merged=True, state="closed", closed=desk.now, updated=desk.now)
    sha = desk.made_id("merge", 40)
    desk.write(MERGE, repository_key(key), sha=sha)
    return compact({"merged": True, "message": "Pull Request successfully merged", "sha": sha})


def push_files(desk: CompanyDesk, arguments: Members) -> str:
    """Answer `push_files`: one commit on the main line. Errors: ProductRefusal, Undecided."""
    repository = repository_of(desk, arguments, "get branch reference")
    branch, message = (str(required(arguments, name)) for name in ("branch", "message"))
    if branch != _main_branch(desk, repository):
        raise Undecided("branches other than the main line are in no export")
    given = arguments.get("files")
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ProductRefusal("files parameter must be an array of objects with path and content")
    for each in given:
        for name in ("path", "content"):
            if not isinstance(each.get(name), str) or not each["path"]:
                raise ProductRefusal(f"each file must have a {name}")
    author, email = _signature(desk)
    sha = desk.made_id("commit", 40)
    desk.write(COMMIT, f"{repository}@{sha}", message=message, author=author, email=email, authored=float(int(desk.now)))
    for each in given:
        desk.write(FILE, f"{repository}:{each['path'].strip('/')}", text=each["content"])
    return compact({"object": {"sha": sha, "type": "commit"}, "ref": f"refs/heads/{branch}"})


def _main_branch(desk: CompanyDesk, repository: str) -> str:
    """Return the name of the main line: the base of most pull requests. Errors: Undecided."""
    bases = [desk.value(ISSUE, key, "base") for key in desk.where(ISSUE, "is_pull", True) if repository_key(key) == repository]
    named = sorted({base for base in bases if base}, key=lambda base: (-bases.count(base), base))
    if not named and not desk.exists(REPOSITORY, repository):
        raise Undecided(f"no record shows the main branch of {repository}")
    return str(named[0]) if named else "main"


def _signature(desk: CompanyDesk) -> tuple[str, str]:
    """Return name and address in the person's commits: as in the last one, else as the directory has them."""
    own = desk.address.lower()
    login = desk.account_of("login", own)
    for key in reversed(list(desk.ids(COMMIT))):
        email = str(desk.value(COMMIT, key, "email") or "")
        if email.lower() == own or (login is not None and desk.account_of("login", email) == login):
            return str(desk.value(COMMIT, key, "author")), email
    name = desk.value("person", own, "name") if desk.exists("person", own) else None
    if name is None:
        raise Undecided(f"no record shows how {own} signs commits")
    return str(name), own


PULL_TOOLS = {
    "create_pull_request": OfficeTool(create_pull_request, writes=(ISSUE,)),
    "update_pull_request": OfficeTool(update_pull_request, writes=(ISSUE,)),
    "merge_pull_request": OfficeTool(merge_pull_request, writes=(ISSUE, MERGE)),
    "push_files": OfficeTool(push_files, writes=(COMMIT, FILE)),
}
