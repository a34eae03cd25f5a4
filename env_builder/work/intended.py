"""What is wanted of each value that a piece of work left behind: the conditions by which a rubric finds and compares it.

In: the replayed acts of a task, and what had been said before. Out: conditions (`env_builder.runtime.checks.records`).
Values of closed fields count whole, texts by the facts in them: words with digits or seldom ones that were there before the
text was written, in the request or in records. New records go by what they are: what they lie in, whom they answer or are for.
Sees: names of records that the work itself made, in any value. Does not see: what a text means.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from env_builder.runtime.company import CompanyState
from env_builder.runtime.company.parts import Part, normal, words_of
from env_builder.work.replaying import RecordName, ReplayedActs
from env_builder.work.stretches import WorkHabits, WorkTask
from warehouse.records import RecordKind, WorkEvent

Condition = dict[str, Any]
_SELDOM = 0.02
"""Share of acts below which a word is a fact."""
_NAMED = re.compile(r"\{(\w+)\}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ID = re.compile(r"(?=\S*\d)\S{8,}")
_NEAR_S = 900
"""A number this near to the act's own instant is the instant of the act."""
_WHOLE = 8
"""A text of more words than this is free text, whatever field it is in."""


class SeldomWords:
    """How often words occur in the acts of a company."""

    def __init__(self, events: Iterable[WorkEvent]) -> None:
        counts: Counter[str] = Counter()
        self._n_acts = 0
        for event in events:
            self._n_acts += 1
            counts.update({word for text in event.texts for word in words_of(text)})
        self._counts = counts

    def is_fact(self, word: str) -> bool:
        """Return whether a word tells one thing from others: it has a digit, or is seldom."""
        if len(word) < 2:
            return word.isdigit()
        return any(map(str.isdigit, word)) or self._counts[word] <= _SELDOM * self._n_acts


