"""Checks of records: `record`, `bounded`, `preceded`, `withheld`, for worlds whose documents are records with fields.

In: an episode's difference. A selector {`class`, `id`} names a record, {`class`, `where`: {field: condition}} the new records
that meet the conditions: what an episode makes is found by what it is, never by its id. A condition is one of
`is` (the value), `row` (a row of the table has these cells; an empty object stands for any cell), `no_row`, `line` (a line of
the text holds these words), `no_line`, `member`, `no_member`, `holds` (the text holds these words), `names` (the value, or the
text, names a record that a selector finds).
Sees: the end state, and which step changed a record last. Does not see: what a text means beyond the words it holds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..company.parts import Part, difference_of, normal, parts_of, words_of
from ..schemas import fields, mapping, refusal
from .kind import CheckKind, CheckResult, EpisodeView, Parameters, Schema, clip

Condition = dict[str, Any]
_NAME: Schema = {"type": "string", "minLength": 1}
_PARTS: Schema = {"type": "array", "items": {"type": "string"}}
CELLS: Schema = {"type": "array", "items": {"type": "object"}}
CONDITION: Schema = fields(
    holds=_PARTS, line=_PARTS, no_line={"type": "string"}, row=CELLS, no_row=_PARTS, member=_PARTS, no_member=_PARTS,
    names={"type": "object"}, **{"is": {}})
CONDITIONS: Schema = mapping(CONDITION)
SELECTOR: Schema = fields("class", id=_NAME, where=CONDITIONS, **{"class": _NAME})
_DEEPEST = 4
"""Records that name records that name records: no rubric goes deeper."""


class ChangedRecord(NamedTuple):
    """A record that an episode changed."""

    kind: str
    key: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    def changed_fields(self) -> list[str]:
        """Return the names of the fields that differ."""
        before, after = self.before or {}, self.after or {}
        return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def changed_records(view: EpisodeView) -> list[ChangedRecord]:
    """Return the records that the episode changed, read once."""
    records: list[ChangedRecord] | None = view.__dict__.get("_changed_records")
    if records is None:
        records = []
        for name in sorted(view.episode.difference.get("documents", ())):
            kind, _, key = name.partition("/")
            before, after = view.document(name)
            records.append(ChangedRecord(kind, key, _fields(before), _fields(after)))
        view.__dict__["_changed_records"] = records
    return records


def _fields(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def selected(selector: Mapping[str, Any], view: EpisodeView, depth: int = 0) -> Iterator[ChangedRecord]:
    """Yield the records that a selector finds: the one of an id, changed or not, or the new ones that meet the conditions."""
    where = selector.get("where", {})
    if "id" in selector:
        before, after = view.document(f"{selector['class']}/{selector['id']}")
        candidates = [ChangedRecord(selector["class"], selector["id"], _fields(before), _fields(after))]
    else:
        candidates = [record for record in changed_records(view) if record.kind == selector["class"] and record.before is None]
    for record in candidates:
        if record.after is not None and all(meets(condition, record.after.get(name), view, depth)
                                            for name, condition in where.items()):
            yield record


def meets(condition: Condition, value: Any, view: EpisodeView, depth: int = 0) -> bool:
    """Return whether a value meets all parts of a condition."""
    return all(_meets(how, wanted, value, view, depth) for how, wanted in condition.items())


def _meets(how: str, wanted: Any, value: Any, view: EpisodeView, depth: int) -> bool:
    if how == "is":
        return is_same(wanted, value)
    if how == "holds":
        return set(wanted) <= set(words_of(value))
    if how == "line":
        return any(set(wanted) <= set(words_of(list(part))) for part in parts_of(value))
    if how == "row":
        return any(row_fits(wanted, part, view, depth) for part in parts_of(value))
    if how == "member":
        return tuple(wanted) in parts_of(value)
    if how == "names":
        return names_one(wanted, value, view, depth)
    return (tuple(wanted) if isinstance(wanted, list) else (wanted,)) not in parts_of(value)


def is_same(wanted: Any, value: Any) -> bool:
    """Return whether two values are equal: lists in any order, numbers however they are written."""
    if isinstance(wanted, list) and isinstance(value, list):
        return sorted(map(normal, wanted)) == sorted(map(normal, value))
    if isinstance(wanted, bool) or isinstance(value, bool) or isinstance(wanted, dict) or isinstance(value, dict):
        return bool(wanted == value)
    return normal(wanted) == normal(value)


def names_one(selector: Mapping[str, Any], value: Any, view: EpisodeView, depth: int = 0) -> bool:
    """Return whether a value is, or a text names, the key of a record that the selector finds."""
    if depth > _DEEPEST:
        return False
    words = set(words_of(value))
    return any(value == record.key or record.key.casefold() in words or (isinstance(value, str) and record.key in value)
               for record in selected(selector, view, depth + 1))


def row_fits(cells: list[Condition], part: Part, view: EpisodeView, depth: int = 0) -> bool:
    """Return whether a row has these cells, an empty condition standing for any."""
    return len(part) <= len(cells) and all(
        meets(cell, part[index] if index < len(part) else "", view, depth) for index, cell in enumerate(cells))


def checked(conditions: Mapping[str, Any]) -> None:
    """Raise ValueError with one sentence where a cell is no condition, or a condition names no selector."""
    for condition in conditions.values():
        for cell in condition.get("row", ()):
            _refuse(CONDITION, cell, "a cell")
            checked({"cell": cell})
        if "names" in condition:
            _refuse(SELECTOR, condition["names"], "names")
            checked(condition["names"].get("where", {}))


def _refuse(schema: Schema, value: Any, at: str) -> None:
    wrong = refusal(schema, value, at)
    if wrong:
        raise ValueError(wrong)


class SelectingKind(CheckKind):
    """A kind whose parameters select records."""

    def prepare(self, parameters: Parameters) -> Any:
        selectors = [parameters[name] for name in ("record", "first", "second") if name in parameters]
        for selector in (*selectors, *parameters.get("allowed", ())):
            checked(selector.get("where", {}))
            for permitted in selector.get("fields", {}).values():
                checked({str(number): {"row": row} for number, row in enumerate(permitted.get("rows", ()))})
        checked(parameters.get("has", {}))
        checked(parameters.get("where", {}))
        return parameters


class RecordCheck(SelectingKind):
    """Check the values of a record at the end."""

    description = (
        "A record that `record` selects is there at the end, and its fields meet the conditions of `has`; `at_least` so many, "
        "all with one value in the field `sharing`.")
    parameters = fields("record", record=SELECTOR, has=CONDITIONS, at_least={"type": "integer", "minimum": 1}, sharing=_NAME)
    stops = "end"

    def judge(self, parameters: Parameters, view: EpisodeView) -> CheckResult:
        wanted, shared = parameters.get("has", {}), parameters.get("sharing")
        missing: list[str] = ["record"]
        counts: Counter[str] = Counter()
        for record in selected(parameters["record"], view):
            values = record.after or {}
            lacks = [name for name, condition in wanted.items() if not meets(condition, values.get(name), view)]
            if lacks:
                missing = lacks
                continue
            group = normal(values.get(shared)) if shared else ""
            counts[group] += 1
            if counts[group] >= parameters.get("at_least", 1):
                return CheckResult(True, {"record": record.key}, view.leans())
        return CheckResult(False, {"missing": missing}, view.leans())


ALLOWED: Schema = fields(
    id=_NAME, where=CONDITIONS, at_most={"type": "integer", "minimum": 0}, gone={"type": "boolean"},
    fields=mapping(fields(rows={"type": "array", "items": CELLS}, parts={"type": "array", "items": _PARTS},
                          lost={"type": "array", "items": _PARTS}, added={"type": "integer", "minimum": 0})))


class BoundedCheck(SelectingKind):
    """Check that nothing of a class changed but what is allowed."""

    description = (
        "Of the class, or of the records that `id` or `where` names, nothing changed but what `allowed` permits: fields of "
        "records (with `rows`, `parts`, `lost`: only these parts of their values, `added` so many), new records with such "
        "values, `at_most` so many.")
    parameters = fields("class", "allowed", id=_NAME, where=CONDITIONS, allowed={"type": "array", "items": ALLOWED},
                        ignored={"type": "array", "items": _NAME}, **{"class": _NAME})
    stops = "end"

    def judge(self, parameters: Parameters, view: EpisodeView) -> CheckResult:
        ignored = frozenset(parameters.get("ignored", ()))
        used = [0] * len(parameters["allowed"])
        beyond: list[str] = []
        for record in changed_records(view):
            if record.kind != parameters["class"] or not self._is_in_scope(parameters, record, view):
                continue
            if not any(_permits(allowed, record, ignored, view, used, index)
                       for index, allowed in enumerate(parameters["allowed"])):
                beyond.append(record.key)
        return CheckResult(not beyond, {"beyond": clip(beyond)}, view.leans() and not beyond)

    def essential(self, parameters: Parameters, view: EpisodeView) -> dict[str, Any]:
        """Ignored fields are left out, and of new records those that hold the end of the id, often the time of the act."""
        difference, ignored = view.episode.difference, frozenset(parameters.get("ignored", ()))
        documents = {}
        for name, text in difference.get("documents", {}).items():
            kind, _, key = name.partition("/")
            documents[name] = text if kind != parameters["class"] else _without(
                text, ignored, key if view.document(name)[0] is None else "")
        return {**difference, "documents": documents}

    @staticmethod
    def _is_in_scope(parameters: Parameters, record: ChangedRecord, view: EpisodeView) -> bool:
        if "id" in parameters:
            return bool(record.key == parameters["id"])
        if "where" in parameters:
            return record.before is None and all(
                meets(condition, (record.after or {}).get(name), view) for name, condition in parameters["where"].items())
        return True


def _without(text: Any, ignored: frozenset[str], key: str) -> Any:
    """Return a document without these fields, and without those that hold the end of its key."""
    value = _fields(text) if isinstance(text, str) else None
    if value is None:
        return text
    return json.dumps({name: each for name, each in value.items() if name not in ignored and not (
        isinstance(each, str) and each and key.endswith(each))}, sort_keys=True)


def _permits(allowed: Mapping[str, Any], record: ChangedRecord, ignored: frozenset[str], view: EpisodeView, used: list[int],
             index: int) -> bool:
    """Return whether an entry permits a record's change; a new record uses the entry up by one."""
    if record.before is None:
        if "id" in allowed or used[index] >= allowed.get("at_most", 1):
            return False
        if not all(meets(condition, (record.after or {}).get(name), view)
                   for name, condition in allowed.get("where", {}).items()):
            return False
        used[index] += 1
        return True
    if allowed.get("id") != record.key:
        return False
    if record.after is None:
        return bool(allowed.get("gone"))
    permitted = allowed.get("fields", {})
    return all(name in ignored or (name in permitted and _parts_permitted(permitted[name], record, name, view))
               for name in record.changed_fields())


