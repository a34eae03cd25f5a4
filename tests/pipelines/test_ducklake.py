"""The whole pipeline on a lake: catalog in PostgreSQL, rows in a bucket; and several writers at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import boto3
import pytest

from pipelines.inspection.summary import summary
from pipelines.settings import Settings
from tests.buckets import KEYS, serving
from tests.conftest import SAMPLE
from tests.lakes import in_postgres, take_in
from tests.pipelines.conftest import Traceroom, files, same, tables
from tests.pipelines.ingestion import access, events, session
from tests.postgres import Postgres
from warehouse.catalogs import catalog_of
from warehouse.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
BUCKET = "rows-of-a-lake"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield a bucket, with its address and keys in the environment."""
    with serving(tmp_path / "said") as url:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": url}.items():
            monkeypatch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield BUCKET


@pytest.fixture
def lake(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Postgres:
    """Return the server of the catalog, with its password in the environment."""
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    return postgres


def test_the_journey_is_the_same_on_a_lake(
    sample_run: Path, lake: Postgres, bucket: str, tmp_path: Path, traceroom: Traceroom, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal tables, equal files, and a second run that has nothing to do."""
    out, url = tmp_path / "out", in_postgres(lake, f"s3://{bucket}/sample")
    done = traceroom("run", SAMPLE, "--out", out, "--no-image", "--warehouse", url)
    assert done.returncode == 0, done.stderr
    assert not list(out.glob("*.duckdb")) and boto3.client("s3").list_objects_v2(Bucket=bucket)["KeyCount"] > 20
    assert same(tables(out), tables(sample_run)) == [] and files(out) == files(sample_run)
    assert catalog_of(out / "warehouse.duckdb").is_published()
    again = traceroom("run", SAMPLE, "--out", out, "--no-image")   # the folder remembers the lake
    assert again.returncode == 0 and catalog_of(out / "warehouse.duckdb").is_published(), again.stderr
    told = [summary(Settings(logs=(), out=str(place))) for place in (out, sample_run)]
    assert told[0]["n_sessions"] == told[1]["n_sessions"] and told[0]["warehouse"] == url


def test_several_writers_take_in_what_one_would(lake: Postgres, tmp_path: Path) -> None:
    """Each has a shard; sessions overlap, and one file is everybody's."""
    shards = [tmp_path / f"shard-{number}" for number in range(3)]
    for number, shard in enumerate(shards):
        shard.mkdir()
        for part in range(3):
            first = 30 * number + 10 * part
            (shard / f"{part}.jsonl").write_text("".join(map(session, range(first, first + 14))))
    (tmp_path / "all.log").write_text("".join(map(access, range(40))))
    url = in_postgres(lake, tmp_path / "rows")
    with ProcessPoolExecutor(3, multiprocessing.get_context("spawn")) as pool:
        taken = [pool.submit(take_in, url, tmp_path / f"out-{number}", [str(shard), str(tmp_path / "all.log")])
                 for number, shard in enumerate(shards)]
        counts = [each.result() for each in taken]
    assert all(each["n_new_records"] > 0 for each in counts)
    take_in(url, tmp_path / "last", [*map(str, shards), str(tmp_path / "all.log")])   # nothing is new
    alone = tmp_path / "alone"
    take_in(None, alone, [*map(str, shards), str(tmp_path / "all.log")])
    assert events(tmp_path / "last") == events(alone)
    with Store.open(tmp_path / "last" / "warehouse.duckdb", write=False) as many, \
            Store.open(alone / "warehouse.duckdb", write=False) as one:
        for table in ("raw.files", "raw.locations", "raw.records", "raw.quarantine"):
            assert many.count(table) == one.count(table), table
        assert many.read("select count(*) as n from raw.files where not settled").item() == 0
