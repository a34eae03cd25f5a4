"""Tools that answer with what is known of a record they were not given the name of: found by what stands in it.

In: the calls of a tool, all records and rows that the log showed. Out: `find` rules, for each set of arguments. A record is a
candidate where its key or values stand in the answer and every argument in one of its fields; fields and template are those
that all examples with a known record share. Records that only mention the answer's words in a field count for what is left,
where every argument stands in one of their fields, whole or (`words`) as some of its words, whatever their capitals; such a
rule is tried on every question of the log, with the records that had been read by then: it must answer ten, and be wrong in no
more than one of a hundred. Sees: equal values and words in fields of objects. Does not see: a search for several records; what
no record mentions.

Which questions find nothing (a `nothing` rule) is decided from those that found something and those that did not, before any
write call that matters: what the tool says to several questions, while it answers each of the others differently, is that it
found nothing. Sees: arguments by which emptiness never varied; arguments with an order beyond whose range nothing was found.
Does not see: what is not in a collection for any other reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations, islice, product
from typing import Any

from env_builder.behaviour.evidence import (
    NOTHING,
    UNEXPLAINED,
    WORD,
    Induced,
    Rule,
    ShownRecords,
    ToolEvidence,
    one_or_none,
    texts_in,
)
from env_builder.behaviour.templates import shared
from env_builder.runtime.answers import parsed
from env_builder.runtime.selections import LEAST, Outcome, is_beyond, order
from env_builder.runtime.tables import ROWS, WORDS, Table, agreed, scalars, words_of
from env_builder.runtime.texts import filled
from env_builder.world.calls import order_of
from env_builder.world.replay import LoggedStep

MINIMUM_FOUND = 5
"""Different questions whose record is known: fewer may be chance."""
MAXIMUM_WAYS = 64
By = tuple[tuple[tuple[str, ...], str], ...]


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rules of a tool that reads, and whose answers speak of a record that its arguments describe."""
    is_read = evidence.effect != "write" and evidence.documented["class"] is None
    if not is_read or not evidence.has_only(*UNEXPLAINED):
        return NOTHING
    return Induced(find_rules(evidence.steps, evidence.shared.records))


def find_rules(steps: list[LoggedStep], records: ShownRecords) -> list[Rule]:
    """Return the `find` rules of one tool."""
    by_names: dict[tuple[str, ...], dict[str, LoggedStep]] = defaultdict(dict)
    for step in steps:
        if not step.call.failed and step.call.arguments:
            by_names[tuple(sorted(step.call.arguments))][step.call.key] = step
    induced: list[Rule] = []
    for _, alike in sorted(by_names.items()):
        examples = [alike[key] for key in sorted(alike)]
        if len(examples) >= MINIMUM_FOUND:
            rules = (rule for entity in (*records.classes, *sorted(records.rows)) for rule in _rule(examples, entity, records))
            induced += [rule for rule in [next(rules, None)] if rule]
    return induced


def _rule(examples: list[LoggedStep], entity: str, records: ShownRecords) -> Iterator[Rule]:
    common: set[By] | None = None
    for step in examples:
        here = _ways_of(step, entity, records)
        if here:
            common = here if common is None else common & here
    for by in sorted(common or (), key=lambda by: (sum(len(path) for path, _ in by), by)):
        hits = [(step, hit) for step in examples for hit in [_hit(step, entity, by, records)] if hit]
        template = shared([({"before": hit, "argument": step.call.arguments}, step.call.content) for step, hit in hits])
        if len(hits) < MINIMUM_FOUND or template is None:
            continue
        rule = {"rule": "find", "class": entity, "by": [[list(path), name] for path, name in by], "stable": False, **template}
        if _named_paths(rule):
            yield {**rule, "stable": is_stable(rule, records)}


def _named_paths(rule: Rule) -> list[tuple[str, ...]]:
    """Paths in a record of what the rule's answers hold."""
    return [tuple(piece[1:]) for piece in rule["pieces"] if isinstance(piece, list) and piece[0] == "before"]


