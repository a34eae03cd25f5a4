"""Learn what follows in one app from an act in another, from the change streams of all apps.

In: a company's world, the accounts of its people, and the classes of records that the tools of each product write. Out: rules
(`env_builder.runtime.company.following`), the most frequent act first.
A rule is kept if, after each of at least eight acts of its kind on three days, the effect came within seconds, by the acting
person or by somebody who is no person of the company, and with a value of the act's record in it; and if what the even days
teach holds on the odd days, and the other way round. What a tool writes itself is no effect of it.
Sees: values that are equal, embedded in a text, or constant; ids that a text names.
Does not see: effects that only some acts have, but for one constant field; a direction where both changes always bear one
instant; effects of effects; numbers that are computed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.runtime.company import PRESENT, UNDECIDED, CompanyWorld
from env_builder.runtime.company.following import ActScope, agreed, evaluate, kind_of

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_DELAY = 5 * _SECOND
_ACTS, _DAYS = 8, 3
_FEW, _LONG = 2, 80
"""Characters of a text that is equal by chance, and of one that tells a record."""
_MOST_FIELDS = 200
_FOLLOWS = frozenset({"updated", "modified", "sequence"})
"""Fields that change with every other one."""
Name = tuple[str, str, str]
"""(kind, `new` or `changed`, field that changed)."""


class SeenAct(NamedTuple):
    """A change of one record at one instant."""

    entity_class: str
    entity_id: str
    at: int
    is_new: bool
    changed: Mapping[str, Any]
    fields: Mapping[str, Any]
    """Of the record, after it."""
    actor: str | None

    @property
    def kind(self) -> str:
        """Class of the record, with the table of a row."""
        return kind_of(self.entity_class, self.entity_id)

    @property
    def names(self) -> list[Name]:
        """What acts of this kind are called."""
        if self.is_new:
            return [(self.kind, "new", "")]
        return [(self.kind, "changed", field) for field in self.changed if field not in _FOLLOWS]


class EffectSample(NamedTuple):
    """An act with what followed."""

    act: SeenAct
    effect: SeenAct


class EffectLearner:
    """Acts of a company by kind, and rules that they show."""

    def __init__(self, world: CompanyWorld, accounts: Mapping[str, Mapping[str, str]]) -> None:
        self._accounts = accounts
        self._people = {account: address for address, own in accounts.items() for account in own.values()}
        self._people |= {address: address for address in accounts}
        self.acts = list(_acts(world))
        self._instants = [act.at for act in self.acts]
        self._by_name: dict[Name, list[SeenAct]] = defaultdict(list)
        self._holders: dict[Name, set[str]] = defaultdict(set)
        """(kind, field, text) -> ids of the records that ever had it."""
        for act in self.acts:
            for name in act.names:
                self._by_name[name].append(act)
            for field, text in _texts(act._replace(fields=act.changed)):
                self._holders[act.kind, field, text].add(act.entity_id)

    def rules(self, written: Sequence[Collection[str]]) -> list[dict[str, Any]]:
        """Return the rules. `written`: for each product, the classes that its tools write."""
        rules = []
        for name, acts in sorted(self._by_name.items(), key=lambda own: (-len(own[1]), own[0])):
            own_class = name[0].partition("/")[0]
            own_classes = {each for classes in written if own_class in classes for each in classes}
            if not own_classes or len(acts) < _ACTS:
                continue
            for chosen in _choices(acts):
                tried = [self._rule(name, chosen, effect) for effect in self._candidates(chosen, own_classes)]
                rules += [rule for rule in tried if rule is not None and rule not in rules]
                if any(tried):
                    break
        return [rule for rule in rules if not _is_second_hand(rule, rules)]

    def _candidates(self, acts: Sequence[SeenAct], own_classes: Collection[str]) -> list[Name]:
        """Return what came soon after every act, in other apps."""
        common: set[Name] | None = None
        for act in acts:
            names = {_kind_of_effect(effect) for effect in self._after(act) if effect.entity_class not in own_classes}
            common = names if common is None else common & names
            if not common:
                return []
        return sorted(common or ())

    def _after(self, act: SeenAct) -> Iterator[SeenAct]:
        for place in range(bisect_left(self._instants, act.at), len(self.acts)):
            effect = self.acts[place]
            if effect.at > act.at + _DELAY:
                return
            if (effect.entity_class, effect.entity_id) != (act.entity_class, act.entity_id) and self._may_be_of(act, effect):
                yield effect

    def _may_be_of(self, act: SeenAct, effect: SeenAct) -> bool:
        person = self._people.get(effect.actor or "")
        return person is None or act.actor is None or person == self._people.get(act.actor, act.actor)

    def _is_linked(self, act: SeenAct, effect: SeenAct) -> bool:
        """Return whether the effect holds a value that the act's record has, and no other record of its kind; or whether the
        act's texts name the effect's record."""
        if not effect.is_new and _places_of(effect.entity_id, act.fields):
            return True
        values = [effect.entity_id, *(str(value) for value in effect.changed.values()
                                      if isinstance(value, (str, int)) and not isinstance(value, bool))]
        return any(text in value for name, text in _texts(act) for value in values
                   if text in value and (name.startswith("$") or len(self._holders[act.kind, name, text]) == 1))

    def _rule(self, name: Name, acts: Sequence[SeenAct], effect: Name) -> dict[str, Any] | None:
        samples = []
        for act in acts:
            linked = next((each for each in self._after(act)
                           if _kind_of_effect(each) == effect and self._is_linked(act, each)), None)
            if linked is None:
                return None
            samples.append(EffectSample(act, linked))
        days = {sample.act.at // _DAY for sample in samples}
        if len(days) < _DAYS or all(sample.act.at == sample.effect.at for sample in samples):
            return None
        if effect[1] == "new" and len({(each.effect.entity_class, each.effect.entity_id) for each in samples}) < len(samples):
            return None
        halves = [[sample for sample in samples if sample.act.at // _DAY % 2 == parity] for parity in (0, 1)]
        learnt = self._formulas(samples)
        for one, other in (halves, halves[::-1]):
            learnt = self._holding(learnt, self._formulas(one), other)
        if effect[1] == "changed" and not learnt["$id"]:
            return None
        return {"act": {"kind": name[0], "event": name[1], "fields": _changed_always(acts) if name[2] else [],
                        "conditions": _constants(acts)},
                "effect": {"kind": effect[0], "event": effect[1], "id": learnt.pop("$id"), "fields": learnt}}

    def _formulas(self, samples: Sequence[EffectSample]) -> dict[str, list[list[Any]]]:
        """Return field -> formulas that give its value in every sample; `$id`: of the effect's id."""
        formulas: dict[str, list[list[Any]]] = {}
        fields = dict.fromkeys(["$id", *(field for each in samples for field in each.effect.changed if field not in _FOLLOWS)])
        for place, sample in enumerate(samples):
            scope, own = self._scope(sample), self._own_scope(sample)
            is_new = sample.effect.is_new
            values = {**sample.effect.fields, "$id": sample.effect.entity_id}
            for field in [*formulas, *(fields if place == 0 else ())]:
                if place == 0:
                    if field not in values:
                        formulas[field] = []
                        continue
                    formulas[field] = list(_formulas_of(values[field], scope, own if is_new and field == "$id" else None))
                    continue
                formulas[field] = [formula for formula in formulas[field] if field in values and evaluate(
                    formula, own if formula[0] == "text" and is_new and field == "$id" else scope) == values[field]]
        return {field: own_formulas for field, own_formulas in formulas.items() if field != PRESENT}

    def _holding(self, learnt: dict[str, list[list[Any]]], half: dict[str, list[list[Any]]],
                 others: Sequence[EffectSample]) -> dict[str, list[list[Any]]]:
        """Return the formulas without those of fields for which one half of the days teaches what the other one refutes."""
        for field, formulas in half.items():
            for sample in others:
                is_id = field == "$id"
                values = {**sample.effect.fields, **sample.effect.changed, "$id": sample.effect.entity_id}
                scope = self._own_scope(sample) if is_id and sample.effect.is_new and any(
                    formula[0] == "text" for formula in formulas) else self._scope(sample)
                if agreed(formulas, scope) not in (UNDECIDED, values.get(field, UNDECIDED)):
                    learnt = {**learnt, field: []}
        return learnt

    def _scope(self, sample: EffectSample) -> ActScope:
        act = sample.act
        actor = self._accounts.get(self._people.get(act.actor or "", ""), {})
        return ActScope(act.entity_id, act.fields, sample.effect.at / _SECOND, actor)

    def _own_scope(self, sample: EffectSample) -> ActScope:
        return ActScope("", sample.effect.fields, sample.effect.at / _SECOND, {})


