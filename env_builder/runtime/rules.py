"""The kinds of rules of behaviour programs: what each answers (docs/behaviour.md).

In: a rule and its tool, made ready once (`RULES`); then canonical arguments, the arguments, and the state of the episode. Out:
a `ToolAnswer`, or None where the rule does not answer: it lacks a fact that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from .agreements import agree
from .answers import is_partial, parse, parsed
from .canonical import encoding
from .carried import given, recalled
from .confirmations import NO_NAME, answers_of, confirmation, naming_of
from .edited import Edited, answered_after
from .expressions import DONE, NAMES, Look, NoValue, evaluate, nothing, shared
from .filters import filtered
from .lists import Listing, put_together, read
from .precedents import PastCalls, precedent, situations
from .records import Tier, ToolAnswer
from .refusals import State, asks_of_document, invalid, refusal, refusing
from .selections import at, finds_nothing, selected
from .statuses import status_answer
from .tables import Wanted
from .texts import admits, calculated, filled
from .world import Name
from .writing import Writing, allowed, consequences, usual

Run = Callable[[str, dict[str, Any], State], ToolAnswer | None]
"""What a rule answers to canonical arguments, arguments, in a state; raises Untold where something speaks for a refusal."""
Rule = dict[str, Any]
Make = Callable[[Rule, str], Run]


def _arithmetic(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    formula = arguments.get(rule["argument"])
    return calculated(formula, rule["styles"]) if isinstance(formula, str) and len(arguments) == 1 else None


def _constant(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    return None if rule.get("first") and state.look(DONE, tool) != 0 else rule["content"]


def _text(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    """Say the sentence that all its answers have in common."""
    applies = admits(rule["when"], arguments) and not (rule.get("first") and state.look(DONE, tool) != 0)
    return filled(rule, {}, arguments, state.taught_answers(tool)) if applies else None


def _value(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    if not admits(rule["when"], arguments):
        return None
    try:
        value = evaluate(rule["value"], {}, arguments, state.look)
    except NoValue:
        return None
    return value if rule["style"] is None and isinstance(value, str) else json.dumps(value, **(rule["style"] or {}))


def _nothing(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    """Say that there is nothing, where other questions show it."""
    outcomes = ((given, content != rule["content"]) for given, content in state.answered(tool, arguments))
    return rule["content"] if finds_nothing(rule, arguments, outcomes) else None


def _whole(rule: Rule, state: State) -> Listing | None:
    content = state.shown(*rule["source"])
    return None if content is None else read(content)


def _select(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    whole = _whole(rule, state)
    return None if whole is None else selected(rule, whole, arguments)


def _filter(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    """Say what a search finds among what other searches show, without what write calls removed since."""
    removed: list[tuple[str, str]] = []
    for write in state.writes_on(tool):
        argument, field = rule["removes"].get(write.tool, (None, ""))
        if argument is None or write.answer is None or write.arguments.get(argument) is None:
            return None
        removed.append((field, str(write.arguments[argument])))
    answers = state.answered(tool, arguments)
    return filtered(rule, arguments, answers, removed) if answers else None


def _edited(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    """Say what a list shows after the write calls of the episode."""
    writes = state.writes_on(tool)
    edits = [Edited(write.tool, {"argument": write.arguments, "answer": parse(write.answer or ""),
                                 "before": None if write.before is None else parsed(write.before)}, write.answer is not None)
             for write in writes]
    return answered_after(rule, arguments, state.begun_answers(tool), edits) if edits else None


def _unlisted(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    whole = _whole(rule, state) if rule["argument"] in arguments else None
    listed = whole is None or arguments[rule["argument"]] in [at(value, rule["path"]) for value in whole.values]
    return None if listed else filled(rule, {}, arguments)


def _find(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    """Say what is known of the one entity, or the row, that holds the arguments."""
    if set(arguments) != {name for _, name, *_ in rule["by"]}:
        return None
    wanted: Wanted = [(tuple(path), arguments[name], *how) for path, name, *how in rule["by"]]
    matches = state.things(rule["class"], wanted, rule["stable"])
    texts = {filled(rule, {"key": name, "document": document}, arguments) for name, document in matches}
    return texts.pop() if len(texts) == 1 else None


def _named(rule: Rule, arguments: dict[str, Any]) -> Name | None:
    value = arguments.get(rule["argument"])
    return (rule["class"], str(value)) if isinstance(value, NAMES) else None


def _document(rule: Rule, tool: str) -> Run:
    argument, kind, before, after = rule["argument"], rule["class"], rule["before"], rule["after"]
    agreements = rule.get("agrees", ())

    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        value = arguments.get(argument)
        text = state.document((kind, str(value))) if isinstance(value, NAMES) else None
        if text is None or is_partial(text) or (agreements and not agree(agreements, arguments, parse(text))):
            return None
        return tuple.__new__(ToolAnswer, (before + text + after, False, "derived", ()))  # quicker

    return run


def _refuse(rule: Rule, tool: str) -> Run:
    asks, refuse = asks_of_document(rule), refusing(rule)

    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        name = _named(rule, arguments) if asks else None
        message = refuse(None if name is None else state.look(*name), arguments, state)
        return None if message is None else ToolAnswer(message, True, "induced")

    return run


def _check(rule: Rule, tool: str) -> Run:
    """Say no for what depends on the call: other documents, rows, sums."""
    is_usual, refuse = usual(rule["when"]), refusal(rule["messages"])

    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        name = _named(rule, arguments)
        before = {} if name is None else state.look(*name)
        message = refuse(state.scope(before, arguments)) if before is not None and is_usual(arguments) else None
        return None if message is None else ToolAnswer(message, True, "induced")

    return run


def written(writing: Writing, key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
    """Return the answer of a write, and what it leaves behind."""
    name = writing.named(arguments)
    text = None if name is None else state.document(name)
    if name is None or text is None:
        return None
    scope = state.scope(parsed(text), arguments)
    new = writing.document(scope)
    if new is None or is_partial(new):
        return None
    others = consequences(writing.also, scope) if writing.also else ()
    first, last = writing.framed
    return ToolAnswer(first + new + last, False, "induced", ((name, new), *others))


def _create(rule: Rule, tool: str) -> Run:
    """Make a new entity, field by field, and show it; and change what depends on it."""
    writing, field = Writing(rule), rule["field"]

    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        new = writing.document(state.scope({}, arguments))
        named = None if new is None else new.value[field]
        if new is None or not isinstance(named, NAMES) or state.look(writing.kind, str(named)) is not None:
            return None
        others = consequences(writing.also, state.scope(new.value, arguments))
        first, last = writing.framed
        return ToolAnswer(first + new + last, False, "induced", (((writing.kind, str(named)), new), *others))

    return run


def _is_usual(record: Any, values: dict[str, list[Any]]) -> bool:
    """Return whether the entity is known, with values that calls which worked found there."""
    return isinstance(record, dict) and all(record.get(field) in usual_values for field, usual_values in values.items())


def _answer(rule: Rule, tool: str) -> Run:
    """Say what the expression gives, over the arguments and the entity that one of them names."""
    is_allowed, value, encode = allowed(rule["when"]), shared(rule["value"]), encoding(rule["style"] or {})
    others = rule.get("named", ())

    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        name = _named(rule, arguments)
        before = {} if rule["argument"] is None else None if name is None else state.look(*name)
        if before is None or not is_allowed(before, arguments) or not all(
                _is_usual(state.look(kind, str(arguments.get(name))), values) for name, kind, values in others):
            return None
        try:
            given = value(state.scope(before, arguments))
        except NoValue:
            return None
        content = encode(given) if rule["style"] is not None else given if isinstance(given, str) else None
        return None if content is None else ToolAnswer(content, False, "induced")

    return run


def _recorded(rule: Rule, tool: str) -> Run:
    finding, editing = rule.get("found"), rule.get("edited", ())

    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        row = state.recorded(tool, key, arguments)
        reply: ToolAnswer | None = None if row is None else row["answer"]
        if editing and row is not None and row["after"] == [] and "n_write_calls" not in row and any(
                write.tool in editing for write in state.writes_on(tool)):
            return None
        if finding and row is not None and "n_write_calls" not in row and _has_moved(finding, row["content"], arguments, state):
            return None
        return reply

    return run


def _has_moved(finding: Rule, content: str, arguments: dict[str, Any], state: State) -> bool:
    """Did the answer name an entity that held the arguments at some time, and is not known to hold them now?"""
    if set(arguments) != {name for _, name, *_ in finding["by"]}:
        return False
    wanted: Wanted = [(tuple(path), arguments[name], *how) for path, name, *how in finding["by"]]
    named = any(filled(finding, {"key": name, "document": document}, arguments) == content
                for name, document in state.holders(finding["class"], wanted))
    return named and _find(finding, "", arguments, state) != content


def _confirm(rule: Rule, tool: str) -> Run:
    """Confirm the call, or say that what it names does not exist."""
    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        name, writes = rule["argument"], state.writes()
        naming = NO_NAME
        if name is not None:
            value = arguments.get(name)
            is_shown = isinstance(value, NAMES) and any(
                state.things(kind, [((column,), value)], False) for kind, column in rule["sources"])
            naming = naming_of(rule, str(value), is_shown, writes)
        reply = confirmation(rule, arguments, naming, answers_of(tool, writes))
        return None if reply is None else ToolAnswer(reply[0], reply[1], "induced")

    return run


def _always(rule: Rule, tool: str) -> Run:
    """Say what every session on record was told that asked just this."""
    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        row = state.always(tool, key, rule["kinds"], rule.get("passes"))
        return None if row is None else ToolAnswer(row["content"], row["is_error"], "derived")

    return run


def _precedent(rule: Rule, tool: str) -> Run:
    """Say what sessions were answered that had been told the same and done the same since."""
    find, keeps = precedent(rule), frozenset(rule["keeps"])

    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        outcome = find(situations(tool, key, state.past(), keeps))
        return None if outcome is None else ToolAnswer(*outcome, "derived")

    return run


def _status(rule: Rule, tool: str) -> Run:
    """Say what sessions were answered that had been shown the same value of a field."""
    def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
        return status_answer(rule, tool, key, state.past())

    return run


def carried_answer(rule: Rule, arguments: dict[str, Any], past: PastCalls, look: Look = nothing) -> str | None:
    """Return the answer that the session's calls so far tell, None where they do not."""
    own = given(arguments)
    if not admits(rule["when"], own):
        return None
    try:
        records = recalled(rule["sources"], own, past)
        if rule["needs"] and records.get("0") is None:
            return None
        value = evaluate(rule["value"], records, own, look)
    except NoValue:
        return None
    return json.dumps(value, **rule["style"]) if rule["style"] is not None else value if isinstance(value, str) else None


