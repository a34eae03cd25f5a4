"""End states: what an episode changed, in a form that can be compared.

In: a difference {"documents": {name: JSON text or None}, "write_calls": [[tool, canonical arguments]]}, maybe with "made"
[[class, key], …] (new entities whose names depend on chance: they go by what they are) and "volatile" {class: [path, …]}
(what nobody could foretell is left out).
Out: (documents by their meaning, write calls counted), and what one end state lacks of another.
Sees: values, not the order of keys or of writes, and not how a number was written (1 is 1.0; in arguments "1" is 1 too, since
agents write numbers as text now and then, and services read both alike).
Does not see: arguments of calls that a rubric masks because they are free text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .caching import cached
from .canonical import canonical, digest

Path = Sequence[str | None]
_WHOLE = re.compile(r"(?:0|-?[1-9][0-9]{0,14})")
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]{0,11})\.[0-9]{0,3}[1-9]")
"""Texts that JSON would write as this number: not "007", which is a name, nor "1.10", which may be a version."""
EndState = tuple[dict[str, str | None], Mapping[tuple[str, str], int]]


def end_state(difference: Mapping[str, Any], parameters: Mapping[str, Any]) -> EndState:
    """Documents by name, write calls in a normal form, counted; `unreached` compares documents by what they mean.

    Of `parameters`: "ignored_arguments" (tool -> names of arguments that do not count), "ignored_fields" (class -> paths in its
    documents that do not count), "ignored_tools" (tools that change nothing that counts: notes and hand-overs).
    """
    if difference.get("made") or difference.get("volatile"):
        difference = _lasting(difference)
    free, ignored_tools = parameters.get("ignored_arguments", {}), parameters.get("ignored_tools", ())
    documents = dict(difference.get("documents", {}))
    if fields := parameters.get("ignored_fields"):
        documents = {
            name: text and masked(text, fields.get(name.partition("/")[0], ())) for name, text in documents.items()}
    acts: dict[tuple[str, str], int] = {}
    for tool, arguments in difference.get("write_calls", ()):
        if tool not in ignored_tools:
            act = tool, _masked(arguments, tuple(free.get(tool, ())))
            acts[act] = acts.get(act, 0) + 1
    return documents, acts


def unreached(wanted: EndState, actual: EndState) -> list[list[str]]:
    """Return what of `wanted` is not in `actual`: names of documents, and write calls with their arguments, sorted."""
    there, done = actual
    documents = [["document", name] for name, value in wanted[0].items()
                 if name not in there or (there[name] != value and _meaning(there[name]) != _meaning(value))]
    acts = [["act", *act] for act, times in wanted[1].items() if done.get(act, 0) < times] if wanted[1] else []
    return (sorted(documents) if len(documents) > 1 else documents) + (sorted(acts) if len(acts) > 1 else acts)


def beyond(actual: EndState, wanted: EndState) -> list[list[str]]:
    """Return what changed that `wanted` does not allow, sorted: documents it does not name, and excess write calls."""
    named, counted = wanted
    documents = [["document", name] for name in actual[0] if name not in named]
    acts = [["act", *act] for act, times in actual[1].items() if counted.get(act, 0) < times] if actual[1] else []
    return (sorted(documents) if len(documents) > 1 else documents) + (sorted(acts) if len(acts) > 1 else acts)


def _lasting(difference: Mapping[str, Any]) -> dict[str, Any]:
    """Return the difference as it would be whatever names were drawn, and whenever it was done."""
    loose = difference.get("volatile", {})
    documents = {
        name: text and masked(text, loose.get(name.partition("/")[0], ())) for name, text in difference["documents"].items()}
    drawn = {key: f"{kind}/{key}" for kind, key in difference.get("made", ())}
    nameless = {key: _renamed(documents.get(name) or "null", dict.fromkeys(drawn, "#")) for key, name in drawn.items()}
    names: dict[str, str] = {}
    for key, text in sorted(nameless.items(), key=lambda item: item[::-1]):  # alike ones are told apart by their number
        mark = digest(text)[:12]
        names[key] = f"#{mark}.{sum(other.startswith('#' + mark) for other in names.values())}"
    plain = {name: f"{name.partition('/')[0]}/{names[key]}" for key, name in drawn.items()}
    return {"documents": {plain.get(name, name): text and _renamed(text, names) for name, text in documents.items()},
            "write_calls": [[tool, _renamed(arguments, names)] for tool, arguments in difference["write_calls"]]}


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """Return the JSON text with other texts and numbers in the place of these, as values and as names of fields."""
    return canonical(_exchanged(json.loads(text), names)) if names else text


def _exchanged(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(name, name): _exchanged(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [_exchanged(item, names) for item in value]
    return names.get(str(value), value) if isinstance(value, str | int) and not isinstance(value, bool) else value


def masked(text: str, loose: Sequence[Path]) -> str:
    """Return a document's JSON text without what stands at these paths (names; None: every element of a list); other texts as
    they are."""
    try:
        return json.dumps(_without(json.loads(text), loose)) if loose else text
    except ValueError:
        return text


def _without(value: Any, loose: Sequence[Path]) -> Any:
    if [] in loose:
        return None
    if isinstance(value, list):
        inner = [path[1:] for path in loose if path[0] is None]
        return [_without(item, inner) for item in value] if inner else value
    if not isinstance(value, dict):
        return value
    return {name: _without(item, [path[1:] for path in loose if path[0] == name]) for name, item in value.items()}


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, but true is not 1."""
    try:
        return bool(one == other) and _of_one_kind(one, other)
    except RecursionError:  # what is too deep to be compared is like nothing
        return False


def _of_one_kind(one: Any, other: Any) -> bool:
    """Whether two values that Python holds for equal are so as JSON: a truth value is no number; what is no JSON is nothing."""
    if isinstance(one, str):
        return True
    if isinstance(one, dict):
        return all(_of_one_kind(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return all(map(_of_one_kind, one, other))
    if isinstance(one, float):
        return one - one == 0 and not isinstance(other, bool)
    return one is None or (isinstance(one, bool) == isinstance(other, bool) and isinstance(one, int))


@cached(4096)
def _masked(arguments: str, names: tuple[str, ...]) -> str:
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    kept = {name: part for name, part in value.items() if name not in names} if names else value
    return canonical(unquoted(kept))


def unquoted(value: Any) -> Any:
    """Return arguments with each number in one form: whole floats as integers, texts that spell a number as it.

    What is nested too deep stays as it is."""
    try:
        return _unquoted(value)
    except RecursionError:
        return value


def _unquoted(value: Any) -> Any:
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else float(value) if _FRACTION.fullmatch(value) else value
    if isinstance(value, list):
        return [_unquoted(item) for item in value]
    if isinstance(value, dict):
        return {name: _unquoted(item) for name, item in value.items()}
    return _plain(value)


@cached(4096)
def _meaning(text: str | None) -> str | None:
    """One text for all JSON texts of one value; what is no JSON stands for itself."""
    if text is None:
        return None
    try:
        return canonical(_plain(json.loads(text)))
    except ValueError:
        return text


def _plain(value: Any) -> Any:
    """`value` with whole floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value
