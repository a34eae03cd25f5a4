"""Session recordings: the page as scripts left it, what people did in it, and that no password is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.formats import named
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from tests.extractors.formats.accounts import problems_of

TYPED = "hush-hush-77"


def text(node_id: int, words: str) -> dict[str, Any]:
    return {"type": 3, "id": node_id, "textContent": words}


def element(node_id: int, tag: str, *children: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    return {"type": 2, "id": node_id, "tagName": tag, "attributes": attributes, "childNodes": list(children)}


def page(*children: dict[str, Any], at: int = 1_772_445_600_000,
         href: str = "https://desk.example/a?b=1") -> list[dict[str, Any]]:
    node = {"type": 0, "id": 1, "childNodes": [element(2, "html", element(3, "body", *children))]}
    return [{"type": 4, "timestamp": at, "data": {"href": href, "width": 9, "height": 9}},
            {"type": 2, "timestamp": at + 1, "data": {"node": node}}]


def change(at: int = 1_772_445_601_000, **data: Any) -> dict[str, Any]:
    return {"type": 3, "timestamp": at, "data": data}


def mutation(**changes: Any) -> dict[str, Any]:
    return change(source=0, **{"adds": [], "removes": [], "texts": [], "attributes": [], **changes})


def read_all(tmp_path: Path, events: list[Any], content: bytes | None = None) -> Reading:
    path = tmp_path / "recording.json"
    path.write_bytes(content or b"\n".join(map(orjson.dumps, events)))
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "rrweb" and not problems_of(reading)
    return reading


def bodies(reading: Reading) -> list[str]:
    return [orjson.loads(value)["body"] for value in reading.events.filter(kind="page")["value"]]


def acts(reading: Reading) -> list[tuple[str, dict[str, Any]]]:
    rows = reading.events.filter(kind="business").sort("happened_at").select("tool", "arguments").rows()
    return [(tool, orjson.loads(arguments)) for tool, arguments in rows]


def test_a_page_is_its_snapshot_with_the_mutations_before_the_next_page(tmp_path: Path) -> None:
    reading = read_all(tmp_path, [
        *page(element(4, "p", text(5, "old"), text(6, "gone")), element(7, "i", style="color: red; top: 1px")),
        mutation(removes=[{"parentId": 4, "id": 6}], texts=[{"id": 5, "value": "new < old"}],
                 attributes=[{"id": 7, "attributes": {
                     "class": "on", "style": {"color": ["blue", "important"], "top": False}}}]),
        mutation(adds=[{"parentId": 9, "nextId": None, "node": text(10, "inside")},
                       {"parentId": 3, "nextId": 7, "node": element(9, "b")}]),
        *page(element(4, "p"), href="https://desk.example/next", at=1_772_445_609_000),
        mutation(adds=[{"parentId": 4, "nextId": None, "node": text(5, "second")}])])
    assert bodies(reading) == [
        '<html><body><p>new &lt; old</p><b>inside</b><i style="color: blue !important;" class="on"></i></body></html>',
        "<html><body><p>second</p></body></html>"]
    pages = reading.events.filter(kind="page")
    assert pages["tool"].to_list() == ["GET /a", "GET /next"] and pages["service"].unique().to_list() == ["desk.example"]
    assert pages["session_id"].n_unique() == 1 and pages["lossy"].null_count() == 2


def test_a_node_that_moves_is_there_once(tmp_path: Path) -> None:
    item = element(5, "li", text(6, "a"))
    reading = read_all(tmp_path, [
        *page(element(4, "ul", item, element(7, "li", text(8, "b")))),
        mutation(removes=[{"parentId": 4, "id": 5}], adds=[{"parentId": 4, "nextId": None, "node": item}])])
    assert bodies(reading) == ["<html><body><ul><li>b</li><li>a</li></ul></body></html>"]


def test_changes_of_unknown_nodes_are_counted_as_lost(tmp_path: Path) -> None:
    reading = read_all(tmp_path, [*page(), mutation(
        removes=[{"parentId": 77, "id": 78}], texts=[{"id": 79, "value": "x"}],
        adds=[{"parentId": 80, "nextId": None, "node": text(81, "x")}])])
    assert reading.events.filter(kind="page")["lossy"][0].startswith('["3 changes')


def test_what_the_recorder_adds_is_no_part_of_the_page(tmp_path: Path) -> None:
    reading = read_all(tmp_path, page(
        element(4, "link", rel="stylesheet", _cssText="p {}"), element(5, "div", rr_scrollTop=3, hidden=True),
        element(6, "textarea", value="a<b", name="note"), element(7, "script", text(8, "a && b")),
        element(9, "iframe", text(10, "inner"), rr_src="x")))
    assert bodies(reading) == ['<html><body><link rel="stylesheet"><div hidden></div><textarea name="note">a&lt;b</textarea>'
                               "<script>a && b</script><iframe></iframe></body></html>"]


def test_typing_is_one_event_with_its_last_text_and_choices_and_clicks_have_their_target(tmp_path: Path) -> None:
    reading = read_all(tmp_path, [
        *page(element(4, "input", type="text", name="city", id="c"), element(5, "select", name="size"),
              element(6, "input", type="checkbox", name="gift"), element(7, "a", text(8, " Next  page "), href="/n"),
              element(9, "input", type="radio", name="way")),
        change(source=5, id=4, text="L", isChecked=False), change(source=5, id=4, text="Lyon", isChecked=False),
        change(at=1_772_445_602_000, source=5, id=5, text="xl", isChecked=False),
        change(at=1_772_445_603_000, source=5, id=6, text="on", isChecked=True),
        change(at=1_772_445_604_000, source=5, id=9, text="on", isChecked=False),
        change(at=1_772_445_605_000, source=2, type=2, id=7, x=1, y=2),
        change(at=1_772_445_606_000, source=5, id=4, text="by a script", isChecked=False, userTriggered=False)])
    found = acts(reading)
    assert [(tool, each.get("value")) for tool, each in found] == [
        ("type", "Lyon"), ("select", "xl"), ("check", True), ("click", None)]
    assert found[0][1] | {"url": ""} == {
        "url": "", "tag": "INPUT", "id": "c", "name": "city", "type": "text", "xpath": "/html[1]/body[1]/input[1]",
        "value": "Lyon"}
    assert (found[3][1]["text"], found[3][1]["href"]) == ("Next page", "/n")


@pytest.mark.parametrize("attributes", [
    {"type": "password", "name": "w"}, {"type": "text", "name": "w", "data-rr-is-password": "true"},
    {"type": "PASSWORD", "name": "w"},
    {"type": "text", "name": "user[password]"}])
def test_what_a_password_field_holds_is_never_kept(attributes: dict[str, Any], tmp_path: Path) -> None:
    reading = read_all(tmp_path, [
        *page(element(4, "input", value=TYPED, **attributes)),
        mutation(attributes=[{"id": 4, "attributes": {"value": TYPED}}]),
        change(source=5, id=4, text=TYPED, isChecked=False)])
    assert TYPED not in reading.events.write_json() and acts(reading)[0][0] == "type"


@pytest.mark.parametrize("wrap", [orjson.dumps, lambda events: orjson.dumps({"events": events}),
                                  lambda events: orjson.dumps({"sessionId": "s-1", "events": events})])
def test_a_list_and_an_object_of_events_say_what_lines_say(wrap: Any, tmp_path: Path) -> None:
    paid = {"type": 5, "timestamp": 1_772_445_601_000, "data": {"tag": "paid", "payload": 3}}
    events = [*page(element(4, "p", text(5, "x"))), paid]
    lines, other = read_all(tmp_path, events), read_all(tmp_path, [], wrap(events))
    same = ["kind", "tool", "content", "arguments", "value", "happened_at"]
    assert lines.events.select(same).sort("happened_at").equals(other.events.select(same).sort("happened_at"))
    if b"s-1" in wrap(events):
        assert other.events["session_id"].unique().to_list() == ["s-1"]


def test_a_packed_event_has_a_decision(tmp_path: Path) -> None:
    reading = read_all(tmp_path, [*page(), {"type": 3, "timestamp": 1_772_445_602_000, "data": "xœ", "cv": "2024-10"}])
    assert reading.decisions.filter(~pl.col("kept"))["reason"].to_list() == ["packed_recording"]


def test_log_lines_with_a_numbered_type_are_no_recording() -> None:
    from extractors import content

    head = content.head_of(b'{"type": 3, "timestamp": 1772445600000, "data": {"level": 3}}\n' * 2)
    assert head is not None and not named("rrweb").claims(head)
