"""Programs of tools that change the record an argument names, or make a new one, and show it: one expression a field.

In: the steps of a tool whose answers show a document, with the document as it was just before. Out: a `write` or `create`
rule and the `check` rule before it, or None. A rule answers only where its guards hold (`guards`). Both are dropped if
failures in the log look to them like calls that work; one odd failure beside many calls is tolerated. Held-out halves of the
sessions measure what such rules answer.

A new record's name is the first that holds of: the n-th call of a session always gave this name; each number is one above
that of the call before; all names are different, of one shape, drawn at random.

Sees: the document, the arguments, other documents and rows that these name, one number in a name. Does not see: several
records changed alike; numbers that several tools share, or that restart.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from env_builder.behaviour import checks, guards, links, lists, volatile
from env_builder.behaviour.checks import MessageCase
from env_builder.behaviour.evidence import NOTHING, Induced, ToolEvidence
from env_builder.behaviour.examples import Expression, WriteExample, is_linked
from env_builder.behaviour.plain import shown
from env_builder.behaviour.synthesis import explain, made_of
from env_builder.behaviour.trials import Before, TrialCall, half_of
from env_builder.runtime.answers import parsed
from env_builder.runtime.ends import masked
from env_builder.runtime.expressions import DONE, Scope
from env_builder.runtime.numbering import Form, named, number_of
from env_builder.runtime.programs import answer
from env_builder.runtime.records import ToolAnswer
from env_builder.runtime.tables import Table
from env_builder.world.calls import order_of
from env_builder.world.documents import style_of
from env_builder.world.replay import LoggedStep

MINIMUM_NAMED = 5
GAPS = 0.02
"""Share of names that may leave a number out."""


def named_by(examples: list[WriteExample], showing: dict[str, Any], done: list[LoggedStep]) -> Expression | None:
    """Return the expression of the new records' names. `showing`: their class, and the field of the name."""
    key = showing["field"]
    names = [one.after.get(key) for one in examples]
    return (
        _counted(examples, key, done[0].call.tool) or _following(showing["class"], names, done)
        or volatile.fresh([one._replace(after=name) for one, name in zip(examples, names, strict=True)], key))


def _counted(examples: list[WriteExample], key: str, tool: str) -> Expression | None:
    """Return the name that the n-th call of a session always gave."""
    names: dict[int, set[Any]] = {}
    for example in examples:
        place = example.look(DONE, tool)
        if isinstance(place, int):
            names.setdefault(place, set()).add(example.after.get(key))
    given = [next(iter(names[place])) for place in range(len(names)) if len(names.get(place, ())) == 1]
    if not given or len({str(name) for name in names.values()}) < len(names) or len(given) < len(names):
        return None
    return ["nth", tool, given]


def _following(kind: str, names: list[Any], done: list[LoggedStep]) -> Expression | None:
    """Return the name after the one that was given last."""
    if len(names) < MINIMUM_NAMED or not all(step.call.called_at for step in done):
        return None
    in_order = [names[place] for place in sorted(range(len(names)), key=lambda place: order_of(done[place].call))]
    form = _form(in_order)
    numbers = [number_of(str(name), form) for name in in_order]
    if any(number is None or named(number, form) != name for number, name in zip(numbers, in_order, strict=True)):
        return None
    gaps = [after != before + 1 for before, after in pairwise(number for number in numbers if number is not None)]
    return ["following", kind, form] if sum(gaps) <= GAPS * len(gaps) else None


def _form(names: list[Any]) -> Form | None:
    """Return the form of the names: what stands around the last number in the first one."""
    numbered = re.fullmatch(r"(.*?)(\d+)(\D*)", str(names[0]))
    if numbered is None or isinstance(names[0], int):
        return None
    before, digits, after = numbered.groups()
    return [before, len(digits) if any(str(name).startswith(f"{before}0") for name in names) else 0, after]


def answered(
    rules: list[dict[str, Any]], step: LoggedStep, showing: dict[str, Any], rows: Mapping[str, Table]
) -> ToolAnswer | None:
    """Return what these rules say to the step's call. `showing`: `class` and `argument` by which the call names a record."""
    call = step.call
    name = (showing["class"], str(call.arguments.get(showing["argument"])))
    documents = {} if showing["argument"] is None or step.before is None else {name: step.before}
    return answer({"tool": call.tool, "rules": rules}, call.key, call.arguments, Before(TrialCall(step, documents), rows))


