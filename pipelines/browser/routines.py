"""Pages of the work that people of a company did: kinds of work as swim lanes over apps, and each piece of work.

In: `pipelines.inspection.work`; kind and item of the address. Out: values of the template `routines`: lanes as coordinates of a
drawing, what went wrong how often, slots, items with their acts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.browser.library import Library
from pipelines.inspection.work import ROLES, KindOfWork, WorkBook, book_of
from pipelines.screen import duration
from warehouse.errors import Missing
from warehouse.vocabulary import outcome_of

Row = dict[str, Any]
LISTED = 50
"""Items on one page."""
_COLUMN, _LANE, _MARGIN, _ABOVE = 122, 96, 96, 34
"""Width of a step, height of a lane, width of its name, and how far its middle is below its upper edge."""
_LEAST_RADIUS, _MORE_RADIUS = 7, 13
_LONGEST = 19
"""Characters of a line below a step."""
_WORDS = {"copied": "a value differs from what was written before", "state": "left in a state that others leave",
          "steps": "usual steps are missing", "answer": "the one who asked got no answer",
          "complaint": "the last words of the one who asked complain"}


class LaneNode(NamedTuple):
    """A step in the drawing."""

    x: int
    y: int
    radius: int
    role: str
    lines: tuple[str, ...]
    title: str


class LaneEdge(NamedTuple):
    """The way from one step to the next."""

    path: str
    x: int
    y: int
    wait: str


class LaneChart(NamedTuple):
    """A drawing of lanes, one an app."""

    width: int
    height: int
    lanes: list[tuple[str, int]]
    """App, and the middle of its lane."""
    nodes: list[LaneNode]
    edges: list[LaneEdge]
    lane: int = _LANE
    """Height of a lane."""
    above: int = _ABOVE
    """How far the middle of a lane is below its upper edge."""


def has_work(library: Library) -> bool:
    """Return whether the run collected work in exports of apps."""
    return bool(library.once("has work", lambda: library.rows("select 1 from mart.work_items limit 1")))


def work_page(library: Library, query: Mapping[str, str]) -> Row:
    """Return the values of the page: all kinds, the kind `kind`, or the item `item`. Errors: Missing."""
    book: WorkBook = library.once("work", lambda: book_of(library.rows))
    kinds: list[KindOfWork] = library.once("kinds of work", book.all_kinds)
    if query.get("item"):
        return {"template": "routine_item", "roles": ROLES, **_item(book, query["item"])}
    if query.get("kind"):
        kind = next((kind for kind in kinds if kind.kind == query["kind"]), None)
        if kind is None:
            raise Missing.named("kind of work", query["kind"], [kind.kind for kind in kinds])
        return {"template": "routine", "roles": ROLES, **_kind(kind, query, book)}
    rejected = Counter(row["reason"] for row in book.items if row["reason"])
    talk = [kind for kind in kinds if book.is_talk(kind)]
    return {"template": "routines", "roles": ROLES, "n_items": len(book.items), "n_events": len(book.events),
            "rejected": sorted(rejected.items()), "talk": [kind.summary() for kind in talk],
            "kinds": [{**kind.summary(), "chart": lane_chart(kind), "wait": _span(kind)} for kind in kinds if kind not in talk]}


def lane_chart(kind: KindOfWork) -> LaneChart:
    """Draw the usual steps of a kind, from left to right, each in the lane of its app."""
    lanes = {app: _LANE * number + _ABOVE for number, app in enumerate(kind.apps)}
    nodes = []
    for number, step in enumerate(kind.steps):
        share = step.n_items / len(kind.items)
        where = f" in {step.container}" if step.container else ""
        nodes.append(LaneNode(
            _MARGIN + _COLUMN * number + _COLUMN // 2, lanes[step.app], round(_LEAST_RADIUS + _MORE_RADIUS * share), step.role,
            _lines(step.label, step.container), f"{step.app}: {step.label}{where}, by {ROLES[step.role]}, in {step.n_items} "
            f"of {len(kind.items)} items"))
    edges = [_edge(before, node, step.wait_s) for before, node, step in zip(nodes, nodes[1:], kind.steps[1:], strict=False)]
    return LaneChart(_MARGIN + _COLUMN * len(nodes), _LANE * len(lanes), list(lanes.items()), nodes, edges)


def _lines(label: str, container: str) -> tuple[str, ...]:
    return tuple(text if len(text) <= _LONGEST else f"{text[:_LONGEST - 1]}…" for text in (label, container) if text)


def _edge(before: LaneNode, node: LaneNode, wait_s: float | None) -> LaneEdge:
    begin, end, middle = before.x + before.radius, node.x - node.radius, (before.x + node.x) // 2
    path = f"M {begin} {before.y} C {middle} {before.y}, {middle} {node.y}, {end} {node.y}"
    return LaneEdge(path, middle, (before.y + node.y) // 2 - 6, "" if wait_s is None else short_duration(wait_s))


def short_duration(seconds: float) -> str:
    """Return a duration in its largest unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            digits = 1 if seconds < 10 * length and unit != "min" else 0
            return f"{seconds / length:.{digits}f} {unit}"
    return f"{seconds:.0f} s"