def is_stable(rule: Rule, records: ShownRecords) -> bool:
    """Return whether what the rule looks for and tells never changed in a record."""
    paths = [tuple(path) for path, *_ in rule["by"]] + [path[1:] for path in _named_paths(rule) if path[0] == "document"]
    return not rule["class"].endswith(ROWS) and records.stable(rule["class"], paths)


def is_judged(rule: Rule) -> bool:
    """Return whether single calls judge a rule (`contradicts`): a `find` rule of records by whole values."""
    return rule["rule"] == "find" and not rule["class"].endswith(ROWS) and all(len(each) == 2 for each in rule["by"])


def contradicts(rule: Rule, step: LoggedStep, records: ShownRecords) -> bool:
    """Return whether a call speaks against a `find` rule: a record that its answer names holds the arguments in other fields,
    or would be told otherwise; or the call failed, though a record was once shown that holds them."""
    if {*step.call.arguments} != {name for _, name in rule["by"]}:
        return False
    by, kind = tuple((tuple(path), name) for path, name in rule["by"]), rule["class"]
    if step.call.failed:
        return bool(records.table(kind).matching(_wanted(by, step)))
    hit = _hit(step, kind, by, records)
    if hit is None:
        return bool(_ways_of(step, kind, records))
    return filled(rule, hit, step.call.arguments) != step.call.content


def confirmed(rules: list[Rule]) -> list[Rule]:
    """Return the rules; where they find records by values that change, the record is believed only of such as still hold them
    (what an answer on record named may have changed since, though nobody asked again)."""
    changing = (rule for rule in rules if rule["rule"] == "find" and not rule["stable"])
    finding = next((rule for rule in changing if not rule["class"].endswith(ROWS)), None)
    return rules if finding is None else [
        {**rule, "found": finding} if rule["rule"] == "recorded" else rule for rule in rules]


def _ways_of(step: LoggedStep, entity: str, records: ShownRecords) -> set[By]:
    """Fields, one for each argument, in which the arguments stand: of a record that the answer names, or together in a row."""
    holders = (records.rows[entity].holding(next(iter(step.call.arguments.values()))) if entity.endswith(ROWS)
               else [document for _, document in records.named(entity, step.call.content)])
    return set().union(*(_ways(step.call.arguments, dict(scalars(holder))) for holder in holders))


def _ways(arguments: dict[str, Any], fields: dict[tuple[str, ...], Any]) -> set[By]:
    options = [
        [(path, name) for path, value in fields.items() if type(value) is type(arguments[name]) and value == arguments[name]]
        for name in sorted(arguments)]
    return {by for by in islice(product(*options), MAXIMUM_WAYS) if len({path for path, _ in by}) == len(by)}


def _hit(step: LoggedStep, entity: str, by: By, records: ShownRecords) -> dict[str, Any] | None:
    """Return the record that the rule would speak of, as the slots of its template see it."""
    wanted = [(path, step.call.arguments[name]) for path, name in by]
    if entity.endswith(ROWS):
        row = agreed(records.rows[entity].matching(wanted))
        return None if row is None else {"key": "", "document": row}
    for key, document in records.named(entity, step.call.content):
        if Table([document]).matching(wanted):
            return {"key": key, "document": document}
    return None


MINIMUM_TOLD = 10
AGAINST = 0.01
FAIR = 40
"""Examples from which ways and template are made, and records that mention one answer."""
MOST_QUESTIONS = 200
"""Questions, evenly spread, from which ways are counted; each way is then tried on all."""
TRIED = 3
MentionedBy = tuple[tuple[Any, ...], ...]


def induce_mentioned(evidence: ToolEvidence) -> Induced:
    """Induce the rules of a tool that reads, and whose answers speak of a record that what others say describes."""
    is_read = evidence.effect != "write" and evidence.documented["class"] is None
    if not is_read or not evidence.has_only(*UNEXPLAINED, "find"):
        return NOTHING
    shown = [step for step in evidence.service.steps if step.shown]
    so_far = [rule for rule in evidence.rules if rule["rule"] == "find"]
    return Induced(mention_rules(evidence.steps, evidence.shared.records, shown, so_far))


