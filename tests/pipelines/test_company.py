"""`traceroom show world`: a company as it stood, by the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from tests.extractors.apps.test_apps import MBOX, slack


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    message = {"type": "message", "user": "U1", "text": "x", "ts": "2000.500000", "edited": {"user": "U1", "ts": "3000.0"}}
    files = slack([message])
    for path, content in {**files, "m/ada@example.org.mbox": MBOX, "notes.bin": b"\x00"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return tmp_path


def show(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["show", *arguments])
    return result.exit_code, result.output


def test_every_field_of_an_instant_is_a_line(exports: Path) -> None:
    code, printed = show("world", "--logs", str(exports), "--at", "1970-01-01T00:40:00Z", "--json")
    rows = {(row["app"], row["id"], row["field"]): row for row in map(json.loads, printed.splitlines())}
    assert code == 0
    assert rows["slack", "C1/2000.500000", "text"] == {
        "app": "slack", "id": "C1/2000.500000", "field": "text", "value": None, "known": False}
    assert rows["slack", "C1/2000.500000", "ts"]["value"] == "2000.500000"
    assert not any(app_name == "mail" for app_name, _, _ in rows)   # it was sent 56 years later


def test_a_person_sees_no_mail_of_others(exports: Path) -> None:
    arguments = ("world", "--logs", str(exports), "--at", "2026-03-03T00:00:00Z", "--json", "--as", "ada@example.org")
    own = show(*arguments)[1]
    (exports / "m" / "zoe@example.org.mbox").write_bytes(MBOX.replace(b"<2@example.org>", b"<3@example.org>"))
    assert "<1@example.org>" in own
    assert "<3@example.org>" in show(*arguments[:-1], "zoe@example.org")[1]
    assert show(*arguments)[1] == own


def test_unread_files_are_listed_with_a_reason(exports: Path) -> None:
    code, printed = show("world", "--logs", str(exports), "--unread", "--json")
    assert code == 0
    assert [part["path"] for part in json.loads(printed)] == ["notes.bin"]
    assert json.loads(printed)[0]["reason"]


@pytest.mark.parametrize(("arguments", "what"), [
    (("world", "--at", "yesterday"), "invalid instant"), (("moon", "--at", "2026-01-01"), "no view 'moon'"),
    (("world",), "the instant is missing"), (("world", "--at", "1970-01-01T00:00:01Z"), "the first record"),
    (("world", "--at", "2026-03-03", "--as", "nobody@example.org"), "nobody@example.org")])
def test_mistakes_get_one_sentence(exports: Path, arguments: tuple[str, ...], what: str) -> None:
    result = CliRunner().invoke(app, ["show", *arguments, "--logs", str(exports)])
    assert result.exit_code != 0
    assert what in f"{result.output}{result.exception}"
