"""Answer the tools of Slack as slack-mcp-server names and shows them; product `slack` of a company.

In: a desk and a call's arguments. Out: CSV with a header, newest messages first, or Slack's refusal behind "Error: ".
Sees: channels and messages of an export as one person sees them, threads, members, Slack's search language (slack_search.py).
When a reaction came is in no export. It counts as there if so much time has passed since the message that recorded answers
showed reactions of its name as they are at the end (`settled` of the conventions); before, the answer is undecided.
Does not see: unread marks, user groups, saved items, texts of attached files; members who left without a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from ..company import CompanyDesk, ProductRefusal, Undecided
from .slack_search import SlackQuery, parse_search
from .tools import OfficeTool

SERVER = "slack-mcp-server"
PRODUCT, MESSAGE, CHANNEL, ACCOUNT = "slack", "slack", "slack_channel", "slack_user"
MESSAGE_COLUMNS = ("MsgID", "UserID", "UserName", "RealName", "Channel", "ThreadTs", "Text", "Time", "Reactions", "BotName",
                   "FileCount", "AttachmentIDs", "HasMedia", "Cursor")
CHANNEL_COLUMNS = ("ID", "Name", "Topic", "Purpose", "MemberCount", "Cursor")
USER_COLUMNS = ("UserID", "UserName", "RealName", "DisplayName", "Email", "Title", "DMChannelID")
_KINDS: dict[str, Callable[[str, bool], bool]] = {
    "public_channel": lambda kind, private: kind == "channel" and not private,
    "private_channel": lambda kind, private: kind == "channel" and private,
    "im": lambda kind, _: kind == "im", "mpim": lambda kind, _: kind == "mpim"}
_ACTIVITY = ("channel_join", "channel_leave", "group_join", "group_leave", "channel_topic", "channel_purpose", "channel_name",
             "group_topic", "group_purpose", "group_name", "channel_archive", "channel_unarchive")
_SPAN = re.compile(r"(\d+)([dwm])")
_DAYS = {"d": 1, "w": 7, "m": 30}
_DAY = 86_400
_LIMIT, _SEARCHED, _MOST = "1d", 20, 100
Arguments = dict[str, Any]


def refused(error: str) -> ProductRefusal:
    """Return a refusal as the server writes it."""
    return ProductRefusal(f"Error: {error}")


def csv_rows(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as the server's encoder writes them: a field is quoted if it has a comma, a quote, a line's end, or begins
    with a blank."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (columns, *rows))


def _cell(value: Any) -> str:
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    if text and (text[0].isspace() or any(sign in text for sign in ',"\r\n')):
        return '"' + text.replace('"', '""') + '"'
    return text


def _list_channels(desk: CompanyDesk, arguments: Arguments) -> str:
    kinds = [kind.strip() for kind in str(arguments.get("channel_types") or "public_channel").split(",")]
    rows = []
    for key in desk.ids(CHANNEL):
        kind, private = desk.value(CHANNEL, key, "kind"), desk.value(CHANNEL, key, "private")
        if not any(name in _KINDS and _KINDS[name](kind, private) for name in kinds) or not desk.sees(CHANNEL, key):
            continue
        if desk.value(CHANNEL, key, "archived", False):
            continue
        members = len(desk.value(CHANNEL, key, "members", ()))
        rows.append((key, _name_of(desk, key), desk.likely(CHANNEL, key, "topic", ""), desk.likely(CHANNEL, key, "purpose", ""),
                     members, ""))
    by_members = arguments.get("sort") == "popularity"
    rows.sort(key=lambda row: (-row[4] if by_members else 0, row[1]))
    return csv_rows(CHANNEL_COLUMNS, rows[:int(arguments.get("limit") or _MOST)])


def _name_of(desk: CompanyDesk, channel: str) -> str:
    name = str(desk.value(CHANNEL, channel, "name", ""))
    return f"#{name}" if desk.value(CHANNEL, channel, "kind") == "channel" else name


def channel_of(desk: CompanyDesk, given: Any) -> str:
    """Return the id of a channel that is given by id, `#name` or `@user`. Errors: ProductRefusal, Undecided."""
    text = str(given or "").strip()
    if text.startswith("#"):
        named = desk.where(CHANNEL, "name", text[1:])
        text = named[0] if named else text
    elif text.startswith("@"):
        text = _direct(desk, text[1:])
    if not desk.exists(CHANNEL, text) or not desk.sees(CHANNEL, text):
        raise refused("channel_not_found")
    return text


def _direct(desk: CompanyDesk, name: str) -> str:
    """Return the direct conversation with somebody, or their name where there is none."""
    users = desk.where(ACCOUNT, "name", name)
    pair = {desk.account(ACCOUNT), *users}
    conversations = desk.where(CHANNEL, "kind", "im")
    return next((key for key in conversations if set(desk.value(CHANNEL, key, "members", ())) == pair), name)


def _stamps(desk: CompanyDesk, channel: str) -> list[str]:
    """Return the keys of a channel's messages, newest first."""
    return sorted(desk.where(MESSAGE, "channel", channel), key=_ts_of, reverse=True)


