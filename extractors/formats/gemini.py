"""Gemini's generateContent, one exchange a record: `{"request": {"contents": […]}, "response": {"candidates": […]}}`.

Sees camelCase (REST) and snake_case (Python dumps), candidates, streams as a list of partial responses, calls without ids
(paired by name and order), failure under `error` and success under `output` of a function's response. Does not see what files
say (named in `lossy` by type and hash), and thought signatures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats.exchange import Exchange, Exchanges, finish
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.gemini_names import snake_case
from extractors.formats.gemini_parts import part_of, together
from extractors.formats.samples import sample
from extractors.formats.sampling import drawn, sampling
from extractors.formats.sides import sides, times
from extractors.formats.streams import stream_events
from extractors.formats.usage import tokens


def claims(head: Head) -> bool:
    """One of the first records asks with contents of parts, or is answered with candidates of such."""
    return head.layout in ("lines", "document") and any(_is_exchange(*sides(each)) for each in head.objects)


def _is_exchange(request: Row, response: Any) -> bool:
    contents = request.get("contents")
    asks = isinstance(contents, list) and bool(contents) and all(
        isinstance(each, dict) and isinstance(each.get("parts"), list) for each in contents)
    answered = [each for each in _partial(response) if isinstance(each.get("candidates"), list)]
    return asks or (isinstance(contents, str) and bool(answered))


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """The new parts of each exchange."""
    exchanges = Exchanges(emit, parts)
    for record in records:
        request, response = sides(record.value)
        contents = request.get("contents")
        contents = contents if isinstance(contents, list) else [] if contents is None else [contents]
        if not contents:
            emit.reject(record, "no_contents", "the record holds no request with contents; leave it out or repair it")
            continue
        with emit.guarded(record):
            exchange = _exchange(record, request, contents, _partial(response), emit)
            exchanges.declare(_tools(request), exchange.service)
            known = exchanges.tell(exchange)
            if not exchange.answers:
                emit.event(record, "log", place="unanswered", session_id=known.session_id, happened_at=exchange.ended_at,
                           tool="no answer", content=orjson.dumps(response).decode())


def parts(content: Any) -> list[Row]:
    """Event fields of one content, in order; at least one part."""
    if not isinstance(content, dict):
        said = content if isinstance(content, str) else orjson.dumps(content).decode()
        return [{"kind": "message", "role": "user", "content": said, "lossy": []}]
    role = {"model": "assistant", "function": "user", None: "user"}.get(content.get("role"), content.get("role"))
    found = content.get("parts")
    told = together([part_of(each, role) for each in (found if isinstance(found, list) else [found] if found else [])])
    return told or [{"kind": "message", "role": role, "content": content.get("text"), "lossy": []}]


def _exchange(record: LogRecord, request: Row, contents: list[Any], partial: list[Row], emit: Emit) -> Exchange:
    value, envelope = record.value, emit.envelope
    last = partial[-1] if partial else {}
    started, ended, latency = times(value, _get(last, "createTime"), emit)
    system = _get(request, "systemInstruction") or _get(_dict(request.get("config")), "systemInstruction")
    answers, reasons = _candidates(partial)
    model = _get(last, "modelVersion") or request.get("model")
    return Exchange(
        record, contents, answers, session_id=envelope.session_id(value), system=_system(system), started_at=started,
        ended_at=ended, latency_ms=latency, model=model if isinstance(model, str) else None,
        usage={**(tokens(next((usage for each in reversed(partial) if (usage := _get(each, "usageMetadata"))), None)) or {}),
               **_chosen(partial), **sampling(request, request.get("config"))},
        service=envelope.service(value), identity=envelope.identity(value),
        notes=finish(reasons[0]) if reasons else [])


def _chosen(partial: list[Row]) -> Row:
    """The tokens of the first candidate."""
    stated = [_dict(_get(candidate, "logprobsResult")) for response in partial
              for candidate in _list(response.get("candidates"))[:1]]
    chosen = [each for found in stated for each in _list(_get(found, "chosenCandidates")) if isinstance(each, dict)]
    return drawn(None, [_get(each, "tokenId") for each in chosen], [_get(each, "logProbability") for each in chosen])


def _candidates(partial: list[Row]) -> tuple[list[list[Any]], list[Any]]:
    """The content of each candidate, the fragments of a stream joined, and why each ended."""
    found: dict[int, list[Any]] = {}
    reasons: dict[int, Any] = {}
    for response in partial:
        for i, candidate in enumerate(_list(response.get("candidates"))):
            index = candidate.get("index") if isinstance(candidate.get("index"), int) else i
            found.setdefault(index, []).extend(_list(_dict(candidate.get("content")).get("parts")))
            reasons[index] = _get(candidate, "finishReason") or reasons.get(index)
    return ([[{"role": "model", "parts": found[index]}] if found[index] else [] for index in sorted(found)],
            [reasons[index] for index in sorted(found)])


def _partial(response: Any) -> list[Row]:
    return [response] if isinstance(response, dict) else stream_events(response)


def _system(system: Any) -> Row | None:
    """The instructions as a content."""
    if isinstance(system, str):
        system = {"parts": [{"text": system}]}
    return {**system, "role": "system"} if isinstance(system, dict) else None


def _tools(request: Row) -> list[Row]:
    """The declared functions as tools with a JSON schema."""
    found = _list(request.get("tools")) or _list(_dict(request.get("config")).get("tools"))
    declared = [function for tool in found for function in _list(_get(tool, "functionDeclarations"))]
    return [{"name": each.get("name"), "description": each.get("description"),
             "parameters": _schema(_get(each, "parametersJsonSchema") or each.get("parameters"))} for each in declared]


def _schema(value: Any) -> Any:
    """A schema with its types as JSON Schema writes them: `STRING` is `string`."""
    if isinstance(value, dict):
        return {key: inner.lower() if key == "type" and isinstance(inner, str) else _schema(inner)
                for key, inner in value.items()}
    return [_schema(each) for each in value] if isinstance(value, list) else value


def _get(value: Row, name: str) -> Any:
    """A field in camelCase or in snake_case."""
    return value[name] if name in value else value.get(snake_case(name))


def _dict(value: Any) -> Row:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


FORMAT = Format(name="gemini", claims=claims, read=read, sample=sample("gemini.jsonl"), rank=25)
