"""A split that leaks publishes nothing of its service but the report that says so; what a log says of an answer's tokens and
parameters stands in the table of steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder.exports.selection import Selection
from pipelines.building.datasets import datasets, source_of
from pipelines.building.export import Wanted, export
from pipelines.building.sessions import sessions
from pipelines.ingestion.ingest import ingest
from pipelines.settings import Settings
from tests.step_tables import all_steps
from warehouse.errors import InputError, Missing, TraceroomError
from warehouse.lock import writing
from warehouse.records import Leakage, Task, frame, frame_schema
from warehouse.store import Store


def task_of(service: str, session_id: str) -> dict[str, object]:
    """Return a task of the service with one session."""
    return dict.fromkeys(frame_schema(Task)) | {
        "task_id": service,
        "service": service,
        "family": "f",
        "slots": "{}",
        "goal": "g",
        "split": "train",
        "session_ids": [session_id],
        "succeeded_session_ids": [],
        "call_sequences": "[]",
        "late_arguments": "[]",
        "reported_facts": "[]",
        "signature": "[]",
    }


def test_a_split_that_leaks_stops_the_datasets_of_its_service(tmp_path: Path) -> None:
    settings = Settings(logs=(), out=str(tmp_path / "out"))
    Path(settings.out).mkdir()
    tasks, reports = [], []
    for service, leaks in (("tight", 0), ("leaky", 2)):
        tasks.append(task_of(service, f"of {service}"))
        reports.append({"service": service, "report": json.dumps({"method": "component", "leaks": leaks})})
    with Store.open(settings.warehouse) as store:
        store.replace("mart.tasks", frame(Task, tasks))
        store.replace("mart.leakage", frame(Leakage, reports))
        datasets(store, settings)
        told = store.read("select subject, reason, detail from mart.decisions where stage = 'datasets' and not kept").rows()
    files = {folder.name: sorted(path.name for path in folder.iterdir()) for folder in Path(settings.datasets).iterdir()}
    assert files["leaky"] == ["leakage.json"]
    assert {"README.md", "trajectories.train.parquet"} <= set(files["tight"])
    leaky = [detail for subject, reason, detail in told if (subject, reason) == ("of leaky", "leak")]
    assert leaky == ["2 records are in several splits of leaky; see its leakage.json"]


def test_how_answers_were_drawn_goes_from_the_log_to_the_table_of_steps(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    asked = [{"role": "user", "content": "What is in ünit 7?"}]
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"unit": 7}'}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    answered = {"role": "tool", "tool_call_id": "c1", "content": "a lamp"}
    lines = [_completion(asked, called, temperature=0.5, seed=3),
             _completion([*asked, called, answered], {"role": "assistant", "content": "A lamp."}, temperature=0.0)]
    (tmp_path / "logs" / "chat.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    settings = Settings(logs=(str(tmp_path / "logs"),), out=str(tmp_path / "out"), privacy=False)   # tokens spell texts
    with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
        ingest(store, settings)
        sessions(store, settings)
        [session] = store.table("core.sessions").to_dicts()
        store.replace("mart.tasks", frame(Task, [task_of(session["service"], session["session_id"])]))
        rows = all_steps(source_of(store, session["service"], "room", tmp_path))
    assert rows["role"].to_list() == ["user", "assistant", "tool", "assistant"]
    assert rows["sampling"].to_list() == [None, '{"seed":3,"temperature":0.5}', None, '{"temperature":0.0}']
    assert rows["prompt_token_ids"].to_list() == [None, [1, 2, 3], None, [1, 2, 3]]
    assert rows["completion_token_ids"].to_list() == [None, [4, 5], None, [4, 5]]
    assert rows["behaviour_logprobs"].to_list() == [None, [-0.5, 0.0], None, [-0.5, 0.0]]


def _completion(messages: list[dict[str, object]], answer: dict[str, object], **parameters: float) -> dict[str, object]:
    """Return a line of the log of a server that tells its tokens."""
    return {"session_id": "s-1", "service": "desk", "request": {"model": "m", "messages": messages, **parameters}, "response": {
        "id": "r", "object": "chat.completion", "created": 1772446502, "model": "m", "prompt_token_ids": [1, 2, 3],
        "choices": [{"index": 0, "message": answer, "finish_reason": "stop", "token_ids": [4, 5], "logprobs": {"content": [
            {"token": "a", "logprob": -0.5}, {"token": "b", "logprob": 0.0}]}}]}}


@pytest.mark.parametrize(("name", "wanted", "says"), [
    ("nobody", Wanted(), "no exporter 'nobody'; there are: agentlightning, art, atif, datasets, dpo,"),
    ("sft", Wanted(Selection(bands=("never",))), "no band 'never'; there are: mostly, often, rarely, sometimes"),
    ("sft", Wanted(Selection(tiers=("sure",))), "no tier 'sure'; there are: assumed, bound, derived"),
    ("sft", Wanted(Selection(splits=("test",))), "no split 'test'; there are: held_out, train, validation"),
    ("sft", Wanted(Selection(least=0.9, most=0.1)), "0.9:0.1: an interval of rewards lies between 0 and 1"),
    ("sft", Wanted(discount=2.0), "2.0: a discount lies between 0 and 1"),
    ("sft", Wanted(forms=("dpo",)), "'sft' is one form, and --form chooses among several"),
    ("datasets", Wanted(forms=("sftt",)), "no form 'sftt'; there are: .*did you mean 'sft'"),
    ("trl", Wanted(Selection(families=("f",))), "'trl' takes a room, of which --split alone can be chosen"),
    ("trl", Wanted(), "no environment '.*nowhere'; there are none; name the folder OUT/environments/NAME"),
])
def test_what_cannot_be_exported_says_what_could(tmp_path: Path, name: str, wanted: Wanted, says: str) -> None:
    with pytest.raises(TraceroomError, match=says):
        export(name, tmp_path / "nowhere", tmp_path / "to", wanted)
    assert not (tmp_path / "to").exists()


def test_a_selection_that_nothing_is_says_why(sample_run: Path, sample_environment: Path, tmp_path: Path) -> None:
    says = r"no episode is what was asked for \(\d+ other_policy; the first: session .* acted by"
    with pytest.raises(InputError, match=says):
        export("datasets", sample_environment, tmp_path / "to", Wanted(Selection(policies=("nobody",))))
    assert not (tmp_path / "to").exists()
    with pytest.raises(Missing, match="no family ''; there are: "):
        export("sft", sample_run, tmp_path / "to", Wanted(Selection(families=("",))))
