"""A session's calls in order, as the room will see them: which acts came before each, what each showed and left behind.

Uses the runtime's own Room, so that what is recorded here and what is looked up there agree by construction.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.runtime.draws import drawn
from env_builder.runtime.episode import Room
from env_builder.runtime.expressions import FRESH, LAST, NOW, Look, nothing
from env_builder.runtime.programs import ACTING
from env_builder.runtime.relevance import matters
from env_builder.runtime.world import Name, View, World
from env_builder.world import rows
from env_builder.world.calls import Call
from env_builder.world.documents import Documents, DocumentTool, frame_of
from env_builder.world.effects import Effects

Programs = dict[str, dict[str, Any]]


class Step(NamedTuple):
    """A call and what is known of the session around it."""

    call: Call
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
    """Documents that it left behind: the one it shows, and those that were seen changed at the next look."""
    look: Look = nothing
    """Documents as known just before an act."""


def skeletons(calls: list[Call], documents: Documents, effects: Effects) -> Programs:
    """What is known of each tool before any program is induced: its effect, its relations, and how it shows documents."""
    programs: Programs = {}
    shown = rows.find(calls)
    for tool, effect in sorted(effects.effect.items()):
        known = documents.tools.get(tool)
        rules = _showing([call for call in calls if call.tool == tool], known, documents) if known else []
        if tool in shown and effect == "read":
            rules.append(shown[tool])
        programs[tool] = {
            "tool": tool, "effect": effect, "class": known.entity_class if known else None,
            "relation": effects.relation.get(tool, {}), "rules": rules,
        }
        affix = documents.classes[known.entity_class].affix if known else ("", "")
        if any(affix):
            programs[tool]["affix"] = list(affix)
    return programs


def steps(
    calls: list[Call], documents: Documents, programs: Programs, world: World | None = None,
    starts: dict[str, str | None] | None = None,
) -> Iterator[Step]:
    """All calls in order, session by session, each in a room of its own on `world` as of its start."""
    base = World([], []) if world is None else world
    for session_id, session in groupby(calls, key=lambda call: call.session_id):
        view = View((starts or {}).get(session_id), frozenset((session_id,)))
        yield from _session(list(session), documents, programs, Room(base, programs, view))


def _session(calls: list[Call], documents: Documents, programs: Programs, room: Room) -> Iterator[Step]:
    found: list[Step] = []
    last: dict[Name, tuple[str, int]] = {}
    acts: list[int] = []
    for index, call in enumerate(calls):
        after = room.after(call.tool, call.arguments) or []
        shown = documents.seen_in(call)
        acting = programs[call.tool]["effect"] in ACTING
        act = acting and not call.failed
        effects = ((shown[:2], shown[2]),) if act and shown else ()
        before = _before(call, documents, last, room, programs)
        look = _then(room.fork().look, call) if acting else nothing
        found.append(Step(call, tuple((tool, key) for tool, key in after), shown, acting, act, before, effects, look))
        if shown:
            cause = _cause(shown, last, room, programs, documents, acts)
            if cause is not None and not act:
                found[cause] = found[cause]._replace(effects=(*found[cause].effects, (shown[:2], shown[2])))
        n_acts = len(room.acts)
        if act:
            room.take(call.tool, call.arguments, call.content, tuple(effects))
            acts.append(index)
        if shown:
            last[shown[:2]] = (shown[2], n_acts + act)
    yield from found


def _then(look: Look, call: Call) -> Look:
    """The same at the instant of the call, where what is drawn at random is drawn."""
    def then(kind: str, key: str) -> Any:
        if kind == NOW:
            return call.called_at.isoformat() if call.called_at else None
        if kind == LAST:
            return 0  # which name comes next is told by all sessions together
        return drawn(parsed(key)[1], call.event_id, key) if kind == FRESH else look(kind, key)
    return then


def _before(
    call: Call, documents: Documents, last: dict[Name, tuple[str, int]], room: Room, programs: Programs
) -> str | None:
    """The document that the call names, as last seen in the session, unless a later act may have changed it."""
    known = documents.tools.get(call.tool)
    if known is None or known.argument is None:
        return None
    name = (known.entity_class, documents.plain(known.entity_class, str(call.arguments.get(known.argument))))
    if name not in last:
        return None
    text, since = last[name]
    touched = any(
        matters(programs[act.tool]["relation"].get(name[0]), act.names, documents.words(*name))
        for act in room.acts[since:]
    )
    return None if touched else text


def _cause(
    shown: tuple[str, str, str], last: dict[Name, tuple[str, int]], room: Room, programs: Programs, documents: Documents,
    acts: list[int],
) -> int | None:
    """The one earlier act that can have changed what is shown since the last look at it, or None."""
    name, text = shown[:2], shown[2]
    if name not in last or last[name][0] == text:
        return None
    since = last[name][1]
    able = [
        acts[since + offset] for offset, act in enumerate(room.acts[since:])
        if matters(programs[act.tool]["relation"].get(name[0]), act.names, documents.words(*name))
    ]
    return able[0] if len(able) == 1 else None


def _showing(calls: list[Call], known: DocumentTool, documents: Documents) -> list[dict[str, Any]]:
    """How the tool's answers hold the document: one rule for each frame around it, the most used first."""
    frames: dict[tuple[str, str], int] = {}
    for call in calls:
        seen = documents.seen_in(call)
        if seen:
            frame = frame_of(call.content, seen[2])
            frames[frame] = frames.get(frame, 0) + 1
    if not frames or known.argument is None:
        return []
    before, after = max(sorted(frames), key=lambda frame: frames[frame])
    return [{"rule": "document", "class": known.entity_class, "argument": known.argument, "before": before, "after": after}]
