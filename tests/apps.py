"""Apps of every kind with one task each, for tests of what is the same for all kinds."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.backends import AppSource, EntityVersion, FileVersion, OfficeContent, company_source
from env_builder.company.content import CompanyContent
from env_builder.rooms import Rows
from env_builder.runtime.company import FieldVersion
from env_builder.runtime.workspace.sandbox import ChangedFile
from env_builder.shell import WorkspaceContent, WorkspaceStart
from env_builder.site.app import SiteContent, write_app
from env_builder.site.recorded import page_sessions
from extractors.routes import templates
from tests.env_builder.site.cards import CardSite, Recorder

THIRD_PARTY = Path(__file__).resolve().parent / "third_party_backend"
START, LATER = "2031-01-15T00:00:00.000000Z", "2031-06-01T00:00:00.000000Z"
SECRET = "written-after-the-start"
"""Text that is stored in every app after the task's start: no call may show it."""
Steps = tuple[tuple[str, dict[str, Any]], ...]


class AppCase(NamedTuple):
    """An app, and calls that say what it does."""

    source: AppSource
    change: Steps
    undo: Steps
    """Calls after `change` that bring everything back."""
    reads: Steps
    entity: str
    """What `change` changes."""


def _records() -> AppCase:
    def lamp(key: str, state: str, since: str | None) -> dict[str, Any]:
        return {"class": "lamp", "key": key, "value": json.dumps({"key": key, "state": state}), "from": since, "to": None,
                "session": None, "known": "seen", "event": "e"}

    fields = {"key": ["before", "key"], "state": ["argument", "state"]}
    rule = {"rule": "write", "class": "lamp", "argument": "key", "before": "", "after": "", "order": [], "style": {},
            "when": None, "fields": fields}
    program = {"tool": "set_lamp", "effect": "write", "class": "lamp", "relation": {}, "rules": [rule], "support": {}}
    rows = Rows([lamp("a", "off", None), lamp("b", SECRET, LATER)], [], [program])
    tool = {"name": "set_lamp", "description": "", "inputSchema": {"type": "object"}}
    return AppCase(
        AppSource("records", "records", (rows, [tool])), (("set_lamp", {"key": "a", "state": "on"}),),
        (("set_lamp", {"key": "a", "state": "off"}),), (("set_lamp", {"key": "b", "state": "on"}),), "lamp/a")


def _files() -> AppCase:
    tree = [FileVersion("inbox/a.txt", b"alpha"), FileVersion("inbox/b.txt", b"beta", since="2031-01-01T00:00:00.000000Z"),
            FileVersion("inbox/c.txt", SECRET.encode(), since=LATER),
            FileVersion("inbox/d.txt", b"before", until=LATER), FileVersion("inbox/d.txt", SECRET.encode(), since=LATER),
            FileVersion("picture.bin", b"\xff\xfe\x00")]
    return AppCase(
        AppSource("drive", "files", tree),
        (("move_file", {"source": "inbox", "destination": "done"}), ("write_file", {"path": "done/note.txt", "content": "é"})),
        (("delete_file", {"path": "done/note.txt"}), ("move_file", {"source": "done", "destination": "inbox"})),
        (("list_files", {}), ("find_files", {"text": SECRET}), ("read_file", {"path": "inbox/c.txt"}),
         ("read_file", {"path": "inbox/d.txt"}), ("read_file", {"path": "picture.bin"})), "file/done/note.txt")


def _chat() -> AppCase:
    def message(ts: str, author: str, text: str | None, since: str | None, until: str | None = None,
                thread: str | None = None) -> EntityVersion:
        value = {"author": author, "channel": "desk", "text": text, "thread": thread, "edited": False}
        return EntityVersion("message", f"desk/{ts}", value, since, until)

    first, own, last = "1925000000.000100", "1925000001.000100", "1938000000.000100"
    versions = [
        EntityVersion("channel", "desk", {}), EntityVersion("channel", SECRET, {}, LATER),
        EntityVersion("member", "desk/ann", {}), EntityVersion("member", f"desk/{SECRET}", {}, LATER),
        EntityVersion("person", "ann", {"name": "Ann"}),
        message(first, "ann", "Where is lamp 7?", "2031-01-01T02:13:20.000100Z", LATER), message(first, "ann", SECRET, LATER),
        message(own, "bea", "On it.", "2031-01-01T02:13:21.000100Z"),
        message(last, "ann", SECRET, LATER, None, f"desk/{first}")]
    return AppCase(
        AppSource("chat", "office", OfficeContent(versions, {"s1": "bea"}), {"app": "chat"}),
        (("chat_post", {"channel": "desk", "text": "Lamp 7 is lit.", "thread": first}),
         ("chat_post", {"channel": "desk", "text": "é"})),
        (("chat_delete", {"channel": "desk", "ts": "1926201600.000001"}), ("chat_delete", {"channel": "desk",
                                                                                          "ts": "1926201600.000002"})),
        (("chat_channels", {}), ("chat_read", {"channel": "desk"}), ("chat_read", {"channel": "desk", "thread": first}),
         ("chat_search", {"text": SECRET}), ("chat_edit", {"channel": "desk", "ts": last, "text": "x"})),
        "message/desk/1926201600.000001")


