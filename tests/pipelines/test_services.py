"""How the sessions of a service begin, and of which worlds they are, reaches the person, and the environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime import Environment
from tests.command_line import called
from tests.conftest import once
from tests.lockers import EPOCH, Backend, Logged
from tests.pipelines.conftest import Traceroom

TENANTS = (1, 2)
SESSIONS = 80


def write_logs(folder: Path, *seeds: int) -> Path:
    """Sessions on one backend for each seed, hour by hour in turn."""
    folder.mkdir()
    lines = []
    for seed in seeds:
        for session_id, turns in Logged(seed, SESSIONS, False).turns.group_by("session_id", maintain_order=True):
            messages: list[dict[str, Any]] = [{"role": "user", "content": "Please look after the lockers."}]
            for turn in turns.iter_rows(named=True):
                call = {"id": turn["turn_id"], "type": "function", "function": {
                    "name": turn["tool"], "arguments": turn["arguments"]}}
                messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                             {"role": "tool", "tool_call_id": call["id"], "content": turn["content"]}]
            number = int(str(session_id[0])[1:])
            at = EPOCH.replace(month=5 + number // 24 // 28, day=1 + number // 24 % 28, hour=number % 24)
            lines.append(json.dumps({"session_id": f"{session_id[0]}-of-{seed}", "ts": at.isoformat(), "messages": [
                *messages, {"role": "assistant", "content": "Done."}]}))
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> None:
        folder.mkdir()
        done = called("run", "--no-image", "--json", write_logs(folder / "logs", *TENANTS), "--out", folder / "out")
        assert done.returncode == 0, done.stderr
        (folder / "said.txt").write_text(done.stderr)

    return once(tmp_path_factory, "mixed", make)


def test_worlds_are_said_by_run_and_by_show(mixed: Path, traceroom: Traceroom) -> None:
    [row] = json.loads(traceroom("show", "--out", mixed / "out", "--services", "--json").stdout)
    assert len(row["worlds"]["sessions"]) == 2 and sum(row["worlds"]["sessions"]) + row["worlds"]["none"] == 2 * SESSIONS
    assert row["worlds"]["attribute"] is None and "fields.service" in row["evidence"]
    assert row["evidence"].partition(". Nothing")[0] in (mixed / "said.txt").read_text()
    shown = traceroom("show", "--out", mixed / "out", "--services")
    assert "2 worlds that contradict each other" in shown.stderr.replace("\n", " ")


def test_an_open_episode_takes_the_world_that_it_is_told(mixed: Path) -> None:
    [folder] = (mixed / "out" / "unverified").glob("*")
    env = Environment.load(folder)
    for seed in TENANTS:
        real, asked = Backend(seed), [("show_locker", {"locker": f"L-{n}"}) for n in range(100, 112)]
        env.reset(None)
        unknown = wrong = 0
        for tool, arguments in asked:
            answer, content = env.call(tool, arguments), real.call(tool, arguments)
            unknown += answer.tier == "unknown"
            wrong += answer.tier != "unknown" and answer.content != content
            env.learn(tool, arguments, content)
        assert wrong == 0 and 1 <= unknown <= 4


def test_a_start_that_nothing_tells_is_undecided(tmp_path: Path, traceroom: Traceroom) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for n in range(4):
        call = {"id": "c", "type": "function", "function": {"name": "show_lamp", "arguments": json.dumps({"lamp": f"a{n}"})}}
        messages = [
            {"role": "user", "content": "Is it on?"}, {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": '{"on": true}'}, {"role": "assistant", "content": "Yes."}]
        session = {"session_id": f"s{n}", "ts": f"2026-03-0{n + 1}T10:00:00Z", "messages": messages}
        (logs / f"{n}.jsonl").write_text(json.dumps(session) + "\n")
    done = traceroom("run", "--no-image", "--json", logs, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    [sentence] = json.loads(done.stdout)["open_decisions"]
    assert "0 for reset, 0 for shared" in sentence and "set starts_from" in sentence
    [row] = json.loads(traceroom("show", "--out", tmp_path / "out", "--services", "--json").stdout)
    assert row["starts_from"] == "reset" and row["decided_by"] is None
    configured = tmp_path / "traceroom.toml"
    configured.write_text('[[sources]]\npaths = ["logs"]\nstarts_from = "shared"\n')
    done = traceroom("run", "--no-image", "--json", "--config", configured, "--out", tmp_path / "out")
    assert json.loads(done.stdout)["open_decisions"] == []
