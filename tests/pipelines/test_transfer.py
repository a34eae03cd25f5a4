"""Statistics of transfer and the recorded matrix: known cases by hand, what holds for any results, and the command."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.rollouts import measured
from pipelines.rollouts.divergence import CAUSES, Divergence, divergence
from pipelines.rollouts.matrix import played_results, read_matrix, write_matrix
from pipelines.rollouts.transfer import PLACES, PlacedResult, choosing_regret, diverged, line, spearman, transfer
from warehouse.errors import InputError


def _call(tool: str, content: str, **more: object) -> dict[str, object]:
    return {"kind": "call", "tool": tool, "arguments": {"id": 1}, "content": content, "is_error": False, **more}


def _say(content: str, reply: str | None = None) -> dict[str, object]:
    return {"kind": "say", "content": content, "reply": reply}


JOURNALS = ((), (_say("hi", "bye"), _call("find", "1"), {"kind": "finish"}), (_say("hi"), _call("find", "2")))


_STEPS: dict[str, tuple[str | None, int | None]] = {"a": ("run", 0), "b": ("run", 7), "c": (None, None), "d": ("run", 3)}


@st.composite
def matrices(draw: st.DrawFn) -> list[PlacedResult]:
    keys = st.tuples(st.sampled_from("abcd"), st.sampled_from("uvwxyz"), st.integers(0, 2), st.sampled_from(PLACES))
    return [PlacedResult(*key, draw(st.sampled_from((True, False, None))), draw(st.sampled_from((None, *CAUSES))),
                         draw(st.integers(0, 1)), (), 0, draw(st.sampled_from((None, *JOURNALS))),
                         draw(st.sampled_from((None, True, False))), *_STEPS[key[0]]) for key in sorted(draw(st.sets(keys)))]


def _results(table: dict[str, str]) -> list[PlacedResult]:
    """`policy: "11 10 ?1"`: a task each, first the environment, then the real service."""
    return [PlacedResult(policy, f"t{task}", 0, place, None if mark == "?" else mark == "1")
            for policy, row in table.items() for task, pair in enumerate(row.split())
            for place, mark in zip(PLACES, pair, strict=True)]


def test_ranks_share_ties() -> None:
    assert spearman([1, 2, 3], [10, 20, 15]) == pytest.approx(0.5)
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(np.sqrt(3) / 2)
    assert spearman([0.1 + 0.2, 0.3, 1], [0, 0, 1]) == pytest.approx(1), "what differs by rounding is a tie"
    assert spearman([1, 1], [1, 2]) is None and spearman([], []) is None


def test_a_line_and_a_regret_by_hand() -> None:
    assert line([0, 1, 2], [1, 3, 5]) == pytest.approx((2, 1))
    assert line([0, 1, 2], [0, 0, 3]) == pytest.approx((1.5, -0.5))
    assert line([1, 1], [0, 1]) == (None, None)
    assert choosing_regret([0.9, 0.5], [0.6, 0.8]) == pytest.approx(0.2)
    assert choosing_regret([0.9, 0.9, 0.1], [0.6, 0.8, 0.7]) == pytest.approx(0.1), "the mean of two that are chosen alike"
    assert choosing_regret([], []) is None


def test_a_matrix_by_hand() -> None:
    found = transfer(_results({"good": "11 11 11 10", "bad": "00 10 10 ?1"}))
    good, bad = found.policies
    assert (good.policy, good.n, good.environment, good.real, good.n_unscored) == ("good", 4, 1.0, 0.75, 0)
    assert (bad.n, bad.environment, bad.real, bad.n_unscored) == (3, pytest.approx(2 / 3), 0.0, 1)
    assert bad.low <= bad.difference <= bad.high and good.low == 0.0
    assert found.spearman == pytest.approx(1) and found.regret == 0 and found.n_pairs == 7 and found.n_alone == 0
    assert found.slope == pytest.approx(2.25) and found.intercept == pytest.approx(-1.5)
    assert [(row.task_id, row.n_disagree, row.n_only_environment) for row in found.tasks] == [
        ("t1", 1, 1), ("t2", 1, 1), ("t3", 1, 1)]


def _checkpoints(table: dict[str, str]) -> list[PlacedResult]:
    """As `_results`, of checkpoints of one policy: the keys are their steps."""
    return [each._replace(policy=f"p{each.policy}", checkpoint_of="p", step=int(each.policy)) for each in _results(table)]


def test_the_share_of_a_gain_that_arrives_by_hand() -> None:
    table = {"2": "11 11 10 00 11", "10": "11 11 11 11 00", "1": "00 00 00 00 00 11"}
    (row,) = transfer([*_checkpoints(table), *_results({"other": "11"})]).tuning
    assert (row.policy, row.n_checkpoints, row.first) == ("p", 3, "p1")
    assert row.n_tasks == 5, "a task that one has alone does not count"
    assert row.chosen == ["p2", "p10"] and row.gain_environment == pytest.approx(0.8)
    assert row.gain_real == pytest.approx(0.7) and row.arrives == pytest.approx(0.875) and row.regret == pytest.approx(0.1)
    assert row.arrives_low is not None and row.arrives_high is not None and 0 < row.arrives_low < row.arrives_high <= 1


def test_a_gain_that_only_the_environment_shows_does_not_arrive_and_is_regretted() -> None:
    (row,) = transfer(_checkpoints({"0": "01 01 00 00", "1": "10 10 10 10"})).tuning
    assert (row.arrives, row.regret, row.gain_real) == (-0.5, 0.5, -0.5)
    (none,) = transfer(_checkpoints({"0": "11 11", "1": "00 01"})).tuning
    assert (none.chosen, none.arrives, none.arrives_low, none.regret) == (["p0"], None, None, 0.0), "nothing was gained"
    assert transfer(_checkpoints({"0": "11"})).tuning == [] == transfer(_results({"0": "11", "1": "11"})).tuning
    with pytest.raises(ValueError, match="two checkpoints"):
        transfer([PlacedResult("p", "t", seed, "real", True, checkpoint_of="q", step=seed) for seed in (0, 1)])


def test_causes_are_the_recorded_ones_or_what_the_episode_shows() -> None:
    rows = [("reward_wrong", 1, ()), (None, 1, ()), (None, 0, ("shuffled",)), (None, 0, ())]
    found = transfer(each for seed, (cause, n_unknown, perturbations) in enumerate(rows) for each in (
        PlacedResult("p", "t", seed, "environment", True, cause, n_unknown, perturbations),
        PlacedResult("p", "t", seed, "real", False)))
    assert found.causes == {"reward_wrong": 1, "answer_unknown": 1, "perturbation": 1, "not_examined": 1}
    assert [(row.cause, row.share, row.tasks) for row in found.cause_shares] == [
        (cause, 0.25, ["t"]) for cause in ("answer_unknown", "not_examined", "perturbation", "reward_wrong")]


@pytest.mark.parametrize(("here", "there", "cause"), [
    ([_call("find", "3")], [_call("find", "4")], ("answer_wrong", 0, "find")),
    ([_call("find", '{"a": 1, "b": 2}')], [_call("find", '{"b":2,"a":1}')], ("reward_wrong", None, None)),
    ([_call("find", "[true]")], [_call("find", "[1]")], ("answer_wrong", 0, "find")),
    ([_call("find", "no")], [_call("find", "no", is_error=True)], ("answer_wrong", 0, "find")),
    ([_call("find", "Error: no", is_error=True)], [_call("find", "Error: no")], ("reward_wrong", None, None)),
    ([_call("find", "?", tier="unknown", is_error=True)], [_call("find", "4")], ("answer_unknown", 0, "find")),
    ([_say("Who?", "Ann"), _call("find", "3")], [_say("Who?", "Bo"), _call("find", "4")], ("user_differs", 0, None)),
    ([_say("Who?", "Ann"), _say("Bye")], [_say("Name?", "Bo"), _say("Bye")], ("policy_differs", 0, None)),
    ([_say("Who?"), _call("find", "3")], [_say("Name?"), _call("find", "4")], ("answer_wrong", 1, "find")),
    ([_call("find", "3")], [_call("get", "3")], ("policy_differs", 0, None)),
    ([_call("find", "3")], [_call("find", "3"), _call("get", "1")], ("policy_differs", 1, None)),
    ([_call("find", "3"), _say("Done")], [_call("find", "3"), _say("It is done")], ("policy_differs", 2, None)),
    ([_call("find", "3"), _say("Done")], [_call("find", "3"), _say("Done"), {"kind": "finish"}], ("reward_wrong", None, None))])
def test_the_first_difference_is_the_cause(
    here: list[dict[str, object]], there: list[dict[str, object]], cause: tuple[str, int | None, str | None],
) -> None:
    assert divergence(here, there) == Divergence(*cause)
    perturbed = divergence(here, there, is_perturbed=True).cause
    assert perturbed == (cause[0] if cause[0] in ("answer_unknown", "reward_wrong") else "perturbation")


def test_journals_explain_what_no_recorder_named() -> None:
    here = PlacedResult("p", "t", 0, "environment", True, None, 1, (), 0, (_call("find", "3"),))
    there = PlacedResult("p", "t", 0, "real", False, None, 0, (), 0, (_call("find", "4"),))
    assert diverged(here, there) == Divergence("answer_wrong", 0, "find"), "an unknown answer elsewhere does not decide"
    assert diverged(here, there._replace(rewarded=False)).cause == "answer_wrong"
    assert diverged(here, there._replace(rewarded=True)).cause == "reward_wrong", "it pays what the service judges a failure"
    assert diverged(here, there._replace(cause="user_differs")).cause == "user_differs"
    assert diverged(here, there._replace(journal=None)).cause == "answer_unknown"
    others = [each._replace(task_id=task) for task in ("u", "v", "w") for each in (here, there)]
    (share,) = transfer([here, there, *others]).cause_shares
    assert share == ("answer_wrong", 4, 1.0, {"find": 4}, ["t", "u", "v"])


def test_what_has_no_partner_counts_nowhere_and_a_double_is_refused() -> None:
    alone = [PlacedResult("p", "t", 0, "environment", True), PlacedResult("p", "t", 1, "real", True)]
    found = transfer(alone)
    assert found.n_pairs == 0 and found.n_alone == 2 and found.spearman is None and found.policies == []
    with pytest.raises(ValueError, match="two results of policy 'p'"):
        transfer([*alone, alone[0]])


@given(matrices(), st.randoms())
def test_order_does_not_matter_and_numbers_stay_in_bounds(results: list[PlacedResult], draw: random.Random) -> None:
    found = transfer(results, draws=30)
    mixed = list(results)
    draw.shuffle(mixed)
    assert transfer(mixed, draws=30) == found
    assert sum(row.n for row in found.policies) == found.n_pairs
    assert sum(found.causes.values()) == sum(row.n_disagree for row in found.tasks)
    assert all(-1 <= row.low <= row.high <= 1 for row in found.policies)
    assert found.spearman is None or -1 <= found.spearman <= 1
    assert found.regret is None or 0 <= found.regret <= 1
    assert all(row.gain_environment >= 0 and 0 <= row.regret <= 1 and row.n_checkpoints > 1 for row in found.tuning)


@given(matrices())
def test_a_place_compared_with_itself_agrees(results: list[PlacedResult]) -> None:
    ours = [each for each in results if each.place == "environment"]
    found = transfer([*ours, *(each._replace(place="real") for each in ours)], draws=30)
    assert not found.tasks and found.regret in (None, 0) and (found.spearman is None or found.spearman > 1 - 1e-9)
    assert all(row.low == row.difference == row.high == 0 for row in found.policies)


@given(matrices())
def test_a_matrix_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, results: list[PlacedResult]) -> None:
    path = tmp_path_factory.mktemp("matrix") / "m.jsonl"
    write_matrix(path, results)
    assert read_matrix(path) == results


@pytest.mark.parametrize("wrong", [
    "{", "[]", '{"policy": "p", "task_id": "t", "place": "real"}',
    '{"policy": "p", "task_id": "t", "place": "moon", "success": 1}',
    '{"policy": "p", "task_id": "t", "place": "real", "success": 2}',
    '{"policy": "p", "task_id": "t", "place": "real", "success": 0.5}',
    '{"policy": "p", "task_id": "t", "place": "real", "success": 1, "cause": "weather"}',
    '{"policy": "p", "task_id": "t", "place": "real", "success": 1, "step": -1}',
    '{"policy": "p", "task_id": "t", "place": "real", "success": 1, "checkpoint_of": "q"}',
    '{"policy": "p", "task_id": "t", "place": "real", "success": 1, "cause": ["weather"]}',
    '{"policy": "p", "task_id": "t", "place": "real", "success": 1, "rewarded": 2}',
    '{"policy": "p", "task_id": "t", "place": "real", "success": 1, "journal": {}}',
    '{"policy": "p", "task_id": "t", "place": "real", "success": 1, "journal": [{"kind": "call", "tool": "find"}]}'])
def test_a_line_that_is_no_result_is_named(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"policy": "p", "task_id": "t", "place": "real", "success": 1}\n' + wrong)
    with pytest.raises(InputError) as caught:
        read_matrix(path)
    assert "line 2" in str(caught.value)


def test_rollouts_are_results() -> None:
    row = {"policy": "p", "task_id": "t", "seed": 3, "attempt": 1, "n_unknown": 2, "perturbations": ["shuffled"]}
    first, *others = played_results([{**row, "reward": 1.0}, {**row, "reward": 0.5}, {**row, "reward": None}], "environment")
    assert first == PlacedResult("p", "t", 3, "environment", True, None, 2, ("shuffled",), 1)
    assert [each.success for each in others] == [False, None]


def test_the_command_keeps_what_it_prints(tmp_path: Path) -> None:
    environment, matrix = tmp_path / "environments" / "main", tmp_path / "m.jsonl"
    environment.mkdir(parents=True)
    (environment / "manifest.json").write_text('{"content_digest": "c0ffee"}')
    write_matrix(matrix, _results({"good": "11 11 11 10", "bad": "00 10 10 ?1"}))
    done = CliRunner().invoke(app, ["transfer", str(environment), "--matrix", str(matrix), "--json"])
    assert done.exit_code == 0, done.output
    kept = json.loads((tmp_path / "transfer" / "main.json").read_text())
    assert json.loads(done.stdout) == kept
    (figures,) = measured.released_figures(tmp_path, ["main", "other"]).values()
    assert figures["n_pairs"] == 7 and not {"policies", "tasks"} & figures.keys(), "no name goes into a release"
    (tmp_path / "rewards" / "main").mkdir(parents=True)
    (tmp_path / "rewards" / "main" / "rewards.json").write_text('{"rewards_digest": "other"}')
    assert measured.released_figures(tmp_path, ["main"]) == {}, "what was measured with other rewards is not carried"
    assert kept["content_digest"] == "c0ffee" and kept["regret"] == 0 and kept["policies"][0]["policy"] == "good"


def test_the_command_says_what_tuning_gained_and_a_release_carries_it_without_names(tmp_path: Path) -> None:
    environment, matrix = tmp_path / "environments" / "main", tmp_path / "m.jsonl"
    environment.mkdir(parents=True)
    (environment / "manifest.json").write_text('{"content_digest": "c0ffee"}')
    lines = [{"policy": "mine", "step": step, "task_id": f"t{task}", "place": place, "success": int(step > 0 or task > 3)}
             for step in (0, 50) for task in range(9) for place in PLACES]
    matrix.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = CliRunner().invoke(app, ["transfer", str(environment), "--matrix", str(matrix), "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["tuning"]
    assert (row["policy"], row["first"], row["chosen"], row["arrives"]) == ("mine", "mine, step 0", ["mine, step 50"], 1.0)
    assert "Tuning" in done.stderr and "+0.444" in done.stderr
    (carried,) = measured.released_figures(tmp_path, ["main"])["main"]["tuning"]
    assert carried["arrives"] == 1.0 and carried["regret"] == 0 and not {"policy", "first", "chosen"} & carried.keys()
    alone = CliRunner().invoke(app, ["transfer", str(environment), "--matrix", str(matrix), "--checkpoints-of", "mine"])
    assert isinstance(alone.exception, InputError)


def test_the_command_fails_where_nothing_can_be_compared(tmp_path: Path) -> None:
    environment, matrix = tmp_path / "environments" / "main", tmp_path / "m.jsonl"
    environment.mkdir(parents=True)
    (environment / "manifest.json").write_text('{"content_digest": "c0ffee"}')
    write_matrix(matrix, [PlacedResult("p", "t", 0, "real", True)])
    done = CliRunner().invoke(app, ["transfer", str(environment), "--matrix", str(matrix)])
    assert done.exit_code == 1 and not (tmp_path / "transfer").exists()
