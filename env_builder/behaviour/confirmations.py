"""Write calls that are only confirmed, and calls that are refused as what they name does not exist.

In: the calls of a service whose sessions begin alike. Out: a `confirm` rule, or None. A confirmation is the one text that a
tool says to most calls that work, or one with a number that counts them. An argument names if nearly all of its values that
worked had been shown in a column of known rows (of its name, if there is one), or had worked with any tool. A value that was
only ever refused does not exist, nor does one of a shape that no existing one has; a tool has one message for these. Other
arguments must have values that were accepted before, as far as this is needed to be right. All is tried on each call with what
the other sessions showed.
Sees: one naming argument; what calls that name the same did to it (`after`). Does not see: reasons in the state of an entity.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, combinations, groupby
from typing import Any, NamedTuple

from env_builder.behaviour.evidence import NOTHING, Induced, Rule, ToolEvidence, one_or_none
from env_builder.runtime.canonical import canonical
from env_builder.runtime.confirmations import MISSING, NO_NAME, WORKS, NamedEntity, confirmation, number_in, shape
from env_builder.runtime.filters import without_blanks
from env_builder.runtime.programs import ACTING
from env_builder.runtime.tables import ROWS, rows_in, scalars
from env_builder.runtime.texts import signs_of
from env_builder.world.calls import LoggedCall
from env_builder.world.replay import LoggedStep

MINIMUM_CONFIRMED, MINIMUM_MISSING = 20, 10
"""Calls that the other sessions must foretell, for the rule to confirm, and to say that something does not exist."""
AGAINST = 0.005
"""Share of the calls it answers in which the rule may be wrong."""
NEARLY_ALL = 0.95
"""Share of the values that worked which must have been known to exist."""
MOSTLY = 0.8
"""Share of the calls that worked which must name something."""
MINIMUM_NAMES, MINIMUM_AFTER = 5, 3
MOST_ACCEPTED, MOST_GUARDS = 500, 4
CONFIRMED = 0.3
"""Share of a tool's calls that its confirmation must have at least."""
_NUMBER = re.compile(r"\d+")
Tried = tuple[int, Rule]
"""How many calls a rule foretells, and the rule."""
Place = tuple[str, str, str]
"""(class of rows or nothing, column or argument, value)."""


class TriedCall(NamedTuple):
    """A call, with what its session did before."""

    call: LoggedCall
    writes: tuple[LoggedCall, ...]

    def own_answers(self) -> list[str] | None:
        """Return what the tool answered before in the session, None if write calls since then name it."""
        own = [write.content for write in self.writes if write.tool == self.call.tool]
        is_named = any(str(value) in own for write in self.writes for value in write.arguments.values())
        return None if is_named else own


