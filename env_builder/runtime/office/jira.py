"""Answer the tools of Jira as mcp-atlassian names and shows them; product `jira` of a company.

In: a desk and a call's arguments. Out: the server's JSON, or Jira's refusal behind "Error: ".
Sees: the records of a Jira export as one person sees them (`jira_issues.py`), JQL (`jira_search.py`), the workflow
(`jira_changes.py`). Where recorded answers show that the company's server shows other fields than today's by default, they win.
Does not see: boards, sprints, attachments, work logs; the log of changes, rights on single comments, projects without issues.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from ..company import CompanyDesk, Undecided
from . import jira_changes as changes
from .indented import indented_json
from .jira_fields import parse_object, read_fields
from .jira_issues import (
    ALL,
    COMMENT,
    DEFAULT_FIELDS,
    ISSUE,
    LINK,
    LINK_TYPE,
    LISTED_FIELD,
    PRODUCT,
    PROJECT,
    Fields,
    JiraDesk,
    refused,
)
from .jira_search import search_keys
from .tools import OfficeTool

SERVER = "mcp-atlassian-jira"
Arguments = dict[str, Any]
WATCHER = "jira_watcher"
_DEFAULT_LIMIT, _MOST = 10, 50
_LINKS = {"Blocks": ("blocks", "is blocked by", "10000"), "Cloners": ("clones", "is cloned by", "10001"),
          "Duplicate": ("duplicates", "is duplicated by", "10002"), "Relates": ("relates to", "relates to", "10003")}
"""Types of links that Jira brings along -> outward and inward wording, number."""


def _fields_of(site: JiraDesk, tool: str, given: Any) -> tuple[Fields, bool]:
    """Return the fields that a call asks for, and whether it leaves them to the server."""
    if given == ALL:
        return ALL, False
    listed = given if isinstance(given, list) else str(given or "").split(",")
    names = [name for each in listed if (name := str(each).strip())]
    if names and set(names) != set(DEFAULT_FIELDS):
        return names, False
    shown = site.desk.convention(PRODUCT, "shown", {}).get(tool)
    if shown is None:
        return [*DEFAULT_FIELDS, "comment"] if tool == "jira_get_issue" else list(DEFAULT_FIELDS), True
    if shown["all"]:
        return None, True
    return [*DEFAULT_FIELDS, "comment"] if shown["comments"] else list(DEFAULT_FIELDS), True


def _get_issue(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    key = site.visible(arguments["issue_key"])
    if arguments.get("use_display_names") or arguments.get("expand") or arguments.get("properties"):
        raise Undecided("what an issue shows with expand, properties or display names")
    fields, _ = _fields_of(site, "jira_get_issue", arguments.get("fields"))
    sections = {"comments" if name == "comment" else name for part in str(arguments.get("include") or "").split(",")
                if (name := part.strip().lower())}
    if sections - {"comments", "transitions"}:
        raise Undecided(f"what the issue shows under {', '.join(sorted(sections))}")
    if "comments" in sections and isinstance(fields, list) and "comment" not in fields:
        fields = [*fields, "comment"]
    issue = site.issue(key, fields, int(arguments.get("comment_limit", 10) or 0))
    if "comments" in sections:
        issue.setdefault("comments", [])
    if "transitions" in sections:
        issue["transitions"] = changes.transitions(site, key)
    return indented_json(issue)


def _search(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    if arguments.get("use_display_names") or arguments.get("expand") or arguments.get("page_token"):
        raise Undecided("what a search shows with expand, a page token or display names")
    jql = str(arguments["jql"])
    projects = [name.strip() for name in str(arguments.get("projects_filter") or "").split(",") if name.strip()]
    if projects:
        listed = ", ".join(f'"{name}"' for name in projects)
        where, order, rest = _cut_order(jql)
        jql = f"project IN ({listed})" + (f" AND ({where})" if where else "") + order + rest
    fields, is_default = _fields_of(site, "jira_search", arguments.get("fields"))
    shows_comments = not is_default or site.desk.convention(PRODUCT, "shown", {}).get("jira_search", {}).get("comments", False)
    return _page(site, search_keys(site, jql), arguments, fields, None if shows_comments else 0)


def _cut_order(jql: str) -> tuple[str, str, str]:
    """Split a query before its ORDER BY."""
    at = jql.upper().rfind("ORDER BY")
    return (jql.strip(), "", "") if at < 0 else (jql[:at].strip(), " ", jql[at:])


def _page(site: JiraDesk, keys: list[str], arguments: Arguments, fields: Fields, n_comments: int | None) -> str:
    limit = min(max(1, int(arguments.get("limit") or _DEFAULT_LIMIT)), _MOST)
    start = max(0, int(arguments.get("start_at") or 0))
    issues = [site.issue(key, fields, n_comments) for key in keys[start:start + limit]]
    return indented_json({"total": len(keys), "start_at": start, "max_results": limit, "issues": issues})


def _get_project_issues(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    keys = search_keys(site, f'project = "{arguments["project_key"]}"')
    fields, _ = _fields_of(site, "jira_search", None)
    return _page(site, keys, arguments, fields, 0)


def _get_transitions(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    return indented_json(changes.transitions(site, site.visible(arguments["issue_key"])))


def _transition_issue(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    key = site.visible(arguments["issue_key"])
    changes.transition(site, key, str(arguments["transition_id"]), parse_object(arguments.get("fields"), "additional_fields"))
    if arguments.get("comment"):
        changes.add_comment(site, key, arguments["comment"])
    desk.acted()
    return indented_json({"message": f"Issue {key} transitioned successfully", "issue": site.issue(key)})


def _create_issue(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    project = str(arguments["project_key"]).strip()
    given: Arguments = {"summary": arguments.get("summary"),
                        **parse_object(arguments.get("additional_fields"), "additional_fields")}
    for name in ("description", "assignee"):
        if arguments.get(name):
            given[name] = arguments[name]
    if arguments.get("components"):
        given["components"] = arguments["components"]
    key = changes.create(site, project, str(arguments["issue_type"]), read_fields(site, project, given))
    desk.acted()
    return indented_json({"message": "Issue created successfully", "issue": site.issue(key)})


def _update_issue(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    key = site.visible(arguments["issue_key"])
    if arguments.get("attachments"):
        desk.doubt("attachments of issues")
    given = {**parse_object(arguments.get("fields"), "additional_fields"),
             **parse_object(arguments.get("additional_fields"), "additional_fields")}
    if arguments.get("components"):
        given["components"] = arguments["components"]
    status = given.pop("status", None)
    changes.update(site, key, read_fields(site, site.value(key, "project"), given))
    if status:
        changes.transition(site, key, _step_to(site, key, status), {})
    desk.acted()
    wanted = str(arguments.get("return_fields") or ALL)
    fields: Fields = None if wanted == ALL else [name.strip() for name in wanted.split(",")]
    return indented_json({"message": "Issue updated successfully", "issue": site.issue(key, fields)})


def _step_to(site: JiraDesk, key: str, status: Any) -> str:
    """Return the id of the transition to a status that an update names. Errors: ProductRefusal."""
    wanted = status.get("name") or status.get("id") if isinstance(status, dict) else status
    steps = changes.transitions(site, key)
    step = next((step for step in steps if str(wanted).lower() in (step["to_status"].lower(), step["id"])), None)
    if step is None:
        listed = ", ".join(f"{step['name']} -> {step['to_status']}" for step in steps) or "None found"
        raise refused(f"Could not find transition to status '{status}'. Available transitions: {listed}")
    return step["id"]


def _add_comment(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    key = site.visible(arguments["issue_key"])
    if arguments.get("visibility") or arguments.get("public"):
        desk.doubt("rights on single comments")
    comment = changes.add_comment(site, key, arguments.get("body", arguments.get("comment")))
    return indented_json({"id": comment, "body": desk.value(COMMENT, comment, "body"),
                   "created": _comment_time(site, desk.value(COMMENT, comment, "created")),
                   "author": site.profile(site.me)["display_name"]})


def _edit_comment(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    key, comment = site.visible(arguments["issue_key"]), str(arguments["comment_id"]).strip()
    if arguments.get("visibility"):
        desk.doubt("rights on single comments")
    changes.edit_comment(site, key, comment, arguments.get("body"))
    return indented_json({"id": comment, "body": desk.value(COMMENT, comment, "body"),
                   "updated": _comment_time(site, desk.value(COMMENT, comment, "updated")),
                   "author": site.profile(site.me)["display_name"]})


def _comment_time(site: JiraDesk, seconds: float) -> str:
    """Return an instant as the server's answer to a comment shows it: Jira's own form, or Python's."""
    text = site.time(seconds)
    if site.desk.convention(PRODUCT, "comment_time") == "jira":
        return text
    return str(datetime.fromisoformat(text))


