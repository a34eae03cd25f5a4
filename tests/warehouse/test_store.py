"""The store keeps what it is given, tells apart what it is not, and never leaves half of anything."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse import records
from warehouse.catalogs import published_path
from warehouse.errors import Missing, NotAWarehouse, SchemaTooNew, SchemaTooOld, StoreError
from warehouse.schema import SCHEMA_VERSION, layout
from warehouse.store import Store

TABLES = {
    "raw.files": records.File, "raw.locations": records.FileLocation, "raw.records": records.RawRecord,
    "raw.quarantine": records.Quarantined, "raw.privacy": records.PrivacyState, "raw.people": records.Person,
    "raw.new_people": records.NewPerson, "raw.epochs": records.SealedSession, "raw.sides": records.SealedSide,
    "raw.word_groups": records.WordGroup, "raw.work_sides": records.SealedAct,
    "raw.programs": records.LearntProgram,
    "raw.declarations": records.Declaration, "raw.forgotten": records.Forgotten,
    "core.events": records.Event, "core.sessions": records.Session, "core.turns": records.Turn,
    "core.feedback": records.Feedback, "core.row_changes": records.RowChange, "core.corrections": records.Correction,
    "core.reviews": records.Review,
    "core.tools": records.Tool,
    "mart.starts": records.CodeStart, "mart.code_changes": records.CodeChangeRow,
    "mart.host_records": records.HostRecord,
    "mart.workspace_steps": records.WorkspaceStep, "mart.recipes": records.CodeRecipe, "mart.code_tasks": records.CodeTask,
    "mart.site_rooms": records.SiteRoomRow, "mart.site_work": records.SiteWorkRow,
    "core.versions": records.FieldValue, "mart.company_rooms": records.CompanyRoomRow,
    "core.accounts": records.PersonAccount,
    "core.work_events": records.WorkEventRow, "mart.work_items": records.WorkItemRow,
    "mart.site_steps": records.SiteStepRow, "mart.work_steps": records.WorkStepRow,
    "mart.code_rooms": records.CodeRoomRow, "mart.code_verdicts": records.CodeVerdict,
    "mart.services": records.Service, "mart.worlds": records.SessionWorld,
    "mart.leakage": records.Leakage, "mart.outcomes": records.Outcome,
    "mart.signals": records.SignalWorth, "mart.conditions": records.ConditionRow,
    "mart.tasks": records.Task, "mart.families": records.Family, "mart.goals": records.Goal,
    "mart.names": records.FamilyName, "mart.sentences": records.Sentence, "mart.facts": records.Fact,
    "mart.recorded": records.Recorded, "mart.behaviours": records.Behaviour, "mart.rubrics": records.Rubric,
    "mart.variants": records.Variant,
    "mart.environments": records.EnvironmentRow, "mart.datasets": records.Dataset, "mart.decisions": records.Decision,
}


def feedback(*ids: str, value: str = "good") -> pl.DataFrame:
    rows = [{
        "feedback_id": name, "session_id": "s", "happened_at": datetime(2026, 3, 2, 9, 0, 0, 7, UTC), "name": "stars",
        "value": value, "source": "main"} for name in ids]
    return records.frame(records.Feedback, rows)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out" / "warehouse.duckdb"


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_the_columns_of_its_record(path: Path, table: str) -> None:
    with Store.open(path) as store:
        assert store.table(table).schema == pl.Schema(records.frame_schema(TABLES[table]))
        assert store.key(table)


def test_every_table_has_a_record(path: Path) -> None:
    with Store.open(path) as store:
        names = store.read("select schema_name || '.' || table_name as name from duckdb_tables() order by all")["name"]
    assert set(names) - {"raw.schema_version", "raw.stages", "raw.partitions", "raw.audits", "raw.cache"} == set(TABLES)


def test_every_table_and_every_column_says_what_it_holds(path: Path) -> None:
    with Store.open(path) as store:
        silent = store.read(
            "select schema_name || '.' || table_name as name from duckdb_tables() where comment is null union all "
            "select column_name from duckdb_columns() join duckdb_tables() using (schema_name, table_name) "
            "where duckdb_columns.comment is null order by all")["name"].to_list()
        assert silent == []
        of_a_tool = "select comment from duckdb_columns() where table_name = 'turns' and column_name = 'tool'"
        assert store.read(of_a_tool).item() == "Name of the tool"


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(ids=st.lists(st.text("abc", min_size=1, max_size=2), max_size=8), again=st.lists(st.text("abc", min_size=1, max_size=2)))
def test_appending_adds_each_key_once(ids: list[str], again: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "w.duckdb") as store:
        assert store.append_new("core.feedback", feedback(*dict.fromkeys(ids))) == len(set(ids))
        assert store.append_new("core.feedback", feedback(*dict.fromkeys(again), value="new")) == len(set(again) - set(ids))
        kept = dict(store.read("select feedback_id, value from core.feedback").iter_rows())
        assert kept == dict.fromkeys(again, "new") | dict.fromkeys(ids, "good")


def test_what_goes_in_comes_out(path: Path) -> None:
    given_frame = feedback("a", "b").with_columns(value=pl.Series(["ünï", "line\nbreak\x1f"]))
    with Store.open(path) as store:
        store.replace("core.feedback", given_frame)
    with Store.open(path) as store:
        assert store.table("core.feedback").equals(given_frame)


def test_instants_are_utc_wherever_the_host_is(path: Path) -> None:
    with Store.open(path) as store:
        store.append_new("core.feedback", feedback("a"))
    code = (
        "import sys; from pathlib import Path; from warehouse.store import Store\n"
        "with Store.open(Path(sys.argv[1])) as store: f = store.table('core.feedback')\n"
        "print(f['happened_at'].dtype, f['happened_at'][0].isoformat())")
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[2], env={"TZ": "America/New_York", "PATH": "/usr/bin:/bin"})
    assert done.stdout.strip() == "Datetime(time_unit='us', time_zone='UTC') 2026-03-02T09:00:00.000007+00:00"


def test_replace_touches_only_its_rows(path: Path) -> None:
    with Store.open(path) as store:
        store.append_new("core.feedback", feedback("a", "b"))
        assert store.replace("core.feedback", feedback("a", value="bad"), "feedback_id = $name", name="a") == 1
        assert dict(store.read("select feedback_id, value from core.feedback").iter_rows()) == {"a": "bad", "b": "good"}


def test_a_transaction_is_all_or_nothing(path: Path) -> None:
    with Store.open(path) as store:
        with pytest.raises(StoreError), store.transaction():
            store.append_new("core.feedback", feedback("a"))
            store.replace("core.feedback", feedback("b", "b"))
        assert store.count("core.feedback") == 0
        store.append_new("core.feedback", feedback("c"))
        assert store.count("core.feedback") == 1


def test_a_transaction_that_ends_after_its_store_is_undone_without_a_word(path: Path) -> None:
    """A stop may come between its beginning and `with`; then it ends when it is collected, after the store."""
    with Store.open(path) as store:
        transaction = store.transaction()
        transaction.__enter__()
        store.append_new("core.feedback", feedback("a"))
    stop = KeyboardInterrupt()
    assert not transaction.__exit__(KeyboardInterrupt, stop, None), "the stop goes on, and nothing else is raised"
    with Store.open(path) as store:
        assert store.count("core.feedback") == 0


def test_versions_are_of_what_the_tables_hold_now(path: Path) -> None:
    """A table is not counted again while nothing changed it; what changed it, or was undone, is seen."""
    rows = "(select value as service, feedback_id from core.feedback)"
    with Store.open(path) as store:
        def versions() -> tuple[str, dict[str, str]]:
            with Store.open(path.parent / "other.duckdb") as other:   # one that has counted nothing yet
                other.replace("core.feedback", store.table("core.feedback"))
                assert other.version("core.feedback") == store.version("core.feedback")
                assert other.versions(rows) == store.versions(rows)
            return store.version("core.feedback"), store.versions(rows)

        seen = [versions()]
        store.append("core.feedback", feedback("a", "b"))
        seen.append(versions())
        store.change("delete from core.feedback where feedback_id = 'a'")
        seen.append(versions())
        store.replace("core.feedback", feedback("a", value="bad"))
        seen.append(versions())
        with pytest.raises(ValueError), store.transaction():
            store.append_new("core.feedback", feedback("a", "c"))
            assert store.version("core.feedback") != seen[-1][0]
            raise ValueError
        assert versions() == seen[-1] and len({version for version, _ in seen}) == len(seen)


def test_a_frame_without_a_column_is_refused_by_name(path: Path) -> None:
    with Store.open(path) as store, pytest.raises(StoreError, match=r"core\.feedback.*no column 'value'"):
        store.append_new("core.feedback", feedback("a").drop("value"))


def test_readers_see_the_published_copy_while_a_writer_writes(path: Path) -> None:
    with Store.open(path) as store:
        store.append_new("core.feedback", feedback("a"))
        store.publish()
        store.append_new("core.feedback", feedback("b"))
        with Store.published(path) as reader:
            assert reader.table("core.feedback")["feedback_id"].to_list() == ["a"]
            store.publish()
            assert reader.count("core.feedback") == 1, "who reads keeps what was published when they began"
        with Store.published(path) as reader:
            assert reader.count("core.feedback") == 2
    assert {file.name for file in path.parent.iterdir()} == {path.name, published_path(path).name}


@pytest.mark.parametrize("content", [b"hello world" * 1000, b"", b"\0" * 40_000])
def test_a_file_that_is_no_database_is_said_so_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(NotAWarehouse, match=r"warehouse\.duckdb: .*; move the file away, or choose another --out\."):
        Store.open(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table theirs as select 1 as a")
    with pytest.raises(NotAWarehouse, match="no warehouse of Traceroom"):
        Store.open(path)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("select table_name from duckdb_tables()").fetchall() == [("theirs",)]


def test_a_damaged_file_is_said_so(path: Path) -> None:
    with Store.open(path) as store:
        store.replace("core.feedback", feedback(*map(str, range(20_000))))
    content = bytearray(path.read_bytes())
    content[8192:] = bytes(len(content) - 8192)
    path.write_bytes(bytes(content))
    with pytest.raises(StoreError, match=r"\.duckdb.*(damaged|move the file away)"), Store.open(path) as store:
        store.table("core.feedback")


def test_a_missing_warehouse_is_not_made_by_looking(path: Path) -> None:
    with pytest.raises(Missing, match="traceroom run LOGS --out DIR"):
        Store.published(path)
    assert not path.parent.exists()


def older(path: Path, *changes: str, version: int = SCHEMA_VERSION) -> None:
    """Make a warehouse as an older (or newer) Traceroom left it."""
    Store.open(path).close()
    with duckdb.connect(str(path)) as connection:
        for change in changes:
            connection.execute(change)
        connection.execute("update raw.schema_version set version = ?, fingerprint = 'another'", [version])


def test_an_older_warehouse_is_brought_up_to_date(path: Path) -> None:
    older(
        path, "insert into raw.files values ('f', null, 'main', 'p', 0, 0, 'chat', 1, 1, null, now(), true)",
        "insert into raw.stages values ('tasks', 'd', '{}', 0, '{}', now())", "drop view mart.funnel",
        "alter table mart.tasks drop column difficulty", "drop table mart.rubrics", version=0)
    with pytest.raises(SchemaTooOld, match="bring it up to date"):
        Store.open(path, write=False)
    with Store.open(path) as store:
        assert store.table("mart.tasks").schema == pl.Schema(records.frame_schema(records.Task))
        derived = ("mart.rubrics", "raw.stages", "raw.partitions")
        assert [store.count(table) for table in derived] == [0, 0, 0], "what is derived is computed again"
        assert store.table("raw.files")["file_id"].to_list() == ["f"], "what was read stays"
    with Store.open(path, write=False) as store:
        assert store.read("select version from raw.schema_version").item() == SCHEMA_VERSION


def test_a_table_of_an_older_warehouse_takes_rows_without_what_it_had_to_have(path: Path) -> None:
    older(path, "alter table mart.code_tasks alter session_id set not null", version=SCHEMA_VERSION)
    row = {name: [] if "list" in kind else "x" for name, kind in records.CodeTask.__annotations__.items()}
    row["session_id"] = None
    with Store.open(path) as store:
        assert store.replace("mart.code_tasks", records.frame(records.CodeTask, [row])) == 1


def test_a_warehouse_of_version_2_gets_todays_names_and_keeps_what_was_read(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute((Path(__file__).parent / "schemas" / "version_2.sql").read_text("utf-8"))
        for row in (
            "raw.schema_version values (2, 'of version 2')",
            "raw.files values ('f', null, 'main', 'p', 3, 0, 'chat', 1, 1, null, now(), true)",
            "raw.places values ('p', 'f', 1, 2)",
            "raw.records values ('r', 'f', 1, 0, 1, null, 'duplicate_record')",
            "raw.kept values ('tasks', 'k', 'c', 'x'::blob)", "raw.parts values ('world', 's', 'd', '[]')",
            "raw.stages values ('tasks', 'd', '{}', 0, '{}', now())",
            "mart.verdicts values ('extract', 'f:1', false, 'duplicate_record', 'It is there.', 'f', 1)"):
            connection.execute(f"insert into {row}")
    with pytest.raises(SchemaTooOld, match="bring it up to date"):
        Store.open(path, write=False)
    with Store.open(path) as store:
        assert store.read("select version from raw.schema_version").item() == SCHEMA_VERSION == 3
        assert store.read("select file_id, chunk from raw.files").rows() == [("f", 3)]
        assert store.read("select path, file_id from raw.locations").rows() == [("p", "f")]
        assert store.read("select record_id, reject_reason from raw.records").rows() == [("r", "duplicate_record")]
        assert store.read("select stage, reason, n from mart.funnel").rows() == [("extract", "duplicate_record", 1)]
        assert [store.count(table) for table in ("raw.stages", "raw.cache", "raw.partitions")] == [0, 0, 0]
        there = store.read("select schema_name || '.' || table_name as name from duckdb_tables()")["name"].to_list()
        assert sorted(there) == sorted(layout().columns)
        store.append_new("raw.files", store.table("raw.files"))
        assert store.count("raw.files") == 1, "its key still holds"
    with Store.open(path, write=False) as store:
        assert store.table("raw.files").schema == pl.Schema(records.frame_schema(records.File))


def test_an_older_warehouse_that_keeps_other_columns_is_refused_and_left_alone(path: Path) -> None:
    older(path, "alter table core.events drop column lossy", version=0)
    before = path.read_bytes()
    with pytest.raises(SchemaTooOld, match=r"core\.events in an older layout.*run into a new --out"):
        Store.open(path)
    assert path.read_bytes() == before


def test_a_newer_warehouse_is_refused(path: Path) -> None:
    older(path, version=SCHEMA_VERSION + 1)
    with pytest.raises(SchemaTooNew, match="upgrade Traceroom"):
        Store.open(path)
