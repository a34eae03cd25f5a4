"""What recorded calls teach of a company's mail: Gmail's ids of messages, and how its server reads searches.

In: recorded calls, the world of all mail. Out: `ids` (the digest of the Message-ID that every id shown is), else `known_ids`
(id -> Message-ID); `part_words`, `midnight` and `label_actions` where calls show one of the readings.
Sees: a message that was sent, or shown, where exactly one mail on record has its sender, texts and time. A rule for ids counts
where it explains at least `ENOUGH` ids and fails for none; a reading counts where it alone gives every recorded answer.
Does not see: ids of messages that two mails fit. Gmail's own ids are numbers of its own: then only `known_ids` remain.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from env_builder.company.calls import RecordedCall
from env_builder.runtime.company import CompanyDesk, CompanyState, CompanyWorld, DeskStart, PersonSight, Undecided
from env_builder.runtime.office.gmail import find_letters
from env_builder.runtime.office.mailboxes import MAIL, PRODUCT, digest_id, gmail_id

ENOUGH = 5
_NEAR = 5_000_000
"""Microseconds between a call and the date of the mail that it sent."""
_ALGORITHMS = ("sha256", "sha1", "md5", "sha512")
_NAMES = ("", "gmail", "mail", "message", "msg", "email", "id")
_MARKS = ("", "/", ":", "-", "|")
_SENT = re.compile(r"Message ID: (\w+)\s*$")
_SHOWN = re.compile(r"Subject: (.*)\nFrom: +(.*)\n(?:.*\n)*?\n?--- BODY ---\n(.*)", re.DOTALL)
_LISTED = re.compile(r"^- ID: (\w+)", re.MULTILINE)
_PACIFIC = 8 * 3600
_LINKED = ("create_event", "modify_event", "get_events", "list_spreadsheets")
"""Tools whose answers have a link at the public server."""


def learn_gmail(calls: Sequence[RecordedCall], world: CompanyWorld) -> dict[str, Any]:
    """Return what calls teach of the product `gmail`."""
    is_short = is_bare(calls)
    calls = [call for call in calls if "gmail" in call.tool and not call.is_error]
    pairs = _pairs(calls, world)
    learnt: dict[str, Any] = {}
    rule = _digest_rule(pairs)
    if rule is not None:
        learnt["ids"] = rule
    elif pairs:
        learnt["known_ids"] = pairs
    learnt |= _reading_of_searches(calls, world, learnt)
    changes = [call for call in calls if call.tool == "modify_gmail_message_labels"]
    named = {" labels: " in call.content for call in changes}
    return learnt | ({"label_actions": named.pop()} if len(named) == 1 else {"label_actions": False} if is_short else {})


def is_bare(calls: Iterable[RecordedCall]) -> bool:
    """Return whether the server leaves out the links of the public one in every answer that has them there."""
    texts = [call.content for call in calls if call.tool in _LINKED and call.content.startswith("Success")]
    return len(texts) >= ENOUGH and not any("Link: " in text for text in texts)


def _pairs(calls: Iterable[RecordedCall], world: CompanyWorld) -> dict[str, str]:
    """Return Gmail's ids of the messages that calls sent or showed, with their Message-IDs."""
    mails = _mails_by_text(world)
    pairs: dict[str, set[str]] = {}
    for call in calls:
        match = _SENT.search(call.content) if call.tool == "send_gmail_message" else None
        if match is not None:
            sent = [key for key, at, sender in mails.get((_text(call, "subject"), _text(call, "body").strip()), ())
                    if sender == call.acting_for and abs(at - call.at) < _NEAR]
            pairs.setdefault(match[1], set()).update(sent)
        match = _SHOWN.fullmatch(call.content) if call.tool == "get_gmail_message_content" else None
        if match is not None:
            shown = [key for key, at, sender in mails.get((match[1], match[3].strip()), ())
                     if sender in match[2].lower() and at <= call.at and (
                         "mailbox", f"{call.acting_for}|{key}") in world.slots]
            pairs.setdefault(_text(call, "message_id"), set()).update(shown)
    return {own: next(iter(keys)) for own, keys in sorted(pairs.items()) if len(keys) == 1}


def _text(call: RecordedCall, name: str) -> str:
    return str(call.arguments.get(name) or "")


def _mails_by_text(world: CompanyWorld) -> dict[tuple[str, str], list[tuple[str, int, str]]]:
    """Return (subject, text) -> Message-ID, instant and sender of the mails that have them."""
    state = world.at(2**61)
    mails: dict[tuple[str, str], list[tuple[str, int, str]]] = {}
    for key in state.ids(MAIL):
        values = state.values(MAIL, key)
        at = round(float(values.get("date") or 0) * 1_000_000)
        mails.setdefault((str(values.get("subject") or ""), str(values.get("body") or "").strip()), []).append(
            (key, at, str(values.get("sender") or "").lower()))
    return mails


def _digest_rule(pairs: dict[str, str]) -> dict[str, Any] | None:
    """Return the digest that explains every pair, or None if none or too little does."""
    if len(pairs) < ENOUGH or len({len(own) for own in pairs}) != 1:
        return None
    length = len(next(iter(pairs)))
    for algorithm, name, mark in itertools.product(_ALGORITHMS, _NAMES, _MARKS):
        if all(digest_id(algorithm, name + mark, length, key) == own for own, key in pairs.items()):
            return {"algorithm": algorithm, "before": name + mark, "length": length}
    return None


def _reading_of_searches(calls: Iterable[RecordedCall], world: CompanyWorld, learnt: dict[str, Any]) -> dict[str, Any]:
    """Return the readings of a search that alone give every recorded answer."""
    searches = [call for call in calls if call.tool == "search_gmail_messages"]
    chosen: dict[str, Any] = {}
    for name, readings in (("part_words", (True, False)), ("midnight", (0, _PACIFIC, _PACIFIC - 3600))):
        fits = dict.fromkeys(readings, 0)
        fails = dict.fromkeys(readings, 0)
        for call in searches:
            if name == "midnight" and not re.search(r"(after|before|newer|older):\d", _text(call, "query")):
                continue
            state = world.at(call.at)
            answers = {reading: _answer(call, state, {**learnt, name: reading}) for reading in readings}
            if len({str(answer) for answer in answers.values()}) < 2:
                continue
            for reading, answer in answers.items():
                is_right = answer == _LISTED.findall(call.content)
                fits[reading] += is_right
                fails[reading] += not is_right
        right = [reading for reading in readings if fits[reading] and not fails[reading]]
        if len(right) == 1:
            chosen[name] = right[0]
    return chosen


def _answer(call: RecordedCall, state: CompanyState, conventions: dict[str, Any]) -> list[str] | None:
    """Return the ids that a recorded search would have given, or None if it cannot be told."""
    try:
        start = DeskStart(state, call.acting_for, {}, PersonSight(state, call.acting_for), {PRODUCT: conventions})
        desk = CompanyDesk(start)
        return [gmail_id(desk, letter.key) for letter in find_letters(desk, _text(call, "query"), 10)]
    except (Undecided, LookupError):
        return None
