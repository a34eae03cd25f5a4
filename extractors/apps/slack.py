"""A Slack export: `users.json`, `channels.json`, `groups.json`, `dms.json`, `mpims.json`, a folder of days per conversation.

Sees: messages with their threads, the time of the last edit, who joined and left a channel, renames, topics and archiving
where a message of the channel reports them.
Does not see, and says so: the text before an edit, when a reaction came, topics without a time, status texts, when an
account was deactivated, who left without a message. Deleted messages are not in an export at all; where an app recorded
`message_deleted` among the messages, the message was there until then, and what it said is not kept. `message_changed` tells
the text before an edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.apps.version import (
    BEGINNING,
    NEVER_KNOWN,
    PRESENT,
    AppRow,
    AppVersion,
    CompanyApp,
    ExportFile,
    RecordKind,
    bad_row,
)

MESSAGE, CHANNEL, ACCOUNT = "slack", "slack_channel", "slack_user"
_LISTS = {"channels.json": "channel", "groups.json": "group", "dms.json": "im", "mpims.json": "mpim"}
_CONFIGURATION = frozenset((
    "integration_logs.json", "canvases.json", "huddle_transcripts.json", "lists.json", "org_users.json"))
_CHANGES = {"channel_name": "name", "group_name": "name", "channel_topic": "topic", "group_topic": "topic",
            "channel_purpose": "purpose", "group_purpose": "purpose"}
_ERRORS = (KeyError, TypeError, ValueError, AttributeError)
_FILE_FIELDS = ("id", "name", "mimetype", "title", "size")
_EVENTS = ("message_deleted", "message_changed")
"""Subtypes of events about messages."""
_JOINS, _LEAVES = ("channel_join", "group_join"), ("channel_leave", "group_leave")


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file is a list of the workspace, or a day of messages."""
    if not file.name.endswith(".json"):
        return False
    if file.name in _LISTS or file.name in _CONFIGURATION or file.name == "users.json":
        return "users.json" in siblings and not siblings.isdisjoint(_LISTS)
    head = file.content[:4000]
    return head.lstrip()[:1] == b"[" and b'"ts"' in head and (b'"message"' in head or b'"user"' in head)


def micros(ts: Any) -> int:
    """Return `1772440735.063157` in microseconds, exactly. Errors: ValueError."""
    whole, _, rest = str(ts).partition(".")
    return int(whole) * 1_000_000 + int((rest + "000000")[:6])


class _MessageEvents:
    """What an app recorded of messages: edits and deletions, as the Events API gives them."""

    def __init__(self) -> None:
        self.gone: dict[str, tuple[int, dict[str, Any]]] = {}
        """Message -> when it was deleted, and the message without what it said."""
        self.edits: dict[str, list[tuple[int, str | None, str, str | None]]] = {}
        """Message -> (instant, text before, text after, who)"""

    def add(self, channel: str, row: dict[str, Any]) -> None:
        """Take in an event. Errors: `_ERRORS`."""
        before, channel = row.get("previous_message") or {}, str(row.get("channel") or channel)
        if row["subtype"] == "message_deleted":
            ts = str(row.get("deleted_ts") or before["ts"])
            rest = {name: before[name] for name in ("user", "thread_ts", "subtype") if name in before}
            self.gone[f"{channel}/{ts}"] = max(micros(row["ts"]), micros(ts)), {"ts": ts, **rest}
            return
        after = row["message"]
        edit = after.get("edited") or {}
        self.edits.setdefault(f"{channel}/{after['ts']}", []).append((
            micros(edit.get("ts") or row["ts"]), before.get("text"), str(after.get("text") or ""), edit.get("user")))


