"""What an episode shows of its world: things as they are now, the time, names that are next, rows that lists hold.

In: the world, what was taught, what the episode's acts changed. Out: the thing's text or value, None where it is not known.
"""

from __future__ import annotations

from typing import Any

from .acts import FEW, UNKNOWN, Act, Asked, Naming
from .answers import parsed
from .clock import after
from .draws import drawn
from .expressions import DONE, FRESH, LAST, NOW, Scope
from .known import Remembering
from .numbering import Form, number_of
from .programs import Programs, made_by
from .tables import ROWS, Table, Wanted, agreed
from .tables import Row as TableRow
from .taught import Taught
from .world import Name, Overlay, View, World

NEVER: tuple[str | None, int] = (None, -1)
"""Text of a thing, and since how many acts: of one that was left alone."""
TOLD = frozenset((DONE, FRESH, LAST, NOW))
"""Classes under which a look tells something else than a document."""


class Looking(Remembering):
    """An episode that is looked at; `Room` is one, and changes it."""

    __slots__ = (
        "_affixes", "_begun", "_last", "_n_calls", "_naming", "_now", "_overlay", "_programs", "_scope", "_seed", "_taught",
        "_world", "acts", "view")
    _world: World
    _programs: Programs
    _affixes: dict[str, tuple[str, str]]
    _overlay: Overlay
    _taught: Taught
    _last: Asked | None
    _seed: int | None
    _n_calls: int
    _naming: Naming
    view: View
    acts: tuple[Act, ...]
    _begun: dict[Name, str | None]
    """Thing -> its text as the episode began, of those that were asked for."""
    _now: dict[Name, str | None]
    """Thing -> its text after the acts so far, of those that were asked for since the last one."""
    _scope: Scope | None
    """What expressions were worked out over last in this call."""

    def document(self, name: Name) -> str | None:
        """JSON text of a thing as the episode has it now, or None where it is not known."""
        words = None
        if name[0] in self._affixes:
            name, words = self._programs.plain(name)
        if not self.acts and not self._taught.documents:
            return self._begun[name] if name in self._begun else self._at_first(name)
        if name not in self._now:
            self._now[name] = self._after_acts(name, words or frozenset((name[1],)))
        return self._now[name]

    def _after_acts(self, name: Name, words: frozenset[str]) -> str | None:
        """The thing's text after what was done. `words`: those that name it."""
        text, since = self._overlay.get(name, NEVER)
        told, at = self._taught.documents.get(name, NEVER)
        if at >= since:
            text, since = (told, at) if at >= 0 else (self._at_first(name), 0)
        if since >= len(self.acts):
            return text
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

    def scope(self, before: Any, arguments: dict[str, Any]) -> Scope:
        """What expressions may speak of in this call; what is worked out in it is kept as long as the rules ask alike."""
        kept = self._scope
        if kept is None or kept.before is not before or kept.arguments is not arguments:
            kept = self._scope = Scope(before, arguments, self.look, None, {})
        return kept

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

    def _acts_naming(self, words: frozenset[str], since: int = 0) -> list[Act]:
        """Acts that may name one of the words, in order; all of them where there is none."""
        acts = self.acts
        if not words:
            return list(acts[since:])
        if len(acts) <= FEW:
            return [act for act in acts[since:] if act.may_name(words)]
        self._naming = self._naming.through(self.acts)
        return [self.acts[place] for place in self._naming.of(words) if place >= since]
