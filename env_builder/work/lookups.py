"""What a person looks at before an act: calls that show what its arguments depend on, answered at that instant as that person.

In: the episode just before an act, the act, its calls, what others did in the work since the person's last act, what the
person saw before. Out: calls with answers that are known, none of them twice unless the record changed since.
The records looked at are those that others wrote or changed, then those that the act changes or belongs to. A record's id that
no answer has shown yet is looked for first, where its product can search; `LookupMemory` counts the ids in arguments and how
many of them an answer had shown.
Does not see: what the person had really looked at (no export tells), reads outside the work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from env_builder.runtime.company import CompanyDesk, ProductRefusal, Undecided
from env_builder.runtime.office.company import CompanyEpisode
from env_builder.runtime.office.mailboxes import MAILBOX, gmail_id
from env_builder.runtime.office.row_tables import ROW
from env_builder.runtime.records import Result
from env_builder.work.acts import ActCall, RecordAct
from env_builder.work.inverses import repository_arguments

Looks = Iterator[ActCall]
Record = tuple[str, str]
_ID = re.compile(r"[\w.@<>=+-]*\d[\w.@<>=+-]*")
_SHORTEST = 5
"""Characters of a word with a digit that counts as an id, at least."""
_ID_NAMES = re.compile(r"(?:^|_)(?:id|ids|key|ts|number|to|thread)$|Number$")
_GOOGLE = "@google.com"
_MOST_TEXT = 60
"""Characters of a title that is searched for."""


class LookupMemory:
    """What one person saw in an episode."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.looked: dict[str, str] = {}
        """Call -> its last answer."""
        self.n_ids = self.n_grounded = 0

    def note(self, text: str) -> None:
        """Remember an answer."""
        self.texts.append(text)

    def has(self, word: str) -> bool:
        """Return whether an answer showed a word."""
        return any(word in text for text in self.texts)

    def count(self, uses: Sequence[ActCall]) -> None:
        """Count the ids in the arguments of calls, and those that were shown before."""
        for word in _ids_in(uses):
            self.n_ids += 1
            self.n_grounded += self.has(word)


def _ids_in(uses: Sequence[ActCall]) -> list[str]:
    """Return the ids that arguments hold: words with a digit in arguments that are named as ids."""
    words = {word for use in uses for name, value in use.arguments.items() if _ID_NAMES.search(name)
             for each in (value if isinstance(value, list) else [value]) for word in _ID.findall(str(each))}
    return sorted(word for word in words if len(word) >= _SHORTEST)


def looks_before(episode: CompanyEpisode, act: RecordAct, uses: Sequence[ActCall], memory: LookupMemory,
                 others: Sequence[RecordAct], learnt: Mapping[str, Any] | None) -> list[tuple[ActCall, Result]]:
    """Return the calls that come before an act, with their answers. The episode is left as it was."""
    desk = episode.desk
    wanted: dict[Record, None] = dict.fromkeys(
        record for other in others if other.actor != act.actor for record in (other.record, *_around(desk, other)))
    wanted |= dict.fromkeys(_around(desk, act) if act.is_new else [act.record, *_around(desk, act)])
    made: list[tuple[ActCall, Result]] = []
    for record in wanted:
        for look in _all_looks(desk, record, memory, learnt):
            answer = _answered(episode, look, memory)
            if answer is not None:
                made.append((look, answer))
                memory.note(answer.content)
    for look in _ways(uses):
        answer = _answered(episode, look, memory)
        if answer is not None:
            made.append((look, answer))
            memory.note(answer.content)
    memory.count(uses)
    return made


def _answered(episode: CompanyEpisode, look: ActCall, memory: LookupMemory) -> Result | None:
    """Return the answer to a look; None if there is none, or the person has it already."""
    if episode.may_write(look.tool):
        return None
    answer = episode.fork().call(look.tool, look.arguments)
    name = f"{look.tool} {sorted(look.arguments.items())}"
    if answer.is_error or answer.tier == "unknown" or memory.looked.get(name) == answer.content:
        return None
    memory.looked[name] = answer.content
    return answer


