"""Answers made of what the session's own earlier calls gave and got: levels, logins, counters, texts written before.

In: the calls of a tool that no other rule answers, each with the calls of its session before it. Out: a `carried` rule
(runtime/carried.py), or None. The answers are explained leaf by leaf: by the arguments, by the time of the call, or by a value
of the latest call of some tool, as it was, as the next name, or with a number that is given added or taken away. Each such
explanation must be right in every call for which the session tells it; calls in between that speak against it are barriers, and
only tools (and calls of tools that name the same) that were seen in between pass. Rules of each half of the sessions are tried
on the other half.
Sees: counters that begin alike in all sessions. Does not see: what a session began with, and values that several calls made.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from env_builder.behaviour import volatile
from env_builder.behaviour.answers import constant
from env_builder.behaviour.evidence import NOTHING, UNEXPLAINED, Induced, Rule, ToolEvidence
from env_builder.behaviour.examples import WriteExample, same
from env_builder.behaviour.synthesis import affixed, explain
from env_builder.behaviour.templates import limits
from env_builder.behaviour.trials import half_of
from env_builder.runtime import clock
from env_builder.runtime.answers import parse
from env_builder.runtime.canonical import canonical
from env_builder.runtime.carried import NAMING, Path, Recall, Source, given, is_scalar, recall, record_of, value_at
from env_builder.runtime.expressions import NOW, NoValue, evaluate
from env_builder.runtime.notations import written_in
from env_builder.runtime.numbering import next_name
from env_builder.runtime.precedents import PastCall, PastCalls, followed
from env_builder.runtime.rules import carried_answer
from env_builder.runtime.texts import shape_of
from env_builder.world.documents import STYLES
from env_builder.world.history import instant
from env_builder.world.replay import LoggedStep

MINIMUM_SESSIONS = 3
"""Sessions in which an explanation must be right, with as many different values."""
MINIMUM_CONSTANT = 5
"""Different questions after which a value that never varied is a constant."""
MINIMUM_HELD_OUT = 5
"""Calls of the other half that the rules of each half must answer rightly."""
MOST_EXAMPLES = 300
MOST_NAMING = 4
"""Sources that name what a call names, tried each by itself."""
MOST_WAYS = 3
"""Explanations of one value that are compared."""
MOST_WRONG = 0.01
"""Share of held-out answers that may be wrong."""
MAXIMUM_DEPTH = 4
Expression = list[Any]
Notations = Sequence[Sequence[Any]]
"""[until, notation] in order of time."""


class SessionExample(NamedTuple):
    """A call and the calls of its session before it."""

    step: LoggedStep
    arguments: dict[str, Any]
    past: PastCalls
    value: Any
    """The answer as a JSON value, or its text."""


class CarriedValue(NamedTuple):
    """A value of an answer that a source explains."""

    source: Source
    path: Path
    how: str
    """`as_is`, `next`, or `plus` or `minus` an argument."""
    argument: str | None
    passes: frozenset[str]
    right: frozenset[int]
    """Places of the examples that it explains."""


def pasts(steps: Iterable[LoggedStep]) -> dict[str, PastCalls]:
    """Return the calls of its session before each call, by event."""
    before: dict[str, PastCalls] = {}
    for _, session in groupby(steps, key=lambda step: step.call.session_id):
        past: PastCalls = ()
        for step in session:
            call = step.call
            before[call.event_id] = past
            past = followed(past, PastCall(call.tool, call.key, call.content, call.failed))
    return before


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that no other rule answers, where every session starts from the same state."""
    if not evidence.shared.pasts or not evidence.has_only(*UNEXPLAINED, "makes", "changes"):
        return NOTHING
    notations = evidence.documented.get("notations", ())
    rule = _rule(evidence.steps, evidence.shared.pasts, notations)
    return Induced([rule]) if rule is not None and _holds(evidence.steps, evidence.shared.pasts, notations) else NOTHING


def _holds(steps: list[LoggedStep], before: dict[str, PastCalls], notations: Notations) -> bool:
    """Are the rules of each half right about the other half's calls?"""
    n_right = n_wrong = 0
    for half in (0, 1):
        rule = _rule([step for step in steps if half_of(step) != half], before, notations)
        for step in (step for step in steps if rule and half_of(step) == half):
            is_right = _is_right(rule or {}, step, before, notations)
            n_right += is_right is True
            n_wrong += is_right is False
    return n_right >= MINIMUM_HELD_OUT and n_wrong <= MOST_WRONG * n_right


