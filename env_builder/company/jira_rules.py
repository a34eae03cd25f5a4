"""Rules of a Jira site that act when issues are created or changed, as changelogs show them.

In: the company's world. Out: rules {"when": [[field, value] …], "on_change", "field", "adds" | "days" | "value"}: what happened
to every issue of the export that began with the value, and to no other one.
Sees: changes within two seconds of an issue's creation, the values that issues began with, and whether the rule acts too
when a field comes to the value later (`on_change`: true, false, or null where the changelogs do not tell).
Does not see: conditions over several fields or texts, rules without changelog, rules that fewer than five issues show. Where
two conditions fit all issues, both are given, and a site is undecided where they differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from env_builder.runtime.company import CompanyWorld, VersionLike
from env_builder.runtime.office.jira_issues import ISSUE

_SOON = 2_000_000
_FEWEST = 5
_CONDITIONS = ("priority", "type", "project", "reporter", "assignee", "component", "parent")
_NOT_SET_BY_RULES = frozenset({"status", "resolution", "resolved", "updated", "watchers", "created", "links", "key", "number"})


class RuleEffect(NamedTuple):
    """What a rule does to a field."""

    field: str
    kind: str
    """`adds` a member to a list, sets a day some `days` after the creation, or sets a `value`."""
    value: Any


class _IssueBirth(NamedTuple):
    """An issue as it began."""

    at: int
    first: dict[str, Any]
    effects: frozenset[RuleEffect]


def learn_rules(world: CompanyWorld) -> list[dict[str, Any]]:
    """Return the rules that the changelogs of issues show."""
    histories: dict[str, dict[str, list[VersionLike]]] = defaultdict(lambda: defaultdict(list))
    for version in world.versions:
        if version.entity_class == ISSUE:
            histories[version.entity_id][version.field].append(version)
    births = {key: _birth(fields) for key, fields in histories.items()}
    keys_of: dict[RuleEffect, set[str]] = defaultdict(set)
    for key, birth in births.items():
        for effect in birth.effects:
            keys_of[effect].add(key)
    rules = []
    for effect, keys in sorted(keys_of.items(), key=repr):
        conditions = _conditions(births, keys) if len(keys) >= _FEWEST else []
        if conditions:
            rules.append({"when": conditions, "on_change": _acts_on_change(histories, births, conditions, effect),
                          "field": effect.field, effect.kind: effect.value})
    return rules


def _birth(fields: dict[str, list[VersionLike]]) -> _IssueBirth:
    at = min(versions[0].at for versions in fields.values())
    effects = {effect for field, versions in fields.items() if field not in _NOT_SET_BY_RULES
               for old, new in pairwise(versions) if new.at - at <= _SOON
               for effect in _effects(field, old.value, new.value, at)}
    return _IssueBirth(at, {field: versions[0].value for field, versions in fields.items()}, frozenset(effects))


def _effects(field: str, old: Any, new: Any, at: int) -> Iterator[RuleEffect]:
    """Yield what a change of a field may be an instance of."""
    if isinstance(new, list):
        for member in new:
            if isinstance(member, str) and member not in (old or ()):
                yield RuleEffect(field, "adds", member)
    elif isinstance(new, str | int | float | bool) and new != old:
        days = _days_between(at, new)
        yield RuleEffect(field, "value", new) if days is None else RuleEffect(field, "days", days)


def _days_between(at: int, value: Any) -> int | None:
    """Return how many days after an instant a day is; None if the value is none."""
    try:
        day = date.fromisoformat(str(value))
    except ValueError:
        return None
    return (day - datetime.fromtimestamp(at / 1_000_000, UTC).date()).days


def _conditions(births: dict[str, _IssueBirth], keys: set[str]) -> list[list[Any]]:
    """Return the (field, value) that the issues of an effect began with, and no other one."""
    conditions = []
    for field in _CONDITIONS:
        values = {births[key].first.get(field) for key in keys if not isinstance(births[key].first.get(field), list)}
        if len(values) == 1 and (value := next(iter(values))) is not None and keys == {
                key for key, birth in births.items() if birth.first.get(field) == value}:
            conditions.append([field, value])
    return conditions


def _acts_on_change(histories: dict[str, dict[str, list[VersionLike]]], births: dict[str, _IssueBirth],
                    conditions: list[list[Any]], effect: RuleEffect) -> bool | None:
    """Return whether a rule acts when a field comes to its value later; None if that never happened, or both did."""
    results = set()
    for key, fields in histories.items():
        for field, value in conditions:
            for version in fields.get(field, ())[1:]:
                if version.value != value or version.at - births[key].at <= _SOON:
                    continue
                results.add(any(0 <= new.at - version.at <= _SOON
                             and effect in _effects(effect.field, old.value, new.value, version.at)
                             for old, new in pairwise(fields.get(effect.field, ()))))
    return results.pop() if len(results) == 1 else None