def _carried(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    return carried_answer(rule, arguments, state.past(), state.look)


def _parts(rule: Rule, tool: str, arguments: dict[str, Any], state: State) -> str | None:
    answers = state.always_answered(tool) if rule.get("always") else state.answered(tool, arguments)
    return put_together(rule, arguments, answers)


def _texting(text_of: Callable[[Rule, str, dict[str, Any], State], str | None], tier: Tier, is_error: bool = False) -> Make:
    """Return a kind of rule that answers with a text, where there is one."""
    def make(rule: Rule, tool: str) -> Run:
        fails = rule["is_error"] if rule["rule"] in ("nothing", "unlisted") else is_error

        def run(key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
            text = text_of(rule, tool, arguments, state)
            return None if text is None else ToolAnswer(text, fails, tier)

        return run

    return make


RULES: dict[str, Make] = {
    "recorded": _recorded, "always": _always, "precedent": _precedent, "status": _status, "confirm": _confirm,
    "answer": _answer,
    "document": _document, "create": _create, "check": _check, "refuse": _refuse,
    "write": lambda rule, tool: partial(written, Writing(rule)),
    "bound": lambda rule, tool: lambda key, arguments, state: state.bound(tool, arguments),
    **dict.fromkeys(("rows", "shows", "makes", "changes"), lambda rule, tool: lambda key, arguments, state: None),
    "constant": _texting(_constant, "derived"),
    "arithmetic": _texting(_arithmetic, "derived"), "text": _texting(_text, "induced"), "value": _texting(_value, "induced"),
    "carried": _texting(_carried, "induced"),
    "validate": _texting(lambda rule, tool, arguments, state: invalid(rule, tool, arguments), "induced", True),
    "find": _texting(_find, "derived"), "nothing": _texting(_nothing, "derived"), "select": _texting(_select, "derived"),
    "filter": _texting(_filter, "derived"), "edited": _texting(_edited, "derived"),
    "unlisted": _texting(_unlisted, "derived"),
    "assumed": _texting(lambda rule, tool, arguments, state: rule["content"], "assumed"),
    "parts": _texting(_parts, "derived")}
"""Kind of rule -> what makes a rule of it ready; `rows`, `shows`, `makes`, `changes` only say what answers show."""
