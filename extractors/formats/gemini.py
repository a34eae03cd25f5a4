"""Gemini's generateContent, one exchange a record: `{"request": {"contents": […]}, "response": {"candidates": […]}}`.

Sees camelCase (REST) and snake_case (Python dumps), candidates, streams as a list of partial responses, calls without ids
(paired by name and order), failure under `error` and success under `output` of a function's response. Does not see what files
say (named in `lossy` by type and hash), and thought signatures.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.chat import message_part
from extractors.formats.completion_shapes import sides
from extractors.formats.exchange import Exchanges, exchange_of, finish
from extractors.formats.format import Emit, Format, Head, LogRecords, Row, sample
from extractors.formats.provider_parts import gemini_parts
from extractors.formats.sampling import drawn, sampling, snake_case, tokens
from extractors.formats.streams import stream_events
from extractors.formats.values import as_list, dumped, object_of, objects_in


def claims(head: Head) -> bool:
    """One of the first records asks with contents of parts, or is answered with candidates of such."""
    return head.is_json and any(_is_exchange(*sides(each)) for each in head.objects)


def _is_exchange(request: Row, response: Any) -> bool:
    contents = request.get("contents")
    asks = isinstance(contents, list) and bool(contents) and all(
        isinstance(each, dict) and isinstance(each.get("parts"), list) for each in contents)
    answered = [each for each in _partial(response) if isinstance(each.get("candidates"), list)]
    return asks or (isinstance(contents, str) and bool(answered))


def read(records: LogRecords, emit: Emit) -> None:
    """Read the new parts of each exchange."""
    exchanges = Exchanges(emit, parts)
    for record in records:
        request, response = sides(record.value)
        contents = as_list(request.get("contents"))
        if not contents:
            emit.reject(record, "no_contents", "the record holds no request with contents; leave it out or repair it")
            continue
        with emit.guarded(record):
            tools = objects_in(request.get("tools")) or objects_in(object_of(request.get("config")).get("tools"))
            declared = [{"name": each.get("name"), "description": each.get("description"),
                         "parameters": _schema(_get(each, "parametersJsonSchema") or each.get("parameters"))}
                        for tool in tools for each in objects_in(_get(tool, "functionDeclarations"))]
            partial, config = _partial(response), request.get("config")
            last = partial[-1] if partial else {}
            system = _get(request, "systemInstruction") or _get(object_of(config), "systemInstruction")
            system = {"parts": [{"text": system}]} if isinstance(system, str) else system
            answers, reasons = _candidates(partial)
            stated = next((usage for each in reversed(partial) if (usage := _get(each, "usageMetadata"))), None)
            chosen = [each for response in partial for candidate in objects_in(response.get("candidates"))[:1]
                      for each in objects_in(_get(object_of(_get(candidate, "logprobsResult")), "chosenCandidates"))]   # tokens
            exchanges.take(exchange_of(
                record, emit, _get(last, "createTime"), contents, answers,
                model=_get(last, "modelVersion") or request.get("model"), notes=finish(reasons[0]) if reasons else [],
                system={**system, "role": "system"} if isinstance(system, dict) else None,
                usage={**(tokens(stated) or {}), **sampling(request, config), **drawn(
                    None, [_get(each, "tokenId") for each in chosen], [_get(each, "logProbability") for each in chosen])}),
                declared, response)


def parts(content: Any) -> list[Row]:
    """Event fields of one content, in order; at least one part."""
    if not isinstance(content, dict):
        return [message_part("user", content if isinstance(content, str) else dumped(content))]
    role = {"model": "assistant", "function": "user", None: "user"}.get(content.get("role"), content.get("role"))
    inner = content.get("parts")
    rows = gemini_parts(inner if isinstance(inner, list) else [inner] if inner else [], role)
    return rows or [message_part(role, content.get("text"))]


def _candidates(partial: list[Row]) -> tuple[list[list[Any]], list[Any]]:
    """Return the content of each candidate, the fragments of a stream joined, and why each ended."""
    by_index: dict[int, list[Any]] = {}
    reasons: dict[int, Any] = {}
    for response in partial:
        for i, candidate in enumerate(objects_in(response.get("candidates"))):
            stated = candidate.get("index")
            index = stated if isinstance(stated, int) else i
            by_index.setdefault(index, []).extend(objects_in(object_of(candidate.get("content")).get("parts")))
            reasons[index] = _get(candidate, "finishReason") or reasons.get(index)
    return ([[{"role": "model", "parts": by_index[index]}] if by_index[index] else [] for index in sorted(by_index)],
            [reasons[index] for index in sorted(by_index)])


def _partial(response: Any) -> list[Row]:
    return [response] if isinstance(response, dict) else stream_events(response)


def _schema(value: Any) -> Any:
    """Return a schema with its types as JSON Schema writes them: `STRING` is `string`."""
    if isinstance(value, dict):
        return {key: inner.lower() if key == "type" and isinstance(inner, str) else _schema(inner)
                for key, inner in value.items()}
    return [_schema(each) for each in value] if isinstance(value, list) else value


def _get(value: Row, name: str) -> Any:
    """Return a field in camelCase or in snake_case."""
    return value[name] if name in value else value.get(snake_case(name))


FORMAT = Format(name="gemini", claims=claims, read=read, sample=sample("gemini.jsonl"), rank=25)
