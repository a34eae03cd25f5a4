"""A lake holds what a file holds, by the same calls: keys, transactions, what readers see; and its URL is understood."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.lakes import in_files
from tests.warehouse.test_store import TABLES, feedback
from warehouse import records
from warehouse.catalogs import catalog_of, record_url, url_of
from warehouse.errors import InputError, Missing, NotAWarehouse, StoreError
from warehouse.schema import columns_of
from warehouse.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "out" / "warehouse.duckdb"
    record_url(path, in_files(tmp_path))
    return path


def test_a_lake_keeps_what_a_file_keeps(path: Path) -> None:
    with pytest.raises(NotAWarehouse, match="the warehouse is empty; make it"):
        Store.open(path, write=False)
    with pytest.raises(Missing, match="no warehouse here yet"):
        Store.published(path)
    with Store.open(path) as store:
        for table, record in TABLES.items():
            assert store.table(table).schema == pl.Schema(records.frame_schema(record))
        assert store.append_new("core.feedback", feedback("a", "b")) == 2
        assert store.append_new("core.feedback", feedback("b", "c", "c", value="new")) == 1
        with pytest.raises(StoreError), store.transaction():
            store.append("core.feedback", feedback("d"))
            store.change("update core.feedback set nothing = 1")
        assert store.replace("core.feedback", feedback("a", value="bad"), "feedback_id = $name", name="a") == 1
        store.append("core.feedback", feedback("b"))
        store.keep_one("core.feedback")
    with Store.open(path) as store:
        kept = dict(store.read("select feedback_id, value from core.feedback").iter_rows())
    assert kept == {"a": "bad", "b": "good", "c": "new"}
    assert not list(path.parent.glob("*.duckdb")), "the lake is in the place of the file"


def test_readers_see_the_published_snapshot(path: Path) -> None:
    with Store.open(path) as store:
        store.append_new("core.feedback", feedback("a"))
        store.publish()
    assert catalog_of(path).is_there() and catalog_of(path).is_published()
    with Store.open(path) as store:
        store.append_new("core.feedback", feedback("b"))
        store.replace("core.feedback", feedback("c"), "feedback_id = 'a'")
    assert not catalog_of(path).is_published()
    with Store.published(path) as reader:
        assert reader.table("core.feedback")["feedback_id"].to_list() == ["a"]
    with Store.open(path) as store:
        store.publish()
    with Store.published(path) as reader:
        assert reader.table("core.feedback")["feedback_id"].to_list() == ["b", "c"]


@pytest.mark.parametrize(("url", "says"), [
    ("postgres://db/x?data=/rows", "no URL of a lake"), ("ducklake:postgres://db/x", "does not say where the rows lie"),
    ("ducklake:postgres://me:secret@db/x?data=/rows", "a password stands in the URL")])
def test_a_url_that_is_none_is_refused(tmp_path: Path, url: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        record_url(tmp_path / "warehouse.duckdb", url)
    assert "secret" not in str(error.value) and not list(tmp_path.iterdir())


def test_a_lake_of_version_2_gets_todays_names(path: Path) -> None:
    with duckdb.connect() as old:
        old.execute((Path(__file__).parent / "schemas" / "version_2.sql").read_text("utf-8"))
        tables = columns_of(old)
    lake = catalog_of(path)
    connection = lake.connect(write=True)
    for schema in ("raw", "core", "mart"):
        connection.execute(f"create schema if not exists {schema}")
    for table, columns in tables.items():
        connection.execute(f"create table {table} ({', '.join(f'{column.name} {column.kind}' for column in columns)})")
    connection.execute("create view mart.funnel as select stage, count(*) as n from mart.verdicts group by stage")
    for row in ("raw.schema_version values (2, 'of version 2')", "raw.places values ('p', 'f', 1, 2)",
                "raw.files values ('f', null, 'main', 'p', 3, 0, 'chat', 1, 1, null, now(), true)",
                "mart.verdicts values ('extract', 'f:1', false, 'duplicate_record', 'It is there.', 'f', 1)"):
        connection.execute(f"insert into {row}")
    lake.close(connection)
    with Store.open(path) as store:
        assert store.read("select file_id, chunk from raw.files").rows() == [("f", 3)]
        assert store.count("raw.locations") == 1
        assert store.read("select stage, reason, n from mart.funnel").rows() == [("extract", "duplicate_record", 1)]
        assert store.table("mart.tasks").schema == pl.Schema(records.frame_schema(records.Task))


def test_a_lake_that_does_not_open_is_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "out" / "warehouse.duckdb"
    with pytest.raises(StoreError, match="the lake cannot be opened"):
        record_url(path, f"ducklake:{tmp_path / 'nowhere' / 'catalog.ducklake'}?data={tmp_path / 'rows'}")
    assert not path.parent.exists()
    record_url(path, in_files(tmp_path))   # the URL, corrected
    assert url_of(path) == in_files(tmp_path)


def test_a_folder_has_one_warehouse(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has its warehouse in ducklake:"):
        record_url(path, in_files(tmp_path / "other"))
    with Store.open(tmp_path / "file" / "warehouse.duckdb"), pytest.raises(InputError, match=r"in warehouse\.duckdb already"):
        record_url(tmp_path / "file" / "warehouse.duckdb", in_files(tmp_path))
