"""Colleagues who answer when they are asked, with what they wrote in that piece of work, and never more.

In: colleagues.jsonl of the app's folder, a row a task: {"task_id", "asks", "answers"}; the desk after a call. Out: writes on
the desk, and how far the colleagues of an episode have come.
An ask: {"record": a selector (`runtime/checks/records.py`), "has": {field: condition}, "reaches": {field: account}, "about":
{"fields", "words", "made": [selectors]}, "names": [[name on record, field, or `$id`]], "after": [numbers of answers]}. It is
made when a changed record that the selector finds, a new one that no other ask took, is as `has` says, is for an account of
`reaches`, and its fields hold `COVER` of the words and records by which the recorded one told what it was about. `after`:
answers that must have come first.
An answer: {"ask": number, "person", "at" (microseconds on record), "delay_s", "mentions": [{"record", "names"}], "follows":
[numbers of answers], "changes": [{"class", "id", "field", "is_new", "before", "after", "is_open": nobody knows the value}]}. It
comes once, so long after its ask as on record, with the ids and instants of this episode in the place of the recorded ones.
What mentions a record that the episode has not made, or follows an answer that has not come, does not come.
The clock stands between acts. The tool `WAIT` lets time pass until an answer comes or a time is over; it tells the time alone.
Sees: whom the agent's own acts reach, and whether they hold these words. Does not see: what words mean; a refusal to answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..checks.kind import EpisodeView
from ..checks.records import ChangedRecord, meets, names_one, selected
from ..company import PRESENT, UNDECIDED, CompanyDesk, Undecided
from ..company.parts import parts_of, words_of
from ..records import Episode

COLLEAGUES = "colleagues.jsonl"
WAIT = "wait_for_answers"
LONGEST_WAIT = 20_160
"""Minutes of a wait, at most: two weeks."""
COVER = 0.4
"""Share of the words that tell what an ask is about, that it must hold."""
SELF = "$id"
_STEM = 8
"""Characters of an id, at least, that stand for it without what it shares with the other one."""
_NEAR_S = 2.0
"""Seconds by which a number may differ from an act's instant to be it."""
_SECOND = 1_000_000

DESCRIPTOR: Mapping[str, Any] = {
    "name": WAIT,
    "description": "Let time pass until somebody answers what you asked, at most so many minutes. Tells what time it is then; "
                   "an answer is where it was written.",
    "inputSchema": {"type": "object", "properties": {
        "minutes": {"type": "integer", "minimum": 1, "maximum": LONGEST_WAIT,
                    "description": "How long to wait at most. People may take hours to answer."}}, "required": ["minutes"]},
    "annotations": {"readOnlyHint": False},
}


class MadeAsk(NamedTuple):
    """An ask that was made in an episode."""

    at: float
    """Seconds since 1970: when it was seen to be."""
    record: tuple[str, str]
    names: tuple[tuple[str, str], ...]
    """(name on record, name in this episode)."""


class AnswerProgress(NamedTuple):
    """How far the colleagues of an episode have come: all of it that changes."""

    asks: tuple[tuple[int, MadeAsk], ...] = ()
    """(number of the ask, how it was made)."""
    answers: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()
    """(number of the answer, the names that its records have here)."""


NOTHING_ASKED = AnswerProgress()


