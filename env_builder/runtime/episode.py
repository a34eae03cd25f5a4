"""Hold the state of one episode on top of a world: its write calls, what they changed, and what is still known after them.

In: a world, its programs, an instant, calls. Out: answers, and the difference to the start. A write call is a call that may
have changed the world and did not fail. What it may have touched in an unseen way is unknown from then on: a document whose key
it names, an answer whose question shares a name with it; unless the log shows that the two tools leave each other alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from .answers import failed, parse, parsed
from .bindings import Ask, Binding, first_bound, reply_of
from .canonical import canonical
from .clock import after, read
from .confirmations import EpisodeWrite
from .expressions import DONE, FRESH, LAST, NOW, Scope
from .joints import apart, joined
from .known_names import values_in
from .notations import read_in, written_in
from .numbering import Form, drawn, number_of
from .precedents import PastCall, PastCalls, followed
from .programs import Program, Programs, Ready, answer, borne_out, completed, is_spent, reached, shown_by, unknown, unmoved
from .records import Result, ToolAnswer
from .refusals import FIRST, LATER
from .relevance import fields_in, ids, ids_in, listed_in, names, with_parts
from .tables import ROWS, Origin, Table, Wanted, agreed, rows_in
from .tables import Row as TableRow
from .world import Name, Overlay, Row, View, World, agreed_on, answering
from .write_calls import FEW, NOTHING_NAMED, REACHING, Naming, WriteCall, written_by

UNKNOWN = Ready({"effect": "unknown", "rules": [], "relation": {}})
ToolCalls = tuple[tuple[str, str], ...]
"""(tool, canonical arguments) of calls."""
LastCall = tuple[str, str, tuple[WriteCall, ...], Overlay, PastCalls, ToolCalls]
"""The call that was answered last: tool, arguments; and what stood before it: write calls, overlay, calls, possible writes."""
Snapshot = tuple[Overlay, tuple[WriteCall, ...], Naming, LastCall | None, int, ToolCalls, frozenset[str], ToolCalls, PastCalls]
"""All of an episode's state that a call changes: overlay, write calls, naming, the last call, the number of calls, the
possible writes and what they make uncertain, the refused calls, the latest ones."""


class Taught:
    """What an episode without a task was told by the real tools."""

    def __init__(self) -> None:
        self.answers: dict[Name, list[Row]] = {}
        """(tool, canonical arguments) -> answers, each after the write calls that mattered to it; the latest last."""
        self.documents: dict[Name, tuple[str, int]] = {}
        """Entity -> its text, and how many write calls came before that."""
        self.begun: dict[Name, str] = {}
        """Entity -> its text before any write call that matters to it."""
        self.tables: dict[str, Table] = {}
        """Class of rows -> those that answers showed."""
        self.made: dict[Name, Origin] = {}
        """Entity -> the call that made it."""
        self.implied: dict[str, Table] = {}
        """Class of entities -> parts of them that entities made from them showed."""
        self.session_answers: dict[str, list[tuple[dict[str, Any], str]]] = {}
        """Tool -> (arguments, answer) of its calls of this session that worked."""
        self.earlier: dict[Name, list[Row]] = {}
        """Answers as `answers`, that speak for none but sessions before this one."""
        self.shown: set[str] = set()
        """Words of answers of this session that worked: what they name exists."""
        self.shown_first: set[str] = set()
        """Those of answers before any write call that matters to them."""

    def copy(self) -> Taught:
        twin = Taught()
        twin.answers = {name: list(rows) for name, rows in self.answers.items()}
        twin.documents, twin.begun = dict(self.documents), dict(self.begun)
        twin.session_answers = {tool: list(answers) for tool, answers in self.session_answers.items()}
        twin.made, twin.earlier = dict(self.made), dict(self.earlier)
        twin.shown, twin.shown_first = set(self.shown), set(self.shown_first)
        twin.tables = {name: table.copy() for name, table in self.tables.items()}
        twin.implied = {name: table.copy() for name, table in self.implied.items()}
        return twin

    def trace(self, origin: Origin | None, shown: dict[Name, Any]) -> None:
        """Note what a call made (`origin`, if its tool makes entities), and what the entities it shows tell of others."""
        made = origin.made() if origin else None
        if origin is not None and made is not None:
            self.made[made] = origin
        for name, document in shown.items():
            for kind, row in self.made[name].rows(document) if name in self.made else ():
                self.implied.setdefault(kind, Table()).add(row)

    def see(self, shown: dict[Name, str], n_writes: int, untouched: bool) -> None:
        """Take in entities that a read showed after so many write calls. `untouched`: none of these matters to them."""
        for name, text in shown.items():
            self.documents[name] = (text, n_writes)
            self.tables.setdefault(name[0], Table()).add({"key": name[1], "document": parse(text)})
            if untouched:
                self.begun[name] = text

    def see_words(self, words: set[str], untouched: bool) -> None:
        """Take in what an answer names. `untouched`: no write call matters to it."""
        self.shown |= words
        if untouched:
            self.shown_first |= words

    def begin_session(self, apart: frozenset[str]) -> None:
        """Forget what write calls made of entities; what was answered speaks for another session from now on.

        `apart`: tools and classes of which sessions are told different things as they begin: of these it was only said earlier.
        """
        for name, rows in self.answers.items() if apart else ():
            if name[0] in apart:
                self.earlier[name] = [*self.earlier.get(name, ()), *rows]
        self.begun = {name: text for name, text in self.begun.items() if name[0] not in apart}
        self.documents = {name: (text, 0) for name, text in self.begun.items()}
        self.answers = {name: rows for name, rows in self.answers.items() if name[0] not in apart}
        self.tables, self.implied = (
            {name: table for name, table in tables.items() if name.removesuffix(ROWS) not in apart}
            for tables in (self.tables, self.implied))
        for rows in self.answers.values():
            if rows[-1]["session"] is None:
                rows[:] = [{**row, "session": "", "n_write_calls": 0} for row in rows]
        self.session_answers, self.made = {}, {}
        self.shown_first = set() if apart else self.shown_first
        self.shown = set(self.shown_first)


UNTAUGHT = Taught()
"""What an environment was told before anybody tells it anything; shared by all, and so never changed."""
NEVER: tuple[str | None, int] = (None, -1)
"""Text of a document, and after how many write calls it was set: of one that no call changed."""
DERIVED = frozenset((DONE, FRESH, LAST, NOW))
"""Classes under which a read gives a derived value instead of a document."""
ONLY_KEEPS = {"keeps"}
"""All relations between the write calls and a tool, where none of them ever matters to it."""
SHARED = ("_world", "_programs", "_affixes", "_overlay", "_taught", "_last", "_bound", "_seed", "_n_calls", "view", "_begun",
          "_now", "write_calls", "_naming", "_possible_writes", "_uncertain", "refused", "_past", "_first")
"""What a fork copies by reference: nothing of it is changed in place."""


class EpisodeState:
    """The state of one episode; `apps.AppState` and `refusals.State` describe its methods."""

    __slots__ = (*SHARED, "_scope", "_taught_is_shared")

    def __init__(self, world: World, programs: Mapping[str, Program], view: View, seed: int | None = None) -> None:
        """`seed`: draws the names and times that the log cannot tell, one second per call; None: they are unknown."""
        self._world = world
        self._programs = programs if isinstance(programs, Programs) else Programs(programs)
        self._affixes: dict[str, tuple[str, str]] = self._programs.affixes
        self._overlay = Overlay()
        self._taught: Taught = UNTAUGHT
        self._taught_is_shared = True
        self._last: LastCall | None = None
        self._bound: dict[str, Binding] = {}
        self._first = first_bound(self._bound)
        self._seed = seed
        self._n_calls = 0
        self.view = view
        self._begun: dict[Name, str | None] = {}
        """Document -> its text at the start, of those that were read."""
        self._now: dict[Name, str | None] = {}
        """Document -> its text after the write calls so far, of those that were read since the last one."""
        self._scope: Scope | None = None
        """Scope of the expressions that were evaluated last in this call."""
        self.write_calls: tuple[WriteCall, ...] = ()
        self._naming: Naming = NOTHING_NAMED
        self._possible_writes: ToolCalls = ()
        """Answered calls that are simulated as reads without proof that they are."""
        self._uncertain: frozenset[str] = frozenset()
        """Names of entities that may be other than they were: presumed reads around which nothing was seen named them."""
        self.refused: ToolCalls = ()
        """Calls without a known answer that are surely refused, as they came too late."""
        self._past: PastCalls = ()
        """The latest calls with their answers, where a tool answers by them."""

    def bind(self, bound: dict[str, Binding]) -> None:
        self._bound, self._first = bound, first_bound(bound)
        self._programs = self._programs.opened_to(bound.keys() - self._first)

    def fork(self, view: View | None = None) -> EpisodeState:
        """Return the same state, or that of another view, independent from here on."""
        self._taught_is_shared = True
        twin = object.__new__(EpisodeState)
        twin._taught_is_shared = True
        for name in SHARED:
            setattr(twin, name, getattr(self, name))
        twin._scope = None
        if view is not None:
            twin.view, twin._begun, twin._now = view, {}, {}
        return twin

    def snapshot(self) -> Snapshot:
        return (self._overlay, self.write_calls, self._naming, self._last, self._n_calls, self._possible_writes,
                self._uncertain, self.refused, self._past)

    def restore(self, snapshot: Snapshot) -> None:
        (self._overlay, self.write_calls, self._naming, self._last, self._n_calls, self._possible_writes,
         self._uncertain, self.refused, self._past) = snapshot
        self._now = {}

    def next_episode(self, view: View, from_reset: bool) -> EpisodeState:
        """Return the next episode, with what this one was taught. `from_reset`: at the state that this one began with."""
        taught, self._taught = self._taught.copy() if self._taught_is_shared else self._taught, Taught()
        twin = self.fork(view)
        twin._taught, twin._taught_is_shared, twin._past = taught, False, ()
        if from_reset:
            twin._overlay, twin.write_calls, twin._last, twin._naming, twin._now = Overlay(), (), None, NOTHING_NAMED, {}
            twin._possible_writes = twin.refused = ()
            twin._uncertain = frozenset()
            twin._taught.begin_session(self._programs.apart)
        return twin

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        program = self._programs.get(tool)
        if program is None:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(sorted(self._programs))}", True, "unknown")
        arguments = joined(arguments, program.joint)
        if key is None or program.joint:
            key = canonical(arguments)
        if program.has_versions:
            program = program.at(self.view.instant)
        self._n_calls += 1
        self._last = tool, key, self.write_calls, self._overlay, self._past, self._possible_writes
        answered = answer(program, key, arguments, self)
        spelled = self._world.spelled(tool, key) if answered is None else None
        if spelled not in (None, key):  # agents write numbers as text now and then, and services read both alike
            answered = answer(program, str(spelled), parsed(str(spelled)), self)
            key, arguments = (key, arguments) if answered is None else (str(spelled), parsed(str(spelled)))
        self._scope = None
        real = self.bound(tool, arguments) if tool in self._first else None
        if real is not None:
            answered = borne_out(answered, real, program, arguments, self)
        elif answered is not None and (self._is_taken_for_granted(program, key, answered)
                                       or self._is_unheard_of(program, key, arguments, answered)):
            answered = None
        written = None if answered is None else self._written(program, answered.content, answered.is_error)
        if written is None:
            answered = None
        self._note_past(tool, key, answered.content if answered else None, answered is not None and answered.is_error)
        if program.get("unseen") and not (answered is not None and answered.is_error):
            self._uncertain, self._now = self._uncertain | names(arguments), {}
        if answered is None:
            is_late = is_spent(program, self._programs, arguments, self)
            self.refused += ((tool, self._as_given(tool, key)),) if is_late else ()
            if not is_late and self.names_known(tool, key) is not False:  # else it is refused, in whatever words
                self._note_write(program, key, arguments, None, unmoved(program, arguments, self))
            return Result(unknown(program, key, self._seed is not None), True, "unknown")
        if not answered.is_error:
            if program.acting or answered.documents:
                self._note_write(program, key, arguments, answered)
            elif program.is_possible_write:
                self._possible_writes += ((tool, key),)
        return tuple.__new__(Result, (written, *answered[1:3]))

    def _is_unheard_of(self, program: Ready, key: str, arguments: dict[str, Any], answered: ToolAnswer) -> bool:
        """Is it a rule's answer to arguments that no call that worked had, or the answer of a first call to a second one, of a
        tool that may write and was never seen to answer twice alike? What was recorded after a write call is another answer."""
        if answered.is_error or answered.tier == "bound":
            return False
        if answered.tier != "recorded" and len(arguments) > 1 and not program.takes >= arguments.keys():
            return True
        own = program["tool"], key
        if not program.is_possible_write or (answered.tier == "recorded" and self._was_taught_twice(own)):
            return False
        if answered.tier == "induced" and not program.changes_what_it_names and self._is_given_again(program, key, arguments):
            return True
        after = (self.after(program["tool"], arguments) or ()) if answered.tier == "recorded" else ()
        return not program.get("repeats", True) and (self._possible_writes.count(own) > len(after) or (
            answered.tier == "derived" and any((write.tool, write.key) == own for write in self.write_calls)))

    def _was_taught_twice(self, question: Name) -> bool:
        """Return whether the real tool gave its last two answers to the question in this session alike."""
        last = self._taught.answers.get(question, ())[-2:]
        return len(last) > 1 and last[0]["content"] == last[1]["content"] and last[0]["session"] is last[1]["session"] is None

    def _is_given_again(self, program: Ready, key: str, arguments: dict[str, Any]) -> bool:
        """Was a value given that this tool was given before in this episode, and never got twice in the log? It may be used up.
        The same of the whole call."""
        own = [write for write in self.write_calls if write.tool == program["tool"]]
        real = [write.key for write in own if write.is_real]
        if len(set(real)) < len(real):  # the real tool took a whole call twice in this episode
            return False
        keys = [write.key for write in own]
        once = [(name, arguments[name]) for name in program.get("once", ()) if name in arguments]
        return (key in keys and not program.get("again", True)) or any(
            parsed(earlier).get(name) == value for earlier in keys for name, value in once)

    def _written(self, program: Ready, content: str, is_error: bool) -> str | None:
        """Return an answer as the agent gets it, None where its tool's notation has no place for it."""
        if is_error or not program.has_notations:
            return content
        return written_in(content, program["notations"], self.view.instant)

    def _read(self, program: Ready, content: str) -> str:
        """Return an answer that worked, as the tool gave it, as it is kept inside."""
        return read_in(content, program["notations"], self.view.instant) if program.has_notations else content

    def _is_taken_for_granted(self, program: Ready, key: str, answered: ToolAnswer) -> bool:
        """Is it the answer of calls that worked, without an entity, to a call that may write and names what exists nowhere, or
        may do so?"""
        is_assumed = answered.tier == "derived" or (answered.tier == "induced" and not program.changes_what_it_names)
        if not is_assumed or answered.is_error or not program.is_possible_write:
            return False
        exists = self.names_known(program["tool"], key)
        return exists is False or (exists is None and not self._exist_here(
            self._world.doubtful(program["tool"], self._as_given(program["tool"], key))))

    def learn(self, tool: str, arguments: dict[str, Any], content: str, passing: bool = False) -> None:
        self._now = {}
        program = self._programs.get(tool, Ready(UNKNOWN | {"tool": tool})).at(self.view.instant)
        arguments = joined(arguments, program.joint)
        key = canonical(arguments)
        if self._taught_is_shared:
            self._taught, self._taught_is_shared = self._taught.copy(), False
        if self._last is not None and self._last[:2] == (tool, key):  # as it was before it was asked
            self.write_calls, self._overlay, self._past, self._possible_writes = self._last[2:]
            self._last, self._naming = None, NOTHING_NAMED
        is_error = failed(content, answered := parse(content))
        if is_error and passing:
            return
        if not is_error and program.has_notations:
            content = self._read(program, content)
            answered = parse(content)
        self._note_past(tool, key, content, is_error)
        documents = () if is_error else shown_by(program, arguments, content)
        if not is_error:
            for rule in program["rules"]:
                for shown in rows_in(rule, arguments, answered) if rule["rule"] == "rows" else ():
                    self._taught.tables.setdefault(rule["class"], Table()).add(shown)
            self._taught.session_answers.setdefault(tool, []).append((arguments, content))
            makes = next((rule for rule in program["rules"] if rule["rule"] == "makes"), None)
            origin = Origin(makes, arguments, answered, self._programs.bare) if makes else None
            self._taught.trace(origin, {self._programs.bare(name): parse(text) for name, text in documents})
        after = self.after(tool, arguments)
        if not is_error:  # what the call itself gave exists only if a record of it is shown: answers repeat it also in vain
            repeated = names(arguments).difference(key for (_, key), _ in documents)
            self._taught.see_words(set(values_in(content)) - repeated, after == [])
        if after is not None:
            row = {"content": content, "is_error": is_error, "session": None, "after": after,
                   "n_write_calls": len(self.write_calls)}
            self._taught.answers.setdefault((tool, key), []).append(answering(row, documents if program.acting else ()))
        if self._uncertain and documents:
            self._uncertain -= names(arguments).union(name for (_, name), _ in documents)
        if not program.acting:
            self._possible_writes += ((tool, key),) if program.is_possible_write and not is_error else ()
            self._taught.see({self._programs.bare(name): text for name, text in documents}, len(self.write_calls), after == [])
        elif not is_error:
            real_answer = ToolAnswer(content, False, "recorded", documents)
            self._note_write(program, key, arguments, completed(real_answer, program, arguments, self), real=True)

    def take(self, tool: str, arguments: dict[str, Any], content: str, documents: tuple[tuple[Name, str], ...]) -> None:
        """Take on a call that was answered elsewhere, and what it left behind."""
        answered = ToolAnswer(content, False, "recorded", documents)
        self._note_past(tool, canonical(arguments), content, False)
        program = self._programs[tool]
        arguments = joined(arguments, program.joint)
        self._note_write(program, canonical(arguments), arguments, answered)

    def past(self) -> PastCalls:
        return self._past

    def _note_past(self, tool: str, key: str, content: str | None, is_error: bool) -> None:
        if self._programs.has_precedents:
            self._past = followed(self._past, PastCall(tool, key, content, is_error))

    def bound(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer | None:
        done = tuple((write.tool, self._as_given(write.tool, write.key)) for write in self.write_calls)
        ask = Ask(tool, apart(arguments), self.look, done, self.view.instant)
        reply = reply_of(self._bound[tool](ask)) if tool in self._bound else None
        if reply is None:
            return None
        if not reply.is_error:
            reply = reply._replace(content=self._read(self._programs[tool], reply.content))
        shows = self.is_simulated_write(tool) and not reply.is_error
        shown = shown_by(self._programs[tool], arguments, reply.content) if shows else ()
        return ToolAnswer(reply.content, reply.is_error, "bound", reply.documents or shown)

    def may_write(self, tool: str) -> bool:
        return bool(self._programs.get(tool, UNKNOWN).is_possible_write)

    def is_simulated_write(self, tool: str) -> bool:
        """Return whether calls of the tool change this state."""
        return bool(self._programs.get(tool, UNKNOWN).acting)

    def names_known(self, tool: str, key: str) -> bool | None:
        strangers = self._world.strangers(tool, self._as_given(tool, key))
        if not strangers:
            return None if strangers is None else True
        return self._exist_here(strangers)

    def _exist_here(self, names: Iterable[str]) -> bool:
        """Return whether write calls of this episode name all of these, or answers that it was taught show them."""
        return all(name in self._taught.shown or any(name in write.names for write in self.write_calls) for name in names)

    def _as_given(self, tool: str, key: str) -> str:
        """Return canonical arguments as the agent gave them."""
        return canonical(apart(parsed(key))) if self._programs.get(tool, UNKNOWN).joint else key

    def difference(self) -> dict[str, Any]:
        documents = {}
        for name, (text, _) in self.changed().items():
            if text != self._at_first(name):
                documents["/".join(name)] = text
        calls = sorted([[write.tool, self._as_given(write.tool, write.key)] for write in self.write_calls
                        if write.answered and not write.documents]
                       + [[tool, self._as_given(tool, key)] for tool, key in self._possible_writes])
        drawn_names = sorted(write.named for write in self.write_calls if write.named and "/".join(write.named) in documents)
        return {"documents": documents, "write_calls": calls, **({"made": drawn_names} if drawn_names else {}),
                **self._programs.volatile_of(documents)}

    def read(self, name: Name) -> tuple[str | None, str | None]:
        return self._at_first(self._programs.plain(name)[0] if name[0] in self._affixes else name), self.document(name)

    def close(self) -> None:
        """Hold nothing that must be released."""

    def changed(self) -> dict[Name, tuple[str | None, int]]:
        """Entity -> its text, and since how many write calls, of all entities whose text the episode's write calls told."""
        return self._overlay.items()

    def document(self, name: Name) -> str | None:
        words = None
        if name[0] in self._affixes:
            name, words = self._programs.plain(name)
        if self._uncertain and not self._uncertain.isdisjoint(words or (name[1],)):
            return None
        if not self.write_calls and not self._taught.documents:
            return self._begun[name] if name in self._begun else self._at_first(name)
        if name not in self._now:
            self._now[name] = self._after_writes(name, words or frozenset((name[1],)))
        return self._now[name]

    def _after_writes(self, name: Name, words: frozenset[str]) -> str | None:
        """Return a document's text after the write calls. `words`: those that name it."""
        text, since = self._overlay.get(name, NEVER)
        taught_text, at = self._taught.documents.get(name, NEVER)
        if at >= since:
            text, since = (taught_text, at) if at >= 0 else (self._at_first(name), 0)
        if since >= len(self.write_calls):
            return text
        how = {write.tool: self._programs.relation(write.tool, name[0]) for write in self.write_calls[since:]}
        for write in self._writes_naming(words, how, since):
            if name not in write.documents and (
                    write.matters(how[write.tool], words)
                    or (text is not None and self._programs.may_touch_part(write.tool, parsed(write.key), name, text))):
                return None
        return None if text is not None and self._may_have_moved(name, text, since) else text

    def _may_have_moved(self, name: Name, text: str, since: int) -> bool:
        """Return whether a document names what a write call named, of a tool of which nothing was seen with such documents.

        A call whose answer tells another document of the class changed that one. A field that both have links nothing, nor does
        a number, or several words, that the answer shows and that name nothing known (a street)."""
        unseen = [write for write in self.write_calls[since:] if all(kind != name[0] for kind, _ in write.documents)
                  and self._programs.relation(write.tool, name[0]) is None and not self._keeps_all(write)]
        if not unseen:
            return False
        in_document, fields = ids_in(text), fields_in(text)
        links = ((write, link) for write in unseen
                 for link in (in_document - (fields & write.fields)) & with_parts(write.whole_names))
        return any(read(link) is None and not self._is_said_alone(write, link) for write, link in links)  # a day links nothing

    def _is_said_alone(self, write: WriteCall, name: str) -> bool:
        """Return whether only the answer of a write call has this number, or these words, and no known document its name."""
        return (name.isdecimal() or " " in name) and write.only_answers(name) and all(
            self._at_first((kind, name)) is None for kind in self._programs.classes)

    def _keeps_all(self, write: WriteCall) -> bool:
        return self._programs.get(write.tool, UNKNOWN).keeps_all

    def _at_first(self, name: Name) -> str | None:
        begun = self._begun
        if name not in begun:
            begun[name] = self._world.document(name, self.view)
        return begun[name]

    def look(self, entity_class: str, key: str) -> Any:
        """Return a document as JSON value, None where it is not known; it is shared, so it must not be changed."""
        if entity_class in DERIVED:
            if entity_class == LAST:
                return self._highest(*parsed(key))
            if entity_class == DONE:
                done = [write for write in self.write_calls if write.tool == key]
                return len(done) if all(write.answered for write in done) else None
            if entity_class == FRESH:
                return None if self._seed is None else drawn(parsed(key)[1], self._seed, self._n_calls, key)
            begun = self.view.instant or self._programs.free_instant(key, self._past, self._seed is None)
            is_drawn = self._seed is not None or self.view.instant is None
            return begun if key == "day" else after(begun, self._n_calls).isoformat() if begun and is_drawn else None
        if entity_class.endswith(ROWS):
            columns = parsed(key)
            kind, named = entity_class.removesuffix(ROWS), columns if isinstance(columns, dict) else {}
            bare = self._programs.bare
            wanted: Wanted = [((name,), bare((kind, value))[1] if name == "key" and isinstance(value, str) else value)
                              for name, value in named.items()]
            return agreed(self._rows(entity_class, wanted))
        text = self.document((entity_class, key))
        return None if text is None else parsed(text)

    def scope(self, before: Any, arguments: dict[str, Any]) -> Scope:
        """Return what expressions may refer to in this call; it caches their values as long as the rules ask alike."""
        kept = self._scope
        if kept is None or kept.before is not before or kept.arguments is not arguments:
            kept = self._scope = Scope(before, arguments, self.look, None, {})
        return kept

    def _highest(self, kind: str, form: Form | None) -> int | None:
        """Return the highest number in names of this form, None if an unanswered write call may have made one."""
        making = (write for write in self.write_calls for rule in self._programs.get(write.tool, UNKNOWN)["rules"]
                  if rule["rule"] == "create" and rule["class"] == kind)
        if self.view.instant is None or not all(write.answered for write in making):
            return None
        before, after = self._affixes.get(kind, ("", ""))
        form = form and [form[0].removeprefix(before), form[1], form[2].removesuffix(after)]
        on_record = self._world.highest(kind, form, self.view.instant)
        own = [number_of(key, form) for entity_class, key in self._overlay.items() if entity_class == kind]
        return None if on_record is None else max([on_record, *(number for number in own if number is not None)])

    def absent(self, entity_class: str, key: str, since: str) -> bool:
        here = self.view.instant is not None and self.view.instant >= since
        return here and self.document((entity_class, key)) is None and not any(key in write.names for write in self.write_calls)

    def things(self, entity_class: str, wanted: Wanted, stable: bool) -> list[tuple[str, Any]]:
        if entity_class.endswith(ROWS):
            row = agreed(self._rows(entity_class, wanted))
            return [] if row is None else [("", row)]
        within: Wanted = [(("document", *one[0]), *one[1:]) for one in wanted]
        rows_within = self._rows(entity_class, within)
        if stable:
            if not rows_within:  # parts of entities that nobody may have read, as entities made from them showed them
                tables = (self._world.implied(entity_class, self._programs.making, self._programs.bare),
                          self._taught.implied.get(entity_class))
                rows_within = [row for table in tables if table for row in table.matching(within)]
            return list({row["key"]: row["document"] for row in rows_within}.items())
        documents = ((key, self.look(entity_class, key)) for key in sorted({row["key"] for row in rows_within}))
        return [(key, value) for key, value in documents if value is not None and Table([value]).matching(wanted)]

    def holders(self, entity_class: str, wanted: Wanted) -> list[tuple[str, Any]]:
        within: Wanted = [(("document", *one[0]), *one[1:]) for one in wanted]
        return [(row["key"], row["document"]) for row in self._rows(entity_class, within)]

    def _rows(self, entity_class: str, wanted: Wanted) -> list[TableRow]:
        rules = self._programs.listing.get(entity_class, {})
        if not rules:  # all reads of entities, as rows of `key` and `document`
            entity_class = entity_class.removesuffix(ROWS)
        base = self._world.table(entity_class, rules)
        taught = self._taught.tables.get(entity_class)
        return base.matching(wanted) + (taught.matching(wanted) if taught else [])

    def _writes_naming(self, words: frozenset[str], how: dict[str, str | None], since: int = 0) -> list[WriteCall]:
        """Return the write calls that may name one of the words, in order; all without a word, or where one reaches further."""
        calls = self.write_calls
        if not words or not REACHING.isdisjoint(how.values()):
            return list(calls[since:])
        if len(calls) <= FEW:
            return [write for write in calls[since:] if write.may_name(words)]
        self._naming = self._naming.through(self.write_calls)
        return [self.write_calls[place] for place in self._naming.of(words) if place >= since]

    def taught_answers(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        return self._taught.session_answers.get(tool, [])

    def answered(self, tool: str, arguments: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
        return self.begun_answers(tool) if self.after(tool, arguments) == [] else []

    def begun_answers(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        taught = (key for who, key in self._taught.answers if who == tool)
        questions = dict.fromkeys((*self._world.questions.get(tool, ()), *taught))
        answers = ((key, self._answer_after((tool, key), [])) for key in questions)
        return [(parsed(key), row["content"]) for key, row in answers if row is not None]

    def always_answered(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        taught = (key for who, key in self._taught.answers if who == tool)
        questions = dict.fromkeys((*self._world.questions.get(tool, ()), *taught))
        answers = ((key, self.always(tool, key, (FIRST, LATER), None)) for key in questions)
        return [(parsed(key), row["content"]) for key, row in answers if row is not None and not row["is_error"]]

    def writes(self) -> list[EpisodeWrite]:
        return list(map(written_by, self.write_calls))

    def writes_on(self, tool: str) -> list[EpisodeWrite]:
        return [written_by(write) for write in self.write_calls
                if self._programs.bearing(write.tool, tool) != "keeps" and not self._keeps_all(write)]

    def shown(self, tool: str, arguments: dict[str, Any]) -> str | None:
        row = self.recorded(tool, canonical(arguments), arguments)
        return None if row is None or row["is_error"] else str(row["content"])

    def recorded(self, tool: str, key: str, arguments: dict[str, Any]) -> Row | None:
        if not self.write_calls and self._taught is UNTAUGHT:
            return self._world.answer((tool, key), self.view, [])
        after = self.after(tool, arguments)
        if after is None:
            return None
        row = self._answer_after((tool, key), after) or (self._repeated((tool, key), after) if after else None)
        return None if row is None or (self.write_calls and self._outdated(tool, row)) else row

    def always(self, tool: str, key: str, kinds: Collection[str], passes: Collection[str] | None) -> Row | None:
        if (LATER if self.write_calls else FIRST) not in kinds or (passes is not None and any(
                write.tool not in passes for write in self._mattering(tool, parsed(key)))):
            return None
        rows = (*self._taught.answers.get((tool, key), ()), *self._taught.earlier.get((tool, key), ()))
        taught = {(row["content"], row["is_error"], bool(row["answer"].documents)) for row in rows}
        answers = taught.union(self._world.answers_to(tool, key))
        content, is_error, has_documents = next(iter(answers)) if len(answers) == 1 else ("", False, True)
        return None if has_documents else {"content": content, "is_error": is_error}

    def _outdated(self, tool: str, row: Row) -> bool:
        """Did a write call since then name something that the answer shows, of a tool that was not seen to keep such answers?
        Of one that was seen to change them, only what the answer lists; of a record, nobody knows by its name alone."""
        since = self.write_calls[row.get("n_write_calls", 0):]
        how = {write.tool: self._programs.bearing(write.tool, tool) or ("keeps" if self._keeps_all(write) else None)
               for write in since}
        if not how or set(how.values()) == ONLY_KEEPS:
            return False
        is_record = self._programs.get(tool, UNKNOWN).get("class") is not None
        listed = frozenset[str]() if is_record else listed_in(row["content"])
        shown = {"changes": listed, "answers": listed,
                 None: ids_in(row["content"]) - self._world.everywhere(tool)}
        bearing = [write for write in since if how[write.tool] in shown and [write.tool, write.key] not in row["after"]]
        if any(not shown[how[write.tool]].isdisjoint(with_parts(write.names)) for write in bearing):
            return True
        unseen = frozenset[str]().union(
            *(write.names.union(parsed(write.key)) for write in bearing if how[write.tool] is None))
        return bool(unseen) and not is_record and self._world.lists(tool, unseen)

    def _answer_after(self, question: Name, after: list[list[str]]) -> Row | None:
        """Return what was answered to the question after just these write calls."""
        taught = self._taught.answers.get(question)
        if taught is None:
            return self._world.answer(question, self.view, after)
        taught = [row for row in taught if row["after"] == after]
        own = [row for row in taught if row["session"] is None]
        if own:
            return own[-1]
        on_record = self._world.answer(question, self.view, after)
        if on_record is not None or not taught:
            return on_record
        return agreed_on(taught + self._world.session_answers(question, after))

    def _repeated(self, question: Name, after: list[list[str]]) -> Row | None:
        """Return what a call that was made several times answers once more, if repeating it changed nothing before."""
        own = list(question)
        others = [write for write in after if write != own]
        for n in range(len(after) - len(others) - 1, 0, -1):
            last, before = (self._answer_after(question, sorted(others + [own] * count)) for count in (n, n - 1))
            if last is not None:
                return last if before is not None and before["content"] == last["content"] else None
        return None

    def examples(self, tool: str, arguments: dict[str, Any]) -> list[tuple[str, str]]:
        near = self._world.nearest(tool, canonical(arguments))
        program, rows = self._programs[tool], [self._world.answers[tool, key][0] for key in near]
        return [(key, self._written(program, row["content"], row["is_error"]) or row["content"])
                for key, row in zip(near, rows, strict=True)]

    def after(self, tool: str, arguments: dict[str, Any]) -> list[list[str]] | None:
        """Return the write calls so far that matter to this call, sorted; None if one of them was not answered."""
        relevant = self._mattering(tool, arguments)
        return sorted([write.tool, write.key] for write in relevant) if all(write.answered for write in relevant) else None

    def _mattering(self, tool: str, arguments: dict[str, Any]) -> list[WriteCall]:
        """Return the write calls so far that matter to this call."""
        if not self.write_calls:
            return []
        words, how = names(arguments), {write.tool: self._programs.bearing(write.tool, tool) for write in self.write_calls}
        return [] if set(how.values()) == ONLY_KEEPS else [
            write for write in self._writes_naming(words, how) if write.matters(how[write.tool], words)]

    def _note_write(
        self, program: Ready, key: str, arguments: dict[str, Any], answered: ToolAnswer | None,
        unchanged: tuple[tuple[Name, str], ...] = (), real: bool = False,
    ) -> None:
        """Note what the call did, where it may have done something. `left`: what it did not change, though unanswered.
        `real`: the real tool answered it."""
        self._scope = None
        given = answered.documents if answered else unchanged
        if not program.acting and not given:
            return
        documents = {self._programs.bare(name): text for name, text in given} if self._affixes else dict(given)
        if program.acting or documents:
            touched: str | frozenset[str]
            if answered:
                touched = answered.content
            else:  # what the arguments name, and what those entities name
                named = names(arguments)
                texts = (self.document((kind, name)) for kind in self._programs.classes for name in sorted(named))
                linked = (ids(parse(text)) for text in texts if text is not None)
                touched = named.union(reached(program, arguments, self), *linked)
            made = None if not program.drawing else next(
                (name for name in documents if name[0] in program.drawing and self.document(name) is None), None)
            self._now = {}
            done = WriteCall(program["tool"], key, touched, frozenset(documents), answered is not None, real, made,
                             self._named_before(program["tool"], arguments))
            self.write_calls += (done,)
        if documents:
            n_writes = len(self.write_calls)
            self._overlay = self._overlay.over({name: (text, n_writes) for name, text in documents.items()})

    def _named_before(self, tool: str, arguments: dict[str, Any]) -> str | None:
        """Return the document that a write call names, if its edits of lists may depend on it."""
        kind, argument = self._programs.editing.get(tool, ("", ""))
        return self.document(self._programs.bare((kind, str(arguments[argument])))) if argument in arguments else None