def _all_looks(desk: CompanyDesk, record: Record, memory: LookupMemory, learnt: Mapping[str, Any] | None) -> Looks:
    """Yield the calls that show a record: first the search for its id, if no answer had it."""
    kind, key = record
    try:
        if not desk.exists(kind, key) or not desk.sees(kind, key):
            return
        finder, reader = FINDERS.get(kind), READERS.get(kind)
        if finder is not None:
            yield from finder(desk, key, memory)
        if reader is not None:
            yield from reader(desk, key)
        if kind == ROW and learnt is not None:
            yield from _row_looks(learnt, key)
    except (Undecided, ProductRefusal, LookupError):
        return


def _around(desk: CompanyDesk, act: RecordAct) -> list[Record]:
    """Return the records that an act belongs to: what it answers, where it lies."""
    after, records = act.after, []
    if act.entity_class == "slack" and after.get("thread_ts"):
        records.append(("slack", f"{after.get('channel')}/{after['thread_ts']}"))
    elif act.entity_class == "slack" and after.get("channel"):
        records.append(("slack_channel", str(after["channel"])))
    if act.entity_class == "mail" and after.get("thread"):
        records += [("mail", key) for key in desk.where("mail", "thread", after["thread"]) if key != act.key][-1:]
    owner, field = OWNERS.get(act.entity_class, ("", ""))
    if owner:
        owned = after.get(field) or (desk.value(act.entity_class, act.key, field) if desk.exists(*act.record) else None)
        records += [(owner, str(owned))] if owned else []
    return records


# How a record of a class is shown


def _thread(desk: CompanyDesk, key: str) -> Looks:
    channel, _, stamp = key.partition("/")
    thread = desk.value("slack", key, "thread_ts")
    if thread or desk.where("slack", "thread_ts", stamp):
        yield ActCall("conversations_replies", {"channel_id": channel, "thread_ts": str(thread or stamp)})
    else:
        yield ActCall("conversations_history", {"channel_id": channel, "limit": "1d"})


def _channel(desk: CompanyDesk, key: str) -> Looks:
    yield ActCall("conversations_history", {"channel_id": key, "limit": "1d"})


def _letter(desk: CompanyDesk, key: str) -> Looks:
    if desk.exists(MAILBOX, f"{desk.address}|{key}"):
        thread = desk.value("mail", key, "thread")
        if len(desk.where("mail", "thread", thread)) > 1:
            yield ActCall("get_gmail_thread_content", {"thread_id": thread})
        else:
            yield ActCall("get_gmail_message_content", {"message_id": gmail_id(desk, key)})


def _find_letter(desk: CompanyDesk, key: str, memory: LookupMemory) -> Looks:
    if desk.exists(MAILBOX, f"{desk.address}|{key}") and not memory.has(gmail_id(desk, key)):
        subject = str(desk.value("mail", key, "subject") or "")
        sender = desk.value("mail", key, "sender")
        yield ActCall("search_gmail_messages", {"query": f'from:{sender} subject:"{subject}"' if subject else f"from:{sender}"})


def _find_channel(desk: CompanyDesk, key: str, memory: LookupMemory) -> Looks:
    channel = key.partition("/")[0]
    if not memory.has(channel):
        kind = desk.value("slack_channel", channel, "kind", "channel")
        private = desk.value("slack_channel", channel, "private", False)
        yield ActCall("channels_list", {"channel_types": kind if kind in ("im", "mpim") else
                                        "private_channel" if private else "public_channel"})


def _meetings(desk: CompanyDesk, key: str) -> Looks:
    begin = datetime.fromtimestamp(float(desk.value("cal", key, "start") or 0), UTC).replace(hour=0, minute=0, second=0)
    yield ActCall("get_events", {name: f"{at:%Y-%m-%dT%H:%M:%SZ}" for name, at in (
        ("time_min", begin), ("time_max", begin + timedelta(days=1)))})


