"""Answer tools of a team chat as of an instant: channels, messages, threads; the product `chat` of the kind `office`.

In: versions of entities. `channel` (key: its name, value {}), `member` (key "<channel>/<user>", value {}), `person` (key: the
user, value {"name"}) and `message` (key "<channel>/<ts>", value {"author", "channel", "text", "thread", "edited"}; the text is
null where it was another one than the log holds; `thread`: key of the message that it replies to, or null). Out: tools that
list channels, read, search, post, edit and delete. The agent writes as the user of its sessions, and changes its own messages
alone.

A message of the episode has the time of its clock. Its `ts` is that instant and the number of the post, in microseconds: the
order of messages is the order of their `ts`. It is no part of what a message is: `made` of the difference says that such keys
depend on the path, so that who posts, deletes and posts again reaches the same end. When a message was posted or changed last,
relative to changes of other apps, follows from the journal (changes.py).
Does not see: private channels and rights (everybody may post where a channel is), topics, reactions, attached files.
"""

from __future__ import annotations

import json
import re
from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ..apps import App, AppState, Name, Start
from ..apps.identities import SessionUsers
from ..apps.office import EntityHistory
from ..canonical import canonical
from ..records import Result
from ..schemas import Schema, fields, refusal
from ..world import Overlay

MESSAGE, CHANNEL, MEMBER, PERSON = "message", "channel", "member", "person"
LIMIT, MOST = 20, 200
"""Messages that an answer shows, by default and at most."""
NO_TEXT = "what the message said at that time is not on record"
TEXT: Schema = {"type": "string", "minLength": 1}
CHANNELS: Schema = {**TEXT, "description": "name of the channel, without #"}
TS: Schema = {**TEXT, "description": "the message's ts, as the tools show it"}
INSTANT: Schema = {**TEXT, "description": "a ts, or an ISO instant"}
COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": MOST}
TOOLS: dict[str, tuple[str, Schema, bool]] = {
    "channels": ("List the channels and their known members, and who you are.", fields(), False),
    "read": ("Read the latest messages of a channel, or of one of its threads, in the order of time.", fields(
        "channel", channel=CHANNELS, limit=COUNT, before=INSTANT, after=INSTANT, thread=TS), False),
    "search": ("Find messages that contain a text, in any case.", fields(
        "text", text=TEXT, channel=CHANNELS, author=TEXT, limit=COUNT), False),
    "post": ("Post a message in a channel, or in the thread of a message.", fields(
        "channel", "text", channel=CHANNELS, text=TEXT, thread=TS), True),
    "edit": ("Change the text of a message of your own.", fields(
        "channel", "ts", "text", channel=CHANNELS, ts=TS, text=TEXT), True),
    "delete": ("Delete a message of your own.", fields("channel", "ts", channel=CHANNELS, ts=TS), True),
}
"""Tool, without the prefix -> description, schema of the arguments, whether it writes."""
PREFIX = "chat_"
_TS = re.compile(r"\d{1,12}\.\d{6}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Message = dict[str, Any]
Change = dict[Name, Message | None]


class InvalidChatCall(Exception):
    """A call that the chat refuses; its text is the answer."""


class ChatStart(NamedTuple):
    """The chat as an episode begins; shared by all that begin at one instant."""

    entities: dict[Name, dict[str, Any]]
    messages: dict[str, list[str]]
    """Channel -> ts of its messages, in order."""


def descriptors(prefix: str | None = None) -> list[dict[str, Any]]:
    """Return the MCP descriptors of the tools, each name behind a prefix."""
    return [{"name": (PREFIX if prefix is None else prefix) + name, "description": description, "inputSchema": schema,
             "annotations": {"readOnlyHint": not writes}} for name, (description, schema, writes) in sorted(TOOLS.items())]


def app(name: str, history: EntityHistory, users: SessionUsers, row: Mapping[str, Any]) -> ChatApp:
    """Make the app; `prefix` of the manifest's row stands before the names of its tools."""
    return ChatApp(name, history, users, row.get("prefix", PREFIX))


class ChatApp(App):
    """A chat over time."""

    def __init__(self, name: str, history: EntityHistory, users: SessionUsers, prefix: str) -> None:
        self.name = name
        self.prefix = prefix
        self.answers = frozenset(prefix + tool for tool in TOOLS)
        self.writes = frozenset(prefix + tool for tool, (_, _, writes) in TOOLS.items() if writes)
        self.explained = self.writes
        self._history = history
        self._users = users
        self._starts: dict[str | None, ChatStart] = {}

    def reset(self, start: Start) -> ChatState:
        if start.instant not in self._starts:
            entities = self._history.at(start.instant)
            messages: dict[str, list[str]] = {key: [] for kind, key in entities if kind == CHANNEL}
            for kind, key in sorted(entities):
                channel, _, ts = key.rpartition("/")
                if kind == MESSAGE and channel in messages:
                    messages[channel].append(ts)
            self._starts[start.instant] = ChatStart(entities, messages)
        begun = self._starts[start.instant]
        latest = max((own[-1] for own in begun.messages.values() if own), default="0.000000")
        clock = _microseconds(latest if start.instant is None else start.instant)
        return ChatState(self, begun, clock, self._users.user_of(start))


class ChatState(AppState):
    """One episode of a chat: what was changed lies in layers on top of it, so a fork copies nothing."""

    __slots__ = ("_app", "_clock", "_n_posts", "_overlay", "_start", "_user")

    def __init__(self, chat: ChatApp, start: ChatStart, clock: int, user: str) -> None:
        self._app = chat
        self._start = start
        self._clock = clock
        """Microseconds since 1970."""
        self._user = user
        self._overlay = Overlay()
        self._n_posts = 0

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        if tool not in self._app.answers:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(sorted(self._app.answers))}", True, "unknown")
        name = tool.removeprefix(self._app.prefix)
        try:
            wrong = refusal(TOOLS[name][1], arguments, "the arguments")
            if wrong:
                raise InvalidChatCall(wrong)
            answer, change = _ANSWERS[name](self, **arguments)
        except InvalidChatCall as refused:
            return Result(str(refused), True, "derived")
        if change:
            self._overlay = self._overlay.over(change)
            self._n_posts += name == "post"
        return Result(json.dumps(answer, ensure_ascii=False), False, "unknown" if _has_gap(answer) else "derived")

    def snapshot(self) -> tuple[Overlay, int]:
        return self._overlay, self._n_posts

    def restore(self, snapshot: tuple[Overlay, int]) -> None:
        self._overlay, self._n_posts = snapshot

    def fork(self) -> ChatState:
        twin = ChatState(self._app, self._start, self._clock, self._user)
        twin.restore(self.snapshot())
        return twin

    def difference(self) -> dict[str, Any]:
        """Return the messages that differ from the start; `made`: those that are new."""
        documents, made = {}, []
        for (_, key), message in self._overlay.items().items():
            before, after = _written(self._start.entities.get((MESSAGE, key))), _written(message)
            if before != after:
                documents[f"{MESSAGE}/{key}"] = after
                made += [[MESSAGE, key]] if before is None else []
        return {"documents": documents, "write_calls": [], **({"made": sorted(made)} if made else {})}

    def read(self, name: Name) -> tuple[str | None, str | None]:
        before: dict[str, Any] | None = self._start.entities.get(name)
        return _written(before), _written(self._overlay.get(name, before))

    def may_write(self, tool: str) -> bool:
        return tool in self._app.writes

    def list_channels(self) -> tuple[Any, Change]:
        members: dict[str, list[str]] = {channel: [] for channel in self._start.messages}
        for kind, key in sorted(self._start.entities):
            channel, _, user = key.rpartition("/")
            if kind == MEMBER and channel in members:
                members[channel].append(user)
        rows = [{"channel": channel, **({"members": own} if own else {})} for channel, own in sorted(members.items())]
        return {"you": self._user, "channels": rows}, {}

    def read_channel(
        self, channel: str, limit: int = LIMIT, before: str | None = None, after: str | None = None, thread: str | None = None,
    ) -> tuple[Any, Change]:
        """Return a channel's own messages, or those of a thread with the one that it hangs on."""
        messages = list(self._messages(channel))
        replies: dict[str, int] = {}
        for _, message in messages:
            replies[message["thread"] or ""] = replies.get(message["thread"] or "", 0) + 1
        root = None if thread is None else f"{channel}/{thread}"
        if root is not None and root not in replies and self._message(root) is None:
            raise InvalidChatCall(f"no message {thread!r} in {channel!r}")
        low, high = (None if each is None else _microseconds(each) for each in (after, before))
        chosen = [(key, message) for key, message in messages if (
            (message["thread"] is None if root is None else root in (key, message["thread"]))
            and (low is None or _microseconds(_ts_of(key)) > low) and (high is None or _microseconds(_ts_of(key)) < high))]
        return [self._shown(key, message, replies.get(key, 0)) for key, message in chosen[-limit:]], {}

    def search_texts(
        self, text: str, channel: str | None = None, author: str | None = None, limit: int = LIMIT,
    ) -> tuple[Any, Change]:
        """Return the latest messages that contain a text. One whose text is not on record contains it for all that is known."""
        wanted = text.casefold()
        rows = [self._shown(key, message, 0) | {"channel": message["channel"]}
                for each in (sorted(self._start.messages) if channel is None else [channel])
                for key, message in self._messages(each)
                if author in (None, message["author"]) and (message["text"] is None or wanted in message["text"].casefold())]
        return sorted(rows, key=lambda row: str(row["ts"]))[-limit:], {}

    def post_text(self, channel: str, text: str, thread: str | None = None) -> tuple[Any, Change]:
        self._must_exist(channel)
        root = None if thread is None else self._message(f"{channel}/{thread}")
        if thread is not None and root is None:
            raise InvalidChatCall(f"no message {thread!r} in {channel!r} to reply to")
        above = None if root is None else root["thread"] or f"{channel}/{thread}"
        ts = _ts_at(self._clock + self._n_posts + 1)
        message = {"author": self._user, "channel": channel, "edited": False, "text": _admitted(text), "thread": above}
        return {"ok": True, "channel": channel, "ts": ts}, {(MESSAGE, f"{channel}/{ts}"): message}

    def edit_own(self, channel: str, ts: str, text: str) -> tuple[Any, Change]:
        message = self._own(channel, ts, "edit")
        return {"ok": True, "channel": channel, "ts": ts}, {
            (MESSAGE, f"{channel}/{ts}"): message | {"text": _admitted(text), "edited": True}}

    def delete_own(self, channel: str, ts: str) -> tuple[Any, Change]:
        self._own(channel, ts, "delete")
        return {"ok": True, "channel": channel, "ts": ts}, {(MESSAGE, f"{channel}/{ts}"): None}

    def _own(self, channel: str, ts: str, act: str) -> Message:
        self._must_exist(channel)
        message = self._message(f"{channel}/{ts}")
        if message is None:
            raise InvalidChatCall(f"no message {ts!r} in {channel!r}")
        if message["author"] != self._user:
            raise InvalidChatCall(f"you can {act} your own messages alone: this one is by {message['author']}")
        return message

    def _must_exist(self, channel: str) -> None:
        if channel not in self._start.messages:
            raise InvalidChatCall(f"no channel {channel!r}; there are: {', '.join(sorted(self._start.messages))}")

    def _message(self, key: str) -> Message | None:
        message: Message | None = self._overlay.get((MESSAGE, key), self._start.entities.get((MESSAGE, key)))
        return message

    def _messages(self, channel: str) -> Iterator[tuple[str, Message]]:
        """Yield a channel's messages in the order of their times, by key."""
        self._must_exist(channel)
        stamps = list(self._start.messages[channel])
        for kind, key in self._overlay.items():
            own, _, ts = key.rpartition("/")
            if own == channel and (kind, key) not in self._start.entities:
                insort(stamps, ts)
        for ts in stamps:
            message = self._message(f"{channel}/{ts}")
            if message is not None:
                yield f"{channel}/{ts}", message

    def _shown(self, key: str, message: Message, n_replies: int) -> Message:
        ts, author = _ts_of(key), message["author"]
        person = self._start.entities.get((PERSON, str(author)), {})
        row = {"ts": ts, "time": _time_of(ts), "author": author, "text": message["text"]}
        if person.get("name") not in (None, author):
            row["name"] = person["name"]
        if message["text"] is None:
            row["note"] = NO_TEXT
        if message["thread"] is not None:
            row["thread"] = _ts_of(message["thread"])
        return row | ({"edited": True} if message["edited"] else {}) | ({"replies": n_replies} if n_replies else {})


