"""Traceroom as Dagster runs it: definitions, partitions, a backfill of fourteen real days, late files, schedule, sensor."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from dagster import (
    AssetKey,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    RunRequest,
    SensorResult,
    SkipReason,
    build_schedule_context,
    build_sensor_context,
    materialize,
)
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from pipelines.dagster_assets import automation
from pipelines.dagster_assets.assets import LIVE_SOURCES, RELEASE, assets, checks, daily, days, key_of, made_by, owners
from pipelines.dagster_assets.assets import instance as of_home
from pipelines.dagster_assets.live_sources import CHECK
from pipelines.dagster_assets.settings_resource import SettingsResource
from pipelines.definitions import defs
from pipelines.quality.gates import GATES
from pipelines.quality.rules import RULES, WARNINGS, broken
from pipelines.running.stage import content_version
from pipelines.stages import STAGES
from tests.pipelines.conftest import ROOT, part_of_sample, same, tables
from warehouse.errors import InputError
from warehouse.store import Store

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Keeps Dagster's own log lines off the screen."""


def a_machine(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Return a machine with an inbox, where Dagster runs by itself."""
    for name in ("inbox", "home"):
        (folder / name).mkdir()
    patch.setenv("TRACEROOM_INBOX", str(folder / "inbox"))
    patch.setenv("TRACEROOM_OUT", str(folder / "out"))
    patch.setenv("TRACEROOM_IMAGE", "off")
    patch.setenv("DAGSTER_HOME", str(folder / "home"))
    shutil.copy(ROOT / "dagster.yaml", folder / "home")
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return a_machine(tmp_path, monkeypatch)


@pytest.fixture
def instance(home: Path) -> Iterator[DagsterInstance]:
    with of_home() as found:
        yield found


class Nightly(NamedTuple):
    """A machine on which one day over twenty sessions was made, from a folder `elsewhere`."""

    machine: Path
    instance: DagsterInstance
    result: ExecuteInProcessResult


@pytest.fixture(scope="module")
def nightly_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nightly]:
    with pytest.MonkeyPatch.context() as patch:
        machine = a_machine(tmp_path_factory.mktemp("nightly"), patch)
        part_of_sample(machine / "logs")
        shutil.copytree(machine / "logs", machine / "inbox", dirs_exist_ok=True)
        (machine / "elsewhere").mkdir()
        patch.chdir(machine / "elsewhere")
        with of_home() as found:
            result = day(found, days.get_last_partition_key() or "")
            assert result.success
            patch.undo()   # other tests come between
            yield Nightly(machine, found, result)


@pytest.fixture
def nightly(nightly_run: Nightly, monkeypatch: pytest.MonkeyPatch) -> Nightly:
    """Return it, once more as that machine."""
    for name, folder in (("TRACEROOM_INBOX", "inbox"), ("TRACEROOM_OUT", "out"), ("DAGSTER_HOME", "home")):
        monkeypatch.setenv(name, str(nightly_run.machine / folder))
    monkeypatch.setenv("TRACEROOM_IMAGE", "off")
    return nightly_run


def backfill(instance: DagsterInstance, first: str, last: str) -> ExecuteInProcessResult:
    """One run over a range of days, as Dagster's single-run backfill asks for it."""
    return materialize(
        [*assets, *checks], instance=instance, run_config=QUIET, resources={"settings": SettingsResource()},
        tags={ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last})


def day(instance: DagsterInstance, key: str) -> ExecuteInProcessResult:
    return materialize(
        [*assets, *checks], instance=instance, run_config=QUIET, resources={"settings": SettingsResource()},
        partition_key=key)


def copied(data: Path, inbox: Path, *names: str, each: int) -> int:
    """Files of retail_desk into the inbox, each under the folder that it came from; of the logs one session of so many.
    Gives how many sessions that are."""
    kept = set()
    for name in names:
        (inbox / name).parent.mkdir(parents=True, exist_ok=True)
        lines = (data / "retail_desk" / name).read_bytes().splitlines(keepends=True)
        if name.startswith("logs/"):
            of_session = [(json.loads(line)["metadata"]["session_id"], line) for line in lines]
            some = [(session_id, line) for session_id, line in of_session if zlib.crc32(session_id.encode()) % each == 0]
            kept |= {session_id for session_id, _ in some}
            lines = [line for _, line in some]
        (inbox / name).write_bytes(b"".join(lines))
    return len(kept)


def files_read(out: Path) -> list[str]:
    with Store.published(out / "warehouse.duckdb") as store:
        return sorted("/".join(Path(path).parts[-2:]) for path in store.read("select path from raw.files")["path"])


def test_the_definitions_load() -> None:
    Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    tables = {key_of(table) for stage in STAGES for table in stage.table_names}
    assert tables | {AssetKey("report"), RELEASE, LIVE_SOURCES} == set(graph.get_all_asset_keys())
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.freshness_policy_or_from_metadata is not None
        assert node.partitions_def == days and node.group_name and node.backfill_policy is not None
        assert node.backfill_policy.max_partitions_per_run is None, "a backfill is one run"
    assert {each.name for each in (*RULES, *WARNINGS, *GATES)} | {CHECK} == {key.name for key in graph.asset_check_keys}


def test_every_writing_step_takes_the_writers_pool() -> None:
    assert {found.op.pool for found in [*assets, *checks]} == {"warehouse_writer"}
    told = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    assert told["concurrency"]["pools"] == {"granularity": "op", "default_limit": 1}
    assert told["telemetry"] == {"enabled": False}


def test_every_table_is_an_asset() -> None:
    sql = (ROOT / "warehouse/schema.sql").read_text()
    made = {line.split("exists ")[1].split(" ")[0] for line in sql.splitlines() if line.startswith("create table")}
    ours = {"raw.schema_version", "raw.stages", "raw.partitions", "raw.audits", "raw.cache"}
    assert made - ours == {table for stage in STAGES for table in stage.table_names}


@pytest.mark.slow
def test_a_backfill_of_fourteen_days_is_one_run(home: Path, instance: DagsterInstance, data: Path) -> None:
    desk = data / "retail_desk"
    names = [str(path.relative_to(desk)) for kind in ("logs", "feedback", "cdc") for path in sorted((desk / kind).iterdir())]
    n = copied(data, home / "inbox", "tools.json", *names, each=8)
    assert backfill(instance, "2026-03-02", "2026-03-15").success
    with Store.published(home / "out" / "warehouse.duckdb") as store:
        assert store.count("core.sessions") == n > 150
        assert store.read("select count(distinct day) from core.sessions").item() == 14
    done = instance.get_materialized_partitions(AssetKey(["core", "sessions"]))
    assert done == {f"2026-03-{n:02}" for n in range(2, 16)}
    assert instance.get_runs_count() == 1


@pytest.mark.slow
def test_days_one_by_one_and_late_files_give_what_all_at_once_gives(
    home: Path, instance: DagsterInstance, data: Path, tmp_path: Path
) -> None:
    both = ("logs/2026-03-02.jsonl", "logs/2026-03-03.jsonl")
    copied(data, home / "inbox", *both, "feedback/2026-03-03.csv", each=4)
    assert day(instance, "2026-03-02").success
    assert files_read(home / "out") == ["logs/2026-03-02.jsonl"], "the third of March is not taken on the second"
    assert day(instance, "2026-03-03").success
    copied(data, home / "inbox", "feedback/2026-03-02.csv", each=4)  # late, for an old day
    result = day(instance, "2026-03-03")
    assert result.success
    assert "feedback/2026-03-02.csv" in files_read(home / "out")
    one_by_one = tables(home / "out")
    shutil.rmtree(home / "out")
    assert backfill(instance, "2026-03-02", "2026-03-03").success
    assert same(one_by_one, tables(home / "out")) == []
    assert one_by_one["core.sessions"].height > 50


@pytest.mark.xdist_group("a day in dagster")
def test_an_asset_shows_counts_funnel_and_rows(nightly: Nightly) -> None:
    events = nightly.result.get_asset_materialization_events()
    shown = {event.asset_key: event.materialization.metadata for event in events}
    sessions = shown[AssetKey(["core", "sessions"])]
    assert sessions["dagster/row_count"].value == sessions["n_sessions"].value == 20
    assert sessions["sample"].value.count("\n") == 6, "a head, a rule and five rows"
    assert "assembled" in sessions["funnel"].value and sessions["computed"].value is True
    assert sessions["picture"].value.startswith("![sessions: 20 kept") and "data:image/svg+xml" in sessions["picture"].value
    assert {column.name for column in sessions["dagster/column_schema"].value.columns} >= {"session_id", "service"}
    with Store.published(nightly.machine / "out" / "warehouse.duckdb") as store:
        version = events[0].materialization.tags["dagster/data_version"]
        assert version == content_version(store, ".".join(events[0].asset_key.path)), "a version is of the content"
    found = {check.check_name: check.passed for check in nightly.result.get_asset_check_evaluations()}
    assert found == {rule.name: True for rule in (*RULES, *WARNINGS)}


@pytest.mark.parametrize(("harm", "rule"), [
    ("delete from raw.records where line = 3", "no_record_vanishes"),
    ("delete from core.sessions where session_id in (select min(session_id) from core.sessions)", "no_session_vanishes"),
    ("delete from mart.outcomes where session_id in (select min(session_id) from core.sessions)", "no_session_goes_unjudged"),
    ("delete from mart.decisions where stage = 'rewards'", "no_task_goes_without_rubric"),
    ("delete from mart.tasks where task_id in (select min(task_id) from mart.tasks)", "no_session_goes_without_task"),
    ("update core.turns set position = position + 1 where position > 3", "positions_have_no_gaps"),
    ("delete from core.turns where position > 3", "no_turn_vanishes"),
    ("delete from core.turns where session_id in (select min(session_id) from core.sessions)", "no_turn_vanishes"),
    ("delete from mart.goals where session_id in (select min(session_id) from core.sessions)", "no_session_goes_without_goal"),
    ("update mart.goals set session_id = 'nobody'", "session_id_of_goals_resolves"),
    ("update mart.behaviours set tool = 'nothing' where tool in (select min(tool) from mart.behaviours)",
      "tool_of_behaviours_resolves"),
    ("delete from mart.decisions where stage = 'verify'", "no_task_goes_untried"),
    ("update mart.rubrics set task_id = 'nobody'", "task_id_of_rubrics_resolves"),
    ("delete from mart.decisions where stage = 'variants'", "no_failure_goes_untried"),
    ("insert into raw.sides select session_ids[1], service, 's', 's', 'nowhere', 'component' from mart.tasks",
     "sealed_tasks_keep_their_side"),
    ("update mart.outcomes set probability = null", "good_sessions_are_judged"),
    ("update mart.decisions set kept = false where stage = 'verify'", "only_verified_tasks_are_published"),
    ("update mart.environments set n_tasks = n_tasks + 1", "only_verified_tasks_are_published"),
])
def test_a_check_finds_what_it_is_for(ran: Path, tmp_path: Path, harm: str, rule: str) -> None:
    shutil.copytree(ran, tmp_path / "out")
    with Store.open(tmp_path / "out" / "warehouse.duckdb") as store:
        assert broken(store) == []
        store.read(harm)
        assert rule in broken(store)


def test_the_schedule_asks_for_the_newest_day() -> None:
    repository = defs.get_repository_def()
    nightly = repository.get_schedule_def("nightly")
    asked = nightly.evaluate_tick(build_schedule_context(
        scheduled_execution_time=datetime(2026, 3, 4, 2, 30, tzinfo=UTC), repository_def=repository))
    assert [request.partition_key for request in asked.run_requests or []] == ["2026-03-04"]
    assert nightly.cron_schedule == "30 2 * * *"


def test_owners_and_tags_stand_on_every_asset_and_run() -> None:
    told = """
from datetime import UTC, datetime
from dagster import build_schedule_context
from pipelines.definitions import defs
from pipelines.dagster_assets.assets import run_tags
graph, repository = defs.resolve_asset_graph(), defs.get_repository_def()
asked = repository.get_schedule_def("nightly").evaluate_tick(build_schedule_context(
    scheduled_execution_time=datetime(2026, 3, 4, 2, 30, tzinfo=UTC), repository_def=repository))
print({tuple(sorted(graph.get(key).owners)) for key in graph.get_all_asset_keys()})
print([{name: value for name, value in request.tags.items() if not name.startswith("dagster/")}
       for request in asked.run_requests])
"""
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=False, cwd=ROOT,
        env=os.environ | {"TRACEROOM_OWNERS": "team:desk, ada@example.org", "TRACEROOM_RUN_TAGS": "cost=desk"})
    assert done.returncode == 0, done.stderr
    owners, tags = done.stdout.splitlines()
    assert owners == "{('ada@example.org', 'team:desk')}"
    assert tags == "[{'traceroom/asked_by': 'nightly', 'traceroom/owners': 'team:desk,ada@example.org', 'cost': 'desk'}]"