class Existence:
    """In which sessions a value was first shown, worked, or was refused."""

    def __init__(self, steps: Iterable[LoggedStep], rules: dict[str, Rule]) -> None:
        """`rules`: tool -> its rule that says which rows its answers list."""
        self._first: dict[Place, dict[str, int]] = defaultdict(dict)
        self.trials: dict[str, list[TriedCall]] = defaultdict(list)
        for _, session in groupby(steps, key=lambda step: step.call.session_id):
            writes: tuple[LoggedCall, ...] = ()
            for step in session:
                self.trials[step.call.tool].append(TriedCall(step.call, writes))
                if not step.call.failed and step.call.tool in rules:
                    rows = rows_in(rules[step.call.tool], step.call.arguments, step.call.parsed)
                    self._show(step.call, rules[step.call.tool]["class"], [dict(scalars(row)) for row in rows], writes)
                if step.shown:
                    self._show(step.call, step.shown[0] + ROWS, [{("key",): step.shown[1]}], writes)
                for name, value in step.call.arguments.items() if not step.call.failed else ():
                    self._note(("", name, str(value)), step.call, writes)
                writes = (*writes, step.call) if step.act else writes
        self.columns = sorted({place[:2] for place in self._first if place[0]})

    def _show(
        self, call: LoggedCall, kind: str, rows: list[dict[tuple[str, ...], Any]], writes: tuple[LoggedCall, ...]
    ) -> None:
        for row in rows:
            for path, value in row.items():
                if len(path) == 1 and isinstance(value, str | int):
                    self._note((kind, path[0], str(value)), call, writes)

    def _note(self, place: Place, call: LoggedCall, writes: tuple[LoggedCall, ...]) -> None:
        """Take in a value, unless the session may have made it itself."""
        if not any(place[2] in write.content for write in writes):
            self._first[place].setdefault(call.session_id, call.position)

    def holds(self, place: Place, call: LoggedCall | None) -> bool:
        """Return whether another session met the value, or its own before; None: whether any did."""
        first = self._first.get(place, {})
        if call is None or len(first) > (call.session_id in first):
            return bool(first)
        return call.session_id in first and first[call.session_id] < call.position

    def values(self, place: tuple[str, str]) -> list[str]:
        return [value for kind, name, value in self._first if (kind, name) == place]

    def exists(self, rule: Rule, value: str, trial: TriedCall | None) -> bool:
        call = None if trial is None else trial.call
        made = trial is not None and any(value in write.content for write in trial.writes)
        return made or any(self.holds((kind, name, value), call)
                           for kind, name in (*map(tuple, rule["sources"]), ("", rule["argument"])))


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that only confirms, or of a read that says that what it is asked for does not exist."""
    begins_alike = evidence.service.starts_from == "reset" and evidence.documented.get("alike", True)
    if evidence.sources is None or not begins_alike or not evidence.has_only("recorded", "refuse", "shows", "nothing"):
        return NOTHING
    rules = {tool: rule for tool, program in evidence.service.programs.items() for rule in program["rules"]
             if rule["rule"] == "rows"}
    existence = Existence(evidence.service.steps, rules)
    return one_or_none(confirm_rule(evidence.tool, existence, evidence.effect in ACTING))


def confirm_rule(tool: str, existence: Existence, acts: bool) -> Rule | None:
    """Return the `confirm` rule of one tool, with the naming argument with which it foretells most calls."""
    trials = existence.trials[tool]
    confirms = _confirms(trials) if acts else None
    worked = [trial for trial in trials if not trial.call.failed and (
        not acts or (confirms is not None and _is_confirmed(confirms, trial.call.content)))]
    names = sorted({tuple(sorted(without_blanks(trial.call.arguments))) for trial in worked})
    blank: Rule = {"rule": "confirm", "confirms": confirms, "names": list(map(list, names)), "argument": None, "sources": [],
                   "known": [], "refused": [], "shapes": [], "missing": None, "is_error": True, "after": {}, "accepted": {}}
    best: tuple[int, Rule] | None = None
    for rule in [{**blank, **argument} for argument in _arguments(blank, worked, existence)] + [blank]:
        if rule["argument"] is not None:
            _set_missing(rule, trials, existence)
            _set_after(rule, trials)
        tried = None if rule["confirms"] is rule["missing"] is None else _with_guards(rule, trials, worked, existence)
        best = tried if tried is not None and (best is None or tried[0] > best[0]) else best
    return None if best is None else best[1]


def _confirms(trials: list[TriedCall]) -> dict[str, Any] | None:
    """Return how the tool confirms: by one text, or by one with a number that counts the session's confirmed calls."""
    contents = Counter(trial.call.content for trial in trials if not trial.call.failed)
    if not contents:
        return None
    content, n = contents.most_common(1)[0]
    numbers = list(_NUMBER.finditer(content))
    if numbers:
        number = numbers[-1]
        counting = {"before": content[:number.start()], "after": content[number.end():], "width": len(number[0]),
                    "from": int(number[0])}
        n = sum(number_in(counting, trial.call.content) is not None for trial in trials)
        return counting if n >= CONFIRMED * len(trials) and len(contents) > 1 else None
    if n < CONFIRMED * len(trials) or content[:1] in ("{", "["):
        return None
    return {"before": content, "after": "", "width": 0, "from": None}


def _is_confirmed(confirms: dict[str, Any], content: str) -> bool:
    return content == confirms["before"] if confirms["from"] is None else number_in(confirms, content) is not None


