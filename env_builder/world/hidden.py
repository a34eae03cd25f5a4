"""What writes change besides the record that they show: found from reads of the records that hang together with it.

In: all steps. Out: for each tool its consequences (runtime/writing.py). A record hangs together with an act where a value of
the act's arguments, or of the document that it changed, is its key. A read before and a read after with just one such act
between is a sample; a place where samples differ is generalised by what the act names, and the number added there by what the
act speaks of. What explains most samples and changes no others is taken, and so on until nothing more is explained. Sees:
numbers that grow or shrink, texts and truth values that are set, lists that get one value more, in records one link away that
are looked at again. Does not see: other changes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from datetime import timedelta
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.runtime.expressions import SPOKEN, Look, NoValue, evaluate, nothing
from env_builder.runtime.writing import Consequence, Unknowable, applied
from env_builder.world.calls import order_of
from env_builder.world.changes import SLACK, Feed
from env_builder.world.documents import Documents, style_of
from env_builder.world.features import Expression, Feature, features, is_number, sums
from env_builder.world.fields import ABSENT, FieldSample, explain
from env_builder.world.replay import LoggedStep

MINIMUM_CHANGED = 3
TELLING_DIGITS = 4
"""Digits of a number from which two changes by different ones, both said alike, are no chance."""
MINIMUM_SHARE = 0.5
"""Share of the numbers that it changes which must come out as seen (others act too)."""
LIKELY_SHARE = 0.8
"""The same of texts and truth values: a few values are soon told by chance."""
SURE_SHARE = 0.95
"""The same where nobody else acted: every session starts from the same state, or row changes tell the moment."""
MAXIMUM_CONSEQUENCES = 3
FAIR = 40
"""Changed samples from which candidates are made."""
DIGITS = 2
MOMENT = timedelta(milliseconds=1)
LINKED = 0.5
"""Share of a tool's acts in which an expression must name a record of the class."""

Link = tuple[str, str]
"""(class, expression as JSON) by which an act names another record."""


class Sample(NamedTuple):
    """A record before and after one act."""

    before: Any
    arguments: dict[str, Any]
    look: Look
    there: Any
    after: Any
    classes: tuple[str, ...] = ()


def find(
    steps: list[LoggedStep], links: dict[str, list[Link]], documents: Documents, shared: bool, feeds: dict[str, Feed],
    relation: Mapping[str, Mapping[str, str]]
) -> dict[str, list[Consequence]]:
    """Consequences of every acting tool. `links`: of `links_of`; `feeds`: row changes, by class; `relation`: tool -> class ->
    keeps or changes."""
    if feeds:
        links = links_of(steps, documents, {(kind, key) for kind in feeds for key in feeds[kind].versions})
    consequences: dict[str, list[Consequence]] = {}
    classes = tuple(sorted(documents.classes))
    texts: dict[str, list[str]] = defaultdict(list)
    for step in steps:
        if step.shown:
            texts[step.shown[0]].append(step.shown[2])
    styles = {kind: style for kind, mine in texts.items() if (style := style_of(mine)) is not None}
    by_link = samples_of(steps, links, shared, documents, relation) | _fed(steps, links, feeds, documents)
    quiet = {link[0]: by_link.pop((tool, link)) for tool, link in sorted(by_link) if tool == QUIET}
    for (tool, link), samples in sorted(by_link.items()):
        samples = [sample._replace(classes=classes) for sample in samples]
        alone = not shared or link[0] in feeds
        learnt = _learnt(samples, link, classes, styles[link[0]], alone) if link[0] in styles else []
        if link[0] in styles:
            about = {"class": link[0], "key": json.loads(link[1]), "style": styles[link[0]]}
            learnt = _with_fields(learnt, samples, about, (SURE_SHARE,) if alone else FIELD_SHARES, quiet.get(link[0], []))
        if learnt:
            consequences.setdefault(tool, []).extend(learnt)
    return consequences


def spoken_of(step: LoggedStep, documents: Documents) -> str | None:
    """Text of the document that the act speaks of as it was; of an act that makes a record, as it made it; of one that shows
    none, its answer."""
    documented = documents.tools.get(step.call.tool)
    if documented is None:
        return step.call.content if isinstance(step.call.parsed, dict) else "{}"
    return step.shown[2] if documented.argument is None and step.shown else step.before


def _base(step: LoggedStep, documents: Documents) -> Any:
    """Return the same; as it is after the act where only that is known."""
    text = spoken_of(step, documents) or (step.shown[2] if step.shown else None)
    return {} if text is None else parsed(text)