def _rule(steps: list[LoggedStep], before: dict[str, PastCalls], notations: Notations = ()) -> Rule | None:
    """Return the rule of one tool; where nothing explains all calls, of those that name what an earlier call named."""
    done = [step for step in steps if not step.call.failed and (not notations or step.call.parsed is not None)][:MOST_EXAMPLES]
    style = _style([step.call.content for step in done])
    examples = [SessionExample(step, given(step.call.arguments), before[step.call.event_id],
                        step.call.content if style is None else json.loads(step.call.content)) for step in done]
    whole = _usual(examples, style, None)
    if whole is not None and _is_borne_out(whole, steps, before, notations):
        return whole
    for source in [source for source in _sources(examples) if source.by][:MOST_NAMING]:
        own = [one for one in examples if _names_it(recall(source, one.arguments, one.past))]
        rule = _usual(own, style, source)
        if rule is not None and _is_borne_out(rule, steps, before, notations):
            return rule
    return None


def _names_it(recalled: Recall) -> bool:
    """Return whether the session tells of the source, and nothing since then names the same."""
    return recalled.record is not None and not any(label.endswith(NAMING) for label in recalled.between)


def _usual(examples: list[SessionExample], style: dict[str, Any] | None, source: Source | None) -> Rule | None:
    """Return the rule that explains all the calls; else those without arguments that few of them give."""
    while len(examples) >= MINIMUM_CONSTANT:
        rule = _explained(examples, style, source)
        rarest = _rarest(examples) if rule is None else None
        if rarest is None:
            return rule
        examples = [one for one in examples if rarest not in one.arguments]
    return None


def _rarest(examples: list[SessionExample]) -> str | None:
    """Return the argument that the fewest calls give, None where all give the same."""
    n = Counter(name for one in examples for name in one.arguments)
    seldom = sorted((count, name) for name, count in n.items() if 5 * count <= len(examples))
    return seldom[0][1] if seldom else None


def _is_numbered(value: Expression) -> bool:
    """Is it a constant with a number in it, as names have?"""
    return value[0] == "constant" and not isinstance(value[1], bool) and any(map(str.isdigit, str(value[1])))


def _style(contents: list[str]) -> dict[str, Any] | None:
    """Return the JSON style in which all are written, None for texts."""
    try:
        values = [json.loads(content) for content in contents]
    except (ValueError, RecursionError):
        return None
    return next((dict(style) for style in STYLES if all(
        json.dumps(value, **style) == content for value, content in zip(values, contents, strict=True))), None)


def _is_borne_out(rule: Rule, steps: list[LoggedStep], before: dict[str, PastCalls], notations: Notations) -> bool:
    """Is the rule right in several sessions, and in no call wrong?"""
    sessions: set[str] = set()
    n_wrong = 0
    for step in steps:
        is_right = _is_right(rule, step, before, notations)
        n_wrong += is_right is False
        sessions |= {step.call.witness} if is_right else set()
    return len(sessions) >= MINIMUM_SESSIONS and n_wrong <= MOST_WRONG * len(sessions)


def _is_right(rule: Rule, step: LoggedStep, before: dict[str, PastCalls], notations: Notations) -> bool | None:
    """Return whether the rule gives the answer but for the time of the call, None where it gives none, or none that the tool's
    notation has a place for."""
    content = carried_answer(rule, step.call.arguments, before[step.call.event_id], partial(_clock, step))
    if content is None or written_in(content, notations, instant(step.call.called_at)) is None:
        return None
    if step.call.failed or content == step.call.content:
        return not step.call.failed
    paths = volatile.paths(rule["value"])
    return bool(paths) and _timeless(content, paths) == _timeless(step.call.content, paths)


def _clock(step: LoggedStep, kind: str, key: str) -> Any:
    """Return the instant of the call, else the one that counts without a clock."""
    return None if kind != NOW else step.call.called_at.isoformat() if step.call.called_at else None if key == "exact" else key


