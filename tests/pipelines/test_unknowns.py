"""What to log so that less is unknown: from the coverage of rooms, and from what the calls lack."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb

from tests.pipelines.conftest import Traceroom


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
