"""Exports: known rows, the same bytes from shuffled tables, nothing of one side on the other, and clear misses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder.exports import DatasetSource, export, of_tables, registered, steps, write_leakage
from env_builder.exports.steps import COLUMNS
from tests.step_tables import all_steps, read_steps
from warehouse.errors import Missing
from warehouse.records import SPLITS, Outcome, Task, Tool, Turn, frame, frame_schema


def turn(session_id: str, position: int, **fields: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(frame_schema(Turn))
    return row | {"turn_id": f"{session_id}-{position}", "session_id": session_id, "service": "shop",
                  "position": position} | fields  # fmt: skip


def message(session_id: str, position: int, role: str, content: str) -> dict[str, Any]:
    model = "m-1" if role == "assistant" else None
    return turn(session_id, position, kind="message", role=role, content=content, model=model)


def call(
    session_id: str, position: int, arguments: str | None, content: str | None, requestor: str = "assistant"
) -> dict[str, Any]:
    return turn(session_id, position, kind="call", tool="open_door", arguments=arguments, arguments_raw=arguments or "{oops",
                content=content, requestor=requestor, call_id="same", is_error=False)  # fmt: skip


def task(task_id: str, split: str, session_ids: list[str], good: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(frame_schema(Task))
    return row | {"task_id": task_id, "service": "shop", "family": "f", "slots": "{}", "goal": "open it",
                  "session_ids": session_ids, "succeeded_session_ids": good, "split": split}  # fmt: skip


@pytest.fixture
def source() -> DatasetSource:
    turns = [
        message("a", 0, "system", "be kind"), message("a", 1, "user", "open it"), message("a", 2, "assistant", "sure"),
        call("a", 3, '{"door": 1}', "open"), call("a", 4, '{"z": 1, "b": 2}', "open — ja"),
        message("a", 5, "assistant", "done"),
        message("b", 0, "user", "shut it"), message("b", 1, "assistant", "no"),
        call("c", 0, '{"door": 3}', "open"),
        message("d", 0, "user", "open it"), call("d", 1, '{"door": 4}', None),
        message("e", 0, "user", "open it"), call("e", 1, None, "what?"), message("e", 2, "assistant", "hm"),
        message("f", 0, "user", "open it"), call("f", 1, '{"mine": 1}', "seen", "user"), message("f", 2, "assistant", "ok"),
        message("stray", 0, "user", "in no task"),
    ]  # fmt: skip
    tasks = [task("t1", "train", ["a", "b"], ["a"]), task("t2", "held_out", ["c"], ["c"]),
             task("t3", "train", ["d", "e", "f"], ["d", "e", "f"])]  # fmt: skip
    outcomes = [{"session_id": s, "probability": p, "signals": "[]"} for s, p in zip("abc", (0.9, 0.1, None), strict=True)]
    tools = [{"service": "shop", "tool": "open_door", "description": "Opens.", "input_schema": '{"type":"object"}',
              "declared": True, "annotations": None, "n_calls": 5}]  # fmt: skip
    return DatasetSource("shop", "digest", frame(Task, tasks), frame(Turn, turns), frame(Outcome, outcomes), frame(Tool, tools))


def shuffled(source: DatasetSource) -> DatasetSource:
    return source._replace(
        tasks=source.tasks.reverse(), turns=source.turns.sample(fraction=1.0, shuffle=True, seed=1),
        outcomes=source.outcomes.reverse(),
    )  # fmt: skip


def test_trajectories_hold_one_row_a_step(tmp_path: Path, source: DatasetSource) -> None:
    exported = export("trajectories", tmp_path / "made", source)
    assert exported.paths == sorted(steps.file(tmp_path / "made", side) for side in SPLITS)
    rows = read_steps(tmp_path / "made")
    assert rows.schema == pl.Schema(COLUMNS)
    assert sorted(rows["episode_id"].unique()) == ["a", "b", "c", "d", "e", "f"]
    of_a = rows.filter(pl.col("episode_id") == "a")
    assert of_a["kind"].to_list() == ["message", "message", "message", "call", "result", "call", "result", "message"]
    assert of_a["step_idx"].to_list() == list(range(8))
    assert of_a["loss_mask"].to_list() == [False, False, True, True, False, True, False, True]
    assert of_a["reward"].to_list() == [0.0] * 7 + [0.9]
    assert of_a["terminated"].to_list() == [False] * 7 + [True]
    assert of_a["action_arguments"].to_list()[5] == '{"z": 1, "b": 2}', "arguments as logged"
    assert of_a["split"].unique().to_list() == ["train"]
    assert rows["behaviour_logprobs"].null_count() == rows.height
    assert rows["environment_digest"].unique().to_list() == ["digest"]


def test_a_session_that_ends_in_a_call_without_answer_is_truncated(tmp_path: Path, source: DatasetSource) -> None:
    export("trajectories", tmp_path, source)
    rows = read_steps(tmp_path).filter(pl.col("episode_id") == "d")
    assert rows["truncated"].to_list() == [False, True]
    assert rows["terminated"].to_list() == [False, False]
    assert rows["reward"].to_list() == [0.0, None], "no label, no reward"


def test_a_grade_wins_over_the_outcome_and_says_so(tmp_path: Path, source: DatasetSource) -> None:
    grades = pl.DataFrame({"session_id": ["a", "c"], "reward": [1.0, 0.0]})
    rows = all_steps(source._replace(grades=grades))
    ends = {row["episode_id"]: row for row in rows.filter("terminated").to_dicts()}
    assert (ends["a"]["reward"], ends["a"]["label_source"], ends["a"]["label_prob"]) == (1.0, "rubric", 0.9)
    assert (ends["c"]["reward"], ends["c"]["label_source"]) == (0.0, "rubric")
    assert (ends["b"]["reward"], ends["b"]["label_source"]) == (0.1, "outcome")


def test_sft_holds_good_sessions_apart_by_side(tmp_path: Path, source: DatasetSource) -> None:
    exported = export("sft", tmp_path, source)
    assert [path.name for path in exported.paths] == ["sft.held_out.jsonl", "sft.train.jsonl", "sft.validation.jsonl"]
    train = [json.loads(line) for line in (tmp_path / "sft.train.jsonl").read_text().splitlines()]
    held = [json.loads(line) for line in (tmp_path / "sft.held_out.jsonl").read_text().splitlines()]
    assert [len(train), len(held)] == [2, 1]
    messages = train[0]["messages"]
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert messages[2]["content"] == "sure" and messages[4]["content"] is None
    ids = [m["tool_calls"][0]["id"] for m in messages if "tool_calls" in m]
    assert ids == [m["tool_call_id"] for m in messages if m["role"] == "tool"] and len(set(ids)) == 2
    assert messages[4]["tool_calls"][0]["function"]["arguments"] == '{"z": 1, "b": 2}'
    assert json.loads(train[0]["tools"])[0]["function"]["name"] == "open_door"
    assert held[0]["messages"][0] == {"role": "user", "content": "open it"}, "a run of requests has its goal as words"
    assert "seen" not in json.dumps(train), "a user's own calls are not the policy's"
    assert dict(exported.decisions.select("subject", "reason").iter_rows()) == {
        "b": "not_succeeded", "d": "unanswered_call", "e": "unreadable_arguments",
    }


@pytest.mark.parametrize("name", sorted(of_tables()))
def test_shuffled_tables_give_the_same_bytes(tmp_path: Path, source: DatasetSource, name: str) -> None:
    first, second = export(name, tmp_path / "1", source), export(name, tmp_path / "2", shuffled(source))
    made = [{path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
            for out in (tmp_path / "1", tmp_path / "2")]
    assert made[0] == made[1] and made[0]
    assert first.decisions.equals(second.decisions)


def test_an_unknown_exporter_is_missed_with_the_names_there_are(tmp_path: Path, source: DatasetSource) -> None:
    assert {"sft", "trajectories"} <= set(registered())
    with pytest.raises(Missing, match=r"no exporter 'harbr'; there are: agentlightning, art, atif, dpo"):
        export("harbr", tmp_path / "none", source)
    assert not (tmp_path / "none").exists()


def test_leakage_is_written_as_sorted_json(tmp_path: Path) -> None:
    one = write_leakage(tmp_path / "1", {"b": {"n": 1}, "a": {"ü": 2}})
    two = write_leakage(tmp_path / "2", {"a": {"ü": 2}, "b": {"n": 1}})
    assert one.name == "leakage.json" and one.read_bytes() == two.read_bytes()
    assert json.loads(one.read_text("utf-8")) == {"a": {"ü": 2}, "b": {"n": 1}}


def test_tables_of_nothing_give_whole_files(tmp_path: Path, source: DatasetSource) -> None:
    bare = source._replace(tasks=source.tasks.clear(), turns=source.turns.clear(), outcomes=source.outcomes.clear())
    export("trajectories", tmp_path, bare)
    assert read_steps(tmp_path).schema == pl.Schema(COLUMNS)
    assert [path.read_text() for path in export("sft", tmp_path, bare).paths] == ["", "", ""]
