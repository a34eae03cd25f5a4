"""Answer the tools of slack-mcp-server over a company's channels, messages and accounts.

In: records `slack_channel`, `slack` (messages), `slack_user` of a desk. Out: the server's CSV.
Conventions (learnt from recorded answers, `learn_slack`): `window`: how far back `limit: "2d"` reaches, `rolling` (48 hours;
without evidence) or `days` (since the beginning of yesterday); `roots`: whether the first message of a thread shows its own
time as `ThreadTs`; `cursors`: whether an answer that was cut off says how to go on. The column `Channel` has the id.
An export tells no times of reactions, and often none of topics. The last ones on record count as settled, and are answered:
reactions a day after the last message of the thread (`settled`: other seconds, where recorded answers show enough), topics two
weeks after the channel began. Before that the answer is unknown. A search leaves out a message whose last text does not match,
although an edit may have taken the word away.
These are assumptions, not evidence: both times, and without recorded answers the rolling window, empty cursors (the public
server fills them), channels by name (it sorts by size), ids of channels in a search (it shows names), no `DMChannelID`.
A message may mention people (`<@U…>`, `<!channel>`, `<!here>`, `<!everyone>`): each mention of one of the conversation's
members is a record `slack_mention`, which Slack shows to that person.
Does not see: read marks before the episode, user groups, contents of attached files, muted channels: the exports have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from ..company import CompanyDesk, ProductRefusal, Undecided
from .slack_search import InvalidSearch, SearchTerm, date_terms, interval, parse_search
from .tables import count_of, csv_text, decode_cursor, encode_cursor
from .tools import OfficeTool

SERVER = "slack-mcp-server"
PRODUCT = "slack"
MESSAGE, CHANNEL, ACCOUNT, MENTION, MARK = "slack", "slack_channel", "slack_user", "slack_mention", "slack_mark"
MESSAGES = ("MsgID", "UserID", "UserName", "RealName", "Channel", "ThreadTs", "Text", "Time", "Reactions", "BotName",
            "FileCount", "AttachmentIDs", "HasMedia", "Cursor")
CHANNELS = ("ID", "Name", "Topic", "Purpose", "MemberCount", "Cursor")
USERS = ("UserID", "UserName", "RealName", "DisplayName", "Email", "Title", "DMChannelID")
UNREADS = ("ChannelID", "ChannelName", "ChannelType", "UnreadCount", "LastRead", "Latest")
_KINDS = {("channel", False): "public_channel", ("channel", True): "private_channel", ("im", True): "im",
          ("mpim", True): "mpim"}
_SHOWN_SUBTYPES = (None, "", "bot_message", "thread_broadcast")
_UNITS = {"d": 1, "w": 7, "m": 30}
_DAY = 86_400
_TOPIC_SETTLED = 14 * _DAY
_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^>]*)?>|<!(channel|here|everyone)(?:\|[^>]*)?>")
_WORD = re.compile(r"\w+")
_PERMALINK = re.compile(r"https://[\w.-]*slack\.com/archives/([A-Z0-9]+)/p(\d{10})(\d{6})(?:\?\S*)?")


def _refusal(text: str) -> ProductRefusal:
    return ProductRefusal(f"Error: {text}")


# Names


def _account(desk: CompanyDesk, user: str) -> tuple[str, str]:
    """Return the login and the real name of an account; its id where there is none."""
    if not desk.exists(ACCOUNT, user):
        return user, user
    return desk.value(ACCOUNT, user, "name") or user, desk.value(ACCOUNT, user, "real_name") or ""


def _users_named(desk: CompanyDesk, name: str) -> list[str]:
    bare = name.strip().removeprefix("<@").removeprefix("@").removesuffix(">")
    if desk.exists(ACCOUNT, bare):
        return [bare]
    return [user for user in desk.ids(ACCOUNT) if bare.lower() in {
        str(desk.value(ACCOUNT, user, field) or "").lower() for field in ("name", "display_name", "real_name")}]


def _named_user(desk: CompanyDesk, name: str) -> str:
    """Return the account of a name in a filter. Errors: ProductRefusal."""
    users = _users_named(desk, name)
    by_login = [user for user in users if desk.value(ACCOUNT, user, "name") == name.strip().lstrip("<@")]
    for choice in (by_login, users):
        if len(choice) == 1:
            return choice[0]
    raise _refusal(f'user "{name.strip()}" not found')


def _partner(desk: CompanyDesk, channel: str) -> str | None:
    """Return the other account of a direct conversation; the own one of a conversation with oneself."""
    own = desk.account(ACCOUNT)
    members = desk.value(CHANNEL, channel, "members") or []
    return next((member for member in members if member != own), own if own in members else None)


def _kind(desk: CompanyDesk, channel: str) -> str:
    kind = (desk.value(CHANNEL, channel, "kind", "channel"), bool(desk.value(CHANNEL, channel, "private", False)))
    return _KINDS.get(kind, str(kind[0]))


def _channel_name(desk: CompanyDesk, channel: str) -> str:
    kind = _kind(desk, channel)
    if kind == "im":
        partner = _partner(desk, channel)
        return f"@{_account(desk, partner)[0]}" if partner else channel
    return ("@" if kind == "mpim" else "#") + str(desk.value(CHANNEL, channel, "name") or channel)


def _channels(desk: CompanyDesk) -> Iterator[str]:
    return (channel for channel in desk.ids(CHANNEL) if desk.sees(CHANNEL, channel))


def _resolve(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Return the id of the conversation of a call. Errors: ProductRefusal if the person cannot see it."""
    given = str(arguments.get("channel_id") or "")
    if not given:
        raise _refusal("channel_id must be a string")
    if given[0] in "#@":
        named = [channel for channel in _channels(desk) if _channel_name(desk, channel) == given]
        if not named:
            raise _refusal(f'channel "{given}" not found')
        return named[0]
    if not desk.exists(CHANNEL, given) or not desk.sees(CHANNEL, given):
        raise _refusal("channel_not_found")
    return given