def _ts_of(key: str) -> str:
    return key.rpartition("/")[2]


def _read_history(desk: CompanyDesk, arguments: Arguments) -> str:
    channel = channel_of(desk, arguments.get("channel_id"))
    with_activity = bool(arguments.get("include_activity_messages"))
    keys = (key for key in _stamps(desk, channel) if desk.value(MESSAGE, key, "thread_ts") is None)
    shown = [key for key in keys if with_activity or desk.value(MESSAGE, key, "subtype") not in _ACTIVITY]
    return _messages(desk, _limited(desk, shown, arguments.get("limit")))


def _read_replies(desk: CompanyDesk, arguments: Arguments) -> str:
    channel, root = channel_of(desk, arguments.get("channel_id")), str(arguments.get("thread_ts") or "")
    if not desk.exists(MESSAGE, f"{channel}/{root}"):
        raise refused("thread_not_found")
    replies = [key for key in desk.where(MESSAGE, "thread_ts", root) if key.startswith(f"{channel}/")]
    keys = sorted([f"{channel}/{root}", *replies], key=_ts_of)
    given = arguments.get("limit")
    return _messages(desk, _limited(desk, keys, given) if given else keys)


def _limited(desk: CompanyDesk, keys: list[str], given: Any) -> list[str]:
    """Return the messages of the last days, weeks or months (`1d`, `1w`, `1m`), or so many."""
    text = str(given or _LIMIT).strip()
    span = _SPAN.fullmatch(text)
    if span is not None:
        begin = desk.now - int(span[1]) * _DAYS[span[2]] * _DAY
        return [key for key in keys if float(_ts_of(key)) >= begin]
    if not text.isdecimal():
        raise refused(f"invalid limit: {text}")
    return keys[:int(text)]


def _messages(desk: CompanyDesk, keys: Iterable[str]) -> str:
    return csv_rows(MESSAGE_COLUMNS, (_row(desk, key) for key in keys))


def _row(desk: CompanyDesk, key: str) -> Iterator[Any]:
    channel, _, ts = key.rpartition("/")
    user = desk.value(MESSAGE, key, "user") or ""
    is_bot = desk.exists(ACCOUNT, user) and bool(desk.value(ACCOUNT, user, "is_bot", False))
    files = desk.value(MESSAGE, key, "files") or []
    yield from (ts, user, _of_user(desk, user, "name"), _of_user(desk, user, "real_name"), channel)
    yield from (desk.value(MESSAGE, key, "thread_ts") or "", desk.value(MESSAGE, key, "text", ""), _time(ts))
    yield "|".join(f"{name}:{len(users)}" for name, users in _reactions(desk, key).items())
    yield _of_user(desk, user, "real_name") if is_bot else ""
    yield from (len(files), ",".join(str(file.get("id")) for file in files), bool(files), "")


def _of_user(desk: CompanyDesk, user: str, field: str) -> str:
    return str(desk.value(ACCOUNT, user, field) or "") if desk.exists(ACCOUNT, user) else ""


def _reactions(desk: CompanyDesk, key: str) -> dict[str, list[str]]:
    if not desk.is_known(MESSAGE, key, "reactions"):
        settled, age = desk.convention(PRODUCT, "settled", {}), desk.now - float(_ts_of(key))
        reactions = dict(desk.last_known(MESSAGE, key, "reactions") or {})
        if all(name in settled and age >= settled[name] for name in reactions):
            return reactions
    return dict(desk.value(MESSAGE, key, "reactions", {}))


def _time(ts: str) -> str:
    return datetime.fromtimestamp(int(ts.partition(".")[0]), UTC).isoformat().replace("+00:00", "Z")


def _search(desk: CompanyDesk, arguments: Arguments) -> str:
    query = parse_search(str(arguments.get("search_query") or ""), arguments)
    channels = {key for key in desk.ids(CHANNEL) if desk.sees(CHANNEL, key)}
    keys = [key for key in query.candidates(desk, MESSAGE) if key.rpartition("/")[0] in channels]
    limit, shown = int(arguments.get("limit") or _SEARCHED), list[str]()
    for key in sorted(keys, key=_ts_of, reverse=True):
        if len(shown) < limit and desk.value(MESSAGE, key, "subtype") not in _ACTIVITY and _matches(desk, query, key):
            shown.append(key)
    return _messages(desk, shown)


