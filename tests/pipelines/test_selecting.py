"""What a run builds from where somebody chose, and what it says it would do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from pipelines.building.sessions import since
from pipelines.quality.rules import broken
from tests.pipelines.conftest import Traceroom, part_of_sample
from warehouse.errors import InputError
from warehouse.store import Store


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom
) -> None:
    logs, out = part_of_sample(tmp_path / "logs"), Path(shutil.copytree(run_once[0], tmp_path / "out"))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}

    def planned(*arguments: str | Path) -> dict[str, object]:
        done = traceroom("run", *arguments, "--no-image", "--dry-run", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    nowhere = planned(logs, "--out", tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    assert {stage["would"] for stage in nowhere["stages"]} == {"compute"} and nowhere["files"]["new"] > 0  # type: ignore[attr-defined,index]
    same = {stage["stage"]: stage["would"] for stage in planned(run_once[0].parent / "logs", "--out", out)["stages"]}  # type: ignore[attr-defined]
    assert same.pop("extract") == same.pop("funnel") == "look" and set(same.values()) == {"keep"}
    fewer = {stage["stage"]: stage for stage in planned(logs, "--out", out, "--limit", "3")["stages"]}  # type: ignore[attr-defined]
    assert fewer["sessions"]["would"] == "compute" and fewer["tasks"]["would"] == "check"
    assert "sessions comes before it" in fewer["tasks"]["why"] and fewer["sessions"]["why"] == "what was configured changed"
    assert [name for name, stage in fewer.items() if stage["would"] == "keep"] == [], "what stands on sessions is looked at"
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("*")}, "nothing was written"
    shutil.rmtree(out / "datasets")
    gone = {stage["stage"]: stage for stage in planned(run_once[0].parent / "logs", "--out", out)["stages"]}  # type: ignore[attr-defined]
    assert gone["environments"]["would"] == "keep" and gone["datasets"]["why"] == "what it wrote is gone"


def test_a_choice_that_cannot_be_is_refused(logs: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    for day in ("yesterday", "20260331", "2026-02-30"):
        refused = traceroom("run", logs, "--out", tmp_path / "out", "--since", day)
        assert refused.returncode == 2 and "write it as 2026-03-31" in refused.stderr


def test_a_day_that_all_sessions_are_older_than_is_refused(
    run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom
) -> None:
    out = Path(shutil.copytree(run_once[0], tmp_path / "out"))
    refused = traceroom("run", run_once[0].parent / "logs", "--out", out, "--no-image", "--since", "2130-01-01")
    says = "--since 2130-01-01: there is no session since that day: the log says of none when it was; leave it out."
    assert refused.returncode == 2 and says in refused.stderr, refused.stderr
    with Store.published(out / "warehouse.duckdb") as store:
        assert store.count("core.sessions") == 20, "what was built before stands"
    sessions = pl.DataFrame({"session_id": ["a", "b", "c"], "day": ["2026-03-02", "2026-03-03", None]})
    with pytest.raises(InputError, match="the newest is of 2026-03-03; give an earlier day, or leave it out"):
        since(sessions, "2026-03-04")
    assert since(sessions, "2026-03-03")["session_id"].to_list() == ["b"]
    assert since(sessions.clear(), "2026-03-04").is_empty(), "where nothing was read, the day is not why"


@pytest.mark.slow
def test_a_run_builds_from_what_is_chosen_and_says_what_it_left(logs: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    out = tmp_path / "out"
    done = traceroom("run", logs, "--out", out, "--no-image", "--limit", "6", "--release")
    assert done.returncode == 0 and "is promoted" in done.stderr, done.stderr
    with Store.published(out / "warehouse.duckdb") as store:
        assert store.count("core.sessions") == 6 and broken(store) == []
        left = store.read("select count(*) as n, any_value(detail) as says from mart.decisions where reason = 'not_selected'")
        assert left.row(0) == (14, "The run was told --limit 6; run without it to build from all.")
        told, called = (store.read(f"select sum({n})::bigint from {table}").item() for n, table in (
            ("n_calls", "core.tools"), ("(kind = 'call')::integer", "core.turns")))
        assert told == called > 0, "calls are counted of the sessions that are chosen"
        newest = store.read("select min(started_at) from core.sessions").item()
        assert store.read(
            "select count(distinct session_id) from core.events where session_id in (select subject from mart.decisions "
            "where reason = 'not_selected') group by session_id having min(happened_at) > $newest", newest=newest).is_empty()
    missing = traceroom("run", logs, "--out", out, "--no-image", "--service", "nobody")
    assert missing.returncode == 2 and "no service 'nobody'; there are: " in missing.stderr
    assert traceroom("run", logs, "--out", out, "--no-image").returncode == 0
    with Store.published(out / "warehouse.duckdb") as store:
        assert store.count("core.sessions") == 20, "the rest was there all the time"