def _notebook() -> AppCase:
    lines = [{"key": "first", "text": "one", "since": None}, {"key": "last", "text": SECRET, "since": LATER}]
    return AppCase(
        AppSource("notes", "lined_notebook", lines), (("write_line", {"key": "second", "text": "two"}),),
        (("write_line", {"key": "second", "text": ""}),), (("read_line", {"key": "first"}), ("read_line", {"key": "last"})),
        "line/second")


def _shell() -> AppCase:
    """Return a repository whose commands run unconfined: they are trusted, and every machine has that way."""
    def tree(text: str) -> dict[str, ChangedFile]:
        return {"lamp/wick.py": ChangedFile(text.encode(), 0o100644), "lamp/run.sh": ChangedFile(b"echo lit\n", 0o100755),
                "notes/old.txt": ChangedFile(b"alpha\n", 0o100644)}

    trees = {"start": tree("WICK = 1\n"), "later": tree(f"WICK = '{SECRET}'\n")}
    starts = [WorkspaceStart("s1", "start", "start", "2031-01-01T00:00:00.000000Z"),
              WorkspaceStart("s2", "later", "later", LATER)]
    def shown(kind: str, number: int, title: str, since: str, until: str | None = None) -> dict[str, Any]:
        value = {"number": number, "title": title, "state": "open", "comments": []}
        return {"class": kind, "number": number, "from": since, "to": until, "value": value}

    host = [shown("issue", 1, "Smoke", "2031-01-01T00:00:00.000000Z", LATER), shown("issue", 1, SECRET, LATER),
            shown("pull_request", 2, "Trim", START), shown("pull_request", 3, SECRET, LATER)]
    recipe = {"python": "{}.{}".format(*sys.version_info), "test": ["sh", "lamp/run.sh"], "way": "process"}
    return AppCase(
        AppSource("repository", "shell", WorkspaceContent(recipe, trees, starts, {}, host)),
        (("edit", {"path": "lamp/wick.py", "old": "1", "new": "2"}), ("write", {"path": "lamp/oil.py", "content": "é"}),
         ("shell", {"command": "rm -r notes; mkdir notes; echo beta > notes/new.txt"})),
        (("shell", {"command": "rm -r lamp/oil.py notes; mkdir notes; echo alpha > notes/old.txt"}),
         ("write", {"path": "lamp/wick.py", "content": "WICK = 1\n"})),
        (("read", {"path": "lamp/wick.py"}), ("search", {"pattern": "WICK|alpha"}), ("test", {}),
         ("shell", {"command": "cat lamp/*.py; git log --format=%s; git status --short"}), ("list_prs", {}),
         ("list_issues", {"state": "open"}), ("get_issue", {"number": 1}), *(("get_pr", {"number": n}) for n in (2, 3))),
        "file/lamp/oil.py")


_SITE = tempfile.TemporaryDirectory()
"""The folder of the app of a site, as it is written from recorded sessions."""


def _site() -> AppCase:
    recorder = Recorder(CardSite(3), datetime(2030, 12, 1, tzinfo=UTC))
    for number in (101, 102, 103):
        recorder.sit_down("ivo")
        recorder.change(number, "edit", title=f"Torch {number}", level="high")
        recorder.change(number, "comment", text="lit")
    recorder.now = datetime.fromisoformat(LATER)
    recorder.sit_down("ivo")
    recorder.change(102, "edit", title=SECRET, level="low")
    sessions = page_sessions(recorder.events)
    paths = templates([request.path for session in sessions for request in session.requests])
    folder = Path(_SITE.name)
    write_app(folder, SiteContent(sessions, {path: each for path, (each, _) in paths.items()}, frozenset(), {}, lambda _: None))
    password = json.loads((folder / "access.json").read_text())["passwords"]["ivo@cards.example"]

    def edit(title: str) -> Steps:
        return (("browser_navigate", {"url": "/cards/102/"}),
                ("browser_type", {"target": 'role=textbox[name="Title"]', "text": title}),
                ("browser_click", {"target": 'role=button[name="Save"]'}))

    return AppCase(
        AppSource("site", "site", folder, {"origin": "https://cards.example"}),
        (("browser_navigate", {"url": "/login/"}), ("browser_type", {"target": 'role=textbox[name="Who"]',
                                                                      "text": "ivo@cards.example"}),
         ("browser_type", {"target": 'role=textbox[name="Password"]', "text": password}),
         ("browser_click", {"target": 'role=button[name="Go"]'}), *edit("Lantern")),
        edit("Torch 102"),
        (("browser_navigate", {"url": "/cards/102/"}), ("browser_snapshot", {}), ("browser_find", {"text": "Title"}),
         ("browser_navigate", {"url": "/cards/"}), ("browser_navigate", {"url": "/nowhere/"})),
        "form cards.*/102")


