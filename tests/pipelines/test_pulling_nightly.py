"""Live sources in the nightly run: pulled before extraction, and one that fails stops nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import AssetCheckSeverity, DagsterInstance, ExecuteInProcessResult, materialize
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from pipelines.dagster_assets.assets import LIVE_SOURCES, assets, days
from pipelines.dagster_assets.live_sources import live_sources
from pipelines.dagster_assets.settings_resource import SettingsResource
from tests.sources.replays import KEY, braintrust
from tests.sources.server import PlatformServer, serving
from warehouse.store import Store

EXTRACT = assets[0]
TODAY = days.get_last_partition_key() or ""


@pytest.fixture
def server() -> Iterator[PlatformServer]:
    with serving(braintrust().respond) as running:
        yield running


@pytest.fixture
def machine(server: PlatformServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a machine with a source that works, and one whose project is not there."""
    tables = [
        f'[[sources]]\nname = "{name}"\npaths = ["{tmp_path}/inbox/{name}"]\n\n[sources.pull]\nplatform = "braintrust"\n'
        f'url = "{server.url}"\nproject = "{project}"\n\n' for name, project in (("gone", "nowhere"), ("desk", "lantern"))]
    (tmp_path / "traceroom.toml").write_text("".join(tables), "utf-8")
    (tmp_path / "inbox").mkdir()
    for name, value in (("INBOX", "inbox"), ("OUT", "out"), ("CONFIG", "traceroom.toml")):
        monkeypatch.setenv(f"TRACEROOM_{name}", str(tmp_path / value))
    monkeypatch.setenv("BRAINTRUST_API_KEY", KEY)
    monkeypatch.setenv("TRACEROOM_PULL", "on")
    return tmp_path


def run(instance: DagsterInstance, key: str | None = TODAY, **tags: str) -> ExecuteInProcessResult:
    return materialize(
        [live_sources, EXTRACT], instance=instance, resources={"settings": SettingsResource()}, partition_key=key, tags=tags,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}})


def sessions_read(machine: Path) -> set[str]:
    with Store.open(machine / "out" / "warehouse.duckdb", write=False) as store:
        return set(store.read("select distinct session_id from core.events where session_id is not null")["session_id"])


def test_what_is_pulled_is_read_by_the_same_run_and_a_failing_source_is_a_warning(
    machine: Path, server: PlatformServer
) -> None:
    with DagsterInstance.ephemeral() as instance:
        done = run(instance)
        assert done.success, "a source that fails does not stop the night"
        (check,) = done.get_asset_check_evaluations()
        assert not check.passed and check.severity == AssetCheckSeverity.WARN and check.metadata["offenders"].value == 1
        (pulled,) = done.asset_materializations_for_node("live_sources")
        shown = str(pulled.metadata["sources"].value)
        assert "there is no project 'nowhere'" in shown and "braintrust" in shown and KEY not in shown
        assert pulled.metadata["n_failed"].value == 1 and int(str(pulled.metadata["n_records"].value)) > 0
        assert len(sessions_read(machine)) == 3
        files = sorted((machine / "inbox" / "desk").glob("*.jsonl"))
        days_tags = {ASSET_PARTITION_RANGE_START_TAG: "2026-03-01", ASSET_PARTITION_RANGE_END_TAG: "2026-03-03"}
        again = run(instance, None, **days_tags)
        assert again.success and sorted((machine / "inbox" / "desk").glob("*.jsonl")) == files, "a backfill pulls nothing twice"


@pytest.mark.parametrize(("setting", "tags", "state"), [
    ("off", {}, "off (TRACEROOM_PULL)"), ("", {}, "off (TRACEROOM_PULL)"),
    ("on", {"traceroom/asked_by": "inbox"}, "left to the nightly run")])
def test_nothing_is_pulled_where_it_is_off_or_the_inbox_asked(
    machine: Path, server: PlatformServer, monkeypatch: pytest.MonkeyPatch, setting: str, tags: dict[str, str], state: str
) -> None:
    monkeypatch.setenv("TRACEROOM_PULL", setting)
    with DagsterInstance.ephemeral() as instance:
        done = run(instance, **tags)
        assert done.success and done.get_asset_check_evaluations()[0].passed
        (pulled,) = done.asset_materializations_for_node("live_sources")
        assert pulled.asset_key == LIVE_SOURCES and pulled.metadata["state"].value == state
    assert not server.requests


def test_names_choose_sources_and_a_wrong_one_is_reported(
    machine: Path, server: PlatformServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEROOM_PULL", "desk, dsek")
    with DagsterInstance.ephemeral() as instance:
        done = run(instance)
        (pulled,) = done.asset_materializations_for_node("live_sources")
        shown = str(pulled.metadata["sources"].value)
        assert done.success and "names the source 'dsek'" in shown and "nowhere" not in shown
    assert len(sessions_read(machine)) == 3
