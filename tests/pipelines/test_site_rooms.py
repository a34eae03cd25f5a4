"""The stage `site_rooms`: an environment of a web site, its files and its chat, from logs in their own formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.browser_by_heart import CLICKERS, PERTURBATIONS, Reader, known_clicks, reward_of
from env_builder import Environment
from env_builder.runtime.canonical import digest
from pipelines.inspection.summary import summary
from pipelines.running.run import run
from pipelines.settings import Settings
from tests.env_builder.site.cards import HOST, CardSite, Recorder
from warehouse.store import Store

NAME = "site-cards-example"


def record() -> Recorder:
    """Let people comment on cards and file sheets, most as they are asked to."""
    recorder = Recorder(CardSite())
    for number in range(101, 107):
        recorder.sit_down("ivo" if number % 2 else "rut", f"please comment on card {number}: lens {number} is dull")
        recorder.change(number, "comment", text=f"lens {number} is dull")
        recorder.sit_down("ivo", f"file the sheets of January 2026 and list them, card {number}")
        recorder.ask("GET", f"/cards/?title={recorder.site.cards[number]['title']}")
        recorder.ask("GET", f"/cards/{number}/")
        recorder.ask("GET", f"/cards/{number}/sheet")
        recorder.move(f"sheet-{number}.pdf", f"/srv/2026-01/{number}.pdf")
        recorder.say(f"Filed in 2026-01: {number}.pdf")
    recorder.sit_down("rut", "please comment on card 103: lens 103 is gone")
    recorder.change(104, "comment", text="lens 103 is gone")
    return recorder


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    recorder = record()
    recorder.write_logs(folder / "logs")
    write_server_log(folder / "logs" / "access.log", recorder)
    run(Settings(logs=(str(folder / "logs"),), out=str(folder / "out"), image=False))
    return folder / "out"


def write_server_log(file: Path, recorder: Recorder) -> None:
    """Write what the server logged: all that was recorded, and a form of somebody whose pages were not."""
    lines = [(event["happened_at"], event["tool"], json.loads(event["value"])["status"]) for event in recorder.events]
    lines.append((lines[-1][0], "POST /cards/999/", 302))
    file.write_text("".join(f'10.0.0.1 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "{tool} HTTP/1.1" {status} 10 "-" "Mozilla"\n'
                            for at, tool, status in lines))


def test_a_form_that_the_server_alone_logged_is_known_to_the_environment(out: Path) -> None:
    [evidence] = [json.loads(file.read_text("utf-8")) for file in (out / "environments" / NAME).rglob("evidence.json")]
    versions, unseen = evidence
    assert versions == [] and [path for _, path in unseen] == ["/cards/999/"]


def steps(out: Path, task_id: str) -> list[dict[str, object]]:
    rows = map(json.loads, (out / "rewards" / NAME / "solutions.jsonl").read_text().splitlines())
    return next(row["steps"] for row in rows if row["task_id"] == task_id)


def test_work_that_was_right_becomes_tasks(out: Path) -> None:
    with Store.published(out / "warehouse.duckdb") as store:
        work = store.table("mart.site_work").to_dicts()
        assert {row["host"] for row in store.table("mart.site_rooms").to_dicts()} == {HOST}
        assert store.count("core.sessions where format = 'har'") == 0, "pages and forms are no calls of tools"
    wrong = [row for row in work if row["is_right"] is False]
    assert len(work) == 13 and len([row for row in work if row["task_id"]]) == 12 and len(wrong) == 1
    assert "lens 103 is gone" in wrong[0]["ask"] and wrong[0]["task_id"] is None


def test_the_summary_counts_the_tasks_of_sites(out: Path) -> None:
    shown, n_tasks = summary(Settings(logs=(), out=str(out))), len(Environment.load(out / "environments" / NAME).tasks)
    assert n_tasks >= 12 and shown["statement"].startswith(f"{n_tasks} tasks of web sites are published")
    assert [(room["environment"], room["n_tasks"]) for room in shown["rooms"]] == [(NAME, n_tasks)]


def test_the_known_solution_is_paid_and_another_end_is_not(out: Path) -> None:
    environment = Environment.load(out / "environments" / NAME)
    tasks = {task.goal.splitlines()[0]: task for task in environment.tasks}
    task = tasks["please comment on card 101: lens 101 is dull"]
    for wanted, changed in ((1.0, None), (0.0, "lens 101 is fine")):
        environment.reset(task.task_id)
        for step in steps(out, task.task_id):
            arguments = dict(step["arguments"])  # type: ignore[call-overload]
            if changed is not None and "text" in arguments and "lens" in arguments["text"]:
                arguments["text"] = changed
            environment.call(str(step["tool"]), arguments)
        environment.finish()
        assert environment.grade().reward == wanted
        assert environment.grade_journal(task.task_id, environment.journal).reward == wanted


def test_filed_sheets_need_their_lineage_and_the_list(out: Path) -> None:
    environment = Environment.load(out / "environments" / NAME)
    task = next(task for task in environment.tasks if "card 102" in task.goal and "file the sheets" in task.goal)
    known = steps(out, task.task_id)
    for without, wanted in ((None, 1.0), ("chat_post", 0.0), ("files_move", 0.0)):
        environment.reset(task.task_id)
        for step in known:
            if step["tool"] != without:
                environment.call(str(step["tool"]), step["arguments"])  # type: ignore[arg-type]
        environment.finish()
        assert environment.grade().reward == wanted, without


def test_variants_pay_who_looks_and_not_who_trusts_names(out: Path) -> None:
    environment = Environment.load(out / "environments" / NAME)
    variants = [task for task in environment.tasks if task.derived_from is not None]
    by_kind = {kind: [task for task in variants if task.task_id == digest(f"{kind} of {task.derived_from}")]
               for kind in ("stale_file", "reissued")}
    assert all(by_kind.values()) and len(variants) == sum(map(len, by_kind.values()))
    for kind, tasks in by_kind.items():
        for task in tasks:
            assert task.derived_from is not None
            own, recorded = steps(out, task.task_id), steps(out, task.derived_from)
            trusting = [step for step in recorded if step["tool"] != "files_move" or kind != "stale_file"]
            for played, wanted in ((own, 1.0), (recorded, 0.0), (trusting, 0.0)):
                environment.reset(task.task_id)
                for step in played:
                    environment.call(str(step["tool"]), step["arguments"])
                environment.finish()
                assert environment.grade().reward == wanted, (kind, task.goal)
    files = {task.task_id: paths(environment, task.task_id) for task in environment.tasks}
    for task in variants:
        assert task.derived_from is not None
        assert files[task.task_id] > files[task.derived_from], "what lies there lies there for the variant alone"


def paths(environment: Environment, task_id: str) -> set[str]:
    environment.reset(task_id)
    return {row["path"] for row in json.loads(environment.call("files_list", {}).content)}


@pytest.mark.parametrize("origin", [f"https://{HOST}", f"http://{HOST}:8080"])
def test_goals_state_what_was_done_if_logs_have_no_chat(origin: str, tmp_path: Path) -> None:
    recorder = Recorder(CardSite())
    for number in range(101, 107):
        recorder.sit_down("ivo")
        recorder.change(number, "edit", title=f"Torch {number}", level="high")
    recorder.sit_down("rut")
    recorder.change(102, "comment", text="only once done by anybody")
    recorder.write_logs(tmp_path / "logs", origin)
    run(Settings(logs=(str(tmp_path / "logs" / "har"),), out=str(tmp_path / "out"), image=False))
    environment = Environment.load(tmp_path / "out" / "environments" / NAME)
    goals = sorted(task.goal.splitlines()[0] for task in environment.tasks)
    assert len(goals) == 6, "work that one session alone did is of no kind"
    assert all(f"The site is {origin}." in task.goal for task in environment.tasks)
    assert goals[0] == "On “Lamp 1111” (/cards/101/) set Title to “Torch 101”, Level to “high” and press “Save”."
    for task in environment.tasks:
        environment.reset(task.task_id)
        for step in steps(tmp_path / "out", task.task_id):
            environment.call(str(step["tool"]), step["arguments"])  # type: ignore[arg-type]
        environment.finish()
        assert environment.grade().reward == 1.0


def test_what_was_learnt_by_heart_fails_after_a_reset_and_whoever_reads_succeeds(out: Path) -> None:
    environment = Environment.load(out / "environments" / NAME)
    for task in environment.tasks[:4]:
        clicks = known_clicks(environment, task.task_id, steps(out, task.task_id))
        for seed in (1, 2, 3):
            assert reward_of(environment, task.task_id, clicks, Reader(), seed) == 1.0, task.goal
            perturbed = environment.grade_journal(task.task_id, environment.journal, seed, PERTURBATIONS)
            assert perturbed.reward == 1.0, "the grader reaches the same end"
            for name, choose in CLICKERS.items():
                assert reward_of(environment, task.task_id, clicks, choose, seed) != 1.0, (name, task.goal)
        for choose in CLICKERS.values():
            assert reward_of(environment, task.task_id, clicks, choose, 1, ()) == 1.0, "without a randomised reset it is enough"


@pytest.mark.parametrize("perturbations", [("shuffled",), ("rebound", "shuffled"), ("fresh",)])
def test_known_solutions_are_carried_into_the_pages_of_an_episode(out: Path, perturbations: tuple[str, ...]) -> None:
    environment = Environment.load(out / "environments" / NAME)
    for task in environment.tasks[:4]:
        environment.reset(task.task_id, seed=5, perturbations=perturbations)
        for step in steps(out, task.task_id):
            environment.call(str(step["tool"]), environment.carried(step["arguments"]))
        environment.finish()
        assert environment.grade().reward == 1.0, task.goal


def test_pages_addresses_files_and_goal_change_together(out: Path) -> None:
    environment = Environment.load(out / "environments" / NAME)
    task = next(task for task in environment.tasks if "card 102" in task.goal and "file the sheets" in task.goal)
    goal = environment.reset(task.task_id, seed=1, perturbations=("rebound",)).messages[0]["content"]
    number, folder = environment.carried("102"), environment.carried("2026-01")
    assert number != "102" and f"card {number}" in goal and f"srv/{folder}," in goal
    for step in steps(out, task.task_id):
        content = environment.call(str(step["tool"]), environment.carried(step["arguments"])).content
        assert "102" not in content.split("### Snapshot")[0], "neither in addresses nor in names of files"
    environment.finish()
    assert environment.grade().reward == 1.0
    assert any("102" in json.dumps(row) for row in environment.journal), "the journal has the environment's own names"


def test_nothing_that_was_typed_as_a_password_is_stored(out: Path) -> None:
    for path in out.rglob("*"):
        assert not path.is_file() or b"sesame" not in path.read_bytes(), path
