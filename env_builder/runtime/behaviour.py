"""The interpreter of behaviour programs: what a tool answers and what it changes, as data (docs/behaviour.md).

Goes in: a tool's row of behaviour.jsonl, arguments, and the state of the episode. Comes out: an `Answer`, or None: unknown.
Rules are tried in order; the first that can answer does. A rule that lacks a fact it needs does not answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from .answers import Document, parse, parsed
from .arithmetic import written
from .canonical import styled
from .effects import consequences
from .expressions import DONE, Look, Missing, Nowhere, Scope, evaluate, nothing, value_of
from .guards import allowed, usual
from .linked import Untold, refusal
from .lists import read
from .misses import finds_nothing
from .parts import put_together
from .programs import Ready
from .records import Tier
from .refusals import asks_of_document, refused
from .scopes import NAMES
from .selections import is_unlisted, selected
from .tables import Wanted
from .texts import admits, filled
from .validation import invalid
from .world import Name, Row


class Answer(NamedTuple):
    """What a rule gives back."""

    content: str
    is_error: bool
    tier: Tier
    documents: tuple[tuple[Name, str], ...] = ()
    """Documents that the call leaves behind."""


class State(Protocol):
    """What rules may ask of the episode."""

    def document(self, name: Name) -> str | None:
        """JSON text of a thing as the episode has it now, or None where not known."""

    def look(self, entity_class: str, key: str) -> Any:
        """The same as JSON value; not to be changed."""

    def absent(self, entity_class: str, key: str, since: str) -> bool:
        """Is it known that there is no such thing?"""

    def things(self, entity_class: str, wanted: Wanted, stable: bool) -> list[tuple[str, Any]]:
        """(key, document) of the things, or the row, that hold these values; `stable`: such values never change."""

    def said(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of the tool's calls that the real one answered in this session."""

    def answered(self, tool: str, arguments: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of all known questions to the tool; none where an act of the episode matters to this one."""

    def shown(self, tool: str, arguments: dict[str, Any]) -> str | None:
        """What the question is known to answer now, None where it is not on record or fails."""

    def recorded(self, tool: str, key: str, arguments: dict[str, Any]) -> Row | None:
        """The answer on record, after the acts of this episode that matter to it."""

    def bound(self, tool: str, arguments: dict[str, Any]) -> Answer | None:
        """What the real thing that a user bound to the tool answers, or None."""


Rule = Callable[[dict[str, Any], str, str, dict[str, Any], State], Answer | None]


def answer(program: dict[str, Any], key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """The tool's answer by its first rule that can give one; `key`: canonical arguments."""
    for rule in program["rules"]:
        try:
            found = RULES[rule["rule"]](rule, program["tool"], key, arguments, state)
        except Untold:
            return None
        if found is not None:
            return found if rule["rule"] == "write" or found.is_error else completed(found, program, key, arguments, state)
    return None


def completed(found: Answer, program: dict[str, Any], key: str, arguments: dict[str, Any], state: State) -> Answer:
    """A real answer with all the documents that the tool's own program knows it to leave behind."""
    known = program if isinstance(program, Ready) else Ready(program)
    rules = () if found.is_error else known.completing
    if not rules:
        return found
    documents: dict[Name, str] = {}
    shown = dict(found.documents)
    for rule in rules:
        if rule["rule"] == "write":
            documents |= _also(rule, found.content, shown, arguments, state)
        elif rule["rule"] != "makes":
            made = next((text for name, text in found.documents if name[0] == rule.get("class")), None)
            before = parse(found.content if rule["rule"] == "changes" else made or "")
            if rule["rule"] == "changes" or before is not None:
                spoken = before if isinstance(before, dict) else {}
                documents |= consequences(rule["also"], spoken, arguments, state)
        else:
            documents |= _new(rule, found.content, arguments, state)
    return found._replace(documents=tuple((documents | shown).items())) if documents else found


def _also(
    rule: dict[str, Any], content: str, shown: dict[Name, str], arguments: dict[str, Any], state: State
) -> tuple[tuple[Name, str], ...]:
    """What a write leaves behind whose answer is known, where its rule explains this answer."""
    name = _named(rule, arguments)
    if name not in shown:
        same = _write(rule, "", "", arguments, state)
        return same.documents if same is not None and same.content == content else ()
    before = state.look(*name) if rule.get("also") else None
    try:
        explained = before is not None and _after(rule, before, arguments, state.look) == parsed(shown[name])
    except Missing:
        explained = False
    return consequences(rule["also"], before, arguments, state) if explained else ()


def _new(rule: dict[str, Any], content: str, arguments: dict[str, Any], state: State) -> tuple[tuple[Name, str], ...]:
    """The thing that an act with this answer made, where all its fields are known."""
    answer = parse(content)
    try:
        key = evaluate(rule["key"], answer, arguments, state.look)
        made = {field: evaluate(rule["fields"][field], answer, arguments, state.look) for field in rule["order"]}
    except Missing:
        return ()
    return (((rule["class"], str(key)), styled(made, rule["style"])),)


def _recorded(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    row = state.recorded(tool, key, arguments)
    if row is None:
        return None
    left = row.get("documents", ())
    if not left and row["effects"]:  # of a room that learnt it
        left = tuple(((effect["class"], effect["key"]), effect["value"]) for effect in row["effects"])
    return Answer(row["content"], row["is_error"], "recorded", left)


def _bound(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    return state.bound(tool, arguments)


def _constant(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    return Answer(rule["content"], False, "derived")


def _arithmetic(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Calculate what the one argument says."""
    asked = arguments.get(rule["argument"])
    text = written(asked, rule["styles"]) if isinstance(asked, str) and len(arguments) == 1 else None
    return None if text is None else Answer(text, False, "derived")


def _text(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Say the sentence that all its answers have in common."""
    known = admits(rule["when"], arguments) and not (rule.get("first") and state.look(DONE, tool) != 0)
    text = filled(rule, {}, arguments, state.said(tool)) if known else None
    return None if text is None else Answer(text, False, "induced")


def _value(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Give the value of an expression over the arguments and the things that they name."""
    if not admits(rule["when"], arguments):
        return None
    try:
        value = evaluate(rule["value"], {}, arguments, state.look)
    except Missing:
        return None
    plain = rule["style"] is None and isinstance(value, str)
    return Answer(value if plain else json.dumps(value, **(rule["style"] or {})), False, "induced")


def _validate(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Refuse arguments that the declared schema forbids, in the words in which the tool does."""
    message = invalid(rule, tool, arguments)
    return None if message is None else Answer(message, True, "induced")


def _refuse(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Say no in the words in which the tool says it."""
    name = _named(rule, arguments)
    before = None if name is None or not asks_of_document(rule) else state.look(*name)
    message = refused(rule, before, arguments, state)
    return None if message is None else Answer(message, True, "induced")


def _nothing(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Say that there is nothing, where other questions show it."""
    asked = ((given, content != rule["content"]) for given, content in state.answered(tool, arguments))
    return Answer(rule["content"], rule["is_error"], "derived") if finds_nothing(rule, arguments, asked) else None


def _parts(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Say of each name what answers to other questions say of it."""
    text = put_together(rule, arguments, state.answered(tool, arguments))
    return None if text is None else Answer(text, False, "derived")


def _select(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Show what the arguments select from a list that is known whole."""
    content = state.shown(*rule["source"])
    whole = None if content is None else read(content)
    text = None if whole is None else selected(rule, whole, arguments)
    return None if text is None else Answer(text, False, "derived")


def _unlisted(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Say that the argument is none of those in a list that is known whole."""
    content = state.shown(*rule["source"]) if rule["argument"] in arguments else None
    whole = None if content is None else read(content)
    if whole is None or not is_unlisted(rule, whole, arguments):
        return None
    text = filled(rule, {}, arguments)
    return None if text is None else Answer(text, rule["is_error"], "derived")


def _silent(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Says which rows or which thing the tool's answers show; answers nothing."""
    return None


def _find(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Say what is known of the one thing, or the row, that holds the arguments."""
    if set(arguments) != {name for _, name, *_ in rule["by"]}:
        return None
    wanted: Wanted = [(tuple(path), arguments[name], *how) for path, name, *how in rule["by"]]
    found = state.things(rule["class"], wanted, rule["stable"])
    texts = {
        filled(rule, {"key": name, "document": document}, arguments)
        for name, document in found}
    text = texts.pop() if len(texts) == 1 else None
    return None if text is None else Answer(text, False, "derived")


def _document(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Show the thing that an argument names."""
    name = _named(rule, arguments)
    text = None if name is None else state.document(name)
    return None if text is None else Answer(rule["before"] + text + rule["after"], False, "derived")


def _write(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Change the thing that an argument names, field by field, and show it; and change what hangs together with it."""
    name = _named(rule, arguments)
    text = None if name is None else state.document(name)
    if name is None or text is None:
        return None
    before = parsed(text)
    new = write(rule, before, arguments, state.look)
    if new is None:
        return None
    others = consequences(rule.get("also", []), before, arguments, state)
    return Answer(rule["before"] + new + rule["after"], False, "induced", ((name, new), *others))


def _check(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Say no for what hangs together with the call: other documents, rows, sums."""
    name = _named(rule, arguments)
    before = {} if name is None else state.look(*name)
    known = before is not None and usual(rule["when"], arguments)
    message = None if not known else refusal(rule["messages"], Scope(before, arguments, state.look))
    return None if message is None else Answer(message, True, "induced")


def _create(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Make a new thing, field by field, and show it; and change what hangs together with it."""
    new = write(rule, {}, arguments, state.look)
    named = None if new is None else new.value[rule["field"]]
    if new is None or not isinstance(named, str | int) or state.look(rule["class"], str(named)) is not None:
        return None
    others = consequences(rule.get("also", []), new.value, arguments, state)
    return Answer(rule["before"] + new + rule["after"], False, "induced", (((rule["class"], str(named)), new), *others))


def unmoved(program: dict[str, Any], arguments: dict[str, Any], state: State) -> tuple[tuple[Name, str], ...]:
    """Documents that a call leaves as they are whether it works, as its tool's program says, or is refused.

    Where the program speaks of what is not there, or what it does is `done`, the call did not do what every call that worked
    was seen to do.
    """
    found: list[tuple[Name, str]] = []
    for rule in program["rules"]:
        name = _named(rule, arguments) if rule["rule"] == "write" else None
        text = None if name is None else state.document(name)
        if name is None or text is None:
            continue
        before = parsed(text)
        others = consequences(rule.get("also", []), before, arguments, state)
        try:
            if any(before.get(field) == value for field, value in rule.get("done", {}).items()):
                raise Nowhere
            made = _made(rule, before, arguments, state.look)
        except Nowhere:
            return ((name, text), *((other, there) for other, _ in others if (there := state.document(other)) is not None))
        except Missing:
            continue
        found += [(other, same) for other, same in ((name, made), *others) if same == state.document(other)]
    return tuple(found)


def write(rule: dict[str, Any], before: dict[str, Any], arguments: dict[str, Any], look: Look = nothing) -> Document | None:
    """JSON text of the document that a write rule makes of `before`, None where it does not answer."""
    try:
        return _made(rule, before, arguments, look) if allowed(rule["when"], before, arguments) else None
    except Missing:
        return None


def _made(rule: dict[str, Any], before: dict[str, Any], arguments: dict[str, Any], look: Look) -> Document:
    after = _after(rule, before, arguments, look)
    return Document.of(styled(after, rule["style"]), after)


def _after(rule: dict[str, Any], before: dict[str, Any], arguments: dict[str, Any], look: Look) -> dict[str, Any]:
    """The document as the rule changes it."""
    after: dict[str, Any]
    fields, scope, after = rule["fields"], Scope(before, arguments, look), {}
    for field in _order(rule, before):
        after[field] = value_of(fields[field], scope)
    return after


def _named(rule: dict[str, Any], arguments: dict[str, Any]) -> Name | None:
    value = arguments.get(rule["argument"])
    return (rule["class"], str(value)) if isinstance(value, NAMES) else None


def _order(rule: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Fields of the new document: those of the old one that the rule keeps, in their order, then the new ones."""
    kept = [field for field in before if field in rule["fields"]]
    return kept + [field for field in rule["order"] if field not in before]


RULES: dict[str, Rule] = {
    "recorded": _recorded, "bound": _bound, "constant": _constant, "arithmetic": _arithmetic, "document": _document,
    "write": _write, "create": _create, "check": _check, "text": _text, "value": _value, "validate": _validate,
    "refuse": _refuse, "rows": _silent, "shows": _silent, "makes": _silent, "changes": _silent, "find": _find,
    "nothing": _nothing, "select": _select, "unlisted": _unlisted, "parts": _parts}