_ANSWERS: dict[str, Callable[..., tuple[Any, Change]]] = {
    "channels": ChatState.list_channels, "read": ChatState.read_channel, "search": ChatState.search_texts,
    "post": ChatState.post_text, "edit": ChatState.edit_own, "delete": ChatState.delete_own}
"""Tool -> what answers it: a JSON value, and what it changes."""


def _has_gap(answer: Any) -> bool:
    return isinstance(answer, list) and any(row["text"] is None for row in answer)


def _written(message: Mapping[str, Any] | None) -> str | None:
    return None if message is None else canonical(message)


def _admitted(text: str) -> str:
    if not text.strip():
        raise InvalidChatCall("a message has to say something")
    return text


def _ts_of(key: str) -> str:
    return key.rpartition("/")[2]


def _ts_at(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{seconds:010}.{rest:06}"


def _time_of(ts: str) -> str:
    instant = _EPOCH + timedelta(microseconds=_microseconds(ts))
    return instant.isoformat(timespec="seconds").replace("+00:00", "Z")


def _microseconds(instant: str) -> int:
    """Return a ts or an ISO instant as microseconds since 1970."""
    if _TS.fullmatch(instant):
        return int(instant.replace(".", ""))
    try:
        moment = datetime.fromisoformat(instant)
    except ValueError:
        raise InvalidChatCall(f"invalid instant {instant!r} (expected a ts, or YYYY-MM-DDTHH:MM:SSZ)") from None
    return round(((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) / timedelta(microseconds=1))
