"""Charts as pictures that need nothing: an Altair chart in, one `<svg>` as text out, the same bytes for the same rows.

Colours are CSS variables of the page, so one picture serves light and dark. Widths of words are those of Liberation Sans,
which the renderer carries with it, so no font of the machine reaches the picture. Each mark that has a `description` gets it as
its `<title>`: browsers show it, and the page's script reads it out. Vega's own roles go: the picture is one image with a title
and a description, and a table stands beside it.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import altair
import vl_convert

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
    """The chart as an `<svg>` of so many pixels, to stand in a page of HTML; ids in it begin with `name`."""
    specification = chart.properties(width=width, autosize=altair.AutoSizeParams(type="fit-x", contains="padding")).configure(
        background="transparent", font=_FONT, padding=2).configure_view(stroke=None).configure_axis(
        labelColor=_INK, titleColor=_QUIET, gridColor=_GRID, domainColor=_GRID, tickColor=_GRID, labelFontSize=12,
        titleFontSize=12, titleFontWeight="normal", labelPadding=6).configure_legend(
        labelColor=_INK, labelFontSize=12, titleColor=_QUIET, titleFontSize=12, titleFontWeight="normal", orient="top",
        symbolType="square", columns=2 if width < WIDE else 0).to_dict()
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(specification, vl_version=_grammar()))
    _plain(root, _ids(root, name))
    for tag, text in (("desc", description), ("title", title)):
        said = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{tag}"})
        said.text = text
        root.insert(0, said)
    root.attrib.update({"role": "img", "aria-labelledby": f"{name}-title {name}-desc", "class": "plot"})
    ElementTree.register_namespace("", _SVG)
    text = ElementTree.tostring(root, "unicode")
    return _DECIMALS.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), text)


def _grammar() -> str:
    """The grammar's version that Altair writes, of those that the renderer knows."""
    wanted, known = altair.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0], vl_convert.get_vegalite_versions()
    return wanted if wanted in known else str(known[-1])


def _ids(root: ElementTree.Element, name: str) -> dict[str, str]:
    own = [element.get("id", "") for element in root.iter() if element.get("id")]
    return {old: f"{name}-{number}" for number, old in enumerate(own)}


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
