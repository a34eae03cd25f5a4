"""Folders whose files are one log: each conversation by itself, wherever it lies and however it grows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from extractors.inventory import SourceFile, discover, find_bundles, pack
from extractors.reading import Reading, read


def write_conversation(folder: Path, session_id: str, n_events: int = 4) -> Path:
    """Return a conversation whose events lie a second apart, as those of any other that is written here."""
    (folder / "events").mkdir(parents=True, exist_ok=True)
    state = {"id": session_id, "execution_status": "running", "agent": {"kind": "Agent"}, "n": n_events}
    (folder / "base_state.json").write_text(json.dumps(state))
    for number in range(n_events):
        event = {"id": f"{session_id}-{number}", "timestamp": f"2026-03-02T10:15:0{number}", "source": "user",
                 "kind": "MessageEvent", "llm_message": {"role": "user", "content": f"{session_id} says {number}"}}
        (folder / "events" / f"event-{number:05}-{session_id}.json").write_text(json.dumps(event))
    return folder


def reading_of(*given: Path | str) -> dict[str, Reading]:
    return {each.relative: read(each) for each in discover(given)[0]}


def test_two_conversations_at_the_same_time_are_not_mixed(tmp_path: Path) -> None:
    write_conversation(tmp_path / "a", "one")
    write_conversation(tmp_path / "deep" / "b", "two", 3)
    found = reading_of(tmp_path)
    assert {name: each.file.format for name, each in found.items()} == {"a": "openhands_v1", "deep/b": "openhands_v1"}
    for name, session_id, n_events in (("a", "one", 4), ("deep/b", "two", 3)):
        said = found[name].events.filter(kind="message").sort("happened_at")
        assert said["session_id"].unique().to_list() == [session_id]
        assert said["content"].to_list() == [f"{session_id} says {n}" for n in range(n_events)]
        assert found[name].file.path == str(tmp_path / name) and found[name].records.height == 1


def test_ids_go_by_names_and_bytes_alone(tmp_path: Path) -> None:
    [first] = reading_of(write_conversation(tmp_path / "a", "one")).values()
    shutil.copytree(tmp_path / "a", tmp_path / "elsewhere" / "b")
    [moved] = reading_of(tmp_path / "elsewhere").values()
    assert moved.events.equals(first.events) and moved.file.file_id == first.file.file_id
    write_conversation(tmp_path / "a", "one", 5)
    [grown] = reading_of(tmp_path / "a").values()
    assert grown.file.file_id != first.file.file_id and grown.events.height == first.events.height + 1
    (tmp_path / "a" / "events" / "event-00004-one.json").rename(tmp_path / "a" / "events" / "event-00009-one.json")
    [renamed] = reading_of(tmp_path / "a").values()
    assert renamed.file.file_id != grown.file.file_id


def test_the_stamp_tells_of_every_member(tmp_path: Path) -> None:
    [file], _ = discover([write_conversation(tmp_path / "a", "one")])
    before = file.stamp()
    (tmp_path / "a" / "events" / "event-00001-one.json").write_text("{}")
    assert file.stamp() != before and discover([tmp_path])[0][0].stamp() == file.stamp()
    (tmp_path / "a" / "base_state.json").unlink()
    with pytest.raises(OSError, match="base_state"):
        file.stamp()


def test_what_is_no_conversation_stays_as_it_is(tmp_path: Path) -> None:
    write_conversation(tmp_path / "a", "one")
    (tmp_path / "a" / "notes.json").write_text("{}")
    (tmp_path / "a" / "events" / "index.json").write_text("{}")
    write_conversation(tmp_path / "b", "two", 2)
    (tmp_path / "b" / "base_state.json").unlink()
    files, _ = discover([tmp_path])
    assert [(each.relative, len(each.members)) for each in files] == [
        ("a", 5), ("a/events/index.json", 0), ("a/notes.json", 0), ("b/events/event-00000-two.json", 0),
        ("b/events/event-00001-two.json", 0)]
    assert discover([tmp_path / "a" / "base_state.json"])[0][0].members == ()


def test_a_conversation_on_an_object_store_is_one_too(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    write_conversation(tmp_path / "a", "one")
    fsspec.filesystem("memory").put(str(tmp_path / "a"), "/bucket/talks/a", recursive=True)
    try:
        [stored] = discover(["memory://bucket/talks"])[0]
        [local] = discover([tmp_path])[0]
        assert (stored.relative, stored.members) == (local.relative, local.members)
        assert stored.stamp().n_bytes == local.stamp().n_bytes
        assert read(stored).events.equals(read(local).events)
    finally:
        fsspec.filesystem("memory").rm("/bucket", recursive=True)


def test_members_are_packed_in_the_order_given(tmp_path: Path) -> None:
    assert find_bundles(["x/base_state.json", "x/events/event-2-b.json", "x/events/event-10-a.json", "y/events/event-1-a.json",
                    "x/events/other.json", "base_state.json"]) == {
        "x": ("base_state.json", "events/event-10-a.json", "events/event-2-b.json")}
    files = [write_conversation(tmp_path / name, "one") / "base_state.json" for name in ("a", "b")]
    one, other = (pack([("base_state.json", SourceFile(path, path.name).open)]).read() for path in files)
    assert one == other and one.startswith(b"PK")


def write_export(folder: Path) -> Path:
    """Return an unpacked export of a team chat: two channels, one of them quiet on the second day."""
    for name, value in {
        "users.json": [{"id": "U1", "name": "mara"}],
        "channels.json": [{"id": "C1", "name": "desk"}, {"id": "C2", "name": "ops"}],
        "desk/2026-03-02.json": [{"type": "message", "user": "U1", "ts": "1772446500.000100", "text": "order 17?"}],
        "desk/2026-03-03.json": [{"type": "message", "user": "U1", "ts": "1772532900.000100", "text": "on its way",
                                  "thread_ts": "1772446500.000100"}],
        "ops/2026-03-02.json": [{"type": "message", "user": "U1", "ts": "1772446501.000100", "text": "lunch?"}]}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    return folder


def test_an_unpacked_export_of_a_chat_is_one_archive(tmp_path: Path) -> None:
    [(name, reading)] = reading_of(write_export(tmp_path / "logs" / "chat").parent).items()
    assert (name, reading.file.format, reading.records.height) == ("chat", "slack", 1)
    messages = reading.events.filter(kind="message").sort("happened_at")
    assert messages.select("session_id", "content").rows() == [
        ("desk:1772446500.000100", "order 17?"), ("ops:talk:1772446501.000100", "lunch?"),
        ("desk:1772446500.000100", "on its way")]
    assert sorted(reading.events.filter(kind="log")["tool"]) == ["export channels.json", "export users.json"]


def test_days_without_both_lists_and_exports_beyond_an_archive_are_read_file_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_export(tmp_path)
    (tmp_path / "desk" / "index.json").write_text("{}")
    assert {each.relative: len(each.members) for each in discover([tmp_path])[0]} == {"desk/index.json": 0, tmp_path.name: 5}
    monkeypatch.setattr("extractors.inventory.MOST_BYTES", 100)
    assert len(discover([tmp_path])[0]) == 6
    monkeypatch.undo()
    (tmp_path / "channels.json").unlink()
    assert all(not each.members for each in discover([tmp_path])[0])
