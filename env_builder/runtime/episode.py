"""One episode on top of a world: what was done, what it changed, and what of the world is still known because of that.

An act is a call that may have changed the world and did not fail. What an act may have touched in a way that was not seen
is unknown from then on: a document whose key the act names, an answer whose question shares a name with it; unless the two
tools were seen to leave each other alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .acts import FEW, NOTHING_NAMED, UNKNOWN, Act, Asked, Mark
from .answers import failed, parse, parsed
from .behaviour import Answer, answer, completed, unmoved
from .bindings import Ask, Binding, Reply
from .canonical import canonical
from .clock import after
from .draws import drawn
from .expressions import DONE, FRESH, LAST, NOW
from .implied import Origin
from .known import Place, Remembering
from .numbering import Form, number_of
from .programs import Program, Programs, Ready, made_by, open_to_bound, rows_rules, shown_by, unknown
from .records import Result
from .relevance import ids, listed_in, names
from .tables import ROWS, Table, Wanted, agreed
from .tables import Row as TableRow
from .taught import Taught
from .world import Name, Overlay, Row, View, World, agreed_on

NEVER: tuple[str | None, int] = (None, -1)
"""Text of a thing, and since how many acts: of one that was left alone."""
TOLD = frozenset((DONE, FRESH, LAST, NOW))
"""Classes under which a look tells something else than a document."""
UNTAUGHT = Taught()
"""What a room was told before anybody tells it anything; shared by all, and so never changed."""


class Room(Remembering):
    """The state of one episode."""

    __slots__ = (
        "_affixes", "_begun", "_bound", "_last", "_n_calls", "_naming", "_overlay", "_programs", "_seed", "_taught",
        "_taught_is_shared", "_world", "acts", "view")

    def __init__(self, world: World, programs: Mapping[str, Program], view: View) -> None:
        self._world = world
        self._programs = programs if isinstance(programs, Programs) else Programs(programs)
        self._affixes = self._programs.affixes
        self._overlay = Overlay()
        self._taught = UNTAUGHT
        self._taught_is_shared = True
        self._last: Asked | None = None
        self._bound: dict[str, Binding] = {}
        self._seed: int | None = None
        self._n_calls = 0
        self.view = view
        self._begun: dict[Name, str | None] = {}
        """Thing -> its text as the episode began, of those that were asked for."""
        self.acts: tuple[Act, ...] = ()
        self._naming = NOTHING_NAMED
        self._place: Place | None = None

    def bind(self, bound: dict[str, Binding]) -> Room:
        """Answer these tools by what is bound to them where no answer is on record; gives itself."""
        self._bound = bound
        if bound:
            self._place = None
            self._programs = Programs(self._programs | {tool: open_to_bound(self._programs[tool]) for tool in bound})
        return self

    def drawing(self, seed: int) -> Room:
        """Draw the names and times that nobody can know, by this seed, a second a call; gives itself."""
        self._seed = seed
        return self

    def fork(self, view: View | None = None) -> Room:
        """The same state, or that of another view, independent from here on. What is shared is never changed in place."""
        self._taught_is_shared = True
        twin = object.__new__(Room)
        for name in (*Room.__slots__, *Remembering.__slots__):
            setattr(twin, name, getattr(self, name))
        if view is not None:
            twin.view, twin._begun = view, {}
        return twin

    @property
    def mark(self) -> Mark:
        """The state as it is now, to come back to."""
        return self._overlay, self.acts, self._naming, self._last, self._n_calls, self._place

    def back(self, mark: Mark) -> None:
        """The state as it was."""
        self._overlay, self.acts, self._naming, self._last, self._n_calls, place = mark
        self._place = None if self._bound else place

    def again(self, view: View, anew: bool) -> Room:
        """The next episode, which takes over what this one was taught. `anew`: from the state that this one began from."""
        taught, self._taught = self._taught.copy() if self._taught_is_shared else self._taught, Taught()
        twin = self.fork(view)
        twin._taught, twin._taught_is_shared = taught, False
        if anew:
            twin._overlay, twin.acts, twin._last, twin._naming = Overlay(), (), None, NOTHING_NAMED
            twin._taught.begin_anew()
        return twin

    def _call(self, tool: str, arguments: dict[str, Any], key: str) -> Result:
        program = self._programs.get(tool)
        if program is None:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(sorted(self._programs))}", True, "unknown")
        program = program.at(self.view.instant)
        self._n_calls += 1
        self._last = tool, key, self.acts, self._overlay
        found = answer(program, key, arguments, self)
        if found is None:
            self._act(program, key, arguments, None, unmoved(program, arguments, self))
            return Result(unknown(program, key, self._seed is not None), True, "unknown")
        content, is_error, tier, documents = found
        if not is_error and (documents or program.acting):
            self._act(program, key, arguments, found)
        return Result(content, is_error, tier)

    def learn(self, tool: str, arguments: dict[str, Any], content: str, passing: bool = False) -> None:
        """Take in what the real tool answered to a call that was just asked here. `passing`: it failed by itself."""
        self._place = None
        program = self._programs.get(tool, Ready(UNKNOWN | {"tool": tool})).at(self.view.instant)
        key = canonical(arguments)
        if self._taught_is_shared:
            self._taught, self._taught_is_shared = self._taught.copy(), False
        if self._last is not None and self._last[:2] == (tool, key):  # as it was before it was asked
            _, _, self.acts, self._overlay = self._last
            self._last, self._naming = None, NOTHING_NAMED
        answered = parse(content)
        is_error = failed(content, answered)
        if is_error and passing:
            return
        if not is_error:
            self._taught.add_rows(rows_rules(program), arguments, answered)
            self._taught.said.setdefault(tool, []).append((arguments, content))
        documents = () if is_error else shown_by(program, arguments, content)
        if not is_error:
            makes = next((rule for rule in program["rules"] if rule["rule"] == "makes"), None)
            origin = Origin(makes, arguments, answered, self._programs.bare) if makes else None
            self._taught.trace(origin, {self._programs.bare(name): parse(text) for name, text in documents})
        acting = program.acting
        after = self.after(tool, arguments)
        if after is not None:
            effects = [{"class": name[0], "key": name[1], "value": text} for name, text in documents] if acting else []
            self._taught.answers.setdefault((tool, key), []).append({
                "content": content, "is_error": is_error, "session": None, "from": None, "to": None, "after": after,
                "effects": effects, "acts": len(self.acts)})
        if not acting:
            self._taught.see({self._programs.bare(name): text for name, text in documents}, len(self.acts), after == [])
        elif not is_error:
            told = Answer(content, False, "recorded", documents)
            self._act(program, key, arguments, completed(told, program, key, arguments, self), real=True)

    def take(self, tool: str, arguments: dict[str, Any], content: str, documents: tuple[tuple[Name, str], ...]) -> None:
        """Take on a call that was answered elsewhere, and what it left behind."""
        self._act(self._programs[tool], canonical(arguments), arguments, Answer(content, False, "recorded", documents))

    def document(self, name: Name) -> str | None:
        """JSON text of a thing as the episode has it now, or None where it is not known."""
        words = None
        if name[0] in self._affixes:
            name, words = self._programs.plain(name)
        if not self.acts and not self._taught.documents:
            return self._at_first(name)
        text, since = self._overlay.get(name, NEVER)
        told, at = self._taught.documents.get(name, NEVER)
        if at >= since:
            text, since = (told, at) if at >= 0 else (self._at_first(name), 0)
        if since >= len(self.acts):
            return text
        words = words or frozenset((name[1],))
        for act in self._acts_naming(words, since):
            if name not in act.documents and act.matters(self._programs.relation(act.tool, name[0]), words):
                return None
        return text

    def _at_first(self, name: Name) -> str | None:
        """The thing's text as the episode began."""
        begun = self._begun
        if name not in begun:
            begun[name] = self._world.document(name, self.view)
        return begun[name]

    def look(self, entity_class: str, key: str) -> Any:
        """The same as JSON value, shared with others: not to be changed."""
        if entity_class in TOLD:
            return self._tell(entity_class, key)
        if entity_class.endswith(ROWS):
            columns = parsed(key)
            kind, named = entity_class.removesuffix(ROWS), columns if isinstance(columns, dict) else {}
            bare = self._programs.bare
            wanted: Wanted = [((name,), bare((kind, value))[1] if name == "key" and isinstance(value, str) else value)
                              for name, value in named.items()]
            return agreed(self._rows(entity_class, wanted))
        text = self.document((entity_class, key))
        return None if text is None else parsed(text)

    def _tell(self, kind: str, key: str) -> Any:
        """What a look tells that is no document."""
        if kind == LAST:
            return self._highest(*parsed(key))
        if kind != DONE:
            return self._moment(kind, key)
        done = [act for act in self.acts if act.tool == key]
        return len(done) if all(act.known for act in done) else None

    def _moment(self, kind: str, key: str) -> Any:
        """The time, or something drawn: to the day what the log says, else only where that is asked for."""
        if kind == FRESH:
            return None if self._seed is None else drawn(parsed(key)[1], self._seed, self._n_calls, key)
        if key == "day" or self._seed is None or self.view.instant is None:
            return self.view.instant if key == "day" else None
        return after(self.view.instant, self._n_calls).isoformat()

    def _highest(self, kind: str, form: Form | None) -> int | None:
        """The highest number in names of this form, None where an act that was not answered may have made one."""
        making = (act for act in self.acts if kind in made_by(self._programs.get(act.tool, UNKNOWN)))
        if self.view.instant is None or not all(act.known for act in making):
            return None
        before, after = self._affixes.get(kind, ("", ""))
        form = form and [form[0].removeprefix(before), form[1], form[2].removesuffix(after)]
        known = self._world.highest(kind, form, self.view.instant)
        own = [number_of(key, form) for entity_class, key in self._overlay.items() if entity_class == kind]
        return None if known is None else max([known, *(number for number in own if number is not None)])

    def absent(self, entity_class: str, key: str, since: str) -> bool:
        """Is it known that there is no such thing? `since`: from when all things of the class are known."""
        here = self.view.instant is not None and self.view.instant >= since
        return here and self.document((entity_class, key)) is None and not any(key in act.names for act in self.acts)

    def said(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of the tool's calls that the real one answered in this session."""
        return self._taught.said.get(tool, [])

    def things(self, entity_class: str, wanted: Wanted, stable: bool) -> list[tuple[str, Any]]:
        """(key, document) of the things, or the row, that hold these values. `stable`: such values never change."""
        if entity_class.endswith(ROWS):
            row = agreed(self._rows(entity_class, wanted))
            return [] if row is None else [("", row)]
        within: Wanted = [(("document", *one[0]), *one[1:]) for one in wanted]
        held = self._rows(entity_class, within)
        if stable:
            rows = held or self._parts(entity_class, within)
            return list({row["key"]: row["document"] for row in rows}.items())
        known = ((key, self.look(entity_class, key)) for key in sorted({row["key"] for row in held}))
        return [(key, value) for key, value in known if value is not None and Table([value]).found(wanted)]

    def _parts(self, entity_class: str, wanted: Wanted) -> list[TableRow]:
        """Parts of things that nobody may have looked at, as things made from them showed them."""
        taught = self._taught.implied.get(entity_class)
        known = self._world.implied(entity_class, self._programs.making, self._programs.bare)
        return known.found(wanted) + (taught.found(wanted) if taught else [])

    def _rows(self, entity_class: str, wanted: Wanted) -> list[TableRow]:
        rules = self._programs.listing.get(entity_class, {})
        if not rules:  # all looks at things, as rows of `key` and `document`
            entity_class = entity_class.removesuffix(ROWS)
        base = self._world.table(entity_class, rules)
        taught = self._taught.tables.get(entity_class)
        return base.found(wanted) + (taught.found(wanted) if taught else [])

    def answered(self, tool: str, arguments: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of all known questions to the tool; none where an act of the episode matters to this one."""
        if self.after(tool, arguments) != []:
            return []
        asked = dict.fromkeys((*self._world.asked.get(tool, ()), *(key for who, key in self._taught.answers if who == tool)))
        told = ((key, self._told((tool, key), [])) for key in asked)
        return [(parsed(key), row["content"]) for key, row in told if row is not None]

    def shown(self, tool: str, arguments: dict[str, Any]) -> str | None:
        """What the question is known to answer now, None where it is not on record or fails."""
        row = self.recorded(tool, canonical(arguments), arguments)
        return None if row is None or row["is_error"] else str(row["content"])

    def recorded(self, tool: str, key: str, arguments: dict[str, Any]) -> Row | None:
        """The answer on record, after the acts of this episode that matter to it."""
        after = self.after(tool, arguments) if self.acts else []
        if after is None:
            return None
        row = self._told((tool, key), after) or (self._repeated((tool, key), after) if after else None)
        return None if row is None or (self.acts and self._outdated(tool, row)) else row

    def _outdated(self, tool: str, row: Row) -> bool:
        """Did an act since then name something that the answer shows, of a tool that is known to change such answers?"""
        if self._programs.get(tool, UNKNOWN).get("class") is not None:
            return False
        shown = listed_in(row["content"])
        return any(
            self._programs.relation(act.tool, tool) == "changes" and [act.tool, act.key] not in row["after"]
            for act in (self._acts_naming(shown, row.get("acts", 0)) if shown else ()) if not act.names.isdisjoint(shown))

    def _told(self, question: Name, after: list[list[str]]) -> Row | None:
        """What was answered to the question after just these acts."""
        taught = self._taught.answers.get(question)
        if taught is None:
            return self._world.answer(question, self.view, after)
        taught = [row for row in taught if row["after"] == after]
        own = [row for row in taught if row["session"] is None]
        if own:
            return own[-1]
        found = self._world.answer(question, self.view, after)
        if found is not None or not taught:
            return found
        return agreed_on(taught + self._world.told_once(question, after))

    def _repeated(self, question: Name, after: list[list[str]]) -> Row | None:
        """What a call that was made several times over answers once more, where making it again changed nothing before."""
        own = list(question)
        others = [act for act in after if act != own]
        for n in range(len(after) - len(others) - 1, 0, -1):
            last, before = (self._told(question, sorted(others + [own] * count)) for count in (n, n - 1))
            if last is not None:
                return last if before is not None and before["content"] == last["content"] else None
        return None

    def bound(self, tool: str, arguments: dict[str, Any]) -> Answer | None:
        """What the real thing that is bound to the tool answers, or None."""
        done = tuple((act.tool, act.key) for act in self.acts)
        reply = self._bound[tool](Ask(tool, arguments, self.look, done, self.view.instant)) if tool in self._bound else None
        if reply is None:
            return None
        reply = Reply(reply) if isinstance(reply, str) else reply
        shown = shown_by(self._programs[tool], arguments, reply.content) if self.acts_of(tool) and not reply.is_error else ()
        return Answer(reply.content, reply.is_error, "bound", reply.documents or shown)

    def examples(self, tool: str, arguments: dict[str, Any]) -> list[tuple[str, str]]:
        """(canonical arguments, answer) of the nearest calls on record."""
        near = self._world.nearest(tool, canonical(arguments))
        return [(asked, self._world.answers[tool, asked][0]["content"]) for asked in near]

    def after(self, tool: str, arguments: dict[str, Any]) -> list[list[str]] | None:
        """The acts so far that matter to this call, sorted; None where one of them was not answered."""
        if not self.acts:
            return []
        named = names(arguments)
        entity = self._programs.get(tool, UNKNOWN).get("class")
        relevant = [act for act in self._acts_naming(named)
                    if act.matters(self._programs.relation(act.tool, tool, entity), named)]
        return sorted([act.tool, act.key] for act in relevant) if all(act.known for act in relevant) else None

    def acts_of(self, tool: str) -> bool:
        """May the tool change the world, as far as anybody knows?"""
        return bool(self._programs.get(tool, UNKNOWN).acting)

    def difference(self) -> dict[str, Any]:
        """What the episode changed (docs/environment.md)."""
        documents = {}
        for name, (text, _) in self.changed().items():
            if text != self._at_first(name):
                documents["/".join(name)] = text
        acts = sorted([act.tool, act.key] for act in self.acts if act.known and not act.documents)
        drawn_names = sorted(act.named for act in self.acts if act.named and "/".join(act.named) in documents)
        return {"documents": documents, "acts": acts, **({"made": drawn_names} if drawn_names else {}),
                **self._programs.volatile_of(documents)}

    def changed(self) -> dict[Name, tuple[str | None, int]]:
        """Thing -> its text, and since how many acts, of all things whose text the episode's acts told."""
        return self._overlay.items()

    def _acts_naming(self, words: frozenset[str], since: int = 0) -> list[Act]:
        """Acts that may name one of the words, in order; all of them where there is none."""
        acts = self.acts
        if not words:
            return list(acts[since:])
        if len(acts) <= FEW:
            return [act for act in acts[since:] if act.may_name(words)]
        self._naming = self._naming.through(self.acts)
        return [self.acts[place] for place in self._naming.of(words) if place >= since]

    def _act(
        self, program: Ready, key: str, arguments: dict[str, Any], found: Answer | None,
        left: tuple[tuple[Name, str], ...] = (), real: bool = False,
    ) -> None:
        """Note what the call did, where it may have done something. `left`: what it did not change, though unanswered.
        `real`: the real tool answered it."""
        given = found.documents if found else left
        if not program.acting and not given:
            return
        documents = {self._programs.bare(name): text for name, text in given}
        if program.acting or documents:
            said = found.content if found else self._reach(arguments)
            made = self._made(program, documents) if program.drawing else None
            self.acts += (Act(program["tool"], key, said, frozenset(documents), found is not None, real, made),)
        if documents:
            self._overlay = self._overlay.over({name: (text, len(self.acts)) for name, text in documents.items()})

    def _made(self, program: Ready, documents: Iterable[Name]) -> Name | None:
        """The thing among these that the tool's program makes under a name drawn at random."""
        return next((name for name in documents if name[0] in program.drawing and self.document(name) is None), None)

    def _reach(self, arguments: dict[str, Any]) -> frozenset[str]:
        """What an unanswered act may have touched: what its arguments name, and what the things so named name."""
        named = names(arguments)
        texts = (self.document((kind, name)) for kind in self._programs.classes for name in sorted(named))
        return named.union(*(ids(parse(text)) for text in texts if text is not None))