# Messages


def _ts(seconds: float) -> str:
    whole, rest = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{whole}.{rest:06}"


def _time(ts: str) -> str:
    return datetime.fromtimestamp(int(ts.partition(".")[0]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ts_of(key: str) -> str:
    return key.rpartition("/")[2]


def _is_shown(desk: CompanyDesk, key: str, with_activity: bool) -> bool:
    if desk.value(MESSAGE, key, "deleted", False):
        return False
    return with_activity or desk.value(MESSAGE, key, "subtype") in _SHOWN_SUBTYPES


def _row(desk: CompanyDesk, key: str) -> list[object]:
    channel, _, ts = key.partition("/")
    user = desk.value(MESSAGE, key, "user") or ""
    thread = desk.value(MESSAGE, key, "thread_ts")
    if thread is None and desk.convention(PRODUCT, "roots", False) and _replies(desk, channel, ts):
        thread = ts
    files = desk.value(MESSAGE, key, "files") or []
    reactions = _reactions(desk, key, thread or ts)
    return [ts, user, *_account(desk, user), channel, thread or "", desk.value(MESSAGE, key, "text"), _time(ts),
            "|".join(f"{name}:{len(users)}" for name, users in reactions.items() if users), "", len(files),
            ",".join(str(each.get("id")) for each in files), bool(files), ""]


def _reactions(desk: CompanyDesk, key: str, thread: str) -> dict[str, list[str]]:
    """Return emoji -> accounts of a message. Errors: Undecided if they may have come after now."""
    if not desk.is_known(MESSAGE, key, "reactions"):
        ended = max(float(_ts_of(key)), desk.last_born_where(MESSAGE, "thread_ts", thread) or 0.0)
        if desk.now >= ended + desk.convention(PRODUCT, "settled", _DAY):
            return desk.last_known(MESSAGE, key, "reactions") or {}
    return desk.value(MESSAGE, key, "reactions") or {}


def _topic(desk: CompanyDesk, channel: str) -> str:
    """Return the topic of a channel. Errors: Undecided if it may have been set after now."""
    created = desk.value(CHANNEL, channel, "created") or 0
    if desk.is_known(CHANNEL, channel, "topic") or desk.now < float(created) + _TOPIC_SETTLED:
        return desk.value(CHANNEL, channel, "topic") or ""
    return desk.last_known(CHANNEL, channel, "topic") or ""


def _messages(desk: CompanyDesk, keys: Iterable[str], cursor: str = "") -> str:
    rows = [_row(desk, key) for key in keys]
    if rows and cursor and desk.convention(PRODUCT, "cursors", False):
        rows[-1][-1] = cursor
    return csv_text(MESSAGES, rows)


def _replies(desk: CompanyDesk, channel: str, thread: str) -> list[str]:
    """Return the replies of a thread, oldest first."""
    return sorted((key for key in desk.where(MESSAGE, "thread_ts", thread) if key.startswith(f"{channel}/")), key=_ts_of)


def _page(desk: CompanyDesk, arguments: dict[str, Any]) -> tuple[int, str]:
    """Return how many messages a call asks for, and the ts that they come after. Errors: ProductRefusal."""
    limit = str(arguments.get("limit") or "")
    if not limit or limit[-1] not in _UNITS:
        try:
            count = int(limit) if limit else 50
            return min(count, 999) if count > 0 else 100, ""
        except ValueError:
            raise _refusal(f'invalid numeric limit: "{limit}"') from None
    if not limit[:-1].isdecimal() or not int(limit[:-1]):
        raise _refusal(f'invalid duration limit "{limit}": must be a positive integer followed by \'d\', \'w\', or \'m\'')
    return 100, _ts(oldest(desk.now, limit, desk.convention(PRODUCT, "window", "rolling") == "rolling"))


def oldest(now: float, limit: str, is_rolling: bool) -> float:
    """Return the instant that a limit like `2d` reaches back to, in seconds."""
    days = min(int(limit[:-1]) * _UNITS[limit[-1]], 20_000)
    return now - days * _DAY if is_rolling else now - now % _DAY - (days - 1) * _DAY


def _cut(keys: Iterable[str], size: int) -> tuple[list[str], bool]:
    """Return the first `size` keys, and whether there are more."""
    chosen: list[str] = []
    for key in keys:
        if len(chosen) == size:
            return chosen, True
        chosen.append(key)
    return chosen, False


def conversations_history(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer the messages of a conversation that are no replies, newest first."""
    channel = _resolve(desk, arguments)
    size, after = _page(desk, arguments)
    before = _cursor_ts(arguments)
    with_activity = bool(arguments.get("include_activity_messages"))

    def keys() -> Iterator[str]:
        for key in desk.newest_where(MESSAGE, "channel", channel):
            ts = _ts_of(key)
            if after and ts <= after:
                return
            is_reply = desk.value(MESSAGE, key, "thread_ts") is not None
            broadcast = desk.value(MESSAGE, key, "subtype") == "thread_broadcast"
            if (not before or ts < before) and (broadcast or not is_reply) and _is_shown(desk, key, with_activity):
                yield key

    chosen, has_more = _cut(keys(), size)
    return _messages(desk, chosen, _next_cursor(chosen) if has_more else "")


def _cursor_ts(arguments: dict[str, Any]) -> str:
    cursor = str(arguments.get("cursor") or "")
    if not cursor:
        return ""
    start = (decode_cursor(cursor) or "").removeprefix("next_ts:")
    if not start.isdecimal() or len(start) < 7:
        raise _refusal("invalid_cursor")
    return f"{start[:-6]}.{start[-6:]}"


def _next_cursor(chosen: list[str]) -> str:
    return encode_cursor("next_ts:" + _ts_of(chosen[-1]).replace(".", ""))


def conversations_replies(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer a thread, its first message before its replies, oldest first."""
    channel = _resolve(desk, arguments)
    size, after = _page(desk, arguments)
    given = str(arguments.get("thread_ts") or "")
    if not given:
        raise _refusal("thread_ts must be a string")
    root = _root(desk, channel, given)
    if root is None:
        raise _refusal("thread_not_found")
    start = _cursor_ts(arguments)
    with_activity = bool(arguments.get("include_activity_messages"))
    replies = [key for key in _replies(desk, channel, root) if _ts_of(key) > max(after, start)
               and _is_shown(desk, key, with_activity)]
    first = [f"{channel}/{root}"] if not start and desk.exists(MESSAGE, f"{channel}/{root}") else []
    chosen, has_more = _cut([*first, *replies], size)
    return _messages(desk, chosen, _next_cursor(chosen) if has_more else "")


def _root(desk: CompanyDesk, channel: str, ts: str) -> str | None:
    """Return the first message's ts of the thread of a message, or None if there is neither message nor thread."""
    key = f"{channel}/{ts}"
    if desk.exists(MESSAGE, key):
        return str(desk.value(MESSAGE, key, "thread_ts") or ts)
    return ts if _replies(desk, channel, ts) else None


# Search


def conversations_search_messages(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer the messages that a query finds, newest first."""
    terms = _search_terms(desk, arguments)
    if not terms:
        raise _refusal("no_query")
    if (link := _PERMALINK.fullmatch(str(arguments.get("search_query") or "").strip())) is not None:
        return _linked_message(desk, link[1], f"{link[2]}.{link[3]}")
    size = min(max(count_of(arguments.get("limit"), 20), 1), 100)
    page = _page_number(str(arguments.get("cursor") or ""))
    tests = [_SearchTest(desk, term) for term in terms]
    wanted = page * size

    def keys() -> Iterator[str]:
        for key in sorted(_candidates(desk, terms), key=_ts_of, reverse=True):
            if not (desk.exists(MESSAGE, key) and desk.sees(MESSAGE, key) and _is_shown(desk, key, True)):
                continue
            if all(test.passes(key) for test in tests):
                yield key

    chosen, has_more = _cut(keys(), wanted)
    return _messages(desk, chosen[wanted - size:], encode_cursor(f"page:{page + 1}") if has_more else "")


def _linked_message(desk: CompanyDesk, channel: str, ts: str) -> str:
    """Answer the message of a permalink alone."""
    _resolve(desk, {"channel_id": channel})
    if not desk.exists(MESSAGE, f"{channel}/{ts}"):
        raise _refusal("message not found")
    return _messages(desk, [f"{channel}/{ts}"])


def _search_terms(desk: CompanyDesk, arguments: dict[str, Any]) -> list[SearchTerm]:
    """Return the terms of a call: its query, and the arguments that filter. Errors: ProductRefusal."""
    given = {name: str(arguments.get(name) or "") for name in (
        "search_query", "filter_in_channel", "filter_in_im_or_mpim", "filter_users_with", "filter_users_from",
        "filter_date_before", "filter_date_after", "filter_date_on", "filter_date_during")}
    terms = parse_search(given["search_query"])
    if arguments.get("filter_threads_only"):
        terms.append(SearchTerm("is", "thread"))
    if given["filter_in_channel"]:
        terms.append(SearchTerm("in", _filter_channel(desk, given["filter_in_channel"].strip())))
    elif given["filter_in_im_or_mpim"]:
        terms.append(SearchTerm("in", f"<@{_named_user(desk, given['filter_in_im_or_mpim'])}>"))
    for name, kind in (("filter_users_with", "with"), ("filter_users_from", "from")):
        if given[name]:
            terms.append(SearchTerm(kind, f"<@{_named_user(desk, given[name])}>"))
    try:
        return terms + date_terms(given["filter_date_before"], given["filter_date_after"], given["filter_date_on"],
                                  given["filter_date_during"], desk.now)
    except InvalidSearch as error:
        raise _refusal(str(error)) from None


def _filter_channel(desk: CompanyDesk, given: str) -> str:
    for channel in _channels(desk):
        if given == channel or (given[:1] == "#" and _channel_name(desk, channel) == given):
            return _channel_name(desk, channel)
    raise _refusal(f'channel "{given}" not found' if given[:1] in ("#", "C", "G") else f'invalid channel format: "{given}"')


def _page_number(cursor: str) -> int:
    if not cursor:
        return 1
    text = decode_cursor(cursor)
    if text is None or text.count(":") != 1:
        raise _refusal(f"invalid cursor: {cursor}")
    number = text.partition(":")[2]
    if not number.isdecimal() or int(number) < 1:
        raise _refusal("invalid cursor page: <nil>")
    return int(number)


def _candidates(desk: CompanyDesk, terms: list[SearchTerm]) -> set[str]:
    """Return ids among which all matches are, by the index of words if the query has one."""
    sets = [desk.with_prefix(MESSAGE, "text", word) if is_last else set(desk.with_word(MESSAGE, "text", word))
            for term in terms if term.kind in ("word", "phrase") and not term.is_negated
            for word, is_last in _words(term)]
    return set.intersection(*sets) if sets else set(desk.ids(MESSAGE))


def _words(term: SearchTerm) -> list[tuple[str, bool]]:
    """Return the words of a term, and whether a word of a message may go on after it."""
    words = _WORD.findall(term.value)
    return [(word, term.kind == "word" and index == len(words) - 1) for index, word in enumerate(words)]


class _SearchTest:
    """Whether a message matches a term."""

    def __init__(self, desk: CompanyDesk, term: SearchTerm) -> None:
        self._desk, self._term = desk, term
        text = r"\W+".join(re.escape(word) for word, _ in _words(term))
        self._pattern = re.compile(rf"(?<!\w){text}" + ("" if term.kind == "word" else r"(?!\w)"), re.IGNORECASE)
        self._expected: set[str] = set()
        self._begin = self._end = 0.0
        if term.kind in ("from", "with"):
            self._expected = {desk.account(ACCOUNT)} if term.value.lower() in ("me", "@me") else set(
                _users_named(desk, term.value))
        elif term.kind == "in":
            self._expected = self._conversations(term.value)
        elif term.kind in ("before", "after", "on", "during"):
            span = interval(term.value, desk.now)
            if span is None:
                raise Undecided(f"Slack's reading of the date {term.value!r}")
            self._begin, self._end = span

    def _conversations(self, name: str) -> set[str]:
        people = set(_users_named(self._desk, name)) if name[:1] in "<@" else set()
        return {channel for channel in _channels(self._desk) if channel == name or (
            _partner(self._desk, channel) in people if _kind(self._desk, channel) == "im"
            else (self._desk.value(CHANNEL, channel, "name") or "").lower() == name.lstrip("#@").lower())}

    def passes(self, key: str) -> bool:
        """Return whether a message matches, or does not if the term is negated. Errors: Undecided."""
        return self._matches(key) != self._term.is_negated

    def _matches(self, key: str) -> bool:
        desk, kind = self._desk, self._term.kind
        channel, _, ts = key.partition("/")
        if kind in ("word", "phrase"):
            text = desk.last_known(MESSAGE, key, "text") or ""
            # A match in a text before an edit is undecided.
            return self._pattern.search(text) is not None and desk.value(MESSAGE, key, "text") == text
        if kind == "in":
            return channel in self._expected
        if kind == "from":
            return desk.value(MESSAGE, key, "user") in self._expected
        if kind == "before":
            return float(ts) < self._begin
        if kind == "after":
            return float(ts) >= self._end
        if kind in ("on", "during"):
            return self._begin <= float(ts) < self._end
        if kind == "with":
            return self._is_with(channel, key)
        return self._is_of_sort(kind, channel, key)

    def _is_with(self, channel: str, key: str) -> bool:
        """Whether a message is of a thread or a direct conversation with a person."""
        desk = self._desk
        if _kind(desk, channel) in ("im", "mpim"):
            return not self._expected.isdisjoint(desk.value(CHANNEL, channel, "members") or ())
        root = str(desk.value(MESSAGE, key, "thread_ts") or _ts_of(key))
        thread = _replies(desk, channel, root)
        authors = {desk.value(MESSAGE, each, "user") for each in (*thread, f"{channel}/{root}")}
        return bool(thread) and not self._expected.isdisjoint(authors)

    def _is_of_sort(self, kind: str, channel: str, key: str) -> bool:
        sort = self._term.value.lower()
        if (kind, sort) == ("is", "thread"):
            return self._desk.value(MESSAGE, key, "thread_ts") is not None or bool(_replies(self._desk, channel, _ts_of(key)))
        if (kind, sort) == ("is", "dm"):
            return _kind(self._desk, channel) in ("im", "mpim")
        if (kind, sort) == ("has", "link"):
            return re.search(r"https?://", self._desk.value(MESSAGE, key, "text")) is not None
        raise Undecided(f"the exports do not tell which messages Slack finds for {kind}:{sort}")


# Channels and people


def channels_list(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer the conversations of some kinds that the person can see, by name; by size if asked for."""
    named = {kind.strip() for kind in str(arguments.get("channel_types") or "").split(",")} & set(_KINDS.values())
    kinds = named or {"public_channel", "private_channel"}
    size = min(count_of(arguments.get("limit"), 100), 999)
    size = size if size > 0 else 100
    rows = sorted((_channel_row(desk, channel) for channel in _channels(desk)
                   if _kind(desk, channel) in kinds and not desk.value(CHANNEL, channel, "archived", False)),
                  key=lambda row: (row[1], row[0]))
    if (cursor := str(arguments.get("cursor") or "")) and (last := decode_cursor(cursor)) is not None:
        place = next((index for index, row in enumerate(rows) if row[0] == last), -1)
        rows = rows[place + 1:]
    page = rows[:size]
    if len(rows) > size and desk.convention(PRODUCT, "cursors", False):
        page[-1][-1] = encode_cursor(str(page[-1][0]))
    if arguments.get("sort") == "popularity":
        page.sort(key=lambda row: -int(row[4]))
    return csv_text(CHANNELS, page)


def _channel_row(desk: CompanyDesk, channel: str) -> list[Any]:
    kind, name = _kind(desk, channel), _channel_name(desk, channel)
    members = desk.value(CHANNEL, channel, "members") or []
    if kind == "im":
        partner = _partner(desk, channel)
        return [channel, name, "", f"DM with {_account(desk, partner)[1] if partner else channel}", 2, ""]
    if kind == "mpim":
        names = ", ".join(_account(desk, member)[1] for member in members)
        return [channel, name, "", f"Group DM with {names}", len(members), ""]
    return [channel, name, _topic(desk, channel), desk.value(CHANNEL, channel, "purpose") or "",
            len(members), ""]


def users_search(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer the accounts with a text in a name or an address, in any case."""
    query = str(arguments.get("query") or "").strip().lower()
    if not query:
        raise _refusal("query is required")
    size = min(count_of(arguments.get("limit"), 10), 100)
    size = size if size > 0 else 10
    names = ("name", "real_name", "display_name", "email")
    matches = [user for user in desk.ids(ACCOUNT)
             if any(query in str(desk.value(ACCOUNT, user, field) or "").lower() for field in names)][:size]
    rows = [[user, *(desk.value(ACCOUNT, user, field) or "" for field in (*names, "title")), _direct_channel(desk, user)]
            for user in matches if not desk.value(ACCOUNT, user, "deleted", False)]
    return csv_text(USERS, rows) if rows else "No users found matching the query."


def _direct_channel(desk: CompanyDesk, user: str) -> str:
    if not desk.convention(PRODUCT, "direct_channels", False):
        return ""
    return next((channel for channel in desk.where(CHANNEL, "kind", "im") if desk.sees(CHANNEL, channel)
                 and _partner(desk, channel) == user), "")


# Writes


def conversations_add_message(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Post a message, in a thread if one is named; who is mentioned is notified."""
    channel = _resolve(desk, arguments)
    thread = str(arguments.get("thread_ts") or "")
    if thread and "." not in thread:
        raise _refusal("thread_ts must be a valid timestamp in format 1234567890.123456")
    text = str(arguments.get("text") or arguments.get("payload") or "")
    if not text:
        raise _refusal("text must be a string")
    if arguments.get("content_type", "text/markdown") not in ("text/plain", "text/markdown"):
        raise _refusal("content_type must be either 'text/plain' or 'text/markdown'")
    if desk.value(CHANNEL, channel, "archived", False):
        raise _refusal("is_archived")
    root = _root(desk, channel, thread) if thread else None
    if thread and root is None:
        raise _refusal("thread_not_found")
    stamp = round(desk.now * 1_000_000) + 1
    while desk.exists(MESSAGE, key := f"{channel}/{_ts(stamp / 1_000_000)}"):
        stamp += 1
    own = desk.account(ACCOUNT)
    fields = {"channel": channel, "ts": _ts_of(key), "user": own, "text": text, "deleted": False, "reactions": {}}
    mentioned = _mentioned(desk, channel, text) - {own}
    desk.write(MESSAGE, key, **fields, **({"thread_ts": root} if root else {}))
    for user in sorted(mentioned):
        desk.write(MENTION, f"{user}/{key}", user=user, message=key)
    desk.acted()
    return _messages(desk, [key])


def _mentioned(desk: CompanyDesk, channel: str, text: str) -> set[str]:
    """Return the members whom a text mentions. Errors: Undecided if it mentions all and they are not known."""
    mentions = _MENTION.findall(text)
    if not mentions:
        return set()
    users = {user for user, _ in mentions if user and desk.exists(ACCOUNT, user)}
    if any(everyone for _, everyone in mentions):
        return users | set(desk.value(CHANNEL, channel, "members") or ())
    if desk.value(CHANNEL, channel, "private", False) and desk.is_known(CHANNEL, channel, "members"):
        users &= set(desk.value(CHANNEL, channel, "members") or ())
    return users


def _reaction(desk: CompanyDesk, arguments: dict[str, Any], does_add: bool) -> str:
    channel = _resolve(desk, arguments)
    ts, emoji = str(arguments.get("timestamp") or ""), str(arguments.get("emoji") or "").strip(":")
    if not ts:
        raise _refusal("timestamp is required")
    if not emoji:
        raise _refusal("emoji is required")
    key, own = f"{channel}/{ts}", desk.account(ACCOUNT)
    if not desk.exists(MESSAGE, key):
        raise _refusal("message_not_found")
    reactions = dict(desk.value(MESSAGE, key, "reactions") or {})
    users = list(reactions.get(emoji, ()))
    if does_add == (own in users):
        raise _refusal("already_reacted" if does_add else "no_reaction")
    users = [*users, own] if does_add else [user for user in users if user != own]
    reactions = {name: those for name, those in {**reactions, emoji: users}.items() if those}
    desk.write(MESSAGE, key, reactions=reactions)
    word = "added" if does_add else "removed"
    return f"Successfully {word} :{emoji}: reaction {'to' if does_add else 'from'} message {ts} in channel {channel}"


def reactions_add(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Add the person's reaction to a message."""
    return _reaction(desk, arguments, does_add=True)


def reactions_remove(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Take the person's reaction from a message."""
    return _reaction(desk, arguments, does_add=False)


def conversations_mark(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Mark a conversation as read up to a message."""
    channel = _resolve(desk, arguments)
    ts = str(arguments.get("ts") or "")
    if not ts:
        latest = next((key for key in desk.newest_where(MESSAGE, "channel", channel) if _is_shown(desk, key, True)), None)
        ts = _ts_of(latest) if latest else "0000000000.000000"
    desk.write(MARK, f"{desk.account(ACCOUNT)}/{channel}", ts=ts)
    return f"Successfully marked {channel} as read up to {ts}"


def conversations_unreads(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer what the person has not read: undecided until the episode marked all conversations; exports hold no marks."""
    own, wanted = desk.account(ACCOUNT), str(arguments.get("channel_types") or "all")
    unread: list[tuple[int, str, str, str, list[str]]] = []
    for channel in _channels(desk):
        kind = _unread_kind(desk, channel)
        if wanted not in ("all", kind) or (kind == "internal" and own not in (desk.value(CHANNEL, channel, "members") or ())):
            continue
        mark = desk.value(MARK, f"{own}/{channel}", "ts")
        newest = [key for key in desk.newest_where(MESSAGE, "channel", channel) if desk.value(MESSAGE, key, "user") != own
                  and desk.value(MESSAGE, key, "thread_ts") is None and _is_shown(desk, key, False)]
        if newest and mark is None:
            raise Undecided(f"the exports do not tell what {desk.address} had read of {channel}")
        keys = [key for key in newest if _ts_of(key) > mark]
        if arguments.get("mentions_only"):
            keys = [key for key in keys if own in _mentioned(desk, channel, desk.value(MESSAGE, key, "text"))]
        if keys:
            unread.append((_PRIORITY.index(kind), channel, kind, mark, keys))
    unread = sorted(unread, key=lambda each: each[0])[:count_of(arguments.get("max_channels"), 50)]
    if arguments.get("include_messages", True):
        size = count_of(arguments.get("max_messages_per_channel"), 10)
        return _messages(desk, [key for *_, keys in unread for key in keys[:size]])
    return csv_text(UNREADS, [[channel, _channel_name(desk, channel), kind, len(keys), mark, _ts_of(keys[0])]
                              for _, channel, kind, mark, keys in unread])


_PRIORITY = ("dm", "group_dm", "partner", "internal")


def _unread_kind(desk: CompanyDesk, channel: str) -> str:
    kind = _kind(desk, channel)
    if kind in ("im", "mpim"):
        return "dm" if kind == "im" else "group_dm"
    return "partner" if str(desk.value(CHANNEL, channel, "name") or "").startswith(("ext-", "shared-")) else "internal"


def attachment_get_data(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Refuse a file that the person cannot see; an export does not hold the contents of those that the person can."""
    file_id = str(arguments.get("file_id") or "")
    if not file_id:
        raise _refusal("file_id is required")
    for key in desk.ids(MESSAGE):
        if desk.sees(MESSAGE, key) and any(each.get("id") == file_id for each in desk.value(MESSAGE, key, "files") or ()):
            raise Undecided(f"an export of Slack does not hold the content of the file {file_id}")
    raise _refusal("file_not_found")


_WRITTEN = (MESSAGE, MENTION, MARK)
TOOLS: dict[str, OfficeTool] = {
    "conversations_history": OfficeTool(conversations_history),
    "conversations_replies": OfficeTool(conversations_replies),
    "conversations_add_message": OfficeTool(conversations_add_message, writes=_WRITTEN),
    "conversations_search_messages": OfficeTool(conversations_search_messages),
    "conversations_unreads": OfficeTool(conversations_unreads),
    "conversations_mark": OfficeTool(conversations_mark, writes=_WRITTEN),
    "channels_list": OfficeTool(channels_list),
    "users_search": OfficeTool(users_search),
    "reactions_add": OfficeTool(reactions_add, writes=_WRITTEN),
    "reactions_remove": OfficeTool(reactions_remove, writes=_WRITTEN),
    "attachment_get_data": OfficeTool(attachment_get_data),
}
