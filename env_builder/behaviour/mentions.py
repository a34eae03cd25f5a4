"""Tools that answer with the name of a thing, told from other things that mention it: an order knows who ordered, and where to.

In: the calls of a tool, all things that the log showed. Out: `find` rules over things that hold the answer's words in a field,
where every argument stands in one of their fields, whole or (`words`) as some of its words, whatever their capitals.
Each rule is tried on every question of the log, with the things that had been seen by then: it must answer ten, and be wrong in
no more than one of a hundred. Sees: scalars of things. Does not see: what no thing mentions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice, product
from typing import Any, NamedTuple

from env_builder.behaviour.finds import MAXIMUM_WAYS, WORD, Rule, Things
from env_builder.behaviour.templates import shared
from env_builder.runtime.answers import parsed
from env_builder.runtime.tables import WORDS, Table, scalars, words_of
from env_builder.runtime.texts import filled
from env_builder.world.effects import order_of
from env_builder.world.replay import Step

MINIMUM_TOLD = 10
AGAINST = 0.01
FAIR = 40
"""Examples from which ways and template are made, and things that mention one answer."""
ASKED = 200
"""Questions, evenly spread, from which ways are counted; each way is then tried on all."""
TRIED = 3
By = tuple[tuple[Any, ...], ...]


class Mentions(NamedTuple):
    """Things of one class: all looks, and which of them hold a text."""

    table: Table
    holding: dict[str, list[dict[str, Any]]]


def induce(steps: list[Step], things: Things, seen: list[Step], known: Iterable[Rule]) -> list[Rule]:
    """`find` rules for what the `known` ones leave. `seen`: all steps of the service that show a thing."""
    by_names: dict[tuple[str, ...], list[Step]] = defaultdict(list)
    for step in steps:
        if step.call.arguments:
            by_names[tuple(sorted(step.call.arguments))].append(step)
    taken = {(tuple(sorted(name for _, name, *_ in rule["by"])), rule["class"]) for rule in known}
    found: list[Rule] = []
    for names, asked in sorted(by_names.items()):
        if len({step.call.key for step in asked if not step.call.failed}) >= MINIMUM_TOLD:
            rules = (_rule(asked, kind, things, seen) for kind in things.classes if (names, kind) not in taken)
            found += islice((rule for rule in rules if rule), 1)
    return found


def _rule(asked: list[Step], kind: str, things: Things, seen: list[Step]) -> Rule | None:
    """The rule over things of one class, None where none holds."""
    mentions = _mentions(kind, things)
    worked = [step for step in asked if not step.call.failed]
    common = {word for word, n in Counter(word for step in worked for word in _words(step)).items() if 2 * n > len(worked)}
    counts: Counter[By] = Counter()
    for step in worked[::len(worked) // ASKED + 1]:
        rows = [row for word in _words(step) - common for row in mentions.holding.get(word, ())[:FAIR]]
        counts.update({way for row in rows for way in _ways(step.call.arguments, dict(scalars(row["document"])))})
    best = sorted(counts, key=lambda by: (-counts[by], len(str(by)), str(by)))[:TRIED]
    for by in (by for by in best if counts[by] >= MINIMUM_TOLD):
        told = (({"before": row, "argument": step.call.arguments}, step.call.content) for step in worked
                for row in mentions.table.found(_wanted(by, step)) if (_words(step) - common) & _held(row))
        template = shared(list(islice(told, FAIR)))
        if template and any(isinstance(piece, list) and piece[0] == "before" for piece in template["pieces"]):
            rule: Rule = {
                "rule": "find", "class": kind, "by": [[list(path), *more] for path, *more in by], "stable": True, **template}
            if _holds(rule, by, asked, [step for step in seen if step.shown and step.shown[0] == kind]):
                return rule
    return None


def _holds(rule: Rule, by: By, asked: list[Step], seen: list[Step]) -> bool:
    """Does the rule tell what was answered, of all that it would have answered with what had been seen by then?"""
    table, right, wrong = Table(), set[str](), 0
    questions = {id(step) for step in asked}
    for step in sorted([*asked, *seen], key=lambda step: order_of(step.call)):
        if id(step) in questions:
            said = {filled(rule, row, step.call.arguments) for row in table.found(_wanted(by, step))}
            if len(said) == 1 and None not in said:
                right |= {step.call.key} if said == {step.call.content} else set()
                wrong += said != {step.call.content}
        elif step.shown:
            table.add({"key": step.shown[1], "document": parsed(step.shown[2])})
    return len(right) >= MINIMUM_TOLD and wrong <= AGAINST * len(right)


def _mentions(kind: str, things: Things) -> Mentions:
    found = Mentions(Table(), defaultdict(list))
    for (entity_class, key), documents in things.documents.items():
        for document in documents if entity_class == kind else ():
            row = {"key": key, "document": document}
            found.table.add(row)
            for text in _held(row):
                found.holding[text].append(row)
    return found


def _held(row: dict[str, Any]) -> set[str]:
    return {str(value) for _, value in scalars(row["document"])}


def _words(step: Step) -> set[str]:
    return set(WORD.findall(step.call.content))


def _wanted(by: By, step: Step) -> list[tuple[Any, ...]]:
    return [(("document", *path), step.call.arguments[name], *how) for path, name, *how in by]


def _ways(arguments: dict[str, Any], fields: dict[tuple[str, ...], Any]) -> set[By]:
    """Fields in which the arguments stand, each whole or as words."""
    options: list[list[tuple[Any, ...]]] = []
    for name in sorted(arguments):
        value, words = arguments[name], words_of(arguments[name])
        whole = [path for path, there in fields.items() if type(there) is type(value) and there == value]
        part = [path for path, there in fields.items() if words and words < words_of(there)]
        options.append([(path, name) for path in whole] or [(path, name, WORDS) for path in part])
    return set(islice(product(*options), MAXIMUM_WAYS))
