"""The report: what stands in it, that it is the same for the same warehouse, and as long for many sessions as for few."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.report_warehouse import fill
from pipelines.inspection import summary
from pipelines.reporting import charts, parts, report
from pipelines.reporting.charts import squarified
from pipelines.reporting.parts import NARROW, WIDE, clean, percent
from tests.command_line import called
from warehouse.store import Store

STYLE = Path(__file__).resolve().parents[2] / "pipelines/reporting/page.css"


class Parsed(HTMLParser):
    """Tags, ids, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all_of(self, name: str) -> list[str]:
        return [value or "" for key, value in self.attributes if key == name]


def written(out: Path, to: Path) -> str:
    """Return the report on what lies in `out`, as text."""
    with Store.published(out / "warehouse.duckdb") as store:
        return report(store, to, out).read_text("utf-8")


def test_a_run_has_a_report_that_says_what_show_says(sample_run: Path, tmp_path: Path) -> None:
    done = called("report", "--out", sample_run, "--to", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    text = Path(json.loads(done.stdout)["path"]).read_text("utf-8")
    page = Parsed(text)
    told = summary.summary(summary.out_of(str(sample_run)))
    for name in ("n_sessions", "n_calls", "n_tasks", "n_published"):
        assert f"{told[name]:,}" in page.texts, name
    shown = " ".join(page.texts)
    assert all(row["reason"] in shown and row["stage"] in shown for row in told["left"])
    assert all(row["environment"] in shown for row in told["environments"])
    ids = page.all_of("id")
    assert len(ids) == len(set(ids)), "every id stands once"
    named = {name for value in page.all_of("aria-labelledby") for name in value.split()}
    assert named <= set(ids) and {link[1:] for link in page.all_of("href") if link.startswith("#")} <= set(ids)
    assert page.tags.count("script") == 1 and page.tags.count("style") == 1 and page.tags.count("h1") == 1
    fetched = re.compile(r"(?!data:(?:,$|text/csv;|application/json;))\w+:")
    assert not [value for name in ("src", "href", "action") for value in page.all_of(name) if fetched.match(value)]
    assert str(sample_run) not in text, "no path of this machine"


def test_each_table_of_the_report_is_a_file_too(sample_run: Path, tmp_path: Path) -> None:
    page = Parsed(written(sample_run, tmp_path))
    links = [link for link in page.all_of("href") if link.startswith("data:") and link != "data:,"]
    files = dict(zip(page.all_of("download"), links, strict=True))
    assert len(files) == 2 * page.tags.count("table"), "each table as CSV and as JSON, each under its own name"
    texts = {name: base64.b64decode(link.partition(",")[2]).decode() for name, link in files.items()}
    families = json.loads(texts["families-the-largest-first.json"])
    assert families and all(isinstance(row["sessions"], int) for row in families)
    listed = list(csv.DictReader(io.StringIO(texts["families-the-largest-first.csv"])))
    assert [row["family"] for row in listed] == [row["family"] for row in families]
    assert all(family["family"] in page.texts for family in families)


def test_a_warehouse_of_nothing_has_a_report_that_says_so(tmp_path: Path) -> None:
    with Store.open(tmp_path / "warehouse.duckdb") as store:
        store.publish()
    page = Parsed(written(tmp_path, tmp_path / "report"))
    assert page.tags.count("section") == 11 and "figure" not in page.tags
    assert {"There is no session.", "No row was rejected."} <= set(page.texts)


def test_what_is_not_there_is_refused_with_the_hint(tmp_path: Path) -> None:
    done = called("report", "--out", tmp_path / "nowhere")
    assert done.returncode == 2 and "traceroom run" in done.stderr


@pytest.mark.slow
def test_equal_warehouses_have_equal_reports_as_long_as_those_of_larger_ones(tmp_path: Path) -> None:
    for name, n, backwards in (("one", 2_000, False), ("other", 2_000, True), ("large", 40_000, False)):
        fill(tmp_path / name, n, backwards)
    one, other, large = (written(tmp_path / name, tmp_path / name / "report") for name in ("one", "other", "large"))
    assert one == other
    assert 0.95 < len(large) / len(one) < 1.1
    assert "40,000" in large and large != one


COLOURS = [("--ink", "--page"), ("--ink", "--card"), ("--quiet", "--page"), ("--quiet", "--card"), ("--link", "--page"),
           ("--link", "--card"), ("--card", "--ink"), *((f"--on-{name}", f"--{name}") for name in
                                                       ("good", "fair", "poor", "bad", "none"))]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_what_is_written_stands_out(theme: int) -> None:
    """WCAG 2.2, 1.4.3: 4.5 for words (charts too, where axe-core does not look); 1.4.11: 3 for what the focus is seen by."""
    colours = dict(re.findall(r"(--[\w-]+): (#\w{6})", STYLE.read_text("utf-8").split(":root {")[1 + theme].split("}")[0]))
    low = {pair: contrast(*(colours[name] for name in pair)) for pair in COLOURS}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
    assert min(contrast(colours["--focus"], colours[name]) for name in ("--page", "--card")) >= 3


def contrast(one: str, other: str) -> float:
    """Ratio of contrast of two colours (WCAG 2.2)."""
    def light(colour: str) -> float:
        parts = [int(colour[place: place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=40), st.integers(50, 900), st.integers(50, 900))
def test_the_map_is_full_and_true_to_sizes(sizes: list[int], width: int, height: int) -> None:
    sizes.sort(reverse=True)
    boxes = squarified([float(size) for size in sizes], width, height)
    scale = width * height / sum(sizes)
    for size, box in zip(sizes, boxes, strict=True):
        assert box.width * box.height == pytest.approx(size * scale, rel=1e-6)
        assert min(box.x, box.y, width - box.x - box.width, height - box.y - box.height) > -1e-6, "inside"
    for place, one in enumerate(boxes):
        for other in boxes[place + 1:]:
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert across < 1e-6 or down < 1e-6, "boxes lie beside each other"


@given(st.text(max_size=400), st.integers(4, 200))
def test_words_of_logs_are_one_line_that_can_be_seen(text: str, most: int) -> None:
    seen = clean(text, most)
    assert len(seen) <= most and seen.isprintable()
    assert clean(seen, most) == seen


def test_no_share_is_rounded_to_all_or_none() -> None:
    assert [percent(share) for share in (None, 0, 0.0001, 0.004, 0.5, 0.9999, 1)] == [
        "–", "0 %", "< 0.1 %", "0.4 %", "50 %", "> 99.9 %", "100 %"]


@pytest.mark.parametrize("step", ["hour", "day", "week", "month", "year"])
@pytest.mark.parametrize("n", [1, 2, 8])
def test_a_picture_of_time_is_drawn_however_short_the_logs(step: str, n: int) -> None:
    days = {"hour": 1 / 24, "day": 1, "week": 7, "month": 31, "year": 366}[step]
    rows = [{"at": f"{datetime(2026, 3, 2, tzinfo=UTC) + timedelta(days * at):%Y-%m-%dT%H:%M:%SZ}", "kind": "worked", "n": 1,
             "mean": 0.5, "says": "x"} for at in range(n)]
    for width in (WIDE, NARROW):
        columns = charts.over_time(rows, {"worked": charts.KINDS[0]}, step, width)
        for chart in (columns, charts.rate_over_time(rows, step, width)):
            assert parts.drawn(chart, "x", width, "title", "what it shows").startswith("<svg")


def test_names_that_begin_alike_are_told_apart_and_no_day_twice() -> None:
    rows = [{"name": f"GET /a/long/way/{{to_1}}/the/same/folder/{end}.css", "n": 1, "told": "1", "says": "x"} for end in "abc"]
    for width in (NARROW, WIDE):
        names = set(re.findall('"name": "(GET[^"]*)"', json.dumps(charts.amounts(rows, width).to_dict(), ensure_ascii=False)))
        assert {name[-6:] for name in names} == {f"/{end}.css" for end in "abc"} and max(map(len, names)) <= 40
    days = [{"at": f"2026-03-0{day}T00:00:00Z", "mean": 0.5, "says": "x"} for day in (1, 2, 3)]
    (axis,) = {json.dumps(layer["encoding"]["x"]["axis"]["values"])
               for layer in charts.rate_over_time(days, "day", WIDE).to_dict()["layer"]}
    assert json.loads(axis) == [datetime(2026, 3, day, tzinfo=UTC).timestamp() * 1000 for day in (1, 2, 3)]
