"""The interpreter of behaviour programs: what a tool answers and what it changes, as data (docs/behaviour.md).

Goes in: a tool's row of behaviour.jsonl, arguments, and the state of the episode. Comes out: an `Answer`, or None: unknown.
Rules are tried in order; the first that can answer does. A rule that lacks a fact it needs does not answer.
"""

from __future__ import annotations

from typing import Any

from .answers import parse, parsed
from .canonical import styled
from .effects import consequences
from .expressions import Missing, Nowhere, evaluate
from .linked import Untold
from .programs import Program, Ready, ready
from .records import Answer
from .rules import State, written
from .world import Name
from .writing import Writing

Documents = tuple[tuple[Name, str], ...]


def answer(program: Program, key: str, arguments: dict[str, Any], state: State) -> Answer | None:
    """The tool's answer by its first rule that can give one; `key`: canonical arguments."""
    known = program if isinstance(program, Ready) else Ready(program)
    for run, is_whole in known.answering:
        try:
            found = run(key, arguments, state)
        except Untold:
            return None
        if found is not None:
            whole = is_whole or found.is_error or not known.completing
            return found if whole else completed(found, known, key, arguments, state)
    return None


def completed(found: Answer, program: Program, key: str, arguments: dict[str, Any], state: State) -> Answer:
    """A real answer with all the documents that the tool's own program knows it to leave behind."""
    rules = () if found.is_error else ready(program).completing
    if not rules:
        return found
    documents: dict[Name, str] = {}
    shown = dict(found.documents)
    for rule, writing, also in rules:
        if writing is not None:
            documents |= _also(writing, found.content, shown, arguments, state)
        elif rule["rule"] == "makes":
            documents |= _new(rule, found.content, arguments, state)
        else:
            made = next((text for name, text in found.documents if name[0] == rule.get("class")), None)
            before = parse(found.content if rule["rule"] == "changes" else made or "")
            if rule["rule"] == "changes" or before is not None:
                spoken = before if isinstance(before, dict) else {}
                documents |= consequences(also, state.scope(spoken, arguments))
    return Answer(*found[:3], tuple((documents | shown).items())) if documents else found


def _also(writing: Writing, content: str, shown: dict[Name, str], arguments: dict[str, Any], state: State) -> Documents:
    """What a write leaves behind whose answer is known, where its rule explains this answer."""
    name = writing.named(arguments)
    if name is None or name not in shown:
        same = written(writing, "", arguments, state)
        return same.documents if same is not None and same.content == content else ()
    before = state.look(*name) if writing.also else None
    if before is None:
        return ()
    scope = state.scope(before, arguments)
    try:
        explained = writing.after(scope) == parsed(shown[name])
    except Missing:
        explained = False
    return consequences(writing.also, scope) if explained else ()


def _new(rule: dict[str, Any], content: str, arguments: dict[str, Any], state: State) -> Documents:
    """The thing that an act with this answer made, where all its fields are known."""
    answer = parse(content)
    try:
        key = evaluate(rule["key"], answer, arguments, state.look)
        made = {field: evaluate(rule["fields"][field], answer, arguments, state.look) for field in rule["order"]}
    except Missing:
        return ()
    return (((rule["class"], str(key)), styled(made, rule["style"])),)


def unmoved(program: Program, arguments: dict[str, Any], state: State) -> Documents:
    """Documents that a call leaves as they are whether it works, as its tool's program says, or is refused.

    Where the program speaks of what is not there, or what it does is `done`, the call did not do what every call that worked
    was seen to do.
    """
    found: list[tuple[Name, str]] = []
    for _, writing, _ in ready(program).completing:
        name = None if writing is None else writing.named(arguments)
        text = None if name is None else state.document(name)
        if writing is None or name is None or text is None:
            continue
        scope = state.scope(parsed(text), arguments)
        others = consequences(writing.also, scope)
        try:
            made = writing.unless_done(scope)
        except Nowhere:
            return ((name, text), *((other, there) for other, _ in others if (there := state.document(other)) is not None))
        except Missing:
            continue
        found += [(other, same) for other, same in ((name, made), *others) if same == state.document(other)]
    return tuple(found)
