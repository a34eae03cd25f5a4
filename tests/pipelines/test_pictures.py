"""What assets show of themselves: a picture that is well-formed, and cells in which no log writes markup."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dagster_assets.pictures import markdown, metadata_of
from pipelines.running.stage import Report, TableSample

FUNNEL = {"stage": pl.String, "kept": pl.Boolean, "reason": pl.String, "n": pl.Int64}


def report(*rows: tuple[bool, str, int]) -> Report:
    funnel = pl.DataFrame([("tasks", *row) for row in rows], FUNNEL, orient="row")
    sample = pl.DataFrame({"words": ["![x](http://beacon.example/a) | `b`\n<img src=//c>"], "n": [1]})
    return Report("tasks", True, 0.5, {"n_tasks": 3}, {"mart.tasks": TableSample(3, sample, "v")}, funnel)


def drawn(of: Report) -> ElementTree.Element:
    shown = str(metadata_of(of, "mart.tasks")["picture"].value)
    (data,) = re.findall(r"!\[.*\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", shown)
    return ElementTree.fromstring(base64.b64decode(data))


@given(st.lists(st.tuples(st.booleans(), st.text(st.characters(codec="ascii", exclude_categories=["Cc"])),
                          st.integers(0, 10**9)), max_size=30))
def test_the_picture_is_well_formed_whatever_was_counted(rows: list[tuple[bool, str, int]]) -> None:
    svg = drawn(report(*rows))
    width, bars = int(svg.attrib["width"]), svg.findall("{http://www.w3.org/2000/svg}rect")[1:]
    assert len(bars) == min(max(len(rows), 1), 13)
    assert all(float(bar.attrib["x"]) + float(bar.attrib["width"]) < width for bar in bars)


def test_the_picture_says_in_words_what_was_kept_and_left() -> None:
    svg = drawn(report((True, "in_a_task", 40), (False, "no_goal", 2)))
    texts = ["".join(each.itertext()) for each in svg]
    assert texts[0] == "tasks: 40 kept, 2 left" and "✓ in_a_task" in texts and "✗ no_goal" in texts and "40" in texts


def test_what_a_log_says_is_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = metadata_of(report(), "mart.tasks")
    sample = str(shown["sample"].value)
    assert len(sample.splitlines()) == 3 and "![" not in sample and "](" not in sample and "http:" not in sample
    assert not re.search(r"(?<!\\)[<>`]", sample.splitlines()[2])
    monkeypatch.setenv("TRACEROOM_SAMPLES", "off")
    assert "sample" not in metadata_of(report(), "mart.tasks")
    assert "beacon" not in str(metadata_of(report(), "mart.tasks"))


@given(st.lists(st.text(max_size=90), min_size=1, max_size=4))
def test_a_row_stays_one_line_of_as_many_cells(cells: list[str]) -> None:
    head, rule, row = markdown(pl.DataFrame([cells], schema=[f"c{n}" for n in range(len(cells))], orient="row")).split("\n")
    assert head.count("|") == rule.count("|") == len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == len(cells) + 1
