"""Operations of an OpenAPI 3 document as declared tools.

In: the parsed document. Out: declarations as `tool_list` reads them: `name` (the `operationId`, else method and path),
`description`, `inputSchema` (parameters, and the properties of a JSON body). The first example of a successful answer is kept
in the schema under `ASSUMED_ANSWER`, as text: nobody has seen the service give it. Follows `$ref` inside the document, once for
each name on a path. Does not see: YAML, other files that a `$ref` names, headers, cookies, security, links, callbacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.values import as_list, dumped, object_of
from warehouse.records import ASSUMED_ANSWER

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_SAFE = ("get", "head", "options", "trace")
_PLACES = ("path", "query")
_DEEPEST = 6
"""Names on one path that are followed."""


def is_openapi(document: Any) -> bool:
    """Whether it is an OpenAPI document of version 3 with paths."""
    return (isinstance(document, dict) and isinstance(document.get("openapi"), str) and document["openapi"].startswith("3.")
            and isinstance(document.get("paths"), dict))


def title(document: dict[str, Any]) -> str | None:
    """Return the title of the service, None if there is none."""
    name = object_of(document.get("info")).get("title")
    return name if isinstance(name, str) and name.strip() else None


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a declaration for each operation, in the document's order."""
    for path, item in document["paths"].items():
        resolved = _resolved(document, item)
        for method in _METHODS:
            operation = object_of(resolved.get(method))
            if method in resolved:
                yield _declaration(document, f"{method.upper()} {path}", operation, as_list(resolved.get("parameters")))


def _declaration(document: dict[str, Any], route: str, operation: dict[str, Any], shared: list[Any]) -> dict[str, Any]:
    name = operation.get("operationId")
    named = isinstance(name, str) and bool(name)
    texts = [text for key in ("summary", "description") if isinstance(text := operation.get(key), str) and text]
    schema = _input(document, [*shared, *as_list(operation.get("parameters"))], operation.get("requestBody"))
    if (answer := _example(document, operation)) is not None:
        schema[ASSUMED_ANSWER] = answer
    hints = None if named else {"readOnlyHint": route.split()[0].lower() in _SAFE}   # as for a route that a log shows
    return {"name": name if named else route, "description": "\n".join(texts) or None, "inputSchema": schema,
            "annotations": hints}


def _input(document: dict[str, Any], parameters: list[Any], body: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: set[str] = set()
    for each in parameters:
        parameter = _resolved(document, each)
        name = parameter.get("name")
        if isinstance(name, str) and parameter.get("in") in _PLACES:
            text = {"description": parameter["description"]} if isinstance(parameter.get("description"), str) else {}
            properties[name] = {**text, **object_of(_inlined(document, object_of(parameter.get("schema")), ()))}
            required |= {name} if parameter.get("required") is True else set()
    given = _resolved(document, body)
    schema = object_of(_inlined(document, _json(document, given.get("content")).get("schema"), ()))
    for name, each in object_of(schema.get("properties")).items():
        properties.setdefault(name, each)
    if given.get("required") is True:
        required |= {name for name in as_list(schema.get("required")) if name in properties}
    return {"type": "object", "properties": properties} | ({"required": sorted(required)} if required else {})


def _example(document: dict[str, Any], operation: dict[str, Any]) -> str | None:
    """Return the first example of the first successful answer as text, None if there is none."""
    for status, response in sorted(object_of(operation.get("responses")).items()):
        if status.startswith("2"):
            media = _json(document, _resolved(document, response).get("content"))
            named = [_resolved(document, each) for each in object_of(media.get("examples")).values()]
            schema = _resolved(document, media.get("schema"))
            places = ((media, "example"), *((each, "value") for each in named), (schema, "example"))
            for holder, key in places:
                if key in holder:
                    return holder[key] if isinstance(holder[key], str) else dumped(holder[key])
    return None


def _json(document: dict[str, Any], content: Any) -> dict[str, Any]:
    """Return the media type that is JSON, else the first one."""
    media = object_of(content)
    chosen = next((name for name in media if name.split(";")[0].endswith("json")), next(iter(media), ""))
    return _resolved(document, media.get(chosen))


def _resolved(document: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return an object, or the one that its `$ref` names in this document; {} if there is none."""
    for _ in range(_DEEPEST):
        reference = value.get("$ref") if isinstance(value, dict) else None
        if not isinstance(reference, str):
            return object_of(value)
        value = _at(document, reference)
    return {}


def _at(document: dict[str, Any], reference: str) -> Any:
    value: Any = document
    for part in reference.removeprefix("#/").split("/"):   # RFC 6901
        value = object_of(value).get(part.replace("~1", "/").replace("~0", "~"))
    return value if reference.startswith("#/") else None


def _inlined(document: dict[str, Any], value: Any, seen: tuple[str, ...]) -> Any:
    """Return a schema with the schemas that it names in place; one inside itself becomes `{}`: anything."""
    if len(seen) > _DEEPEST:
        return {}
    if isinstance(value, list):
        return [_inlined(document, each, seen) for each in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str):
        return {} if reference in seen else _inlined(document, _at(document, reference) or {}, (*seen, reference))
    return {name: _inlined(document, each, seen) for name, each in value.items()}
