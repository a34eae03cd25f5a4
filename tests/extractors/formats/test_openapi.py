"""OpenAPI documents declare tools with their schemas; examples of answers are only assumed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import orjson

from extractors.formats.openapi import operations
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from tests.openapi_document import DOCUMENT
from warehouse.records import ASSUMED_ANSWER


def _reading_of(tmp_path: Path, document: object) -> Reading:
    path = tmp_path / "api.json"
    path.write_text(json.dumps(document))
    return read(SourceFile(path, path.name))


def test_each_operation_is_a_declared_tool_of_the_service_in_the_title(tmp_path: Path) -> None:
    reading = _reading_of(tmp_path, DOCUMENT)
    rows = reading.declarations.sort("tool").to_dicts()
    assert reading.file.format == "tool_list" and reading.quarantine.is_empty()
    assert [(row["service"], row["tool"], row["description"]) for row in rows] == [
        ("Reading Room", "POST /slips", "Ask for a volume."), ("Reading Room", "get_shelf", "Show a shelf.")]
    slip, shelf = (orjson.loads(row["input_schema"]) for row in rows)
    assert slip == {"type": "object", "required": ["volume"], "properties": {"volume": {"type": "string"}, "before": {}}}
    assert shelf["required"] == ["shelf"] and json.loads(shelf[ASSUMED_ANSWER]) == {"shelf": "A3", "places": 12}
    assert [row["annotations"] for row in rows] == ['{"readOnlyHint":false}', None], "a name of its own proves nothing"


def test_a_document_with_gaps_is_read_as_far_as_it_goes() -> None:
    document = copy.deepcopy(DOCUMENT)
    document["paths"] |= {"/a": None, "/b": {"get": None, "parameters": 3}, "/c": {"put": {
        "parameters": [None, {"name": 1, "in": "query"}, {"$ref": "#/nowhere"}], "requestBody": {"content": []},
        "responses": []}}}
    document["components"] = {"responses": {"Shelf": {"$ref": "#/components/responses/Shelf"}}}
    tools = {each["name"]: each["inputSchema"] for each in operations(document)}
    empty = {"type": "object", "properties": {}}
    assert tools["GET /b"] == empty and tools["PUT /c"] == empty and tools["POST /slips"] == empty
    assert ASSUMED_ANSWER not in tools["get_shelf"], "a reference that names itself is no answer"


def test_a_document_without_paths_is_no_list_of_tools(tmp_path: Path) -> None:
    assert _reading_of(tmp_path, {"openapi": "3.1.0", "info": {}}).declarations.is_empty()
    assert _reading_of(tmp_path, {"openapi": "2.0", "paths": {"/a": {"get": {}}}}).declarations.is_empty()
