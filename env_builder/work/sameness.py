"""Whether what a call did is what an act on record did: by content, but for ids and instants that only the act could give.

In: desks before and after a call, an act, all acts of the company. Out: the names that the call gave in the place of those on
record, and the acts that followed from it; or `Different` with the reason.
Sees: every record that the call changed. What it changed besides the act must be on record too, as another act of nearly the
same time: an invitation's mail, what a trigger wrote.
Does not see: values that the exports do not tell at that instant (they may differ), parts of records (labels of mailboxes).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.runtime.company import CompanyDesk, Undecided
from env_builder.runtime.company.world import PRESENT
from env_builder.runtime.office.calendar_events import EVENT, answer_of
from env_builder.work.acts import KindLike, RecordAct
from env_builder.work.going_on import renamed

WITHIN = 120_000_000
"""Microseconds within which what follows from a call comes to be."""
NEAR = 90.0
"""Seconds by which instants in values may differ: an act takes a second of a desk's clock."""
_INSTANT = 1e9
_SHORTEST = 6
"""Characters of an id that a product gives, at least."""


class Different(Exception):
    """A call does not do what the act did; the text says where it differs."""


class CallOutcomes(NamedTuple):
    """What a call did, as the record has it."""

    names: dict[str, str]
    """Id on record -> id that the call made."""
    followed: tuple[RecordAct, ...]
    """Acts on record that the call brought about besides."""


class ActIndex:
    """All acts of a company by class and time."""

    def __init__(self, acts: Sequence[RecordAct], kinds: Sequence[KindLike]) -> None:
        self._by_class: dict[str, list[RecordAct]] = defaultdict(list)
        for act in sorted(acts, key=lambda act: act.at):
            self._by_class[act.entity_class].append(act)
        self._begun: dict[tuple[str, str, str], str] = {}
        for act in (act for own in self._by_class.values() for act in own):
            for field, value in act.after.items():
                if isinstance(value, str):
                    self._begun.setdefault((act.entity_class, field, value), act.refs[0])
        self._instants = {name: [act.at for act in own] for name, own in self._by_class.items()}
        self.follows = {kind.name: frozenset(kind.follows) for kind in kinds}
        self._no_acts = {kind.name for kind in kinds if kind.setting or kind.part_of}

    def has_acts(self, entity_class: str) -> bool:
        """Return whether changes of a class show as acts of their own."""
        return entity_class in self._by_class and entity_class not in self._no_acts

    def begins(self, act: RecordAct, field: str) -> bool:
        """Return whether no earlier act has an act's value in a field: a product may have made it."""
        return self._begun.get((act.entity_class, field, act.after[field])) == act.refs[0]

    def near(self, entity_class: str, at: int) -> Iterator[RecordAct]:
        """Yield the acts on records of a class that came to be about an instant."""
        own, instants = self._by_class.get(entity_class, []), self._instants.get(entity_class, [])
        for place in range(bisect_left(instants, at - WITHIN), len(own)):
            if instants[place] > at + WITHIN:
                return
            yield own[place]


def outcomes(index: ActIndex, act: RecordAct, before: CompanyDesk, after: CompanyDesk, names: Mapping[str, str],
             done: Collection[str]) -> CallOutcomes:
    """Return what calls between two desks did, if it is the act. `act`: with this episode's names; `done`: refs of acts that
    were done already. Errors: Different."""
    changed = [name for name in after.changed() if after.record(*name) != before.record(*name)]
    made: dict[str, str] = {}
    key = act.key
    if act.is_new:
        new = [own for kind, own in changed if kind == act.entity_class and not before.exists(kind, own)]
        pairs = [(own, given) for own in new if (given := _given_names(index, act, after, own)) is not None]
        if not pairs:
            if new:
                _given_names(index, act, after, new[0], is_strict=True)
            raise Different(f"the calls make no {act.entity_class}")
        key, made = pairs[0]
    elif _given_names(index, act, after, key, is_strict=True) is None:
        raise Different("the record differs")
    followed: list[RecordAct] = []
    for name in changed:
        if name == (act.entity_class, key):
            fields = set() if act.is_new else _changed_fields(before, after, name) - set(act.after)
        elif not index.has_acts(name[0]):
            continue
        else:
            fields = _changed_fields(before, after, name)
        fields -= index.follows.get(name[0], frozenset())
        if fields:
            followed += _followed(index, act, before, after, name, fields, {**names, **made}, done, made)
    return CallOutcomes(made, tuple({each.refs: each for each in followed}.values()))


def _changed_fields(before: CompanyDesk, after: CompanyDesk, name: tuple[str, str]) -> set[str]:
    old, new = before.record(*name) or {}, after.record(*name) or {}
    return {field for field in {*old, *new} if old.get(field) != new.get(field)}


