"""Tools that answer with a sentence made of their arguments: the one template that all their answers have in common.

In: the calls of a tool that worked, with their answers. Out: a `text` rule, or None. Every way of reading each answer as
text and slots is laid beside those of all the others; of the readings that all share, the one with the fewest slots is kept
(a slot that no example needs is a coincidence).
Where they have none in common, those calls are tried whose names have the same signs as in most calls (`w`, `w.w`): then others
are not answered so.
Sees: scalars of the arguments, written as they are or as inside a JSON string. Does not see: what is computed or looked up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from env_builder.behaviour.evidence import NOTHING, UNEXPLAINED, Induced, ToolEvidence
from env_builder.behaviour.guards import few_values
from env_builder.runtime.texts import NUMBERS, Limits, Piece, admits, filled_one_way, signs_of, type_of, written
from env_builder.world.replay import LoggedStep

MINIMUM_QUESTIONS = 5
"""Different questions that must have been answered so: fewer may be chance."""
MINIMUM_TOLD = 2
"""Different questions that are enough where the sentence repeats all that was given, and no two gave the same."""
AGAINST = 0.02
"""Share of logged failures among the calls that the rule would answer, from which it is dropped."""
MAXIMUM_READINGS = 256
USUAL_SHARE = 0.6
"""Share of the questions whose names have the same signs, from which on they may have a sentence of their own."""
FEW_SIGNS = 4
"""Kinds of signs that the values of an argument have, up to which others are not taken for such values."""
Reading = tuple[dict[str, Any], str]
"""(what slots may speak of: `argument`, and where there is one `before`; the answer)"""
Template = tuple[Piece | tuple[Any, ...], ...]


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that answers one sentence with slots."""
    rule = text_rule(evidence.steps) if evidence.has_only(*UNEXPLAINED) else None
    if rule is None:
        return NOTHING
    listed = {other["argument"] for other in evidence.rules if other["rule"] == "unlisted"}  # any of the list may be given
    values = {name: given for name, given in rule["when"]["values"].items() if name not in listed}
    return Induced([{**rule, "when": {**rule["when"], "values": values}}])


def text_rule(steps: list[LoggedStep]) -> dict[str, Any] | None:
    """Return the `text` rule of one tool."""
    done = [step for step in steps if not step.call.failed]
    rule = _rule(steps, done)
    return rule or _rule(steps, _usual(done))


def _usual(done: list[LoggedStep]) -> list[LoggedStep]:
    """Return the calls whose names have the signs that most have; none where these are all, or too few."""
    groups: dict[str, list[LoggedStep]] = defaultdict(list)
    for step in done:
        groups[str(_signs(step.call.arguments))].append(step)
    usual = max(groups.values(), key=_n_questions, default=[])
    is_enough = len(groups) > 1 and _n_questions(usual) >= max(MINIMUM_QUESTIONS, USUAL_SHARE * _n_questions(done))
    return usual if is_enough else []


def _n_questions(steps: list[LoggedStep]) -> int:
    return len({step.call.key for step in steps})


def _signs(arguments: dict[str, Any]) -> dict[str, str]:
    """Return the signs of the names that are given."""
    return {name: signs_of(value) for name, value in sorted(arguments.items()) if _is_name(value)}


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != "" and not any(map(str.isspace, value))


def _rule(steps: list[LoggedStep], done: list[LoggedStep]) -> dict[str, Any] | None:
    """Return the rule that gives the answers of all these calls. `steps`: all of the tool."""
    examples = list({(step.call.key, step.call.content): (step.call.arguments, step.call.content) for step in done}.values())
    given = [arguments for arguments, _ in examples]
    few = len({step.call.key for step in done}) < MINIMUM_QUESTIONS
    if few and not _apart(given):
        return None
    telling = [({"argument": arguments}, content) for arguments, content in examples if "" not in arguments.values()]
    shared_pieces = shared(telling)
    if shared_pieces is None or not all(_says(shared_pieces, *example) for example in examples):
        return None
    slots = {piece[1] for piece in shared_pieces["pieces"] if isinstance(piece, list)}
    if few and slots != set(given[0]):
        return None
    for free in (slots, set[str]()):  # what the answer repeats may be anything, unless failures speak against it
        when = limits(given, free)
        if sum(admits(when, step.call.arguments) for step in steps if step.call.failed) <= AGAINST * len(done):
            return {"rule": "text", **shared_pieces, "when": when, **({"first": True} if few else {})}
    return None


def _says(sentence: dict[str, Any], arguments: dict[str, Any], content: str) -> bool:
    """Return whether the sentence may be the answer; an empty text has its place there, which its own answer does not show."""
    pieces, form = sentence["pieces"], sentence["form"]
    return any(filled_one_way(pieces, form, way, {}, arguments) == content for way in sentence["numbers"])


