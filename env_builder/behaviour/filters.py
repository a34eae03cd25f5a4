"""Searches of which other searches of the same tool show all that they find.

In: the calls of a read that answers with lists, apart by the state in which they were made: before any write call that matters,
of all sessions that begin alike, else of each session. Out: a `filter` rule, or None. For each argument all conditions are kept
that every shown element meets, and that no element meets which an answer should have shown and does not; where they do not
agree on an element, nothing is said of it. The rule is tried on every search, with the answers to all others: it must be right
five times where something is found, or where nothing is, and answers only what it was right in.
Sees: conditions on fields, each with one argument; the longest answer, and the fields that order it. Does not see: pages,
scores, and elements that are hidden for another reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations, groupby, pairwise
from typing import Any

from env_builder.behaviour.evidence import NOTHING, Induced, Rule, ToolEvidence, listing, one_or_none
from env_builder.runtime.canonical import canonical
from env_builder.runtime.filters import BOUNDS, MATCHING, AnsweredSearch, Collection, Condition, without_blanks
from env_builder.runtime.lists import STYLES, Form, written
from env_builder.runtime.programs import Programs
from env_builder.runtime.selections import at, order
from env_builder.runtime.tables import scalars
from env_builder.runtime.world import SURE
from env_builder.world import ServiceWorld
from env_builder.world.calls import LoggedCall

MINIMUM_RIGHT = 5
"""Searches that find something, or nothing, which the others must show exactly."""
AGAINST = 0.01
"""Share of the searches it answers in which the rule may be wrong."""
MINIMUM_REMOVED = 3
"""Searches that must miss an element which write calls removed."""
MOST_SEARCHES = 400
MOST_CONDITIONS = 60
"""Conditions up to which the log is taken to tell something of an argument."""
MOST_TOGETHER, MOST_PATHS = 3, 8
"""Fields of which one must hold a text, and texts of an element up to which all threes are tried."""
MINIMUM_PAIRS = 5
"""Neighbours whose order a field must explain."""
TOGETHER = ("part", "part_folded", "words")
"""Operators over several fields."""
Pool = list[tuple[dict[str, Any], str]]
"""Searches and their answers in one state."""


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a read whose searches others answer."""
    kinds = ("recorded", "refuse", "rows", "nothing", "find")
    if evidence.sources is None or evidence.effect != "read" or not evidence.has_only(*kinds):
        return NOTHING
    pools = pools_of(evidence.service, evidence.tool)
    rule = filter_rule(pools)
    if rule is not None and _begins_alike(evidence.service, evidence.tool):
        rule["removes"] = removes(rule, pools[0], list(searches_after(evidence.service, evidence.tool)))
    return one_or_none(rule)


def _begins_alike(service: ServiceWorld, tool: str) -> bool:
    return service.starts_from == "reset" and bool(service.programs[tool].get("alike", True))


