"""The battery: what a reward pays for a part of the solution, and what is shown without deciding since it may be right."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from env_builder.audit import GradedAttack
from env_builder.runtime.canonical import canonical
from env_builder.verify import attack, verify
from tests.command_line import called
from tests.env_builder.test_verify import GATES, LOOK, OPEN, SAY, built, gates, write_lines

MUST_NOT_WRITE = ("must_not_write", {})
LOOKED = ("call", {"calls": [LOOK], "at_least": 1})
SPOKE = ("spoke", {"at_least": 1})
DECLINED = ("said", {"facts": [{"type": "words", "value": "may not"}]})
NO_CLAIM = ("not_said", {"facts": [{"type": "words", "value": "taken care"}]})


def attacked(
    out: Path, checks: list[Any], solution: list[dict[str, Any]], *sessions: list[dict[str, Any]], presumed: str = "",
    turn: str = "",
) -> dict[str, GradedAttack]:
    """Return what each attack comes to. `sessions`: others that are known to be good; `presumed`: a tool of unproven effect;
    `turn`: what the user says in the middle."""
    room, rewards = built(out, {"t": gates(*checks)}, {"t": solution})
    if turn:
        tasks = [json.loads(line) for line in (room / "tasks.jsonl").read_text("utf-8").splitlines()]
        write_lines(room / "tasks.jsonl", [task | {"user": {"turns": [turn]}} for task in tasks])
    write_lines(rewards / "sessions.jsonl", [
        {"task_id": "t", "session_id": f"s{n}", "probability": 0.95, "steps": steps} for n, steps in enumerate(sessions)])
    if presumed:
        programs = [json.loads(line) for line in (room / "behaviour.jsonl").read_text("utf-8").splitlines()]
        write_lines(room / "behaviour.jsonl", [
            program | {"effect": "unknown", "presumed": "read"} if program["tool"] == presumed else program
            for program in programs])
    graded = attack(room, rewards)["t"]
    assert isinstance(graded, list), graded
    return {each.attack if each.attack != "without_one" else each.description: each for each in graded}


def passing(attacks: dict[str, GradedAttack]) -> set[str]:
    return {name for name, each in attacks.items() if each.passes}


def test_a_sound_reward_stops_the_battery(tmp_path: Path) -> None:
    attacks = attacked(tmp_path, list(GATES), [LOOK, OPEN, SAY])
    assert not passing(attacks)
    assert {"liar", "lazy", "promises", "refuses", "says_everything", "hands_over", "reads_and_hands_over"} <= set(attacks)
    assert attacks["liar"].stopped_by == ["state"] and attacks["liar"].reward == 0.0
    ok = attacks["says_ok"]
    assert ok.reward == 1.0 and ok.excuse and not ok.passes, "the door is open, and nobody asked for more"


def test_a_reward_for_words_alone_pays_the_liar(tmp_path: Path) -> None:
    told = ("said", {"facts": [{"type": "number", "value": "4711"}]})
    assert "liar" in passing(attacked(tmp_path, [told, LOOKED], [LOOK, OPEN, SAY]))


def test_a_call_that_the_reward_does_not_need_is_named(tmp_path: Path) -> None:
    other = {"tool": "open", "arguments": {"door": 8}}
    checks = [("call", {"calls": [OPEN], "at_least": 1})]
    room, rewards = built(tmp_path, {"t": gates(*checks)}, {"t": [OPEN, other]})
    with (room / "recorded.jsonl").open("a", encoding="utf-8") as rows:
        rows.write(canonical({
            "tool": "open", "arguments": '{"door":8}', "content": "done", "is_error": False, "from": None, "to": None,
            "session": None, "after": [], "effects": [], "event": "e"}) + "\n")
    decision = verify(room, rewards).decisions.row(0, named=True)
    assert decision["reason"] == "attacker_passes"
    assert "without_one" in decision["detail"] and '{"door":8}' in decision["detail"]


def test_a_call_that_a_good_session_left_out_may_be_left_out(tmp_path: Path) -> None:
    other = {"tool": "burn", "arguments": {"door": 7}}
    called_it = ("call", {"calls": [OPEN], "at_least": 1})
    room, rewards = built(tmp_path, {"t": gates(called_it)}, {"t": [OPEN, other]})
    write_lines(rewards / "sessions.jsonl", [{"task_id": "t", "session_id": "s0", "probability": 0.95, "steps": [OPEN]}])
    with (room / "recorded.jsonl").open("a", encoding="utf-8") as rows:
        rows.write(canonical({
            "tool": "burn", "arguments": '{"door":7}', "content": "done", "is_error": False, "from": None, "to": None,
            "session": None, "after": [["open", '{"door":7}']], "effects": [], "event": "e"}) + "\n")
    graded = attack(room, rewards)["t"]
    assert isinstance(graded, list)
    left_out = {each.description: each for each in graded if each.attack == "without_one"}
    assert left_out['the solution without burn {"door":7}'].excuse
    assert not left_out['the solution without open {"door":7}'].excuse


def test_a_presumed_read_may_be_left_out_but_not_all_that_is_unproven(tmp_path: Path) -> None:
    attacks = attacked(tmp_path / "a", [("call", {"calls": [OPEN], "at_least": 1})], [LOOK, OPEN, SAY], presumed="look")
    without_look, without_open = (attacks[f"the solution without {step['tool']} {{\"door\":7}}"] for step in (LOOK, OPEN))
    assert without_look.reward == 1.0 and without_look.excuse, "a mere look must not be demanded"
    assert without_open.stopped_by == ["call"] and not passing(attacks)
    idle = attacked(tmp_path / "b", [SPOKE], [LOOK, SAY], presumed="look")
    assert {"lazy", "says_ok", "promises"} <= passing(idle), "and yet nobody is paid without a look"


def test_a_solution_that_denies_its_deed_is_an_attack(tmp_path: Path) -> None:
    weak = attacked(tmp_path / "weak", [*GATES], [OPEN, SAY])
    assert weak["denies"].reward == 1.0 and weak["denies"].excuse
    strong = attacked(tmp_path / "strong", [*GATES, ("not_denied", {"after": [OPEN]})], [OPEN, SAY])
    assert strong["denies"].stopped_by == ["not_denied"]


def test_idle_conduct_is_stopped_where_the_solution_declines(tmp_path: Path) -> None:
    solution = [LOOK, {"say": "I may not open it."}]
    weak = attacked(tmp_path / "weak", [MUST_NOT_WRITE, SPOKE, LOOKED], solution)
    assert passing(weak) == {"says_ok", "echoes", "lazy", "promises", "says_everything"}
    assert weak["reads_and_hands_over"].reward == 1.0 and weak["reads_and_hands_over"].excuse
    assert weak["hands_over"].stopped_by == ["call"]
    assert "refuses" not in weak, "a refusal is right here"
    assert not passing(attacked(tmp_path / "strong", [MUST_NOT_WRITE, LOOKED, DECLINED, NO_CLAIM], solution))


def test_a_refusal_beside_a_change_is_half_of_the_work(tmp_path: Path) -> None:
    both = [LOOK, OPEN, SAY, {"say": "I can't paint it."}]
    refused = ("declined", {"wanted": True})
    assert passing(attacked(tmp_path / "weak", list(GATES), both)) == {"half"}
    assert attacked(tmp_path / "strong", [*GATES, refused], both)["half"].stopped_by == ["declined"]
    excused = attacked(tmp_path / "good", list(GATES), both, [LOOK, OPEN, SAY])["half"]
    assert excused.excuse and not excused.passes, "a good session declined nothing"
    assert "half" not in attacked(tmp_path / "alone", [MUST_NOT_WRITE, DECLINED], [LOOK, {"say": "I may not open it."}])


def test_one_of_two_answers_is_half_of_the_work(tmp_path: Path) -> None:
    both = [LOOK, {"say": "Its code is 4711."}, {"say": "It was built on 2024-05-15."}]
    code = ("said", {"facts": [{"type": "number", "value": "4711"}]})
    day = ("said", {"facts": [{"type": "date", "value": "2024-05-15"}]})
    weak = [MUST_NOT_WRITE, LOOKED, code]
    more = "Also, when was it built?"
    assert "answers_half" in passing(attacked(tmp_path / "weak", weak, both, turn=more))
    assert "answers_half" not in passing(attacked(tmp_path / "strong", [*weak, day], both, turn=more))
    assert "answers_half" not in passing(attacked(tmp_path / "good", weak, both, both[:2], turn=more)), "it is no answer"
    assert "answers_half" not in attacked(tmp_path / "one", weak, both), "nobody asked for more"


def test_the_familys_usual_write_call_is_forbidden_where_the_solution_declines(tmp_path: Path) -> None:
    declines, opens = [LOOK, {"say": "I may not open it."}], [OPEN, SAY]
    room, rewards = built(tmp_path, {"t": gates(DECLINED, LOOKED), "u": gates(*GATES)}, {"t": declines, "u": opens})
    graded = attack(room, rewards, ["t"])["t"]
    assert isinstance(graded, list)
    forbidden = next(each for each in graded if each.attack == "forbidden")
    assert forbidden.passes and OPEN["tool"] in forbidden.description and '{"door":7}' in forbidden.description


@pytest.mark.parametrize("ignored", [{"ignored_arguments": {"open": ["note"]}}, {"ignored_tools": ["open"]}])
def test_a_text_that_the_rubric_ignores_may_not_be_anything(tmp_path: Path, ignored: dict[str, Any]) -> None:
    noted = {"tool": "open", "arguments": {"door": 7, "note": "ring twice"}}
    end = {"documents": {}, "write_calls": [["open", canonical(noted["arguments"])]]}
    room, rewards = built(tmp_path, {"t": gates(("state", {"accepted": [end], **ignored}), SPOKE)}, {"t": [noted, SAY]})
    with (room / "recorded.jsonl").open("a", encoding="utf-8") as rows:
        rows.writelines(canonical({
            "tool": "open", "arguments": canonical(noted["arguments"] | {"note": note}), "content": "done", "is_error": False,
            "from": None, "to": None, "session": None, "after": [], "effects": [], "event": note}) + "\n"
            for note in ("ring twice", "x"))
    decision = verify(room, rewards).decisions.row(0, named=True)
    graded = attack(room, rewards)["t"]
    assert isinstance(graded, list)
    assert next(each for each in graded if each.attack == "free_text_x").passes
    assert decision["reason"] == "attacker_passes"


def test_published_tasks_of_a_real_log_stop_the_battery(sample_run: Path, tmp_path: Path) -> None:
    environment = next((sample_run / "environments").iterdir())
    done = called("attack", environment, "--json")
    tasks = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert tasks and not any(each["passes"] for task in tasks for each in task["attacks"])
    assert all(len(task["attacks"]) >= 7 and task["reason"] is None for task in tasks)
    one = called("attack", environment, tasks[0]["task_id"])
    assert one.returncode == 0 and "stopped by" in one.stderr and "1 of 1 tasks stop every attack" in one.stderr

    none = called("attack", sample_run / "unverified" / environment.name)
    assert none.returncode == 2 and "no task here could be attacked" in none.stderr, none.stderr

    shutil.copytree(sample_run, tmp_path / "out")
    rubrics = tmp_path / "out" / "rewards" / environment.name / "rubrics.jsonl"
    spoilt = [json.loads(line) for line in rubrics.read_text("utf-8").splitlines()]
    for rubric in spoilt:
        rubric["checks"] = gates(SPOKE)
    write_lines(rubrics, spoilt)
    paid = called("attack", tmp_path / "out" / "environments" / environment.name)
    assert paid.returncode == 1 and "do not stop every attack" in paid.stderr and "lazy" in paid.stderr
