"""The command line: help, looking, playing, proving, exporting; talk on stderr, data on stdout, one sentence an error."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime import Environment
from pipelines.inspection.summary import ORDER
from pipelines.playing import typed
from tests.command_line import ROOT, called, environ
from tests.pipelines.conftest import Traceroom
from warehouse.errors import Missing

COMMANDS = ("run", "show", "tasks", "play", "grade", "verify", "serve", "export", "base-image")


@pytest.fixture
def environment(ran: Path) -> Path:
    """Return an environment of the sample."""
    return min((ran / "environments").iterdir())


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_help_names_every_command_and_loads_nothing_heavy(traceroom: Traceroom) -> None:
    done = traceroom("--help")
    assert done.returncode == 0
    assert all(f" {command} " in done.stdout for command in COMMANDS)
    code = ("import sys; sys.argv = ['traceroom', '--help']\n"
            "from pipelines.cli import main\n"
            "try: main()\n"
            "finally: print([name for name in ('dagster', 'duckdb', 'polars', 'docker', 'mcp') if name in sys.modules])")
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=environ())
    assert loaded.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(traceroom: Traceroom, command: str) -> None:
    done = traceroom(command, "--help")
    assert done.returncode == 0 and f"traceroom {command}" in done.stdout.replace("python -m pipelines", "traceroom")
    assert "NotImplemented" not in done.stdout + done.stderr


def test_former_names_of_commands_and_options_work_and_are_hidden(traceroom: Traceroom, ran: Path) -> None:
    present, former = (traceroom("show", option, "--json", "--out", ran) for option in ("--rejected", "--left"))
    assert present.returncode == former.returncode == 0 and present.stdout == former.stdout
    assert "--left" not in traceroom("show", "--help").stdout
    present, former = (traceroom(command, "--json", "--out", ran) for command in ("coverage", "unknowns"))
    assert present.returncode == former.returncode == 0 and present.stdout == former.stdout
    assert "unknowns" not in traceroom("--help").stdout


def test_an_unknown_option_is_no_traceback(traceroom: Traceroom) -> None:
    done = traceroom("run", "--inclde", "logs")
    assert done.returncode == 2 and "--include" in done.stderr and "Traceback" not in done.stderr


def test_the_version_is_told(traceroom: Traceroom) -> None:
    done = traceroom("--version")
    assert done.returncode == 0 and re.fullmatch(r"traceroom \d+\.\d+\.\d+\n", done.stdout)


@pytest.mark.parametrize("command", ["serve", "ui"])
def test_a_port_that_does_not_exist_is_no_traceback(traceroom: Traceroom, environment: Path, command: str) -> None:
    done = traceroom(command, *([environment] if command == "serve" else []), "--port", "99999")
    assert done.returncode == 2 and "65535" in done.stderr and "Traceback" not in done.stderr


def test_errors_are_documents_where_a_document_is_asked_for(traceroom: Traceroom, tmp_path: Path) -> None:
    done = traceroom("tasks", tmp_path / "nothing", "--json")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == error["exit_code"] == 2
    assert "nothing" in error["what"] and error["hint"] in done.stderr


def test_doctor_says_what_is_missing(traceroom: Traceroom, ran: Path, tmp_path: Path) -> None:
    done = traceroom("doctor", "--out", ran, "--json")
    states = {each["check"]: each["state"] for each in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0 and states["packages"] == states["warehouse"] == "ok" and states["model"] == "note"
    (tmp_path / "bad.toml").write_text("logs = 3")
    (tmp_path / "warehouse.duckdb").write_text("no database")
    done = traceroom("doctor", "--out", tmp_path, "--config", tmp_path / "bad.toml", "--json",
                     TRACEROOM_MODEL="m", TRACEROOM_MODEL_URL="http://127.0.0.1:9/v1", TRACEROOM_KEY="short")
    checks = {each["check"]: each for each in json.loads(done.stdout)["checks"]}
    failed = {name for name, each in checks.items() if each["state"] == "failed"}
    assert done.returncode == 1 and failed == {"configuration", "warehouse", "model", "key"}
    assert all(checks[name]["hint"] for name in failed), "each says what to do"


def test_paths_in_printed_commands_are_quoted(tmp_path: Path, traceroom: Traceroom) -> None:
    (tmp_path / "log.jsonl").write_text('{"messages": [{"role": "user", "content": "Hello"}]}\n')
    done = traceroom("run", tmp_path / "log.jsonl", "--out", tmp_path / "with space", "--no-image")
    assert f"show --out '{tmp_path}/with space'" in done.stderr


def test_show_counts_what_came_in_and_what_left(ran: Path, traceroom: Traceroom) -> None:
    done = traceroom("show", "--out", ran)
    assert done.returncode == 0 and done.stdout == ""
    assert "no_known_success" in done.stderr
    funnel = json.loads(traceroom("show", "--out", ran, "--json").stdout)
    stages = list(dict.fromkeys(row["stage"] for row in funnel))
    assert stages == [stage for stage in ORDER if stage in stages]
    tasks = {(row["stage"], row["kept"]): 0 for row in funnel}
    for row in funnel:
        tasks[row["stage"], row["kept"]] += row["n"]
    assert tasks["rewards", True] == sum(row["n"] for row in funnel if row["stage"] == "verify"), "each mined task was tried"
    for stage in ("sessions", "outcomes", "tasks", "datasets"):
        assert tasks.get((stage, True), 0) + tasks.get((stage, False), 0) == 60, f"no session vanishes at {stage}"
        assert tasks[stage, True] > 0
    of_rewards = json.loads(traceroom("show", "--out", ran, "--stage", "rewards", "--json").stdout)
    assert of_rewards == [row for row in funnel if row["stage"] == "rewards"]


def test_show_lists_each_thing_that_was_left(ran: Path, traceroom: Traceroom) -> None:
    left = json.loads(traceroom("show", "--rejected", "--out", ran, "--json").stdout)
    funnel = json.loads(traceroom("show", "--out", ran, "--json").stdout)
    assert len(left) == sum(row["n"] for row in funnel if not row["kept"])
    assert all(row["detail"] and row["subject"] and row["reason"].islower() for row in left)


def test_show_lists_families_by_name(ran: Path, traceroom: Traceroom) -> None:
    families = json.loads(traceroom("show", "--families", "--out", ran, "--json").stdout)
    sizes = [row["tasks"] for row in families]
    assert sizes == sorted(sizes, reverse=True) and all(row["sessions"] >= row["tasks"] > 0 for row in families)
    told = " ".join(traceroom("show", "--families", "--out", ran).stderr.split())
    assert all(" ".join(row["name"].split())[:20] in told for row in families)


def test_show_of_nothing_says_the_hint(tmp_path: Path, traceroom: Traceroom) -> None:
    done = traceroom("show", "--out", tmp_path / "none")
    assert done.returncode == 2
    assert "there is no warehouse here yet; make it with: traceroom run LOGS --out DIR." in done.stderr


def test_tasks_are_listed(environment: Path, traceroom: Traceroom) -> None:
    listed = json.loads(traceroom("tasks", environment, "--json").stdout)
    assert listed == rows(environment / "tasks.jsonl")
    assert f"{len(listed)} tasks" in traceroom("tasks", environment).stderr


def script(environment: Path, path: Path, task_id: str) -> Path:
    """Return the known solution as a script."""
    (steps,) = [row["steps"] for row in rows(environment.parents[1] / "rewards" / environment.name / "solutions.jsonl")
                if row["task_id"] == task_id]
    path.write_text("".join(json.dumps(step) + "\n" for step in steps), "utf-8")
    return path


def test_the_known_solution_played_by_script_earns_one(environment: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    task_id = rows(environment / "tasks.jsonl")[0]["task_id"]
    solution = script(environment, tmp_path / "solution.jsonl", task_id)
    done = traceroom("play", environment, task_id[:12], "--script", solution, "--json")
    assert done.returncode == 0, done.stderr
    played = json.loads(done.stdout)
    assert played["grade"]["reward"] == 1.0 and played["task_id"] == task_id
    assert [step["kind"] for step in played["steps"]] == ["say" if "say" in step else "call" for step in rows(solution)]
    assert all(step["tier"] in ("recorded", "derived", "induced") for step in played["steps"] if step["kind"] == "call")
    assert "reward 1" in done.stderr


def test_what_is_typed_is_a_call_where_it_names_a_tool_spaces_and_all() -> None:
    tools = {"open", "POST /doors", "POST /doors {door}"}
    assert typed('open {"n": 1}', tools) == {"tool": "open", "arguments": {"n": 1}}
    assert typed('POST /doors {"n": 1}', tools) == {"tool": "POST /doors", "arguments": {"n": 1}}
    assert typed('POST /doors {door} {"n": 1}', tools) == {"tool": "POST /doors {door}", "arguments": {"n": 1}}
    assert typed("open", tools) == {"tool": "open", "arguments": {}}
    assert typed("opened it is", tools) == {"say": "opened it is"} and typed("use {braces} then", tools)["say"]
    for line in ('opne {"n": 1}', "GET /doors {}"):
        with pytest.raises(Missing, match=r"no tool '(opne|GET /doors)'; there are: POST /doors"):
            typed(line, tools)


def test_an_empty_script_earns_nothing(environment: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    (tmp_path / "nothing.jsonl").write_text("\n", "utf-8")
    task_id = rows(environment / "tasks.jsonl")[0]["task_id"]
    played = json.loads(traceroom("play", environment, task_id, "--script", tmp_path / "nothing.jsonl", "--json").stdout)
    assert played["grade"]["reward"] == 0.0 and played["steps"] == [] and played["ended"] == "terminated"


def test_journals_are_graded_in_two_modes_and_step_by_step(environment: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    task_id = rows(environment / "tasks.jsonl")[0]["task_id"]
    solution = script(environment, tmp_path / "solution.jsonl", task_id)
    played = json.loads(traceroom("play", environment, task_id, "--script", solution, "--json").stdout)
    lines = [{"task_id": task_id, "seed": 0, "journal": journal} for journal in (played["steps"], [{"kind": "finish"}])]
    journals = tmp_path / "journals.jsonl"
    journals.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    done = traceroom("grade", environment, journals, "--mode", "train", "--steps", "--json")
    assert done.returncode == 0, done.stderr
    solved, idle = json.loads(done.stdout)
    assert (solved["reward"], idle["reward"]) == (1.0, 0.0) and "2 of 2 episodes scored" in done.stderr
    assert solved["tally"] == f"{len(solved['checks'])}/{len(solved['checks'])} checks passed"
    assert len(solved["steps"]) == len(played["steps"]) and len(idle["steps"]) == 1
    assert sum(solved["steps"]) - sum(idle["steps"]) == pytest.approx(1.0), "what shaping adds is the same for both"
    journals.write_text(json.dumps({"task_id": task_id}) + "\n", "utf-8")
    for arguments, said in ((("--mode", "test"), "this is no journal"), ((), "line 1")):
        refused = traceroom("grade", environment, journals, *arguments)
        assert refused.returncode == 2 and said in refused.stderr
    journals.write_text(json.dumps(lines[0]) + "\n", "utf-8")
    assert "no mode 'test'; there are: eval, train" in traceroom("grade", environment, journals, "--mode", "test").stderr


def test_a_person_types(environment: Path) -> None:
    task_id = rows(environment / "tasks.jsonl")[0]["task_id"]
    tool = rows(environment / "tools.jsonl")[0]["name"]
    lines = f'/tools\n{tool} {{"broken\n{tool} {{"nobody": "asked"}}\nHello there\n/finish\n'
    done = called("play", environment, task_id, "--json", typed=lines)
    assert done.returncode == 0, done.stderr
    assert "the arguments are no JSON" in done.stderr and tool in done.stderr
    assert [step["kind"] for step in json.loads(done.stdout)["steps"]] == ["call", "say"]


@pytest.mark.parametrize(("line", "says"), [
    ("{", "line 2: this is no JSON"), ('{"tool": 3}', "line 2: this is neither a call nor a message to the user"),
    ('{"tool": "a", "say": "b"}', "line 2: this is neither"), ('{"tool": "a", "arguments": []}', "line 2: this is neither"),
])
def test_a_bad_script_names_its_line(
    environment: Path, tmp_path: Path, traceroom: Traceroom, line: str, says: str
) -> None:
    (tmp_path / "script.jsonl").write_text(f'{{"say": "hello"}}\n{line}\n', "utf-8")
    task_id = rows(environment / "tasks.jsonl")[0]["task_id"]
    done = traceroom("play", environment, task_id, "--script", tmp_path / "script.jsonl")
    assert done.returncode == 2 and says in done.stderr and 'write {"tool"' in done.stderr


def test_misses_list_what_there_is(ran: Path, environment: Path, traceroom: Traceroom) -> None:
    tasks = traceroom("play", environment, "zzz")
    assert tasks.returncode == 2 and "no task 'zzz'" in tasks.stderr and "list them with: traceroom tasks" in tasks.stderr
    nowhere = traceroom("tasks", ran / "environments" / "nope")
    assert nowhere.returncode == 2 and str(environment) in nowhere.stderr
    exporter = traceroom("export", "trajectory", environment)
    assert exporter.returncode == 2 and "there are: agentlightning, art, atif" in exporter.stderr
    stage = traceroom("show", "--out", ran, "--stage", "reward")
    assert stage.returncode == 2 and "rewards" in stage.stderr


def test_verify_proves_again_and_fails_a_spoilt_environment(
    ran: Path, environment: Path, tmp_path: Path, traceroom: Traceroom
) -> None:
    done = traceroom("verify", environment, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tasks"] == sorted(row["task_id"] for row in rows(environment / "tasks.jsonl"))
    shutil.copytree(ran, tmp_path / "out")
    rewards = tmp_path / "out" / "rewards" / environment.name
    spoilt = rows(rewards / "solutions.jsonl")
    spoilt[0]["steps"] = []
    (rewards / "solutions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in spoilt), "utf-8")
    done = traceroom("verify", tmp_path / "out" / "environments" / environment.name)
    assert done.returncode == 1 and "do not hold" in done.stderr
    (tmp_path / "out" / "environments" / environment.name / "manifest.json").write_text("{}")
    broken = traceroom("verify", tmp_path / "out" / "environments" / environment.name)
    assert broken.returncode == 2 and "build it again" in broken.stderr


def test_export_writes_what_it_says(environment: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    done = traceroom("export", "sft", environment, "--to", tmp_path / "to", "--json")
    assert done.returncode == 0, done.stderr
    paths = [Path(path) for path in json.loads(done.stdout)["paths"]]
    assert paths == sorted((tmp_path / "to").iterdir())
    assert sum(len(rows(path)) for path in paths if path.suffix == ".jsonl") >= len(rows(environment / "tasks.jsonl"))


def test_serve_answers_until_it_is_stopped(environment: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "pipelines", "serve", str(environment), "--port", "0"], stderr=subprocess.PIPE, text=True,
        cwd=ROOT, env=environ())
    assert server.stderr
    said = server.stderr.readline()
    assert "http://127.0.0.1:" in said and said.rstrip().endswith("stop it with Ctrl-C")
    server.terminate()
    assert server.wait(120) is not None


def test_an_unverified_room_is_played_without_a_grade(sample_run: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    unverified = sample_run / "unverified" / "main"
    task_id = Environment.load(unverified).tasks[0].task_id
    script = tmp_path / "moves.jsonl"
    script.write_text('{"say": "How can I help?"}\n', "utf-8")
    done = traceroom("play", unverified, task_id, "--script", script, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["grade"] is None
    assert "this task is unverified" in done.stderr
    checked = traceroom("verify", unverified)
    assert checked.returncode == 1 and "unverified" in checked.stderr
