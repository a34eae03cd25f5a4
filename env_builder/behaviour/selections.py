"""Tools that select from a list which another question answers whole: by which conditions, in which order, how many.

In: the calls of a tool beside the lists known at their moment (`evidence`). Out: a `select` rule and `unlisted` rules. Every
condition that no example speaks against is tried with every other; those that together select exactly what each answer shows
are kept, the simplest first, and several where examples do not tell which.
Sees: conditions on single fields, each with one argument. Does not see: conditions with `or`, scores, pages.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, product
from typing import Any, NamedTuple

from env_builder.behaviour.evidence import NOTHING, Induced, Moment, Question, Rule, Sources, ToolEvidence, listing, one_or_none
from env_builder.behaviour.templates import shared
from env_builder.runtime.answers import parse
from env_builder.runtime.canonical import canonical
from env_builder.runtime.lists import STYLES, Listing
from env_builder.runtime.programs import ACTING
from env_builder.runtime.selections import OPERATORS, at, selected
from env_builder.runtime.tables import scalars
from env_builder.runtime.texts import NUMBERS, filled_one_way
from env_builder.runtime.world import SURE
from env_builder.world.calls import LoggedCall

MINIMUM_QUESTIONS = 5
"""Different questions that must be explained."""
MINIMUM_FOUND = 2
"""Of these, different answers that select some of the list and not all."""
MOST_EXAMPLES = 60
MOST_COMBINATIONS = 3000
MOST_WAYS = 4
MINIMUM_UNLISTED = 2
"""Different values that stand nowhere in the list and were answered alike."""
Columns = dict[tuple[str, ...], frozenset[str]]
"""Path -> values there of all elements of a list."""


class SelectionExample(NamedTuple):
    """A question, the list, and where in it the answer's elements stand."""

    arguments: dict[str, Any]
    content: str
    listing: Listing
    places: list[int]


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a read that answers with some of a list that another question answers whole."""
    others = ("recorded", "refuse", "rows", "nothing", "filter")
    if evidence.sources is None or evidence.effect != "read" or not evidence.has_only(*others):
        return NOTHING
    return one_or_none(select_rule(evidence.tool, evidence.sources))


def select_rule(tool: str, sources: Sources) -> Rule | None:
    """Return the `select` rule of a tool that only reads."""
    for source in sources.questions:
        by_question = {
            (moment.call.key, moment.lists[source]): moment for moment in sources.moments(tool)
            if source in moment.lists and (tool, moment.call.key) != source and moment.call.arguments}
        moments = [by_question[name] for name in sorted(by_question)]
        if len({moment.call.key for moment in moments}) >= MINIMUM_QUESTIONS:
            rule = _rule(source, sources.arguments[source], moments)
            if rule:
                return rule
    return None


def _rule(source: Question, given: dict[str, Any], moments: list[Moment]) -> Rule | None:
    contents = Counter(moment.call.content for moment in moments)
    lists = [parsed for content in contents for parsed in [listing(content)] if parsed is not None]
    for shows, form, empty in _showings(contents, lists):
        examples = [
            example for moment in moments
            for example in [_example(moment, source, shows, empty)] if example is not None]
        if len(examples) < len(moments):
            continue
        some = {tuple(example.places) for example in examples if 0 < len(example.places) < len(example.listing.values)}
        if len(some) < MINIMUM_FOUND:
            continue
        blank = {"rule": "select", "source": [source[0], given], "shows": shows, "form": form, "empty": empty}
        for order, limit in _arrangements(examples):
            rule = _explained({**blank, "order": order, "limit": limit}, examples)
            if rule:
                return rule
    return None


def _showings(contents: Counter[str], lists: list[Listing]) -> Iterator[tuple[Any, Any, str | None]]:
    """Yield (what is shown, form, what is said of nothing) that the answers may follow."""
    full = [each for each in lists if each.values]
    others = [content for content in contents if listing(content) is None or not (listing(content) or lists[0]).values]
    if full and len(others) <= 1 and len({canonical(each.form) for each in full}) == 1:
        yield "list", full[0].form, next(iter(others), None)
    objects = [content for content in contents if isinstance(parse(content), dict)]
    others = [content for content in contents if content not in objects]
    style = next((style for style in STYLES if all(json.dumps(parse(one), **style) == one for one in objects)), None)
    if objects and style is not None and len(others) <= 1:
        yield "one", {"notation": "json", "field": None, "style": style}, next(iter(others), None)


def _example(moment: Moment, source: Question, shows: Any, empty: str | None) -> SelectionExample | None:
    whole = listing(moment.lists[source])
    content = moment.call.content
    if whole is None:
        return None
    if content == empty:
        return SelectionExample(moment.call.arguments, content, whole, [])
    shown = listing(content) if shows == "list" else Listing([parse(content)], [], {})
    if shown is None:
        return None
    by_text = bool(whole.texts and shown.texts)
    names = whole.texts if by_text else list(map(canonical, whole.values))
    places: list[int] = []
    for name in shown.texts if by_text else map(canonical, shown.values):
        place = next((place for place, other in enumerate(names) if other == name and place not in places), None)
        if place is None:
            return None
        places.append(place)
    return SelectionExample(moment.call.arguments, content, whole, places)


def _arrangements(examples: list[SelectionExample]) -> Iterator[tuple[Any, Any]]:
    """(order, limit) that the answers may follow, the simplest first."""
    orders: list[Any] = []
    if all(example.places == sorted(example.places) for example in examples):
        orders = [None]
    elif all(example.places == sorted(example.places, reverse=True) for example in examples):
        orders = ["reversed"]
    else:
        first = max(examples, key=lambda example: len(example.places))
        paths = {path for value in first.listing.values if isinstance(value, dict) for path, _ in scalars(value)}
        orders = [[list(path), descending] for path in sorted(paths) for descending in (False, True)]
    numbers = sorted({
        name for example in examples for name, value in example.arguments.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value) >= len(example.places)})
    for order in orders:
        yield order, None
        for name in numbers:
            yield order, [name, "first"]
            yield order, [name, "last"]


def _explained(blank: Rule, examples: list[SelectionExample]) -> Rule | None:
    """Return the rule with the ways that explain every example; None where none does."""
    limit = blank["limit"][0] if blank["limit"] else None
    names = sorted({name for example in examples for name, value in example.arguments.items() if value is not None} - {limit})
    tried = sorted(examples, key=lambda example: (-len(example.places), canonical(example.arguments)))[:MOST_EXAMPLES]
    options = [list(_conditions(name, tried)) for name in names]
    ways: list[list[Any]] = []
    for way in islice(product(*options), MOST_COMBINATIONS):
        rule = {**blank, "ways": [[list(condition) for condition in way]]}
        if all(selected(rule, example.listing, example.arguments) == example.content for example in tried):
            ways += rule["ways"]
            if len(ways) == MOST_WAYS:
                break
    rule = {**blank, "ways": ways}
    if not ways or any(selected(rule, example.listing, example.arguments) != example.content for example in examples):
        return None
    for name in (*names, *([limit] if limit else [])):  # more than one value of each was seen to select something
        if len({canonical(one.arguments[name]) for one in examples if one.places and name in one.arguments}) < 2:
            return None
    return rule


def _conditions(name: str, examples: list[SelectionExample]) -> Iterator[tuple[str, list[str], str]]:
    """Conditions on the argument that all shown elements meet, the simplest first."""
    mine = [(example.arguments[name], [example.listing.values[place] for place in example.places])
            for example in examples if example.arguments.get(name) is not None]
    shown = [value for _, values in mine for value in values]
    paths = sorted(_paths(shown), key=lambda path: (len(path), path))
    for operator, holds in OPERATORS.items():
        for path in ([[]] if operator == "anywhere" else paths):
            if all(holds(at(value, path), given) for given, values in mine for value in values):
                yield operator, path, name


def _paths(values: list[Any]) -> list[list[str]]:
    """Paths to scalars, and to lists, of the elements; the empty path of elements that are scalars."""
    paths_so_far: set[tuple[str, ...]] = set()
    for value in values:
        if isinstance(value, dict):
            paths_so_far.update(path for path, _ in scalars(value))
            paths_so_far.update((name,) for name, item in value.items() if isinstance(item, list | bool))
        else:
            paths_so_far.add(())
    return list(map(list, paths_so_far))


def unlisted(evidence: ToolEvidence) -> Induced:
    """Induce the rules on arguments that must stand in a list, and what is said where they do not."""
    if evidence.sources is None:
        return NOTHING
    return Induced(list(unlisted_rules(evidence.tool, evidence.sources, evidence.effect in ACTING)))


def unlisted_rules(tool: str, sources: Sources, acts: bool) -> Iterator[Rule]:
    """Find the `unlisted` rules of a tool. `acts`: it may change the world."""
    moments = sources.moments(tool)
    for name in sorted({name for moment in moments for name in moment.call.arguments}):
        for source in sources.questions:
            by_name = {
                (moment.call.key, moment.call.content, moment.lists[source]): moment.call for moment in moments
                if source in moment.lists and source[0] != tool and name in moment.call.arguments}
            columns = [(call, _columns(text)) for (_, _, text), call in sorted(by_name.items())]
            paths = sorted({path for _, paths_shown in columns for path in paths_shown})
            least = MINIMUM_QUESTIONS if sources.arguments[source] else MINIMUM_UNLISTED
            rule = next((rule for path in paths for rule in [_unlisted(name, path, columns, least, acts)] if rule), None)
            if rule:
                yield {**rule, "source": [source[0], sources.arguments[source]]}
                break


@lru_cache(1024)
def _columns(content: str) -> Columns:
    parsed = listing(content)
    values = parsed.values if parsed else []
    return {tuple(path): frozenset(canonical(at(value, path)) for value in values) for path in _paths(values)}


def _unlisted(name: str, path: tuple[str, ...], calls: list[tuple[LoggedCall, Columns]], least: int, acts: bool) -> Rule | None:
    inside: list[LoggedCall] = []
    out: list[LoggedCall] = []
    for call, columns in calls:
        (inside if canonical(call.arguments[name]) in columns.get(path, ()) else out).append(call)
    listed = {canonical(call.arguments[name]) for call in inside}
    here = [call for call in out if canonical(call.arguments[name]) not in listed]
    if len(out) - len(here) > (1 - SURE) * len(calls):  # lists that differ: what one leaves out the other holds
        return None
    out = here
    kinds = {call.failed for call in out}
    if min(_n_values(name, out) - least, _n_values(name, inside) - MINIMUM_FOUND) < 0 or len(kinds) > 1:
        return None
    template = shared([({"argument": call.arguments}, call.content) for call in out])
    if template is None or (acts and kinds != {True}):  # an act that was not refused may have worked for all that
        return None
    worked = [call for call in inside if not any(
        filled_one_way(template["pieces"], template["form"], way, {}, call.arguments) == call.content for way in NUMBERS)]
    if _n_values(name, worked) < _n_values(name, inside):  # a listed value that was never seen to work speaks against
        return None
    return {"rule": "unlisted", "argument": name, "path": list(path), "is_error": kinds.pop(), **template}


def _n_values(name: str, calls: list[LoggedCall]) -> int:
    return len({canonical(call.arguments[name]) for call in calls})
