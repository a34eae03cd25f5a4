"""What logs could become, and what they lack, before anything is built of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.inspection import log_audit
from pipelines.inspection.log_audit import audit_logs
from tests.pipelines.conftest import Traceroom


def session(n: int, answer: str | None) -> dict[str, Any]:
    """Return a session in which a user asks and a tool is called; without an answer, its result is absent."""
    call = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"door": f"D-{n}"})}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Is door {n} open?"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    result = [] if answer is None else [{"role": "tool", "tool_call_id": f"c{n}", "content": answer}]
    return {"session_id": f"s{n}", "messages": [*messages, *result, {"role": "assistant", "content": "Yes."}]}


def written(folder: Path, answers: list[str | None]) -> tuple[str, ...]:
    """Write a log of sessions with these answers; return it as a run takes it."""
    lines = (json.dumps(session(n, answer)) for n, answer in enumerate(answers))
    (folder / "log.jsonl").write_text("\n".join(lines), "utf-8")
    return (str(folder / "log.jsonl"),)


def gaps_of(logs: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return {gap["field"]: gap for gap in audit_logs(logs)["gaps"]}


def test_counts_what_there_is_and_names_what_is_absent(tmp_path: Path) -> None:
    audited = audit_logs(written(tmp_path, ["open", None, "shut", "open"]))
    (service,) = audited["services"]
    assert (service["n_sessions"], service["n_calls"], service["n_tools"]) == (4, 4, 1)
    assert (service["n_may_be_tasks"], service["n_kinds_of_work"]) == (3, 1), "a call without a result shows nothing"
    gaps = {gap["field"]: gap for gap in audited["gaps"]}
    assert (gaps["result of every call"]["n"], gaps["result of every call"]["example"]) == (1, "s1, look")
    assert gaps["list of tools with their schemas"]["share"] == gaps["feedback, or the outcome"]["share"] == 1.0
    assert not {"id of the session", "messages of the user", "whole texts", "call id of every result"} & gaps.keys()
    assert audited["fields_that_help"][0] == "feedback, or the outcome" and len(audited["fields_that_help"]) <= 5


@pytest.mark.parametrize(("answers", "n_cut"), [
    ([f"{n}{'x' * 999}" for n in range(4)], 4),
    ([f"{n}{'x' * (300 + n)}... [truncated]" for n in range(2)], 2),
    ([f"{n}{'x' * (300 + n)}" for n in range(4)], 0),
    (["open"] * 4, 0)])
def test_texts_that_were_cut_are_seen_by_what_they_say_and_by_one_length(
    tmp_path: Path, answers: list[str | None], n_cut: int,
) -> None:
    assert gaps_of(written(tmp_path, answers)).get("whole texts", {"n": 0})["n"] == n_cut


def test_of_big_logs_the_first_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in ("1", "2"):
        (tmp_path / day).mkdir()
        written(tmp_path / day, ["open", "shut"])
    monkeypatch.setattr(log_audit, "MOST_BYTES", 1)
    audited = audit_logs((str(tmp_path),))
    assert (audited["read"]["n_files"], audited["read"]["n_files_of_all"]) == (1, 2)
    assert audited["services"][0]["n_sessions"] == 2


def test_the_command_prints_it_and_leaves_nothing(tmp_path: Path, traceroom: Traceroom) -> None:
    logs = written(tmp_path, ["open", None])
    before = sorted(tmp_path.rglob("*"))
    done = traceroom("audit", *logs)
    assert done.returncode == 0 and "1 of 2 calls" in done.stderr and "would help most" in done.stderr
    assert traceroom("audit", tmp_path / "nothing").returncode == 2
    assert sorted(tmp_path.rglob("*")) == before