class _SlackRoom:
    """A channel with what its messages report about it."""

    def __init__(self, row: dict[str, Any], kind: str, path: str) -> None:
        self.row, self.kind, self.path = row, kind, path
        self.id = str(row["id"])
        self.created = int(float(row.get("created") or 0) * 1_000_000)
        self.members = {str(member) for member in row.get("members") or ()}
        self.joins: list[tuple[int, str, bool]] = []
        """(instant, account, whether it joined)"""
        self.first_message: dict[str, int] = {}
        """Account -> first message."""
        self.renames: dict[str, list[tuple[int, Any, Any, str | None]]] = {}
        """Field -> (instant, old value or None, new value, actor)"""

    @property
    def folder(self) -> str:
        """Name of the folder of its messages."""
        return self.id if self.kind == "im" else str(self.row.get("name") or self.id)


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of accounts, channels and messages; each workspace by the folder of its `users.json`."""
    roots = sorted({file.folder for file in files if file.name == "users.json" or file.name in _LISTS}) or [""]
    for root in roots:
        inside = [file for file in files if not root or file.folder == root or file.folder.startswith(root + "/")]
        yield from _workspace(root, inside)


def _workspace(root: str, files: list[ExportFile]) -> Iterator[AppRow]:
    rooms: dict[str, _SlackRoom] = {}
    accounts: dict[str, dict[str, Any]] = {}
    days: list[ExportFile] = []
    for file in files:
        try:
            rows = file.json()
        except ValueError as error:
            yield bad_row(file, "", error)
            continue
        if file.folder != root:
            days.append(file)
        elif file.name == "users.json" or file.name in _LISTS:
            for index, row in enumerate(rows if isinstance(rows, list) else [rows]):
                try:
                    if file.name == "users.json":
                        list(_account(str(row["id"]), row, BEGINNING, BEGINNING))
                        accounts[str(row["id"])] = row
                        continue
                    room = _SlackRoom(row, _LISTS[file.name], file.path)
                    list(_channel(room, set()))
                    rooms[room.folder] = rooms[room.id] = room
                except _ERRORS as error:
                    yield bad_row(file, str(index), error)
    last_seen: dict[str, int] = {}
    events = _MessageEvents()
    for file in days:
        if any(each.encode() in file.content for each in _EVENTS):
            yield from _noted(file, rooms, events)
    for file in days:
        yield from _day(file, rooms, last_seen, events)
    for key, (at, message) in events.gone.items():
        yield from list(_deleted(key, message, at))
    born = {account: at for room in rooms.values() if room.row.get("is_general")
            for at, account, joined in sorted(room.joins, reverse=True) if joined}
    for account, row in accounts.items():
        yield from _account(account, row, born.get(account, BEGINNING), last_seen.get(account, BEGINNING))
    gone = {account for account, row in accounts.items() if row.get("deleted")}
    for key, room in rooms.items():
        if key == room.id:
            yield from _channel(room, gone)


def _channel_of(file: ExportFile, rooms: dict[str, _SlackRoom]) -> str:
    name = file.folder.rsplit("/", 1)[-1]
    return rooms[name].id if name in rooms else name


def _noted(file: ExportFile, rooms: dict[str, _SlackRoom], events: _MessageEvents) -> Iterator[AppRow]:
    """Note the events among the messages of a day; yield those that are none."""
    rows = file.json()
    for index, row in enumerate(rows if isinstance(rows, list) else ()):
        try:
            if row.get("subtype") in _EVENTS:
                events.add(_channel_of(file, rooms), row)
        except _ERRORS as error:
            yield bad_row(file, str(index), error)


def _deleted(key: str, row: dict[str, Any], gone_at: int) -> Iterator[AppVersion]:
    """Yield that a message was there until it was deleted; what it said is not kept."""
    at, user = micros(row["ts"]), row.get("user")
    fields = {"channel": key.partition("/")[0], "ts": row["ts"], "user": user, "deleted": False,
              "thread_ts": None if row.get("thread_ts") == row["ts"] else row.get("thread_ts"), "subtype": row.get("subtype")}
    for field, value in fields.items():
        if value is not None:
            yield AppVersion(MESSAGE, key, field, value, at, 0, user)
    for field in ("text", "reactions"):
        yield AppVersion(MESSAGE, key, field, None, at, 0, user, NEVER_KNOWN)
    yield AppVersion(MESSAGE, key, PRESENT, False, gone_at, 0, user)


def _day(file: ExportFile, rooms: dict[str, _SlackRoom], last_seen: dict[str, int], events: _MessageEvents) -> Iterator[AppRow]:
    room = rooms.get(file.folder.rsplit("/", 1)[-1])
    channel = _channel_of(file, rooms)
    rows = file.json()
    if not isinstance(rows, list):
        yield bad_row(file, "", "a day is a list of messages")
        return
    for index, row in enumerate(rows):
        try:
            if row.get("subtype") in _EVENTS or f"{channel}/{row['ts']}" in events.gone:
                continue
            at = micros(row["ts"])
            user = row.get("user") or row.get("bot_id")
            if user is not None and not isinstance(user, str):
                raise ValueError(f"the account is no text: {user!r}")
            if user:
                last_seen[user] = max(last_seen.get(user, 0), at)
            if room is not None:
                _report(room, row, at, user)
            edits = events.edits.get(f"{channel}/{row['ts']}", [])
            yield from list(_message(channel, row, at, user, f"{file.path}#{row['ts']}", edits))
        except _ERRORS as error:
            yield bad_row(file, str(index), error)


def _message(channel: str, row: dict[str, Any], at: int, user: str | None, record: str,
             edits: list[tuple[int, str | None, str, str | None]]) -> Iterator[AppVersion]:
    ts = str(row["ts"])
    edit = row.get("edited") or {}
    edited = micros(edit["ts"]) if edit.get("ts") else BEGINNING
    is_root = row.get("thread_ts") == ts
    reactions = {str(each["name"]): list(each.get("users") or ()) for each in row.get("reactions") or ()}
    fields = {"channel": channel, "ts": ts, "user": user, "deleted": False,
              "thread_ts": None if is_root else row.get("thread_ts"), "subtype": row.get("subtype")}
    if row.get("files"):
        fields["files"] = [{name: each.get(name) for name in _FILE_FIELDS} for each in row["files"]]
    key = f"{channel}/{ts}"
    for field, value in fields.items():
        if value is not None:
            yield AppVersion(MESSAGE, key, field, value, at, 0, user, BEGINNING, record)
    if edits:
        first_at, first, _, _ = min(edits)
        yield AppVersion(MESSAGE, key, "text", first, at, 0, user, BEGINNING if first is not None else first_at, record)
        for edit_at, _, text, editor in sorted(edits):
            yield AppVersion(MESSAGE, key, "text", text, edit_at, 0, editor, BEGINNING, record)
        if edited > max(edits)[0]:
            yield AppVersion(MESSAGE, key, "text", row.get("text") or "", edited, 0, edit.get("user"), BEGINNING, record)
    else:
        yield AppVersion(MESSAGE, key, "text", row.get("text") or "", at, 0, user, edited, record)
    yield AppVersion(MESSAGE, key, "reactions", reactions, at, 0, user, NEVER_KNOWN if reactions else BEGINNING, record)
    if edited:
        yield AppVersion(MESSAGE, key, "edited", None, at, 0, user, NEVER_KNOWN, record)
        yield AppVersion(MESSAGE, key, "edited", str(edit["ts"]), edited, 0, edit.get("user"), BEGINNING, record)


def _report(room: _SlackRoom, row: dict[str, Any], at: int, user: str | None) -> None:
    subtype = row.get("subtype")
    if user:
        room.first_message.setdefault(user, at)
    if user and (subtype in _JOINS or subtype in _LEAVES):
        room.joins.append((at, user, subtype in _JOINS))
    elif subtype in _CHANGES:
        field = _CHANGES[subtype]
        room.renames.setdefault(field, []).append((at, row.get("old_name"), row.get(field), user))
    elif subtype in ("channel_archive", "group_archive", "channel_unarchive", "group_unarchive"):
        closed = subtype.endswith("_archive")
        room.renames.setdefault("archived", []).append((at, not closed, closed, user))


def _account(account: str, row: dict[str, Any], born: int, last_seen: int) -> Iterator[AppVersion]:
    profile = row.get("profile") or {}
    fields = {"name": row.get("name"), "display_name": profile.get("display_name"), "title": profile.get("title") or "",
              "real_name": profile.get("real_name") or row.get("real_name"), "email": profile.get("email"),
              "is_bot": bool(row.get("is_bot"))}
    for field, value in fields.items():
        yield AppVersion(ACCOUNT, account, field, value, born)
    yield AppVersion(ACCOUNT, account, "status_text", profile.get("status_text") or "", born, guessed_until=NEVER_KNOWN)
    yield AppVersion(ACCOUNT, account, "deleted", False, born)
    if row.get("deleted"):
        yield AppVersion(ACCOUNT, account, "deleted", True, max(last_seen, born), 1, guessed_until=NEVER_KNOWN)


def _channel(room: _SlackRoom, gone: set[str]) -> Iterator[AppVersion]:
    row, key, born = room.row, room.id, room.created
    private = room.kind != "channel"
    name = row.get("name") or "-".join(sorted(room.members))
    fields = {"kind": "channel" if room.kind == "group" else room.kind, "private": private, "created": born // 1_000_000,
              "creator": row.get("creator"), "is_general": bool(row.get("is_general"))}
    for field, value in fields.items():
        yield AppVersion(CHANNEL, key, field, value, born, record=room.path)
    yield from _history(room, "name", name, BEGINNING)
    yield from _history(room, "archived", bool(row.get("is_archived")), NEVER_KNOWN if row.get("is_archived") else BEGINNING)
    for field in ("topic", "purpose"):
        stated = row.get(field) or {}
        value, at = stated.get("value") or "", int(float(stated.get("last_set") or 0) * 1_000_000)
        yield from _history(room, field, value, (at or NEVER_KNOWN) if value else BEGINNING)
    yield from _members(room, gone)


def _history(room: _SlackRoom, field: str, last: Any, known_from: int) -> Iterator[AppVersion]:
    """Versions of a field whose changes the channel's messages report; else its last value, known from `known_from` on."""
    changes = sorted(room.renames.get(field, ()), key=lambda change: change[0])
    if not changes:
        yield AppVersion(CHANNEL, room.id, field, last, room.created, guessed_until=known_from, record=room.path)
        return
    first_at, first = changes[0][:2]
    guessed_until = BEGINNING if first is not None else first_at
    yield AppVersion(CHANNEL, room.id, field, first, room.created, guessed_until=guessed_until)
    for at, _, value, actor in changes:
        yield AppVersion(CHANNEL, room.id, field, value, at, 0, actor)


