"""What acts touched without showing it, where nobody knows how."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from env_builder.world import documents, hidden, history
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

BEGAN = datetime(2031, 5, 1, tzinfo=UTC)
MOODS = ["calm", "cross", "glad", "calm", "sad", "glad", "numb"]


def steps() -> list[LoggedStep]:
    """Three people, each looked at, nudged and looked at again: moods change as nobody could tell, names never."""
    found: list[LoggedStep] = []
    for n in range(6):
        who = f"P{n}"
        for tool in ("see", "nudge", "see"):
            mood = MOODS[n + (len(found) % 3 == 2)]
            text = json.dumps({"person": who, "mood": mood, "name": f"Name {n}"}) if tool == "see" else "done"
            at = BEGAN + timedelta(minutes=len(found))
            made = call(tool, {"person": who}, text, position=len(found))._replace(called_at=at)
            acts = tool == "nudge"
            found.append(LoggedStep(made, (), None if acts else ("see", who, text), acts, acts, None, ()))
    return found


def test_an_act_that_changes_things_nobody_knows_how_leaves_what_it_touched_open() -> None:
    done = steps()
    known = documents.find([step.call for step in done])
    left = history.unexplained(done, hidden.links_of(done, known), {}, known, {"nudge": {"see": "changes"}})
    assert left == {("nudge", ("see", '["argument", "person"]')): frozenset({"mood"})}
    found = history.touches(done, {}, known, left)
    assert sorted(found) == [("see", f"P{n}") for n in range(6)]
    assert [(touch.at, touch.fields, touch.change({"mood": "calm"})) for touch in found["see", "P1"]] == [
        (BEGAN + timedelta(minutes=4), frozenset({"mood"}), None)]


def test_an_act_that_keeps_what_it_names_touches_nothing() -> None:
    done = steps()
    known = documents.find([step.call for step in done])
    assert history.unexplained(done, hidden.links_of(done, known), {}, known, {"nudge": {"see": "keeps"}}) == {}
    assert history.touches(done, {}, known, {}) == {}
