"""A run with programs that a person corrected and a model that writes some: in the room, in the funnel, and the same again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pipelines.building.worlds import behaviours
from pipelines.settings import Settings
from tests.endpoint import answering
from tests.env_builder.behaviour.parcels import VALUE, answer, logged, program_of
from tests.pipelines.conftest import Traceroom, tables
from warehouse.errors import InputError
from warehouse.records import Tool, empty
from warehouse.store import Store

CONSTANT = {"rule": "constant", "content": "Ask the desk."}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Sessions in which a box is weighed, its fare is asked and a clerk is called, each day of forty its own file."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for session in range(40):
        box = f"B-{100 + session * 7 % 11}"
        calls = [("weigh", {"box": box}), ("fare", {"box": box, "zone": 1 + session * 3 % 37})]
        messages: list[dict[str, object]] = [{"role": "user", "content": f"What is the fare of {box}?"}]
        for number, (tool, arguments) in enumerate(calls):
            call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
            messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": call["id"], "content": answer(tool, arguments)}]
        row = {"session_id": f"s{session:02}", "ts": f"2026-03-01T10:{session:02}:00Z", "messages": messages}
        (folder / f"{session:02}.jsonl").write_text(json.dumps(row) + "\n")
    return folder


def settings(tmp_path: Path, told: str) -> Settings:
    (tmp_path / "told.toml").write_text(told)
    return Settings(logs=(), out=str(tmp_path / "out"), configuration=str(tmp_path / "told.toml"))


def test_what_people_and_a_model_wrote_is_taken_and_said_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built, told = logged(), settings(tmp_path, '[behaviour]\nprograms = "programs"\nask = true\n')
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "fare.json").write_text(json.dumps({"tool": "fare", "rules": [{"rule": "recorded"}]}))
    (tmp_path / "programs" / "weigh.json").write_text(json.dumps({"tool": "weigh", "rules": [{"rule": "recorded"}, CONSTANT]}))
    before = told.behaviour_text
    with answering(lambda prompt: json.dumps({"rules": [VALUE]})) as endpoint:
        monkeypatch.setenv("TRACEROOM_MODEL", "small")
        monkeypatch.setenv("TRACEROOM_MODEL_URL", endpoint.url)
        written, decisions = behaviours(built, empty(Tool), told.checked())[:2]
        assert len(endpoint.asked) == 1
    repeated = behaviours(built, empty(Tool), told)  # nobody is at the endpoint any more
    assert repeated[0].equals(written) and repeated[1].equals(decisions)
    assert program_of(written, "fare")["written_by"] == "small"
    assert program_of(written, "weigh")["written_by"] == "a person, in weigh.json"
    reasons = {(row["subject"], row["reason"]) for row in decisions.to_dicts()}
    assert reasons == {
        ("fare.json", "program_corrected"), ("weigh.json", "program_corrected"), ("main/fare", "program_written")}
    (tmp_path / "programs" / "weigh.json").unlink()
    assert before != told.behaviour_text != settings(tmp_path, "").behaviour_text, "what is read anew is worked out anew"
    assert "written_by" not in program_of(behaviours(built, empty(Tool), told)[0], "weigh")


def test_what_is_configured_by_half_is_refused_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEROOM_MODEL", raising=False)
    with pytest.raises(InputError, match=r"told.toml: no model is configured to write programs"):
        settings(tmp_path, "[behaviour]\nask = true\n").checked()
    with pytest.raises(InputError, match="nowhere: there is no such folder of programs"):
        settings(tmp_path, '[behaviour]\nprograms = "nowhere"\n').checked()
    with pytest.raises(InputError, match=r"no key 'behaviour.program'; remove it, or use one of: programs, ask"):
        settings(tmp_path, '[behaviour]\nprogram = "nowhere"\n').checked()


@pytest.mark.slow
def test_a_run_takes_what_a_person_and_a_model_wrote(logs: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    told, folder = tmp_path / "told.toml", tmp_path / "programs"
    told.write_text('[behaviour]\nprograms = "programs"\nask = true\n')
    folder.mkdir()
    (folder / "weigh.json").write_text(json.dumps({"tool": "weigh", "rules": [{"rule": "recorded"}, CONSTANT]}))
    reply = json.dumps({"rules": [VALUE]})
    options = ("--config", told, "--no-image")
    with answering(lambda prompt: reply) as endpoint:
        model = {"TRACEROOM_MODEL": "small", "TRACEROOM_MODEL_URL": endpoint.url}
        done = traceroom("run", logs, "--out", tmp_path / "out", *options, **model)
        assert done.returncode == 0, done.stderr
        n_asked = len(endpoint.asked)
    shutil.copytree(tmp_path / "out" / "answers", tmp_path / "again" / "answers")
    again = traceroom("run", logs, "--out", tmp_path / "again", *options, **model)  # nobody is at the endpoint any more
    assert again.returncode == 0, again.stderr
    one, other = tables(tmp_path / "out"), tables(tmp_path / "again")
    assert one["mart.behaviours"].equals(other["mart.behaviours"]) and one["mart.decisions"].equals(other["mart.decisions"])
    programs = {row["tool"]: json.loads(row["program"]) for row in one["mart.behaviours"].to_dicts()}
    assert programs["weigh"]["rules"][1] == CONSTANT and programs["weigh"]["written_by"] == "a person, in weigh.json"
    left = one["mart.decisions"].filter(one["mart.decisions"]["stage"] == "behaviour")
    assert ("weigh.json", "program_corrected") in left.select("subject", "reason").rows()
    assert n_asked <= 1 and n_asked == len(list((tmp_path / "out" / "answers").iterdir()))
    (folder / "weigh.json").unlink()
    assert traceroom("run", logs, "--out", tmp_path / "again", *options, **model).returncode == 0
    with Store.published(tmp_path / "again" / "warehouse.duckdb") as store:
        program = store.read("select program from mart.behaviours where tool = 'weigh'")["program"].item()
    assert "written_by" not in json.loads(program), "a program that was taken away counts no longer"
