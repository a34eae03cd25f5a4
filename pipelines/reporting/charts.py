"""Draw the report's kinds of charts with Altair: rows as dicts in, a chart of a given width out.

Colours come in pairs of fill and ink (`page.css`); what a colour says is also in words. Words of logs are values of data only:
in a sorting or a domain they would become part of Vega's expressions. The map is a squarified treemap (Bruls, Huizing and van
Wijk 2000)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import altair

from pipelines.reporting.parts import WIDE, clean

Row = dict[str, Any]
Chart = Any
"""An Altair chart; its classes are generated, and too many to name."""
GOOD, FAIR, POOR, BAD, NONE = (f"var(--{name})" for name in ("good", "fair", "poor", "bad", "none"))
KINDS = tuple(f"var(--kind-{number})" for number in range(1, 7))
_INK = "var(--ink)"
_BAR = 22
"""Pixels of a bar and its gap."""
_LETTER = 6.6
"""Pixels of a letter, about: what fits into a box of the map."""


def _data(rows: Sequence[Row]) -> Any:
    return altair.InlineData(values=[
        {name: clean(value, 300) if isinstance(value, str) else value for name, value in row.items()} for row in rows])


def _apart(rows: Sequence[Row], width: int) -> list[Row]:
    """Return the rows, each with its place as "row", where different entries ("key", else their names) have different names;
    long ones are cut in the middle, for many begin alike."""
    most = 38 if width >= WIDE else 19
    rows = [{**row, "name": _middle(clean(row["name"]), most), "key": row.get("key", row["name"])} for row in rows]
    keys, names = dict[str, int](), dict[str, int]()
    labels = dict[str, str]()
    for row in rows:
        key = str(row["key"])
        if key not in keys:
            keys[key] = len(keys)
            names[row["name"]] = names.get(row["name"], 0) + 1
            labels[key] = row["name"] if names[row["name"]] == 1 else f"{row['name']} ({names[row['name']]})"
    return [{**row, "row": keys[key], "name": labels[key]} for row in rows for key in [str(row["key"])]]


def _bars(width: int) -> Any:
    """Return the names of bars, in the order of their rows."""
    return altair.Y("name:N", sort=altair.EncodingSortField("row", op="min"), axis=altair.Axis(
        title=None, labelLimit=250 if width >= WIDE else 125, domain=False, ticks=False))


def _colour(colours: Mapping[str, str]) -> Any:
    return altair.Color("kind:N", title=None, scale=altair.Scale(domain=list(colours), range=list(colours.values())))


def shares(rows: Sequence[Row], colours: Mapping[str, str], width: int) -> Chart:
    """Draw bars of one length, cut by kind: rows of {"name", "kind", "share": 0 … 1, "told", "says"}, names in order. `told` of
    a name's first row is written at the end of its bar."""
    order, ends = {kind: place for place, kind in enumerate(colours)}, 1.42 if width >= WIDE else 1.8
    parts, y = [{**row, "place": order[row["kind"]]} for row in _apart(rows, width)], _bars(width)
    x = altair.X("share:Q", stack="zero", scale=altair.Scale(domain=[0, ends], nice=False), axis=altair.Axis(
        title=None, values=[0, 0.5, 1] if width < WIDE else [0, 0.25, 0.5, 0.75, 1], format="%", domain=False, ticks=False))
    bars = altair.Chart(_data(parts)).mark_bar(height=14).encode(
        x=x, y=y, color=_colour(colours), order="place:Q", description="says:N")
    return _labelled(bars, y, [{**row, "at": 1} for row in {row["row"]: row for row in reversed(parts)}.values()])


def _labelled(bars: Chart, y: Any, ends: Sequence[Row]) -> Chart:
    """Write `told` at the end of each bar."""
    text = altair.Chart(_data(ends)).mark_text(align="left", dx=8, color=_INK, aria=False).encode(
        size=altair.value(12), x=altair.X("at:Q"), y=y, text="told:N")
    return altair.layer(bars, text).properties(height=_BAR * len(ends))


