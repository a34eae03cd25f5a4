"""Answer tools by programs that were induced from logs, over JSON records as of an instant: the kind `records`.

In: world.jsonl, recorded.jsonl and behaviour.jsonl of the app's folder. Out: an app whose states are `EpisodeState`s.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..episode import EpisodeState
from ..files import named_rows, rows_of
from ..known_names import StoredNames
from ..programs import Program, Programs
from ..relabelling import forms
from ..relevance import leaves
from ..shards import FOLDER, NAMES, VALUES
from ..world import View, World
from . import App, AppState, Start


class RecordsApp(App):
    """Programs over a world."""

    def __init__(self, name: str, programs: Mapping[str, Program], world: World) -> None:
        self.name = name
        self.programs = Programs(programs)
        self.world = world
        self.answers = self.programs
        self.writes = frozenset(tool for tool, program in self.programs.items() if program.is_possible_write)
        self.unclear = frozenset(tool for tool, program in self.programs.items() if program.get("unclear"))

    def reset(self, start: Start) -> EpisodeState:
        return EpisodeState(self.world, self.programs, View(start.instant, start.session_ids), start.seed)

    def next_episode(self, state: AppState, start: Start, from_reset: bool) -> AppState:
        """Begin an episode without a task: real answers stay known, of the state that every session begins from, or of the
        end of the episode before (unless the clock goes back, or stays while simulated answers changed the state)."""
        assert isinstance(state, EpisodeState)
        before, at = state.view.instant, start.instant
        goes_on = at is not None and before is not None and (
            before < at or (before == at and all(call.is_real for call in state.write_calls)))
        view = View(at, start.session_ids)
        return state.next_episode(view, from_reset) if from_reset or goes_on else self.reset(start)

    def id_forms(self, tools: Iterable[Mapping[str, Any]]) -> frozenset[str]:
        values = (value for keys in self.world.questions.values() for key in keys for value in leaves(json.loads(key)))
        return forms((key for _, key in self.world.facts), values, tools)


def load(folder: Path, row: Mapping[str, Any]) -> RecordsApp:
    """Load the app from its folder."""
    programs = {program["tool"]: program for program in rows_of(folder / "behaviour.jsonl")}
    shards = folder / FOLDER
    names = StoredNames(json.loads((shards / NAMES).read_text("utf-8")), shards / VALUES) if (shards / NAMES).exists() else None
    world = World(named_rows(folder / "world.jsonl"), named_rows(folder / "recorded.jsonl"), names)
    return RecordsApp(row["name"], programs, world)