class IntendedValues:
    """The conditions of one task."""

    def __init__(self, task: WorkTask, replayed: ReplayedActs, state: CompanyState, habits: WorkHabits, seldom: SeldomWords,
                 ids: Mapping[str, int]) -> None:
        """`state`: as the task begins; `ids`: id of any record -> when it came to be."""
        self._task, self._habits, self._seldom, self._replayed = task, habits, seldom, replayed
        self._state, self._ids = state, ids
        self._made = made_records(replayed)
        self._opening_words = set(words_of(task.opening))
        self._asking_words = {word for act in (task.request, *task.replies) for text in act.texts for word in words_of(text)}
        self.sources = self._opening_words | self._asking_words | {
            word for name, fields in replayed.after.items() for field, value in (fields or {}).items()
            if not self.is_text(name[0], field, value) for word in words_of(value)}
        self._days = {datetime.fromtimestamp(act.at / 1e6, UTC).date().isoformat() for act in task.own}

    def is_text(self, entity_class: str, field: str, value: Any) -> bool:
        """Return whether a value is words in free order."""
        kind = self._habits.kinds.get(entity_class, RecordKind(entity_class))
        listed = any(field == text or (text.endswith("*") and field.startswith(text[:-1])) for text in kind.texts)
        return isinstance(value, str) and (listed or len(words_of(value)) > _WHOLE)

    def where(self, name: RecordName) -> dict[str, Condition]:
        """Return the conditions by which a new record is found: what it lies in, what it answers, who made it, whom it
        is for."""
        kind = self._habits.kinds.get(name[0], RecordKind(name[0]))
        fields = self._replayed.after[name] or {}
        conditions = {field: condition for field in (*placing_fields(kind), *kind.people) if field in fields and fields[field]
                      and (condition := self.condition(name, field, fields[field])) is not None}
        author = self._habits.author_field(name[0])
        if author is not None and isinstance(fields.get(author), str):
            conditions[author] = {"is": fields[author]}
        return conditions

    def thread_at_start(self, name: RecordName) -> dict[str, Condition]:
        """Return the conditions by which a new record answers one that was there at the start, whatever form its id has."""
        kind = self._habits.kinds.get(name[0], RecordKind(name[0]))
        fields = self._replayed.after[name] or {}
        parts = _NAMED.findall(kind.answers)
        if not parts or not all(isinstance(fields.get(part), str) for part in parts):
            return {}
        answered, _, key = kind.answers.format_map({part: fields[part] for part in parts}).partition(":")
        return {part: {"is": fields[part]} for part in parts} if self._state.exists(answered, key) else {}

    def condition(self, name: RecordName, field: str, value: Any) -> Condition | None:
        """Return what a field must hold; None where the value is of the moment or of chance."""
        if isinstance(value, str):
            if value in (name[1], "") or (made := self._made_record(value)) == name:
                return None
            if made is not None:
                return {"names": self.selector(made, is_short=True)}
        if isinstance(value, (int, float)) and not isinstance(value, bool) and self._is_now(name, value):
            return None
        if self.is_text(name[0], field, value):
            facts = self.facts(value)
            return {"holds": facts} if facts else None
        if isinstance(value, str) and _ID.fullmatch(value) and self._is_new(name, field, value):
            return None
        return {"is": value}

    def _is_now(self, name: RecordName, value: float) -> bool:
        """Return whether a number is the instant of an act that wrote the record."""
        return any(abs(value - act.at / 1e6) < _NEAR_S for key, acts in self._replayed.touched.items()
                   if key[:2] == name for act in acts)

    def _is_new(self, name: RecordName, field: str, value: str) -> bool:
        """Return whether an id was given by the product: no record had it in this field before, and nobody had named it."""
        if value.casefold() in self._opening_words or self._ids.get(value, self._task.starts_at + 1) <= self._task.starts_at:
            return False
        world = self._state.world
        return not any(self._state.exists(name[0], key) for key in world.by_value(name[0], field).get(value, ()))

    def selector(self, name: RecordName, is_short: bool = False) -> dict[str, Any]:
        """Return how a rubric selects a record: by its id, or by what it is where the work made it."""
        if self._replayed.before.get(name, {}) is not None:
            return {"class": name[0], "id": name[1]}
        where = self.where(name)
        fields = self._replayed.after[name] or {}
        if not is_short:
            for field, value in fields.items():
                if field not in where and self.is_text(name[0], field, value):
                    opening_facts = [word for word in self.facts(value) if word in self._opening_words]
                    where |= {field: {"holds": opening_facts}} if opening_facts else {}
        return {"class": name[0], "where": where}

    def facts(self, text: Any) -> list[str]:
        """Return the words of a text that tell a thing and that stood somewhere before, sorted."""
        return sorted({word for word in words_of(text) if self._seldom.is_fact(word) and word in self.sources
                       and self._made_record(word) is None})

    def made_in(self, text: Any) -> list[RecordName]:
        """Return the records that the work made and that a text names, sorted."""
        return sorted({made for word in words_of(text) if (made := self._made_record(word)) is not None})

    def _made_record(self, word: str) -> RecordName | None:
        made = self._made.get(word.casefold())
        return made if made is not None and self._replayed.before.get(made, {}) is None else None

    def cells(self, part: Part) -> list[Condition]:
        """Return the conditions of a row's cells: a record of the work by what it is, a day of the work as any."""
        conditions: list[Condition] = []
        for cell in part:
            words = words_of(cell)
            made = next((record for word in words if (record := self._made_record(word)) is not None), None)
            if made is not None:
                rest = [word for word in words if self._made_record(word) is None]
                conditions.append({"names": self.selector(made, is_short=True), **({"holds": rest} if rest else {})})
            elif _DAY.fullmatch(cell) and cell in self._days and cell not in self._opening_words | self._asking_words:
                conditions.append({})
            else:
                conditions.append({"is": cell})
        return conditions


def placing_fields(kind: RecordKind) -> list[str]:
    """Return the fields that say what a record lies in and what it answers, sorted."""
    return sorted({field for template in (kind.place, kind.answers) for field in _NAMED.findall(template)})


def made_records(replayed: ReplayedActs) -> dict[str, RecordName]:
    """Return id in small letters -> record that acts made, where the id is one word."""
    return {normal(name[1]).casefold(): name for name, fields in replayed.before.items()
            if fields is None and " " not in name[1]}
