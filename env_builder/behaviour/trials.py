"""A program tried on the calls of the log: does it say what the tool said?

`tried`. In: calls of a service, and rules that somebody wrote for their tool. Out: how many they answer, exactly or otherwise.
Of records is known what the call's own session saw before it with no write call in between that names them, else what all reads
of at least two sessions saw alike. Sees: rules over arguments, records and rows. Does not see: rules that search records (they
stay silent here), row changes, what other sessions did to a record meanwhile.

`held_out`. In: a tool's steps, and how its rules are induced. Out: how each half of the sessions is answered by the other
half's rules, and by a cassette: the other half's latest answer to exactly this question. Of the record that a call names is
known what its own session saw before it, else what all reads of the other half agree on. Does not see: rules that search
records or rows, which are not measured; that an environment lays reads out in time. Either way the answer on record is left out
of the rules: it would only say itself again. `on_cassette`: the cassette alone, of tools whose rules are not measured so.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from env_builder.behaviour.evidence import Rule
from env_builder.runtime.answers import parsed
from env_builder.runtime.canonical import digest
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.expressions import Scope
from env_builder.runtime.precedents import PastCalls
from env_builder.runtime.programs import Program, Ready, answer
from env_builder.runtime.records import ToolAnswer
from env_builder.runtime.relevance import act_names
from env_builder.runtime.tables import ROWS, Table, Wanted, agreed
from env_builder.runtime.world import Name, View, World
from env_builder.world import ServiceWorld
from env_builder.world.history import instant
from env_builder.world.replay import LoggedStep

MOST_STEPS = 2000
"""Calls that are tried, by the hash of their event."""
MOST_HELD_OUT = 400
"""Calls of each half that are answered, by the hash of their event."""
LEVEL = 0.05
"""Chance below which a cassette is better than rules."""
MEASURED = ("constant", "arithmetic", "document", "text", "refuse")
UNMEASURED = (
    "recorded", "validate", "unlisted", "select", "filter", "confirm", "makes", "changes", "always", "carried", "precedent",
    "status", "edited")
"""Rules that answer nothing, or only what other evidence than the halves bears out."""


class Malformed(ValueError):
    """The program is none: a rule of it cannot be carried out."""


class TrialCall(NamedTuple):
    """A call, and the text of each record as its session knew it just before."""

    step: LoggedStep
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


class HeldOut(NamedTuple):
    """What rules and a cassette from the other half of the sessions said to the same calls."""

    rules: Trial
    cassette: Trial
    n_won: int
    """Calls that the rules answer exactly and the cassette wrongly."""
    n_lost: int
    """Calls that the cassette answers exactly and the rules wrongly."""

    @property
    def is_beaten(self) -> bool:
        """Return whether the cassette is better beyond chance on the calls that one of the two got wrong (sign test)."""
        n = self.n_won + self.n_lost
        return self.n_lost > self.n_won and sum(math.comb(n, k) for k in range(self.n_lost, n + 1)) / 2 ** n < LEVEL


def trial_calls(service: ServiceWorld, tool: str) -> list[TrialCall]:
    """Return the tool's calls with what was known before each, in the order of the sessions."""
    return list(known_before(service.steps, lambda step: step.call.tool == tool))


def known_before(steps: Iterable[LoggedStep], is_wanted: Callable[[LoggedStep], bool]) -> Iterator[TrialCall]:
    """Yield the calls that are wanted with what was known before each, in the order of the sessions."""
    steps = list(steps)
    agreed_on = _agreed(steps, 2)
    own: dict[Name, str] = {}
    session = None
    for step in steps:
        if step.call.session_id != session:
            own, session = {}, step.call.session_id
        if is_wanted(step):
            yield TrialCall(step, ChainMap(dict(own), agreed_on))
        if step.act:
            named = act_names(step.call.arguments, step.call.content)
            own = {name: text for name, text in own.items() if name[1] not in named}
        if step.shown:
            own[step.shown[:2]] = step.shown[2]


def tried(calls: list[TrialCall], program: dict[str, Any], rows: Mapping[str, Table]) -> Trial:
    """Return the program asked what was asked. Raises Malformed."""
    chosen = sorted(calls, key=lambda one: digest(one.step.call.event_id))[:MOST_STEPS]
    n_exact = n_wrong = 0
    for one, reply in replies(chosen, program, rows):
        n_exact += reply is not None and reply.content == one.step.call.content
        n_wrong += reply is not None and reply.content != one.step.call.content
    return Trial(len(chosen), n_exact, n_wrong)


def replies(
    calls: Iterable[TrialCall], program: dict[str, Any], rows: Mapping[str, Table]
) -> Iterator[tuple[TrialCall, ToolAnswer | None]]:
    """Yield what the program says to each call; None: nothing. Raises Malformed."""
    of_versions: dict[str | None, Program] = {}
    for one in calls:
        call, at = one.step.call, instant(one.step.call.called_at) if program.get("versions") else None
        if at not in of_versions:
            now = Ready(program).at(at)
            of_versions[at] = Ready({**now, "rules": [
                rule for rule in now["rules"] if rule["rule"] not in ("recorded", "bound", "find")]})
        try:
            yield one, answer(of_versions[at], call.key, call.arguments, Before(one, rows))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise Malformed(f"{call.tool} cannot be asked {call.key[:120]} ({problem[:120]})") from error


