"""The interpreter of behaviour programs: what a tool answers and what it changes, as data (docs/behaviour.md).

In: a tool's row of behaviour.jsonl, arguments, and the state of the episode. Out: a `ToolAnswer`, or None: unknown.
Rules are tried in order; the first that can answer does. A rule that lacks a fact it needs does not answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from .answers import failed, parse, parsed
from .canonical import canonical, styled
from .expressions import NoValue, Nowhere, evaluate
from .joints import apart
from .precedents import PastCalls
from .records import ToolAnswer
from .refusals import State, Untold
from .relevance import chosen_fields, parts_by_name, texts_in
from .rules import RULES, Run, written
from .world import Name
from .writing import Effect, Transition, Writing, consequences, effects_of

Program = dict[str, Any]
Rule = dict[str, Any]
Completing = tuple[Rule, Writing | None, tuple[Effect, ...]]
"""A rule, how it writes where it does, and what else it changes."""
ACTING = ("write", "outside", "unknown")
"""Effects of tools that may change the world, or something outside of it."""


class _Everything(frozenset[str]):
    """The arguments of a tool that takes whatever it is given."""

    def __ge__(self, other: object) -> bool:
        return True


EVERYTHING = _Everything()
FEWEST_TRANSITIONS = 5
"""Calls that bear a write out, from which its transitions count."""


def presumed_effect(program: Program) -> str:
    """Return the effect by which the environment simulates the tool: where none is proven, the one that its log suggests."""
    return str(program.get("presumed", program["effect"]))


class Ready(Program):
    """A program with what follows from its rules, worked out once: nobody may change it then."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.has_versions = "versions" in program
        self.has_notations = "notations" in program

    @cached_property
    def takes(self) -> frozenset[str]:
        """Arguments of calls that worked; of a program that does not say, all that are given."""
        return frozenset(self["takes"]) if "takes" in self else EVERYTHING

    @cached_property
    def joint(self) -> list[list[str]]:
        """Arguments that name an entity only together."""
        return list(self.get("joint", ()))

    @cached_property
    def acting(self) -> bool:
        """Does the environment simulate it as a tool that may change the world?"""
        return presumed_effect(self) in ACTING

    @cached_property
    def changes_what_it_names(self) -> bool:
        """Does it show the entity that it names as it is afterwards? Then the entity itself tells whether a call works."""
        return any(rule["rule"] == "write" for rule in self["rules"])

    @cached_property
    def is_possible_write(self) -> bool:
        """Is there no proof that it changes nothing? Then rewards count its calls as writes."""
        return self["effect"] in ACTING

    @cached_property
    def answering(self) -> tuple[tuple[Run, bool], ...]:
        """Its rules ready to answer, each with whether it tells by itself all that a call leaves behind."""
        return tuple((RULES[rule["rule"]](rule, self["tool"]), rule["rule"] == "write") for rule in self["rules"])

    @cached_property
    def completing(self) -> tuple[Completing, ...]:
        """Its rules that tell what a call leaves behind beside what its answer shows."""
        return tuple(
            (rule, Writing(rule), ()) if rule["rule"] == "write" else (rule, None, effects_of(rule)) for rule in self["rules"]
            if rule["rule"] in ("write", "makes") or (rule["rule"] in ("shows", "create", "changes") and rule.get("also")))

    @cached_property
    def is_borne_out(self) -> bool:
        """Is it found from enough calls for what it does not show itself? While programs are learnt nobody says so."""
        n_calls = self.get("support", {}).get("for", 0)  # as rooms had it before they said so themselves
        return bool(self.get("borne_out", n_calls >= FEWEST_TRANSITIONS))

    @cached_property
    def transitions(self) -> tuple[Transition, ...]:
        """Return its transitions, if enough calls bear it out."""
        if not self.is_borne_out:
            return ()
        return tuple(each for _, writing, _ in self.completing if writing is not None for each in writing.transitions)

    @cached_property
    def keeps_all(self) -> bool:
        """Was it seen beside what other tools show, and left all of it as it was?"""
        return self.is_borne_out and set(self.get("relation", {}).values()) == {"keeps"}

    @cached_property
    def drawing(self) -> frozenset[str]:
        """Classes of which it makes new entities under names that depend on chance, or on what others made before."""
        return frozenset(rule["class"] for rule in self["rules"]
                         if rule["rule"] == "create" and rule["fields"][rule["field"]][0] in ("fresh", "following"))

    @cached_property
    def versions(self) -> tuple[tuple[str, Ready], ...]:
        """(until, the program with the rules that were in force till then)."""
        return tuple((version["until"], Ready({**self, "rules": version["rules"]})) for version in self.get("versions", ()))

    def at(self, instant: str | None) -> Ready:
        """Return the program with the rules that were in force at the instant; the last ones where there is no clock."""
        if instant is not None and self.has_versions:
            for until, version in self.versions:
                if instant < until:
                    return version
        return self


