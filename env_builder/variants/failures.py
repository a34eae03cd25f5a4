"""Failures as tasks: a session that went wrong still had a goal, which the calls of good sessions reach.

In: a session's goals with the arguments that their words ask for, its moves, and how good sessions use the tools. Out: the
moves of a session that did it, played in the environment as of the failed one's beginning. It follows the failed session (its
reads, words and right write calls) until that does something else; what is left is then done. An argument comes from the slots
of a goal, else from where good sessions took it; a value that is read must be the only one at its place in all that was shown.
Accepted only where every call is answered, each write call changes what such calls of good sessions changed and nothing else,
and no failed session of the task reached the same end. Sees: write calls that goals name, and those in nearly every good
session of the family. Does not see: what is asked between the lines, tasks whose right answer is to refuse or to tell.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from env_builder.audit.values import Path, leaves
from env_builder.runtime.answers import parsed
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.programs import Programs
from env_builder.runtime.stances import declines, takes_back
from env_builder.runtime.user import granted
from env_builder.runtime.words import facts_in
from env_builder.runtime.world import View, World
from env_builder.variants.moves import (
    ACTS,
    Arguments,
    ArgumentSources,
    Form,
    Move,
    PlayedSession,
    ToolUse,
    text_of,
    texts_of,
    touched_by,
    whole_word,
)

_READS = ("read", "pure", "constant")
_DEEPEST = 3
"""Looks that lead to looks, at most."""
PROOFS, N_PROOFS = 3, 40
"""Good sessions that it takes to prove a solution, and that are looked at, by their hash."""
PROVEN = 0.9
"""Share of them that must have done just what their words lead to."""
NOT_PROVEN = "way_not_proven"


class SessionGoal(NamedTuple):
    """One goal of a session (`mart.goals`)."""

    asks: str
    slots: dict[str, Any]


class ServiceModel(NamedTuple):
    """What is known of one service."""

    world: World
    programs: Programs
    effects: Mapping[str, str]
    """Tool -> effect."""
    uses: Mapping[str, ToolUse]
    sources: ArgumentSources
    reads: Mapping[str, tuple[Form, ...]]
    """Tool that only looks -> forms of its arguments in good sessions."""
    proven: Mapping[str, tuple[int, int]]
    """Tool that acts -> good sessions that were asked for it, and how many of them did just what `acts_wanted` says."""
    is_proven: Mapping[str, bool]
    """Tool that acts -> whether these are enough."""
    routine: Mapping[str, tuple[str, ...]]
    """Family -> tools that act in nearly all its good sessions, whatever is asked."""
    goals: Mapping[str, list[SessionGoal]]
    """Session -> its goals in order."""
    moves: Mapping[str, list[Move]]
    goal_messages: Mapping[str, Sequence[int]] = {}
    """Session -> with which of its user's messages (from 1) each of its goals came."""
    good_wishes: Mapping[tuple[int, ...], int] = {}
    """Messages with which the goals of a session came -> how many sessions that went well stated them so."""

    def begun(self, starts_at: str | None, session_ids: frozenset[str]) -> EpisodeState:
        """Return the environment as of an instant, in the view of sessions."""
        return EpisodeState(self.world, self.programs, View(starts_at, session_ids))


class WantedCall(NamedTuple):
    """An act that is to be done."""

    tool: str
    arguments: Arguments
    form: Form
    reads: tuple[tuple[str, Arguments], ...]
    """What has to be looked up first, beyond what the session looked up."""


class Derived(NamedTuple):
    """A session that was played, not logged."""

    moves: list[Move]
    difference: dict[str, Any]
    lent_by: str
    """Good session that its solution is from."""
    sure: float
    """Share of good sessions that it leads to what they did (Laplace: one more that it does, one that it does not), times the
    chance that the session had asked for all that its user wanted."""


class Solution(NamedTuple):
    """What follows from a session and from how tools are used, whatever the number of sessions that use them so."""

    moves: list[Move]
    difference: dict[str, Any]
    lent_by: str
    session_id: str
    """The session that was played as it should have gone."""
    tools: list[str]
    """Those that it acts with."""


def solve(model: ServiceModel, family: str, session_id: str, begun: EpisodeState) -> Solution:
    """Play the session `session_id` as it should have gone, from the state `begun`. Raises Unbound, with the reason; that a way
    is not proven is said by the name of its tool alone."""
    moves = model.moves.get(session_id, [])
    wanted = acts_wanted(model, family, session_id, begun)
    _doubt(model, family, session_id, moves)
    tools = list(dict.fromkeys(act.tool for act in wanted))
    for tool in tools:
        if not model.is_proven.get(tool, False):
            raise Unbound(NOT_PROVEN, tool)
    until = _until(model, moves, wanted)
    play = PlayedSession(begun)
    todo = _along(model, play, moves[:until], wanted)
    for move in _later(moves, until, wanted):
        play.moves.append(move)
    for act in todo:
        _do(model, play, act)
        _tell(model, play, act)
    return Solution(play.moves, play.state.difference(), wanted[0].form.session_id, session_id, tools)