def right(reply: ToolAnswer, step: LoggedStep, rule: dict[str, Any]) -> bool:
    """Did the real tool say and make the same, but for what nobody can foretell from one session? `rule`: its maker."""
    if step.call.failed or reply.is_error:
        return reply.is_error and step.call.failed and reply.content == step.call.content
    if step.shown is None:
        return False
    loose = list(rule.get("volatile", []))
    if rule["rule"] == "create" and rule["fields"][rule["field"]][0] == "following":
        loose.append([rule["field"]])
    named = [rule.get("field")] not in loose
    return any((not named or name == step.shown[:2]) and masked(text, loose) == masked(step.shown[2], loose)
               for name, text in reply.documents)


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


class WriteContext(NamedTuple):
    """What is known of the tool beside its steps."""

    showing: Rule
    """How its answers show a document: class, key argument (None: it makes new records), frame."""
    classes: tuple[str, ...]
    rows: Mapping[str, Table] = NO_ROWS
    lasting: bool = False
    """Every session begins from the same world."""
    refusal: Rule | None = None
    """Its `refuse` rule, which comes before."""
    closed: tuple[str, ...] = ()
    """Fields that take few values in all records of the class."""


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rules of a tool that shows a document which its calls explain field by field; measured by held-out halves."""
    service, documented = evidence.service, evidence.documented
    showing = documented["rules"] or shown(evidence)
    if not showing or evidence.effect in ("constant", "pure") or not evidence.has_only("recorded", "refuse"):
        return NOTHING
    refusal = next((rule for rule in evidence.rules if rule["rule"] == "refuse"), None)
    around = WriteContext(
        showing[0], tuple(sorted(service.documents.classes)), evidence.shared.records.rows, service.starts_from == "reset",
        refusal, evidence.shared.records.closed(showing[0]["class"]))
    written = write_rules(evidence.steps, around)
    if written is None:
        return NOTHING
    *before, rule = written.rules
    done_by = done(rule, service.finals.get(rule["class"], {})) if rule["rule"] == "write" else {}
    also = service.also.get(evidence.tool) or links.consequences_of(service, evidence.tool, rule)
    last = {**rule, "also": also, **({"done": done_by} if done_by else {})}
    return Induced([*before, last], written.n_against, *held_out(evidence.steps, around))


def write_rules(steps: list[LoggedStep], around: WriteContext, checking: bool = True) -> Induced | None:
    """Return one tool's rules; where nothing explains all its calls, of those whose arguments have the usual shape (its guards
    answer no others). `checking`: also what refusals hang on beside the record itself."""
    induced = _induced(steps, around, checking)
    usual = _usual(steps) if induced is None else steps
    return induced if len(usual) == len(steps) else _induced(usual, around, checking)


def _usual(steps: list[LoggedStep]) -> list[LoggedStep]:
    """Return the steps without calls that worked whose arguments have another shape than nearly all of such."""
    shapes = Counter(_shape(step) for step in steps if not step.call.failed)
    usual, n = max(shapes.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    return [step for step in steps if step.call.failed or _shape(step) == usual] if n >= USUAL * shapes.total() else steps


def _shape(step: LoggedStep) -> str:
    """Names of the arguments, and of the fields of objects in their lists."""
    return str([(name, sorted({str(sorted(item)) for item in value if isinstance(item, dict)}))
                if isinstance(value, list) else name for name, value in sorted(step.call.arguments.items())])


def _induced(steps: list[LoggedStep], around: WriteContext, checking: bool) -> Induced | None:
    creating = around.showing["argument"] is None
    usable = [step for step in steps if creating or step.before is not None]
    done = [step for step in usable if step.shown and not step.call.failed]
    few = len(done) < MINIMUM_EXAMPLES
    if few and (creating or len({step.call.key for step in done}) < MINIMUM_COPIES):
        return None
    examples = [
        WriteExample(_before(step), step.call.arguments, json.loads(step.shown[2]), step.look, around.classes, around.rows)
        for step in done if step.shown]
    failed = [step for step in usable if step.call.failed]
    fields = _created(examples, around.showing, done) if creating else explained(examples)
    style = style_of([step.shown[2] for step in done if step.shown])
    if fields is None or style is None or all(expression == ["before", name] for name, expression in fields.items()):
        return None
    if few and not all(_is_copied(expression, [name]) for name, expression in fields.items()):
        return None
    when = guards.learn(examples, [(_before(step), step.call.arguments) for step in failed])
    if few:
        when["document"] = {name: guards.distinct(one.before.get(name) for one in examples) for name in around.closed}
    lengths = {name: limits for name, limits in when["lengths"].items() if len(limits) == 1 or _counts(fields, name)}
    rule = {
        **around.showing, "rule": "create" if creating else "write", "fields": fields, "order": list(examples[0].after),
        "style": style, "when": {**when, "lengths": lengths}}
    if not creating and any(map(is_linked, fields.values())) and all(one.after != one.before for one in examples):
        rule["moves"] = True
    loose = volatile.of_fields(fields)
    rule |= {"volatile": loose} if loose else {}
    before = [] if around.refusal is None else [around.refusal]
    open_ = [step for step in failed if answered(before, step, around.showing, around.rows) is None] if before else failed
    check = check_rule(open_, done, rule, around) if checking else None
    own = [check, rule] if check else [rule]
    replies = [(answered([*before, *own], step, around.showing, around.rows), step) for step in failed]
    odd = [step for reply, step in replies if reply is not None and not right(reply, step, rule)]  # refused in other words
    if len({step.call.key for step in odd}) > max(AGAINST * len(done), 1 if len(done) >= MANY else 0):
        return None
    return Induced(own, len(odd))


def _is_copied(expression: Any, path: list[str]) -> bool:
    """Is the field at the path as it was, or what was given under its name? Of an object, all its fields."""
    if expression[0] == "agree":
        return all(_is_copied(one, path) for one in expression[1:])
    if expression[0] == "object":
        return all(_is_copied(one, [*path, name]) for name, one in expression[1])
    return expression in (["before", *path], ["argument", path[-1]])


def _before(step: LoggedStep) -> Any:
    return {} if step.before is None else parsed(step.before)


def check_rule(odd: list[LoggedStep], done: list[LoggedStep], rule: Rule, around: WriteContext) -> Rule | None:
    """Return the `check` rule before one that answers calls which worked. `odd`: failed calls that no other rule refuses."""
    cases = [
        MessageCase(Scope(_before(step), step.call.arguments, cache(step.look)), step.call.key,
             step.call.content if step.call.failed else None) for step in (*odd, *done)]
    messages = checks.induce(cases, checks.KnownTerms(rule["fields"], around.classes, around.rows, around.lasting))
    when = guards.of_arguments([case.scope.arguments for case in checks.understood(messages, cases)])
    return {"rule": "check", "class": rule["class"], "argument": rule["argument"], "messages": messages,
            "when": when} if messages else None


def _created(examples: list[WriteExample], showing: Rule, done: list[LoggedStep]) -> dict[str, Any] | None:
    """Expressions of all fields of a new record, its name among them."""
    key = showing["field"]
    name = named_by(examples, showing, done)
    fields = None if name is None else explained([
        example._replace(after={field: value for field, value in example.after.items() if field != key})
        for example in examples])
    return None if fields is None else {key: name, **fields}


def _counts(expression: Any, name: str) -> bool:
    """Return whether the list's length matters: an expression takes an element by its position."""
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