def ready(program: Program) -> Ready:
    """Return the program with what follows from its rules."""
    return program if isinstance(program, Ready) else Ready(program)


class Programs(dict[str, Ready]):
    """The programs of an environment by their tools, and what follows from all of them together, worked out once."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        super().__init__({tool: ready(program) for tool, program in programs.items()})
        self._bearings: dict[tuple[str, str], str | None] = {}

    def opened_to(self, tools: Collection[str]) -> Programs:
        """Return the programs with these tools open to what is bound to them."""
        return Programs(self | {tool: open_to_bound(self[tool]) for tool in tools}) if tools else self

    @cached_property
    def affixes(self) -> dict[str, tuple[str, str]]:
        """Class -> what stands before and after an entity's bare key in its full name."""
        return {program["class"]: program["affix"] for program in self.values() if "affix" in program}

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Classes of entities that tools name, sorted."""
        return tuple(sorted({str(program["class"]) for program in self.values() if program.get("class")}))

    @cached_property
    def making(self) -> dict[str, Rule]:
        """Tool -> its rule that says what its calls make."""
        return {tool: rule for tool, program in self.items() for rule in program["rules"] if rule["rule"] == "makes"}

    @cached_property
    def listing(self) -> dict[str, dict[str, Rule]]:
        """Class -> tool -> its rule that says which rows its answers list."""
        rules_by_tool: dict[str, dict[str, Rule]] = {}
        for tool, program in self.items():
            for rule in program["rules"]:
                if rule["rule"] == "rows":
                    rules_by_tool.setdefault(rule["class"], {})[tool] = rule
        return rules_by_tool

    @cached_property
    def editing(self) -> dict[str, tuple[str, str]]:
        """Tool that edits lists -> (class, argument) of the document that it names, where the edits may depend on it."""
        edits = (each for program in self.values() for rule in program["rules"] if rule["rule"] == "edited"
                 for each in rule["edits"].items())
        return {tool: tuple(edit["names"]) for tool, edit in edits if edit["names"] is not None}

    @cached_property
    def apart(self) -> frozenset[str]:
        """Tools that tell sessions different things as they begin, and the classes that they show."""
        return frozenset(name for tool, program in self.items() if not program.get("alike", True)
                         for name in (tool, program.get("class"), *(rule.get("class") for rule in program["rules"])) if name)

    @cached_property
    def has_precedents(self) -> bool:
        """Does a tool answer by the session's calls before?"""
        return any(rule["rule"] in ("precedent", "carried", "status") for program in self.values() for rule in program["rules"])

    @cached_property
    def stamping(self) -> frozenset[str]:
        """Tools that tell the time of the call in a log without a clock."""
        return frozenset(tool for tool, program in self.items() if any(rule.get("stamps") for rule in program["rules"]))

    def free_instant(self, key: str, past: PastCalls, is_first_alone: bool) -> str | None:
        """Return the instant `key` at which the time may begin that answers tell in a log without a clock, None where an answer
        of the session has told the time and only the first may (how long the calls take nobody knows)."""
        is_told = is_first_alone and any(call.tool in self.stamping and not call.failed for call in past)
        return None if is_told or key in ("day", "exact") else key

    @cached_property
    def volatile(self) -> dict[str, list[Any]]:
        """Class -> paths of values in its documents that nobody could foretell."""
        paths_by_class: dict[str, list[Any]] = {}
        for _, program in sorted(self.items()):
            for rule in program["rules"]:
                if "volatile" in rule and rule.get("class") is not None:
                    paths = paths_by_class.setdefault(rule["class"], [])
                    paths += [path for path in rule["volatile"] if path not in paths]
        return paths_by_class

    @cached_property
    def transitions(self) -> dict[tuple[str, str], list[Transition]]:
        """(class, field) -> transitions of the writes that enough calls bear out."""
        by_field: dict[tuple[str, str], list[Transition]] = {}
        for _, program in sorted(self.items()):
            for each in program.transitions:
                by_field.setdefault((each.kind, each.field), []).append(each)
        return by_field

    def plain(self, name: Name) -> tuple[Name, frozenset[str]]:
        """Return the entity by its bare key, and the words that name it."""
        kind, key = name
        if kind not in self.affixes:
            return name, frozenset((key,))
        before, after = self.affixes[kind]
        bare = key[len(before):len(key) - len(after)] if key.startswith(before) and key.endswith(after) else key
        return (kind, bare), frozenset((bare, before + bare + after))

    def bare(self, name: Name) -> Name:
        """Return the entity by its bare key."""
        return self.plain(name)[0] if name[0] in self.affixes else name

    def relation(self, acting: str, *looking: str | None) -> str | None:
        """Return what was seen of an acting tool and the first of those that look: keeps, changes or None (nothing)."""
        program = self.get(acting)
        if program is None:
            return None
        if program["effect"] == "outside":
            return "keeps"
        relation: dict[str, str] = program.get("relation", {})
        return next((relation[name] for name in looking if name in relation), None)

    def may_touch_part(self, acting: str, arguments: dict[str, Any], name: Name, text: str) -> bool:
        """Return whether the act chooses a part of the document of a kind that nobody saw it choose and keep the rest."""
        program = self.get(acting)
        kept = program.get("chosen", {}).get(name[0]) if program is not None else None
        if not kept:
            return False
        parts = parts_by_name(parsed(text))
        return any(value not in kept.get(field, ()) for word in texts_in(arguments) if word in parts
                   for field, value in chosen_fields(parts[word]) if field in kept)

    def bearing(self, acting: str, reading: str) -> str | None:
        """Return the same of two tools: the one that is asked, or else the class that it names."""
        names = acting, reading
        if names not in self._bearings:
            program = self.get(reading)
            self._bearings[names] = self.relation(acting, reading, program.get("class") if program else None)
        return self._bearings[names]

    def volatile_of(self, documents: Iterable[str]) -> dict[str, Any]:
        """{"volatile": {class: [path, ...]}} of the classes of these documents (class/key); empty where there are none."""
        kinds = {name.partition("/")[0] for name in documents} if self.volatile else set()
        paths_by_class = {kind: paths for kind, paths in self.volatile.items() if kind in kinds}
        return {"volatile": paths_by_class} if paths_by_class else {}