def _timeless(content: str, paths: list[volatile.Path]) -> Any:
    """Return the value of an answer with the forms of what nobody can foretell in their place."""
    whole = parse(content)
    for *names, last in paths:
        value = value_at(whole, tuple(names))
        if isinstance(value, dict) and last in value:
            value[last] = (clock.read(value[last]) or (None,))[0]
    return whole


def _explained(examples: list[SessionExample], style: dict[str, Any] | None, source: Source | None) -> Rule | None:
    sources = SourceChoice(examples)
    if source is not None and not sources.need(source):
        return None
    value = _value(examples, (), sources)
    stamps = {"stamps": True} if value is not None and volatile.paths(value) else {}
    is_needless = source is not None and '["before", "0"' not in json.dumps(value)
    if value is None or is_needless or not (sources.used or stamps):
        return None
    names = set[str]().union(*(one.arguments for one in examples))
    contents = {name for name in names if f'["argument", "{name}"' in json.dumps(value)}
    return {"rule": "carried", "value": value, "style": style, "sources": sources.written(),
            "when": {**limits([one.arguments for one in examples], contents), "shapes": _shapes(examples)},
            "needs": source is not None, **stamps}


def _shapes(examples: list[SessionExample]) -> dict[str, list[str]]:
    """Return the shapes of the arguments whose values have digits and hardly differ in shape."""
    shapes: dict[str, list[str]] = {}
    for name in sorted(set[str]().union(*(one.arguments for one in examples))):
        values = {value for one in examples if isinstance(value := one.arguments.get(name, ""), str) and value}
        own = sorted(set(map(shape_of, values)))
        if len(values) >= MINIMUM_SESSIONS * max(1, len(own)) and all(any(map(str.isdigit, value)) for value in values):
            shapes[name] = own
    return shapes


def _value(examples: list[SessionExample], path: Path, sources: SourceChoice) -> Expression | None:
    """Return the expression of the value at a path of the answers."""
    values = [value_at(one.value, path) for one in examples]
    plain = _of_arguments(examples, values)
    if plain is not None:
        return sources.first_only(plain) if _is_numbered(plain) else plain
    return (_stamped(examples, values) if path else None) or _fields(examples, path, sources, values) or sources.explain(values)


def _stamped(examples: list[SessionExample], values: list[Any]) -> Expression | None:
    """Return the time of the call."""
    timed = sum(one.step.call.called_at is not None for one in examples)
    if timed == len(examples):
        return volatile.now([WriteExample({}, one.arguments, value, partial(_clock, one.step))
                             for one, value in zip(examples, values, strict=True)])
    by_session: dict[str, list[Any]] = defaultdict(list)
    witnesses: dict[str, set[str]] = defaultdict(set)
    for one, value in zip(examples, values, strict=True):
        by_session[one.step.call.session_id].append(value)
        witnesses[one.step.call.key].add(one.step.call.witness)
    return None if timed else volatile.stamps(by_session.values(), sum(len(ids) - 1 for ids in witnesses.values()))


def _fields(examples: list[SessionExample], path: Path, sources: SourceChoice, values: list[Any]) -> Expression | None:
    """Return the expression of objects that all have the same fields, field by field."""
    shapes = {tuple(value) if isinstance(value, dict) else None for value in values}
    shape = shapes.pop()
    if shapes or not shape or len(path) > MAXIMUM_DEPTH:
        return None
    fields: list[list[Any]] = []
    for name in shape:
        expression = _value(examples, (*path, name), sources)
        if expression is None:
            return None
        fields.append([name, expression])
    return ["object", fields]


def _of_arguments(examples: list[SessionExample], values: list[Any]) -> Expression | None:
    """Return a constant, or what the arguments alone give."""
    if len({canonical(value) for value in values}) == 1:
        n_sessions, n_questions = (len(set(ids)) for ids in zip(
            *((one.step.call.witness, one.step.call.key) for one in examples), strict=True))
        return constant(values[0]) if n_questions >= MINIMUM_SESSIONS or n_sessions >= MINIMUM_CONSTANT else None
    if isinstance(values[0], dict):
        return None
    given = [WriteExample({}, one.arguments, value) for one, value in zip(examples, values, strict=True)]
    expression = affixed(given, 1) or explain(given, [])
    return None if expression is None or volatile.paths(expression) else expression


