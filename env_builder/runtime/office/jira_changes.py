"""Change a Jira site: create, update, move and comment issues.

In: a Jira site as a person sees it, and what a call asks for. Out: writes at the desk, or Jira's refusal.
Sees: the exported workflow, or the transitions that recorded answers show; the resolution and the first status that changelogs
agree on; refusals of recorded calls (`env_builder/company/jira_habits.py`), in their own words; what the site's rules do to
new and changed issues (`jira_rules.py` there).
Assumes: a field that was changed several times, but never on a resolved issue, is locked there, as a move that the workflow
lacks is refused. The answer is unknown, as no record has the words, and nothing changes. Of a field that was hardly changed at
all, it is undecided whether it is locked.
Does not see: validators that no recorded call met; fields that a project requires; default assignees; rules that changelogs do
not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from ..company import UNDECIDED, Undecided, UnwordedRefusal
from .jira_issues import COMMENT, ISSUE, PRIORITY, PRODUCT, PROJECT, RESOLUTION, STATUS, TYPE, JiraDesk, refused

DEFAULT_PRIORITY = "Medium"
"""Of a site that Jira set up."""


def transitions(site: JiraDesk, key: str) -> list[dict[str, str]]:
    """Return the transitions of an issue as the server shows them. Errors: Undecided if no record shows them."""
    status = site.value(key, "status")
    steps = site.desk.value(STATUS, status, "transitions")
    if isinstance(steps, list):
        return [{"id": str(step["id"]), "name": step["name"], "to_status": step["to"]} for step in steps]
    shown = site.desk.convention(PRODUCT, "transitions", {}).get(status)
    if shown is None:
        raise Undecided(f"no record shows the transitions from the status {status!r}")
    return [dict(step) for step in shown]


def transition(site: JiraDesk, key: str, wanted: str, fields: Mapping[str, Any]) -> None:
    """Move an issue by a transition's id. Errors: ProductRefusal, Undecided."""
    steps = transitions(site, key)
    step = next((step for step in steps if step["id"] == wanted.strip()), None)
    if step is None:
        raise _refused_transition(site, key, wanted.strip())
    status = step["to_status"]
    named = fields.get("resolution")
    before = site.value(key, "resolution")
    after = _resolution_after(site, status, before)
    if named is not None:
        text = str(named.get("name") or named.get("id") or "") if isinstance(named, dict) else str(named)
        name = site.named(RESOLUTION, text)
        if name is None:
            site.desk.doubt(f"no record shows the resolution {text!r}")
        after = name
    unknown = [name for name in fields if name != "resolution"]
    if unknown:
        site.desk.doubt(f"whether the transition's screen has {', '.join(unknown)}")
    now = site.desk.now
    resolved = None if after is None else site.value(key, "resolved") if after == before else now
    site.desk.write(ISSUE, key, **dict.fromkeys(unknown, UNDECIDED), status=status, resolution=after, resolved=resolved,
                    updated=now)


def _resolution_after(site: JiraDesk, status: str, before: str | None) -> str | None:
    """Return the resolution of an issue that came into a status: as changelogs agree; none in one that is not done."""
    after = site.desk.value(STATUS, status, "resolution_after")
    if after is not None:
        return after[0] if after[0] is None else str(after[0])
    code = site.category_code(status)
    if code is not None and code != "done":
        return None
    site.desk.doubt(f"no changelog shows the resolution of issues in the status {status!r}")
    return None


def _refused_transition(site: JiraDesk, key: str, wanted: str) -> Exception:
    """Return the refusal of a transition: in the words of a recorded one, else in Jira's."""
    known_steps = [step for name in site.desk.ids(STATUS) for step in site.desk.value(STATUS, name, "transitions") or ()
                   if str(step["id"]) == wanted]
    target = str(known_steps[0]["to"]) if known_steps else ""
    for template in site.desk.convention(PRODUCT, "refused_transitions", ()):
        if target or "{to}" not in template:
            return refused_in(template, key=key, status=site.value(key, "status"), to=target, transition=wanted)
    if known_steps:   # as Jira words it since its version 4.1
        return refused(f"It seems that you have tried to perform a workflow operation ({known_steps[0]['name']}) that is not "
                       f"valid for the current state of this issue ({key}). The likely cause is that somebody has changed the "
                       "issue recently, please look at the issue history for details.")
    return refused(f"Transition id '{wanted}' is not valid for this issue.")