def amounts(rows: Sequence[Row], width: int, colour: str = GOOD, form: str = "~s") -> Chart:
    """Draw bars from 0: rows of {"name", "n", "told", "says"}, in order; what is below 0 has another colour. `form`: of the
    axis' numbers, as d3 writes it."""
    parts, y = _apart(rows, width), _bars(width)
    most, least = max([row["n"] for row in rows] + [0]), min([row["n"] for row in rows] + [0])
    room = (most - least or 1) * (0.3 if width >= WIDE else 0.5)
    x = altair.X("n:Q", scale=altair.Scale(domain=[least, most + room], nice=False), axis=altair.Axis(
        title=None, tickCount=4, format=form, domain=False, ticks=False, grid=False))
    bars = altair.Chart(_data([{**row, "kind": "below" if row["n"] < 0 else "above"} for row in parts])).mark_bar(
        height=14).encode(x=x, y=y, description="says:N", color=altair.Color(
            "kind:N", legend=None, scale=altair.Scale(domain=["above", "below"], range=[colour, BAD])))
    return _labelled(bars, y, [{**row, "at": max(row["n"], 0)} for row in parts])


def stacks(rows: Sequence[Row], colours: Mapping[str, str], order: Sequence[str]) -> Chart:
    """Draw columns by kind: rows of {"name", "kind", "n", "says"}."""
    place = {kind: number for number, kind in enumerate(colours)}
    return altair.Chart(_data([{**row, "place": place[row["kind"]]} for row in rows])).mark_bar(size=46).encode(
        x=altair.X("name:N", sort=list(order), axis=altair.Axis(title=None, labelAngle=0, ticks=False, labelOverlap=False)),
        y=altair.Y("n:Q", stack="zero", axis=altair.Axis(title=None, tickCount=4, domain=False, ticks=False, format="~s")),
        color=_colour(colours), order="place:Q", description="says:N").properties(height=220)


def over_time(rows: Sequence[Row], colours: Mapping[str, str], step: str, width: int) -> Chart:
    """Draw columns over time by kind: rows of {"at": instant as text, "kind", "n", "says"}; each column is a `step` wide."""
    place = {kind: number for number, kind in enumerate(colours)}
    unit = {"hour": "yearmonthdatehours", "day": "yearmonthdate", "week": "yearweek", "month": "yearmonth"}.get(step, "year")
    return altair.Chart(_data([{**row, "place": place[row["kind"]]} for row in rows])).mark_bar(binSpacing=1).encode(
        x=altair.X(f"utc{unit}(at):T", axis=_time_axis(rows, step, width)), color=_colour(colours), order="place:Q",
        description="says:N", y=altair.Y("n:Q", stack="zero", axis=altair.Axis(
            title="sessions", tickCount=4, domain=False, ticks=False, format="~s"))).properties(height=210)


def _time_axis(rows: Sequence[Row], step: str, width: int) -> Any:
    """Return a mark at each instant where there are few, so that none is told twice."""
    most = 8 if width >= WIDE else 4
    instants = sorted({row["at"] for row in rows})
    few = {"values": [1000 * datetime.fromisoformat(each).timestamp() for each in instants]}
    return altair.Axis(
        title=None, grid=False, labelOverlap="greedy", **(few if len(instants) <= most else {"tickCount": most}),
        format={"hour": "%d %b %H h", "month": "%b %Y", "year": "%Y"}.get(step, "%d %b"))


def rate_over_time(rows: Sequence[Row], step: str, width: int) -> Chart:
    """Draw a line over time: rows of {"at", "mean": 0 … 1, "says"}."""
    base = altair.Chart(_data(rows)).encode(
        x=altair.X("at:T", scale=altair.Scale(type="utc"), axis=_time_axis(rows, step, width)),
        y=altair.Y("mean:Q", scale=altair.Scale(domain=[0, 1]), axis=altair.Axis(
            title="mean probability", values=[0, 0.5, 1], format="%", domain=False, ticks=False)))
    line = base.mark_line(color=KINDS[0], strokeWidth=2, aria=False)
    points = base.mark_point(color=KINDS[0], filled=True, size=36, opacity=1).encode(description="says:N")
    return altair.layer(line, points).properties(height=130)


