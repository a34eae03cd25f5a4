"""What the rules of programs say about things, beside answering: rows, documents, values that nobody could foretell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from .answers import parse
from .effects import Effect, effects_of
from .rules import RULES, Run
from .world import Name
from .writing import Writing

Program = dict[str, Any]
Rule = dict[str, Any]
Completing = tuple[Rule, Writing | None, tuple[Effect, ...]]
"""A rule, how it writes where it does, and what else it changes."""
ACTING = ("write", "outside", "unknown")
"""Effects of tools that may change the world, or something outside of it."""


class Ready(Program):
    """A program with what follows from its rules, worked out once: nobody may change it then."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.has_versions = "versions" in program

    @cached_property
    def acting(self) -> bool:
        """May it change the world?"""
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
    def drawing(self) -> frozenset[str]:
        """Classes of which it makes new things under names that hang on chance, or on what others made before."""
        return frozenset(rule["class"] for rule in self["rules"]
                         if rule["rule"] == "create" and rule["fields"][rule["field"]][0] in ("fresh", "following"))

    @cached_property
    def versions(self) -> tuple[tuple[str, Ready], ...]:
        """(until, the program with the rules that were in force till then)."""
        return tuple((version["until"], Ready({**self, "rules": version["rules"]})) for version in self.get("versions", ()))

    def at(self, instant: str | None) -> Ready:
        """The program with the rules that were in force at the instant; the last ones where there is no clock."""
        if instant is not None and self.has_versions:
            for until, version in self.versions:
                if instant < until:
                    return version
        return self


def ready(program: Program) -> Ready:
    """The program with what follows from its rules."""
    return program if isinstance(program, Ready) else Ready(program)


class Programs(dict[str, Ready]):
    """The programs of a room by their tools, and what follows from all of them together, worked out once."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        super().__init__({tool: ready(program) for tool, program in programs.items()})
        self._bearings: dict[tuple[str, str], str | None] = {}

    @cached_property
    def affixes(self) -> dict[str, tuple[str, str]]:
        """Class -> what stands before and after a thing's bare key in its full name."""
        return {program["class"]: program["affix"] for program in self.values() if "affix" in program}

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Classes of things that tools speak of, sorted."""
        return tuple(sorted({str(program["class"]) for program in self.values() if program.get("class")}))

    @cached_property
    def making(self) -> dict[str, Rule]:
        """Tool -> its rule that says what its acts make."""
        return {tool: rule for tool, program in self.items() for rule in program["rules"] if rule["rule"] == "makes"}

    @cached_property
    def listing(self) -> dict[str, dict[str, Rule]]:
        """Class -> tool -> its rule that says which rows its answers list."""
        found: dict[str, dict[str, Rule]] = {}
        for tool, program in self.items():
            for rule in rows_rules(program):
                found.setdefault(rule["class"], {})[tool] = rule
        return found

    @cached_property
    def volatile(self) -> dict[str, list[Any]]:
        """Class -> paths of values in its documents that nobody could foretell."""
        found: dict[str, list[Any]] = {}
        for _, program in sorted(self.items()):
            for rule in program["rules"]:
                if "volatile" in rule and rule.get("class") is not None:
                    known = found.setdefault(rule["class"], [])
                    known += [path for path in rule["volatile"] if path not in known]
        return found

    def plain(self, name: Name) -> tuple[Name, frozenset[str]]:
        """The thing by its bare key, and the words that name it."""
        kind, key = name
        if kind not in self.affixes:
            return name, frozenset((key,))
        before, after = self.affixes[kind]
        bare = key[len(before):len(key) - len(after)] if key.startswith(before) and key.endswith(after) else key
        return (kind, bare), frozenset((bare, before + bare + after))

    def bare(self, name: Name) -> Name:
        """The thing by its bare key."""
        return self.plain(name)[0] if name[0] in self.affixes else name

    def relation(self, acting: str, *looking: str | None) -> str | None:
        """What was seen of an acting tool and the first of those that look: keeps, changes or None (nothing)."""
        program = self.get(acting)
        if program is None:
            return None
        if program["effect"] == "outside":
            return "keeps"
        relation: dict[str, str] = program.get("relation", {})
        return next((relation[name] for name in looking if name in relation), None)

    def bearing(self, acting: str, asked: str) -> str | None:
        """The same of two tools: the one that is asked, or else what it speaks of, is looked at."""
        names = acting, asked
        if names not in self._bearings:
            program = self.get(asked)
            self._bearings[names] = self.relation(acting, asked, program.get("class") if program else None)
        return self._bearings[names]

    def volatile_of(self, documents: Iterable[str]) -> dict[str, Any]:
        """{"volatile": {class: [path, ...]}} of the classes of these documents (class/key); empty where there are none."""
        kinds = {name.partition("/")[0] for name in documents} if self.volatile else set()
        found = {kind: paths for kind, paths in self.volatile.items() if kind in kinds}
        return {"volatile": found} if found else {}


def rows_rules(program: Program) -> list[dict[str, Any]]:
    """Its rules that say which rows its answers list."""
    return [rule for rule in program["rules"] if rule["rule"] == "rows"]


def open_to_bound(program: Program) -> Program:
    """The program of a tool to which something is bound, in all its versions."""
    def rules(row: Program) -> Program:
        others = [rule for rule in row["rules"] if rule["rule"] not in ("recorded", "bound")]
        return {**row, "rules": [{"rule": "recorded"}, {"rule": "bound"}, *others]}

    return rules(program) | ({"versions": list(map(rules, program["versions"]))} if "versions" in program else {})


def shown_by(program: Program, arguments: dict[str, Any], content: str) -> tuple[tuple[Name, str], ...]:
    """The document that an answer shows, by the tool's own rules."""
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


def made_by(program: Program) -> frozenset[str]:
    """Classes of which it makes new things."""
    return frozenset(rule["class"] for rule in program["rules"] if rule["rule"] == "create")


def unknown(program: Program, key: str, draws: bool) -> str:
    """What is said to a call that nobody knows the answer to. `draws`: are names and times drawn here?"""
    could = not draws and any("volatile" in rule for rule in program["rules"])
    mend = "; it draws names or tells the time: the condition `fresh` lets it answer with others" if could else ""
    return f"unknown: no evidence of what {program['tool']} answers to {key} here{mend}"
