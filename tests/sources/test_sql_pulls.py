"""A table of PostgreSQL, pulled by the command line into a folder: killed while it pages, and again when rows have come."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import psycopg2
import pytest

from extractors import configuration
from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import assemble
from tests.command_line import ROOT, environ, process
from tests.postgres import Postgres

pytestmark = pytest.mark.xdist_group("postgres")
TABLE = """
create table turns (id bigint, at timestamptz, session text, role text, content text, tool text, input jsonb, output jsonb);
insert into turns
select n, timestamptz '2026-03-02 10:00Z' + (n / 5) * interval '1 second', 's' || n % 4,
       case n / 4 % 3 when 0 then 'user' when 1 then 'assistant' end, case when n / 4 % 3 < 2 then 'words ' || n end,
       case n / 4 % 3 when 2 then 'lookup' end, case n / 4 % 3 when 2 then jsonb_build_object('n', n) end,
       case n / 4 % 3 when 2 then jsonb_build_object('found', n * 1.5) end
from generate_series(0, 59) as series (n);
insert into turns (content) values ('of no time and without a number');
"""
CONFIG = """
[[sources]]
name = "shop"
paths = ["inbox/shop"]
format = "mapped"

[sources.fields]
session_id = "session"
time = "at"
position = "id"
role = "role"
content = "content"
tool = "tool"
arguments = "input"
result = "output"

[sources.pull]
platform = "sql"
url = "{url}"
page_size = 7
until = "2027-01-01"

[sources.pull.options]
query = "select turns.* from turns, (select pg_sleep(0.15)) as pause"
watermark = "{watermark}"
group = "session"
"""
_OF_TURNS = ("session_id", "position", "kind", "role", "content", "tool", "arguments", "happened_at")


@pytest.fixture
def folder(postgres: Postgres, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, str]:
    """Return a folder with a configuration, and the address of its database."""
    url = postgres.database()
    execute(url, TABLE)
    shown = url.replace(f":{postgres.password}@", "@")
    (tmp_path / "traceroom.toml").write_text(CONFIG.format(url=shown, watermark=request.param))
    return tmp_path, url


def execute(url: str, statements: str) -> list[Any]:
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(statements)
        return cursor.fetchall() if cursor.description else []


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for path in sorted((folder / "inbox" / "shop").glob("*.jsonl"))
            for line in path.read_bytes().splitlines()]


def turns(config: Path, logs: Path) -> list[dict[str, Any]]:
    """Return what was said, called and answered, as a run with this configuration reads it."""
    readings = [read(each) for each in discover([logs], configuration=configuration.load(config))[0]]
    made = assemble(pl.concat([each.events for each in readings]), pl.concat([each.declarations for each in readings]))
    assert made.sessions.height == 4
    return made.turns.select(_OF_TURNS).to_dicts()


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["at", "id"], indirect=True)
def test_a_pull_that_is_killed_while_it_pages_gives_each_row_once(
    folder: tuple[Path, str], postgres: Postgres, tmp_path: Path,
) -> None:
    work, url = folder
    rng, n_killed = random.Random(5), 0
    for _ in range(6):
        pulling = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipelines", "sources", "pull", "--config", str(work / "traceroom.toml")], cwd=ROOT,
            env=environ(TRACEROOM_SQL_PASSWORD=postgres.password), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while not (work / "inbox" / "shop" / ".pages").exists() and pulling.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 0.8))
        n_killed += pulling.poll() is None
        pulling.kill()
        pulling.wait()
    done = process("sources", "pull", "--config", str(work / "traceroom.toml"), TRACEROOM_SQL_PASSWORD=postgres.password)
    assert done.returncode == 0, done.stderr
    assert n_killed >= 2
    assert Counter(row["id"] for row in rows_of(work)) == Counter(range(60))
    dump = tmp_path / "dump" / "turns.jsonl"
    dump.parent.mkdir()
    records = execute(url, "select row_to_json(turns) from turns where id is not null")
    dump.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record, in records))
    (tmp_path / "dump.toml").write_text(CONFIG.partition("[sources.pull]")[0].replace("inbox/shop", str(dump.parent)))
    assert turns(work / "traceroom.toml", work / "inbox") == turns(tmp_path / "dump.toml", dump.parent)


@pytest.mark.parametrize("folder", ["id"], indirect=True)
def test_rows_at_the_last_watermark_and_after_come_with_the_next_pull(
    folder: tuple[Path, str], postgres: Postgres,
) -> None:
    work, url = folder
    config = str(work / "traceroom.toml")
    pulled = process("sources", "pull", "--config", config, "--json", TRACEROOM_SQL_PASSWORD=postgres.password)
    assert pulled.returncode == 0 and orjson.loads(pulled.stdout)[0]["n_records"] == 60
    assert "1 rows have no id and are not pulled" in pulled.stderr
    execute(url, "insert into turns (id, session, role, content) values (59, 's0', 'user', 'late'), (60, 's0', 'user', 'new')")
    pulled = process("sources", "pull", "--config", config, "--json", TRACEROOM_SQL_PASSWORD=postgres.password)
    assert pulled.returncode == 0 and orjson.loads(pulled.stdout)[0]["n_records"] == 2
    assert sorted(row["id"] for row in rows_of(work)) == [*range(59), 59, 59, 60]
    assert postgres.password not in pulled.stdout + pulled.stderr + (work / "traceroom.toml").read_text()