def rated(model: ServiceModel, solution: Solution) -> Derived:
    """Return the solution with how sure it is."""
    counts = [model.proven.get(tool, (0, 0)) for tool in solution.tools]
    sure = min((n_right + 1) / (n + 2) for n, n_right in counts) * _said_all(model, solution.session_id)
    return Derived(solution.moves, solution.difference, solution.lent_by, sure)


def worded(model: ServiceModel, unbound: Unbound) -> Unbound:
    """Return why there is no solution, with how many sessions say so."""
    if unbound.reason != NOT_PROVEN:
        return unbound
    n, n_right = model.proven.get(unbound.detail, (0, 0))
    return Unbound(NOT_PROVEN, f"Of {n} successful sessions, {n_right} did with {unbound.detail} what their words lead to.")


def _doubt(model: ServiceModel, family: str, session_id: str, moves: list[Move]) -> None:
    """Raise Unbound where its goals may not be what was right to do: declined, taken back, or acts that none of them names."""
    if any(move.role == "assistant" and declines(move.text) for move in moves):
        raise Unbound("was_declined", "The agent declined something; whether that was right is not known.")
    words = [move.text for move in moves if move.role == "user"]
    if any(granted(text) is False or takes_back(text) for text in words):
        raise Unbound("taken_back", "The user said no to something; what was wanted in the end is not known.")
    wishes = model.goal_messages.get(session_id, ())
    if any("?" in text for place, text in enumerate(words, 1) if place not in wishes and place > min(wishes, default=1)):
        raise Unbound("asks_more", "The user asked something later on that none of its goals says.")
    named = {goal.asks for goal in model.goals.get(session_id, ())}.union(model.routine.get(family, ()))
    unnamed = {tool for tool, _ in _done(model, moves)} - named
    if unnamed:
        raise Unbound("other_acts", f"It did {', '.join(sorted(unnamed))}, which none of its goals names.")


def _said_all(model: ServiceModel, session_id: str) -> float:
    """Return how likely nothing more would have been asked for, had the session gone well: of good sessions that had asked for
    as much after as many messages, the share that asked for no more."""
    n = len(model.goals.get(session_id, ()))
    n_messages = sum(move.role == "user" for move in model.moves.get(session_id, ()))
    alike = {places: times for places, times in model.good_wishes.items() if sum(place <= n_messages for place in places) == n}
    n_done = sum(times for places, times in alike.items() if len(places) == n)
    return n_done / sum(alike.values()) if alike else 1.0


def end_of(model: ServiceModel, moves: list[Move], begun: EpisodeState) -> dict[str, Any]:
    """Return what the logged acts of a session change in its environment."""
    state = begun.fork()
    for move in moves:
        if move.arguments is not None and model.effects.get(move.tool) in ACTS:
            state.call(move.tool, move.arguments)
    return state.difference()


def proofs(model: ServiceModel, of_session: Mapping[str, tuple[str, EpisodeState]]) -> dict[str, tuple[int, int]]:
    """`ServiceModel.proven`, from good sessions: (family, its environment as it begins). What was done unasked
    counts against."""
    results: dict[str, list[bool]] = defaultdict(list)
    for session_id, (family, begun) in sorted(of_session.items(), key=lambda item: digest(item[0])):
        tools = {goal.asks for goal in model.goals.get(session_id, ()) if goal.asks in model.uses}
        if all(len(results[tool]) >= N_PROOFS for tool in tools):
            continue
        done = _done(model, model.moves.get(session_id, []))
        try:
            calls = _plain_calls(acts_wanted(model, family, session_id, begun))
        except Unbound:
            continue
        unasked = {tool for tool, _ in done} - {tool for tool, _ in calls}
        for tool in tools:
            same = [act for act in calls if act[0] == tool] == [act for act in done if act[0] == tool]
            results[tool].append(not unasked and same)
    return {tool: (len(right), sum(right)) for tool, right in results.items()}


def same_acts(model: ServiceModel, moves: list[Move], wanted: list[WantedCall]) -> bool:
    """Did a session do what is wanted, and nothing else?"""
    return _done(model, moves) == _plain_calls(wanted)


