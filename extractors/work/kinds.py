"""Kinds of work: pieces of work in which the same is done, and a name for each.

In: items and their acts, and the roles of people. Out: the kind of each item. No labels are used, and the data decide how many
kinds there are: items are described by what is done where, by the departments that do it, by the words of all texts and of the
request, and grouped as sessions are (`extractors.tasks.likeness`).
A name has a verb and what it is done to. The verb is a word of the kind's texts that occurs there as done ("granted"), the rest
are the words that tell the kind from others.
Sees: English forms of verbs. Does not see: the order of acts; kinds that have the same words and acts and differ in purpose.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from extractors.tasks.likeness import group_rows
from extractors.work.events import CREATED, WorkEvent
from extractors.work.items import WorkItem
from extractors.work.shapes import ActShapes

_WORD = re.compile(r"[^\W\d_]{2,}")
_KEY = re.compile(r"\b([A-Za-z]{2,})[-_#]\d")
"""The word before the number of a record's id."""
_LEAST, _COMMON = 3, 0.5
"""Items that a feature must occur in, and the share of them beyond which it tells nothing."""
_MOST_ITEMS, _MOST_FEATURES = 4000, 6000
"""Of more items every n-th is grouped, and the others join the nearest group."""
_OUTSIDE = "outside"
_TELLING = 0.6
"""Share of a kind's items in which a word of its name must occur."""
_VERB_IN = 0.35
_IRREGULAR = {"bought": "buy", "brought": "bring", "built": "build", "chosen": "choose", "done": "do", "drawn": "draw",
              "found": "find", "given": "give", "held": "hold", "kept": "keep", "left": "leave", "lent": "lend", "made": "make",
              "met": "meet", "paid": "pay", "sent": "send", "shown": "show", "sold": "sell", "taken": "take", "told": "tell",
              "won": "win", "written": "write"}
_DROPS_E = re.compile(r"(?:[cvuz]|[^aeiou]s|[^aeiou]g|[^aeiou][aiou][rtsdmnlk]|(?:at|ir|ur|or|lv))$")
"""Ends of stems that have an e as a verb: `resolv`, `announc`."""
_EMPTY = frozenset(re.findall(
    r"\w+",
    "about above after again all also am an and any are as ask asked at back be because been before both but by can "
    "cannot could day dear did do does doing done down find for forward found from get give given go goes going gone good "
    "great had has have he hello her here hi him his hope how if in into is it its just keep know last left let like look "
    "looking made make many may me month more morning much must my named need needed needs new next no not now of off ok "
    "on once one open or our out over own per please ready received reported requested run said say see seen send sent "
    "set she should since so some soon sorry start still such take taken team than thank thanked thanks that the their "
    "them then there these they this time to today told tomorrow too try two under until up us use used very via want was "
    "we week welcome well went were what when where which who whom will with work works would year years yes yesterday "
    "yet you your yours re fw fwd https http www com net org eur usd "))
"""Words that name nothing that is done."""


def assign_kinds(items: Sequence[WorkItem], events: Sequence[WorkEvent], roles: Mapping[str, str]) -> list[WorkItem]:
    """Return the items with their kinds. `roles`: address -> department, or another word for what the person does."""
    if len(items) < _LEAST:
        return list(items)
    acts = {event.ref: event for event in events}
    courses = [[acts[ref] for ref in item.refs] for item in items]
    shapes = ActShapes(events)
    groups = _groups([frozenset(_features(course, shapes, roles)) for course in courses])
    names = _names(courses, groups, roles)
    return [item._replace(kind=names.get(group, "")) for item, group in zip(items, groups, strict=True)]


def _features(course: Sequence[WorkEvent], shapes: ActShapes, roles: Mapping[str, str]) -> Iterator[str]:
    for number, event in enumerate(course):
        role = roles.get(event.actor) or (_OUTSIDE if "@" in event.actor else "")
        yield f"act {event.verb} {shapes.container(event)}"
        yield f"by {event.record[0]} {role}"
        words = set(_words(event))
        yield from (f"word {word}" for word in words)
        if number == 0:
            yield from (f"request {word}" for word in words)
            yield f"first {event.verb} {shapes.container(event)}"


