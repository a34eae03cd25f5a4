"""`traceroom review`: which sessions come first, a random sample, files to and from elsewhere, and the gate on precision."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from extractors.formats.review import problem_of
from pipelines.reviewing.cases import Case
from pipelines.reviewing.files import LABEL_CONFIG, append_reviews, export_queue, import_reviews, stored_reviews
from pipelines.reviewing.queue import QueueItem
from tests.pipelines.conftest import LAMP_SHOP, Traceroom, files
from warehouse.store import Store

NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)


@pytest.fixture
def ran(lamp_run: Path) -> Path:
    return lamp_run


def printed(traceroom: Traceroom, *arguments: str | Path) -> dict[str, Any]:
    done = traceroom(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def item(number: int = 1, sampled: bool = False) -> QueueItem:
    return QueueItem(f"s{number}", "desk", f"t{number}", "change it", 0.4, 1.5, "because", sampled)


def case() -> Case:
    call = {"tool": "set", "arguments": '{"id": 1}', "answer": "ok", "is_error": False, "changes": True}
    return Case(["change it"], ["Only if it is open."], [{"role": "user", "content": "change it"}, call], [call], "Done.")


def test_the_queue_has_the_sessions_whose_answer_opens_tasks_most_first(ran: Path, traceroom: Traceroom) -> None:
    document = printed(traceroom, "review", ran, "--limit", "12")
    queue = document["queue"]
    assert len(queue) == 12 and [row["n_tasks"] for row in queue] == sorted((row["n_tasks"] for row in queue), reverse=True)
    assert len({row["session_id"] for row in queue}) == 12 and not any(row["is_sampled"] for row in queue)
    with Store.published(ran / "warehouse.duckdb") as store:
        published = set(store.read("select subject from mart.decisions where stage = 'verify' and kept")["subject"])
    assert published.isdisjoint(row["task_id"] for row in queue)
    assert document == printed(traceroom, "review", ran, "--limit", "12")
    assert document["statement"].startswith("Not reviewed: of the ") and document["n_reviews"] == 0


def test_a_sample_is_drawn_by_its_seed_from_the_published_tasks(ran: Path, traceroom: Traceroom) -> None:
    sample = printed(traceroom, "review", ran, "--sample", "4")["queue"]
    assert len(sample) == 4 and all(row["is_sampled"] for row in sample)
    assert sample == printed(traceroom, "review", ran, "--sample", "4")["queue"]
    assert sample == printed(traceroom, "review", ran, "--sample", "6")["queue"][:4]
    assert sample != printed(traceroom, "review", ran, "--sample", "4", "--seed", "1")["queue"]
    with Store.published(ran / "warehouse.duckdb") as store:
        published = set(store.read("select subject from mart.decisions where stage = 'verify' and kept")["subject"])
    assert published.issuperset(row["task_id"] for row in sample)


def test_an_unknown_service_is_named_with_those_there_are(ran: Path, traceroom: Traceroom) -> None:
    done = traceroom("review", ran, "--service", "nowhere")
    assert done.returncode == 2 and "nowhere" in done.stderr and "shop_refunds" in done.stderr


def test_a_missing_file_of_answers_is_one_sentence(ran: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    done = traceroom("review", ran, "--import", tmp_path / "none.jsonl")
    assert done.returncode == 2 and "none.jsonl: there is no such file" in done.stderr and "Errno" not in done.stderr


@pytest.mark.slow
def test_answers_open_tasks_and_random_ones_measure_the_precision(ran: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    out = tmp_path / "out"
    shutil.copytree(ran, out)
    cases = tmp_path / "cases.jsonl"
    before = _published(out)
    opened = printed(traceroom, "review", out, "--limit", "6", "--export", cases)["queue"]
    _answer(cases, True)
    document = printed(traceroom, "review", out, "--import", cases, "--reviewer", "Ada")
    assert document == {"n_new": 6, "n_known": 0, "n_unanswered": 0, "rejected": []}
    assert printed(traceroom, "review", out, "--import", cases, "--reviewer", "Ada")["n_known"] == 6
    printed(traceroom, "review", out, "--sample", "5", "--export", cases)
    _answer(cases, True)
    printed(traceroom, "review", out, "--import", cases, "--reviewer", "Ada")
    made = printed(traceroom, "run", LAMP_SHOP, "--out", out, "--no-image")
    assert _published(out) - before and (_published(out) - before) <= {row["task_id"] for row in opened}
    assert made["precision"]["n_reviews"] == 5 and "5 random reviews" in made["statement"]
    [manifest] = [json.loads(path.read_text()) for path in (out / "environments").glob("*/manifest.json")]
    assert manifest["precision"]["n_reviews"] == 5 and 0.45 < manifest["precision"]["low"] <= manifest["precision"]["estimate"]
    again = tmp_path / "again"
    again.mkdir()
    shutil.copy(out / "reviews.jsonl", again / "reviews.jsonl")
    assert traceroom("run", LAMP_SHOP, "--out", again, "--no-image").returncode == 0
    assert files(again) == files(out)
    assert traceroom("report", "--out", out).returncode == 0
    assert "by 5 random reviews" in (out / "report" / "index.html").read_text()


@pytest.mark.slow
def test_tasks_below_min_precision_stay_unverified_and_come_into_the_queue(
        ran: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    out, config = tmp_path / "out", tmp_path / "traceroom.toml"
    shutil.copytree(ran, out)
    before = _published(out)
    config.write_text("[gates]\nmin_precision = 0.97\n")
    assert traceroom("run", LAMP_SHOP, "--out", out, "--config", config, "--no-image").returncode == 0
    with Store.published(out / "warehouse.duckdb") as store:
        below = store.read("select subject, detail from mart.decisions where stage = 'verify' and not kept and "
                           "reason = 'below_min_precision'")
    assert below.height and _published(out) == before - set(below["subject"])
    assert all("below min_precision (0.97); review session " in detail for detail in below["detail"])
    tasks = (out / "unverified" / "shop-refunds" / "tasks.jsonl").read_text().splitlines()
    assert {json.loads(line)["task_id"] for line in tasks} >= set(below["subject"])
    queue = printed(traceroom, "review", out, "--limit", "60")["queue"]
    assert set(below["subject"]) <= {
        row["task_id"] for row in queue if row["why"] == "its task passed the audit, but its reward may be wrong"}


def _published(out: Path) -> set[str]:
    with Store.published(out / "warehouse.duckdb") as store:
        return set(store.read("select subject from mart.decisions where stage = 'verify' and kept")["subject"])


def _answer(cases: Path, right: bool) -> None:
    rows = [json.loads(line) | {"right": right, "reason": "looked"} for line in cases.read_text().splitlines()]
    assert all(row["request"] and row["steps"] for row in rows)
    cases.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_wrong_rows_are_rejected_with_their_reason_and_the_others_imported(tmp_path: Path) -> None:
    path, target = tmp_path / "answers.jsonl", tmp_path / "out" / "reviews.jsonl"
    rows: list[Any] = [
        {"session_id": "a", "right": True, "reviewer": "Grace", "reviewed_at": "2026-11-21T08:00:00Z", "steps": []},
        {"session_id": "a", "right": None}, {"session_id": "b", "right": "yes"}, {"right": True}, [1],
        {"session_id": "c", "right": False, "reviewed_at": "noon"}, {"session_id": "d", "right": False}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    result = import_reviews(path, target, "Ada", NOW)
    assert (result.n_new, result.n_known, result.n_unanswered) == (2, 0, 1)
    assert [(row["line"], row["problem"]) for row in result.rejected] == [
        (3, "'right' is neither true nor false"), (4, "'session_id' is no text"), (5, "it is no JSON object"),
        (6, "'reviewed_at' is no time"), (8, "it is no JSON object")]
    assert stored_reviews(target) == [
        {"session_id": "a", "right": True, "reviewer": "Grace", "reviewed_at": "2026-11-21T08:00:00Z"},
        {"session_id": "d", "right": False, "reviewer": "Ada", "reviewed_at": "2026-11-22T10:00:00.000000Z"}]
    bytes_before = target.read_bytes()
    assert import_reviews(path, target, "Ada", NOW.replace(hour=12))[:2] == (0, 2)
    assert target.read_bytes() == bytes_before


def test_a_changed_answer_is_a_new_line(tmp_path: Path) -> None:
    target = tmp_path / "reviews.jsonl"
    row = {"session_id": "a", "right": True, "reviewer": "Ada"}
    assert append_reviews(target, [row], NOW) == 1
    assert append_reviews(target, [row], NOW) == 0
    assert append_reviews(target, [row | {"right": False}], NOW) == 1


def test_label_studio_gets_tasks_and_gives_reviews(tmp_path: Path) -> None:
    path = tmp_path / "queue.json"
    assert export_queue(path, "label-studio", [(item(), case()), (item(2, True), case())]) == [path, path.with_suffix(".xml")]
    tasks = json.loads(path.read_text())
    names = set(tasks[0]["data"])
    assert all(f'value="${name}"' in LABEL_CONFIG for name in ("request", "policy", "work", "end"))
    assert names >= {"request", "policy", "work", "end", "session_id", "task_id", "sampled"}
    assert "set {" in tasks[0]["data"]["work"] and "Done." in tasks[0]["data"]["end"]

    def annotation(choice: str, who: Any, **more: Any) -> dict[str, Any]:
        return {"completed_by": who, "created_at": "2026-11-21T08:00:00.5Z", "result": [
            {"from_name": "right", "to_name": "work", "type": "choices", "value": {"choices": [choice]}},
            {"from_name": "reason", "to_name": "work", "type": "textarea", "value": {"text": ["the wrong day"]}}], **more}

    tasks[0] |= {"id": 1, "annotations": [annotation("wrong", {"id": 3, "email": "ada@example.org"}), annotation("right", 4),
                                          annotation("right", 5, was_cancelled=True)]}
    tasks[1] |= {"id": 2, "annotations": []}
    path.write_text(json.dumps(tasks))
    result = import_reviews(path, tmp_path / "reviews.jsonl", "nobody", NOW)
    assert (result.n_new, result.n_unanswered, result.rejected) == (2, 1, [])
    wrong, right = stored_reviews(tmp_path / "reviews.jsonl")
    assert (wrong["reviewer"], wrong["right"], wrong["reason"], wrong["task_id"]) == (
        "ada@example.org", False, "the wrong day", "t1")
    assert (right["reviewer"], right["right"]) == ("4", True)
    assert problem_of(wrong) is None
