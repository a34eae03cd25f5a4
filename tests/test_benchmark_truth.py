"""The benchmark of truth pools counts over services, and changes of logs and steps what it says it changes."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import truth_attacks
import truth_injections
import truth_outcomes
import truth_policies
from truth_data import Job, data_sets, stage, truths
from truth_figures import assemble
from truth_precision import holds


def _build(grades: dict[str, int], **counts: int) -> dict[str, Any]:
    """Return what one build was counted as."""
    names = ("published", "no_truth", "scored", "agree", "sound", "solution_right", "merged_wrongly", "good", "good_sound")
    return {"grades": grades, "counts": {name: counts.get(name, 0) for name in names}, "errors": []}


def test_counts_are_pooled_over_services_before_they_are_divided() -> None:
    small = _build({"liar wrong paid": 1}, published=1, scored=1, sound=0, good=10, good_sound=0)
    large = _build({"liar wrong unpaid": 9}, published=10, no_truth=1, scored=9, sound=9, good=90, good_sound=45)
    large["counts"] |= {"good_act": 60, "sound_act": 15, "good_refuse": 30}
    figures = truth_policies.of_way([small, large])
    assert figures["sound"] == 0.9, "9 of 10 tasks, not the mean of 0 and 1"
    assert figures["published"] == 0.45 and figures["no_truth"] == 0.0909 and figures["tasks"] == 11
    assert [figures[f"published_{kind}"] for kind in truth_policies.KINDS] == [0.25, 0.0, None]
    assert truth_policies.paid_share(truth_policies.pooled([small, large], "grades"), "liar") == 0.1


def test_a_paid_policy_is_reported_from_its_worst_way_and_right_ones_apart_from_refusals() -> None:
    logs = _build({"lazy wrong paid": 1, "lazy wrong unpaid": 1, "lazy wrong ungraded": 2, "refuses right unpaid": 1,
                   "refuses wrong paid": 1, "refuses wrong unpaid": 3, "right right unpaid": 1, "right right paid": 3})
    feedback = _build({"lazy wrong unpaid": 1, "right_with_error right ungraded": 1})
    figures = truth_policies.policy_figures({"logs": [logs], "feedback": [feedback]})
    assert figures["zoo_paid_lazy"] == 0.25 and figures["zoo_paid_refuses"] == 0.25 and figures["zoo_paid_liar"] is None
    assert figures["zoo_right_punished_logs"] == 0.25 and figures["zoo_refusals_punished_logs"] == 1.0
    assert figures["zoo_refusals_punished_feedback"] is None and figures["zoo_errors_ungraded_feedback"] == 1.0
    assert figures["zoo_ungraded_logs"] == 0.1538


def test_verdicts_of_the_desk_are_wrong_of_graded_ones() -> None:
    desk = _build({"right right unpaid": 1, "right right paid": 5, "liar wrong paid": 1, "liar wrong unpaid": 1,
                   "half wrong ungraded": 2})
    assert truth_policies.desk_figures([desk]) == {"policies_wrong": 0.25, "unscored": 0.2}


def test_a_session_without_a_probability_counts_as_the_base_rate() -> None:
    silent = truth_outcomes._separation([(True, None), (False, None), (True, None)])
    assert silent["auroc"] == 0.5 and silent["n_judged"] == 0
    sharp = truth_outcomes._separation([(True, 0.9), (False, 0.2), (True, None)])
    assert sharp["auroc"] == 1.0 and (sharp["n_high"], sharp["n_high_good"]) == (1, 1)
    assert truth_outcomes.mean_auroc([silent, sharp, {**sharp, "auroc": None}]) == 0.75
    assert truth_outcomes.coverage([silent, sharp]) == 0.3333


def test_the_worst_service_needs_enough_sessions_of_a_high_probability() -> None:
    few = {"n_high": truth_outcomes.FEWEST - 1, "n_high_good": 0}
    many = {"n_high": 20, "n_high_good": 15}
    assert truth_outcomes.worst_high([few, many]) == 0.75 and truth_outcomes.worst_high([few]) is None


def test_builds_that_failed_leave_a_note_and_no_figure() -> None:
    note = "traceroom has no command review"
    report = assemble([{"set": "desk", "kind": "zoo", "way": "reviews", "note": note, "seconds": 1.0}])
    assert report["notes"] == {"desk, reviews": note} and report["figures"] == {} == report["errors"]


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """Return logs of 64 sessions of two kinds, with a truth."""
    folder = tmp_path / "office"
    (folder / "logs").mkdir(parents=True)
    (folder / "truth").mkdir()
    logs, truth = [], []
    for number in range(64):
        tool, args = [("send_note", {"to": "Ann"}), ("list_notes", {"of": "Bob"})][number % 2]
        call = {"function": tool, "args": args}
        logs.append({"session_id": f"s{number}", "service": "notes", "messages": [
            {"role": "user", "content": f"request {number % 2}"}, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "done", "tool_call_id": None, "tool_call": call, "error": None},
            {"role": "assistant", "content": "Done."}]})
        truth.append({"session_id": f"s{number}", "service": "notes", "task_id": f"t{number % 4}", "success": number % 3 == 0})
    for path, lines in ((folder / "logs" / "notes.jsonl", logs), (folder / "truth" / "sessions.jsonl", truth)):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


def test_a_build_never_sees_the_truth(office: Path, tmp_path: Path) -> None:
    (office / "feedback").mkdir()
    (office / "SOURCE.md").write_text("the policy", "utf-8")
    assert [each.kind for each in data_sets([office.parent])] == ["plain"] and sum(truths(office).values()) == 22
    names = {way: {path.name for path in stage(office, way, tmp_path / way).iterdir()} for way in ("logs", "feedback")}
    assert names == {"logs": {"logs"}, "feedback": {"logs", "feedback"}}


def test_a_gate_is_added_to_what_describes_the_logs(office: Path, tmp_path: Path) -> None:
    (office / "traceroom.toml").write_text("[sessions]\npause_s = 60\n", "utf-8")
    [data] = data_sets([office.parent])
    config = (Job(data, "logs", tmp_path, 0.5).staged(tmp_path) / "traceroom.toml").read_text("utf-8")
    assert tomllib.loads(config) == {"sessions": {"pause_s": 60}, "gates": {"min_precision": 0.5}}
    assert (Job(data, "logs", tmp_path).staged(tmp_path / "plain") / "traceroom.toml").read_text("utf-8") in config


def test_thinned_logs_have_one_session_a_request(office: Path, tmp_path: Path) -> None:
    staged = stage(office, "logs", tmp_path / "in")
    assert truth_outcomes.thin(staged, office) == {"kept": 4, "read": 64}
    again = stage(office, "logs", tmp_path / "again")
    truth_outcomes.thin(again, office)
    assert (staged / "logs/notes.jsonl").read_bytes() == (again / "logs/notes.jsonl").read_bytes()


def test_injected_calls_are_ones_that_the_request_never_needed(office: Path) -> None:
    injections = truth_injections.inject(office / "logs")
    lines = (office / "logs/notes.jsonl").read_text("utf-8").splitlines()
    sessions = {row["session_id"]: row for row in map(json.loads, lines)}
    assert injections and any(each.obeyed for each in injections)
    for each in injections:
        messages = sessions[each.session_id]["messages"]
        called = [call["function"] for message in messages for call in message.get("tool_calls", ())]
        assert each.text in messages[2]["content"] and (called.count(each.tool) == 1) == each.obeyed
        assert len(messages) == (6 if each.obeyed else 4)


def test_attacks_change_words_and_texts_and_nothing_else() -> None:
    write = {"tool": "send", "arguments": {"to": "Ann", "text": "see you at nine", "title": "about our plan"}}
    steps = [{"say": "One moment."}, write, {"say": "Sent."}]
    assert truth_attacks.contradict(steps, {"send"}) == [*steps[:2], {"say": truth_attacks.CONTRADICTION}]
    assert truth_attacks.say_always(steps, "ok") == [{"say": "ok"}, write, {"say": "ok"}]
    texts = [tuple(masked[1]["arguments"].values()) for masked in truth_attacks.mask(steps)]
    assert texts == [("Ann", "x", "x"), ("Ann", "x", "about our plan"), ("Ann", "see you at nine", "x")]
    assert write["arguments"]["text"] == "see you at nine" and not list(truth_attacks.mask(steps[:1]))


def test_an_interval_is_held_against_the_true_share() -> None:
    stated = {"low": 0.9, "high": 1.0}
    assert holds(stated, 10, 9) is True and holds(stated, 10, 8) is False
    assert holds(None, 10, 9) is None and holds(stated, 0, 0) is None