def learn_effects(world: CompanyWorld, accounts: Mapping[str, Mapping[str, str]], written: Sequence[Collection[str]]
                  ) -> list[dict[str, Any]]:
    """Return the rules. `written`: for each product, the classes that its tools write."""
    return EffectLearner(world, accounts).rules(written)


def _acts(world: CompanyWorld) -> Iterator[SeenAct]:
    """Yield the acts in order; what was so from the beginning is none."""
    state: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    groups: dict[tuple[int, str, str], list[Any]] = {}
    for version in world.versions:
        groups.setdefault((version.at, version.entity_class, version.entity_id), []).append(version)
    for (at, entity_class, entity_id), versions in groups.items():
        own = state[entity_class, entity_id]
        is_new = not own
        changed = {version.field: version.value for version in versions if own.get(version.field, UNDECIDED) != version.value}
        own.update(changed)
        if at > 0 and len(own) <= _MOST_FIELDS and own.get(PRESENT, True) and changed:
            actor = next((version.actor for version in versions if version.actor), None)
            yield SeenAct(entity_class, entity_id, at, is_new, changed, changed if is_new else dict(own), actor)


def _kind_of_effect(act: SeenAct) -> Name:
    return act.kind, "new" if act.is_new else "changed", ""


def _is_second_hand(rule: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the act of a rule is itself the effect of an act that has the rule's effect too: what brings it about then
    is not told apart."""
    def brought(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        return bool(one["effect"]["kind"] == other["kind"] and one["effect"]["event"] == other["event"])

    first = [each["act"] for each in rules if each is not rule and brought(each, rule["act"])]
    return any(each["act"] in first and brought(each, rule["effect"]) for each in rules if each is not rule)


def _choices(acts: Sequence[SeenAct]) -> Iterator[Sequence[SeenAct]]:
    """Yield all acts, then those with one value in a field, where several acts have it."""
    yield acts
    by_value: dict[tuple[str, Any], list[SeenAct]] = defaultdict(list)
    for act in acts:
        for field, value in act.fields.items():
            if isinstance(value, bool) or (isinstance(value, str) and 0 < len(value) <= _LONG):
                by_value[field, value].append(act)
    for _, own in sorted(by_value.items(), key=lambda each: (-len(each[1]), str(each[0]))):
        if _ACTS <= len(own) < len(acts):
            yield own


def _constants(acts: Sequence[SeenAct]) -> dict[str, Any]:
    """Return the fields that have one plain value in all acts: what no act on record lacks, a rule asks for."""
    first = acts[0].fields
    return {field: value for field, value in first.items() if field != PRESENT and field not in _FOLLOWS
            and (value is None or isinstance(value, (str, bool))) and all(
                act.fields.get(field, UNDECIDED) == value for act in acts)}


def _changed_always(acts: Sequence[SeenAct]) -> list[str]:
    return sorted(set.intersection(*(set(act.changed) for act in acts)) - _FOLLOWS)


def _texts(act: SeenAct) -> Iterator[tuple[str, str]]:
    """Yield (name in a template, text) of what tells a record from others, the longest text first."""
    named = {"$id": act.entity_id, "$key": act.entity_id.partition("/")[2]} | {
        name: str(value) for name, value in act.fields.items() if isinstance(value, (str, int)) and not isinstance(value, bool)}
    yield from sorted((each for each in named.items() if _FEW < len(each[1]) <= _LONG), key=lambda own: (-len(own[1]), own[0]))


def _formulas_of(value: Any, scope: ActScope, own: ActScope | None) -> Iterator[list[Any]]:
    """Yield the formulas that give a value. `own`: the effect's record, whose fields its id is made of."""
    yield ["const", value]
    for name in ("id", "key", "at", "stamp"):
        if evaluate([name], scope) == value:
            yield [name]
    yield from (["field", name] for name, each in scope.fields.items() if each == value and value not in (None, True, False))
    yield from (["part", name, shape_of(value)] for name in (_places_of(value, scope.fields) if isinstance(value, str) else ()))
    yield from (["actor", name] for name, account in scope.actor.items() if account == value)
    source = scope if own is None else own
    if isinstance(value, str):
        template = _template(value, source)
        if template != value:
            yield ["text", template]


def shape_of(identifier: str) -> str:
    """Return the pattern of ids like one: letters and digits stand for any of their kind."""
    return "".join("[A-Z]+" if part.isupper() else "[a-z]+" if part.islower() else r"\d+" if part.isdigit() else re.escape(part)
                   for part in re.findall(r"[A-Z]+|[a-z]+|\d+|.", identifier))


def _places_of(identifier: str, fields: Mapping[str, Any]) -> list[str]:
    """Return the fields whose text names a record first among records of such ids; a bare number or word names nothing."""
    if identifier.isalnum() and (identifier.isdigit() or identifier.isalpha()):
        return []
    pattern = re.compile(rf"(?<!\w){shape_of(identifier)}(?!\w)")
    return [name for name, text in fields.items() if isinstance(text, str) and text != identifier
            and (match := pattern.search(text)) is not None and match[0] == identifier]


def _template(value: str, scope: ActScope) -> str:
    """Return a text with what it holds of a record as slots, the longest first."""
    act = SeenAct("", scope.entity_id, 0, True, {}, scope.fields, None)
    parts: list[str] = [value]
    for name, text in _texts(act):
        parts = [piece for part in parts for piece in (_cut(part, text, name) if not part.startswith("\0") else [part])]
    return "".join("{" + part[1:] + "}" if part.startswith("\0") else part for part in parts)


def _cut(part: str, text: str, name: str) -> list[str]:
    """Return a text in pieces: the places of another text are marked with its name."""
    pieces = part.split(text)
    cut = [pieces[0]]
    for piece in pieces[1:]:
        cut += ["\0" + name, piece]
    return [piece for piece in cut if piece]