class Before:
    """What a session knew just before a call, as rules ask for it; `runtime.refusals.State` describes the methods."""

    def __init__(self, one: TrialCall, rows: Mapping[str, Table]) -> None:
        self._texts = one.texts
        self._look: Callable[[str, str], Any] = one.step.look
        self._rows = rows

    def document(self, name: Name) -> str | None:
        return self._texts.get(name)

    def look(self, entity_class: str, key: str) -> Any:
        if entity_class.endswith(ROWS):
            wanted: Wanted = [((column,), value) for column, value in parsed(key).items()]
            return agreed(self._rows[entity_class].matching(wanted)) if entity_class in self._rows else None
        text = self._texts.get((entity_class, key))
        return self._look(entity_class, key) if text is None else parsed(text)

    def scope(self, before: Any, arguments: dict[str, Any]) -> Scope:
        """Nothing that is worked out is kept."""
        return Scope(before, arguments, self.look)

    def absent(self, *_: Any, **__: Any) -> bool:
        """Nothing is known not to be there."""
        return False

    def things(self, *_: Any, **__: Any) -> list[Any]:
        """Nothing is searched, nothing was taught, and no other question or call is known."""
        return []

    holders = taught_answers = answered = begun_answers = always_answered = writes = writes_on = things

    def past(self) -> PastCalls:
        """Look at no calls of the session."""
        return ()

    def shown(self, *_: Any, **__: Any) -> None:
        """No list is known, nothing is on record, and nothing is bound."""

    recorded = always = bound = shown


def held_out(
    steps: list[LoggedStep], program: dict[str, Any], induced: Callable[[list[LoggedStep]], list[Rule]]
) -> HeldOut | None:
    """Return how rules from each half answer the other; None where the program has no rule that can be measured so."""
    own = [rule["rule"] for rule in program["rules"] if rule["rule"] not in UNMEASURED]
    if not own or not set(own) <= set(MEASURED):
        return None
    results = Counter[tuple[str, str]]()
    for half in (0, 1):
        rest = [step for step in steps if half_of(step) != half]
        rules = [rule for rule in induced(rest) if rule["rule"] in MEASURED]
        held_out_steps = sorted((step for step in steps if half_of(step) == half), key=lambda step: digest(step.call.event_id))
        documents, tape = _agreed(rest, 1), _latest(rest)
        for step in held_out_steps[:MOST_HELD_OUT]:
            content = _answered(program | {"rules": rules}, step, documents)
            results[_result(content, step), _result(tape.get(step.call.key), step)] += 1
    return HeldOut(_trial(results, 0), _trial(results, 1), results["exact", "wrong"], results["wrong", "exact"])


def _trial(results: Mapping[tuple[str, str], int], side: int) -> Trial:
    """Return what became of the calls on one side of the pairs."""
    own = Counter[str]()
    for pair, n in results.items():
        own[pair[side]] += n
    return Trial(own.total(), own["exact"], own["wrong"])


def on_cassette(steps: list[LoggedStep]) -> Trial:
    """Return how each half's questions are answered by the other half's latest answers to exactly these."""
    results = Counter[str]()
    for half in (0, 1):
        tape = _latest(step for step in steps if half_of(step) != half)
        results.update(_result(tape.get(step.call.key), step) for step in steps if half_of(step) == half)
    return Trial(results.total(), results["exact"], results["wrong"])


def _latest(steps: Iterable[LoggedStep]) -> dict[str, str]:
    """Arguments -> the latest answer to them; in the order of the log where it has no clock."""
    return {step.call.key: step.call.content for step in sorted(steps, key=lambda step: instant(step.call.called_at) or "")}


def _result(content: str | None, step: LoggedStep) -> str:
    return "unknown" if content is None else "exact" if content == step.call.content else "wrong"


def _answered(program: dict[str, Any], step: LoggedStep, documents: dict[Name, str]) -> str | None:
    call = step.call
    shown = [rule for rule in program["rules"] if rule["rule"] == "document"]
    names = [(rule["class"], str(call.arguments.get(rule["argument"]))) for rule in shown]
    facts = [{"class": name[0], "key": name[1], "value": text, "session": None, "from": None, "to": None}
             for name in names if (text := step.before or documents.get(name)) is not None]
    state = EpisodeState(World(facts, []), {program["tool"]: program}, View(None, frozenset()))
    reply = answer(program, call.key, call.arguments, state)
    return None if reply is None else reply.content


def half_of(step: LoggedStep) -> int:
    """Which half of the sessions the step belongs to: 0 or 1, by the hash of its witness: cases stay together."""
    return int(digest(step.call.witness), 16) % 2


def _agreed(steps: list[LoggedStep], least: int) -> dict[Name, str]:
    """Text of each record that all reads, of at least so many sessions, showed alike."""
    texts: dict[Name, set[str]] = defaultdict(set)
    sessions: dict[Name, set[str]] = defaultdict(set)
    for step in steps:
        if step.shown:
            texts[step.shown[:2]].add(step.shown[2])
            sessions[step.shown[:2]].add(step.call.witness)
    sure = [name for name, contents in texts.items() if len(contents) == 1 and len(sessions[name]) >= least]
    return {name: next(iter(texts[name])) for name in sure}
