"""Which calls of the apps' tools may bring a change of a record about.

In: a desk just before the change, an act. Out: proposals, each a sequence of calls, the likeliest first. A proposal is a guess:
`demonstrations` tries it in a fork, and takes it only if it changes what the act changed.
A product's inverse stands in `INVERSES` by the class of the records; `row_inverses` inverts the company's own tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from env_builder.runtime.company import CompanyDesk
from env_builder.runtime.office.calendar_events import instant_text
from env_builder.runtime.office.drive import TOOLS as DRIVE
from env_builder.runtime.office.drive import tabs_of
from env_builder.runtime.office.jira_changes import transitions
from env_builder.runtime.office.jira_issues import JiraDesk
from env_builder.runtime.office.mailboxes import letters
from env_builder.work.acts import ActCall, RecordAct

Proposals = Iterator[list[ActCall]]
_GOOGLE = "@google.com"
_MOST_ROWS = 12
"""Rows of a table that are changed one by one; of more, all are written at once."""


def proposals(desk: CompanyDesk, act: RecordAct) -> Proposals:
    """Yield sequences of calls of the public tools that may do an act. Errors: Undecided, LookupError."""
    inverse = INVERSES.get(act.entity_class)
    return iter(()) if inverse is None else inverse(desk, act)


def _post(desk: CompanyDesk, act: RecordAct) -> Proposals:
    if act.is_new:
        thread = act.after.get("thread_ts")
        yield [ActCall("conversations_add_message", {
            "channel_id": act.after["channel"], **({"thread_ts": thread} if thread else {}),
            "text": act.after.get("text", "")})]
    elif "reactions" in act.after:
        own = desk.account("slack_user")
        for tool, more, fewer in (("reactions_add", act.after, act.before), ("reactions_remove", act.before, act.after)):
            for emoji, users in (more["reactions"] or {}).items():
                if own in users and own not in (fewer["reactions"] or {}).get(emoji, ()):
                    channel, _, stamp = act.key.partition("/")
                    yield [ActCall(tool, {"channel_id": channel, "timestamp": stamp, "emoji": emoji})]


def _mail(desk: CompanyDesk, act: RecordAct) -> Proposals:
    if not act.is_new:
        return
    after = act.after
    given = {"to": ", ".join(after.get("to") or ()), "subject": after.get("subject") or "", "body": after.get("body") or ""}
    given |= {"cc": ", ".join(after["cc"])} if after.get("cc") else {}
    answered = [letter for letter in letters(desk) if letter.thread == after.get("thread")]
    if answered:
        yield [ActCall("send_gmail_message", {**given, "thread_id": answered[-1].thread, "in_reply_to": answered[-1].key})]
    yield [ActCall("send_gmail_message", given)]


_BY_NAME = ("summary", "description", "environment", "labels", "duedate")
_RENAMED = {"component": "components", "fix_versions": "fixVersions", "versions": "versions"}


def _issue_fields(desk: CompanyDesk, values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return fields of an issue as the server takes them."""
    given: dict[str, Any] = {}
    for field, value in values:
        if field in _BY_NAME:
            given[field] = value
        elif field == "priority":
            given[field] = None if value is None else {"name": value}
        elif field in ("assignee", "reporter"):
            given[field] = _address(desk, "jira_user", value) if value else value
        elif field in _RENAMED:
            names = value if isinstance(value, list) else [value] if value else []
            given[_RENAMED[field]] = [{"name": name} for name in names]
        else:
            column = [key for key in desk.ids("jira_field") if desk.value("jira_field", key, "column") == field]
            given |= {column[0]: value} if column else {}
    return given


def _address(desk: CompanyDesk, kind: str, account: str) -> str:
    """Return the address of the person with an account; the account itself where nobody is known to have it."""
    email = desk.value(kind, account, "email") if desk.exists(kind, account) else None
    return str(email or account)