def _done(model: ServiceModel, moves: list[Move]) -> list[tuple[str, str]]:
    """Write calls of a session that worked: (tool, plain text), sorted."""
    return sorted((move.tool, _plain(move.tool, move.arguments)) for move in moves
                  if move.arguments is not None and not move.failed and model.effects.get(move.tool) in ACTS)


def _plain_calls(wanted: list[WantedCall]) -> list[tuple[str, str]]:
    return sorted((act.tool, _plain(act.tool, act.arguments)) for act in wanted)


def acts_wanted(model: ServiceModel, family: str, session_id: str, begun: EpisodeState) -> list[WantedCall]:
    """Return the acts that a session's goals ask for, in order, and those of the routine after them. Raises Unbound."""
    moves, goals = model.moves.get(session_id, []), model.goals.get(session_id, [])
    requests = [(goal.asks, goal.slots) for goal in goals if model.effects.get(goal.asks) in ACTS]
    if not requests:
        raise Unbound("nothing_to_change", "Its goals name no act; what it should have been told is not known.")
    merged = {path: value for goal in goals for path, value in goal.slots.items()}
    requests += [(tool, merged) for tool in model.routine.get(family, ())]
    answers = [(move.tool, move.text) for move in moves if not move.failed and model.effects.get(move.tool) in _READS]
    words = " ".join(move.text for move in moves if move.role == "user")
    acts: list[WantedCall] = []
    for tool, slots in requests:
        if tool not in model.uses:
            raise Unbound("no_known_way", f"No successful session used {tool}.")
        ordered = in_order(slots, words, answers)
        taken_as_named(ordered, words, answers)
        search = Search(model, ordered, answers, begun)
        acts.append(WantedCall(tool, *search.bound(tool, model.uses[tool].forms, ordered), tuple(search.made)))
    return acts


class Search:
    """Finds arguments; what the session did not look up is looked up where good sessions did, and noted in `made`."""

    def __init__(self, model: ServiceModel, slots: dict[str, Any], answers: Shown, begun: EpisodeState) -> None:
        self._model, self._slots, self._answers, self._begun = model, slots, answers, begun
        self._depth = 0
        self.made: list[tuple[str, Arguments]] = []

    def bound(self, tool: str, forms: tuple[Form, ...], slots: dict[str, Any]) -> tuple[Arguments, Form]:
        """Arguments of a call, and the form that they follow. Raises Unbound."""
        return bind(tool, forms, slots, self._model.sources, self._shown)

    def _shown(self, tool: str) -> Shown:
        there = [each for each in self._answers if each[0] == tool]
        if there or tool not in self._model.reads or self._depth >= _DEEPEST:
            return there
        self._depth += 1
        with suppress(Unbound):
            for form in self._model.reads[tool]:
                given = {name: self._slots[name] for name in form.names if name in self._slots}
                arguments, _ = self.bound(tool, (form,), given)
                play = PlayedSession(self._begun)
                if play.call(tool, arguments):
                    self.made.append((tool, arguments))
                    self._answers = [*self._answers, (tool, play.moves[-1].text)]
                    break
        self._depth -= 1
        return [each for each in self._answers if each[0] == tool]


def _until(model: ServiceModel, moves: list[Move], wanted: list[WantedCall]) -> int:
    """How far to go along with the session: up to its first wrong act, or to its last call where it left something undone."""
    todo = [_plain(act.tool, act.arguments) for act in wanted]
    last = 0
    for index, move in enumerate(moves):
        if move.arguments is None or move.failed:
            continue
        if model.effects.get(move.tool) in ACTS:
            done = _plain(move.tool, move.arguments)
            if done not in todo:
                return index
            todo.remove(done)
        last = index + 1
    return last if todo else len(moves)


def _along(model: ServiceModel, play: PlayedSession, moves: list[Move], wanted: list[WantedCall]) -> list[WantedCall]:
    """Go along with the session; gives what is left to do."""
    todo = list(wanted)
    for move in moves:
        if move.arguments is None:
            play.moves.append(move)
        elif move.failed:
            continue
        elif model.effects.get(move.tool) in ACTS:
            act = next(act for act in todo if _plain(*act[:2]) == _plain(move.tool, move.arguments))
            todo.remove(act)
            _do(model, play, act._replace(arguments=move.arguments), move.requestor)
        elif model.effects.get(move.tool) in _READS:
            play.call(move.tool, move.arguments, move.requestor)
    return todo


