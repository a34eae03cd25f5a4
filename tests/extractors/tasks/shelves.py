"""A made desk: some move a shelf to a town by one tool, others ask of a lamp by none, one both."""

from __future__ import annotations

import json

import polars as pl

from warehouse.records import Goal, frame


def goal(session: str, place: int, asks: str, words: str, **more: object) -> dict[str, object]:
    row = {"goal_id": f"{session}/{place}", "session_id": session, "service": "desk", "place": place, "begins": 0, "ends": 9,
           "kind": f"family of {asks}", "asks": asks, "family": more.get("family", f"family of {asks}"), "goal": words}
    return {**row, "slots": json.dumps(more.get("slots", {})), "continues": None}


def desk() -> pl.DataFrame:
    """Goals of forty-one people."""
    rows = []
    for n, town in enumerate(["Oslo", "Riga", "Bern", "Lyon", "Ghent", "Turin", "Malmo", "Porto", "Basel", "Tartu"] * 2):
        rows.append(goal(f"move{n}", 0, "moveShelf", f"Hello, please move shelf #S-{500 + n} to {town}. Thanks a lot!",
                         slots={"shelf.id": f"S-{500 + n}", "town": town, "how": "no"}))
        rows.append(goal(f"lamp{n}", 0, "", f"Hello, how bright is the lamp {900 + n} by night?"))
    both = [goal("both", 0, "moveShelf", "move my shelf", family="both"), goal("both", 1, "", "how bright", family="both")]
    return frame(Goal, [*rows, *both])


TOOLS = pl.DataFrame({"service": ["desk"] * 2, "tool": ["moveShelf", "look"]})
