"""A session's calls in order, as the environment sees them: the write calls before each, what each showed and left behind.

Uses the runtime's own EpisodeState, so that what is recorded here and what is read there agree by construction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.expressions import FRESH, LAST, NOW, Look, nothing
from env_builder.runtime.numbering import drawn
from env_builder.runtime.programs import ACTING, presumed_effect
from env_builder.runtime.relevance import matters, names
from env_builder.runtime.world import Name, View, World
from env_builder.world.calls import LoggedCall, order_of
from env_builder.world.documents import Documents, DocumentTool, find_rows, usual_frame
from env_builder.world.effects import Effects

Programs = dict[str, dict[str, Any]]


class LoggedStep(NamedTuple):
    """A call and what is known of the session around it."""

    call: LoggedCall
    after: tuple[tuple[str, str], ...]
    """Earlier acts of the session that matter to it: (tool, canonical arguments), sorted."""
    shown: tuple[str, str, str] | None
    """(class, key, text) of the document it shows."""
    acting: bool
    """Its tool may change the world."""
    act: bool
    """It may have changed the world: its tool acts, and it did not fail."""
    before: str | None
    """Text of the document it speaks of as the session knew it just before, None where it did not."""
    effects: tuple[tuple[Name, str], ...]
    """Documents that it left behind: the one it shows, and those that were seen changed at the next read."""
    look: Look = nothing
    """Documents as known just before an act."""


MANY_VALUES = 5
"""Different values of an argument above which it may name something."""


def _given_once(worked: list[LoggedCall], shared: bool) -> list[str]:
    """Return the arguments that take many values, none of which was ever given twice in one world."""
    values: dict[str, set[str]] = defaultdict(set)
    given: set[tuple[str, ...]] = set()
    twice: set[str] = set()
    for call in worked:
        for name, value in call.arguments.items():
            if isinstance(value, str | int) and not isinstance(value, bool):
                once = (name, str(value)) if shared else (name, str(value), call.session_id)
                twice.update([name] if once in given else [])
                given.add(once)
                values[name].add(str(value))
    return sorted(name for name, several in values.items() if len(several) > MANY_VALUES and name not in twice)


def _repeated(calls: list[LoggedCall], effect: Mapping[str, str], shared: bool) -> set[str]:
    """Return the tools of which a call worked once more in one world, with nothing done in between that names the same."""
    tools: set[str] = set()
    ordered = sorted(calls, key=order_of) if shared else calls
    for _, mine in groupby(ordered, key=lambda call: "" if shared else call.session_id):
        done: dict[tuple[str, str], frozenset[str]] = {}
        for call in (each for each in mine if not each.failed and effect[each.tool] in ACTING):
            given = names(call.arguments)
            done = {own: words for own, words in done.items() if own[0] == call.tool or words.isdisjoint(given)}
            tools.update([call.tool] if (call.tool, call.key) in done else [])
            done[call.tool, call.key] = given
    return tools


def skeletons(calls: list[LoggedCall], documents: Documents, effects: Effects, shared: bool) -> Programs:
    """Return each tool's program before induction: its effect, its relations, and how it shows documents."""
    programs: Programs = {}
    shown, repeated = find_rows(calls), _repeated(calls, effects.effect, shared)
    for tool, effect in sorted(effects.effect.items()):
        documented = documents.tools.get(tool)
        rules = _showing([call for call in calls if call.tool == tool], documented, documents) if documented else []
        if tool in shown and effect == "read":
            rules.append(shown[tool])
        programs[tool] = {
            "tool": tool, "effect": effect, "class": documented.entity_class if documented else None,
            "relation": effects.relation.get(tool, {}), "rules": rules}
        worked = [call for call in calls if call.tool == tool and not call.failed]
        if worked:
            programs[tool] |= {
                "takes": sorted({name for call in worked for name in call.arguments}), "repeats": tool in effects.repeating}
            if effect in ACTING:
                programs[tool] |= {"once": _given_once(worked, shared), "again": tool in repeated}
        if tool in effects.presumed:
            programs[tool] |= {"effect": "unknown", "presumed": effect, "harmless": tool in effects.harmless,
                               **({"unseen": True} if tool in effects.unseen else {})}
        if tool in effects.unclear:
            programs[tool] |= {"unclear": True}
        affix = documents.classes[documented.entity_class].affix if documented else ("", "")
        if any(affix):
            programs[tool]["affix"] = list(affix)
    return programs