def _apart(given: list[dict[str, Any]]) -> bool:
    """Are these several questions with the same names, no two of which gave any of them the same value?"""
    values = [tuple(map(str, arguments.values())) for arguments in ({name: one[name] for name in sorted(one)} for one in given)]
    return (len(given) >= MINIMUM_TOLD and bool(given[0]) and len({tuple(sorted(one)) for one in given}) == 1
            and all(len(set(column)) == len(given) for column in zip(*values, strict=True)))


def limits(given: list[dict[str, Any]], contents: set[str]) -> Limits:
    """Return what arguments that worked look like. `contents`: those that the answer repeats; an id among them is free."""
    names = sorted({name for arguments in given for name in arguments})
    free = {name for name in contents if any(map(str.isdigit, str([arguments.get(name) for arguments in given])))}
    return {
        "always": [name for name in names if all(name in arguments for arguments in given)],
        "types": {name: sorted({type_of(arguments[name]) for arguments in given if name in arguments}) for name in names},
        "values": {name: values for name, values in few_values(given, ids=True).items() if name not in free},
        "signs": _few_signs(given)}


def _few_signs(given: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the signs of arguments that are always names, where there are few kinds of them."""
    names = sorted({name for arguments in given for name in arguments})
    values = {name: {arguments[name] for arguments in given if _is_name(arguments.get(name))} for name in names}
    always = [name for name in names if len(values[name]) >= MINIMUM_QUESTIONS
              and all(_is_name(arguments[name]) for arguments in given if name in arguments)]
    signs = {name: sorted(set(map(signs_of, values[name]))) for name in always}
    return {name: kinds for name, kinds in signs.items() if len(kinds) <= FEW_SIGNS}


def shared(examples: list[Reading]) -> dict[str, Any] | None:
    """Return the template that gives every answer, with the ways in which it writes texts and numbers; None where none does."""
    if not examples:
        return None
    for form in ("plain", "json", "json_ascii"):
        common: set[Template] | None = None
        for roots, content in sorted(examples, key=lambda example: (len(example[1]), str(example))):
            slots: dict[str, list[tuple[Any, ...]]] = {}
            for path, value in _scalars(roots, ()):
                for text in sorted({written(value, form, way) or "" for way in NUMBERS}):
                    if text and text in content:
                        slots.setdefault(text, []).append(path)
            readings: list[Template] = [()]
            at = 0
            for start, text in _places(content, sorted(slots, key=lambda text: (-len(text), text))):
                options: list[Piece | tuple[Any, ...]] = [text, *slots[text]]
                before = [_joined(reading, content[at:start]) for reading in readings]
                readings = [_joined(reading, option) for reading in before for option in options][:MAXIMUM_READINGS]
                at = start + len(text)
            whole = {_joined(reading, content[at:]) for reading in readings}
            common = whole if common is None else common & whole
            if not common:
                break
        if common:
            best = min(common, key=lambda template: (sum(isinstance(piece, tuple) for piece in template), str(template)))
            pieces: list[Piece] = [piece if isinstance(piece, str) else list(piece) for piece in best]
            right = {
                way: {index for index, (roots, content) in enumerate(examples)
                      if filled_one_way(pieces, form, way, roots.get("before", {}), roots["argument"]) == content}
                for way in NUMBERS}
            enough = (ways for n in (1, 2) for ways in combinations(NUMBERS, n)
                      if len(set().union(*(right[way] for way in ways))) == len(examples))
            return {"pieces": pieces, "form": form, "numbers": list(next(enough, NUMBERS))}
    return None


def _joined(pieces: Template, piece: Piece | tuple[Any, ...]) -> Template:
    """Return the pieces and one more; texts that follow each other are one."""
    if piece == "":
        return pieces
    if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
        return (*pieces[:-1], pieces[-1] + piece)
    return (*pieces, piece)


def _places(content: str, texts: list[str]) -> Iterator[tuple[int, str]]:
    """Where the texts stand in the content, from left to right, the longest first, none over another."""
    at = 0
    while at < len(content):
        text = next((text for text in texts if content.startswith(text, at) and _stands(content, at, text)), None)
        if text is not None:
            yield at, text
        at += len(text) if text is not None else 1


def _stands(content: str, at: int, text: str) -> bool:
    end = at + len(text)
    before, after = content[at - 1: at], content[end: end + 1]
    return not (before.isalnum() and text[0].isalnum()) and not (after.isalnum() and text[-1].isalnum())


def _scalars(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _scalars(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value[:3]):
            yield from _scalars(item, (*path, index))
    else:
        yield path, value
