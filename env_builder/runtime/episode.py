"""One episode on top of a world: what was done, what it changed, and what of the world is still known because of that.

An act is a call that may have changed the world and did not fail. What an act may have touched in a way that was not seen
is unknown from then on: a document whose key the act names, an answer whose question shares a name with it; unless the two
tools were seen to leave each other alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .acts import NOTHING_NAMED, UNKNOWN, Act, Mark
from .answers import failed, parse
from .behaviour import answer, completed, unmoved
from .bindings import Ask, Binding, Reply
from .canonical import canonical
from .implied import Origin
from .programs import Program, Programs, Ready, open_to_bound, rows_rules, shown_by, unknown
from .recall import Recalling
from .records import Answer, Result
from .relevance import ids, names
from .taught import UNTAUGHT, Taught
from .world import Name, Overlay, View, World, answering


class Room(Recalling):
    """The state of one episode."""

    __slots__ = ("_bound", "_taught_is_shared")

    def __init__(self, world: World, programs: Mapping[str, Program], view: View) -> None:
        self._world = world
        self._programs = programs if isinstance(programs, Programs) else Programs(programs)
        self._affixes = self._programs.affixes
        self._overlay = Overlay()
        self._taught = UNTAUGHT
        self._taught_is_shared = True
        self._last = None
        self._bound: dict[str, Binding] = {}
        self._seed = None
        self._n_calls = 0
        self.view = view
        self._begun = {}
        self._now = {}
        self._scope = None
        self.acts = ()
        self._naming = NOTHING_NAMED
        self._place = None

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
        for name in _STATE:
            setattr(twin, name, getattr(self, name))
        twin._scope = None
        if view is not None:
            twin.view, twin._begun, twin._now = view, {}, {}
        return twin

    @property
    def mark(self) -> Mark:
        """The state as it is now, to come back to."""
        return self._overlay, self.acts, self._naming, self._last, self._n_calls, self._place

    def back(self, mark: Mark) -> None:
        """The state as it was."""
        self._overlay, self.acts, self._naming, self._last, self._n_calls, place = mark
        self._place = None if self._bound else place
        self._now = {}

    def again(self, view: View, anew: bool) -> Room:
        """The next episode, which takes over what this one was taught. `anew`: from the state that this one began from."""
        taught, self._taught = self._taught.copy() if self._taught_is_shared else self._taught, Taught()
        twin = self.fork(view)
        twin._taught, twin._taught_is_shared = taught, False
        if anew:
            twin._overlay, twin.acts, twin._last, twin._naming = Overlay(), (), None, NOTHING_NAMED
            twin._now = {}
            twin._taught.begin_anew()
        return twin

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        """Answer a call and take on what it changes. `key`: the canonical arguments, where they are at hand."""
        if key is None:
            key = canonical(arguments)
        if self._place is not None:
            return self._from_memory(self._place, tool, arguments, key)
        program = self._programs.get(tool)
        if program is None:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(sorted(self._programs))}", True, "unknown")
        if program.has_versions:
            program = program.at(self.view.instant)
        self._n_calls += 1
        self._last = tool, key, self.acts, self._overlay
        found = answer(program, key, arguments, self)
        self._scope = None
        if found is None:
            self._act(program, key, arguments, None, unmoved(program, arguments, self))
            return Result(unknown(program, key, self._seed is not None), True, "unknown")
        if not found.is_error and (program.acting or found.documents):
            self._act(program, key, arguments, found)
        return tuple.__new__(Result, found[:3])

    def learn(self, tool: str, arguments: dict[str, Any], content: str, passing: bool = False) -> None:
        """Take in what the real tool answered to a call that was just asked here. `passing`: it failed by itself."""
        self._place, self._now = None, {}
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
            row = {"content": content, "is_error": is_error, "session": None, "after": after, "acts": len(self.acts)}
            self._taught.answers.setdefault((tool, key), []).append(answering(row, documents if acting else ()))
        if not acting:
            self._taught.see({self._programs.bare(name): text for name, text in documents}, len(self.acts), after == [])
        elif not is_error:
            told = Answer(content, False, "recorded", documents)
            self._act(program, key, arguments, completed(told, program, key, arguments, self), real=True)

    def take(self, tool: str, arguments: dict[str, Any], content: str, documents: tuple[tuple[Name, str], ...]) -> None:
        """Take on a call that was answered elsewhere, and what it left behind."""
        self._act(self._programs[tool], canonical(arguments), arguments, Answer(content, False, "recorded", documents))

    def bound(self, tool: str, arguments: dict[str, Any]) -> Answer | None:
        """What the real thing that is bound to the tool answers, or None."""
        done = tuple((act.tool, act.key) for act in self.acts)
        reply = self._bound[tool](Ask(tool, arguments, self.look, done, self.view.instant)) if tool in self._bound else None
        if reply is None:
            return None
        reply = Reply(reply) if isinstance(reply, str) else reply
        shown = shown_by(self._programs[tool], arguments, reply.content) if self.acts_of(tool) and not reply.is_error else ()
        return Answer(reply.content, reply.is_error, "bound", reply.documents or shown)

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

    def _act(
        self, program: Ready, key: str, arguments: dict[str, Any], found: Answer | None,
        left: tuple[tuple[Name, str], ...] = (), real: bool = False,
    ) -> None:
        """Note what the call did, where it may have done something. `left`: what it did not change, though unanswered.
        `real`: the real tool answered it."""
        self._scope = None
        given = found.documents if found else left
        if not program.acting and not given:
            return
        documents = {self._programs.bare(name): text for name, text in given} if self._affixes else dict(given)
        if program.acting or documents:
            said = found.content if found else self._reach(arguments)
            made = self._made(program, documents) if program.drawing else None
            self._now = {}
            self.acts += (Act(program["tool"], key, said, frozenset(documents), found is not None, real, made),)
        if documents:
            n_acts = len(self.acts)
            self._overlay = self._overlay.over({name: (text, n_acts) for name, text in documents.items()})

    def _made(self, program: Ready, documents: Iterable[Name]) -> Name | None:
        """The thing among these that the tool's program makes under a name drawn at random."""
        return next((name for name in documents if name[0] in program.drawing and self.document(name) is None), None)

    def _reach(self, arguments: dict[str, Any]) -> frozenset[str]:
        """What an unanswered act may have touched: what its arguments name, and what the things so named name."""
        named = names(arguments)
        texts = (self.document((kind, name)) for kind in self._programs.classes for name in sorted(named))
        return named.union(*(ids(parse(text)) for text in texts if text is not None))


_STATE = tuple(name for kind in (Room, *Room.__mro__[1:]) for name in getattr(kind, "__slots__", ()))
"""Names of all that a room holds."""