class Colleagues:
    """The colleagues of one task; immutable, so that forks share them and keep only their own progress."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._asks: Sequence[Mapping[str, Any]] = row["asks"]
        self._answers: Sequence[Mapping[str, Any]] = row["answers"]

    def hear(self, desk: CompanyDesk, progress: AnswerProgress) -> AnswerProgress:
        """Take in what a call asked, and write the answers whose time has come. Errors: none; what is open asks nothing."""
        while True:
            progress = self._take_in(desk, progress)
            due = [(at, number) for at, number in self._coming(progress) if at <= desk.now]
            answer = next((number for at, number in sorted(due) if self._can_come(desk, progress, number)), None)
            if answer is None:
                return progress
            progress = self._answer(desk, progress, answer)

    def wait(self, desk: CompanyDesk, progress: AnswerProgress, minutes: int) -> AnswerProgress:
        """Let time pass until the next answer comes, or these minutes are over."""
        until = desk.now + 60 * minutes
        comes = [at for at, number in self._coming(progress) if at > desk.now and self._can_come(desk, progress, number)]
        desk.pass_time(min([until, *comes]) - desk.now)
        return self.hear(desk, progress)

    def _coming(self, progress: AnswerProgress) -> list[tuple[float, int]]:
        """Return (when, number) of the answers that were asked for and have not come."""
        made_asks, given_answers = dict(progress.asks), dict(progress.answers)
        return [(made_asks[answer["ask"]].at + answer["delay_s"], number) for number, answer in enumerate(self._answers)
                if answer["ask"] in made_asks and number not in given_answers]

    # Asks

    def _take_in(self, desk: CompanyDesk, progress: AnswerProgress) -> AnswerProgress:
        made_asks, given_answers = dict(progress.asks), dict(progress.answers)
        missing = [number for number, ask in enumerate(self._asks)
                   if number not in made_asks and all(before in given_answers for before in ask["after"])]
        if not missing:
            return progress
        view = _view(desk)
        own = {(change["class"], name) for number, names in progress.answers
               for change in self._answers[number]["changes"] for name in (change["id"], dict(names).get(change["id"]))}
        taken = own | {made.record for made in made_asks.values()}
        for number in missing:
            ask = self._asks[number]
            record = next((each for each in selected(ask["record"], view)
                           if ("id" in ask["record"] or ask["has"] or (each.kind, each.key) not in taken)
                           and _asks(ask, each, view)), None)
            if record is not None:
                taken.add((record.kind, record.key))
                progress = progress._replace(asks=(*progress.asks, (number, MadeAsk(
                    desk.now, (record.kind, record.key), _names(ask["names"], record)))))
        return progress

    # Answers

    def _can_come(self, desk: CompanyDesk, progress: AnswerProgress, number: int) -> bool:
        """Return whether all records that an answer mentions are there."""
        mentions, given_answers = self._answers[number]["mentions"], dict(progress.answers)
        if any(before not in given_answers for before in self._answers[number]["follows"]):
            return False
        if not mentions:
            return True
        view = _view(desk)
        return all(any(True for _ in selected(each["record"], view)) for each in mentions)

    def _answer(self, desk: CompanyDesk, progress: AnswerProgress, number: int) -> AnswerProgress:
        answer = self._answers[number]
        made = dict(progress.asks)[answer["ask"]]
        names = dict(pair for _, each in progress.answers for pair in each) | dict(made.names)
        view = _view(desk) if answer["mentions"] else None
        for mention in answer["mentions"]:
            assert view is not None
            names = dict(_names(mention["names"], next(selected(mention["record"], view)))) | names
        at = round((made.at + answer["delay_s"]) * _SECOND)
        own = self._own_names(desk, answer, names, at)
        names |= own
        for change in answer["changes"]:
            _write(desk, change, names, (at - answer["at"]) / _SECOND, answer["at"] / _SECOND)
        return progress._replace(answers=(*progress.answers, (number, tuple(sorted(own.items())))))

    def _own_names(self, desk: CompanyDesk, answer: Mapping[str, Any], names: Mapping[str, str], at: int) -> dict[str, str]:
        """Return the names of records that an answer makes: as on record, with this instant in them, if they are free."""
        own = {_stamp(answer["at"]): _stamp(at)}
        made = dict.fromkeys((change["class"], change["id"]) for change in answer["changes"] if change["is_new"])
        while any(desk.is_there(kind, renamed(key, {**names, **own})) for kind, key in made if _stamp(answer["at"]) in key):
            at += 1
            own = {_stamp(answer["at"]): _stamp(at)}
        for kind, key in made:
            if desk.is_there(kind, renamed(key, {**names, **own})):
                own[key] = _free_id(desk, kind, key)
        return own


def _asks(ask: Mapping[str, Any], record: ChangedRecord, view: EpisodeView) -> bool:
    """Return whether a record is an ask: what it has, whom it reaches, what it is about."""
    fields = record.after or {}
    if not all(meets(condition, fields.get(name), view) for name, condition in ask["has"].items()):
        return False
    if record.before == record.after:
        return False
    reaches = ask["reaches"]
    if reaches and not any(is_among(account, fields.get(name)) for name, account in reaches.items()):
        return False
    about = ask["about"]
    n_words = len(about["words"]) + len(about["made"])
    text = [fields.get(name) for name in about["fields"]]
    words = set(words_of(text))
    n_held = sum(word in words for word in about["words"]) + sum(
        any(names_one(made, each, view) for each in text) for made in about["made"])
    return n_held >= COVER * n_words


def is_among(account: str, value: Any) -> bool:
    """Return whether a value is an account, has it as a member or names it."""
    return value == account or (account,) in [part[:1] for part in parts_of(value)] or account.casefold() in {
        word.lstrip("@") for word in words_of(value)}


def _view(desk: CompanyDesk) -> EpisodeView:
    """Return what the episode has changed so far as checks see it."""
    documents = {f"{kind}/{key}": _text(desk.record(kind, key)) for kind, key in desk.changed()}

    def look(name: str) -> tuple[str | None, str | None]:
        kind, _, key = name.partition("/")
        return _text(desk.record(kind, key, is_start=True)), _text(desk.record(kind, key))

    return EpisodeView(Episode((), {"documents": documents, "write_calls": []}, (), frozenset(), look))


def _text(record: Mapping[str, Any] | None) -> str | None:
    return None if record is None else json.dumps(record)


def _names(given: Sequence[Sequence[str]], record: ChangedRecord) -> tuple[tuple[str, str], ...]:
    """Return the names of this episode for those on record: of the record, and of what the product gave it in fields."""
    names: dict[str, str] = {}
    own = next((old for old, field in given if field == SELF), None)
    for old, field in given:
        new = record.key if field == SELF else (record.after or {}).get(field)
        if not isinstance(new, str) or not new or new == old:
            continue
        if field != SELF and old == own:   # a thread with its first mail's id
            names[_in_field(record.kind, field, old)] = new
        else:
            names |= {old: new, **_stems(old, new)}
    return tuple(sorted(names.items()))


def _in_field(kind: str, field: str, value: Any) -> str:
    return f"{kind}.{field}={value}"


def _stems(old: str, new: str) -> dict[str, str]:
    """Return ids without a part that both share: a place before `/`, a host behind `@`."""
    stems: dict[str, str] = {}
    if "/" in old and old.rpartition("/")[0] == new.rpartition("/")[0]:
        stems[old.rpartition("/")[2]] = new.rpartition("/")[2]
    tail = 0
    while tail < min(len(old), len(new)) and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    while tail and old[-tail].isalnum():
        tail -= 1
    if tail:
        stems[old[:-tail]] = new[:-tail]
    return {before: after for before, after in stems.items() if min(len(before), len(after)) >= _STEM}


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with other names in it, whole words alone, the longest first."""
    if not names:
        return value
    if isinstance(value, str):
        present = sorted((name for name in names if name in value), key=len, reverse=True)
        pattern = "|".join(map(re.escape, present))
        return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", lambda match: names[match[0]], value) if present else value
    if isinstance(value, list):
        return [renamed(each, names) for each in value]
    if isinstance(value, dict):
        return {renamed(name, names): renamed(each, names) for name, each in value.items()}
    return value