class SourceChoice:
    """The sources that a rule may read, and those that it reads."""

    def __init__(self, examples: list[SessionExample]) -> None:
        self._examples = examples
        self._recalls = {source: [recall(source, one.arguments, one.past) for one in examples] for source in _sources(examples)}
        self.used: list[tuple[Source, frozenset[str]]] = []

    def written(self) -> list[dict[str, Any]]:
        return [{"tool": source.tool, "by": [source.by[0], list(source.by[1])] if source.by else None, "passes": sorted(passes)}
                for source, passes in self.used]

    def explain(self, values: list[Any]) -> Expression | None:
        """Return what explains the values wherever the session tells it; of several such ways what they agree on."""
        ways = [way for source, recalls in self._recalls.items() for way in self._ways(source, recalls, values)]
        expressions: list[Expression] = []
        for way in _needed(_keyed_or_not(ways)):
            first, passes = self._first(way, values)
            place = self._place(way.source, way.passes | passes)
            read: Expression = ["before", place, *way.path]
            expressions.append(read if way.how == "as_is" else ["next", read] if way.how == "next"
                               else [way.how, read, ["argument", way.argument]])
            if first is not None:
                expressions.append(["same", ["before", place], ["constant", None], first])
        return None if not expressions else expressions[0] if len(expressions) == 1 else ["agree", *expressions]

    def need(self, source: Source) -> bool:
        """Read this source first: what it tells of is what the rule answers for. False where too few sessions have it."""
        recalls = self._recalls.get(source, [])
        self.used.append((source, frozenset[str]().union(*(each.between for each in recalls))))
        return bool(recalls)

    def first_only(self, value: Expression) -> Expression:
        """Return the value of a session's first call, where hardly any session made a second one."""
        own = Source(self._examples[0].step.call.tool)
        recalls = self._recalls.get(own) or [recall(own, one.arguments, one.past) for one in self._examples]
        if sum(each.record is not None for each in recalls) >= MINIMUM_SESSIONS:
            return value
        place = self._place(own, frozenset[str]().union(*(each.between for each in recalls)))
        return ["same", ["before", place], ["constant", None], value]

    def _place(self, source: Source, passes: frozenset[str]) -> str:
        one = source, passes
        if one not in self.used:
            self.used.append(one)
        return str(self.used.index(one))

    def _first(self, way: CarriedValue, values: list[Any]) -> tuple[Expression | None, frozenset[str]]:
        """Return (value of all calls of sessions that had not called the source, the calls that came before these)."""
        none_yet = [(value, one, each) for value, one, each in zip(
            values, self._examples, self._recalls[way.source], strict=True) if each.is_known and each.record is None]
        sessions = {one.step.call.witness for _, one, _ in none_yet}
        if way.source.by or len(sessions) < MINIMUM_CONSTANT or len({canonical(value) for value, _, _ in none_yet}) > 1:
            return None, frozenset()
        return constant(none_yet[0][0]), frozenset[str]().union(*(each.between for _, _, each in none_yet))

    def _ways(self, source: Source, recalls: list[Recall], values: list[Any]) -> Iterator[CarriedValue]:
        pairs = [(place, each) for place, each in enumerate(recalls) if each.record is not None]
        tried: set[tuple[Path, str, str | None]] = set()
        for place, each in pairs[:MINIMUM_SESSIONS]:
            for way in _hows(each.record, values[place], self._examples[place].arguments):
                if way not in tried:
                    tried.add(way)
                    carried = self._tried(source, way, pairs, values)
                    if carried is not None:
                        yield carried

    def _tried(
        self, source: Source, way: tuple[Path, str, str | None], pairs: list[tuple[int, Recall]], values: list[Any]
    ) -> CarriedValue | None:
        """Return the way with the calls that may come in between, None where it is not borne out."""
        path, how, argument = way
        right: list[int] = []
        between: dict[int, frozenset[str]] = {}
        wrong: list[frozenset[str]] = []
        for place, each in pairs:
            value = value_at(each.record, path)
            if value is None:
                continue
            between[place] = frozenset(each.between)
            if same(_made(value, how, self._examples[place].arguments.get(argument or "")), values[place]):
                right.append(place)
            else:
                wrong.append(between[place])
        barriers = _barriers(wrong, Counter(label for place in right for label in between[place]))
        if barriers is None:
            return None
        right = [place for place in right if between[place].isdisjoint(barriers)]
        sessions = {self._examples[place].step.call.witness for place in right}
        if len({canonical(values[place]) for place in right}) < MINIMUM_SESSIONS:
            return None
        if len(sessions) < MINIMUM_SESSIONS and how != "next":  # a number that counts up is no coincidence in one session
            return None
        passes = frozenset[str]().union(*(between[place] for place in right))
        return CarriedValue(source, path, how, argument, passes, frozenset(right))


