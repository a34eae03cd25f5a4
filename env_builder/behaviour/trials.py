"""A program that somebody wrote, tried on the calls of the log: does it say what the tool said?

In: a service's steps, and rules for one tool. Out: how many calls they answer, exactly or otherwise. Of things is known what
the call's own session saw before it with no act in between that names them, else what all looks of at least two sessions saw
alike. The answer on record is left out: it would only say itself again. Sees: rules over arguments, things and rows. Does not
see: rules that search things (they stay silent here), row changes, what other sessions did to a thing meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.runtime.behaviour import answer
from env_builder.runtime.canonical import digest
from env_builder.runtime.expressions import Scope
from env_builder.runtime.programs import Ready
from env_builder.runtime.records import Answer
from env_builder.runtime.relevance import act_names
from env_builder.runtime.tables import ROWS, Table, Wanted, agreed
from env_builder.runtime.world import Name, Row
from env_builder.world import Service
from env_builder.world.history import instant
from env_builder.world.replay import Step

MOST_STEPS = 2000
"""Calls that are tried, by the hash of their event."""


class Malformed(ValueError):
    """The program is none: a rule of it cannot be carried out."""


class Seen(NamedTuple):
    """A call, and the text of each thing as its session knew it just before."""

    step: Step
    texts: Mapping[Name, str]


class Trial(NamedTuple):
    """What became of the calls."""

    n: int
    n_exact: int
    n_wrong: int
    """Answered otherwise than logged."""

    @property
    def exact(self) -> float | None:
        """Share exact of the calls that it answers; None where it answers none."""
        answered = self.n_exact + self.n_wrong
        return self.n_exact / answered if answered else None

    @property
    def abstains(self) -> float | None:
        """Share of the calls that it does not answer; None where there are none."""
        return 1 - (self.n_exact + self.n_wrong) / self.n if self.n else None


def seen(service: Service, tool: str) -> list[Seen]:
    """The tool's calls with what was known before each, in the order of the sessions."""
    agreed_on = _agreed(service.steps)
    found: list[Seen] = []
    own: dict[Name, str] = {}
    session = None
    for step in service.steps:
        if step.call.session_id != session:
            own, session = {}, step.call.session_id
        if step.call.tool == tool:
            found.append(Seen(step, {**agreed_on, **own}))
        if step.act:
            named = act_names(step.call.arguments, step.call.content)
            own = {name: text for name, text in own.items() if name[1] not in named}
        if step.shown:
            own[step.shown[:2]] = step.shown[2]
    return found


def tried(calls: list[Seen], program: dict[str, Any], rows: Mapping[str, Table]) -> Trial:
    """The program asked what was asked. Raises Malformed."""
    asked = sorted(calls, key=lambda one: digest(one.step.call.event_id))[:MOST_STEPS]
    n_exact = n_wrong = 0
    for one in asked:
        content = _said(program, one, rows)
        n_exact += content == one.step.call.content
        n_wrong += content is not None and content != one.step.call.content
    return Trial(len(asked), n_exact, n_wrong)


def _said(program: dict[str, Any], one: Seen, rows: Mapping[str, Table]) -> str | None:
    call = one.step.call
    now = Ready(program).at(instant(call.called_at))
    rules = [rule for rule in now["rules"] if rule["rule"] not in ("recorded", "bound", "find")]
    try:
        found = answer({**now, "rules": rules}, call.key, call.arguments, Before(one, rows))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"
        raise Malformed(f"{call.tool} cannot be asked {call.key[:120]} ({said[:120]})") from error
    return None if found is None else found.content


class Before:
    """What a session knew just before a call, as rules ask for it (`runtime.behaviour.State`)."""

    def __init__(self, one: Seen, rows: Mapping[str, Table]) -> None:
        self._texts = one.texts
        self._look: Callable[[str, str], Any] = one.step.look
        self._rows = rows

    def document(self, name: Name) -> str | None:
        """JSON text of a thing."""
        return self._texts.get(name)

    def look(self, entity_class: str, key: str) -> Any:
        """The thing, or the row, as JSON value."""
        if entity_class.endswith(ROWS):
            wanted: Wanted = [((column,), value) for column, value in parsed(key).items()]
            return agreed(self._rows[entity_class].found(wanted)) if entity_class in self._rows else None
        text = self._texts.get((entity_class, key))
        return self._look(entity_class, key) if text is None else parsed(text)

    def scope(self, before: Any, arguments: dict[str, Any]) -> Scope:
        """Nothing that is worked out is kept."""
        return Scope(before, arguments, self.look)

    def absent(self, entity_class: str, key: str, since: str) -> bool:
        """Nothing is known not to be there."""
        return False

    def things(self, entity_class: str, wanted: Wanted, stable: bool) -> list[tuple[str, Any]]:
        """Nothing is searched."""
        return []

    def said(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        """Nothing was taught."""
        return []

    def answered(self, tool: str, arguments: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
        """No other question is known."""
        return []

    def shown(self, tool: str, arguments: dict[str, Any]) -> str | None:
        """No list is known."""
        return None

    def recorded(self, tool: str, key: str, arguments: dict[str, Any]) -> Row | None:
        """Nothing is on record."""
        return None

    def bound(self, tool: str, arguments: dict[str, Any]) -> Answer | None:
        """Nothing is bound."""
        return None


def _agreed(steps: list[Step]) -> dict[Name, str]:
    """Text of each thing that the looks of several sessions saw alike."""
    texts: dict[Name, set[str]] = defaultdict(set)
    sessions: dict[Name, set[str]] = defaultdict(set)
    for step in steps:
        if step.shown:
            texts[step.shown[:2]].add(step.shown[2])
            sessions[step.shown[:2]].add(step.call.session_id)
    return {name: next(iter(said)) for name, said in texts.items() if len(said) == 1 and len(sessions[name]) > 1}
