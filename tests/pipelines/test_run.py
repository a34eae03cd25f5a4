"""`traceroom run` as people run it: as a process, once, twice, at once, killed, on bad input."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.ingestion.listing import something_to_read
from pipelines.settings import Settings
from pipelines.stages import STAGES
from tests.command_line import ROOT, environ, process
from tests.pipelines.conftest import SAMPLE, Traceroom, files, part_of_sample, same, tables
from warehouse.store import Store

RUN = ("run", "--no-image", "--json")


@pytest.fixture
def first(run_once: tuple[Path, str], tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Return a finished run over `logs`: a folder of one's own, and what it printed."""
    folder, printed = run_once
    out = tmp_path / "out"
    shutil.copytree(folder, out)  # with the times of change, by which a published copy is known to be the newest
    return out, json.loads(printed.replace(str(folder), str(out)))


def test_a_run_says_what_it_made(first: tuple[Path, dict[str, Any]], traceroom: Traceroom) -> None:
    out, made = first
    assert made["n_sessions"] == 20
    assert made["n_tasks"] >= 3
    stages = {stage["stage"]: stage for stage in made["stages"]}
    assert list(stages) == [stage.name for stage in STAGES]
    assert all(stage["computed"] and stage["seconds"] > 0 for stage in stages.values())
    assert made["checks_failed"] == []
    for environment in made["environments"]:
        assert json.loads((Path(environment["path"]) / "manifest.json").read_text())["n_tasks"] == environment["n_tasks"]
        assert (Path(environment["rewards"]) / "rubrics.jsonl").is_file()
        assert environment["image_skip_reason"] == "--no-image was given"
    assert made["left"] == json.loads(json.dumps([
        {"stage": row["stage"], "reason": row["reason"], "n": row["n"]}
        for row in json.loads(traceroom("show", "--out", out, "--json").stdout) if not row["kept"]]))


def test_a_second_run_adds_nothing(first: tuple[Path, dict[str, Any]], logs: Path, traceroom: Traceroom) -> None:
    out, made = first
    before, written = tables(out), files(out)
    done = traceroom(*RUN, logs, "--out", out)
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert {stage["stage"] for stage in again["stages"] if stage["computed"]} <= {"extract", "funnel"}
    assert same(before, tables(out)) == []
    assert written == files(out)
    assert {name: again[name] for name in made if name not in ("seconds", "stages")} == {
        name: made[name] for name in made if name not in ("seconds", "stages")}


@pytest.mark.slow
def test_the_same_logs_make_the_same_bytes_anywhere(first: tuple[Path, dict[str, Any]], logs: Path, tmp_path: Path) -> None:
    out, _ = first
    elsewhere = tmp_path / "else where"
    logs.rename(tmp_path / "moved")
    done = process(*RUN, tmp_path / "moved", "--out", elsewhere, TZ="America/New_York", PYTHONHASHSEED="7")
    assert done.returncode == 0, done.stderr
    assert same(tables(out), tables(elsewhere)) == []
    assert files(out) == files(elsewhere)


def test_other_logs_are_added(
    first: tuple[Path, dict[str, Any]], logs: Path, tmp_path: Path, traceroom: Traceroom
) -> None:
    out, _ = first
    more = tmp_path / "more.jsonl"
    sample = next((ROOT / "tests/logs/airline/logs").glob("*.jsonl")).read_text("utf-8").splitlines(keepends=True)
    more.write_text("".join(sample[15:30]), "utf-8")
    done = traceroom(*RUN, more, "--out", out)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_sessions"] == 30
    left = {(row["reason"], row["n"]) for row in json.loads(done.stdout)["left"] if row["stage"] == "extract"}
    assert ("duplicate_record", 5) in left, "five of them had been read before: kept once, and said"


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT, env=environ())