def _arguments(rule: Rule, worked: list[TriedCall], existence: Existence) -> Iterator[Rule]:
    """Yield each argument that may name, the columns in which its values stand, and the sets of arguments that hold it."""
    for name in sorted({name for trial in worked for name in trial.call.arguments}):
        named = [(str(trial.call.arguments[name]), trial) for trial in worked if name in trial.call.arguments]
        if len({value for value, _ in named}) < MINIMUM_NAMES or len(named) < MOSTLY * len(worked):
            continue
        own = [column for column in existence.columns if column[1] == name]
        shares = {column: sum(existence.holds((*column, value), trial.call) for value, trial in named) / len(named)
                  for column in own or existence.columns}
        sources = [list(column) for column, share in sorted(shares.items()) if 2 * share >= 1]
        n_existing = sum(existence.exists({"argument": name, "sources": sources}, value, trial) for value, trial in named)
        if sources and n_existing >= NEARLY_ALL * len(named):
            yield {"argument": name, "sources": sources, "names": [one for one in rule["names"] if name in one]}


def _set_missing(rule: Rule, trials: list[TriedCall], existence: Existence) -> None:
    """Set what the tool says of what does not exist, which values are known not to, and the shapes of those that do."""
    name = rule["argument"]
    named = [(str(trial.call.arguments[name]), trial) for trial in trials if name in trial.call.arguments]
    refused = Counter(trial.call.content for value, trial in named
                      if trial.call.failed and not existence.exists(rule, value, None))
    if not refused:
        return
    rule["missing"] = refused.most_common(1)[0][0]
    shown = {value for source in rule["sources"] for value in existence.values((source[0], source[1]))}
    rule["known"] = sorted(set(existence.values(("", name))) - shown)[:MOST_ACCEPTED]
    rule["refused"] = sorted(_refused(name, rule, existence))[:MOST_ACCEPTED]
    rule["shapes"] = sorted({shape(value) for value in shown})


def _refused(name: str, rule: Rule, existence: Existence) -> dict[str, set[str]]:
    """Return the values of the argument that were only refused, by whatever tool, with the sessions in which they were."""
    sessions: dict[str, set[str]] = defaultdict(set)
    for _, trials in sorted(existence.trials.items()):
        for trial in trials:
            value = trial.call.arguments.get(name)
            if trial.call.failed and value is not None and not existence.exists(rule, str(value), None):
                sessions[str(value)].add(trial.call.session_id)
    return sessions