def _groups(features: Sequence[frozenset[str]]) -> list[int]:
    """Return the group of each item."""
    step = -(-len(features) // _MOST_ITEMS)
    sampled = features[::step]
    often = Counter(feature for each in sampled for feature in each)
    kept = sorted((feature for feature, n in often.items() if _LEAST <= n <= max(_COMMON * len(sampled), _LEAST)),
                  key=lambda feature: (-often[feature], feature))[:_MOST_FEATURES]
    columns = {feature: number for number, feature in enumerate(kept)}
    if not columns:
        return [0] * len(features)
    present = _present(sampled, columns)
    grouped = group_rows(present)
    if step == 1:
        return [int(group) for group in grouped]
    rates = np.stack([present[grouped == group].mean(0) for group in range(int(grouped.max()) + 1)])
    rates /= np.maximum(np.linalg.norm(rates, axis=1, keepdims=True), 1e-12)
    return [int(group) for group in (_present(features, columns) @ rates.T).argmax(1)]


def _present(features: Sequence[frozenset[str]], columns: Mapping[str, int]) -> np.ndarray:
    present = np.zeros((len(features), len(columns)), dtype=bool)
    for row, each in enumerate(features):
        present[row, [columns[feature] for feature in each if feature in columns]] = True
    return present


class _KindWords(NamedTuple):
    """In how many items of a kind each word occurs, and how well it tells the kind from others."""

    often: Counter[str]
    n_items: int
    late: Counter[str]
    """In how many the company's people write it in the second half."""
    tells: dict[str, float]
    place: dict[str, float]
    """Where the word stands among the words of an item, on average."""


def _names(courses: Sequence[Sequence[WorkEvent]], groups: Sequence[int], roles: Mapping[str, str]) -> dict[int, str]:
    """Return the name of each group, each another one; larger groups first."""
    words = [[word for event in course for word in _words(event)] for course in courses]
    late = [{word for event in course[len(course) // 2:] if event.actor in roles or "@" not in event.actor
             for word in _words(event)} for course in courses]
    titles = [{word for event in course if _is_titled(event) for word in _WORD.findall(event.texts[0].lower())}
              for course in courses]
    people = {word for course in courses for event in course for address in (event.actor, *event.addressees) if "@" in address
              for word in _WORD.findall(address.lower())}
    keys = {key.lower() for course in courses for event in course for text in event.texts for key in _KEY.findall(text)}
    of_group: dict[int, list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        of_group[group].append(number)
    whole = Counter(word for each in words for word in set(each))
    names: dict[int, str] = {}
    taken: Counter[str] = Counter()
    for group, members in sorted(of_group.items(), key=lambda each: (-len(each[1]), each[0])):
        counted = _counted([words[number] for number in members], [late[number] for number in members], whole, len(words))
        titled = {word for number in members for word in titles[number]}
        name = _name(counted, titled, people | keys, set(whole)) or f"work {group + 1}"
        taken[name] += 1
        names[group] = name if taken[name] == 1 else f"{name} {taken[name]}"
    return names


def _is_titled(event: WorkEvent) -> bool:
    """Return whether an act makes a record with a title: its first text is short, and another one may follow."""
    return event.verb.endswith(CREATED) and bool(event.texts) and (len(event.texts) > 1 or event.thread == event.record[0])


def _words(event: WorkEvent) -> list[str]:
    return [word for text in event.texts for word in _WORD.findall(text.lower())]


def _counted(members: Sequence[Sequence[str]], late: Sequence[set[str]], whole: Mapping[str, int], n_items: int) -> _KindWords:
    often = Counter(word for each in members for word in set(each))
    place: dict[str, list[float]] = defaultdict(list)
    for each in members:
        for word in dict.fromkeys(each):
            place[word].append(each.index(word) / len(each))
    n_others = n_items - len(members)
    tells = {}
    for word, n in often.items():
        share, elsewhere = n / len(members), (whole[word] - n + 0.5) / (n_others + 1)
        tells[word] = share * share * math.log(max(share / elsewhere, 1e-9))
    return _KindWords(often, len(members), Counter(word for each in late for word in each), tells,
                      {word: sum(each) / len(each) for word, each in place.items()})


def _name(words: _KindWords, titled: set[str], without: set[str], vocabulary: set[str]) -> str:
    """Return a verb and one or two words of what it is done to; empty: no word tells."""
    share = {word: n / words.n_items for word, n in words.often.items()}
    order = sorted((word for word in words.tells if words.tells[word] > 0 and word not in without and word not in _EMPTY),
                   key=lambda word: (-words.tells[word], word))
    done = [base for word in order if word not in titled and words.late[word] >= _VERB_IN * words.n_items
            and (base := _base(word, vocabulary)) and base not in _EMPTY]
    objects = [word for word in order if share[word] >= _TELLING and not _base(word, vocabulary)
               and word not in _IRREGULAR.values()]
    verb = done[0] if done else ""
    stem = verb[:4]
    objects = [word for word in objects if word in titled and (not stem or not word.startswith(stem))] or [
        word for word in objects if not stem or not word.startswith(stem)]
    chosen = sorted(objects[:2 if not verb else 1], key=lambda word: words.place[word])
    return " ".join(word for word in (verb, *chosen) if word)


def _base(word: str, vocabulary: set[str]) -> str:
    """Return the verb of which a word is the past form; empty: it is none."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if not word.endswith("ed") or len(word) < 5:
        return ""
    stem = word[:-2]
    if stem.endswith("i"):
        return f"{stem[:-1]}y"
    for base in (stem, f"{stem}e", stem[:-1] if stem[-1] == stem[-2] else stem):
        if base in vocabulary:
            return base
    if stem[-1] == stem[-2] and stem[-1] not in "lsz":
        return stem[:-1]
    return f"{stem}e" if _DROPS_E.search(stem) else stem