def held_out(steps: list[LoggedStep], around: WriteContext) -> tuple[float | None, float]:
    """(exact of answered, share not answered) where each half of the sessions is answered by the other half's rules."""
    exact = answers = n = 0
    creating = around.showing["argument"] is None
    for half in (0, 1):
        rest = [step for step in steps if half_of(step) != half]
        written = write_rules(rest, around)
        held_out_steps = [step for step in steps if half_of(step) == half and (creating or step.before is not None)]
        n += len(held_out_steps)
        if written:
            rules = [*([around.refusal] if around.refusal else []), *written.rules]
            replies = [(answered(rules, step, around.showing, around.rows), step) for step in held_out_steps]
            answers += sum(one is not None for one, _ in replies)
            exact += sum(one is not None and right(one, step, rules[-1]) for one, step in replies)
    return (exact / answers if answers else None), (1 - answers / n if n else 1.0)


def explained(examples: list[WriteExample]) -> dict[str, Any] | None:
    """Expression of every field that the document has afterwards, None where one is not explained."""
    names = {tuple(sorted(example.after)) for example in examples}
    always = set.intersection(*(set(names_of_one) for names_of_one in names))
    fields: dict[str, Any] = {}
    missing: list[str] = []
    having = {name: [one._replace(after=one.after[name]) for one in examples if name in one.after]
              for name in sorted(set().union(*names))}
    for name, targets in having.items():
        expression = explain(targets, [name]) or lists.mapped(targets, [name])
        if expression is None:
            missing.append(name)
        elif name not in always and expression != ["before", name]:
            return None
        else:
            fields[name] = expression
    made_of({name: having[name] for name in missing if name in always}, fields, [one.after for one in examples])
    for name in [name for name in missing if name not in fields]:  # what is made of other fields
        expression = lists.grown(having[name], [name], fields, explain) if name in always else None
        if expression is None:
            return None
        fields[name] = expression
    return fields
