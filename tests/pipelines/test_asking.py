"""`traceroom shopping`, `ask-real` and `review --answers`: what real tools answer makes unscored episodes scoreable."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime import Environment
from env_builder.runtime.bindings import Ask, Reply
from env_builder.runtime.trajectory import Recorder, journal
from extractors.formats.real_answer import problem_of
from pipelines.reviewing.answers import accept_answers
from pipelines.rollouts.asking import RealTools, answers_of
from pipelines.rollouts.shopping import needs_of, shopping_list
from tests.pipelines.conftest import LAMP_SHOP, Traceroom, files
from warehouse.errors import Unavailable
from warehouse.store import Store

Row = dict[str, Any]
NOW = datetime(2026, 3, 9, tzinfo=UTC)
REFUND = "refund_order"
SHOP = '''
"""A shop that keeps what was done to it in this folder: begun again with each session."""

import json
from datetime import UTC, datetime
from pathlib import Path

DONE = Path(__file__).with_name("done.json")


def reset(task_id, session_ids, starts_at, seed, attempt):
    DONE.write_text("[]")
    return ""


def refund(order_id, reason):
    assert json.loads(DONE.read_text()) == [], "nothing was refunded since the session began"
    return json.dumps({"error": f"order {order_id} was refunded before"})
'''


def environment_of(out: Path) -> Path:
    return min((out / "environments").iterdir())


def solutions(out: Path) -> dict[str, list[Row]]:
    rows = (out / "rewards" / environment_of(out).name / "solutions.jsonl").read_text("utf-8").splitlines()
    return {row["task_id"]: row["steps"] for row in map(json.loads, rows)}


def played(environment: Environment, task_id: str, steps: list[Row], number: int = 0) -> Row:
    """Return the trajectory of an episode."""
    begun = environment.reset(task_id)
    recorder = Recorder(environment)
    recorder.begin(begun.messages)
    for step in steps:
        recorder.turn()
        if "say" in step:
            recorder.say(step["say"])
        else:
            recorder.call(step["tool"], step["arguments"])
    recorder.finish()
    about = {"episode_id": f"{task_id}:{number}", "task_id": task_id, "seed": 0, "perturbations": []}
    return recorder.trajectory("test", about, environment.grade())


def refunding(order_id: str) -> Row:
    return {"tool": REFUND, "arguments": {"order_id": order_id, "reason": "it is broken"}}


def unscored(out: Path) -> list[Row]:
    """Return episodes that do what is right, and refund an order that the log has no refund of, once or twice. No task whose
    solution refunds is among them."""
    environment = Environment.load(environment_of(out))
    rows = []
    for task_id, steps in solutions(out).items():
        *first, last = steps
        if any(step.get("tool") == REFUND for step in steps):
            continue
        for number, extra in enumerate(([refunding("ORD-1003")], [refunding("ORD-1003")] * 2)):
            row = played(environment, task_id, [*first, *extra, last], number)
            rows += [row] if row["extra"]["traceroom"]["reward"] is None else []
    assert rows, "no task is left unscored by an unknown refund"
    return rows


def item(tool: str = "look", writes: bool = False, **more: Any) -> Row:
    call = {"tool": tool, "arguments": {"id": 1}, "content": None, "is_error": None}
    return {"service": "desk", "session_id": "s1", "task_id": "t1", "starts_at": None, "tool_calls": [call], "writes": writes,
            **more}


def asking(*items: Row, reset: bool = True, may_write: bool = True, **bound: Any) -> list[Row]:
    tools = RealTools(bound, (lambda ask: "") if reset else None, may_write, 2.0)
    return list(answers_of(items, tools, lambda _: None))


@pytest.mark.slow
def test_the_whole_way_from_unknown_to_scored(tmp_path: Path, traceroom: Traceroom) -> None:
    out = tmp_path / "out"
    assert traceroom("run", "--no-image", "--privacy", "off", LAMP_SHOP, "--out", out).returncode == 0
    path, episodes = environment_of(out), unscored(out)
    rollouts = out / "rollouts" / path.name
    rollouts.mkdir(parents=True)
    (rollouts / "trajectories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in episodes), "utf-8")
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")

    items, answers = tmp_path / "items.jsonl", tmp_path / "answers.jsonl"
    done = traceroom("shopping", path, "--export", items, "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert listed["n_unscored"] == len(episodes) and listed["items"][0]["tool_calls"][-1]["tool"] == REFUND
    done = traceroom("ask-real", items, "--bind", f"{REFUND}=python:{tmp_path / 'shop.py'}:refund", "--to", answers)
    assert "--allow-writes" in done.stderr and answers.read_text("utf-8") == ""

    answers_of_tools = known_answers(listed["items"])
    tools = "".join(f"def {tool}(**arguments):\n    return {own!r}[json.dumps(arguments, sort_keys=True)]\n\n\n"
                    for tool, own in answers_of_tools.items())
    (tmp_path / "all.py").write_text(f"{SHOP}\n\n{tools}", "utf-8")
    done = traceroom(
        "ask-real", items, "--bind", f"{REFUND}=python:{tmp_path / 'all.py'}:refund",
        *(part for tool in answers_of_tools for part in ("--bind", f"{tool}=python:{tmp_path / 'all.py'}:{tool}")),
        "--reset", f"python:{tmp_path / 'all.py'}:reset", "--allow-writes", "--per-second", "10000", "--to", answers)
    assert done.returncode == 0 and "0 after a call" in done.stderr, done.stderr
    done = traceroom("review", out, "--answers", answers, "--reviewer", "Ada")
    assert "undecided" in done.stderr and not (out / "answers.jsonl").read_text("utf-8")
    done = traceroom("review", out, "--answers", answers, "--reviewer", "Ada", "--accept-all")
    assert f"{len(listed['items'])} answers" in done.stderr, done.stderr

    before = files(out)
    done = traceroom("run", "--no-image", "--privacy", "off", LAMP_SHOP, "--out", out)
    assert done.returncode == 0, done.stderr
    with Store.published(out / "warehouse.duckdb") as store:
        taken = store.read("select reason, count(*) as n from mart.decisions where reason like 'answer%' group by all")
    assert dict(taken.iter_rows()) == {"answer_taken": len(listed["items"])}
    today = Environment.load(path)
    graded = [today.grade_journal(row["extra"]["traceroom"]["task_id"], journal(row)) for row in episodes]
    assert [grade.reward for grade in graded] == [1.0] * len(episodes), "what was refused changed nothing"
    same = {name for name, content in files(out).items() if before.get(name) == content}
    wanted = {f"environments/{path.name}/tasks.jsonl", f"datasets/{path.name}/sft.train.jsonl"}
    assert wanted <= same, "an answer is no session"

    lines = [json.loads(line) for line in answers.read_text("utf-8").splitlines()]
    answers.write_text("".join(json.dumps({**line, "accepted": False}) + "\n" for line in lines), "utf-8")
    assert traceroom("review", out, "--answers", answers, "--reviewer", "Ada").returncode == 0
    assert traceroom("run", "--no-image", "--privacy", "off", LAMP_SHOP, "--out", out).returncode == 0
    assert files(out) == before, "declined, it is as it was"


def known_answers(items: list[Row]) -> dict[str, dict[str, str]]:
    """Return what the environment itself answered to the earlier calls, by tool: the service is like it there."""
    answers: dict[str, dict[str, str]] = {}
    for call in (call for row in items for call in row["tool_calls"] if call["content"] is not None):
        answers.setdefault(call["tool"], {})[json.dumps(call["arguments"], sort_keys=True)] = call["content"]
    return answers


def test_what_is_needed_more_often_comes_first(lamp_run: Path) -> None:
    environment, episodes = Environment.load(environment_of(lamp_run)), unscored(lamp_run)
    listed = shopping_list(environment, episodes, 100)
    assert [each.n_scoreable for each in listed.items] == sorted(each.n_scoreable for each in listed.items)
    assert listed.items[-1].n_scoreable == len(episodes) == listed.n_unscored
    assert len(shopping_list(environment, episodes, most=1).items) == 1
    assert all(item.writes for each in needs_of(environment, episodes) for item in each.values())
    scored = [{**row, "extra": {"traceroom": {**row["extra"]["traceroom"], "reward": 0.0}}} for row in episodes]
    assert shopping_list(environment, scored) == ([], len(episodes), 0, 0)


def test_calls_that_may_write_are_asked_where_that_is_allowed_and_can_be_undone() -> None:
    answers: dict[str, Any] = {"look": lambda ask: "7", "put": lambda ask: Reply("no", True)}
    assert "--allow-writes" in asking(item("put", True), may_write=False, **answers)[0]["problem"]
    assert "--reset" in asking(item("put", True), reset=False, **answers)[0]["problem"]
    assert "nothing is bound to put" in asking(item("put", True), look=answers["look"])[0]["problem"]
    row, = asking(item("put", True), **answers)
    assert row["tool_calls"][0]["is_error"] and row["as_of"] == "start" and row["accepted"] is None
    assert asking(item(), reset=False, **answers)[0]["as_of"] == "now"
    assert "does not know" in asking(item(), look=lambda ask: None)[0]["problem"]


def test_an_earlier_call_that_is_answered_otherwise_is_named_and_never_accepted_unseen(tmp_path: Path) -> None:
    earlier = {"tool": "look", "arguments": {"id": 2}, "content": "8", "is_error": False}
    two = item(tool_calls=[earlier, *item()["tool_calls"]])
    row, = asking(two, look=lambda ask: "7")
    assert row["differs"] == "look"
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps(row) + "\n" + json.dumps({**row, "differs": None}) + "\nnothing\n", "utf-8")
    result = accept_answers(answers, tmp_path / "out.jsonl", "Ada", NOW, accept_all=True)
    assert (result.n_new, len(result.undecided), [each["line"] for each in result.rejected]) == (1, 1, [3])
    assert accept_answers(answers, tmp_path / "out.jsonl", "Ada", NOW, accept_all=True).n_known == 1
    answers.write_text(json.dumps({**row, "accepted": False}), "utf-8")
    assert accept_answers(answers, tmp_path / "out.jsonl", "Ada", NOW).n_new == 1, "a later decision is another one"


def test_calls_come_at_a_bounded_rate_and_a_service_that_is_gone_is_said() -> None:
    pauses: list[float] = []
    tools = RealTools({"look": lambda ask: "7"}, None, False, 4.0)
    assert len(list(answers_of([item(), item(), item()], tools, pauses.append))) == 3
    assert pauses == [0.25, 0.25]

    def gone(ask: Ask) -> str:
        raise OSError("refused")

    with pytest.raises(Unavailable, match="look"):
        asking(item(), look=gone)


@pytest.mark.parametrize(("change", "problem"), [
    ({"reviewer": " "}, "'reviewer' is no text"), ({"accepted": None}, "'accepted' is neither"),
    ({"tool_calls": []}, "'tool_calls' is no list"),
    ({"as_of": "later"}, "'as_of' is none of"), ({"asked_at": "noon"}, "'asked_at' is no time"),
    ({"tool_calls": [{"tool": "look", "arguments": "{}"}]}, "a call's 'arguments'"), ({}, None)])
def test_a_line_that_is_no_answer_has_a_reason(change: Row, problem: str | None) -> None:
    call = {"tool": "look", "arguments": {}, "content": "7", "is_error": False}
    line = {"service": "desk", "session_id": "s1", "accepted": True, "reviewer": "Ada", "tool_calls": [call]}
    stated = problem_of({**line, **change})
    assert (stated is None) if problem is None else (stated or "").startswith(problem)
