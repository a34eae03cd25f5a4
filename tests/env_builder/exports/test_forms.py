"""Forms made of the table of steps: pairs in the same state, labels, prompts, transitions; what is chosen and what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder.exports import DatasetSource, export, of_tables, steps, write
from env_builder.exports import steps as table
from env_builder.exports.selection import Selection, select
from tests.step_tables import all_steps, read_steps
from warehouse.errors import InputError


def rows(out: Path, form: str, side: str = "train") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / f"{form}.{side}.jsonl").read_text("utf-8").splitlines()]


def test_preferences_part_in_the_same_state_and_the_smallest_difference_comes_first(tmp_path: Path,
    shop: DatasetSource) -> None:
    left = export("dpo", tmp_path, shop).decisions
    first, second, third = rows(tmp_path, "dpo")
    called = [[row[side][0]["tool_calls"][0]["function"] for side in ("chosen", "rejected")] for row in (first, second, third)]
    assert {row["rejected_episode_id"] for row in (first, second, third)} == {"near", "far", "failed"}
    by_bad = {row["rejected_episode_id"]: (row, calls) for row, calls in zip((first, second, third), called, strict=True)}
    row, (chosen, rejected) = by_bad["near"]
    assert row is first and row["difference"] == 1 and row["exact"], "one value differs"
    assert chosen["arguments"] == '{"door":7,"key":"a"}' and rejected["arguments"] == '{"door":7,"key":"b"}'
    assert [message["role"] for message in row["prompt"]] == ["user", "assistant", "tool"]
    assert row["weight"] == round(0.9 * 0.8, 6)
    row, (chosen, rejected) = by_bad["failed"]
    assert (row["chosen_episode_id"], chosen["name"], rejected["name"]) == (None, "open", "shut"), "of the solution"
    assert left.is_empty()


def test_the_same_call_with_another_answer_is_no_preference(tmp_path: Path, shop: DatasetSource) -> None:
    turns = shop.turns.lazy().collect()
    same = turns.filter(session_id="good")["arguments"]
    near = (pl.col("session_id") == "near") & (pl.col("tool") == "open")
    alike = turns.with_columns(pl.when(near).then(pl.lit(same[2])).otherwise(pl.col(name)).alias(name)
                               for name in ("arguments", "arguments_raw"))
    left = export("dpo", tmp_path, shop._replace(turns=alike)).decisions
    told = rows(tmp_path, "dpo")
    assert "near" not in {row["rejected_episode_id"] for row in told}
    assert left.filter(subject="near")["reason"].item() == "no_pair"
    assert told and all(row["chosen"] != row["rejected"] and row["difference"] > 0 for row in told)


def test_a_reward_model_compares_what_began_with_the_same_words(tmp_path: Path, shop: DatasetSource) -> None:
    turns = shop.turns.lazy().collect().with_columns(
        pl.when(pl.col("session_id") == "far", pl.col("position") == 0).then(pl.lit("shut it")).otherwise("content")
        .alias("content"))
    assert "far" not in export("reward_model", tmp_path, shop._replace(turns=turns)).decisions["subject"].to_list()
    far, near = rows(tmp_path, "reward_model")
    assert (near["rejected_episode_id"], near["exact"], near["prompt"][-1]["role"]) == ("near", True, "user")
    assert (far["rejected_episode_id"], far["exact"], far["rejected"][0]["content"]) == ("far", False, "shut it")
    assert all(message["role"] == "system" for message in far["prompt"])


def test_acts_carry_labels_and_arguments_come_back_as_they_were(tmp_path: Path, shop: DatasetSource) -> None:
    for form in ("kto", "process_reward", "reward_model"):
        export(form, tmp_path, shop)
    acts = rows(tmp_path, "kto")
    assert len(acts) == 3 + 3 + 2 + 3 and sum(act["label"] for act in acts) == 3
    assert all(len(act["completion"]) == 1 and act["completion"][0]["role"] == "assistant" for act in acts)
    given = [act["completion"][0]["tool_calls"][0]["function"]["arguments"] for act in acts if act["episode_id"] == "far"
             and "tool_calls" in act["completion"][0]]
    assert given == ['{"window":{"at":1.50}}'], "as logged, to the last digit, and no name of another tool"
    judged = {row["episode_id"]: row["labels"] for row in rows(tmp_path, "process_reward")}
    assert judged == {"good": [True] * 3, "near": [True, False, False], "far": [False, False], "failed": [True, False, False]}
    assert [(row["chosen_episode_id"], row["rejected_episode_id"]) for row in rows(tmp_path, "reward_model")] == [
        ("good", "far"), ("good", "near")]


def test_prompts_are_those_of_published_tasks(tmp_path: Path, shop: DatasetSource) -> None:
    left = export("grpo", tmp_path, shop).decisions
    (row,) = rows(tmp_path, "grpo")
    assert (row["task_id"], row["rubric_id"], row["environment_digest"], row["difficulty_band"]) == (
        "t2",
        "r2",
        "digest",
        "rarely",
    )
    assert sorted(left["subject"]) == ["t1", "t3"] and set(left["reason"]) == {"no_rubric"}


def test_transitions_are_discounted_and_padded(tmp_path: Path, shop: DatasetSource) -> None:
    export("minari", tmp_path, shop._replace(discount=0.5, pad_to=5))
    folder = tmp_path / "minari" / "traceroom" / "shop-train-v0" / "data"
    told = {json.loads((place / "metadata.json").read_text())["session_id"]: pl.read_ipc(place / "part-0.arrow")
            for place in folder.iterdir() if place.is_dir()}
    good = told["good"]
    assert good.height == 6 and good["rewards"].to_list() == [0, 0, 0.9, 0, 0, 0]
    infos = good["infos"].struct.unnest()
    assert infos["return_to_go"].to_list() == [0.225, 0.45, 0.9, 0, 0, 0]
    assert infos["padded"].to_list() == [False, False, False, False, True, True]
    assert all_steps(shop._replace(discount=0.5)).filter(episode_id="good")["return_to_go"].to_list() == [
        0.1125, 0.225, 0.225, 0.45, 0.45, 0.9]


@pytest.mark.parametrize(("wanted", "kept", "reasons"), [
    (Selection(), {"good", "near", "far", "failed", "same1"}, {"duplicate"}),
    (Selection(duplicates=True), {"good", "near", "far", "failed", "same1", "same2"}, set()),
    (Selection(splits=("held_out",), duplicates=True), {"same1", "same2"}, {"other_split"}),
    (Selection(families=("f-t2",)), {"failed"}, {"other_family"}),
    (Selection(bands=("often",)), {"good", "near", "far"}, {"other_band"}),
    (Selection(least=0.15, most=0.95), {"good", "near", "same1"}, {"outcome_outside", "duplicate"}),
    (Selection(policies=("m-2",)), {"far"}, {"other_policy"}),
])
def test_what_is_chosen_and_what_is_left_add_up(shop: DatasetSource, wanted: Selection, kept: set[str],
                                                reasons: set[str]) -> None:
    source, left = select(shop, wanted)
    assert set(source.tasks["session_ids"].explode()) == kept and set(left["reason"]) == reasons
    assert kept | set(left["subject"]) == set(shop.turns.lazy().collect()["session_id"])
    assert set(source.tasks["succeeded_session_ids"].explode().drop_nulls()) <= kept


def test_marks_stand_on_the_steps_that_they_are_of(shop: DatasetSource) -> None:
    marks = pl.DataFrame([
        {"turn_id": "good-1", "tier": "recorded", "state_hash": "s1", "completion_token_ids": [5, 6],
         "behaviour_logprobs": [-0.5, 0.0]},
    ], schema={name: table.MARKS[name] for name in (
        "turn_id", "tier", "state_hash", "completion_token_ids", "behaviour_logprobs")})
    own = all_steps(shop._replace(marks=marks)).filter(episode_id="good")
    assert own["completion_token_ids"].to_list() == [None, [5, 6], None, None, None, None]
    assert own["behaviour_logprobs"].to_list() == [None, [-0.5, 0.0], None, None, None, None]
    assert own["tier"].to_list() == [None, None, "recorded", None, None, None]
    left = select(shop._replace(marks=marks), Selection(tiers=("derived",)))[1]
    assert left.filter(subject="good")["reason"].item() == "other_tier"


def test_small_batches_give_the_same_rows(tmp_path: Path, shop: DatasetSource, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = all_steps(shop)
    monkeypatch.setattr(table, "TURNS_AT_ONCE", 3)
    assert len(list(steps.batches(shop))) > 3 and all_steps(shop).equals(whole)
    shop.turns.lazy().collect().reverse().write_parquet(tmp_path / "turns.parquet")
    lazy = shop._replace(turns=pl.scan_parquet(tmp_path / "turns.parquet"))
    export("trajectories", tmp_path / "made", lazy)
    assert read_steps(tmp_path / "made").equals(whole)


def test_the_card_names_what_is_there_and_counts_what_was_left(tmp_path: Path, shop: DatasetSource) -> None:
    source, left = select(shop, Selection())
    write(sorted(of_tables()), tmp_path, source, left, "mit")
    card = (tmp_path / "README.md").read_text("utf-8")
    front = card.split("---")[1]
    assert 'license: "mit"' in front and "config_name: trajectories" in front and "validation" not in front
    assert "| `sft` | successful sessions as messages and tools, for supervised fine-tuning | 1 | 0 | 1 |" in card
    told = json.loads((tmp_path / "left.json").read_text("utf-8"))
    assert told["counted"]["all forms"] == {"duplicate": 1} and "- all forms: `duplicate` 1" in card
    assert told["counted"]["sft"] == {"not_succeeded": 3} and "- `sft`: `not_succeeded` 3" in card
    assert "| `minari` | sessions as transitions for offline RL, in Minari's layout | 4 | 0 | 1 |" in card
    assert {row["subject"] for row in told["left"] if row["form"] == "sft"} == {"near", "far", "failed"}


def test_a_folder_is_one_export_and_takes_further_forms_of_the_same(tmp_path: Path, shop: DatasetSource) -> None:
    source, left = select(shop, Selection())
    write(["minari", "sft"], tmp_path, source._replace(pad_to=9), left, query={"pad": 9})
    with pytest.raises(InputError, match="holds an export of something else; name another"):
        write(["sft"], tmp_path, source, left)
    write(["dpo", "minari"], tmp_path, source, left, query={"pad": 9})
    told = json.loads((tmp_path / "left.json").read_text("utf-8"))
    assert told["asked"] == {"environment": shop.environment, "content_digest": shop.content_digest, "pad": 9}
    assert {"all forms", "sft"} <= set(told["counted"])
    card = (tmp_path / "README.md").read_text("utf-8")
    assert "config_name: dpo" in card and "config_name: sft" in card and "what was asked for: pad 9." in card
