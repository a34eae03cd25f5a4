"""Files of reviews: the queue as JSONL or Label Studio's tasks, and answers from either into `OUT/reviews.jsonl`.

Input: queue items with their cases; files of answers. Output: files, and canonical lines of reviews, each appended once.
Does not see: whether a session exists; the next run does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from filelock import FileLock

from env_builder.runtime.canonical import canonical
from extractors.formats.review import problem_of
from pipelines.durable_files import append_durably
from pipelines.reviewing.cases import Case
from pipelines.reviewing.queue import QueueItem
from warehouse.errors import InputError

Row = dict[str, Any]
FileFormat = Literal["jsonl", "label-studio"]
FIELDS = ("session_id", "right", "reason", "reviewer", "service", "task_id", "reviewed_at", "sampled")
"""Fields of a review; all else of a line is what the reviewer was shown."""
LABEL_CONFIG = """\
<View>
  <Header value="What was requested"/><Text name="request" value="$request"/>
  <Header value="What the policy says"/><Text name="policy" value="$policy"/>
  <Header value="What was done"/><Text name="work" value="$work"/>
  <Header value="What it left"/><Text name="end" value="$end"/>
  <Choices name="right" toName="work" choice="single" required="true" showInline="true">
    <Choice value="right"/><Choice value="wrong"/>
  </Choices>
  <TextArea name="reason" toName="work" placeholder="Why"/>
</View>
"""
"""Labelling interface of the exported tasks, for a project of Label Studio."""


class Imported(NamedTuple):
    """What became of the rows of a file."""

    n_new: int
    n_known: int
    """Reviews that were imported before."""
    n_unanswered: int
    rejected: list[Row]
    """{"line", "problem"} of each row that is no review."""


def export_queue(path: Path, form: FileFormat, cases: Iterable[tuple[QueueItem, Case]], reviewer: str = "") -> list[Path]:
    """Write the queue to a file, and for Label Studio its labelling interface beside it; return the paths."""
    rows = [_exported(item, case, reviewer) for item, case in cases]
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "jsonl":
        path.write_text("".join(canonical(row) + "\n" for row in rows), "utf-8")
        return [path]
    tasks = [{"data": {
        **{name: row[name] for name in ("session_id", "service", "task_id", "sampled")}, "request": row["request"],
        "policy": row["policy"], "work": "\n".join(map(_line, row["steps"])),
        "end": "\n".join([*map(_line, row["end"]), row["last_words"]])}} for row in rows]
    path.write_text(json.dumps(tasks, ensure_ascii=False, indent=1, sort_keys=True) + "\n", "utf-8")
    config = path.with_suffix(".xml")
    config.write_text(LABEL_CONFIG, "utf-8")
    return [path, config]


def _exported(item: QueueItem, case: Case, reviewer: str) -> Row:
    """Return the line of a case, without the estimate, which would sway the reviewer."""
    return {
        "session_id": item.session_id, "right": None, "reason": "", "reviewer": reviewer, "service": item.service,
        "task_id": item.task_id, "sampled": item.is_sampled,
        "why": item.why, "request": "\n\n".join(case.request), "policy": "\n\n".join(case.policy),
        "conditions": case.conditions, "steps": case.steps,
        "end": case.end, "last_words": case.last_words}


def _line(step: Row) -> str:
    """Return a step as a line of text."""
    if "tool" in step:
        return f"{step['tool']} {step['arguments']}\n  -> {'error: ' if step['is_error'] else ''}{step['answer']}"
    return f"{step['role']}: {step['content']}"


def import_reviews(path: Path, target: Path, reviewer: str, now: datetime) -> Imported:
    """Append the answers of a file (JSONL, or Label Studio's export) to `target`, each once. `reviewer`: of answers that name
    none. Raises InputError if the file cannot be read."""
    reviews, rejected, n_unanswered = list[Row](), list[Row](), 0
    for line, row in _answers(path):
        if isinstance(row, dict) and row.get("right") is None and "right" in row:
            n_unanswered += 1
            continue
        problem, review = _as_review(row, reviewer)
        rejected += [{"line": line, "problem": problem}] if problem else []
        reviews += [] if problem else [review]
    n_new = append_reviews(target, reviews, now)
    return Imported(n_new, len(reviews) - n_new, n_unanswered, rejected)


def _as_review(row: Any, reviewer: str) -> tuple[str | None, Row]:
    if not isinstance(row, dict):
        return "it is no JSON object", {}
    review = {name: row[name] for name in FIELDS if row.get(name) not in (None, "")}
    review.setdefault("reviewer", reviewer)
    return problem_of(review), review


def append_reviews(target: Path, reviews: Iterable[Row], now: datetime) -> int:
    """Append reviews that `target` does not hold yet, on disk before this returns; return how many. One without a time gets
    `now`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(target.parent / ".reviews.lock"):
        held = {_key(row, timed) for row in stored_reviews(target) for timed in (True, False)}
        lines = []
        for review in reviews:
            key = _key(review, "reviewed_at" in review)
            if key not in held:
                held |= {key, _key(review, False)}
                stamp = now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
                lines.append(canonical({"reviewed_at": stamp, **review}) + "\n")
        append_durably(target, "".join(lines).encode())
    return len(lines)


def stored_reviews(target: Path) -> list[Row]:
    """Read the reviews of a file, without the lines that are none."""
    if not target.is_file():
        return []
    rows = [_parsed(text) for text in target.read_text("utf-8", "replace").split("\n")]
    return [row for row in rows if isinstance(row, dict) and problem_of(row) is None]


def _key(review: Row, timed: bool) -> str:
    """Name what a review says; without its time, two equal answers are one."""
    return canonical([review.get(name) for name in FIELDS if timed or name != "reviewed_at"])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _answers(path: Path) -> list[tuple[int, Any]]:
    """(line, row) of each answer; of Label Studio's export the element and its annotations."""
    if not path.is_file():
        raise InputError("there is no such file", str(path), "write one with: traceroom review OUT --export FILE")
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "give a JSONL file, or Label Studio's JSON"
        raise InputError(f"the reviews cannot be read ({error})", str(path), hint) from error
    if text.lstrip().startswith("["):
        tasks = _parsed(text)
        if not isinstance(tasks, list):
            raise InputError("this is no JSON", str(path), "export the annotations of Label Studio as JSON")
        return [(number, row) for number, task in enumerate(tasks, 1) for row in _annotated(task)]
    return [(number, _parsed(line)) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _annotated(task: Any) -> list[Any]:
    """Return a row for each annotation of a task of Label Studio; one without an answer if there is none."""
    data = task.get("data") if isinstance(task, dict) else None
    if not isinstance(data, dict):
        return [task]
    about = {name: data.get(name) for name in ("session_id", "service", "task_id", "sampled")}
    annotations = [each for each in task.get("annotations") or [] if isinstance(each, dict) and not each.get("was_cancelled")]
    rows = []
    for annotation in annotations:
        values = {each.get("from_name"): each.get("value") or {} for each in annotation.get("result") or []}
        choice = next(iter(values.get("right", {}).get("choices") or []), None)
        rows.append({
            **about, "right": {"right": True, "wrong": False}.get(choice) if choice else None,
            "reason": " ".join(values.get("reason", {}).get("text") or []), "reviewer": _annotator(annotation),
            "reviewed_at": annotation.get("updated_at") or annotation.get("created_at")})
    return rows or [{**about, "right": None}]


def _annotator(annotation: Row) -> str:
    """Return who annotated, by e-mail address or number."""
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("username") or who.get("id")
    return "" if who is None else str(who)
