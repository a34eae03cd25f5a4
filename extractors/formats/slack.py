"""Slack: a workspace's export (a zip, its unpacked folder, single files of a day and channel), pages of the API's histories.

A thread is a session, named by channel (where the file tells it) and the time of its first message. What stands outside threads
is the channel's talk: one session until an hour passes without a message. Apps and bots are the assistant, everybody else a
user, by the name of their id. A reaction to a bot's message is feedback, any other one is in `lossy`, as is the instant of the
last edit: what a message said before is not in an export. Joins, topics, edits and deletions that an app recorded
(`message_changed`, `message_deleted`) and the lists of users and channels are log events.
Does not see: what a file or a picture holds (named in `lossy`), blocks beyond a message's text, the channel of a day's file
that lies by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.transcript import nameless
from extractors.formats.values import dumped, objects_in, parsed_json, word_of

_TS = re.compile(r"\d{9,11}\.\d{6}")
_DAY = re.compile(r"(?:.*/)?([^/]+)/\d{4}-\d\d-\d\d\.json")
_LISTS = ("users.json", "channels.json")
_SPOKEN = (None, "bot_message", "thread_broadcast", "file_share", "me_message", "assistant_app_thread", "file_comment")
_PAUSE_US = 3_600_000_000
Message = tuple[LogRecord, str, Row]
"""The record that holds a message, its place there, and the message."""


def claims(head: Head) -> bool:
    """Return whether a zip holds lists of users and channels and days of a channel; or the first messages are Slack's."""
    if head.layout == "archive" and isinstance(head.document, dict):
        names = {name.rpartition("/")[2] for name in head.document}
        return not names.isdisjoint(_LISTS) and any(map(_DAY.fullmatch, head.document))
    if not head.is_json:
        return False
    page = head.first.get("messages")
    first = objects_in(page)[:5] if isinstance(page, list) and "ts" not in head.first else head.objects
    return bool(first) and all(map(_is_message, first))


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "message" and _TS.fullmatch(str(value.get("ts"))) is not None


def read(records: LogRecords, emit: Emit) -> None:
    """All messages of a file, by channel, in the order of time."""
    channels: dict[str | None, list[Message]] = {}
    for record in records:
        n_before = sum(map(len, channels.values())), len(emit.events)
        for channel, place, message in _messages(record, emit):
            channels.setdefault(channel, []).append((record, place, message))
        if (sum(map(len, channels.values())), len(emit.events)) == n_before:
            emit.reject(record, "no_message", "the record holds no message; leave it out or export it again")
    for name, messages in channels.items():
        _channel(name, sorted(messages, key=lambda each: str(each[2]["ts"])), emit)


def _messages(record: LogRecord, emit: Emit) -> Iterator[tuple[str | None, str, Row]]:
    """Yield the messages of a record with their channel and place; what else a zip holds becomes log events."""
    value = record.value
    if isinstance(value, dict) and value and all(isinstance(each, bytes) for each in value.values()):
        for name in sorted(value):
            day, listed = _DAY.fullmatch(name), parsed_json(value[name])
            if day is None or not isinstance(listed, list):
                emit.event(record, "log", place=name, tool=f"export {name.rpartition('/')[2]}",
                           content=value[name].decode("utf-8", "replace"))
                continue
            for number, each in enumerate(listed):
                yield from _sorted_out(record, day[1], f"{name}/{number}", each, emit)
        return
    page = value.get("messages") if isinstance(value, dict) else None
    listed = page if isinstance(page, list) else value if isinstance(value, list) else [value]
    channel = word_of(value.get("channel")) if isinstance(value, dict) else None
    for number, each in enumerate(listed):
        yield from _sorted_out(record, channel, str(number), each, emit)


def _sorted_out(record: LogRecord, channel: str | None, place: str, value: Any,
                emit: Emit) -> Iterator[tuple[str | None, str, Row]]:
    if _is_message(value):
        yield channel or word_of(value.get("channel")), place, value
    elif isinstance(value, dict) and value:
        emit.event(record, "log", place=place, content=dumped(value))
    else:
        emit.reject(record, "no_message", "the record holds a message without a type and a time; repair it")


def _channel(channel: str | None, messages: list[Message], emit: Emit) -> None:
    """Tell the threads and the talk of one channel."""
    threads = {str(message["thread_ts"]) for _, _, message in messages if message.get("thread_ts")}
    positions: dict[str, int] = {}
    talk, last = "", 0
    repeated: set[tuple[str, str]] = set()
    for record, place, message in messages:
        ts = str(message["ts"])
        key = ts, str(message.get("client_msg_id") or message.get("text"))
        if key in repeated:
            emit.reject(record, "duplicate_message", f"the message of {ts} is in the file already; no action needed")
            continue
        repeated.add(key)
        thread, at = message.get("thread_ts") or (ts if ts in threads else None), microseconds(float(ts)) or 0
        if thread is None and (not talk or at - last > _PAUSE_US):
            talk = _named(channel, ts, record, "talk")
        if thread is None:
            last = at
        session_id = talk if thread is None else _named(channel, str(thread), record, "thread")
        with emit.guarded(record):
            shared: Row = {"session_id": session_id, "service": emit.envelope.service(message), "happened_at": at,
                           "position": positions.get(session_id, 0)}
            positions[session_id] = shared["position"] + _tell(record, place, message, shared, emit)


def _named(channel: str | None, ts: str, record: LogRecord, kind: str) -> str:
    """Name a session: a thread's time is unique in a channel, and nearly so in a workspace."""
    if channel is None:
        return f"thread:{ts}" if kind == "thread" else nameless(record, f"/{ts}")
    return f"{channel}:{ts}" if kind == "thread" else f"{channel}:{kind}:{ts}"


def _tell(record: LogRecord, place: str, message: Row, shared: Row, emit: Emit) -> bool:
    """Emit one message and its reactions; returns whether it was spoken."""
    if message.get("subtype") not in _SPOKEN or message.get("hidden") is True:
        emit.event(record, "log", place=place, tool=f"message {message.get('subtype')}", content=dumped(message), **shared)
        return False
    is_bot = bool(message.get("bot_id")) or message.get("subtype") == "bot_message"
    lossy = [f"attachment {each.get('name') or each.get('title') or each.get('id')}" for key in ("files", "attachments")
             for each in objects_in(message.get(key))]
    reactions = [(each.get("name"), user) for each in objects_in(message.get("reactions")) for user in each.get("users") or ()]
    lossy += [] if is_bot else [f"reaction {name} of {user}" for name, user in reactions]
    edited = message.get("edited")
    lossy += [f"edited at {edited.get('ts')}" if isinstance(edited, dict) else "edited"] if edited else []
    name = next((each for key in ("user", "username", "bot_id") if (each := word_of(message.get(key)))), None)
    emit.event(record, "message", place=place, role="assistant" if is_bot else "user", content=_text(message), name=name,
               lossy=lossy, **shared)
    for reaction, user in reactions if is_bot else ():
        emit.event(record, "feedback", place=f"{place}/{reaction}/{user}", **{
            **shared, "position": None, "name": "reaction", "value": str(reaction), "lossy": [f"user {user}"]})
    return True


def _text(message: Row) -> str | None:
    """Return the text, else what the attachments say in its stead."""
    attached = objects_in(message.get("attachments"))
    texts = [message.get("text"), *(each.get(key) for each in attached for key in ("text", "fallback"))]
    return next((each for each in texts if isinstance(each, str) and each), None)


FORMAT = Format(name="slack", history="once", claims=claims, read=read, sample=sample("slack.json"), apart=False, rank=27)