def family_map(rows: Sequence[Row], colours: Mapping[str, tuple[str, str]], width: int) -> Chart:
    """Draw a map: rows of {"name", "told", "n": above 0, "kind", "says"}, from the largest on; `colours`: each kind's fill,
    and what is written on it."""
    height = 420 if width >= WIDE else 460
    inner = width - 4
    boxes = []
    for row, box in zip(rows, squarified([row["n"] for row in rows], inner, height), strict=True):
        fits = int((box.width - 14) / _LETTER)
        boxes.append({
            **row, "x": box.x + 1, "y": box.y + 1, "x2": box.x + box.width - 1, "y2": box.y + box.height - 1,
            "name": _cut(row["name"], fits) if box.height > 24 else "",
            "told": row["told"] if box.height > 42 and fits >= len(row["told"]) else ""})
    across = altair.X("x:Q", axis=None, scale=altair.Scale(domain=[0, inner], nice=False))
    down = altair.Y("y:Q", axis=None, scale=altair.Scale(domain=[height, 0], nice=False))
    fills = altair.Scale(domain=list(colours), range=[fill for fill, _ in colours.values()])
    inks = altair.Scale(domain=list(colours), range=[ink for _, ink in colours.values()])
    areas = altair.Chart(_data(boxes)).mark_rect(cornerRadius=3).encode(
        x=across, y=down, x2="x2:Q", y2="y2:Q", description="says:N", color=altair.Color("kind:N", title=None, scale=fills))
    texts = [
        altair.Chart(_data([box for box in boxes if box[field]])).mark_text(
            align="left", baseline="top", dx=7, dy=dy, aria=False, fontWeight="bold" if field == "name" else "normal").encode(
            x=across, y=down, size=altair.value(size), text=f"{field}:N", color=altair.Color("kind:N", scale=inks, legend=None))
        for field, dy, size in (("name", 7, 12), ("told", 24, 11)) if any(box[field] for box in boxes)]
    return altair.layer(areas, *texts).resolve_scale(color="independent").properties(height=height)


def _middle(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2].rstrip()}…{text[-((most - 1) // 2):].lstrip()}"


def _cut(text: str, n: int) -> str:
    return text if len(text) <= n else f"{text[: n - 1].rstrip()}…" if n >= 4 else ""


class Box(NamedTuple):
    """A rectangle, in the units of the whole."""

    x: float
    y: float
    width: float
    height: float


def squarified(sizes: list[float], width: float, height: float) -> list[Box]:
    """Return a box for each size; sizes are above 0, and fall where boxes shall be near to squares."""
    scale = width * height / sum(sizes) if sizes else 0.0
    areas, boxes, free = [size * scale for size in sizes], list[Box](), Box(0.0, 0.0, width, height)
    while areas:
        side = min(free.width, free.height)
        n = 1
        while n < len(areas) and _worst(areas[: n + 1], side) <= _worst(areas[:n], side):
            n += 1
        row, free = _laid(areas[:n], free)
        boxes += row
        areas = areas[n:]
    return boxes


def _worst(areas: list[float], side: float) -> float:
    """Return the worst ratio of sides in a row along `side`."""
    total = sum(areas)
    return max(side**2 * max(areas) / total**2, total**2 / (side**2 * min(areas)))


def _laid(areas: list[float], free: Box) -> tuple[list[Box], Box]:
    if free.width < free.height:   # the same with the axes exchanged
        row, rest = _laid(areas, Box(free.y, free.x, free.height, free.width))
        return [Box(box.y, box.x, box.height, box.width) for box in row], Box(rest.y, rest.x, rest.height, rest.width)
    row, thick, y = list[Box](), sum(areas) / free.height, free.y
    for area in areas:
        row.append(Box(free.x, y, thick, area / thick))
        y += area / thick
    return row, Box(free.x + thick, free.y, max(free.width - thick, 1e-9), free.height)