def links_of(
    steps: list[LoggedStep], documents: Documents, fed: Set[tuple[str, str]] = frozenset()
) -> dict[str, list[Link]]:
    """By which expressions each acting tool names records of which class: shown ones, and those that are `fed`."""
    keys = {step.shown[:2] for step in steps if step.shown} | fed
    kinds = sorted({kind for kind, _ in keys})
    kinds_of: dict[str, list[str]] = defaultdict(list)
    for kind, key in sorted(keys):
        kinds_of[key].append(kind)
    affixed = [kind for kind in kinds if kind in documents.classes and any(documents.classes[kind].affix)]
    n_links: dict[str, Counter[Link]] = defaultdict(Counter)
    acts: Counter[str] = Counter()
    for step in steps:
        if not step.act:
            continue
        acts[step.call.tool] += 1
        near = features(_base(step, documents), step.call.arguments, lambda kind, key: None, ())
        two_hops = features({}, step.call.arguments, step.look, tuple(sorted(documents.classes)), plain=True)
        linked = [(expression, value) for expression, value in two_hops if expression[0] == "at" and len(expression) == 3]
        for expression, value in (*near, *linked):
            if isinstance(value, str | int) and expression[0] in ("before", "argument", "at"):
                text = str(value)
                for kind in kinds if affixed else kinds_of.get(text, ()):
                    name = (kind, documents.plain(kind, text) if affixed else text)
                    if name in keys and (step.shown is None or name != step.shown[:2]):
                        n_links[step.call.tool][kind, json.dumps(expression)] += 1
    links: dict[str, list[Link]] = {}
    for tool, counts in sorted(n_links.items()):
        best: dict[str, Link] = {}
        for link, n in sorted(counts.items(), key=lambda item: (-item[1], len(item[0][1]), item[0])):
            if n >= LINKED * acts[tool]:
                best.setdefault(link[0], link)
        links[tool] = sorted(best.values())
    return links


def named(link: Link, step: LoggedStep, documents: Documents) -> tuple[str, str] | None:
    """Return the record that the act names by this link."""
    try:
        key = evaluate(json.loads(link[1]), _base(step, documents), step.call.arguments, step.look)
    except NoValue:
        return None
    return (link[0], documents.plain(link[0], str(key))) if isinstance(key, str | int) else None


def samples_of(
    steps: list[LoggedStep], links: dict[str, list[Link]], shared: bool, documents: Documents,
    relation: Mapping[str, Mapping[str, str]],
) -> dict[tuple[str, Link], list[Sample]]:
    """Return reads of linked records around a single act; under QUIET, by class, those with none between."""
    samples: dict[tuple[str, Link], list[Sample]] = defaultdict(list)
    last: dict[tuple[str, ...], str] = {}
    acts: dict[tuple[str, ...], list[tuple[LoggedStep, Link]]] = defaultdict(list)
    ordered = sorted(steps, key=lambda step: order_of(step.call)) if shared else steps
    for step in ordered:
        scope = () if shared else (step.call.session_id,)
        if step.shown:
            name = (*scope, *step.shown[:2])
            if name in last and not acts[name] and not step.act:
                samples[QUIET, (step.shown[0], "")].append(
                    Sample({}, {}, nothing, parsed(last[name]), parsed(step.shown[2])))
            able = [one for one in acts[name] if relation[one[0].call.tool].get(step.shown[0]) != "keeps"]
            if name in last and len(able) == 1 and not step.act:
                act, link = able[0]
                before = spoken_of(act, documents)
                if before is not None:
                    samples[act.call.tool, link].append(Sample(
                        parsed(before), act.call.arguments, act.look, parsed(last[name]), parsed(step.shown[2])))
            last[name] = step.shown[2]
            acts[name] = []
        if step.act:
            for link in links.get(step.call.tool, ()):
                other = named(link, step, documents)
                if other is not None:
                    acts[(*scope, *other)].append((step, link))
    return samples


def _fed(
    steps: list[LoggedStep], links: dict[str, list[Link]], feeds: dict[str, Feed], documents: Documents
) -> dict[tuple[str, Link], list[Sample]]:
    """Return the same from row changes: the last version before each act and the last one just after it."""
    samples: dict[tuple[str, Link], list[Sample]] = defaultdict(list)
    for step in steps:
        at = step.call.called_at
        before = spoken_of(step, documents) if feeds else None
        if not step.act or at is None or before is None:
            continue
        for link in links.get(step.call.tool, ()):
            name = named(link, step, documents) if link[0] in feeds else None
            if name is None:
                continue
            there, after = (feeds[link[0]].at(name[1], when) for when in (at - MOMENT, at + SLACK))
            if there is not None and after is not None:
                samples[step.call.tool, link].append(
                    Sample(parsed(before), step.call.arguments, step.look, parsed(there), parsed(after)))
    return samples