def mention_rules(
    steps: list[LoggedStep], records: ShownRecords, reads: list[LoggedStep], rules_so_far: Iterable[Rule]
) -> list[Rule]:
    """Return `find` rules for what the rules so far leave. `reads`: all steps of the service that show a record."""
    by_names: dict[tuple[str, ...], list[LoggedStep]] = defaultdict(list)
    for step in steps:
        if step.call.arguments:
            by_names[tuple(sorted(step.call.arguments))].append(step)
    taken = {(tuple(sorted(name for _, name, *_ in rule["by"])), rule["class"]) for rule in rules_so_far}
    induced: list[Rule] = []
    for names, alike in sorted(by_names.items()):
        if len({step.call.key for step in alike if not step.call.failed}) >= MINIMUM_TOLD:
            rules = (_mention_rule(alike, kind, records, reads) for kind in records.classes if (names, kind) not in taken)
            induced += islice((rule for rule in rules if rule), 1)
    return induced


def _mention_rule(questions: list[LoggedStep], kind: str, records: ShownRecords, reads: list[LoggedStep]) -> Rule | None:
    holding = records.holding(kind)
    worked = [step for step in questions if not step.call.failed]
    common = {word for word, n in Counter(word for step in worked for word in _words(step)).items() if 2 * n > len(worked)}
    counts: Counter[MentionedBy] = Counter()
    for step in worked[::len(worked) // MOST_QUESTIONS + 1]:
        rows = [row for word in _words(step) - common for row in holding.get(word, ())[:FAIR]]
        counts.update({way for row in rows for way in _word_ways(step.call.arguments, dict(scalars(row["document"])))})
    best = sorted(counts, key=lambda by: (-counts[by], len(str(by)), str(by)))[:TRIED]
    for by in (by for by in best if counts[by] >= MINIMUM_TOLD):
        examples = (({"before": row, "argument": step.call.arguments}, step.call.content) for step in worked
                for row in records.table(kind).matching(_wanted(by, step)) if (_words(step) - common) & texts_in(row))
        template = shared(list(islice(examples, FAIR)))
        if template and any(isinstance(piece, list) and piece[0] == "before" for piece in template["pieces"]):
            rule: Rule = {
                "rule": "find", "class": kind, "by": [[list(path), *more] for path, *more in by], "stable": True, **template}
            if _holds(rule, by, questions, [step for step in reads if step.shown and step.shown[0] == kind]):
                return rule
    return None


def _holds(rule: Rule, by: MentionedBy, asking: list[LoggedStep], reads: list[LoggedStep]) -> bool:
    """Return whether the rule gives each logged answer among those it would give with what was shown by then."""
    table, right, wrong = Table(), set[str](), 0
    questions = {id(step) for step in asking}
    for step in sorted([*asking, *reads], key=lambda step: order_of(step.call)):
        if id(step) in questions:
            expected = {filled(rule, row, step.call.arguments) for row in table.matching(_wanted(by, step))}
            if len(expected) == 1 and None not in expected:
                right |= {step.call.key} if expected == {step.call.content} else set()
                wrong += expected != {step.call.content}
        elif step.shown:
            table.add({"key": step.shown[1], "document": parsed(step.shown[2])})
    return len(right) >= MINIMUM_TOLD and wrong <= AGAINST * len(right)


def _words(step: LoggedStep) -> set[str]:
    return set(WORD.findall(step.call.content))


def _wanted(by: MentionedBy, step: LoggedStep) -> list[tuple[Any, ...]]:
    return [(("document", *path), step.call.arguments[name], *how) for path, name, *how in by]


def _word_ways(arguments: dict[str, Any], fields: dict[tuple[str, ...], Any]) -> set[MentionedBy]:
    """Fields in which the arguments stand, each whole or as words."""
    options: list[list[tuple[Any, ...]]] = []
    for name in sorted(arguments):
        value, words = arguments[name], words_of(arguments[name])
        whole = [path for path, there in fields.items() if type(there) is type(value) and there == value]
        part = [path for path, there in fields.items() if words and words < words_of(there)]
        options.append([(path, name) for path in whole] or [(path, name, WORDS) for path in part])
    return set(islice(product(*options), MAXIMUM_WAYS))


MINIMUM_EMPTY = 3
"""Questions that must have found nothing, and as many that found something."""
MINIMUM_GROUPS = 10
"""Groups of questions with the same values that must agree: some of them full, some empty."""
MINIMUM_OF_KIND = 3


def induce_nothing(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a read that finds nothing for some arguments."""
    if evidence.effect != "read" or not evidence.has_only(*UNEXPLAINED, "find"):
        return NOTHING
    return one_or_none(nothing_rule(evidence.steps))


def nothing_rule(steps: list[LoggedStep]) -> dict[str, Any] | None:
    """Return the `nothing` rule of one tool."""
    by_question: dict[str, LoggedStep] = {}
    for step in steps:
        if not step.after and step.call.arguments:
            by_question.setdefault(step.call.key, step)
    names = Counter(tuple(sorted(step.call.arguments)) for step in by_question.values())
    if not names:
        return None
    usual = min(names, key=lambda one: (-names[one], one))
    mine = [step for _, step in sorted(by_question.items()) if tuple(sorted(step.call.arguments)) == usual]
    miss = _miss(mine)
    if miss is None:
        return None
    outcomes = [(step.call.arguments, step.call.content != miss.call.content) for step in mine]
    beyond = [name for name in usual if _has_ends(name, outcomes)]
    inside = [one for one in outcomes if not any(is_beyond(one[0], name, outcomes) for name in beyond)]
    by = list(_deciding(usual, inside))
    if not beyond and not by:
        return None
    return {
        "rule": "nothing", "content": miss.call.content, "is_error": miss.call.failed, "names": list(usual), "beyond": beyond,
        "by": by}


def _miss(steps: list[LoggedStep]) -> LoggedStep | None:
    """Return a call that found nothing: its answer was given to several questions, the other answers each to few."""
    counts = Counter(step.call.content for step in steps)
    if not counts:
        return None
    (content, n), *others = counts.most_common()
    empty = [step for step in steps if step.call.content == content]
    if n < MINIMUM_EMPTY or len(steps) - n < MINIMUM_EMPTY or any(2 * times > n for _, times in others):
        return None
    return empty[0] if not empty[0].call.parsed else None


def _has_ends(name: str, outcomes: list[Outcome]) -> bool:
    """Is there nothing beyond a range of the argument?"""
    full = {order(given[name]) for given, has_content in outcomes if has_content}
    return len(full) >= LEAST and None not in full and any(
        is_beyond(given, name, outcomes) for given, has_content in outcomes if not has_content)


def _deciding(names: tuple[str, ...], outcomes: list[Outcome]) -> Iterator[list[str]]:
    """Yield the smallest sets of arguments by which questions that find nothing and others never mix."""
    minimal: list[frozenset[str]] = []
    for n in range(1, len(names)):
        for some in combinations(names, n):
            if any(smaller <= frozenset(some) for smaller in minimal):
                continue
            groups: dict[str, list[bool]] = defaultdict(list)
            for given, full in outcomes:
                groups[str([given[name] for name in some])].append(full)
            several = [group for group in groups.values() if len(group) > 1]
            alike = Counter(group[0] for group in several if len(set(group)) == 1)
            enough = len(several) >= MINIMUM_GROUPS and min(alike[True], alike[False]) >= MINIMUM_OF_KIND
            if enough and alike.total() == len(several):
                minimal.append(frozenset(some))
                yield list(some)
