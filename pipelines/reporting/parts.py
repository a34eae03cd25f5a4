"""Build the report's page: sections, figures and tables as plain text, charts as `<svg>`, and their page of HTML.

The template escapes everything, and the page's policy lets only our style and script run; `clean` makes a log's text printable
and bounds its length. Equal rows give equal bytes: colours are CSS variables (light and dark), widths those of Liberation Sans,
which the renderer carries. A mark's `description` becomes its `<title>`; the picture is one image with title, description and a
table of the same."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple
from xml.etree import ElementTree

import altair
import vl_convert
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pipelines.inspection.list_files import FORMATS, plain, written
from pipelines.screen import many

Row = dict[str, Any]
SHOWN = 160
"""Characters of a text out of a log that a page shows."""


class ReportTable(NamedTuple):
    """Rows of texts."""

    caption: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    right: frozenset[str]
    """Columns of numbers."""
    note: str = ""
    """What is not shown."""
    files: tuple[tuple[str, str], ...] = ()
    """(ending, address that holds the file itself) of the same rows, numbers as numbers."""


class Figure(NamedTuple):
    """A chart with its words, and a table of the same."""

    name: str
    title: str
    description: str
    pictures: tuple[str, str]
    """Its `<svg>`: wide, and narrow for phones."""
    table: ReportTable


class Section(NamedTuple):
    """A part of the page."""

    name: str
    title: str
    lead: str
    """What is to be seen, in a sentence or two."""
    figures: tuple[Figure, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    notes: tuple[str, ...] = ()
    """How to read it."""
    short: str = ""
    """Its title in the list of sections, where that is too long."""


def figure(name: str, title: str, description: str, draw: Callable[[int], Any], table: ReportTable) -> Figure:
    """Return a figure of what `draw` makes for a width in pixels."""
    wide, narrow = (drawn(draw(width), f"{name}-{kind}", width, title, description)
                    for kind, width in (("wide", WIDE), ("narrow", NARROW)))
    return Figure(name, title, description, (wide, narrow), table)


def table(caption: str, rows: Sequence[Row], right: Sequence[str] = (), besides: int = 0) -> ReportTable:
    """Return a table of dicts with the same keys, which are its headings; values are texts, or numbers to be written."""
    headings = tuple(rows[0]) if rows else ()
    note = f"And {besides:,} more: traceroom show lists them." if besides > 0 else ""
    return ReportTable(
        caption, headings, [tuple(_cell(row[name]) for name in headings) for row in rows], frozenset(right), note,
        tuple((ending, _address(rows, ending)) for ending in FORMATS) if rows else ())


def _address(rows: Sequence[Row], ending: str) -> str:
    """Return an address that is the file: nothing is fetched, and no script is needed."""
    text = "".join(written([plain(row) for row in rows], ending))
    media = FORMATS[ending].partition(";")[0]
    return f"data:{media};base64,{base64.b64encode(text.encode()).decode()}"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else clean(value, 3 * SHOWN)


def clean(text: Any, most: int = SHOWN) -> str:
    """Return a text out of a log as it may be shown: one line of signs that can be seen, and no more than so many."""
    signs = str(text)[: 2 * most]
    visible = "".join(sign if sign.isprintable() else " " if sign.isspace() else repr(sign)[1:-1] for sign in signs)
    line = " ".join(visible.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def percent(share: float | None) -> str:
    """Return a share in percent; a dash where there is none. Nothing but all is 100 %, and nothing but none is 0 %."""
    if share is None:
        return "–"
    text = f"{100 * share:.0f} %" if 0.1 <= share <= 0.9 or share in (0, 1) else f"{100 * share:.1f} %"
    return {"100.0 %": "> 99.9 %", "0.0 %": "< 0.1 %"}.get(text, text)


def of(n: int, all_of: int) -> str:
    """So many of so many, with the share."""
    return f"{n:,} of {all_of:,} ({percent(n / all_of)})" if all_of else f"{n:,} of {all_of:,}"


def named(service: str, name: str, n_services: int) -> str:
    """Return a name for a chart: with its service where there are several."""
    return clean(f"{name} · {service}" if n_services > 1 else name)


WIDE, NARROW = 880, 350
"""Widths in pixels: of a desktop's column, and of a phone."""
_SVG = "http://www.w3.org/2000/svg"
_FONT = "Liberation Sans"
_INK, _QUIET, _GRID = "var(--ink)", "var(--quiet)", "var(--grid)"
_NO_MARKS = ("axis", "legend", "title", "header")
"""What Vega describes besides marks."""
_DECIMALS = re.compile(r"-?\d+\.\d{3,}")
_KEPT = {
    "id", "d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "width", "height", "viewBox", "transform", "clip-path", "fill",
    "stroke", "stroke-width", "opacity", "fill-opacity", "stroke-opacity", "text-anchor", "font-size", "font-weight"}