@pytest.mark.slow
def test_two_runs_at_once_wait_for_each_other_and_lose_nothing(logs: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    file = next((logs / "logs").glob("*.jsonl"))
    lines = file.read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_text("".join(lines[:10]), "utf-8")
    (tmp_path / "b.jsonl").write_text("".join(lines[10:]), "utf-8")
    both, alone = tmp_path / "both", tmp_path / "alone"
    first = start(*RUN, tmp_path / "a.jsonl", "--out", both)
    until(lambda: first.poll() is not None or (both / "warehouse.duckdb.holder.json").exists())
    first.send_signal(signal.SIGSTOP)
    second = start(*RUN, tmp_path / "b.jsonl", "--out", both)
    assert second.stderr and any("Waiting for a run over" in line for line in second.stderr)
    first.send_signal(signal.SIGCONT)
    said = [run.communicate() for run in (first, second)]
    assert [run.returncode for run in (first, second)] == [0, 0], said
    assert "Waiting" not in said[0][1]
    assert traceroom(*RUN, tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--out", alone).returncode == 0
    assert same(tables(both), tables(alone)) == []
    assert files(both) == files(alone)


def until(holds: Callable[[], bool]) -> None:
    """Wait; what never comes is ended by the time that a test may take."""
    while not holds():
        time.sleep(0.01)


def kill_and_resume(
    logs: Path, out: Path, stage: str, delay_s: float, traceroom: Traceroom, by: signal.Signals = signal.SIGKILL
) -> subprocess.CompletedProcess[str]:
    """Kill a run some time after it said that a stage is done, then run again; gives how the first one ended. A run that ends
    before it is killed, as this process had to wait, is begun anew."""
    for _ in range(5):
        run = start(*RUN, logs, "--out", out)
        assert run.stderr is not None
        for line in run.stderr:
            if line.startswith(f"{stage}:"):
                break
        time.sleep(delay_s)
        run.send_signal(by)
        _, errors = run.communicate()
        if run.returncode:
            break
        shutil.rmtree(out)
        delay_s /= 2
    done = traceroom(*RUN, logs, "--out", out)
    assert done.returncode == 0, done.stderr
    return subprocess.CompletedProcess(run.args, run.returncode, "", errors)


@pytest.mark.slow
def test_a_killed_run_goes_on(first: tuple[Path, dict[str, Any]], logs: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    out, _ = first
    resumed = tmp_path / "resumed"
    assert kill_and_resume(logs, resumed, "sessions", 0.0, traceroom).returncode == -signal.SIGKILL
    assert same(tables(out), tables(resumed)) == []
    assert files(out) == files(resumed)
    assert not list(resumed.glob(".drafts")) and not list(resumed.glob("*.draft"))


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "delay_s"), [("extract", 0.0), ("world", 0.2), ("rewards", 0.1)])
def test_a_run_stopped_by_hand_says_so_and_goes_on(
    stage: str, delay_s: float, first: tuple[Path, dict[str, Any]], logs: Path, tmp_path: Path, traceroom: Traceroom
) -> None:
    out, _ = first
    resumed = tmp_path / "resumed"
    done = kill_and_resume(logs, resumed, stage, delay_s, traceroom, signal.SIGINT)
    assert done.returncode == 130 and done.stderr.endswith("run the same command again to continue.\n"), done.stderr
    assert "Stopped." in done.stderr and "Traceback" not in done.stderr
    assert files(out) == files(resumed) and same(tables(out), tables(resumed)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_run_killed_anywhere_goes_on(
    first: tuple[Path, dict[str, Any]], logs: Path, tmp_path: Path, traceroom: Traceroom, seed: int
) -> None:
    out, _ = first
    choose = random.Random(seed)
    stage = choose.choice([stage.name for stage in STAGES])
    kill_and_resume(logs, tmp_path / "resumed", stage, choose.uniform(0, 0.5), traceroom)
    assert same(tables(out), tables(tmp_path / "resumed")) == []
    assert files(out) == files(tmp_path / "resumed")


@pytest.mark.slow
def test_show_works_during_a_run(
    first: tuple[Path, dict[str, Any]], logs: Path, tmp_path: Path, traceroom: Traceroom
) -> None:
    out, _ = first
    file = next((logs / "logs").glob("*.jsonl"))
    file.write_text(file.read_text("utf-8").splitlines(keepends=True)[0], "utf-8")
    before = traceroom("show", "--out", out, "--json").stdout
    run = start(*RUN, logs, "--out", out)
    until(lambda: run.poll() is not None or (out / "warehouse.duckdb.holder.json").exists())
    shown = traceroom("show", "--out", out, "--json")
    assert shown.returncode == 0 and json.loads(shown.stdout) in (
        json.loads(before), json.loads(traceroom("show", "--out", out, "--json").stdout))
    assert run.communicate(timeout=300) and run.returncode == 0


def test_a_bad_line_is_named_and_the_rest_goes_on(tmp_path: Path, traceroom: Traceroom) -> None:
    logs = part_of_sample(tmp_path / "logs", 6)
    file = next((logs / "logs").glob("*.jsonl"))
    lines = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text("".join([*lines[:4], '{"session_id": "broken", "messages": [\n', *lines[4:]]), "utf-8")
    (logs / "logs" / "noise.bin").write_bytes(bytes(range(256)) * 9)
    done = traceroom(*RUN, logs, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_sessions"] == 6
    left = json.loads(traceroom("show", "--rejected", "--out", tmp_path / "out", "--json").stdout)
    (bad,) = [row for row in left if row["reason"] == "unreadable_record"]
    assert bad["file"] == str(file) and bad["line"] == 5 and f"{file.name}, line 5" in bad["detail"]
    assert f"{file.name}, line 5" in done.stderr, "said at once, on stderr"
    assert [row["stage"] for row in left if "noise.bin" in row["detail"]] == ["extract"]


@pytest.mark.parametrize(("arguments", "says"), [
    (("nowhere.jsonl",), r"nowhere.jsonl: there is no such file or folder; give the path of your logs."),
    (("LOGS", "--config", "none.toml"), "none.toml: there is no such file; give --config the path of a TOML file."),
    (("LOGS", "--include", "nothing_here"), "there is nothing to read"),
    (("LOGS", "--out", "LOGS/tools.json"), "tools.json: this is a file; give --out a folder."),
])
def test_what_cannot_run_says_so_in_one_sentence(
    logs: Path, tmp_path: Path, traceroom: Traceroom, arguments: tuple[str, ...], says: str
) -> None:
    given = [argument.replace("LOGS", str(logs)) for argument in arguments]
    done = traceroom("run", *(() if "--out" in given else ("--out", str(tmp_path / "out"))), *given)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("✗") == 1


def test_a_folder_that_is_not_there_to_leave_out_is_named(logs: Path, tmp_path: Path) -> None:
    def unmatched(*without: str, only: tuple[str, ...] = ()) -> list[str]:
        return something_to_read(Settings(logs=(str(logs),), out=str(tmp_path), without=without, only=only))

    assert unmatched("feedback") == unmatched() == unmatched(only=("logs",)) == []
    assert unmatched("feedbak", "feedback", only=("logs", "log")) == ["--include log", "--exclude feedbak"]


def test_an_out_that_cannot_be_made_is_said_in_one_sentence(logs: Path, traceroom: Traceroom) -> None:
    done = traceroom(*RUN, logs, "--out", "/dev/null")
    assert done.returncode == 2 and done.stderr == "✗ /dev/null: this is a file; give --out a folder.\n"
    assert "Traceback" not in done.stderr and "mistake" not in done.stderr


def test_the_configuration_is_obeyed(logs: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    """Its paths are what is read where no logs are named; its services and how they begin; its gates."""
    told = tmp_path / "told.toml"
    told.write_text(
        '[[sources]]\npaths = ["logs"]\nservice = "The Desk"\nstarts_from = "shared"\n[gates]\nmin_probability = 0.9\n')
    done = traceroom(*RUN, "--config", told, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_sessions"] == 20
    with Store.published(tmp_path / "out" / "warehouse.duckdb") as store:
        assert store.read("select distinct service from core.turns")["service"].to_list() == ["The Desk"]
        assert store.read("select service, starts_from, votes from mart.services").rows() == [("The Desk", "shared", "{}")]
        good = store.read("select distinct unnest(succeeded_session_ids) as session_id from mart.tasks")["session_id"].to_list()
        certain = store.read("select session_id from mart.outcomes where probability >= 0.9")["session_id"].to_list()
        assert sorted(good) == sorted(certain) and 0 < len(good) < 20


@pytest.mark.slow
def test_an_instance_of_ones_own_is_kept_in_its_home(
    logs: Path, tmp_path: Path, traceroom: Traceroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the run is started: a relative base_dir lies below DAGSTER_HOME."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    shutil.copy(ROOT / "dagster.yaml", home)
    monkeypatch.chdir(elsewhere)
    done = traceroom(*RUN, logs, "--out", tmp_path / "out", DAGSTER_HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in home.iterdir()} == {"dagster.yaml", ".dagster"}
    assert list(elsewhere.iterdir()) == []


def test_a_truth_folder_is_never_opened(tmp_path: Path, traceroom: Traceroom) -> None:
    logs = part_of_sample(tmp_path / "logs", 6)
    (logs / "truth").mkdir()
    os.mkfifo(logs / "truth" / "sessions.jsonl")  # who opens it waits for ever
    done = traceroom(*RUN, logs, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    with Store.published(tmp_path / "out" / "warehouse.duckdb") as store:
        assert store.count("core.sessions") == 6
        assert store.read("select count(*) from raw.files where path like '%/truth/%'").item() == 0


def test_what_was_deleted_is_made_again(ran: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    out = tmp_path / "out"
    shutil.copytree(ran, out)
    written = files(out)
    for harmed in ("environments", "datasets", "unverified"):
        shutil.rmtree(out / harmed)
    min((out / "rewards").glob("*/rewards.json")).unlink()
    done = traceroom(*RUN, SAMPLE, "--out", out)
    assert done.returncode == 0, done.stderr
    assert {stage["stage"] for stage in json.loads(done.stdout)["stages"] if stage["computed"]} == {
        "extract", "environments", "datasets", "funnel"}
    assert files(out) == written and any(name.endswith("manifest.json") for name in written)