def _create_issue_link(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    source, target = (site.visible(arguments[name]) for name in ("inward_issue_key", "outward_issue_key"))
    if arguments.get("comment_visibility"):
        desk.doubt("rights on single comments")
    kind = str(arguments["link_type"])
    name = site.named(LINK_TYPE, kind)
    if name is not None:
        outward, inward = (str(desk.value(LINK_TYPE, name, side)) for side in ("outward", "inward"))
    elif kind in _LINKS:
        outward, inward, number = _LINKS[kind]
        desk.write(LINK_TYPE, kind, name=kind, outward=outward, inward=inward, number=number)
    else:
        desk.doubt(f"no record shows the type of links {kind!r}")
        outward = inward = kind
    number = str(int(desk.made_id("link", 8), 16))
    for key, other, wording in ((source, target, outward), (target, source, inward)):
        links = [*(site.value(key, "links") or ()), {"type": wording, "key": other}]
        desk.write(ISSUE, key, links=links, updated=desk.now)
        desk.write(LINK, f"{key} {wording} {other}", number=number)
    if arguments.get("comment"):
        changes.add_comment(site, source, arguments["comment"])
    return indented_json({"success": True, "message": f"Link created between {source} and {target}", "link_type": kind,
                   "inward_issue": source, "outward_issue": target})


def _add_watcher(desk: CompanyDesk, arguments: Arguments) -> str:
    """Write who watches as a record of its own: exports do not tell who else does."""
    site = JiraDesk(desk)
    key, given = site.visible(arguments["issue_key"]), str(arguments["user_identifier"]).strip()
    account = site.account(given)
    if account is None:
        desk.doubt(f"no record shows the person {given!r}")
    if desk.is_known(ISSUE, key, "watchers"):
        watchers = site.value(key, "watchers") or []
        desk.write(ISSUE, key, watchers=[*watchers, *([account] if account not in watchers else [])])
    desk.write(WATCHER, f"{key}/{account}", key=key, account=account)
    return indented_json({"success": True, "message": f"User '{given}' added as watcher to {key}", "issue_key": key,
                          "user": given})


def _get_user_profile(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    given = str(arguments["user_identifier"]).strip()
    account = site.me if given.lower() == "me" else site.account(given)
    if account is not None:
        return indented_json({"success": True, "user": site.profile(account)})
    error = f"Could not resolve email '{given}' to a valid account ID for Jira Cloud." if "@" in given \
        else f"Could not determine how to look up user '{given}'."
    return indented_json({"success": False, "error": error, "user_identifier": given})


def _get_all_projects(desk: CompanyDesk, arguments: Arguments) -> str:
    site = JiraDesk(desk)
    return indented_json([site.project(key) for key in sorted(desk.ids(PROJECT)) if site.sees_project(key)])


def _search_fields(desk: CompanyDesk, arguments: Arguments) -> str:
    """List fields whose id or name holds the keyword; the server's order of fields that only resemble it is not known."""
    if not desk.value("setting", PRODUCT, "lists_all_fields", False):
        raise Undecided("the export does not list the fields of the site")
    keyword = str(arguments.get("keyword") or "").strip().lower()
    limit = int(arguments.get("limit") or _DEFAULT_LIMIT)
    rows = [desk.value(LISTED_FIELD, name, "row") for name in desk.ids(LISTED_FIELD)]
    if keyword:
        names = [[str(name).lower() for name in (row.get("id"), row.get("key"), row.get("name"), *row.get("clauseNames", ()))
                  if name] for row in rows]
        fitting = [row for row, own in zip(rows, names, strict=True)
                   if any(keyword in name or name in keyword for name in own)]
        if limit > len(fitting):
            raise Undecided(f"which fields resemble {keyword!r} most")
        rows = fitting
    return indented_json(rows[:limit])


_READS: dict[str, Callable[[CompanyDesk, Arguments], str]] = {
    "jira_get_issue": _get_issue, "jira_search": _search, "jira_get_project_issues": _get_project_issues,
    "jira_get_transitions": _get_transitions, "jira_get_user_profile": _get_user_profile,
    "jira_get_all_projects": _get_all_projects, "jira_search_fields": _search_fields,
}
_WRITES: dict[str, Callable[[CompanyDesk, Arguments], str]] = {
    "jira_create_issue": _create_issue, "jira_update_issue": _update_issue, "jira_transition_issue": _transition_issue,
    "jira_add_comment": _add_comment, "jira_edit_comment": _edit_comment, "jira_create_issue_link": _create_issue_link,
    "jira_add_watcher": _add_watcher,
}
_REQUIRED: dict[str, tuple[str, ...]] = {
    "jira_get_issue": ("issue_key",), "jira_search": ("jql",), "jira_get_project_issues": ("project_key",),
    "jira_get_transitions": ("issue_key",), "jira_get_user_profile": ("user_identifier",),
    "jira_create_issue": ("project_key", "summary", "issue_type"), "jira_update_issue": ("issue_key", "fields"),
    "jira_transition_issue": ("issue_key", "transition_id"), "jira_add_comment": ("issue_key",),
    "jira_edit_comment": ("issue_key", "comment_id", "body"), "jira_add_watcher": ("issue_key", "user_identifier"),
    "jira_create_issue_link": ("link_type", "inward_issue_key", "outward_issue_key"),
}
_NUMBERS = ("limit", "start_at", "comment_limit")


def _checked(tool: str, answer: Callable[[CompanyDesk, Arguments], str]) -> Callable[[CompanyDesk, Arguments], str]:
    """Return an answer that leaves open what the server says of arguments that its schema forbids."""
    def answer_checked(desk: CompanyDesk, arguments: Arguments) -> str:
        missing = [name for name in _REQUIRED.get(tool, ()) if arguments.get(name) is None]
        if missing:
            raise Undecided(f"what the server answers without {', '.join(missing)}")
        for name in _NUMBERS:
            value = arguments.get(name)
            if value is not None and not (isinstance(value, int) or (isinstance(value, str) and value.strip().isdigit())):
                raise Undecided(f"what the server answers to {name} = {value!r}")
        return answer(desk, arguments)

    return answer_checked


_WRITTEN = (ISSUE, COMMENT, LINK, LINK_TYPE, WATCHER)
TOOLS: dict[str, OfficeTool] = {
    **{name: OfficeTool(_checked(name, answer)) for name, answer in _READS.items()},
    **{name: OfficeTool(_checked(name, answer), writes=_WRITTEN) for name, answer in _WRITES.items()},
}
"""Name of a tool -> what answers it."""
