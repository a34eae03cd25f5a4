"""Programs of tools that change the thing an argument names, or make a new one, and show it: one expression a field.

In: the steps of a tool whose answers show a document, with the document as it was just before. Out: a `write` or `create` rule
and the `check` rule before it, or None. A rule answers only where its guards hold (`guards`); both are dropped where logged
failures look to them like calls that work; one odd failure beside many calls is borne.
Sees: the document, the arguments, other documents and rows that these name. Does not see: several things changed alike.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from env_builder.behaviour import checks, guards, joins, naming, volatile
from env_builder.behaviour.examples import Example
from env_builder.behaviour.standing import answered, right
from env_builder.behaviour.synthesis import explain
from env_builder.behaviour.wording import Case
from env_builder.runtime.answers import parsed
from env_builder.runtime.canonical import digest
from env_builder.runtime.expressions import Scope
from env_builder.runtime.tables import Table
from env_builder.world.documents import STYLES
from env_builder.world.replay import Step

MINIMUM_EXAMPLES = 5
"""Fewer leave too much to coincidence: wrong answers of the prototype came from tools with 3 to 5."""
MINIMUM_COPIES = 2
"""Different calls that are enough where the tool merely puts what it is given where it is named so."""
AGAINST = 0.02
"""Share of logged failures among the calls that the rule would answer, from which it is dropped."""
MANY = 20
"""Calls that worked from which one odd failure is borne."""
USUAL = 0.8
"""Share of the calls that worked that must have one shape, where only those are explained."""
NO_ROWS: Mapping[str, Table] = MappingProxyType({})
Rule = dict[str, Any]


class Around(NamedTuple):
    """What is known of the tool beside its steps."""

    showing: Rule
    """How its answers show a document: class, key argument (None: it makes new things), frame."""
    classes: tuple[str, ...]
    rows: Mapping[str, Table] = NO_ROWS
    lasting: bool = False
    """Every session begins from the same world."""
    refusal: Rule | None = None
    """Its `refuse` rule, which comes before."""
    closed: tuple[str, ...] = ()
    """Fields that take few values in all things of the class."""


class Written(NamedTuple):
    """Rules in the order in which they are tried, and what speaks for and against them."""

    rules: list[Rule]
    n_support: int
    n_against: int


def induce(steps: list[Step], around: Around, checking: bool = True) -> Written | None:
    """The rules of one tool; where nothing explains all its calls, of those whose arguments have the usual shape (its guards
    answer no others). `checking`: also what refusals hang on beside the thing itself."""
    found = _induced(steps, around, checking)
    usual = _usual(steps) if found is None else steps
    return found if len(usual) == len(steps) else _induced(usual, around, checking)


def _usual(steps: list[Step]) -> list[Step]:
    """The steps without calls that worked whose arguments have another shape than nearly all of such."""
    shapes = Counter(_shape(step) for step in steps if not step.call.failed)
    usual, n = max(shapes.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    return [step for step in steps if step.call.failed or _shape(step) == usual] if n >= USUAL * shapes.total() else steps


def _shape(step: Step) -> str:
    """Names of the arguments, and of the fields of objects in their lists."""
    return str([(name, sorted({str(sorted(item)) for item in value if isinstance(item, dict)}))
                if isinstance(value, list) else name for name, value in sorted(step.call.arguments.items())])


def _induced(steps: list[Step], around: Around, checking: bool) -> Written | None:
    creating = around.showing["argument"] is None
    told = [step for step in steps if creating or step.before is not None]
    done = [step for step in told if step.shown and not step.call.failed]
    few = len(done) < MINIMUM_EXAMPLES
    if few and (creating or len({step.call.key for step in done}) < MINIMUM_COPIES):
        return None
    examples = [
        Example(_before(step), step.call.arguments, json.loads(step.shown[2]), step.look, around.classes, around.rows)
        for step in done if step.shown]
    failed = [step for step in told if step.call.failed]
    fields = _created(examples, around.showing, done) if creating else explained(examples)
    style = style_of(done)
    if fields is None or style is None or all(expression == ["before", name] for name, expression in fields.items()):
        return None
    if few and not all(_is_copied(expression, [name]) for name, expression in fields.items()):
        return None
    when = guards.learn(examples, [(_before(step), step.call.arguments) for step in failed])
    if few:
        when["document"] = {name: guards.distinct(one.before.get(name) for one in examples) for name in around.closed}
    lengths = {name: seen for name, seen in when["lengths"].items() if len(seen) == 1 or _counts(fields, name)}
    rule = {
        **around.showing, "rule": "create" if creating else "write", "fields": fields, "order": list(examples[0].after),
        "style": style, "when": {**when, "lengths": lengths},
    }
    loose = volatile.of_fields(fields)
    rule |= {"volatile": loose} if loose else {}
    own = [rule] if around.refusal is None else [around.refusal, rule]
    odd = [step for step in failed if _answers(own, step, around)]
    if checking:
        check = _check([step for step in failed if not _refused(step, around)], done, rule, around)
        own = [*own[:-1], *([check] if check else []), rule]
        odd = [step for step in failed if _answers(own, step, around)]
    n_odd = len({step.call.key for step in odd})
    if n_odd > max(AGAINST * len(done), 1 if len(done) >= MANY else 0):
        return None
    return Written([one for one in own if one is not around.refusal], len(done), len(odd))


def _is_copied(expression: Any, path: list[str]) -> bool:
    """Is the field at the path as it was, or what was given under its name? Of an object, all its fields."""
    if expression[0] == "agree":
        return all(_is_copied(one, path) for one in expression[1:])
    if expression[0] == "object":
        return all(_is_copied(one, [*path, name]) for name, one in expression[1])
    return expression in (["before", *path], ["argument", path[-1]])


def _before(step: Step) -> Any:
    return {} if step.before is None else parsed(step.before)


def _answers(rules: list[Rule], step: Step, around: Around) -> bool:
    """Do the rules answer a call that failed, and in other words?"""
    found = answered(rules, step, around.showing, around.rows)
    return found is not None and not right(found, step, rules[-1])


def _refused(step: Step, around: Around) -> bool:
    """Does the `refuse` rule answer the call?"""
    if around.refusal is None:
        return False
    return answered([around.refusal], step, around.showing, around.rows) is not None


def _check(odd: list[Step], done: list[Step], rule: Rule, around: Around) -> Rule | None:
    """The `check` rule that tells these failures from the calls that worked."""
    cases = [
        Case(Scope(_before(step), step.call.arguments, cache(step.look)), step.call.key,
             step.call.content if step.call.failed else None) for step in (*odd, *done)]
    messages = checks.induce(cases, checks.Known(rule["fields"], around.classes, around.rows, around.lasting))
    when = guards.of_arguments([case.scope.arguments for case in checks.understood(messages, cases)])
    return {"rule": "check", "class": rule["class"], "argument": rule["argument"], "messages": messages,
            "when": when} if messages else None


def _created(examples: list[Example], showing: Rule, done: list[Step]) -> dict[str, Any] | None:
    """Expressions of all fields of a new thing, its name among them."""
    key = showing["field"]
    name = naming.explained(examples, showing, done)
    fields = None if name is None else explained([
        example._replace(after={field: value for field, value in example.after.items() if field != key})
        for example in examples])
    return None if fields is None else {key: name, **fields}


def _counts(expression: Any, name: str) -> bool:
    """Does it matter how long the list is: does an expression take an element by its position?"""
    if isinstance(expression, dict):
        return any(_counts(one, name) for one in expression.values())
    if not isinstance(expression, list):
        return False
    if expression[:2] == ["before", name] and any(isinstance(step, int) for step in expression[2:]):
        return True
    return any(_counts(one, name) for one in expression)


def done(rule: dict[str, Any], finals: dict[str, list[Any]]) -> dict[str, Any]:
    """Field -> value: where the document has it, what the tool does is done, and nothing does it again. That is where the tool
    puts the value there, was never seen to work on a document that has it, and nothing ever changed one (`finals`)."""
    return {
        name: value for name, values in sorted(finals.items()) for value in values
        if rule["fields"].get(name) == ["constant", value] and value not in rule["when"]["document"].get(name, [value])}


def held_out(steps: list[Step], around: Around) -> tuple[float | None, float]:
    """(exact of answered, share not answered) where each half of the sessions is answered by the other half's rules."""
    exact = answers = n = 0
    creating = around.showing["argument"] is None
    for half in (0, 1):
        rest = [step for step in steps if _half(step) != half]
        written = induce(rest, around)
        asked = [step for step in steps if _half(step) == half and (creating or step.before is not None)]
        n += len(asked)
        if written:
            rules = [*([around.refusal] if around.refusal else []), *written.rules]
            found = [(answered(rules, step, around.showing, around.rows), step) for step in asked]
            answers += sum(one is not None for one, _ in found)
            exact += sum(one is not None and right(one, step, rules[-1]) for one, step in found)
    return (exact / answers if answers else None), (1 - answers / n if n else 1.0)


def _half(step: Step) -> int:
    return int(digest(step.call.session_id), 16) % 2


def explained(examples: list[Example]) -> dict[str, Any] | None:
    """Expression of every field that the document has afterwards, None where one is not explained."""
    names = {tuple(sorted(example.after)) for example in examples}
    always = set.intersection(*(set(found) for found in names))
    fields: dict[str, Any] = {}
    left: list[str] = []
    for name in sorted(set().union(*names)):
        having = [example._replace(after=example.after[name]) for example in examples if name in example.after]
        expression = explain(having, [name]) or joins.mapped(having, [name])
        if expression is None:
            left.append(name)
        elif name not in always and expression != ["before", name]:
            return None
        else:
            fields[name] = expression
    for name in left:  # what is made of other fields
        having = [example._replace(after=example.after[name]) for example in examples if name in example.after]
        expression = joins.grown(having, [name], fields, explain) if name in always else None
        if expression is None:
            return None
        fields[name] = expression
    return fields


def style_of(done: list[Step]) -> dict[str, Any] | None:
    """How all the answers write JSON."""
    for style in STYLES:
        if all(json.dumps(json.loads(step.shown[2]), **style) == step.shown[2] for step in done if step.shown):
            return dict(style)
    return None
