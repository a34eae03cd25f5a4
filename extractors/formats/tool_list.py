"""A declared tool list: OpenAI functions, plain `{name, parameters}`, MCP's `tools/list`, or an OpenAPI document."""

from __future__ import annotations

from typing import Any

from extractors.formats import openapi
from extractors.formats.format import Emit, Format, Head, LogRecord, Row, each_record, sample
from extractors.formats.values import object_of

_SCHEMAS = ("parameters", "inputSchema", "input_schema")


def claims(head: Head) -> bool:
    """One JSON document that is a list of tools, or holds one under `tools`, or is an OpenAPI document."""
    if not head.is_json or "messages" in head.first:
        return False
    if openapi.is_openapi(head.document):
        return True
    tools = tools_of(head.document if head.document is not None else head.first)
    return bool(tools) and all(isinstance((tool := _inner(each)).get("name"), str) and (
        each is not tool or any(key in tool for key in _SCHEMAS)) for each in tools)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """Read the tools of each record (one document is one record)."""
    tools = tools_of(record.value)
    n_before = len(emit.declarations)
    service = emit.envelope.service(record.value)
    if openapi.is_openapi(record.value):
        declare_all(list(openapi.operations(record.value)), emit, service or openapi.title(record.value))
    else:
        declare_all(tools, emit, service)
    if len(emit.declarations) == n_before:
        emit.reject(record, "no_tools", "the record holds no list of tools; leave it out or repair it")


def tools_of(value: Any) -> list[Any]:
    """Return the list of tools in a document: itself, `tools`, or `result.tools`."""
    if isinstance(value, dict):
        value = value.get("tools", object_of(value.get("result")).get("tools"))
    return value if isinstance(value, list) else []


def declare_all(tools: Any, emit: Emit, service: str | None) -> None:
    """Declare each tool of an OpenAI, plain or MCP list; anything else in it is passed over."""
    for each in tools if isinstance(tools, list) else ():
        tool = _inner(each)
        name = tool.get("name")
        if isinstance(name, str) and name:
            schema = next((tool[key] for key in _SCHEMAS if isinstance(tool.get(key), dict)), None)
            description = tool.get("description")
            emit.declare(name, description if isinstance(description, str) else None, schema, tool.get("annotations"), service)


def _inner(tool: Any) -> Row:
    if not isinstance(tool, dict):
        return {}
    function = tool.get("function", tool.get("custom"))
    return function if isinstance(function, dict) else tool


FORMAT = Format(name="tool_list", claims=claims, read=read, sample=sample("tool_list.json"), whole=True, rank=40)