def refused_in(template: str, **slots: str) -> Exception:
    """Return a refusal in recorded words; `{key}`, `{status}` … stand for what belongs to the call."""
    for name, value in slots.items():
        template = template.replace("{" + name + "}", value)
    return refused(template.removeprefix("Error: "))


def update(site: JiraDesk, key: str, fields: Mapping[str, Any]) -> None:
    """Set fields of an issue. Errors: ProductRefusal, Undecided."""
    changed = {name: value for name, value in fields.items() if site.value(key, name) != value}
    for name in fields:
        _check_editable(site, key, name)
    if changed:
        site.desk.write(ISSUE, key, **changed, updated=site.desk.now)
        _apply_rules(site, key, changed, is_new=False)


def _check_editable(site: JiraDesk, key: str, field: str) -> None:
    """Reject a change that recorded refusals show to be refused; leave undecided what no record shows on resolved issues."""
    is_resolved = site.value(key, "resolution") is not None
    facts = {"always": True, "resolved": is_resolved, "open": not is_resolved, f"status {site.value(key, 'status')}": True}
    for rule in site.desk.convention(PRODUCT, "refused_updates", ()):
        if rule["field"] != field:
            continue
        results = {facts.get(condition, False) for condition in rule["conditions"]}
        if results == {True, False}:
            site.desk.doubt(f"recorded refusals do not tell whether {field!r} can be changed on {key}")
            return
        if True in results:
            raise refused_in(rule["text"], key=key, status=site.value(key, "status"))
        return
    if is_resolved and field in site.desk.convention(PRODUCT, "locked_on_resolved", ()):
        raise UnwordedRefusal(f"no record has Jira's words where {field!r} is locked on a resolved issue")
    if is_resolved and field not in site.desk.convention(PRODUCT, "changed_on_resolved", ()):
        site.desk.doubt(f"nobody changed {field!r} on a resolved issue in the exports: it may be locked there")


def create(site: JiraDesk, project: str, kind: str, fields: Mapping[str, Any]) -> str:
    """Create an issue, and return its key. Errors: ProductRefusal, Undecided."""
    desk = site.desk
    if not site.sees_project(project):
        if not desk.exists(PROJECT, project):
            raise Undecided(f"what Jira answers where there is no project {project!r}")
        desk.doubt(f"what Jira answers where the person cannot see the project {project!r}")
    type_name = site.named(TYPE, kind)
    if type_name is None:
        desk.doubt(f"no record shows the type {kind!r}")
        type_name = kind
    if desk.value(TYPE, type_name, "is_subtask"):
        desk.doubt("what Jira shows of a parent")
    status = desk.value(PROJECT, project, "first_status") or desk.value(TYPE, type_name, "first_status")
    if status is None:
        desk.doubt(f"issues of {project} begin in several statuses")
        status = UNDECIDED
    key, now = _next_key(site, project), desk.now
    priority = fields.get("priority") or default_priority(site, project, type_name)
    number = desk.assigned(ISSUE, key, "number") or _next_number(site)
    empty: dict[str, Any] = {"summary": "", "description": None, "duedate": None, "assignee": None, "labels": [],
                             "fix_versions": [], "versions": [], "component": None, "reporter": site.me}
    columns = {str(desk.value("jira_field", field, "column")): None for field in desk.ids("jira_field")}
    desk.write(ISSUE, key, **{
        **empty, **columns, **fields, "key": key, "project": project, "created": now, "updated": now, "parent": None,
        "number": number, "url": _url(site, project, key, number), "type": type_name, "status": status, "priority": priority,
        "resolution": None, "resolved": None, "links": [], "watchers": [site.me]})
    _apply_rules(site, key, {"project": project, "type": type_name, "priority": priority, "reporter": site.me, **fields},
                 is_new=True)
    return key


