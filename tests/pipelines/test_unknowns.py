"""What to log so that less is unknown: from the coverage of rooms, and from what the calls lack."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
from starlette.datastructures import QueryParams

from pipelines.browser.pages import Browser
from pipelines.reporting import of_tasks
from tests.pipelines.conftest import Traceroom
from warehouse.store import Store


def test_each_unknown_names_what_would_answer_it(run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom) -> None:
    out = Path(shutil.copytree(run_once[0], tmp_path / "out"))
    (manifest,) = out.glob("environments/*/manifest.json")
    told = json.loads(manifest.read_text())
    done = traceroom("unknowns", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    advised = [(row["tool"], row["n"]) for row in rows if row["why"].startswith("its rooms answer `unknown`")]
    assert sorted(advised) == sorted((each["of"], each["n"]) for each in told["coverage"]["advice"])
    assert [row["n"] for row in rows] == sorted((row["n"] for row in rows), reverse=True)
    assert not [row for row in rows if row["field"] == "results kept whole"], "every call of the sample was answered"
    with duckdb.connect(str(out / "warehouse.published.duckdb")) as warehouse:
        found = warehouse.execute(
            "select tool, count(*) from core.turns where kind = 'call' group by tool order by tool").fetchone()
        assert found is not None
        warehouse.execute("update core.turns set content = null where tool = ?", [found[0]])
    lacking = [row for row in json.loads(traceroom("unknowns", "--out", out, "--json").stdout)
               if row["field"] == "results kept whole"]
    assert [(row["tool"], row["n"], row["of"]) for row in lacking] == [(found[0], found[1], found[1])]


def test_the_pages_say_what_the_command_says(run_once: tuple[Path, str], traceroom: Traceroom, tmp_path: Path) -> None:
    out = Path(shutil.copytree(run_once[0], tmp_path / "out"))
    rows = json.loads(traceroom("unknowns", "--out", out, "--json").stdout)
    with Store.published(out / "warehouse.duckdb") as store:
        section = of_tasks.unknowns(store, out)
    (listed,) = section.tables
    told = [(row["tool"] or "–", row["field"], f"{row['n']:,}", f"{row['of']:,}") for row in rows]
    assert told and [(row[1], row[2], row[4], row[5]) for row in listed.rows] == told
    browser = Browser(out)
    try:
        assert browser.unknowns(QueryParams())["rows"] == rows
        name = next((out / "environments").iterdir()).name
        page = browser.environment(QueryParams({"id": name}))
        assert isinstance(page, dict) and page["unknowns"] == [row for row in rows if row["service"] == name]
    finally:
        browser.close()