def _company() -> AppCase:
    def at(instant: str) -> int:
        return int(datetime.fromisoformat(instant).timestamp()) * 1_000_000

    def record(entity: str, key: str, since: int, **values: Any) -> list[FieldVersion]:
        return [FieldVersion(entity, key, name, value, since) for name, value in values.items()]

    def message(channel: str, instant: str, user: str, text: str) -> list[FieldVersion]:
        ts = f"{at(instant) // 1_000_000}.000100"
        return record("slack", f"{channel}/{ts}", at(instant), channel=channel, ts=ts, user=user, text=text, reactions={})

    person = {"title": "", "is_bot": False, "deleted": False, "display_name": ""}
    channel = {"kind": "channel", "private": False, "topic": "", "purpose": "", "archived": False}
    cells = [["what", "n"], ["wick", "2"], ["all", "=SUM(B2:B2)"]]
    rows = [
        record("slack_user", "U1", 0, name="bea", real_name="Bea", email="bea@lamps.example", **person),
        record("slack_user", "U2", at(LATER), name=SECRET, real_name=SECRET, email="z@lamps.example", **person),
        record("slack_channel", "C1", 0, name="desk", members=["U1"], **channel),
        record("slack_channel", "C2", at(LATER), name=SECRET, members=["U1"], **channel),
        message("C1", "2031-01-01T00:00:00Z", "U1", "lamp 7 is out"), message("C1", LATER, "U1", SECRET),
        record("sheet", "f1", 0, name="Stock", owner="bea@lamps.example", readers=[], **{"!Sums": cells}),
        record("sheet", "f1", at(LATER), **{"!Sums": [[SECRET]]}), record("sheet", "f2", at(LATER), name=SECRET, owner=SECRET)]
    content = CompanyContent([version for row in rows for version in row], {"bea@lamps.example": {"slack_user": "U1"}}, {},
                             ("slack", "drive"), None, {"s1": "bea@lamps.example"})
    sums = {"spreadsheet_id": "f1", "range_name": "Sums!B2"}
    return AppCase(
        company_source(content),
        (("modify_sheet_values", {**sums, "values": [["5"]]}),),
        (("modify_sheet_values", {**sums, "values": [["2"]]}),),
        (("channels_list", {"channel_types": "public_channel"}), ("users_search", {"query": "e"}),
         ("conversations_history", {"channel_id": "C1", "limit": "20"}),
         ("conversations_search_messages", {"search_query": "written"}), ("search_drive_files", {"query": ""}),
         ("read_sheet_values", {"spreadsheet_id": "f1", "range_name": "Sums!A1:B9"}), ("get_spreadsheet_info", {
             "spreadsheet_id": "f2"})),
        "sheet/f1")


CASES = {case.source.kind: case for case in (_records(), _files(), _chat(), _notebook(), _shell(), _site())}
CASES["company"] = _company()
"""Of the kind `office`, as the chat is."""


def install(site: Path, name: str = "lined_notebook") -> None:
    """Install a third party's package into a directory of packages, with its entry point."""
    shutil.copytree(THIRD_PARTY / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[traceroom.backends]\n{name} = {name}:BACKEND\n")
    importlib.invalidate_caches()


def task(task_id: str = "t" * 64) -> dict[str, Any]:
    """Return a row of tasks.jsonl that begins at `START`."""
    return {
        "task_id": task_id, "session_ids": ["s1"], "split": "train", "family": "f", "slots": {}, "goal": "change it",
        "starts_at": START, "segment_of": None, "derived_from": None, "limits": {"steps": 100, "seconds": 600},
        "opening": [{"role": "user", "content": "Change it, please."}], "user": {"turns": []}}


def rubric(difference: dict[str, Any], task_id: str = "t" * 64) -> dict[str, Any]:
    """Return a rubric: this is changed, and nothing else."""
    gates = [{"check_id": kind, "kind": kind, "role": "gate", "weight": 1.0, "description": f"{kind} holds",
              "parameters": {"accepted": [difference]}, "provenance": {}} for kind in ("state", "untouched")]
    return {"format": "traceroom-rubric/1", "rubric_id": "r", "task_id": task_id, "checks": gates}