def _stamp(at: int) -> str:
    """Return an instant as ids have it that are one."""
    return f"{at // _SECOND}.{at % _SECOND:06d}"


def _free_id(desk: CompanyDesk, kind: str, key: str) -> str:
    try:
        counted = desk.next_id(kind) if key.isdigit() else None
    except Undecided:
        counted = None
    return counted or desk.made_id(f"{kind}/{key}", max(_STEM, len(key)))


def _write(desk: CompanyDesk, change: Mapping[str, Any], names: Mapping[str, str], later_s: float, at_s: float) -> None:
    """Write one field of an answer, with the names and the instant of this episode."""
    kind, key, field = change["class"], renamed(change["id"], names), change["field"]
    if field == PRESENT:
        if change["after"]:
            desk.write(kind, key)
        else:
            desk.remove(kind, key)
        return
    if change.get("is_open"):
        desk.write(kind, key, **{field: UNDECIDED})
        return
    before, after = (_here(kind, field, change[name], names, later_s, at_s) for name in ("before", "after"))
    desk.write(kind, key, **{field: after if change["is_new"] else _patched(desk, kind, key, field, before, after)})


def _here(kind: str, field: str, value: Any, names: Mapping[str, str], later_s: float, at_s: float) -> Any:
    own = names.get(_in_field(kind, field, value)) if isinstance(value, str) else None
    return _moved(renamed(value, names), later_s, at_s) if own is None else own


def _moved(value: Any, later_s: float, at_s: float) -> Any:
    """Return a value with the instant of the act moved to now."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value - at_s) <= _NEAR_S:
        return type(value)(value + later_s)
    return value


def _patched(desk: CompanyDesk, kind: str, key: str, field: str, before: Any, after: Any) -> Any:
    """Return a value that somebody changed: of a list, its own members alone are added to what is there."""
    try:
        now = desk.value(kind, key, field)
    except Undecided:
        return after
    if now == before or not isinstance(now, list) or not isinstance(after, list):
        return after
    was = before if isinstance(before, list) else []
    kept = [each for each in now if each in after or each not in was]
    return [*kept, *(each for each in after if each not in was and each not in kept)]


def told_time(desk: CompanyDesk) -> str:
    """Return the answer to a wait."""
    return f"It is now {datetime.fromtimestamp(int(desk.now), UTC).isoformat().replace('+00:00', 'Z')}."


