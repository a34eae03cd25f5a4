"""Audits that are kept: what would be played as it was is not played again, and what comes of it is the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from env_builder import verify as verification
from env_builder.runtime.canonical import canonical
from env_builder.verify import Verified, verify


@pytest.fixture
def published(sample_run: Path, tmp_path: Path) -> tuple[Path, Path]:
    """An environment of the sample and its rewards, to write in."""
    name = next((sample_run / "environments").iterdir()).name
    for side in ("environments", "rewards"):
        shutil.copytree(sample_run / side / name, tmp_path / side)
    return tmp_path / "environments", tmp_path / "rewards"


def changed(path: Path, change: Any) -> None:
    rows = [change(number, json.loads(line)) for number, line in enumerate(path.read_text("utf-8").splitlines())]
    path.write_text("".join(canonical(row) + "\n" for row in rows), "utf-8")


def alike(one: Verified, other: Verified) -> bool:
    return one.verdicts.equals(other.verdicts) and one.plays.equals(other.plays) and (
        one.task_ids, one.report, one.audits) == (other.task_ids, other.report, other.audits)


def test_only_what_changed_is_played(published: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[str] = []
    audit = verification.audit

    def counted(subject: Any, *rest: Any) -> Any:
        played.append(subject.task.task_id)
        return audit(subject, *rest)

    monkeypatch.setattr(verification, "audit", counted)
    first = verify(*published, kept={})
    assert len(played) == first.verdicts.height == len(first.audits) > 1
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
def test_probabilities_decide_anew(published: tuple[Path, Path], chance: float | None) -> None:
    sessions = published[1] / "sessions.jsonl"
    first = verify(*published, kept={})
    changed(sessions, lambda number, row: row | {"probability": chance if number % 2 else row["probability"]})
    assert sessions.read_text("utf-8").count("\n") > 1, "some tasks were done several times"
    assert alike(verify(*published, kept=first.audits), verify(*published, kept={}))


def test_another_room_is_played_in(published: tuple[Path, Path]) -> None:
    first = verify(*published, kept={})
    manifest = json.loads((published[0] / "manifest.json").read_text("utf-8"))
    (published[0] / "manifest.json").write_text(json.dumps(manifest | {"room_digest": "another"}), "utf-8")
    assert not first.audits.keys() & verify(*published, kept=first.audits).audits.keys()