def _apply_rules(site: JiraDesk, key: str, changed: Mapping[str, Any], *, is_new: bool) -> None:
    """Do to an issue what the site's rules do when it is created, or when a field comes to a value. Errors: Undecided."""
    for rule in site.desk.convention(PRODUCT, "rules", ()):
        results = {changed.get(field) == value for field, value in rule["when"]}
        if results == {False}:
            continue
        acts = (True if is_new else rule["on_change"]) if results == {True} else None
        if acts is None:
            site.desk.doubt(f"no changelog shows whether a rule of the site sets {rule['field']!r} here")
            site.desk.write(ISSUE, key, **{rule["field"]: UNDECIDED})
            continue
        if not acts:
            continue
        field = rule["field"]
        if "adds" in rule:
            value: Any = sorted({*(site.value(key, field) or ()), rule["adds"]})
        elif "days" in rule:
            value = f"{datetime.fromtimestamp(site.desk.now, UTC) + timedelta(days=rule['days']):%Y-%m-%d}"
        else:
            value = rule["value"]
        site.desk.write(ISSUE, key, **{field: value})


def default_priority(site: JiraDesk, project: str, kind: str) -> str | None:
    """Return the priority of an issue created without one: as recorded calls show, else Jira's default."""
    shown = site.desk.convention(PRODUCT, "default_priorities", {})
    for name in (f"{project} {kind}", ""):
        if name in shown:
            return None if shown[name] is None else str(shown[name])
    if shown:
        raise Undecided(f"recorded calls do not show the default priority of {kind} in {project}")
    if not site.desk.exists(PRIORITY, DEFAULT_PRIORITY):
        raise Undecided("no record shows the default priority")
    return DEFAULT_PRIORITY


def _next_key(site: JiraDesk, project: str) -> str:
    """Return the key of the next issue of a project: as the export shows, else the last one's and one."""
    key = site.desk.next_id(ISSUE, "project", project)
    if key is not None:
        return key
    numbers = [int(number) for other in site.desk.where(ISSUE, "project", project)
               if (number := other.rpartition("-")[2]).isdigit()]
    if not numbers:
        raise Undecided(f"no record shows the next number of {project}")
    return f"{project}-{max(numbers) + 1}"


def _next_number(site: JiraDesk) -> Any:
    """Return the next number of the site's issues; `UNDECIDED` where older issues do not have smaller ones."""
    numbers = [int(number) for key in site.desk.ids(ISSUE) if str(number := site.value(key, "number")).isdigit()]
    if any(one > other for one, other in pairwise(numbers)):
        return UNDECIDED
    return str(max(numbers, default=10_000) + 1)


def _url(site: JiraDesk, project: str, key: str, number: Any) -> Any:
    """Return the address of a new issue at the REST API, made like that of another one of the project."""
    url = site.desk.assigned(ISSUE, key, "url")
    if url is not None:
        return str(url)
    other = site.desk.where(ISSUE, "project", project)[-1]
    url, own = str(site.value(other, "url") or ""), str(site.value(other, "number"))
    head, _, last = url.rpartition("/")
    return f"{head}/{key}" if last == other else None if last != own else number if number is UNDECIDED else f"{head}/{number}"


def add_comment(site: JiraDesk, key: str, body: Any) -> str:
    """Write a comment, and return its id. Errors: ProductRefusal."""
    if not isinstance(body, str) or not body.strip():
        raise refused("Comment body can not be empty!")
    now = site.desk.now
    comment = site.desk.next_id(COMMENT)
    if comment is None:
        comment = str(max((int(other) for other in site.desk.ids(COMMENT) if other.isdigit()), default=10_000) + 1)
    site.desk.write(COMMENT, comment, key=key, author=site.me, created=now, updated=now, deleted=False, body=body)
    site.desk.write(ISSUE, key, updated=now)
    return comment


def edit_comment(site: JiraDesk, key: str, comment: str, body: Any) -> None:
    """Change a comment's text. Errors: ProductRefusal, Undecided."""
    if comment not in site.comments(key):
        raise refused(f"Can not find a comment for the id: {comment}.")
    if not isinstance(body, str) or not body.strip():
        raise refused("Comment body can not be empty!")
    if site.desk.value(COMMENT, comment, "author") != site.me:
        site.desk.doubt("whether the person may edit comments of others")
    site.desk.write(COMMENT, comment, body=body, updated=site.desk.now)
    site.desk.write(ISSUE, key, updated=site.desk.now)
