"""What to log so that less is unknown: from the coverage of rooms, and from what the calls lack."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
from starlette.datastructures import QueryParams

from pipelines.browser.pages import Browser
from pipelines.inspection.coverage import NO_ANSWER
from pipelines.inspection.views import StoreSource
from pipelines.reporting import sections
from tests.pipelines.conftest import Traceroom
from warehouse.store import Store


def test_each_unknown_names_what_would_answer_it(run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom) -> None:
    out = Path(shutil.copytree(run_once[0], tmp_path / "out"))
    (manifest,) = out.glob("environments/*/manifest.json")
    told = json.loads(manifest.read_text())
    done = traceroom("coverage", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    (asked,) = [row for row in rows if row["field"] == "state changes"]
    assert sorted((tool["tool"], tool["n"]) for tool in asked["tools"]) == sorted(
        (each["of"], each["n"]) for each in told["coverage"]["advice"])
    n_unknown = sum(tiers.get("unknown", 0) for tiers in told["coverage"]["by_tool"].values())
    assert (asked["n"], asked["of"]) == (n_unknown, told["coverage"]["n_calls"])
    assert asked["gain"] == round(1 - told["coverage"]["answered"], 4), "there is one service"
    assert not [row for row in rows if row["field"] == "results kept whole"], "every call of the sample was answered"
    with duckdb.connect(str(out / "warehouse.published.duckdb")) as warehouse:
        found = warehouse.execute(
            "select tool, count(*) from core.turns where kind = 'call' group by tool order by tool").fetchone()
        assert found is not None
        warehouse.execute("update core.turns set content = null where tool = ?", [found[0]])
        n_calls = warehouse.execute("select count(*) from core.turns where kind = 'call'").fetchone() or ()
    lacking = [row for row in json.loads(traceroom("coverage", "--out", out, "--json").stdout)
               if row["field"] == "results kept whole"]
    (row,) = lacking
    assert row["tools"] == [{"tool": found[0], "n": found[1], "log": row["log"]}]
    assert (row["n"], row["of"]) == (found[1], *n_calls)


def test_what_helps_most_comes_first(run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom) -> None:
    out = Path(shutil.copytree(run_once[0], tmp_path / "out"))

    def fields() -> list[str]:
        rows = json.loads(traceroom("coverage", "--out", out, "--json").stdout)
        assert [row["gain"] for row in rows] == sorted((row["gain"] for row in rows), reverse=True)
        assert all((row["gain"] > 0) == (row["field"] not in NO_ANSWER) for row in rows)
        return [row["field"] for row in rows]

    with duckdb.connect(str(out / "warehouse.published.duckdb")) as warehouse:
        warehouse.execute("update core.tools set declared = false")
    told = fields()
    assert "tool list" in told and set(told[-2:]) >= NO_ANSWER & set(told), "of most calls, and yet it answers nothing"
    with duckdb.connect(str(out / "warehouse.published.duckdb")) as warehouse:
        warehouse.execute("update mart.outcomes set probability = null")
    assert fields()[0] == "feedback" != told[0], "nothing is known of any session"
    shutil.rmtree(out / "environments")
    assert "state changes" in fields(), "the rooms that are unverified say it too"


def test_the_pages_say_what_the_command_says(run_once: tuple[Path, str], traceroom: Traceroom, tmp_path: Path) -> None:
    out = Path(shutil.copytree(run_once[0], tmp_path / "out"))
    rows = json.loads(traceroom("coverage", "--out", out, "--json").stdout)
    with Store.published(out / "warehouse.duckdb") as store:
        section = sections.unknowns(StoreSource(store), out)
    (listed,) = section.tables
    told = [(f"{row['field']}: {row['log']}", f"{row['n']:,} of {row['of']:,} {row['unit']}") for row in rows]
    assert told and [row[1:3] for row in listed.rows] == told
    shown = traceroom("coverage", "--out", out).stderr
    places = [shown.index(f"{row['field']}: {row['log']}") for row in rows]
    assert places == sorted(places)
    browser = Browser(out)
    try:
        assert browser.unknowns(QueryParams())["rows"] == rows
        name = next((out / "environments").iterdir()).name
        page = browser.environment(QueryParams({"id": name}))
        assert isinstance(page, dict) and page["unknowns"] == [row for row in rows if row["service"] == name]
    finally:
        browser.close()