def open_to_bound(program: Program) -> Program:
    """Return the program of a tool to which something is bound, in all its versions."""
    def rules(row: Program) -> Program:
        others = [rule for rule in row["rules"] if rule["rule"] not in ("recorded", "bound")]
        return {**row, "rules": [{"rule": "recorded"}, {"rule": "bound"}, *others]}

    return rules(program) | ({"versions": list(map(rules, program["versions"]))} if "versions" in program else {})


def shown_by(program: Program, arguments: dict[str, Any], content: str) -> tuple[tuple[Name, str], ...]:
    """Return the document that an answer shows, by the tool's own rules."""
    for rule in program["rules"]:
        if rule["rule"] not in ("document", "write", "create", "shows"):
            continue
        before, after = rule["before"], rule["after"]
        text = content[len(before): len(content) - len(after)]
        document = parse(text) if content.startswith(before) and content.endswith(after) else None
        if isinstance(document, dict):
            key = arguments.get(rule["argument"]) if rule["argument"] else document.get(rule["field"])
            if isinstance(key, str | int):
                return (((rule["class"], str(key)), text),)
    return ()


def unknown(program: Program, key: str, draws: bool) -> str:
    """Return what is said to a call that nobody knows the answer to. `draws`: are names and times drawn here?"""
    could = not draws and any("volatile" in rule or rule.get("stamps") for rule in program["rules"])
    hint = "; it draws names or tells the time: the perturbation `fresh` lets it answer with others" if could else ""
    given = canonical(apart(parsed(key))) if program.get("joint") else key
    return f"unknown: no evidence of what {program['tool']} answers to {given} here{hint}"


Documents = tuple[tuple[Name, str], ...]