@pytest.mark.parametrize(("variable", "told", "asked", "says"), [
    ("TRACEROOM_FRESH_BY", "nonsense", made_by, "'nonsense' is no cron expression .*; give such as 0 6 "),
    ("TRACEROOM_FRESH_BY", "0 * * * *", made_by, ".* is no cron expression of an hour of the day"),
    ("TRACEROOM_NIGHTLY", "25:00", automation.night_time, r"invalid time '25:00' \(expected HH:MM\); give such as 02:30"),
    ("TRACEROOM_FIRST_DAY", "foo", daily, "'foo' is no day; write it as 2015-01-01"),
    ("TRACEROOM_OWNERS", "team:desk, desk", owners, "'desk' is neither .*; give such as team:desk,ada@example.org")])
def test_a_variable_that_dagster_cannot_take_is_named(
    variable: str, told: str, asked: Callable[[], object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, told)
    with pytest.raises(InputError, match=f"^{variable}: {says}"):
        asked()
    monkeypatch.setenv(variable, "")
    asked()


def test_the_night_begins_when_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = defs.get_repository_def().get_schedule_def("nightly")
    assert automation.night_time() == (2, 30) and schedule.cron_schedule == "30 2 * * *"
    monkeypatch.setenv("TRACEROOM_NIGHTLY", "23:05")
    assert automation.night_time() == (23, 5)


def test_every_table_has_a_description_and_every_column_of_it() -> None:
    specs = {spec.key.to_user_string(): spec for asset in assets for spec in asset.specs}
    turns = specs["core/turns"]
    assert turns.description is not None and turns.description.startswith("One step of a session")
    assert len({spec.description for spec in specs.values()}) == len(specs)
    columns = turns.metadata["dagster/column_schema"].columns
    assert {column.name: column.description for column in columns}["tool"] == "Name of the tool"


def evaluated(instance: DagsterInstance, cursor: str | None) -> SensorResult | SkipReason:
    context = build_sensor_context(instance=instance, cursor=cursor, repository_def=defs.get_repository_def())
    found = automation.inbox(context)
    assert isinstance(found, SensorResult | SkipReason)
    return found


def test_the_sensor_asks_once_for_new_content(home: Path, instance: DagsterInstance) -> None:
    assert isinstance(evaluated(instance, None), SensorResult)
    (home / "inbox" / "a.jsonl").write_text('{"a": 1}\n')
    for hidden in ("Truth", ".part"):
        (home / "inbox" / hidden).mkdir()
        (home / "inbox" / hidden / "secret.jsonl").write_text("{}\n")
    first = evaluated(instance, None)
    assert isinstance(first, SensorResult) and first.run_requests and first.cursor
    (request,) = first.run_requests
    assert isinstance(request, RunRequest) and request.partition_key == days.get_last_partition_key()
    assert "secret" not in first.cursor
    again = evaluated(instance, first.cursor)
    assert isinstance(again, SensorResult) and not again.run_requests
    (home / "inbox" / "a.jsonl").rename(home / "inbox" / "renamed.jsonl")
    renamed = evaluated(instance, again.cursor)
    assert isinstance(renamed, SensorResult) and not renamed.run_requests, "the same content under another name"
    (home / "inbox" / "b.jsonl").write_text('{"b": 1}\n')
    more = evaluated(instance, renamed.cursor)
    assert isinstance(more, SensorResult) and more.run_requests and more.run_requests[0].run_key != request.run_key


def test_a_missing_inbox_is_said_so(home: Path, instance: DagsterInstance) -> None:
    (home / "inbox").rmdir()
    found = evaluated(instance, None)
    assert isinstance(found, SkipReason) and "TRACEROOM_INBOX" in (found.skip_message or "")


@pytest.mark.xdist_group("a day in dagster")
def test_everything_dagster_keeps_is_under_one_ignored_folder(nightly: Nightly) -> None:
    assert {path.name for path in (nightly.machine / "home").iterdir()} == {"dagster.yaml", ".dagster"}
    assert list((nightly.machine / "elsewhere").iterdir()) == [], "it was started there"
    assert ".dagster/" in (ROOT / ".gitignore").read_text().splitlines()


def test_a_step_says_our_sentence_and_is_not_tried_again_for_nothing(home: Path, instance: DagsterInstance) -> None:
    (home / "out").mkdir()
    (home / "out" / "warehouse.duckdb").write_bytes(b"something else" * 999)
    (home / "inbox" / "a.jsonl").write_text("{}\n")
    result = materialize(
        assets, instance=instance, run_config=QUIET, resources={"settings": SettingsResource()},
        partition_key="2026-03-02", raise_on_error=False)
    assert not result.success
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    assert "move the file away, or choose another --out" in str(failed.event_specific_data)
    assert not [event for event in result.all_events if event.is_step_restarted or event.is_step_up_for_retry]


def failing(instance: DagsterInstance) -> tuple[ExecuteInProcessResult, str, int]:
    """Return a run that fails in its first step: what is said of it, and how often that was tried again."""
    result = materialize(
        assets, instance=instance, run_config=QUIET, resources={"settings": SettingsResource()},
        partition_key="2026-03-02", raise_on_error=False)
    assert not result.success
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    assert failed.step_key == "extract"
    return result, str(failed.event_specific_data), sum(event.is_step_restarted for event in result.all_events)


def test_a_fault_that_stays_is_not_tried_again(home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "blocked").write_text("a file where the folder of the results should be")
    monkeypatch.setenv("TRACEROOM_OUT", str(home / "blocked" / "out"))
    (home / "inbox" / "a.jsonl").write_text("{}\n")
    _, said, n_again = failing(instance)
    assert n_again == 0 and "does not pass by itself" in said
    assert "make room or give access, then run again" in said


def test_a_fault_that_may_pass_is_tried_again(
    home: Path, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TRACEROOM_INBOX", "s3://lamps/logs"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
                        ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_MAX_ATTEMPTS", "1"),
                        ("TRACEROOM_RETRY_SECONDS", "0,0")):
        monkeypatch.setenv(name, value)
    _, said, n_again = failing(instance)
    assert n_again == 0 and "may pass by itself, and did not" in said


@pytest.mark.xdist_group("a day in dagster")
def test_one_stage_alone_can_be_made_anew(nightly: Nightly) -> None:
    before = tables(nightly.machine / "out")
    result = materialize(
        assets, selection=[found for found in assets if found.op.name == "outcomes"], instance=nightly.instance,
        partition_key=days.get_last_partition_key(), run_config=QUIET, resources={"settings": SettingsResource()})
    made = [event.asset_key for event in result.get_asset_materialization_events()]
    assert sorted(key.path[-1] for key in made) == ["conditions", "outcomes", "signals"]  # what one stage writes
    assert same(before, tables(nightly.machine / "out")) == []
