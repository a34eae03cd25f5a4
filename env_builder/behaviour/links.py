"""Fields that list the keys of the records that link back: what a new record adds to the record that it links to.

In: the records as sessions read them before any write call, and what calls of one tool made. Out: consequences (`also`) of its
`create` rule. A field is such a list if of at least ten pairs of a record and one that links to it every key is listed, and no
key of another is. One read after a call that made a record must then show its key at the end of the list, and nothing else
changed; none may show otherwise.
Sees: lists of bare keys in rising order. Does not see: lists of objects; records that leave the list again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise, takewhile
from typing import Any, NamedTuple

from env_builder.behaviour.evidence import Rule, begun_documents
from env_builder.runtime.answers import parsed
from env_builder.runtime.expressions import SPOKEN
from env_builder.runtime.world import Name
from env_builder.runtime.writing import Consequence
from env_builder.world import ServiceWorld
from env_builder.world.documents import style_of
from env_builder.world.replay import LoggedStep

MINIMUM_PAIRS = 10
MINIMUM_ORDERED = 3
"""Lists of several keys whose order must be the rising one."""


class Link(NamedTuple):
    """A field that lists the keys of all records of a class that link to its record."""

    owner: str
    """Class of the record that has the list."""
    field: str
    back: str
    """Field of the listed records that holds the key of the owner."""


def consequences_of(service: ServiceWorld, tool: str, rule: Rule) -> list[Consequence]:
    """Return what the calls of a tool that makes records add to the lists of those that they link to."""
    if rule["rule"] != "create":
        return []
    snapshots = _snapshots(service)
    linked = [link for link in _links(snapshots, rule) if _is_borne_out(service, tool, rule, link)]
    return [_consequence(service, link, rule) for link in linked]


def _consequence(service: ServiceWorld, link: Link, rule: Rule) -> Consequence:
    texts = [step.shown[2] for step in service.steps if step.shown and step.shown[0] == link.owner]
    return {"class": link.owner, "key": ["before", link.back], "style": style_of(texts) or {},
            "fields": {link.field: ["append", ["before", link.field], ["argument", SPOKEN, rule["field"]]]}}


def _snapshots(service: ServiceWorld) -> list[dict[Name, Any]]:
    """Return records as they were together: as all sessions begin, else as each read them before its first write call."""
    if service.starts_from == "reset":
        return [{name: parsed(text) for name, text in begun_documents(service).items()}]
    snapshots: list[dict[Name, Any]] = []
    for _, session in groupby(service.steps, key=lambda step: step.call.session_id):
        before = takewhile(lambda step: not step.act, session)
        snapshots.append({step.shown[:2]: parsed(step.shown[2]) for step in before if step.shown})
    return snapshots


def _links(snapshots: list[dict[Name, Any]], rule: Rule) -> Iterator[Link]:
    """Yield the fields that list the records of the class that the rule makes, as far as all snapshots agree."""
    fields = {(kind, field) for snapshot in snapshots for (kind, _), document in snapshot.items()
              for field, value in document.items() if isinstance(value, list)}
    backs = sorted(name for name, value in rule["fields"].items() if value[0] != "constant" and name != rule["field"])
    for owner, field in sorted(fields):
        lists = [(key, document[field]) for snapshot in snapshots for (kind, key), document in snapshot.items()
                 if kind == owner and isinstance(document.get(field), list)]
        if not _is_rising([keys for _, keys in lists]):
            continue
        for back in backs:
            if _is_linked(snapshots, rule, Link(owner, field, back)):
                yield Link(owner, field, back)


def _is_rising(lists: list[list[Any]]) -> bool:
    ordered = [keys for keys in lists if len(keys) > 1]
    try:
        return len(ordered) >= MINIMUM_ORDERED and all(one < other for keys in ordered for one, other in pairwise(keys))
    except TypeError:
        return False


def _is_linked(snapshots: list[dict[Name, Any]], rule: Rule, link: Link) -> bool:
    """Return whether the field lists just the records that link back, such as the rule makes among them."""
    n_listed = 0
    constants = [(name, value[1]) for name, value in rule["fields"].items() if value[0] == "constant"]
    for snapshot in snapshots:
        listed = {(key, str(item)) for (kind, key), document in snapshot.items() if kind == link.owner
                  for item in document.get(link.field) or ()}
        records = {key: document for (kind, key), document in snapshot.items() if kind == rule["class"]}
        linked = {(str(document.get(link.back)), key) for key, document in records.items()
                  if (link.owner, str(document.get(link.back))) in snapshot}
        if linked != {(owner, key) for owner, key in listed if key in records}:
            return False
        n_listed += sum(all(records[key].get(name) == value for name, value in constants) for _, key in linked)
    return n_listed >= MINIMUM_PAIRS


def _is_borne_out(service: ServiceWorld, tool: str, rule: Rule, link: Link) -> bool:
    """Return whether a read after a call of the tool shows the new key at the end, and nothing else changed; and none
    otherwise."""
    begun = begun_documents(service) if service.starts_from == "reset" else {}
    n_right = 0
    for _, session in groupby(service.steps, key=lambda step: step.call.session_id):
        documents = dict(begun)
        expected: dict[Name, Any] = {}
        for step in session:
            made = _made(step, rule) if step.call.tool == tool else None
            owner = (link.owner, str(made.get(link.back))) if made else None
            if step.shown and step.shown[:2] in expected:
                if parsed(step.shown[2]) != expected[step.shown[:2]]:
                    return False
                n_right += 1
            if step.shown:
                documents[step.shown[:2]] = step.shown[2]
                expected.pop(step.shown[:2], None)
            if made is not None and owner is not None:
                before = expected.get(owner, parsed(documents[owner]) if owner in documents else None)
                if before is not None:
                    expected[owner] = {**before, link.field: [*before[link.field], made[rule["field"]]]}
            elif step.act:
                expected = {}
                documents = {}
    return n_right > 0


def _made(step: LoggedStep, rule: Rule) -> Any:
    """Return the record that a call made."""
    return parsed(step.shown[2]) if step.act and step.shown and step.shown[0] == rule["class"] else None
