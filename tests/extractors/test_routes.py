"""Requests to tools: templates, arguments, answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.routes import templates
from extractors.sessions import assemble

LOG = Path(__file__).parents[1] / "logs/shop_app/logs/2026-03-03.ndjson"


def turns_of(folder: Path, *lines: dict[str, Any]) -> pl.DataFrame:
    path = folder / "requests.ndjson"
    path.write_bytes(b"\n".join(orjson.dumps({"time": 1_700_000_000_000 + i, **line}) for i, line in enumerate(lines)))
    return assemble(read(SourceFile(path, path.name)).events).turns


@pytest.mark.parametrize(("path", "template", "parameters"), [
    ("/doors/17/open", "/doors/{doors_1}/open", {"doors_1": "17"}),
    ("/doors/%23A1", "/doors/{doors_1}", {"doors_1": "#A1"}),
    ("/v2/doors", "/v2/doors", {}),
    ("/", "/", {}),
    ("/17", "/{path_1}", {"path_1": "17"}),
    ("/doors/1/2", "/doors/{doors_1}/{doors_2}", {"doors_1": "1", "doors_2": "2"}),
    ("/doors/550e8400-e29b-41d4-a716-446655440000", "/doors/{doors_1}", {"doors_1": "550e8400-e29b-41d4-a716-446655440000"}),
])
def test_a_path_and_its_template(path: str, template: str, parameters: dict[str, str]) -> None:
    assert templates([path])[path] == (template, parameters)


def test_a_crowded_place_holds_ids_that_look_like_words() -> None:
    names = ["ab" + chr(97 + i) + chr(97 + j) for i in range(6) for j in range(6)]
    found = templates([f"/people/{name}/keys" for name in names])
    assert {shape for shape, _ in found.values()} == {"/people/{people_1}/keys"}
    assert templates(["/people/all", "/people/some"])["/people/all"][0] == "/people/all"


@given(st.lists(st.lists(st.sampled_from(["doors", "open", "17", "a-1", "keys", "x"]), min_size=1, max_size=4), min_size=1,
                max_size=30))
def test_a_template_and_its_parameters_give_the_path_back(parts: list[list[str]]) -> None:
    paths = ["/" + "/".join(each) for each in parts]
    for path, (shape, parameters) in templates(paths).items():
        for name, value in parameters.items():
            shape = shape.replace(f"{{{name}}}", value, 1)
        assert shape == path


def test_arguments_answer_and_error(tmp_path: Path) -> None:
    asked = {"method": "POST", "url": "/doors/17?doors_1=x&side=left&side=right", "user": {"id": "u"},
             "body": {"z": 1, "a": None}}
    answer = {"statusCode": 409, "body": {"z": "late", "a": [1.0, "ü"]}}
    [turn] = turns_of(tmp_path, {"req": asked, "res": answer, "responseTime": 250}).to_dicts()
    assert turn["tool"] == "POST /doors/{doors_1}"
    assert orjson.loads(turn["arguments"]) == {
        "doors_1": "17", "query_doors_1": "x", "side": ["left", "right"], "z": 1, "a": None}
    assert turn["content"] == '{"status":409,"body":{"z":"late","a":[1.0,"ü"]}}' and turn["is_error"] is True
    assert (turn["answered_at"] - turn["happened_at"]).total_seconds() == 0.25


def test_what_was_not_captured_is_not_made_up(tmp_path: Path) -> None:
    [turn] = turns_of(tmp_path, {"req": {"method": "GET", "url": "/doors"}, "res": {"statusCode": 200}}).to_dicts()
    assert turn["content"] == '{"status":200}' and turn["arguments"] == "{}" and turn["is_error"] is False


def test_a_real_day_of_a_back_office() -> None:
    events = read(SourceFile(LOG, LOG.name)).events
    made = assemble(events)
    logged = [orjson.loads(line) for line in LOG.read_bytes().splitlines()]
    assert made.turns.height == len(logged)
    assert set(made.sessions["identity"]) == {row["req"]["user"]["id"] for row in logged}
    assert not made.tools["tool"].str.contains(r"\d{3}").any(), "no id stays in a tool's name"
    assert sorted(made.turns["content"]) == sorted(
        orjson.dumps({"status": row["res"]["statusCode"], "body": row["res"]["body"]}).decode() for row in logged)