def _keyed_or_not(ways: list[CarriedValue]) -> list[CarriedValue]:
    """Return the ways without those by the latest call of a tool, where one by a shared value explains as much, and without
    those by a shared value, where the latest call explains more, or counts as well."""
    counters = {(way.source.tool, way.path): way.right for way in ways if way.how == "next" and not way.source.by}
    ways = [way for way in ways if way.how != "next" or not way.source.by  # one number for all calls, as far as the log tells
            or not way.right <= counters.get((way.source.tool, way.path), frozenset())]
    n_latest = {way.source.tool: 0 for way in ways}
    n_keyed = dict(n_latest)
    for way in ways:
        counts = n_keyed if way.source.by else n_latest
        counts[way.source.tool] = max(counts[way.source.tool], len(way.right))
    return [way for way in ways if (n_keyed[way.source.tool] >= n_latest[way.source.tool]) == (way.source.by is not None)]


def _needed(ways: list[CarriedValue]) -> list[CarriedValue]:
    """Return few ways that together explain what all explain, those of most examples first."""
    needed: list[CarriedValue] = []
    covered: set[int] = set()
    for way in sorted(ways, key=lambda way: (-len(way.right), len(way.path), str(way[:4]))):
        if len(way.right - covered) >= MINIMUM_SESSIONS and len(needed) < MOST_WAYS:
            needed.append(way)
            covered |= way.right
    return needed


def _barriers(wrong: list[frozenset[str]], n_right: Counter[str]) -> set[str] | None:
    """Return few labels that explain all wrong values, those seen least in right ones; None where one has none in between."""
    barriers: set[str] = set()
    for labels in sorted(wrong, key=lambda labels: (len(labels), sorted(labels))):
        if not labels:
            return None
        if barriers.isdisjoint(labels):
            barriers.add(min(labels, key=lambda label: (n_right[label], label)))
    return barriers


def _hows(record: Any, value: Any, arguments: dict[str, Any]) -> Iterator[tuple[Path, str, str | None]]:
    """Yield ways in which a value may come of a record."""
    for path, leaf in _walk(record, ()):
        sums = [(how, name) for how in ("plus", "minus") for name in sorted(arguments)]
        for how, name in (("as_is", None), ("next", None), *sums):
            if same(_made(leaf, how, arguments.get(name or "")), value):
                yield path, how, name


def _made(value: Any, how: str, argument: Any) -> Any:
    if how == "as_is":
        return value
    if how == "next":
        return next_name(value)
    expression: Expression = [how, ["constant", value], ["constant", argument]]
    try:
        return evaluate(expression, {}, {})
    except NoValue:
        return None


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if path and not isinstance(value, bool) and value is not None:
        yield path, value
    if isinstance(value, dict) and len(path) <= MAXIMUM_DEPTH:
        for name, item in value.items():
            yield from _walk(item, (*path, name))


def _sources(examples: list[SessionExample]) -> list[Source]:
    """Return the sources that several sessions have."""
    sessions: dict[Source, set[str]] = defaultdict(set)
    for one in examples:
        names = {value: name for name, value in sorted(one.arguments.items()) if is_scalar(value)}
        for call in one.past:
            if call.failed or call.content is None:
                continue
            own = one.step.call.witness
            sessions[Source(call.tool)].add(own)
            for path, leaf in _walk(record_of(call), ()):
                if is_scalar(leaf) and leaf in names:
                    sessions[Source(call.tool, (names[leaf], path))].add(own)
    mine = Source(examples[0].step.call.tool) if examples else None
    often = {source: len(ids) for source, ids in sessions.items() if len(ids) >= MINIMUM_SESSIONS or source == mine}
    return sorted(often, key=lambda source: (-often[source], str(source)))