def _find_page(desk: CompanyDesk, key: str, memory: LookupMemory) -> Looks:
    if not memory.has(key):
        yield ActCall("confluence_search", {"query": str(desk.value("wiki", key, "title") or "")[:_MOST_TEXT]})


def _find_issue(desk: CompanyDesk, key: str, memory: LookupMemory) -> Looks:
    if not memory.has(key):
        yield ActCall("jira_search", {"jql": f"project = {desk.value('jira', key, 'project')} ORDER BY updated DESC"})


def _find_file(desk: CompanyDesk, key: str, memory: LookupMemory) -> Looks:
    if not memory.has(key):
        yield ActCall("search_drive_files", {"query": str(desk.value("sheet", key, "name") or "")})


def _sheets(desk: CompanyDesk, key: str) -> Looks:
    tabs = [field[1:] for field in desk.fields("sheet", key) if field.startswith("!")]
    for tab in tabs:
        name = tab if tab.isalnum() else "'" + tab.replace("'", "''") + "'"
        yield ActCall("read_sheet_values", {"spreadsheet_id": key, "range_name": f"{name}!A1:Z1000"})
    if not tabs:
        yield ActCall("get_drive_file_content", {"file_id": key})


def _ticket(desk: CompanyDesk, key: str) -> Looks:
    repository, _, number = key.rpartition("#")
    place = repository_arguments(desk, repository)
    if desk.value("gh", key, "is_pull", False):
        yield ActCall("pull_request_read", {**place, "method": "get", "pullNumber": int(number)})
    else:
        yield ActCall("issue_read", {**place, "method": "get", "issue_number": int(number)})


def _row_looks(learnt: Mapping[str, Any], key: str) -> Looks:
    """Yield the calls of the company's own tools that show a row."""
    table, _, own = key.partition("/")
    for tool, plan in learnt["tools"].items():
        source = plan["table"]
        named: dict[str, Any] | None = {} if source.get("constant") == table else None
        if "argument" in source:
            words = {table: table} if source["names"] is None else source["names"]
            word = next((name for name, of in words.items() if of == table), None)
            named = None if word is None else {source["argument"]: word}
        keys = {each["argument"]: own for each in plan["filters"] if each.get("op") == "eq" and each.get("column") == "$key"}
        if plan["act"] is None and plan["one"] and named is not None and keys and set(plan["required"]) <= {*named, *keys}:
            yield ActCall(tool, {**named, **keys})
            return


def _ways(uses: Sequence[ActCall]) -> Looks:
    """Yield the calls that show by which steps an issue may go on."""
    for use in uses:
        if use.tool == "jira_transition_issue":
            yield ActCall("jira_get_transitions", {"issue_key": use.arguments["issue_key"]})


OWNERS = {"jira_comment": ("jira", "key"), "wiki_comment": ("wiki", "page"), "gh_comment": ("gh", "issue")}
"""Class of comments -> class of what they are on, and the field that names it."""
READERS: dict[str, Callable[[CompanyDesk, str], Looks]] = {
    "slack": _thread, "slack_channel": _channel, "mail": _letter, "cal": _meetings, "sheet": _sheets, "gh": _ticket,
    "jira": lambda desk, key: iter([ActCall("jira_get_issue", {"issue_key": key})]),
    "wiki": lambda desk, key: iter([ActCall("confluence_get_page", {"page_id": key})]),
}
"""Class of records -> the calls that show one."""
FINDERS: dict[str, Callable[[CompanyDesk, str, LookupMemory], Looks]] = {
    "slack": _find_channel, "slack_channel": _find_channel, "mail": _find_letter, "wiki": _find_page, "sheet": _find_file,
    "jira": _find_issue,
}
"""Class of records -> the call that finds the id of one which no answer has shown."""