def _learnt(
    samples: list[Sample], link: Link, classes: tuple[str, ...], style: dict[str, Any], alone: bool
) -> list[Consequence]:
    """Consequences that explain the samples, the best first. `alone`: nobody else acted between, so they must explain
    (nearly) everything that changed; else a record that is said to be known would not be."""
    consequences: list[Consequence] = []
    rest = samples
    for _ in range(MAXIMUM_CONSEQUENCES):
        changed = [sample for sample in rest if _moved(sample)]
        least = 2 if len(changed) == 2 and _telling(changed) else MINIMUM_CHANGED
        if len(changed) < least:
            break
        candidates = _candidates(changed[:FAIR], link, classes, style)
        if not candidates:
            break
        (right, wrong), _, place = max((_worth(one, rest), -len(str(one)), -place) for place, one in enumerate(candidates))
        best = candidates[-place]
        share = SURE_SHARE if alone else LIKELY_SHARE if "to" in best else MINIMUM_SHARE
        if right < least or right < (share if least == MINIMUM_CHANGED else 1) * (right - wrong):
            break
        consequences.append(best)
        rest = [sample._replace(there=_after(best, sample)) for sample in rest]
    n_unexplained = sum(sample.there != sample.after for sample in rest)
    return [] if n_unexplained > (1 - (SURE_SHARE if alone else MINIMUM_SHARE)) * len(rest) else consequences


QUIET = ""
"""Stands for the tool where nothing was done."""
FIELD_SHARES = (0.9, 0.6)
"""The same of each field, where others act too: what comes out so most often is believed, and else what comes out mostly."""


HARDLY = 0.5
"""Samples beside that share whose changes are not believed either."""


def _with_fields(
    learnt: list[Consequence], samples: list[Sample], about: Consequence, shares: tuple[float, ...], quiet: list[Sample]
) -> list[Consequence]:
    """Return the consequences with what the act makes of each field that they leave unexplained. `about`: the record; `quiet`:
    reads of such records with no act between, which tell how often a field changes by itself."""
    rest = [sample._replace(there=reduce(lambda there, one: _after(one, sample._replace(there=there)), learnt, sample.there))
            for sample in samples]
    names = sorted({str(path[0]) for sample in rest for path, _, _ in differences(sample.there, sample.after) if path} | {
        name for sample in rest if _are_objects(sample) for name in sample.there.keys() ^ sample.after.keys()})
    made: dict[str, Expression | None] = {}
    for name in names if len(samples) >= MINIMUM_CHANGED and all(map(_are_objects, samples)) else ():
        field_samples = [_of_field(sample, name) for sample in samples]
        made[name] = next((e for share in shares if (e := explain(field_samples, [name], share)) is not None), None)
        n_changed = sum(one.old is not one.new and one.old != one.new for one in field_samples)
        by_itself = sum(one.there.get(name) != one.after.get(name) for one in quiet if _are_objects(one)) / max(1, len(quiet))
        if made[name] is None and n_changed < (1 - shares[0] + 2 * by_itself) * len(samples) + HARDLY:
            del made[name]  # somebody else did it
    kept = [one for one in learnt if one["path"][0] not in made]
    return [*kept, {**about, "fields": made}] if made else kept


def _are_objects(sample: Sample) -> bool:
    return isinstance(sample.there, dict) and isinstance(sample.after, dict)


def _of_field(sample: Sample, name: str) -> FieldSample:
    arguments = {**sample.arguments, SPOKEN: sample.before}
    return FieldSample(
        sample.there, arguments, sample.look, sample.there.get(name, ABSENT), sample.after.get(name, ABSENT), sample.classes)


def _moved(sample: Sample) -> list[tuple[tuple[Any, ...], Any, Any]]:
    """Numbers, texts and truth values that differ before and after, and lists that have one value more at their end."""
    return [(path, old, new) for path, old, new in differences(sample.there, sample.after)
            if (is_number(old) and is_number(new)) or (_is_mark(old) and _is_mark(new))
            or (isinstance(old, list) and isinstance(new, list) and len(new) == len(old) + 1 and new[:-1] == old)]