def pools_of(service: ServiceWorld, tool: str) -> list[Pool]:
    """Return the answered searches of each state: a state begins with a session, and with each write call that may matter."""
    begins_alike = _begins_alike(service, tool)
    contents: dict[Any, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    arguments: dict[str, dict[str, Any]] = {}
    for call, writes in searches_after(service, tool):
        state = call.session_id, len(writes)
        if not writes or not begins_alike:
            contents[("", 0) if begins_alike else state][call.key][call.content] += 1
            arguments[call.key] = call.arguments
    pools: list[Pool] = []
    n = 0
    for _, by_key in sorted(contents.items(), key=lambda item: (-len(item[1]), item[0])):
        answers = ((key, *texts.most_common(1)[0], texts.total()) for key, texts in sorted(by_key.items()))
        pool = [(arguments[key], text) for key, text, times, total in answers if times >= SURE * total]
        if len(pool) > 1 and n < MOST_SEARCHES:
            pools.append(pool[:MOST_SEARCHES - n])
            n += len(pools[-1])
    return pools


def searches_after(service: ServiceWorld, tool: str) -> Iterator[tuple[LoggedCall, tuple[LoggedCall, ...]]]:
    """Yield the calls of a tool, each with the write calls of its session before it that may have changed what it finds."""
    programs = Programs(service.programs)
    for _, session in groupby(service.steps, key=lambda step: step.call.session_id):
        writes: tuple[LoggedCall, ...] = ()
        for step in session:
            if step.call.tool == tool:
                yield step.call, writes
            if step.act and programs.bearing(step.call.tool, tool) != "keeps":
                writes = (*writes, step.call)


def removes(rule: Rule, pool: Pool, searches: list[tuple[LoggedCall, tuple[LoggedCall, ...]]]) -> dict[str, list[str]]:
    """Return which write calls remove elements: tool -> its argument, and the field that has its value in what is removed.

    Searches after write calls of the one tool must find what all searches showed at first, without these elements.
    """
    collection = Collection(rule, pool)
    fields = sorted({field for value in collection.values if isinstance(value, dict) for field in value})
    by_tool: dict[str, list[tuple[LoggedCall, tuple[LoggedCall, ...]]]] = defaultdict(list)
    for call, writes in searches:
        tools = {write.tool for write in writes}
        if len(tools) == 1 and without_blanks(call.arguments).keys() <= collection.conditions.keys():
            by_tool[tools.pop()].append((call, writes))
    ways: dict[str, list[str]] = {}
    for tool, after in sorted(by_tool.items()):
        names = sorted({name for _, writes in after for write in writes for name in write.arguments})
        way = next(((name, field) for name in names for field in fields if _removes(name, field, after, collection)), None)
        ways |= {} if way is None else {tool: list(way)}
    return ways


def _removes(
    name: str, field: str, after: list[tuple[LoggedCall, tuple[LoggedCall, ...]]], collection: Collection
) -> bool:
    """Return whether searches find all but the elements whose field has the value of the argument of a write call."""
    n_right = n_without = n_wrong = 0
    for call, writes in after:
        removed = [(field, str(write.arguments[name])) for write in writes if name in write.arguments]
        given = without_blanks(call.arguments)
        collection.remove(())
        before = collection.select(given)
        collection.remove(removed if len(removed) == len(writes) else ())
        places = collection.select(given)
        if places is not None and len(removed) == len(writes):
            is_right = collection.written(places) == call.content
            n_right, n_wrong = n_right + is_right, n_wrong + (not is_right)
            n_without += is_right and before is not None and before != places
    collection.remove(())
    return n_right >= MINIMUM_RIGHT and n_without >= MINIMUM_REMOVED and n_wrong <= AGAINST * n_right


def filter_rule(pools: list[Pool]) -> Rule | None:
    """Return the `filter` rule of one tool."""
    rule = _blank([one for pool in pools for one in pool])
    if rule is None:
        return None
    try:
        collections = [Collection(rule, pool) for pool in pools]
        n_elements = {len(search.places) for collection in collections for search in collection.searches}
        if not n_elements or max(n_elements) == 0:
            return None
        rule["most"] = max(n_elements)
        _set_order(rule, collections)
        return _tried(rule, pools) if _set_conditions(rule, collections) else None
    except TypeError:  # values that do not compare
        return None


def _blank(answers: Pool) -> Rule | None:
    """Return a rule without conditions: in which form the tool answers, and what it says where it finds nothing."""
    lists = [each for _, content in answers for each in [listing(content)] if each is not None and each.values]
    form = _form([(each.form, each.values, each.texts) for each in lists])
    if form is None:
        return None
    others = Counter(content for _, content in answers if listing(content) is None or content == written(form, [], []))
    names = sorted({name for given, _ in answers for name in without_blanks(given)})
    empty = others.most_common(1)[0][0] if others else None
    return {"rule": "filter", "conditions": {name: [("ignored", ())] for name in names}, "names": [], "characters": {},
            "removes": {}, "orders": [], "listed": True, "most": 0, "cuts": False, "form": form, "empty": empty}


def _form(lists: list[tuple[Form, list[Any], list[str]]]) -> Form | None:
    """Return the form in which most answers are written."""
    forms = [form for form, _, _ in lists]
    several = {canonical({**form, "style": {}}): form for form in forms}
    usual = max(sorted(several), key=[canonical({**form, "style": {}}) for form in forms].count, default=None)
    if usual is None or several[usual]["notation"] != "json":
        return several[usual] if usual is not None else None
    styled = [{**several[usual], "style": style} for style in STYLES]
    return max(styled, key=lambda form: sum(written(form, values, texts) == written(own, values, texts)
                                            for own, values, texts in lists))


def _set_order(rule: Rule, collections: list[Collection]) -> None:
    """Set the fields that order all answers, and whether no two elements were ever seen in both orders."""
    both = any((other, one) in collection.pairs for collection in collections for one, other in collection.pairs)
    rule["listed"] = not both
    neighbours = [(collection.values[one], collection.values[other]) for collection in collections
                  for search in collection.searches for one, other in pairwise(search.places)]
    paths = sorted({path for one, _ in neighbours if isinstance(one, dict) for path, _ in scalars(one)})
    rule["orders"] = [[list(path), descending] for path in paths for descending in (False, True)
                      if _orders(neighbours, path, descending)]


def _orders(neighbours: list[tuple[Any, Any]], path: tuple[str, ...], descending: bool) -> bool:
    pairs = [(at(one, list(path)), at(other, list(path))) for one, other in neighbours]
    try:
        is_ordered = all(first >= second if descending else first <= second for first, second in pairs)
    except TypeError:
        return False
    return is_ordered and len({canonical(pair) for pair in pairs if pair[0] != pair[1]}) >= MINIMUM_PAIRS


def _set_conditions(rule: Rule, collections: list[Collection]) -> bool:
    """Set the conditions of each argument and whether answers are cut; return whether nothing contradicts them."""
    conditions: dict[str, list[Condition]] = {
        name: list(_possible(name, collections)) for name in sorted(rule["conditions"])}
    for collection in collections:
        collection.conditions = conditions
    while True:
        refuted = [one for collection in collections for search in collection.searches
                   if len(search.places) < rule["most"] for one in _refuted(collection, search)]
        if not refuted:
            break
        for name, condition in refuted:
            conditions[name] = [other for other in conditions[name] if other != condition]
        if not all(conditions.values()):
            return False
    cut = [search for collection in collections for search in collection.searches
           if len(search.places) == rule["most"] and _hidden(collection, search)]
    rule["cuts"] = len(cut) > 1
    rule["conditions"] = {name: [[operator, list(map(list, paths))] for operator, paths in each]
                          if len(each) <= MOST_CONDITIONS else [] for name, each in conditions.items()}
    return True


def _possible(name: str, collections: list[Collection]) -> Iterator[Condition]:
    """Conditions on an argument that all shown elements meet."""
    shown = [(collection, search.given[name], sum(1 << place for place in search.places))
             for collection in collections for search in collection.searches if name in search.given]
    elements = [value for collection in collections for value in collection.values]
    paths = sorted({path for value in elements if isinstance(value, dict) for path, _ in scalars(value)} | {
        (field,) for value in elements if isinstance(value, dict) for field, item in value.items()
        if isinstance(item, list | bool)}) or [()]
    texts = [path for path in paths if any(isinstance(at(value, list(path)), str) for value in elements)]
    bounded = any(order(given) is not None for _, given, _ in shown)
    alone = [(operator, (path,)) for operator in MATCHING if operator != "ignored" and (operator not in BOUNDS or bounded)
             for path in paths]
    most = MOST_TOGETHER if len(texts) <= MOST_PATHS else MOST_TOGETHER - 1
    several = [some for n in range(1, most + 1) for some in combinations(texts, n)] + [tuple(texts)]
    together = [(operator, some) for operator in TOGETHER for some in dict.fromkeys(several)
                if len(some) > 1 or (operator == "words" and some)]
    for condition in (("ignored", ()), *alone, *together):
        if all(collection.mask(condition, given) & places == places for collection, given, places in shown):
            yield condition


def _refuted(collection: Collection, search: AnsweredSearch) -> Iterator[tuple[str, Condition]]:
    """Conditions that an element meets which the search should have shown then, as it meets all others."""
    for name, given in search.given.items():
        others = _all_of(collection, search, name)
        for condition in collection.conditions[name] if others else ():
            if collection.mask(condition, given) & others:
                yield name, condition


def _all_of(collection: Collection, search: AnsweredSearch, but: str | None) -> int:
    """Return the elements that the search does not show, and that surely meet its conditions; `but` one argument's."""
    missing = collection.everything & ~sum(1 << place for place in search.places)
    for name, given in search.given.items():
        missing &= collection.certain(name, given)[0] if name != but else collection.everything
    return missing


def _hidden(collection: Collection, search: AnsweredSearch) -> bool:
    return _all_of(collection, search, None) != 0


def _tried(rule: Rule, pools: list[Pool]) -> Rule | None:
    """Return the rule with the arguments and characters of searches that it answered right, None if it was wrong."""
    right: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    n_wrong = 0
    for pool in pools:
        collection = Collection(rule, pool)
        by_content = {id(search): search for search in collection.searches}
        for search in by_content.values():
            places = collection.select(search.given, search)
            if places is not None and collection.written(places) == search.content:
                right[bool(places)].append(search.given)
            else:
                n_wrong += places is not None
        n_wrong += sum(collection.select(given) is not None for given, content in _others(collection, pool))
    n_right = sum(map(len, right.values()))
    answered = [given for is_match, some in right.items() if len(some) >= MINIMUM_RIGHT for given in some]
    if not answered or n_wrong > AGAINST * n_right:
        return None
    characters = {name: "".join(sorted({character for given in answered for character in str(given.get(name, ""))
                                        if not character.isalnum()})) for name in rule["conditions"]}
    names = sorted({tuple(sorted(given)) for given in answered})
    return {**rule, "names": list(map(list, names)), "characters": characters,
            "finds": [is_match for is_match in (True, False) if len(right[is_match]) >= MINIMUM_RIGHT]}


def _others(collection: Collection, pool: Pool) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the searches that were answered otherwise than with a list."""
    read = {search.content for search in collection.searches}
    for arguments, content in pool:
        given = without_blanks(arguments)
        if content not in read and given.keys() <= collection.conditions.keys():
            yield given, content
