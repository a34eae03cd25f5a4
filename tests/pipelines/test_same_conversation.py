"""Two logs of the same conversations: nights one by one give what all at once gives, and a person is forgotten in both."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from benchmarks.first_hour_twice_data import NIGHTS, Conversation, night
from tests.extractors.test_sameness import T0, short, talk
from tests.pipelines.conftest import Traceroom, same, tables
from warehouse.store import Store

TALKS = [*(talk(f"r{n}", T0 + 333.0 * n, f"W2{n}") for n in range(6)), *(short(f"s{n}", T0 + 611.0 * n) for n in range(3))]


def write(folder: Path, talks: list[Conversation], name: str, *logs: str, user: str | None = None) -> None:
    """Write logs of these conversations; the chat rows of the third name the user, where there is one."""
    folder.mkdir(exist_ok=True)
    made = night(talks, NIGHTS["plain"])
    for log in logs:
        lines = [line | ({"metadata": {"user_id": user}} if user and log == "chat" and each == "r2" else {})
                 for each, line in {"chat": made.chat, "spans": made.spans}[log]]
        (folder / f"{log}-{name}.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))


@pytest.mark.slow
def test_nights_one_by_one_give_what_all_at_once_gives(tmp_path: Path, traceroom: Traceroom) -> None:
    run = ("run", "--no-image", "--privacy", "off", tmp_path / "logs", "--out")
    early, late = TALKS[:4], TALKS[4:]
    write(tmp_path / "logs", early, "1", "chat")
    assert traceroom(*run, tmp_path / "grown").returncode == 0
    write(tmp_path / "logs", late, "2", "chat", "spans")
    assert traceroom(*run, tmp_path / "grown").returncode == 0
    write(tmp_path / "logs", early, "1", "spans")   # late, for the first night
    assert traceroom(*run, tmp_path / "grown").returncode == 0
    assert traceroom(*run, tmp_path / "fresh").returncode == 0
    grown, fresh = tables(tmp_path / "grown"), tables(tmp_path / "fresh")
    assert same(grown, fresh) == []
    assert grown["core.sessions"].height == len(TALKS)


@pytest.mark.slow
def test_a_person_whom_one_log_names_is_forgotten_in_both(tmp_path: Path, traceroom: Traceroom) -> None:
    write(tmp_path / "logs", TALKS, "1", "chat", "spans", user="ann.lee.77")
    run = ("run", "--no-image", "--privacy", "off", tmp_path / "logs", "--out", tmp_path / "out")
    assert traceroom(*run).returncode == 0
    theirs = "select count(*) from core.events where contains(coalesce(content, '') || coalesce(arguments, ''), 'W22')"
    with Store.published(tmp_path / "out" / "warehouse.duckdb") as store:
        assert store.read(theirs).item() == 8 and store.count("core.sessions") == len(TALKS)
    assert traceroom("forget", "--subject", "ann.lee.77", "--out", tmp_path / "out").returncode == 0
    with Store.published(tmp_path / "out" / "warehouse.duckdb") as store:
        assert store.read(theirs).item() == 0 and store.count("core.sessions") == len(TALKS) - 1