"""What of Vega's attributes the picture needs."""


def drawn(chart: Any, name: str, width: int, title: str, description: str) -> str:
    """Return the chart as an `<svg>` of so many pixels, to stand in a page of HTML; ids in it begin with `name`."""
    specification = chart.properties(width=width, autosize=altair.AutoSizeParams(type="fit-x", contains="padding")).configure(
        background="transparent", font=_FONT, padding=2).configure_view(stroke=None).configure_axis(
        labelColor=_INK, titleColor=_QUIET, gridColor=_GRID, domainColor=_GRID, tickColor=_GRID, labelFontSize=12,
        titleFontSize=12, titleFontWeight="normal", labelPadding=6).configure_legend(
        labelColor=_INK, labelFontSize=12, titleColor=_QUIET, titleFontSize=12, titleFontWeight="normal", orient="top",
        symbolType="square", columns=2 if width < WIDE else 0).to_dict()
    wanted, versions = altair.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0], vl_convert.get_vegalite_versions()
    version = wanted if wanted in versions else str(versions[-1])
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(specification, vl_version=version))
    own = [element.get("id", "") for element in root.iter() if element.get("id")]
    _plain(root, {old: f"{name}-{number}" for number, old in enumerate(own)})
    for tag, text in (("desc", description), ("title", title)):
        element = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = text
        root.insert(0, element)
    root.attrib.update({"role": "img", "aria-labelledby": f"{name}-title {name}-desc", "class": "plot"})
    ElementTree.register_namespace("", _SVG)
    text = ElementTree.tostring(root, "unicode")
    return _DECIMALS.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), text)


def _plain(root: ElementTree.Element, ids: dict[str, str]) -> None:
    """Take away what says nothing here, and give marks their titles."""
    for element in root.iter():
        label = element.get("aria-label") if element.get("aria-roledescription") not in _NO_MARKS else None
        url = element.get("clip-path", "")
        for attribute in [attribute for attribute in element.attrib if attribute not in _KEPT]:
            del element.attrib[attribute]
        if "id" in element.attrib:
            element.set("id", ids[element.attrib["id"]])
        if url:
            element.set("clip-path", f"url(#{ids[url.removeprefix('url(#').removesuffix(')')]})")
        if label:
            element.set("class", "mark")
            title = ElementTree.SubElement(element, f"{{{_SVG}}}title")
            title.text = label
    _prune(root)


def _prune(element: ElementTree.Element) -> None:
    """Take away paths that draw nothing, and groups of nothing."""
    for child in list(element):
        _prune(child)
        tag = child.tag.rpartition("}")[2]
        painted = any(child.get(name) not in (None, "none") for name in ("fill", "stroke")) or child.get("class")
        if (tag == "path" and not painted) or (tag == "g" and len(child) == 0):
            element.remove(child)


_LONGEST = 2_000
"""Signs of any text of the page."""


def page(identity: Row, totals: Row, sections: list[Section]) -> str:
    """Return the page's text. Everything is escaped but the pictures, whose words the renderer escaped, and our style and
    script."""
    style, script = _part("page.css"), _part("page.js")
    policy = (f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; base-uri 'none'; "
              "form-action 'none'")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=lambda value: clean(value, _LONGEST) if type(value) is str else value)
    first, last = totals["first_day"] or "", totals["last_day"] or ""
    if first[-4:] == last[-4:] and first != last:
        first = first[:-5]
    days = " – ".join(dict.fromkeys(day for day in (first, last) if day)) or "of unknown time"
    new = totals["n_from_failures"] + totals["n_generated"]
    tiles = [
        (f"{totals['n_sessions']:,}", "sessions", days),
        (f"{totals['n_calls']:,}", "tool calls", f"of {many(totals['n_tools'], 'tool')}"),
        (f"{totals['n_families']:,}", "families", "of things asked for"),
        (f"{totals['n_tasks']:,}", "tasks", f"in {many(totals['n_services'], 'service')}"),
        (f"{new:,}", "tasks made new", f"{totals['n_from_failures']:,} of failures"),
        (f"{totals['n_published']:,}", "published tasks", f"in {many(totals['n_environments'], 'environment')}")]
    return environment.from_string(_part("page.html.jinja")).render(
        policy=policy, style=Markup(style), script=Markup(script), safe=Markup, many=many, file_name=_file_name,
        identity=identity, totals=totals, tiles=tiles, sections=sections)


def _file_name(caption: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", caption.lower()))


def _hash(text: str) -> str:
    """Return a source of a policy: the text with this digest."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _part(name: str) -> str:
    return files("pipelines.reporting").joinpath(name).read_text("utf-8")
