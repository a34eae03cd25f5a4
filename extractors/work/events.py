"""Acts: what people and machines did in a company's apps, one for each change of a record that an export shows.

In: the versions of every field, in order (`extractors.apps`), and whose accounts are whose. Out: `WorkEvent`s in the order of
time. The changes of one record with one number of the product (or, without numbers, of one instant) are one act; what a new
record got from who made it at the instant of its making (a label) belongs to its making, and a record that is part of another
(the mailbox of a mail) to that one's act.
Sees: what was new in a text, a table or a file against the version before. Does not see: who changed a row of a table whose
stream does not say; acts that no export holds (deleted messages, reactions, labels without a history).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from extractors.apps import installed_apps
from extractors.apps.version import BEGINNING, PRESENT, AppVersion
from warehouse.records import CREATED, ActChange, RecordKind, WorkEvent

_WORDS = re.compile(r"</?[a-zA-Z][^>]*>|\s+")
_MENTIONED = re.compile(r"\w[\w.+@-]*")
_FIELD = re.compile(r"\{(\w+)\}")
_LONG = 80
"""A text of this many characters or more is compared line by line."""


def find_events(versions: Iterable[AppVersion], accounts: Mapping[str, Mapping[str, str]]) -> list[WorkEvent]:
    """Return the acts that versions show, by time. `accounts`: address -> class of accounts -> id."""
    kinds = {kind.name: kind for app in installed_apps() for kind in app.kinds}
    owners = {account: address for address, owned in accounts.items() for account in owned.values()}
    owners |= {address: address for address in accounts}
    state: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    events = []
    for group in _groups(versions, kinds):
        event = _event(group, kinds.get(group[0].entity_class, RecordKind(group[0].entity_class)), state, owners)
        for version in group:
            state[version.entity_class, version.entity_id][version.field] = version.value
        if event is not None:
            events.append(event)
    return events


def _groups(versions: Iterable[AppVersion], kinds: Mapping[str, RecordKind]) -> Iterator[Sequence[AppVersion]]:
    """Yield the versions of each act, the record's own first, in the order of the acts' first versions.

    What a company set up has no acts, but its fields count as values before."""
    groups: dict[tuple[Any, ...], list[AppVersion]] = {}
    made: dict[tuple[str, str], tuple[Any, ...]] = {}
    parts: dict[tuple[str, int, str], list[AppVersion]] = defaultdict(list)
    for version in versions:
        kind = kinds.get(version.entity_class)
        if kind is not None and kind.part_of:
            parts[kind.part_of, version.at, version.record].append(version)
        else:
            key = (version.at, version.sequence, version.entity_class, version.entity_id)
            first = made.setdefault(key[2:], key)
            groups.setdefault(first if _is_made_so(version, first, groups.get(first)) else key, []).append(version)
    for group in groups.values():
        yield [*group, *parts.get((group[0].entity_class, group[0].at, group[0].record), [])]


def _is_made_so(version: AppVersion, first: tuple[Any, ...], making: Sequence[AppVersion] | None) -> bool:
    """Return whether a value belongs to the making of its record: of that instant, and by nobody else."""
    return making is not None and first[0] == version.at != BEGINNING and version.actor in (None, making[0].actor)


def _event(group: Sequence[AppVersion], kind: RecordKind, state: Mapping[tuple[str, str], Mapping[str, Any]],
           owners: Mapping[str, str]) -> WorkEvent | None:
    """Return the act, or None where only settings, or fields that follow from others, changed."""
    first = group[0]
    own = list({version.field: version for version in group if version.entity_class == first.entity_class}.values())
    record = (first.entity_class, first.entity_id)
    before = state.get(record, {})
    changes = tuple(ActChange(version.field, before.get(version.field), version.value) for version in own
                    if version.field not in kind.follows and before.get(version.field) != version.value)
    if kind.setting or first.at == BEGINNING or not changes:
        return None
    after = {**before, **{version.field: version.value for version in own}}
    texts = [text for version in group if (text := _new_words(version, kind, state))]
    own_name = f"{first.entity_class}:{first.entity_id}"
    named = {account for field in kind.people for account in _accounts(after.get(field))}
    named |= {word for text in texts for word in _MENTIONED.findall(text)}
    answered = changes[0].answered_by if len(changes) == 1 else []
    doer = next((version.actor for version in group if version.actor), "")
    actor = answered[0] if len(answered) == 1 else doer
    return WorkEvent(
        _ref(first), first.at, record, _verb(first.entity_class, before, changes), owners.get(actor, actor),
        _filled(kind.place, after), _filled(kind.answers, after) or own_name,
        tuple(sorted({owners[account] for account in named if account in owners})), tuple(texts), changes, first.record)


def _ref(version: AppVersion) -> str:
    return f"{version.entity_class}:{version.entity_id}#{version.sequence or version.at}"


def _filled(template: str, fields: Mapping[str, Any]) -> str:
    """Return a template with the fields' values; empty where one has none."""
    names = _FIELD.findall(template)
    return template.format_map(fields) if all(fields.get(name) for name in names) else ""


def _verb(entity_class: str, before: Mapping[str, Any], changes: Sequence[ActChange]) -> str:
    present = next((change.after for change in changes if change.field == PRESENT), None)
    if present is False:
        return f"{entity_class} gone"
    if not before:
        return f"{entity_class} {CREATED}"
    return f"{entity_class} {' '.join(sorted({change.field for change in changes}))}"


def _accounts(value: Any) -> list[str]:
    """Return the accounts in a value: one, a list of them, or the keys of an object."""
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, (list, dict)) else []


def _new_words(version: AppVersion, kind: RecordKind, state: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    """Return what is new in a field that holds words."""
    listed = any(version.field == text or (text.endswith("*") and version.field.startswith(text[:-1])) for text in kind.texts)
    if not listed and (kind.texts or not isinstance(version.value, str)):
        return ""
    before = state.get((version.entity_class, version.entity_id), {}).get(version.field)
    return "\n".join(_added(before, version.value))


def _added(before: Any, after: Any) -> list[str]:
    """Return the lines, or rows of a table, that are not in the value before."""
    was, now = _lines(before), _lines(after)
    remaining = list(was)
    added = []
    for line in now:
        if line in remaining:
            remaining.remove(line)
        else:
            added.append(line)
    return added


def _lines(value: Any) -> list[str]:
    if isinstance(value, list):
        return [" | ".join(str(cell) for cell in row) if isinstance(row, list) else str(row) for row in value]
    if not isinstance(value, str):
        return []
    if len(value) < _LONG:
        return [value]
    parts = re.split(r"\n|(?<=</p>)|(?<=</tr>)|(?<=</li>)|(?<=</h\d>)", value)
    return [text for part in parts if (text := _WORDS.sub(" ", part).strip())]