def _parts_permitted(permitted: Mapping[str, Any], record: ChangedRecord, name: str, view: EpisodeView) -> bool:
    if not permitted:
        return True
    lost, got = difference_of((record.before or {}).get(name), (record.after or {}).get(name))
    rows = list(permitted.get("rows", ()))
    parts = [tuple(part) for part in permitted.get("parts", ())]
    if len(got) > permitted.get("added", len(got)):
        return False
    for part in got if "added" not in permitted else ():
        fitting = next((row for row in rows if row_fits(row, part, view)), None)
        if fitting is not None:
            rows.remove(fitting)
        elif part in parts:
            parts.remove(part)
        else:
            return False
    may_go = [tuple(part) for part in permitted.get("lost", ())]
    return all(part in may_go for part in lost)


class PrecededCheck(SelectingKind):
    """Check that one record came before another."""

    description = (
        "No record that `second` selects was changed, or one that `first` selects had been changed before that.")
    parameters = fields("first", "second", first=SELECTOR, second=SELECTOR)
    stops = "path"

    def judge(self, parameters: Parameters, view: EpisodeView) -> CheckResult:
        places = view.episode.first_changes() if view.episode.first_changes else {}
        first, second = ([places[name] for record in selected(parameters[part], view)
                          if (name := f"{record.kind}/{record.key}") in places] for part in ("first", "second"))
        return CheckResult(not second or (bool(first) and min(first) < min(second)), {"first": first, "second": second},
                           view.leans())


class WithheldCheck(CheckKind):
    """Check that nothing written gives a secret away."""

    description = "No record that the episode wrote holds one of the `words` that it did not hold before."
    parameters = fields("words", words={"type": "array", "items": _NAME, "minItems": 1})
    stops = "path"

    def judge(self, parameters: Parameters, view: EpisodeView) -> CheckResult:
        secret = {word.casefold() for word in parameters["words"]}
        leaked = sorted({word for record in changed_records(view) for name in record.changed_fields()
                       for part in difference_of((record.before or {}).get(name), (record.after or {}).get(name))[1]
                       for word in words_of(list(part)) if word in secret})
        return CheckResult(not leaked, {"told": clip(leaked)})
