"""Replay: a recorded way through a task played step by step in the task's own room.

In: a room, a task, a way (the known solution, a recorded session, a rollout's episode under its seed and conditions). Out:
rows, one a step, with the answer of the room and its tier, the answer on record where there is one, what both differ in, and
what the step changed. A play is made anew for each page; the room is kept. Sees: what a policy would see. Does not see: what a
real tool would answer today.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from pipelines.browser.changes import MOST, differences, loaded
from pipelines.browser.ways import Way
from pipelines.playing import Move, Room, graded, load, played

Row = dict[str, Any]
NOT_KEPT: Row = {"tier": None, "latency_ms": None, "state_hash": None, "reward": None, "thought": None, "refused": []}
"""What is known besides of a move that no rollout made."""
Look = Callable[[str], tuple[str | None, str | None]]
"""Name of a document -> as the episode began, and now."""


class Rooms:
    """The room that was looked into last, kept as long as its directory is the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[str, str] | None = None
        self._environment: Environment | None = None

    def play(self, path: Path, task_id: str, way: Way) -> tuple[list[Row], Row]:
        """(messages that the task opens with, {"steps", "grade", "end", "is_same_room"}).

        Raises EnvironmentBroken, InputError.
        """
        with self._lock:
            digest = (path / "manifest.json").read_text("utf-8")
            if self._key != (str(path), digest):
                self._environment = load(path, None)
                self._key = str(path), digest
            assert self._environment is not None
            room = Room(self._environment, task_id, 0)
            rolled = way.about.get("content_digest")
            if way.is_rollout:   # its moves are in the room's own names, so nothing stands between them and the room
                room.environment = self._environment.replaying(task_id, way.about["seed"], way.about["conditions"])
            return room.observation.messages, {
                **_played(room, way.moves), "is_same_room": rolled in (None, json.loads(digest)["content_digest"])}


def _played(room: Room, moves: Sequence[Move]) -> Row:
    before: Row = {"documents": {}, "acts": []}
    steps, look = [], room.environment.episode().look
    for step in played(room, moves):
        after, look = json.loads(canonical(room.environment.difference())), room.environment.episode().look
        steps.append({**step, "changed": _moved(before, after, look), "state_hash": room.environment.state_hash()})
        before = after
    documents = {name: {"begun": loaded(look(name)[0] if look else None), "now": loaded(value)}
                 for name, value in before.get("documents", {}).items()}
    return {"steps": steps, "grade": graded(room), "end": {"documents": documents, "acts": before.get("acts", [])}}


def _moved(before: Row, after: Row, look: Look | None) -> list[Row]:
    """What a step changed of the room's difference: its documents, and acts that leave none."""
    found = []
    for name, value in after.get("documents", {}).items():
        if value != before.get("documents", {}).get(name):
            begun = look(name)[0] if look else None
            one, other = loaded(before.get("documents", {}).get(name, begun)), loaded(value)
            moves = list(differences(one, other))[:MOST] if one is not None else []
            found.append({"key": name, "moves": moves, "after": value if isinstance(value, str) else canonical(value)})
    acts = Counter(map(canonical, after.get("acts", []))) - Counter(map(canonical, before.get("acts", [])))
    return [*found, *({"key": "an act that leaves no document", "moves": [], "after": act} for act in acts.elements())]


def told(way: Way, play: Row) -> Iterator[Row]:
    """The steps of a play beside what was answered where they were first made: `differs` where both are not the same.

    `shown`: what to hold against another way: of a rollout what it was answered then, else what the room answers.
    """
    for place, step in enumerate(play["steps"]):
        answer = way.answers[place] if place < len(way.answers) else None
        own = step["content"] if step["kind"] == "call" else step["reply"]
        on_record = None if answer is None else answer["content"] if step["kind"] == "call" else answer["reply"]
        compared = answer is not None and (on_record is not None if step["kind"] == "call" else way.is_rollout)
        differs = compared and own != on_record
        moves = list(differences(loaded(on_record), loaded(own)))[:MOST] if differs else []
        kept = {**NOT_KEPT, **(answer if way.is_rollout and answer is not None else {})}
        yield {**step, "place": place + 1, "own": own, "recorded": on_record, "is_recorded": answer is not None,
               "differs": differs, "moves": moves, "kept": kept, "shown": on_record if way.is_rollout else own,
               "is_same_state": None if kept["state_hash"] is None else kept["state_hash"] == step["state_hash"]}