def _set_after(rule: Rule, trials: list[TriedCall]) -> None:
    """Set what a call says after a write call that named the same: that it does not exist any more, or as ever."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for trial in trials:
        earlier = {write.tool for write in _earlier(rule, trial)}
        if len(earlier) == 1:
            is_missing = trial.call.failed and trial.call.content == rule["missing"]
            outcomes[earlier.pop()][MISSING if is_missing else "" if trial.call.failed else WORKS] += 1
    rule["after"] = {tool: next(iter(counts)) for tool, counts in sorted(outcomes.items())
                     if len(counts) == 1 and "" not in counts and counts.total() >= MINIMUM_AFTER}


def _earlier(rule: Rule, trial: TriedCall) -> list[LoggedCall]:
    """Return the write calls of the session that name the same."""
    value = str(trial.call.arguments.get(rule["argument"]))
    return [write for write in trial.writes if any(str(other) == value for other in write.arguments.values())]


def _with_guards(rule: Rule, trials: list[TriedCall], worked: list[TriedCall], existence: Existence) -> Tried | None:
    """Return the rule with the fewest guards on other arguments with which it is right, None if it never is."""
    sessions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for trial in worked:
        for name, value in {**dict.fromkeys(_others(rule, worked)), **without_blanks(trial.call.arguments)}.items():
            sessions[name, canonical(value)].add(trial.call.session_id)
    accepted: dict[str, list[str]] = defaultdict(list)
    for name, value in sorted(sessions):
        accepted[name].append(value)
    others = [name for name in _others(rule, worked) if len(accepted[name]) <= MOST_ACCEPTED][:MOST_GUARDS]
    guards = chain.from_iterable(combinations(others, n) for n in range(len(others) + 1)) if rule["confirms"] else iter([()])
    refused = _refused(rule["argument"], rule, existence) if rule["argument"] else {}
    for some in guards:
        guarded = {**rule, "accepted": {name: accepted[name] for name in some}}
        names = some if rule["argument"] else ()  # else one of them may name what the call is about
        signs = {name: kinds for name in names if (kinds := _many_signs(name, None, sessions))}
        for one in ({**guarded, "signs": signs}, guarded) if signs else (guarded,):
            tried = _tried(one, trials, existence, sessions, refused)
            if tried is not None:
                return tried
    return None


def _many_signs(name: str, session_id: str | None, sessions: dict[tuple[str, str], set[str]]) -> list[str]:
    """Return the signs that many accepted values of an argument have, some of which one session alone gave. `session_id`: its
    values do not count."""
    values: dict[str, list[set[str]]] = defaultdict(list)
    for (own, value), ids in sessions.items():
        if own == name and value[:1] == '"' and ids - {session_id}:
            values[signs_of(json.loads(value))].append(ids)
    return sorted(signs for signs, givers in values.items() if len(givers) >= MINIMUM_NAMES
                  and sum(len(ids) == 1 for ids in givers) >= MINIMUM_AFTER)


def _others(rule: Rule, worked: list[TriedCall]) -> list[str]:
    return sorted({name for trial in worked for name in trial.call.arguments if name != rule["argument"]})


def _tried(
    rule: Rule, trials: list[TriedCall], existence: Existence, sessions: dict[tuple[str, str], set[str]],
    refused: dict[str, set[str]],
) -> Tried | None:
    """Return the rule with the outcomes that it foretells, None if it is wrong, or foretells too few calls."""
    right: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    wrong: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for trial in trials:
        call = trial.call
        own = {**rule, "accepted": {name: [value for value in values if sessions[name, value] - {call.session_id}]
                                    for name, values in rule["accepted"].items()},
               "signs": {name: _many_signs(name, call.session_id, sessions) for name in rule.get("signs", {})}}
        reply = confirmation(own, call.arguments, _naming(rule, trial, existence, refused), trial.own_answers())
        if reply is not None:
            counts = right if reply[0] == call.content else wrong
            counts[reply[0] == rule["missing"]][canonical(sorted(without_blanks(call.arguments)))] += 1
    least = {True: MINIMUM_MISSING, False: MINIMUM_CONFIRMED}
    n_right = {is_missing: _n_right(right[is_missing], wrong[is_missing], n) for is_missing, n in least.items()}
    if n_right[False] == 0 and wrong[False]:
        return None
    rule = {**rule, "names": [one for one in rule["names"] if _is_right(canonical(one), right, wrong)],
            **({} if n_right[True] else {"missing": None}), **({} if n_right[False] else {"confirms": None})}
    n = n_right[True] + n_right[False]
    return (n, rule) if n else None


def _n_right(right: Counter[str], wrong: Counter[str], least: int) -> int:
    """Return how many calls are foretold, of the sets of arguments of which hardly any is foretold wrongly; 0 if too few."""
    n = sum(times for names, times in right.items() if wrong[names] <= AGAINST * times)
    return n if n >= least else 0


def _is_right(names: str, right: dict[bool, Counter[str]], wrong: dict[bool, Counter[str]]) -> bool:
    """Return whether calls with these arguments were foretold, and hardly any wrongly."""
    return any(right[is_missing][names] for is_missing in right) and all(
        wrong[is_missing][names] <= AGAINST * right[is_missing][names] for is_missing in right)


def _naming(rule: Rule, trial: TriedCall, existence: Existence, refused: dict[str, set[str]]) -> NamedEntity:
    """Return what other sessions, and its own before, knew of what the call names."""
    if rule["argument"] is None:
        return NO_NAME
    value = str(trial.call.arguments.get(rule["argument"]))
    exists = existence.exists(rule, value, trial)
    is_refused = bool(refused.get(value, set()) - {trial.call.session_id})
    return NamedEntity(exists, is_refused and not exists, [(write.tool, True) for write in _earlier(rule, trial)])