def _matches(desk: CompanyDesk, query: SlackQuery, key: str) -> bool:
    """Return whether a message is an answer. Errors: Undecided for a text that was another one then, and matches now."""
    channel, _, ts = key.rpartition("/")
    user = desk.value(MESSAGE, key, "user") or ""
    names = {user, _of_user(desk, user, "name"), _of_user(desk, user, "real_name"), _of_user(desk, user, "display_name"),
             *(("me",) if user == desk.account_of(ACCOUNT, desk.address) else ())}
    if not query.fits(names, {channel, _name_of(desk, channel).lstrip("#")}, float(ts)):
        return False
    if not desk.is_known(MESSAGE, key, "text"):
        if query.in_text(str(desk.last_known(MESSAGE, key, "text") or "")):
            raise Undecided("a message that the search may find had another text then")
        return False
    return query.in_text(str(desk.value(MESSAGE, key, "text", ""))) and (
        not query.has or query.has_all(str(desk.value(MESSAGE, key, "text", "")), _reactions(desk, key), bool(
            desk.value(MESSAGE, key, "files"))))


def _search_users(desk: CompanyDesk, arguments: Arguments) -> str:
    wanted = str(arguments.get("query") or "").strip().casefold()
    rows = []
    for key in desk.ids(ACCOUNT):
        fields = [str(desk.value(ACCOUNT, key, name) or "") for name in ("name", "real_name", "display_name", "email")]
        if any(wanted in field.casefold() for field in fields) and not _is_gone(desk, key):
            rows.append((key, *fields, desk.value(ACCOUNT, key, "title") or "", ""))
    rows.sort(key=lambda row: row[0])
    return csv_rows(USER_COLUMNS, rows[:int(arguments.get("limit") or _MOST)])


def _is_gone(desk: CompanyDesk, account: str) -> bool:
    """Return whether an account is deactivated. Errors: Undecided where the export does not tell since when."""
    return bool(desk.value(ACCOUNT, account, "deleted", False))


def _add_message(desk: CompanyDesk, arguments: Arguments) -> str:
    channel = channel_of(desk, arguments.get("channel_id"))
    text, thread = str(arguments.get("payload") or arguments.get("text") or ""), arguments.get("thread_ts")
    if not text:
        raise refused("text must be a string")
    if thread and not desk.exists(MESSAGE, f"{channel}/{thread}"):
        raise refused("thread_not_found")
    user, ts = desk.account(ACCOUNT), f"{desk.now:.6f}"
    fields = {"channel": channel, "ts": ts, "user": user, "text": text, "deleted": False, "reactions": {}}
    desk.write(MESSAGE, f"{channel}/{ts}", **fields, **({"thread_ts": str(thread)} if thread else {}))
    return _messages(desk, [f"{channel}/{ts}"])


def _react(desk: CompanyDesk, arguments: Arguments, adds: bool) -> str:
    channel, ts = channel_of(desk, arguments.get("channel_id")), str(arguments.get("timestamp") or "")
    key, name, user = f"{channel}/{ts}", str(arguments.get("emoji") or "").strip(":"), desk.account(ACCOUNT)
    if not desk.exists(MESSAGE, key):
        raise refused("message_not_found")
    reactions = {each: list(users) for each, users in _reactions(desk, key).items()}
    if (user in reactions.get(name, ())) == adds:
        raise refused("already_reacted" if adds else "no_reaction")
    users = [*reactions.get(name, ()), user] if adds else [each for each in reactions[name] if each != user]
    desk.write(MESSAGE, key, reactions={each: own for each, own in {**reactions, name: users}.items() if own})
    act, where = ("added", "to") if adds else ("removed", "from")
    return f"Successfully {act} :{name}: reaction {where} message {ts} in channel {channel}"


TOOLS: dict[str, OfficeTool] = {
    "channels_list": OfficeTool(_list_channels),
    "conversations_history": OfficeTool(_read_history),
    "conversations_replies": OfficeTool(_read_replies),
    "conversations_search_messages": OfficeTool(_search),
    "conversations_add_message": OfficeTool(_add_message, writes=True),
    "reactions_add": OfficeTool(lambda desk, arguments: _react(desk, arguments, adds=True), writes=True),
    "reactions_remove": OfficeTool(lambda desk, arguments: _react(desk, arguments, adds=False), writes=True),
    "users_search": OfficeTool(_search_users),
}
