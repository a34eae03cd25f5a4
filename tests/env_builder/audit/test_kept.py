"""Audits that are kept: what would be played as it was is not played again, and what comes of it is the same."""

from __future__ import annotations

import json
import shutil
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from env_builder import verify as verification
from env_builder.audit import Depth
from env_builder.audit.kept import _digest
from env_builder.audit.values import Arrivals
from env_builder.runtime.canonical import canonical
from env_builder.verify import Verified, verify


@pytest.fixture
def published(sample_run: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Return an environment of the sample and its rewards, to write in."""
    name = next((sample_run / "environments").iterdir()).name
    for side in ("environments", "rewards"):
        shutil.copytree(sample_run / side / name, tmp_path / side)
    return tmp_path / "environments", tmp_path / "rewards"


@pytest.fixture(scope="module")
def first(sample_run: Path) -> Verified:
    """Return what is verified of them before anything is changed."""
    name = next((sample_run / "environments").iterdir()).name
    return verify(sample_run / "environments" / name, sample_run / "rewards" / name, kept={})


def changed(path: Path, change: Any) -> None:
    rows = [change(number, json.loads(line)) for number, line in enumerate(path.read_text("utf-8").splitlines())]
    path.write_text("".join(canonical(row) + "\n" for row in rows), "utf-8")


def alike(one: Verified, other: Verified) -> bool:
    return one.decisions.equals(other.decisions) and one.plays.equals(other.plays) and (
        one.task_ids, one.report, one.audits) == (other.task_ids, other.report, other.audits)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the tasks that are played in this process, in order."""
    played: list[str] = []
    audit = verification.audit

    def counted(subject: Any, *rest: Any) -> Any:
        played.append(subject.task.task_id)
        return audit(subject, *rest)

    monkeypatch.setattr(verification, "audit", counted)
    return played


def test_only_what_changed_is_played(published: tuple[Path, Path], played: list[str]) -> None:
    first = verify(*published, kept={})
    assert len(played) == first.decisions.height == len(first.audits) > 1
    played.clear()
    assert alike(verify(*published, kept=first.audits), first) and not played

    def lighter(number: int, row: dict[str, Any]) -> dict[str, Any]:
        where = [check | {"provenance": {"confidence": 0.1}} for check in row["checks"]]
        return row | {"checks": where if number else [check | {"weight": 0.5} for check in where]}

    changed(published[1] / "rubrics.jsonl", lighter)
    again = verify(*published, kept=first.audits)
    assert len(played) == 1, "where a check comes from does not matter to who plays against it"
    assert alike(again, verify(*published, kept={}))


@pytest.mark.parametrize("chance", [None, 0.02, 0.4, 0.97])
def test_probabilities_decide_anew(published: tuple[Path, Path], first: Verified, chance: float | None) -> None:
    sessions = published[1] / "sessions.jsonl"
    changed(sessions, lambda number, row: row | {"probability": chance if number % 2 else row["probability"]})
    assert sessions.read_text("utf-8").count("\n") > 1, "some tasks were done several times"
    assert alike(verify(*published, kept=first.audits), verify(*published, kept={}))


@pytest.mark.parametrize("file", ["recorded.jsonl", "world.jsonl", "behaviour.jsonl", "tasks.jsonl"])
@pytest.mark.parametrize("place", [0, 7, 23])
def test_what_a_room_answers_otherwise_is_played_again(
        published: tuple[Path, Path], first: Verified, file: str, place: int) -> None:
    def otherwise(number: int, row: dict[str, Any]) -> dict[str, Any]:
        if number % 24 != place:
            return row
        if file == "tasks.jsonl":
            return row | {"user": row["user"] | {"agreed": ["anything"], "patience": 1}}
        if file == "behaviour.jsonl":
            return row | {"rules": row["rules"][:1]}
        return row | {name: json.dumps({"text": row[name]}) for name in ("content", "value") if name in row}

    changed(published[0] / file, otherwise)
    again, anew = verify(*published, kept=first.audits), verify(*published, kept={})
    assert alike(again, anew)


def asked_by_task(room: Path, rewards: Path) -> dict[str, set[str]]:
    """Return the tools whose programs the plays of each task ask."""
    environment, side = verification.load(room, rewards)
    return {task.task_id: {details[0] for kind, *details in json.loads(zlib.decompress(b64decode(text)))["asked"]["questions"]
                           if kind == "program"}
            for task in environment.tasks
            for _, text in verification._audited(environment, side, [task.task_id], Depth()).values()}


def test_a_program_is_played_again_where_it_was_asked(
        published: tuple[Path, Path], first: Verified, played: list[str]) -> None:
    asked = asked_by_task(*published)
    programs = (published[0] / "behaviour.jsonl").read_text("utf-8")
    shares = []
    for tool in sorted({tool for tools in asked.values() for tool in tools}):
        def noted(_: int, row: dict[str, Any], tool: str = tool) -> dict[str, Any]:
            return row | ({"remark": "as it was"} if row["tool"] == tool else {})

        changed(published[0] / "behaviour.jsonl", noted)
        played.clear()
        again = verify(*published, kept=first.audits)
        assert sorted(played) == sorted(name for name, tools in asked.items() if tool in tools), tool
        assert again.decisions.equals(first.decisions) and again.plays.equals(first.plays)
        shares.append(len(played) / len(asked))
        (published[0] / "behaviour.jsonl").write_text(programs, "utf-8")
    assert 0 < min(shares) < 1, "not every task asks every tool"


def test_more_calls_that_bear_a_program_out_count_where_there_were_too_few(
        published: tuple[Path, Path], first: Verified) -> None:
    rows = [json.loads(line) for line in (published[0] / "behaviour.jsonl").read_text("utf-8").splitlines()]
    few = next(row["tool"] for row in rows if "borne_out" not in row)

    def more(_: int, row: dict[str, Any]) -> dict[str, Any]:
        return row | ({"borne_out": True} if row["tool"] == few else {})

    changed(published[0] / "behaviour.jsonl", more)
    assert alike(verify(*published, kept=first.audits), verify(*published, kept={}))


def test_a_thing_that_nobody_looks_at_leaves_audits(
        published: tuple[Path, Path], first: Verified, played: list[str]) -> None:
    one = json.loads((published[0] / "recorded.jsonl").read_text("utf-8").partition("\n")[0])
    arguments = dict.fromkeys(json.loads(one["arguments"]), "nobody asked for this")
    new = one | {"arguments": canonical(arguments), "session": "another", "event": "another"}
    with (published[0] / "recorded.jsonl").open("a", encoding="utf-8") as rows:
        rows.write(canonical(new) + "\n")
    played.clear()
    again = verify(*published, kept=first.audits)
    assert len(played) < len(first.audits) / 2
    assert alike(again, verify(*published, kept={}))


def test_what_tasks_draw_from_is_apart(published: tuple[Path, Path]) -> None:
    environment, _ = verification.load(*published)
    tool = max(environment.world.questions, key=lambda name: len(environment.world.questions[name]))
    calls = {(tool, arguments): 1 + place % 2 for place, arguments in enumerate(environment.world.questions[tool])}
    early, late = environment.tasks[:2]
    environment.arrived(Arrivals(calls, {early.task_id: 1, late.task_id: 2}))
    question = {"views": [], "shown": [], "words": [], "questions": [["calls", tool, "", len(calls)]]}
    assert _digest(question, environment.sources(early)) != _digest(question, environment.sources(late))