def _do(model: ServiceModel, play: PlayedSession, act: WantedCall, requestor: str | None = None) -> None:
    """Make an act, after the reads that it takes. Raises Unbound where the environment does not bear it out."""
    for tool, arguments in act.reads:
        play.call(tool, arguments)
    before = play.state
    if not play.call(act.tool, act.arguments, requestor):
        answer = play.state.fork().call(act.tool, act.arguments)
        raise Unbound("does_not_play", f"{act.tool} {canonical(act.arguments)[:200]} is answered {answer.content[:100]!r}.")
    if not model.uses[act.tool].fits(touched_by(before, play.state)):
        raise Unbound("changes_other_things", f"{act.tool} changes what it never changed in successful sessions, or less.")


def _tell(model: ServiceModel, play: PlayedSession, act: WantedCall) -> None:
    """Say what the good session that lends the act said after it, with what this act gave and was answered in its place.

    Raises Unbound where that was something else still."""
    lent, own = model.moves.get(act.form.session_id, []), play.moves[-1]
    place = next((at for at, move in enumerate(lent) if move.tool == act.tool and not move.failed), len(lent))
    words = next((move.text for move in lent[place + 1:] if move.role == "assistant"), "")
    if place == len(lent):
        return
    others, values = _values_of(lent[place]), _values_of(own)
    pairs: dict[str, set[str]] = defaultdict(set)
    for path, value in others.items():
        pairs[value].update([values[path]] if path in values and len(value) > 1 else [])
    own_words, n_swapped = _swapped(words, {value: min(there) for value, there in pairs.items() if len(there) == 1})
    if not n_swapped:
        return
    if facts_in(own_words) - facts_in(" ".join([own.text, *values.values()])):
        raise Unbound("tells_more", f"After {act.tool}, successful sessions tell what it neither takes nor answers.")
    play.moves.append(Move("assistant", own_words))


def _swapped(words: str, values: Mapping[str, str]) -> tuple[str, int]:
    """Return the words with other values in the place of these, where they stand alone, and how many they were."""
    longest_first = sorted(values, key=lambda value: (-len(value), value))
    pattern = "|".join(map(whole_word, longest_first))
    return re.subn(pattern, lambda match: values[match[0]], words) if pattern else (words, 0)


def _values_of(move: Move) -> dict[Path, str]:
    """Return the single values that a call takes and is answered, by their places."""
    places = (("given", move.arguments), ("answered", parsed(move.text)))
    return {(side, *path): text_of(value) for side, one in places for path, value in leaves(one)
            if isinstance(value, str | int | float) and not isinstance(value, bool)}


def _later(moves: list[Move], until: int, wanted: list[WantedCall]) -> Iterator[Move]:
    """Return what the user said later on that an act needs: nobody can do without it."""
    heard = " ".join(move.text for move in moves[:until] if move.role == "user").lower()
    needed = {text.lower() for act in wanted for text in texts_of(act.arguments)}
    missing = {text for text in needed if text not in heard}
    words = [move for move in moves[until:] if move.role == "user"]
    last = max((place for place, move in enumerate(words) if any(text in move.text.lower() for text in missing)), default=-1)
    yield from words[:last + 1]


def _plain(tool: str, arguments: Arguments) -> str:
    """Return an act's text whatever the order in its lists."""
    return canonical([tool, _unordered(arguments)])


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unordered(inner) for name, inner in value.items()}
    return sorted((_unordered(inner) for inner in value), key=canonical) if isinstance(value, list) else value


Slots = Mapping[str, Any]
Shown = list[tuple[str, str]]
"""(tool, answer)."""