def _issue(desk: CompanyDesk, act: RecordAct) -> Proposals:
    values = {field: value for field, value in act.after.items() if field not in ("status", "links", "type", "project")}
    if act.is_new:
        own = {field: value for field, value in values.items() if value not in (None, [], "")}
        if own.get("reporter") == desk.account_of("jira_user", desk.address):
            own.pop("reporter", None)
        summary, text = own.pop("summary", ""), own.pop("description", None)
        call = {"project_key": act.after.get("project"), "summary": summary, "issue_type": act.after.get("type")}
        call |= {"description": text} if text else {}
        assignee = _issue_fields(desk, [("assignee", own.pop("assignee", None))])["assignee"]
        call |= {"assignee": assignee} if assignee else {}
        more = _issue_fields(desk, own.items())
        yield [ActCall("jira_create_issue", {**call, **({"additional_fields": _text(more)} if more else {})})]
        return
    step: list[ActCall] = []
    if "status" in act.after:
        ways = [way for way in transitions(JiraDesk(desk), act.key) if way["to_status"] == act.after["status"]]
        if not ways:
            return
        step = [ActCall("jira_transition_issue", {"issue_key": act.key, "transition_id": ways[0]["id"]})]
        if not values:
            yield step
            yield [ActCall("jira_update_issue", {"issue_key": act.key, "fields": _text({"status": act.after["status"]}),
                                                 "return_fields": "status"})]
    fields = _issue_fields(desk, values.items())
    change = {"issue_key": act.key, "fields": _text(fields)}
    # Where the exports do not tell the whole issue, an answer with the changed fields alone may still be known.
    for use in [change, {**change, "return_fields": ",".join(fields)}] if values else []:
        yield [*step, ActCall("jira_update_issue", use)]
    for link in act.after.get("links") or ():
        if link not in (act.before.get("links") or ()):
            for kind in dict.fromkeys([*desk.ids("jira_link_type"), "Blocks", "Cloners", "Duplicate", "Relates"]):
                for one, other in ((act.key, link["key"]), (link["key"], act.key)):
                    yield [ActCall("jira_create_issue_link", {
                        "link_type": kind, "inward_issue_key": one, "outward_issue_key": other})]


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _issue_comment(desk: CompanyDesk, act: RecordAct) -> Proposals:
    body = act.after.get("body")
    if act.is_new:
        yield [ActCall("jira_add_comment", {"issue_key": act.after["key"], "body": body})]
    elif body is not None:
        yield [ActCall("jira_edit_comment", {
            "issue_key": desk.value("jira_comment", act.key, "key"), "comment_id": act.key, "body": body})]


def _page(desk: CompanyDesk, act: RecordAct) -> Proposals:
    content = {"content": act.after.get("body") or "", "content_format": "storage"}
    parent = {"parent_id": act.after["parent"]} if act.after.get("parent") else {}
    if act.is_new:
        yield [ActCall("confluence_create_page", {
            "space_key": act.after.get("space"), "title": act.after.get("title"), **content, **parent})]
    elif act.is_gone:
        yield [ActCall("confluence_delete_page", {"page_id": act.key})]
    elif "body" in act.after or "title" in act.after:
        title = act.after.get("title") or desk.value("wiki", act.key, "title")
        body = act.after["body"] if "body" in act.after else desk.value("wiki", act.key, "body")
        yield [ActCall("confluence_update_page", {
            "page_id": act.key, "title": title, "content": body, "content_format": "storage", **parent})]
    elif parent:
        yield [ActCall("confluence_move_page", {"page_id": act.key, "target_parent_id": act.after["parent"]})]
    elif "labels" in act.after:
        added = [name for name in act.after["labels"] or () if name not in (act.before.get("labels") or ())]
        yield [ActCall("confluence_add_label", {"page_id": act.key, "name": name}) for name in added]


def _page_comment(desk: CompanyDesk, act: RecordAct) -> Proposals:
    if act.is_new and act.after.get("parent"):
        yield [ActCall("confluence_reply_to_comment", {"comment_id": act.after["parent"], "body": act.after.get("body")})]
    elif act.is_new:
        yield [ActCall("confluence_add_comment", {"page_id": act.after["page"], "body": act.after.get("body")})]


def _meeting(desk: CompanyDesk, act: RecordAct) -> Proposals:
    after, event_id = act.after, act.key.removesuffix(_GOOGLE)
    times = {name: instant_text(after[field]) for name, field in (("start_time", "start"), ("end_time", "end"))
             if after.get(field) is not None}
    texts = {name: after[name] for name in ("summary", "location", "description") if after.get(name) or (
        name in after and not act.is_new)}
    guests = [{"email": address} for address in after.get("attendees") or () if address != desk.address]
    if act.is_new:
        yield [ActCall("create_event", {**texts, **times, **({"attendees": guests} if guests else {})})]
    elif act.is_gone or after.get("status") == "CANCELLED":
        yield [ActCall("delete_event", {"event_id": event_id})]
    else:
        answer = (after.get("attendees") or {}).get(desk.address)
        if answer and answer != (act.before.get("attendees") or {}).get(desk.address):
            word = "needsAction" if answer == "NEEDS-ACTION" else answer.lower()
            yield [ActCall("modify_event", {"event_id": event_id, "attendees": [
                {"email": desk.address, "responseStatus": word}]})]
        more = {"attendees": guests} if "attendees" in after else {}
        if times or texts or more:
            yield [ActCall("modify_event", {"event_id": event_id, **texts, **times, **more})]


def _file(desk: CompanyDesk, act: RecordAct) -> Proposals:
    tabs = {field[1:]: rows for field, rows in act.after.items() if field.startswith("!")}
    if act.is_new:
        made = {"title": act.after.get("name"), **({"sheet_names": list(tabs)} if tabs else {})}
        answer = DRIVE["create_spreadsheet"].answer(desk.fork(), made)   # tells the id that the calls on cells need
        cells = [call for tab, rows in tabs.items() for call in _cells(answer.rpartition(" ")[2], tab, [], rows or [])]
        yield [ActCall("create_spreadsheet", made), *cells]
        return
    now = tabs_of(desk, act.key)
    yield [call for tab, rows in tabs.items() for call in _cells(act.key, tab, now.get(tab, []), rows or [])]
    recorded = {field[1:]: rows or [] for field, rows in act.before.items() if field.startswith("!")}
    if any(recorded[tab] != now.get(tab) for tab in tabs):
        yield [call for tab, rows in tabs.items() for call in _cells(act.key, tab, recorded[tab], rows or [])]