def _members(room: _SlackRoom, gone: set[str]) -> Iterator[AppVersion]:
    """Members: the last list, with what the messages report undone; a guess where an account was seen that is not listed."""
    changes = sorted(room.joins)
    last_word = {account: joined for _, account, joined in changes}
    unlisted = {account for account in {*room.first_message, *(gone if room.row.get("is_general") else ())}
                if account not in room.members and last_word.get(account, True)}
    first_word: dict[str, bool] = {}
    for _, account, joined in changes:
        first_word.setdefault(account, joined)
    members = {account for account in room.members if not first_word.get(account, False)}
    members |= {account for account, joined in first_word.items() if not joined}
    members |= {account for account in unlisted if account not in first_word}
    doubtful = NEVER_KNOWN if any(account not in first_word for account in unlisted) else BEGINNING
    yield AppVersion(CHANNEL, room.id, "members", sorted(members), room.created, guessed_until=doubtful, record=room.path)
    for at, account, joined in changes:
        members = members | {account} if joined else members - {account}
        doubtful = NEVER_KNOWN if doubtful or account in unlisted else BEGINNING
        yield AppVersion(CHANNEL, room.id, "members", sorted(members), max(at, room.created), 0, account, doubtful, room.path)


APP = CompanyApp("slack", claims, read, rank=10, formats=("slack",), advice=(
    (MESSAGE, "text", "Slack Events API: message_changed, message_deleted"),
    (MESSAGE, "reactions", "Slack Events API: reaction_added, reaction_removed"),
    (CHANNEL, "topic", "Slack Events API: channel_topic messages"),
    (CHANNEL, "members", "Slack Events API: member_joined_channel, member_left_channel"),
    (ACCOUNT, "status_text", "Slack Events API: user_change"),
    (ACCOUNT, "deleted", "Slack audit logs: user_deactivated"),
), kinds=(
    RecordKind(MESSAGE, texts=("text",), place="slack_channel:{channel}", answers="slack:{channel}/{thread_ts}",
               follows=("edited",)),
    RecordKind(CHANNEL, people=("members",), follows=("topic", "purpose")),
    RecordKind(ACCOUNT, setting=True),
))