def _followed(index: ActIndex, act: RecordAct, before: CompanyDesk, after: CompanyDesk, name: tuple[str, str],
              fields: set[str], names: Mapping[str, str], done: Collection[str], made: dict[str, str]) -> list[RecordAct]:
    """Return the acts on record that say what a call changed besides. Errors: Different."""
    kind, key = name
    is_new = not before.exists(kind, key)
    rest = set() if is_new else set(fields)
    causes = []
    for other in index.near(kind, act.at):
        if any(ref in done for ref in other.refs) or other.is_new != is_new:
            continue
        own = with_names(other, names)
        if is_new:
            given = _given_names(index, own, after, key)
            if given is not None:
                made |= given
                return [other]
        elif own.key == key and not rest.isdisjoint(own.after) and _given_names(index, own, after, key) is not None:
            causes.append(other)
            rest -= set(own.after)
    if rest or (is_new and not causes):
        raise Different(f"the calls would change {kind} {'' if is_new else ' '.join(sorted(rest))} besides".replace("  ", " "))
    return causes


def with_names(act: RecordAct, names: Mapping[str, str]) -> RecordAct:
    """Return an act with other names of records."""
    if not names:
        return act
    return act._replace(record=(act.entity_class, renamed(act.key, names)),
                        before={field: field_renamed(act, field, value, names) for field, value in act.before.items()},
                        after={field: field_renamed(act, field, value, names) for field, value in act.after.items()})


def field_renamed(act: RecordAct, field: str, value: Any, names: Mapping[str, str]) -> Any:
    """Return a field's value with other names; a name may hold for one field alone (a thread with its first mail's id)."""
    own = names.get(_in_field(act.entity_class, field, value)) if isinstance(value, str) else None
    return renamed(value, names) if own is None else own


def _in_field(entity_class: str, field: str, value: str) -> str:
    return f"{entity_class}.{field}={value}"


def _given_names(index: ActIndex, act: RecordAct, desk: CompanyDesk, key: str, is_strict: bool = False
                 ) -> dict[str, str] | None:
    """Return the names that a record has in the place of an act's, if it is as the act left it; else None, or `Different`."""
    names = {act.key: key} if act.is_new and act.key != key else {}
    for field, wanted in act.after.items():
        if field == PRESENT:
            if desk.exists(act.entity_class, key) != bool(wanted):
                return _no(f"{act.entity_class} is there or not", is_strict)
            continue
        got = shown_value(desk, act.entity_class, key, field)
        if agrees(renamed(wanted, names), got, field in act.guessed):
            continue
        if act.is_new and _is_assigned(wanted, got) and index.begins(act, field):
            names[_in_field(act.entity_class, field, wanted) if wanted == act.key else wanted] = str(got)
            continue
        return _no(f"{act.entity_class} {field} differs", is_strict)
    for (kind, part), fields in act.parts.items():
        for field, wanted in fields.items():
            there = desk.exists(kind, part)
            if there != bool(wanted) if field == PRESENT else not agrees(
                    wanted, shown_value(desk, kind, part, field) if there else None):
                return _no(f"{kind} {field} differs", is_strict)
    return names


def _no(reason: str, is_strict: bool) -> dict[str, str] | None:
    if is_strict:
        raise Different(reason)
    return None


def shown_value(desk: CompanyDesk, entity_class: str, key: str, field: str) -> Any:
    """Return a field's value, guests with their own answers; None where it is not known or there is none."""
    if entity_class == EVENT and isinstance(guests := desk.last_known(entity_class, key, field), dict):
        return {address: _answer(desk, key, address) for address in guests}
    return desk.value(entity_class, key, field) if desk.is_known(entity_class, key, field) else None


def _answer(desk: CompanyDesk, key: str, address: str) -> Any:
    try:
        return answer_of(desk, key, address)
    except Undecided:
        return None


def _is_assigned(wanted: Any, got: Any) -> bool:
    """Return whether two values are ids that a product gave."""
    return all(isinstance(value, str) and len(value) >= _SHORTEST and not any(map(str.isspace, value))
               and any(map(str.isdigit, value)) for value in (wanted, got))


def agrees(wanted: Any, got: Any, is_guess: bool = False) -> bool:
    """Return whether a value is the recorded one. `is_guess`: the recorded one is of a later time."""
    if isinstance(wanted, bool) or isinstance(got, bool):
        return bool(wanted) is bool(got)
    if isinstance(wanted, (int, float)) and isinstance(got, (int, float)):
        return abs(wanted - got) <= (NEAR if wanted > _INSTANT else 1e-6)
    if isinstance(wanted, dict) and isinstance(got, dict) and set(wanted) == set(got):
        return is_guess or all(got[name] is None or agrees(value, got[name]) for name, value in wanted.items())
    if not wanted and not got:
        return True
    if is_guess and not got:
        return True
    return bool(_plain(wanted) == _plain(got))


def _plain(value: Any) -> Any:
    """Return a value without what its form alone shows: blanks at the ends, empty cells, the order of names."""
    if isinstance(value, str):
        return value.strip()
    if not isinstance(value, list):
        return value
    if any(isinstance(row, list) for row in value):
        rows = [[str(cell) for cell in row] for row in value]
        for row in rows:
            while row and row[-1] == "":
                row.pop()
        while rows and not rows[-1]:
            rows.pop()
        return rows
    return sorted(value) if all(isinstance(each, str) for each in value) else value