class Unbound(Exception):
    """A call cannot be given what it takes."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def bind(
    tool: str, forms: Iterable[Form], slots: Slots, sources: ArgumentSources, shown: Callable[[str], Shown]
) -> tuple[Arguments, Form]:
    """Fill in arguments, in the most usual of `forms` that takes all slots and can be filled.

    `shown`: what was shown of a tool so far, by its name. Raises Unbound, with what the most usual form lacks.
    """
    first: Unbound | None = None
    for form in forms:
        if not {path.partition(".")[0] for path in slots} <= form.names:
            continue
        try:
            arguments = {
                name: _filled(name, value, slots, lambda path: _read(tool, path, sources, shown))
                for name, value in form.example.items()}
        except Unbound as unbound:
            first = first or unbound
            continue
        if sum(isinstance(value, list) and len(value) > 1 for value in arguments.values()) > 1:
            first = first or Unbound("order_not_known", f"{tool} takes two lists, and nothing says what belongs together.")
            continue
        return arguments, form
    raise first or Unbound("no_way", f"No successful session gave {tool} {', '.join(sorted(slots))} together.")


def _filled(path: str, example: Any, slots: Slots, read: Callable[[str], str | None]) -> Any:
    """Return a value like the example with what the slots, else the sources, say."""
    if isinstance(example, dict):
        return {name: _filled(f"{path}.{name}", value, slots, read) for name, value in example.items()}
    if isinstance(example, list) and example and isinstance(example[0], dict):
        return [_filled(path, example[0], slots, read)]
    if isinstance(example, bool) or example is None:
        raise Unbound("slot_not_filled", f"The words do not say what {path} is.")
    given = slots[path] if path in slots else read(path)
    if given is None:
        raise Unbound("slot_not_filled", f"Neither the words nor what was looked up say what {path} is.")
    several = given if isinstance(given, list) else [given]
    if isinstance(example, list):
        return [_like(example[0] if example else "", value) for value in several]
    if len(several) > 1:
        raise Unbound("slot_not_filled", f"The words name {len(several)} values for {path}, which takes one.")
    return _like(example, several[0])


def _like(example: Any, text: str) -> Any:
    if isinstance(example, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise Unbound("slot_not_filled", f"{text!r} is no number, as successful sessions gave there.") from None


def _read(tool: str, path: str, sources: ArgumentSources, shown: Callable[[str], Shown]) -> str | None:
    """Return the one value that the argument's sources give, or None."""
    for source in sources.get((tool, path), ()):
        if not source.tool:
            return source.value
        values = {value for _, answer in shown(source.tool) for value in values_at(answer, source.path)}
        if len(values) == 1:
            return values.pop()
    return None


def in_order(slots: Slots, words: str, shown: Shown) -> dict[str, Any]:
    """Order the values of each slot as the words name them, or the record that an answer holds them in."""
    heard = words.lower()
    places: dict[str, int] = {}
    several = {value for values in slots.values() if isinstance(values, list) for value in values}
    for record in (record for _, answer in shown for record in _records(parsed(answer))) if several else ():
        texts = [text for text in record.values() if isinstance(text, str) and text]
        for value in several.intersection(texts):
            named = max((text for text in texts if text.lower() in heard), key=len, default=None)
            if named is not None:
                places.setdefault(value, heard.index(named.lower()))
    places |= {value: heard.index(value.lower()) for value in several if value.lower() in heard}
    return {path: sorted(values, key=lambda value: places.get(value, len(heard))) if isinstance(values, list) else values
            for path, values in slots.items()}


def taken_as_named(slots: Slots, words: str, shown: Shown) -> None:
    """Raise Unbound where a slot takes other rows of a list than the words name: a row's name is its longest text in them."""
    heard = words.lower()
    for path, given in slots.items():
        values = {value for value in (given if isinstance(given, list) else [given]) if str(value).lower() not in heard}
        for rows in _tables(shown) if values else ():
            named = [(name, row.intersection(values)) for row in rows
                     if (name := max((text.lower() for text in sorted(row) if text.lower() in heard), key=len, default=""))]
            taken = Counter(name for name, value in {(name, value) for name, there in named for value in there})
            for name, n_rows in sorted(Counter(name for name, _ in named).items()) if taken else ():
                n_said = min(heard.count(name), n_rows)
                if taken[name] != n_said:
                    raise Unbound("several_readings", f"The words name {n_said} of {n_rows} rows {name!r}; {path} takes "
                                                      f"{taken[name]}.")


def _tables(shown: Shown) -> Iterator[list[frozenset[str]]]:
    """Yield the lists of records in answers: the texts of each record."""
    for _, answer in shown:
        lists = [parsed(answer)]
        for value in lists:
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            lists.extend(inner)
            if isinstance(value, list) and any(isinstance(each, dict) for each in value):
                yield [frozenset(text for text in each.values() if isinstance(text, str) and text)
                       for each in value if isinstance(each, dict)]


def _records(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _records(inner)


def values_at(answer: str, path: str) -> list[str]:
    """Single values at a path of an answer: names joined by `.`, `[]` for elements, `*` for any name; of a text, the text."""
    value = parsed(answer)
    if value is None:
        return [answer.strip()] if not path and answer.strip() and " " not in answer.strip() else []
    values = [value]
    for step in path.replace("[]", ".[]").strip(".").split(".") if path else ():
        values = [inner for each in values for inner in _inner(each, step)]
    return [text_of(each) for each in values if isinstance(each, str | int | float) and not isinstance(each, bool)]


def _inner(value: Any, step: str) -> list[Any]:
    if step == "[]":
        return value if isinstance(value, list) else []
    if not isinstance(value, dict):
        return []
    return list(value.values()) if step == "*" else [value[step]] if step in value else []
