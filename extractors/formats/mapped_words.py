"""Words that logs use for who speaks, what a record is and whether something failed, to ours.

Sees English words in any case, with `_`, `-`, `.` or space between them. The configuration adds words, and its word comes
first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ROLES = {
    "user": "user human customer client visitor guest caller buyer shopper member contact requester asker enduser consumer "
            "patient student subscriber inbound incoming in question",
    "assistant": "assistant bot ai agent model llm gpt chatbot copilot operator advisor rep representative staff helper desk "
                 "support outbound outgoing out answer reply aimessage assistantmessage",
    "system": "system developer instructions instruction prompt systemprompt",
    "tool": "tool function toolresult toolresponse toolmessage functionresult observation environment api",
}
_KINDS = {
    "message": "message msg chat utterance text say said reply usermessage assistantmessage agentmessage botmessage "
               "humanmessage aimessage systemmessage chatmessage customermessage usersaid botsaid prompt completion userinput "
               "usertext bottext agentreply botreply response userturn agentturn assistantturn modelresponse",
    "reasoning": "reasoning thought thinking think",
    "call": "call toolcall functioncall tooluse toolinvocation toolstart toolstarted invoke invoked invocation action "
            "actioncall toolrequest toolcalled functioncalled callstarted toolinvoked actionstarted",
    "result": "result toolresult functionresult toolresponse tooloutput toolend toolended toolfinished toolreturn return "
              "returned observation output functionresponse callfinished callresult actionresult toolreply actionoutput "
              "toolcompleted",
    "request": "request httprequest apirequest access",
    "feedback": "feedback rating survey csat nps thumb thumbs review vote score",
    "outcome": "outcome resolution ended closed",
    "business": "event track business",
    "log": "log debug info trace heartbeat",
}
_ROLE_OF = {word: role for role, words in _ROLES.items() for word in words.split()}
_KIND_OF = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_SPEAKERS = ("user", "human", "customer", "visitor", "client", "bot", "assistant", "agent", "ai", "system", "model")
_NOTHING = frozenset(("", "0", "false", "no", "none", "null", "n", "nil", "off"))
FINE = frozenset((
    "ok", "okay", "success", "succeeded", "successful", "done", "completed", "complete", "finished", "pass", "passed",
    "allowed", "resolved", "good", "fine", "accepted", "normal"))
"""Words of a status that went well."""
_YES = frozenset(("true", "yes", "y", "1", "on"))
ROLES, KINDS = (*_ROLES,), (*_KINDS,)
"""Our roles, and our kinds as far as a mapping can tell them."""
_LETTERS = re.compile(r"[^a-z0-9]+")


def plain(word: Any) -> str:
    """Return a word in small letters without what stands between its parts."""
    return _LETTERS.sub("", word.lower()) if isinstance(word, str) else ""


def role_of(word: Any, added: Mapping[str, str]) -> str | None:
    """Our role of a word (a flag counts as `true` or `false`); None where it is none that we know."""
    if isinstance(word, bool):
        word = str(word).lower()
    if isinstance(word, str) and word in added:
        return added[word]
    role = _ROLE_OF.get(plain(word))
    if role is None and isinstance(word, str):   # user_message, bot.said
        first = re.split(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])", word)[0].lower()
        role = _ROLE_OF.get(first) if first in _SPEAKERS else None
    return role


def kind_of(word: Any, added: Mapping[str, str]) -> str | None:
    """Our kind of a word; None where it is none that we know."""
    if isinstance(word, str) and word in added:
        return added[word]
    return _KIND_OF.get(plain(word))


def failed(value: Any) -> bool | None:
    """Whether a field that tells of errors (a flag, a status, a message) says so; None for nothing said."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value >= 400 if value >= 100 else value != 0
    if isinstance(value, str):
        if value.strip().isdecimal():
            return failed(int(value))
        return value.strip().lower() not in FINE | _NOTHING
    return bool(value)


def went_well(value: Any) -> bool:
    """Whether a field that tells of success says so."""
    if isinstance(value, str):
        return value.strip().lower() in FINE | _YES
    return bool(value)