def answer(program: Program, key: str, arguments: dict[str, Any], state: State) -> ToolAnswer | None:
    """Return the tool's answer by its first rule that can give one; `key`: canonical arguments."""
    ready = program if isinstance(program, Ready) else Ready(program)
    for run, is_whole in ready.answering:
        try:
            reply = run(key, arguments, state)
        except Untold:
            return None
        if reply is not None:
            whole = is_whole or reply.is_error or not ready.completing
            return reply if whole else completed(reply, ready, arguments, state)
    return None


def completed(reply: ToolAnswer, program: Program, arguments: dict[str, Any], state: State) -> ToolAnswer:
    """Return a real answer with all the documents that the tool's own program knows it to leave behind."""
    rules = () if reply.is_error else ready(program).completing
    if not rules:
        return reply
    documents: dict[Name, str] = {}
    shown = dict(reply.documents)
    for rule, writing, also in rules:
        if writing is not None:
            documents |= _also(writing, reply.content, shown, arguments, state)
        elif rule["rule"] == "makes":
            documents |= _new(rule, reply.content, arguments, state)
        else:
            made = next((text for name, text in reply.documents if name[0] == rule.get("class")), None)
            before = parse(reply.content if rule["rule"] == "changes" else made or "")
            if rule["rule"] == "changes" or before is not None:
                spoken = before if isinstance(before, dict) else {}
                documents |= consequences(also, state.scope(spoken, arguments))
    return ToolAnswer(*reply[:3], tuple((documents | shown).items())) if documents else reply


def borne_out(
    answered: ToolAnswer | None, real: ToolAnswer, program: Program, arguments: dict[str, Any], state: State
) -> ToolAnswer:
    """Return the environment's own answer if the real tool says the same, else the real one, with what it leaves behind. A real
    answer that says in words that it failed did so, whatever its flag."""
    value = parse(real.content)
    real = real._replace(is_error=real.is_error or failed(real.content, value))
    if answered is not None and answered.is_error == real.is_error and (
            answered.content == real.content or parse(answered.content) == value is not None):
        return answered
    return completed(real._replace(documents=()) if real.is_error else real, program, arguments, state)


def _also(writing: Writing, content: str, shown: dict[Name, str], arguments: dict[str, Any], state: State) -> Documents:
    """Return what a write leaves behind whose answer is known, where its rule explains this answer."""
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
    except NoValue:
        explained = False
    return consequences(writing.also, scope) if explained else ()


def _new(rule: dict[str, Any], content: str, arguments: dict[str, Any], state: State) -> Documents:
    """Return the entity that a call with this answer made, where all its fields are known."""
    answer = parse(content)
    try:
        key = evaluate(rule["key"], answer, arguments, state.look)
        made = {field: evaluate(rule["fields"][field], answer, arguments, state.look) for field in rule["order"]}
    except NoValue:
        return ()
    return (((rule["class"], str(key)), styled(made, rule["style"])),)


def unmoved(program: Program, arguments: dict[str, Any], state: State) -> Documents:
    """Documents that a call leaves as they are whether it works, as its tool's program says, or is refused.

    Where the program speaks of what is not there, or what it does is `done`, the call did not do what every call that worked
    was seen to do.
    """
    documents: list[tuple[Name, str]] = []
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
        except NoValue:
            continue
        documents += [(other, same) for other, same in ((name, made), *others) if same == state.document(other)]
    return tuple(documents)


def reached(program: Program, arguments: dict[str, Any], state: State) -> set[str]:
    """Return the keys of entities that the program changes besides the one that the call names, where they are known."""
    keys = set()
    for _, writing, also in ready(program).completing:
        for effect in also if writing is None else writing.also:
            with suppress(NoValue):
                keys.add(str(effect.key(state.scope({}, arguments))))
    return keys


def is_spent(program: Ready, programs: Programs, arguments: dict[str, Any], state: State) -> bool:
    """Return whether a write comes too late: it always found a field in states that the entity has left by such a write.

    Then it is refused, in whatever words, and changes nothing. Of a state in which no write is known to leave an entity, nobody
    can say.
    """
    names = {writing.kind: writing.named(arguments) for _, writing, _ in program.completing if writing is not None}
    for each in program.transitions:
        name = names.get(each.kind)
        text = None if name is None else state.document(name)
        document = None if text is None else parsed(text)
        value = document.get(each.field) if isinstance(document, dict) else None
        if value is not None and value not in each.sources and any(
                value == other.target for other in programs.transitions.get((each.kind, each.field), ())
                if any(source in other.sources for source in each.sources)):
            return True
    return False