def _telling(changed: list[Sample]) -> bool:
    """Did each change by one number of its own, of many digits?"""
    moved = [_moved(sample) for sample in changed]
    by = {str(round(abs(new - old), DIGITS)) for each in moved for _, old, new in each if is_number(old) and is_number(new)}
    return (all(len(each) == 1 for each in moved) and len(by) == len(changed)
            and all(sum(map(str.isdigit, text.rstrip("0"))) >= TELLING_DIGITS for text in by))


def _is_mark(value: Any) -> bool:
    return isinstance(value, str | bool)


def _after(one: Consequence, sample: Sample) -> Any:
    try:
        return applied(one, sample.there, sample.before, sample.arguments, sample.look)
    except Unknowable:
        return sample.there


def _worth(one: Consequence, samples: list[Sample]) -> tuple[int, int]:
    """Return (samples whose number it makes as it was seen afterwards, minus those where it makes another of it)."""
    right = wrong = 0
    for sample in samples:
        for path, _, new in differences(sample.there, _after(one, sample)):
            try:
                value = evaluate(["at", ["constant", sample.after], *path], {}, {})
            except NoValue:
                continue
            right += value == new
            wrong += value != new
    return right, -wrong


def differences(one: Any, other: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any, Any]]:
    """(path, here, there) of the leaves that differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [inner for name in one for inner in differences(one[name], other[name], (*path, name))]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [inner for place in range(len(one)) for inner in differences(one[place], other[place], (*path, place))]
    return [] if type(one) is type(other) and one == other else [(path, one, other)]


def _candidates(changed: list[Sample], link: Link, classes: tuple[str, ...], style: dict[str, Any]) -> list[Consequence]:
    """All ways to say one change of some sample, the ones that more samples say."""
    counts: Counter[str] = Counter()
    for sample in changed:
        counts.update({
            json.dumps({"over": over, "path": path, how: by}) for place, old, new in _moved(sample)
            for over, path, how, by in _sayings(sample, place, old, new, classes)})
    most = [text for text, n in sorted(counts.items(), key=lambda item: (-item[1], len(item[0]), item[0])) if n >= 2][:FAIR]
    return [
        {"class": link[0], "key": json.loads(link[1]), **one, "digits": digits, "style": style}
        for one in map(json.loads, most) for digits in ((None, DIGITS) if "by" in one else (None,))]


def _sayings(
    sample: Sample, place: tuple[Any, ...], old: Any, new: Any, classes: tuple[str, ...]
) -> Iterator[tuple[Expression | None, list[Any], str, Expression]]:
    """(over, path, how, by) that say this change, for the whole act and for each element of a list of its document."""
    if isinstance(new, list):
        yield from ((None, list(place), "more", e) for e, value in features(sample.before, sample.arguments, sample.look, ())
                    if type(value) is type(new[-1]) and value == new[-1])
        return
    if _is_mark(new) and any(isinstance(step, int) for step in place):
        return  # a place in a list names nothing
    if _is_mark(new):
        here = features(sample.before, sample.arguments, sample.look, ())
        marks: list[Expression] = [["constant", new], *(e for e, value in here if type(value) is type(new) and value == new)]
        yield from ((None, path, "to", e) for path in _paths(place, here) for e in marks)
        return
    yield from ((None, path, "by", by) for path, by in _said_in(sample.before, sample, place, old, new, classes))
    bare = sample._replace(arguments={})
    for name, row in ((name, row) for name, rows in sample.before.items() if isinstance(rows, list) for row in rows):
        if isinstance(row, dict):
            yield from ((["before", name], path, "by", by) for path, by in _said_in(row, bare, place, old, new, ()))


def _said_in(
    before: Any, sample: Sample, place: tuple[Any, ...], old: Any, new: Any, classes: tuple[str, ...]
) -> Iterator[tuple[list[Any], Expression]]:
    here = features(before, sample.arguments, sample.look, ())
    spoken = [*here, *sums(before, sample.arguments, sample.look, classes)]
    numbers = [(expression, value) for expression, value in spoken if is_number(value)]
    for path in _paths(place, here):
        for by, value in numbers:
            if round(old + value, DIGITS) == round(new, DIGITS):
                yield path, by
            if round(old - value, DIGITS) == round(new, DIGITS):
                yield path, ["negative", by]


def _paths(place: tuple[Any, ...], here: list[Feature]) -> Iterator[list[Any]]:
    """Yield the place, with steps also as what the act says: the field itself is always meant by its name."""
    steps = [[step, *(e for e, value in here if isinstance(step, str) and value == step)] for step in place[1:]]
    yield from map(list, product(place[:1], *steps))
