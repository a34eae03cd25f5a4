"""Arguments come back from every form of dataset as they were logged, and names that no API takes are told apart."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from env_builder.exports import DatasetSource, export
from env_builder.exports.adapters.play import callable_names, functions
from env_builder.exports.steps import MARKS
from warehouse.records import Tool, frame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**25), 10**25) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6)
OBJECTS = st.dictionaries(st.text(st.characters(exclude_categories=("Cs",)), max_size=5), JSON, max_size=3)
FORMS = ("sft", "openai", "kto", "dpo", "reward_model", "atif", "trajectories", "minari")


def _with_arguments(shop: DatasetSource, given: list[str]) -> DatasetSource:
    """Return the shop, its calls with these arguments in turn."""
    turns = shop.turns.lazy().collect()
    cycled = pl.Series([given[place % len(given)] for place in range(turns.height)], dtype=pl.String)
    is_call = turns["kind"] == "call"
    return shop._replace(turns=turns.with_columns(
        pl.when(is_call).then(cycled).otherwise(pl.col(name)).alias(name) for name in ("arguments", "arguments_raw")))


def _calls(value: Any) -> list[Any]:
    """Return the arguments of all calls that a row holds, read as numbers are written."""
    if isinstance(value, dict):
        made = value.get("tool_calls") or ()
        own = [call["function"]["arguments"] if "function" in call else call["arguments"] for call in made]
        read = [_read(arguments) if isinstance(arguments, str) else arguments for arguments in own]
        return read + [call for name, inner in value.items() if name != "tool_calls" for call in _calls(inner)]
    return [call for inner in value for call in _calls(inner)] if isinstance(value, list) else []


def _read(text: str) -> Any:
    return json.loads(text, parse_float=str, parse_int=str)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(OBJECTS, min_size=1, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_arguments_of_every_shape_come_back_exactly(
    shop: DatasetSource, objects: list[Any], indent: int | None, ascii_only: bool
) -> None:
    source = _with_arguments(shop, [json.dumps(each, indent=indent, ensure_ascii=ascii_only) for each in objects])
    logged = {json.dumps(_read(json.dumps(each))) for each in objects}
    with TemporaryDirectory() as folder:
        for form in FORMS:
            export(form, Path(folder), source)
        for path in Path(folder).glob("*.jsonl"):
            with path.open(encoding="utf-8", newline="\n") as lines:
                found = [call for line in lines for call in _calls(_read(line))]
            solved = {"{}", '{"door": "7"}'} if path.name.startswith("dpo") else set()
            assert {json.dumps(call) for call in found} - solved <= logged, path
        sft = [json.dumps(call) for call in _calls([_read(line) for line in _lines(Path(folder) / "sft.train.jsonl")])]
        turns = source.turns.lazy().collect().filter(session_id="good", kind="call")["arguments"]
        assert sft == [json.dumps(_read(text)) for text in turns]
        steps = pl.read_parquet(Path(folder) / "trajectories.train.parquet").filter(episode_id="good", kind="call")
        assert steps["action_arguments"].to_list() == turns.to_list(), "byte for byte"


def _lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return list(lines)


@given(st.sets(st.text(st.characters(exclude_categories=("Cs",)), min_size=1), max_size=12))
def test_every_tool_has_a_name_of_its_own_that_every_api_takes(names: set[str]) -> None:
    found = callable_names([*names, "GET /a/{b}", "GET /a{b}", "GET_a_b"])
    assert len(set(found.values())) == len(found) == len({*names, "GET /a/{b}", "GET /a{b}", "GET_a_b"})
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in found.values())
    assert all(found[name] == name for name in names if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name))


def test_a_route_is_called_alike_in_datasets_and_in_rooms_and_says_its_own_name(tmp_path: Path, shop: DatasetSource) -> None:
    own = "GET /doors/{door_1}"
    tools = shop.tools.with_columns(pl.col("tool").replace("look", own))
    turns = shop.turns.lazy().collect().with_columns(pl.col("tool").replace("look", own))
    source = shop._replace(tools=frame(Tool, tools.to_dicts()), turns=turns)
    for form in ("openai", "dpo", "trajectories"):
        export(form, tmp_path, source)
    row = json.loads(_lines(tmp_path / "openai.train.jsonl")[0])
    told = {tool["function"]["name"]: tool["function"].get("description") for tool in row["tools"]}
    assert told["GET_doors_door_1"] == own and set(told) == {"GET_doors_door_1", "open", "shut"}
    assert row["messages"][1]["tool_calls"][0]["function"]["name"] == "GET_doors_door_1"
    assert row["messages"][-1]["role"] == "assistant"
    assert own in pl.read_parquet(tmp_path / "trajectories.train.parquet")["action_name"].to_list(), "the table has the log's"
    descriptors = [{"name": tool, "description": None, "inputSchema": {"type": "object"}} for tool in source.tools["tool"]]
    assert {tool["function"]["name"] for tool in functions(descriptors)} == set(told)


def test_a_line_for_the_api_ends_with_the_assistant(tmp_path: Path, shop: DatasetSource) -> None:
    turns = shop.turns.lazy().collect()
    cut = turns.filter((pl.col("session_id") != "good") | (pl.col("position") < 3))
    export("openai", tmp_path, shop._replace(turns=cut))
    (row,) = map(json.loads, _lines(tmp_path / "openai.train.jsonl"))
    assert row["messages"][-1]["tool_calls"][0]["function"]["name"] == "open"


def test_a_trajectory_tells_when_and_how_its_steps_were_drawn(tmp_path: Path, shop: DatasetSource) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    timed = shop.turns.lazy().collect().with_columns(
        (pl.lit(noon) + pl.duration(minutes=pl.col("position"))).alias("happened_at"),
        (pl.lit(noon) + pl.duration(minutes=pl.col("position"), seconds=5)).alias("answered_at"))
    marks = pl.DataFrame([{"turn_id": "good-1", "sampling": '{"temperature":0.5}', "prompt_token_ids": [1],
                           "completion_token_ids": [5, 6], "behaviour_logprobs": [-0.5, 0.0]}],
                         schema={name: MARKS[name] for name in ("turn_id", "sampling", "prompt_token_ids",
                                                                "completion_token_ids", "behaviour_logprobs")})
    for form in ("atif", "trajectories"):
        export(form, tmp_path, shop._replace(turns=timed, marks=marks))
    (row,) = (row for row in map(json.loads, _lines(tmp_path / "atif.train.jsonl")) if row["session_id"] == "good")
    assert [step["timestamp"] for step in row["steps"]] == [
        f"2026-01-01T12:0{minute}:00+00:00" for minute in range(4)]
    assert [step.get("metrics") for step in row["steps"]] == [
        None, {"prompt_token_ids": [1], "completion_token_ids": [5, 6], "logprobs": [-0.5, 0.0]}, None, None]
    assert row["steps"][1]["extra"] == {"traceroom": {"sampling": {"temperature": 0.5}}}
    told = pl.read_parquet(tmp_path / "trajectories.train.parquet").filter(episode_id="good", turn_idx=1)["happened_at"]
    assert told.to_list() == [noon + timedelta(minutes=1), noon + timedelta(minutes=1, seconds=5)], "called, then answered"
