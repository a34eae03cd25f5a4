"""Replay acts as an episode: what they changed, on the world as it stood when a task begins.

In: acts with their changes, the state at an instant. Out: the records before and after, who changed which part of them last,
and an `Episode` that a rubric grades as any other. Of tables, long texts and lists an act's own parts are applied, not the
whole value, so that what other work wrote into the same record in between stays out.
Sees: known values of the start. Does not see: effects that the exports show as other acts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical
from env_builder.runtime.company import PRESENT, CompanyState
from env_builder.runtime.company.parts import Part, is_long, is_table, parts_of
from env_builder.runtime.records import Episode
from warehouse.records import ActChange, WorkEvent

RecordName = tuple[str, str]
Fields = dict[str, Any]


class ReplayedActs(NamedTuple):
    """What acts changed."""

    before: dict[RecordName, Fields | None]
    """Of every record that an act changed: its known fields at the start; None: it was not there."""
    after: dict[RecordName, Fields | None]
    touched: dict[tuple[str, str, str], list[WorkEvent]]
    """(class, id, field) -> the acts that changed it, in order."""
    last: dict[str, int]
    """`class/id` -> place of the act that changed it last."""
    first: dict[str, int]
    """The same of the first act that changed it."""

    def changed(self) -> dict[RecordName, tuple[Fields | None, int]]:
        """Return the records that differ from the start: what they are, and the place of the act that changed them last."""
        return {name: (fields, self.last[_name(name)]) for name, fields in self.after.items() if fields != self.before[name]}

    def episode(self) -> Episode:
        """Return the replay as an episode that nothing was unknown in."""
        documents = {_name(name): _written(fields) for name, fields in self.after.items()
                     if fields != self.before[name]}
        made = [list(name) for name, fields in self.before.items() if fields is None and self.after[name] is not None]
        starts = {_name(name): _written(fields) for name, fields in self.before.items()}

        def look(name: str) -> tuple[str | None, str | None]:
            return starts.get(name), documents.get(name, starts.get(name))

        return Episode((), {"documents": documents, "write_calls": [], "made": made}, (), frozenset(), look,
                       last_changes=lambda: self.last, first_changes=lambda: self.first)


def replay(acts: Iterable[WorkEvent], state: CompanyState) -> ReplayedActs:
    """Return what acts change on the world of a state, one after another."""
    replayed = ReplayedActs({}, {}, {}, {}, {})
    for place, act in enumerate(acts):
        if act.record not in replayed.before:
            at_start = state.values(*act.record) if state.exists(*act.record) else None
            replayed.before[act.record] = at_start
            replayed.after[act.record] = None if at_start is None else dict(at_start)
        fields = replayed.after[act.record]
        fields = {} if fields is None else fields
        replayed.after[act.record] = fields
        for change in act.changes:
            if change.field == PRESENT:
                if change.after is False:
                    replayed.after[act.record] = None
                continue
            fields[change.field] = patched(fields.get(change.field), change)
            replayed.touched.setdefault((*act.record, change.field), []).append(act)
        replayed.last[_name(act.record)] = place
        replayed.first.setdefault(_name(act.record), place)
    return replayed


def patched(value: Any, change: ActChange) -> Any:
    """Return a value with what a change did to the value of its time: its own parts alone where it has several."""
    before, after = change.before, change.after
    if value == before or not _has_parts(after) or not _has_parts(value) or type(value) is not type(after):
        return after
    lost, got = (_own_parts(before, after), _own_parts(after, before))
    if isinstance(after, list):
        return [*_without(value, lost), *(row for row, part in zip(after, parts_of(after), strict=True) if _take(got, part))]
    if isinstance(after, dict):
        keys = {part[0] for part in got}
        gone = {key for key in before or {} if key not in after}
        return {**{key: each for key, each in value.items() if key not in gone},
                **{key: each for key, each in after.items() if key in keys}}
    remaining = [part for part in parts_of(value) if not _take(lost, part)]
    return "\n".join(part[0] for part in [*remaining, *got])


def in_place(value: Any, before: Any, after: Any) -> Any:
    """Return a value with what a change did to the value of its time, rows of a table in their places.

    A row that became another one becomes that where it stands now; new rows follow the row that they followed."""
    if value == before or not (is_table(value) and is_table(before or value) and is_table(after)):
        return patched(value, ActChange("", before, after))
    rows, was = [list(row) for row in value], [list(row) for row in before or []]
    moves = SequenceMatcher(None, [tuple(row) for row in was], [tuple(row) for row in after], autojunk=False).get_opcodes()
    for kind, begin, end, first, last in moves:
        if kind == "equal":
            continue
        old, new = was[begin:end], [list(row) for row in after[first:last]]
        at = next((rows.index(row) for row in old if row in rows), None)
        if at is None:
            at = next((rows.index(row) + 1 for row in reversed(was[:begin]) if row in rows), len(rows))
            at = len(rows) if begin == len(was) else at
        for row in old:
            if row in rows:
                rows.remove(row)
        rows[at:at] = new
    return rows


def _has_parts(value: Any) -> bool:
    return is_table(value) or is_long(value) or isinstance(value, (list, dict))


def _own_parts(of: Any, without: Any) -> list[Part]:
    remaining = parts_of(without)
    return [part for part in parts_of(of) if not _take(remaining, part)]


def _take(parts: list[Part], part: Part) -> bool:
    """Return whether a part is among them, which it is then no longer."""
    if part in parts:
        parts.remove(part)
        return True
    return False


def _without(rows: Sequence[Any], lost: list[Part]) -> list[Any]:
    return [row for row, part in zip(rows, parts_of(list(rows)), strict=True) if not _take(lost, part)]


def _name(name: RecordName) -> str:
    return f"{name[0]}/{name[1]}"


def _written(fields: Mapping[str, Any] | None) -> str | None:
    return None if fields is None else canonical(dict(fields))