def _span(kind: KindOfWork) -> str:
    return short_duration(kind.summary()["median_hours"] * 3_600)


def _kind(kind: KindOfWork, query: Mapping[str, str], book: WorkBook) -> Row:
    begin = int(query["after"]) if query.get("after", "").isdecimal() else 0
    wanted = [row for row in kind.items if query.get("outcome") in (None, "", outcome_of(row["success"]))]
    items = [_listed(row, book) for row in wanted[begin:begin + LISTED]]
    slots = sorted({name for row in kind.items for name in json.loads(row["slots"])})
    return {"kind": kind.kind, "summary": kind.summary(), "span": _span(kind), "chart": lane_chart(kind), "steps": [
        {**step._asdict(), "wait": "" if step.wait_s is None else short_duration(step.wait_s)} for step in kind.steps],
        "wrong": _what_went_wrong(kind.items), "items": items, "slots": slots, "query": query, "n_listed": len(wanted),
        "after": str(begin + LISTED) if begin + LISTED < len(wanted) else None}


def _listed(row: Row, book: WorkBook) -> Row:
    values = book.values_of(row)
    against = [vote["detail"] for vote in json.loads(row["votes"]) if vote["vote"] < 0]
    return {**row, "values": values, "against": against, "lasted": short_duration(
        (row["closed_at"] - row["opened_at"]).total_seconds())}


def _what_went_wrong(items: Sequence[Row]) -> list[Row]:
    """Count what speaks against the items of a kind, with an example of each."""
    collected: dict[str, list[Row]] = {}
    for row in items:
        for vote in json.loads(row["votes"]):
            if vote["vote"] < 0:
                collected.setdefault(vote["signal"], []).append({"item": row["work_item_id"], "detail": vote["detail"]})
    corrected = [row for row in items if json.loads(row["corrections"])]
    rows = [{"what": _WORDS.get(signal, signal), "n": len(cases), "example": cases[0]}
            for signal, cases in sorted(collected.items(), key=lambda each: -len(each[1]))]
    if corrected:
        first = json.loads(corrected[0]["corrections"])[0]
        rows.append({"what": "a value was set wrong and then corrected", "n": len(corrected), "example": {
            "item": corrected[0]["work_item_id"], "detail": f"{first['wrong']} became {first['right']}"}})
    return rows


def _item(book: WorkBook, item_id: str) -> Row:
    row = next((row for row in book.items if row["work_item_id"] == item_id), None)
    if row is None:
        raise Missing.named("work item", item_id, [row["work_item_id"] for row in book.items[:20]])
    acts = book.acts(row)
    apps = list(dict.fromkeys(act["app"] for act in acts))
    names = {act["ref"]: number for number, act in enumerate(acts, 1)}
    shown = []
    for number, act in enumerate(acts):
        wait = (act["happened_at"] - acts[number - 1]["happened_at"]).total_seconds() if number else None
        shown.append({**act, "number": number + 1, "lane": apps.index(act["app"]) + 1,
                      "wait": "" if wait is None else short_duration(wait), "joined": _joined(act, acts[:number], names)})
    return {"item": row, "acts": shown, "apps": apps, "votes": json.loads(row["votes"]), "values": book.values_of(row),
            "corrections": json.loads(row["corrections"]), "lasted": duration(
                (row["closed_at"] - row["opened_at"]).total_seconds())}


def _joined(act: Row, earlier: Sequence[Row], names: Mapping[str, int]) -> list[str]:
    """Return what in an act points to earlier acts of the item: the same record or thread, an id or an address named in it."""
    text = " ".join([*act["texts"], act["changes"]])
    collected: list[str] = []
    for other in reversed(earlier):
        number = names[other["ref"]]
        if act["entity_id"] == other["entity_id"] and act["entity_class"] == other["entity_class"]:
            collected.append(f"same record as {number}")
        elif act["thread"] == other["thread"]:
            collected.append(f"same thread as {number}")
        elif len(other["entity_id"]) > 3 and other["entity_id"] in text:
            collected.append(f"names the record of {number}")
        elif act["entity_id"] and len(act["entity_id"]) > 3 and act["entity_id"] in " ".join(other["texts"]):
            collected.append(f"its record is named in {number}")
        elif other["actor"] and other["actor"] in act["addressees"]:
            collected.append(f"addresses who did {number}")
        if len(collected) >= 2:
            break
    return collected