def steps(
    calls: list[LoggedCall], documents: Documents, programs: Programs, world: World | None = None,
    starts: dict[str, str | None] | None = None,
) -> Iterator[LoggedStep]:
    """All calls in order, session by session, each in an environment of its own on `world` as of its start."""
    base = World([], []) if world is None else world
    for session_id, session in groupby(calls, key=lambda call: call.session_id):
        view = View((starts or {}).get(session_id), frozenset((session_id,)))
        yield from _session(list(session), documents, programs, EpisodeState(base, programs, view))


def _session(calls: list[LoggedCall], documents: Documents, programs: Programs, state: EpisodeState) -> Iterator[LoggedStep]:
    steps: list[LoggedStep] = []
    last: dict[Name, tuple[str, int]] = {}
    acts: list[int] = []
    for index, call in enumerate(calls):
        after = state.after(call.tool, call.arguments) or []
        shown = documents.seen_in(call)
        acting = presumed_effect(programs[call.tool]) in ACTING
        act = acting and not call.failed
        effects = ((shown[:2], shown[2]),) if act and shown else ()
        before = _before(call, documents, last, state, programs)
        look = _then(state.fork().look, call) if acting else nothing
        steps.append(LoggedStep(call, tuple((tool, key) for tool, key in after), shown, acting, act, before, effects, look))
        if shown:
            cause = _cause(shown, last, state, programs, documents, acts)
            if cause is not None and not act:
                steps[cause] = steps[cause]._replace(effects=(*steps[cause].effects, (shown[:2], shown[2])))
        n_acts = len(state.write_calls)
        if act:
            state.take(call.tool, call.arguments, call.content, tuple(effects))
            acts.append(index)
        if shown:
            last[shown[:2]] = (shown[2], n_acts + act)
    yield from steps


def _then(look: Look, call: LoggedCall) -> Look:
    """Return the same at the instant of the call, where what is drawn at random is drawn."""
    def then(kind: str, key: str) -> Any:
        if kind == NOW:
            return call.called_at.isoformat() if call.called_at else None
        if kind == LAST:
            return 0  # which name comes next is told by all sessions together
        return drawn(parsed(key)[1], call.event_id, key) if kind == FRESH else look(kind, key)
    return then


def _before(
    call: LoggedCall, documents: Documents, last: dict[Name, tuple[str, int]], state: EpisodeState, programs: Programs
) -> str | None:
    """Return the document that the call names, as last seen in the session, unless a later act may have changed it."""
    documented = documents.tools.get(call.tool)
    if documented is None or documented.argument is None:
        return None
    name = (documented.entity_class, documents.plain(documented.entity_class, str(call.arguments.get(documented.argument))))
    if name not in last:
        return None
    text, since = last[name]
    return None if _touching(name, since, state, programs, documents) else text


def _cause(
    shown: tuple[str, str, str], last: dict[Name, tuple[str, int]], state: EpisodeState, programs: Programs,
    documents: Documents, acts: list[int],
) -> int | None:
    """Return the one earlier act that can have changed what is shown since the last look at it, or None."""
    name, text = shown[:2], shown[2]
    if name not in last or last[name][0] == text:
        return None
    able = _touching(name, last[name][1], state, programs, documents)
    return acts[able[0]] if len(able) == 1 else None


def _touching(name: Name, since: int, state: EpisodeState, programs: Programs, documents: Documents) -> list[int]:
    """Return the numbers of the write calls, from `since` on, that may have changed the record."""
    return [number for number, act in enumerate(state.write_calls[since:], since)
            if matters(programs[act.tool]["relation"].get(name[0]), act.names, documents.words(*name))]


def _showing(calls: list[LoggedCall], documented: DocumentTool, documents: Documents) -> list[dict[str, Any]]:
    """How the tool's answers hold the document: one rule for each frame around it, the most used first."""
    frame = usual_frame((call.content, shown[2]) for call in calls if (shown := documents.seen_in(call)))
    return [] if frame is None or documented.argument is None else [
        {"rule": "document", "class": documented.entity_class, "argument": documented.argument, "before": frame[0],
         "after": frame[1], **({"agrees": list(map(list, documented.agrees))} if documented.agrees else {})}]
