"""Rebuild a chat at any instant from the events of Slack's exports and histories.

In: events (`core.events`) of the format `slack`. Out: versions of channels, people, members and messages for an office app
`chat` (env_builder.backends), and a decision on every event that is no part of it.
Sees: the text and the instant of each message, edits and deletions that were recorded (`message_changed`, `message_deleted`),
the mark of the last edit, joins and leaves, when channels were created. What a message said before an edit that was not
recorded is not on record: its text is null until then, never the later one. Somebody is a member from a join or a message on;
a channel without an instant of creation is taken as there from the beginning, since messages need a channel.
Does not see: a message that was deleted without a record; topics, reactions, attached files; earlier names of channels and
people; who may see what, so private channels and direct messages are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import polars as pl

from env_builder.backends import EntityVersion, OfficeContent
from env_builder.runtime.office.chat import CHANNEL, MEMBER, MESSAGE, PERSON
from warehouse.records import Decision, frame

Row = dict[str, Any]
_SESSION = re.compile(r"(.+?):(talk:)?(\d{9,11}\.\d{6})")
_UNNAMED = "thread"
"""What a session is called by whose file names no channel."""
_EDIT = re.compile(r"edited at (\d{9,11}\.\d{6})")
_PRIVATE = ("dms.json", "mpims.json", "groups.json")
_JOINS, _LEAVES = ("channel_join", "group_join"), ("channel_leave", "group_leave")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATE_US = 2_000_000
"""How much later than the edit itself its record may be."""


class ChatHistory(NamedTuple):
    """A chat over time, and what of the events is no part of it."""

    content: OfficeContent
    decisions: pl.DataFrame


class _RecordedEdit(NamedTuple):
    at: int
    text: str | None
    before: str | None
    before_since: int | None
    """Instant of an edit before, by which the message came to say what it said before."""


@dataclass
class _ChatMessage:
    since: int
    """Microseconds since 1970."""
    author: str | None = None
    thread: str | None = None
    text: str | None = None
    edited: int | None = None
    """Instant of the last edit that the message itself tells."""
    edits: list[_RecordedEdit] = field(default_factory=list)
    until: int | None = None


def chat_history(events: pl.DataFrame, identities: Mapping[str, str] | None = None) -> ChatHistory:
    """Rebuild the chat. `identities`: session of any log -> the user, as the chat calls them, whose part the agent takes."""
    chat = _ChatReader()
    rows = events.filter(pl.col("format") == "slack").sort("happened_at", nulls_last=True, maintain_order=True)
    for row in rows.iter_rows(named=True):
        chat.add(row)
    return ChatHistory(OfficeContent(chat.versions(), dict(identities or {})), frame(Decision, chat.decisions()))


class _ChatReader:
    def __init__(self) -> None:
        self._messages: dict[str, _ChatMessage] = {}
        self._channels: dict[str, int | None] = {}
        self._private: set[str] = set()
        self._people: dict[str, str | None] = {}
        self._presence: list[tuple[int, str, str, bool]] = []
        """(instant, channel, user, whether they are there) of messages, joins and leaves."""
        self._decisions: list[Decision] = []
        self._n_kept = 0

    def add(self, row: Row) -> None:
        tool = str(row["tool"] or "")
        session = _SESSION.fullmatch(row["session_id"] or "")
        if tool.startswith("export "):
            self._add_list(row, tool.removeprefix("export "))
        elif row["happened_at"] is None or session is None or session[1] == _UNNAMED:
            self._reject(row, "no_channel", "the file names no channel of the message; read the export as a whole")
        else:
            self._add_event(row, session, tool.removeprefix("message "))

    def _add_event(self, row: Row, session: re.Match[str], kind: str) -> None:
        channel, at = session[1], _microseconds(row["happened_at"])
        thread = None if session[2] else f"{channel}/{session[3]}"
        self._channels.setdefault(channel, None)
        value = _object(row["content"]) if row["kind"] == "log" else {}
        if row["kind"] == "message":
            message = self._message(channel, at, thread, row["name"])
            message.text = row["content"]
            message.edited = next((_stamp(edit[1]) for edit in map(_EDIT.fullmatch, _list(row["lossy"])) if edit), None)
        elif kind == "message_changed" and (original := _stamp(_object(value.get("message")).get("ts"))) is not None:
            now, before = _object(value.get("message")), _object(value.get("previous_message"))
            message = self._message(channel, original, _thread_of(channel, now), _text(now.get("user")))
            earlier = _stamp(_object(before.get("edited")).get("ts"))
            message.edits.append(_RecordedEdit(at, _text(now.get("text")), _text(before.get("text")), earlier))
        elif kind == "message_deleted" and (original := _stamp(value.get("deleted_ts"))) is not None:
            before = _object(value.get("previous_message"))
            message = self._message(channel, original, _thread_of(channel, before), _text(before.get("user")))
            message.until = at
            if message.text is None:
                message.text = _text(before.get("text"))
                message.edited = _stamp(_object(before.get("edited")).get("ts"))
        elif kind in (*_JOINS, *_LEAVES) and (user := _text(value.get("user"))) is not None:
            self._presence.append((at, channel, user, kind in _JOINS))
        else:
            self._reject(row, "no_part_of_a_chat", f"{kind or row['kind']} is not shown in a rebuilt chat; no action needed")
            return
        self._n_kept += 1

    def _message(self, channel: str, at: int, thread: str | None, author: str | None) -> _ChatMessage:
        key = f"{channel}/{_ts(at)}"
        message = self._messages.setdefault(key, _ChatMessage(at))
        message.author = message.author or author
        message.thread = message.thread or (thread if thread != key else None)
        return message

    def _add_list(self, row: Row, name: str) -> None:
        listed = [each for each in _list(row["content"]) if isinstance(each, dict)]
        for each in listed:
            key = _text(each.get("name")) or _text(each.get("id"))
            if key is None:
                continue
            if name == "users.json":
                names = each.get("real_name"), _object(each.get("profile")).get("real_name"), each.get("name")
                self._people[_text(each.get("id")) or key] = next(filter(None, map(_text, names)), None)
            elif name == "channels.json":
                created = each.get("created")
                self._channels[key] = created * 1_000_000 if isinstance(created, int) else None
            elif name in _PRIVATE:
                self._private |= {key, _text(each.get("id")) or key}
        if name in ("users.json", "channels.json", *_PRIVATE):
            self._n_kept += 1
        else:
            self._reject(row, "no_part_of_a_chat", f"{name} is not shown in a rebuilt chat; no action needed")

    def versions(self) -> list[EntityVersion]:
        versions = [EntityVersion(PERSON, user, {"name": name}) for user, name in self._people.items()]
        channels = {name: created for name, created in self._channels.items() if name not in self._private}
        versions += [EntityVersion(CHANNEL, name, {}, None if created is None else _instant(created))
                     for name, created in channels.items()]
        presence = list(self._presence)
        for key, message in self._messages.items():
            channel = key.rpartition("/")[0]
            if channel in channels:
                versions += _message_versions(key, message)
                presence += [(message.since, channel, message.author, True)] if message.author is not None else []
        return versions + _member_versions([each for each in presence if each[1] in channels])

    def decisions(self) -> list[Decision]:
        kept = [Decision(stage="world", subject="chat", kept=True, reason="chat_rebuilt", detail=(
            f"{self._n_kept} events of chats are {len(self._messages)} messages in {len(self._channels)} channels."))]
        hidden = sum(key.rpartition("/")[0] in self._private for key in self._messages)
        private = [Decision(stage="world", subject="chat", kept=False, reason="private_conversation", detail=(
            f"{hidden} messages of private channels and direct messages are left out, since the logs do not tell who may see "
            "them; no action needed."))] if hidden else []
        return [*kept, *private, *self._decisions]

    def _reject(self, row: Row, reason: str, detail: str) -> None:
        self._decisions.append(Decision(stage="world", subject=row["event_id"], kept=False, reason=reason, detail=f"{detail}.",
                                        file_id=row["file_id"]))


def _message_versions(key: str, message: _ChatMessage) -> list[EntityVersion]:
    """Return how a message was, from its first instant to its deletion."""
    states = _states(message)
    channel = key.rpartition("/")[0]
    ends = [*(since for since, _, _ in states[1:]), message.until]
    last = message.until
    versions = []
    for (since, text, is_edited), end in zip(states, ends, strict=True):
        until = end if last is None or end is None or end < last else last
        if until is None or since < until:
            value = {"author": message.author, "channel": channel, "edited": is_edited, "text": text, "thread": message.thread}
            versions.append(EntityVersion(MESSAGE, key, value, _instant(since), None if until is None else _instant(until)))
    return versions


def _states(message: _ChatMessage) -> list[tuple[int, str | None, bool]]:
    """Return (from when, text, whether it was edited); the text is None where no log tells it."""
    edits = sorted(message.edits, key=lambda edit: edit.at)
    if not edits:
        if message.edited is None or message.edited <= message.since:
            return [(message.since, message.text, message.edited is not None)]
        return [(message.since, None, False), (message.edited, message.text, True)]
    states: list[tuple[int, str | None, bool]] = [(message.since, None, False)]
    for edit in edits:
        since, text, is_edited = states[-1]
        earlier = edit.before_since or 0
        if edit.before is not None and (edit.before != text or earlier > since + _LATE_US):
            if not earlier and not is_edited:
                states[-1] = (since, edit.before, False)
            else:   # an edit in between is not on record
                states[-1] = (since, None, is_edited)
                states += [(earlier, edit.before, True)] if since < earlier < edit.at else []
        states.append((edit.at, edit.text, True))
    if message.edited is not None and message.edited > edits[-1].at + _LATE_US:
        states[-1] = (edits[-1].at, None, True)
        states.append((message.edited, message.text, True))
    return states


def _member_versions(presence: list[tuple[int, str, str, bool]]) -> list[EntityVersion]:
    since: dict[tuple[str, str], int] = {}
    versions = []
    for at, channel, user, is_there in sorted(presence):
        begun = since.get((channel, user))
        if is_there and begun is None:
            since[channel, user] = at
        elif not is_there and begun is not None:
            versions.append(EntityVersion(MEMBER, f"{channel}/{user}", {}, _instant(begun), _instant(at)))
            del since[channel, user]
    return versions + [EntityVersion(MEMBER, f"{channel}/{user}", {}, _instant(at)) for (channel, user), at in since.items()]


def _thread_of(channel: str, message: Row) -> str | None:
    stamp = _stamp(message.get("thread_ts"))
    return None if stamp is None else f"{channel}/{_ts(stamp)}"


def _stamp(ts: Any) -> int | None:
    """Return a ts in microseconds since 1970."""
    return int(ts.replace(".", "")) if isinstance(ts, str) and re.fullmatch(r"\d{9,11}\.\d{6}", ts) else None


def _ts(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{seconds:010}.{rest:06}"


def _microseconds(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)


def _instant(microseconds: int) -> str:
    return (_EPOCH + timedelta(microseconds=microseconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _object(value: Any) -> Row:
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value)
    return value if isinstance(value, dict) else {}


def _list(text: str | None) -> list[Any]:
    with suppress(ValueError):
        value = json.loads(text or "[]")
        return value if isinstance(value, list) else []
    return []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
