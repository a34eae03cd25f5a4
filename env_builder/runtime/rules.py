"""The kinds of rules of behaviour programs: what each answers (docs/behaviour.md).

In: a rule and its tool, made ready once (`RULES`); then canonical arguments, the arguments, and the state of the episode. Out:
an `Answer`, or None where the rule does not answer: it lacks a fact that it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from .answers import parsed
from .arithmetic import written as calculated
from .effects import consequences
from .expressions import DONE, Missing, Scope, evaluate
from .guards import usual
from .linked import refusal
from .lists import read
from .misses import finds_nothing
from .parts import put_together
from .records import Answer
from .refusals import asks_of_document, refused
from .scopes import NAMES
from .selections import is_unlisted, selected
from .tables import Wanted
from .texts import admits, filled
from .validation import invalid
from .world import Name, Row
from .writing import Writing


class State(Protocol):
    """What rules may ask of the episode."""

    def document(self, name: Name) -> str | None:
        """JSON text of a thing as the episode has it now, or None where not known."""

    def look(self, entity_class: str, key: str) -> Any:
        """The same as JSON value; not to be changed."""

    def scope(self, before: Any, arguments: dict[str, Any]) -> Scope:
        """What expressions may speak of in this call."""

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


Run = Callable[[str, dict[str, Any], State], Answer | None]
"""What a rule answers to canonical arguments, arguments, in a state; raises Untold where something speaks for a refusal."""
Make = Callable[[dict[str, Any], str], Run]


def _bound(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    return state.bound(tool, arguments)


def _constant(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    return Answer(rule["content"], False, "derived")


def _arithmetic(rule: dict[str, Any], tool: str, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """Calculate what the one argument says."""
    asked = arguments.get(rule["argument"])
    text = calculated(asked, rule["styles"]) if isinstance(asked, str) and len(arguments) == 1 else None
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


def _named(rule: dict[str, Any], arguments: dict[str, Any]) -> Name | None:
    value = arguments.get(rule["argument"])
    return (rule["class"], str(value)) if isinstance(value, NAMES) else None


def _recorded(rule: dict[str, Any], tool: str) -> Run:
    """Give the answer on record."""
    def run(key: str, arguments: dict[str, Any], state: State) -> Answer | None:
        row = state.recorded(tool, key, arguments)
        found: Answer | None = None if row is None else row["answer"]
        return found

    return run


def _document(rule: dict[str, Any], tool: str) -> Run:
    """Show the thing that an argument names."""
    argument, kind, before, after = rule["argument"], rule["class"], rule["before"], rule["after"]

    def run(key: str, arguments: dict[str, Any], state: State) -> Answer | None:
        value = arguments.get(argument)
        text = state.document((kind, str(value))) if isinstance(value, NAMES) else None
        return None if text is None else tuple.__new__(Answer, (before + text + after, False, "derived", ()))  # as it is made

    return run


def _refuse(rule: dict[str, Any], tool: str) -> Run:
    """Say no in the words in which the tool says it."""
    asks = asks_of_document(rule)

    def run(key: str, arguments: dict[str, Any], state: State) -> Answer | None:
        name = _named(rule, arguments) if asks else None
        message = refused(rule, None if name is None else state.look(*name), arguments, state)
        return None if message is None else Answer(message, True, "induced")

    return run


def _check(rule: dict[str, Any], tool: str) -> Run:
    """Say no for what hangs together with the call: other documents, rows, sums."""
    known, refuse = usual(rule["when"]), refusal(rule["messages"])

    def run(key: str, arguments: dict[str, Any], state: State) -> Answer | None:
        name = _named(rule, arguments)
        before = {} if name is None else state.look(*name)
        message = refuse(state.scope(before, arguments)) if before is not None and known(arguments) else None
        return None if message is None else Answer(message, True, "induced")

    return run


def _write(rule: dict[str, Any], tool: str) -> Run:
    """Change the thing that an argument names, field by field, and show it; and change what hangs together with it."""
    return partial(written, Writing(rule))


def written(writing: Writing, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """The answer of a write, and what it leaves behind."""
    name = writing.named(arguments)
    text = None if name is None else state.document(name)
    if name is None or text is None:
        return None
    scope = state.scope(parsed(text), arguments)
    new = writing.document(scope)
    if new is None:
        return None
    others = consequences(writing.also, scope) if writing.also else ()
    first, last = writing.framed
    return Answer(first + new + last, False, "induced", ((name, new), *others))


def _create(rule: dict[str, Any], tool: str) -> Run:
    """Make a new thing, field by field, and show it; and change what hangs together with it."""
    writing, field = Writing(rule), rule["field"]

    def run(key: str, arguments: dict[str, Any], state: State) -> Answer | None:
        new = writing.document(state.scope({}, arguments))
        named = None if new is None else new.value[field]
        if new is None or not isinstance(named, NAMES) or state.look(writing.kind, str(named)) is not None:
            return None
        others = consequences(writing.also, state.scope(new.value, arguments))
        first, last = writing.framed
        return Answer(first + new + last, False, "induced", (((writing.kind, str(named)), new), *others))

    return run


def _plain(kind: Callable[[dict[str, Any], str, str, dict[str, Any], State], Answer | None]) -> Make:
    """A kind of rule that has nothing to make ready."""
    return lambda rule, tool: partial(kind, rule, tool)


RULES: dict[str, Make] = {
    "recorded": _recorded, "document": _document, "write": _write, "create": _create, "check": _check, "refuse": _refuse,
    **{name: _plain(kind) for name, kind in (
        ("bound", _bound), ("constant", _constant), ("arithmetic", _arithmetic), ("text", _text), ("value", _value),
        ("validate", _validate), ("rows", _silent), ("shows", _silent), ("makes", _silent), ("changes", _silent),
        ("find", _find), ("nothing", _nothing), ("select", _select), ("unlisted", _unlisted), ("parts", _parts))}}
"""Kind of rule -> what makes a rule of it ready."""