def _cells(key: str, tab: str, now: list[list[str]], rows: list[list[str]]) -> list[ActCall]:
    """Return calls that make a tab of its rows now: rows are appended, or single stretches of cells are changed."""
    if len(rows) > len(now) and rows[:len(now)] == now:
        return [ActCall("append_sheet_row", {"spreadsheet_id": key, "sheet": tab, "values": row}) for row in rows[len(now):]]
    name = tab if tab.isalnum() else "'" + tab.replace("'", "''") + "'"
    height = max(len(rows), len(now))
    padded = [list(table[place]) if place < len(table) else [] for table in (now, rows) for place in range(height)]
    changed = [place for place in range(height) if padded[place] != padded[height + place]]
    calls = []
    for place in changed if len(changed) <= _MOST_ROWS else range(height):
        old, new = padded[place], padded[height + place]
        width = max(len(old), len(new))
        cells = [*new, *[""] * (width - len(new))]
        differ = [column for column in range(width) if column >= len(old) or old[column] != cells[column]]
        if differ:
            first, last = differ[0], differ[-1]
            where = f"{name}!{_letters(first)}{place + 1}" + (f":{_letters(last)}{place + 1}" if last > first else "")
            calls.append(ActCall("modify_sheet_values", {
                "spreadsheet_id": key, "range_name": where, "values": [cells[first:last + 1]]}))
    return calls


def _letters(column: int) -> str:
    name = ""
    while column >= 0:
        name, column = chr(ord("A") + column % 26) + name, column // 26 - 1
    return name


def repository_arguments(desk: CompanyDesk, repository: str) -> dict[str, Any]:
    """Return owner and name of a repository as the code host's tools take them."""
    owner, _, name = str(desk.value("gh_repo", repository, "full_name", repository)).partition("/")
    return {"owner": owner, "repo": name}


def _ticket(desk: CompanyDesk, act: RecordAct) -> Proposals:
    repository, _, number = act.key.rpartition("#")
    place = repository_arguments(desk, repository)
    values = {name: act.after[name] for name in ("title", "body", "labels", "assignees") if act.after.get(name) or (
        name in act.after and not act.is_new)}
    if act.is_new and act.after.get("is_pull"):
        yield [ActCall("create_pull_request", {
            **place, **{name: value for name, value in values.items() if name in ("title", "body")},
            "head": act.after.get("branch"), "base": act.after.get("base"),
            **({"reviewers": act.after["reviewers"]} if act.after.get("reviewers") else {})}), *(
                [ActCall("update_issue", {**place, "issue_number": int(number), **later})] if (later := {
                    name: value for name, value in values.items() if name in ("labels", "assignees")}) else [])]
    elif act.is_new:
        yield [ActCall("create_issue", {**place, **values})]
    elif act.after.get("merged"):
        yield [ActCall("merge_pull_request", {**place, "pullNumber": int(number)})]
    else:
        values |= {"state": act.after["state"]} if act.after.get("state") else {}
        if values:
            yield [ActCall("update_issue", {**place, "issue_number": int(number), **values})]
            yield [ActCall("issue_write", {**place, "method": "update", "issue_number": int(number), **values})]
        if act.after.get("reviewers"):
            yield [ActCall("update_pull_request", {
                **place, "pullNumber": int(number), "reviewers": list(act.after["reviewers"])})]


def _ticket_comment(desk: CompanyDesk, act: RecordAct) -> Proposals:
    if act.is_new:
        repository, _, number = str(act.after["issue"]).rpartition("#")
        yield [ActCall("add_issue_comment", {
            **repository_arguments(desk, repository), "issue_number": int(number), "body": act.after.get("body")})]


def _commit(desk: CompanyDesk, act: RecordAct) -> Proposals:
    repository = act.key.rpartition("@")[0]
    files = [{"path": key.partition(":")[2], "content": fields["text"]} for (_, key), fields in act.parts.items()
             if isinstance(fields.get("text"), str)]
    bases = [desk.value("gh", key, "base") for key in desk.where("gh", "is_pull", True)]
    branches = sorted({base for base in bases if base}, key=lambda base: (-bases.count(base), base))[:2]
    for branch in [*branches, "main", "master"] if act.is_new and len(files) == len(act.parts) else []:
        yield [ActCall("push_files", {**repository_arguments(desk, repository), "branch": branch, "files": files,
                                      "message": act.after.get("message")})]


INVERSES: dict[str, Callable[[CompanyDesk, RecordAct], Proposals]] = {
    "slack": _post, "mail": _mail, "jira": _issue, "jira_comment": _issue_comment, "wiki": _page, "wiki_comment": _page_comment,
    "cal": _meeting, "sheet": _file, "gh": _ticket, "gh_comment": _ticket_comment,
    "commit": _commit,
}
"""Class of records -> what may bring its changes about."""


def day_of(seconds: float) -> str:
    """Return the day of an instant."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
