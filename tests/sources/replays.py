"""The platforms as their servers answer, made from the formats' own samples: what they hold, and how they page.

A server accepts a key, and rejects others. Its pages are those of the platform's documented API; the records are what a dump
holds, in the names of the API.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from extractors import formats
from tests.sources.server import Reply, Request

KEY = "sk-9f1c2b7a-secret"
Row = dict[str, Any]


@dataclass(frozen=True)
class Replay:
    """A platform that is replayed."""

    platform: str
    respond: Callable[[Request], Reply]
    dump: dict[str, list[Row]]
    """File name -> records, as somebody would download them."""
    credentials: dict[str, str]
    """Environment of a pull."""
    options: tuple[str, ...] = ()
    """More options of `sources add`."""
    same_shape: bool = True
    """Whether records have the same names in the dump; else only what they tell is compared."""


def sample_rows(name: str) -> list[Row]:
    """Return the records of a format's sample."""
    content = formats.named(name).sample()
    try:
        return [json.loads(content)]
    except ValueError:
        return [json.loads(line) for line in content.splitlines()]


def rejected() -> Reply:
    """Return the answer to a wrong key."""
    return Reply({"detail": "invalid key"}, 401)


def is_authorized(request: Request) -> bool:
    """Return whether the request has the key, in any of the ways that platforms use."""
    authorization = request.headers.get("authorization", "")
    if authorization.startswith("Basic "):
        authorization = base64.b64decode(authorization[6:]).decode()
    return KEY in f"{authorization} {request.headers.get('x-api-key', '')}"


def instant_of(text: str) -> datetime:
    """Return an instant; without a zone it is UTC."""
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else datetime.fromisoformat(f"{text}+00:00")


def page_of(rows: list[Row], cursor: str | None, size: int) -> tuple[list[Row], str | None]:
    """Return the rows after a cursor, and the cursor that follows."""
    start = int(cursor) if cursor else 0
    end = start + size
    return rows[start:end], str(end) if end < len(rows) else None


def between(rows: list[Row], name: str, since: str, until: str) -> list[Row]:
    """Return the rows of a window, in order of time."""
    kept = [row for row in rows if (not since or instant_of(row[name]) >= instant_of(since))
            and (not until or instant_of(row[name]) < instant_of(until))]
    return sorted(kept, key=lambda row: instant_of(row[name]))


def camel(row: Row) -> Row:
    """Return a row in the names of an API."""
    def name(text: str) -> str:
        head, *rest = text.split("_")
        return head + "".join(part.title() for part in rest)

    return {name(key): value for key, value in row.items()}


def langfuse() -> Replay:
    """Return Langfuse: observations by cursor, scores of its third API."""
    empty = {"parentObservationId", "statusMessage", "version", "model", "modelParameters"}
    observations = []
    for row in sample_rows("langfuse"):
        told = camel({**row, "model": row["provided_model_name"]})
        told = {key: None if value == "" and key in empty else value for key, value in told.items()}
        for key in ("startTime", "endTime", "createdAt", "updatedAt"):
            told[key] = f"{told[key].replace(' ', 'T')}Z" if told.get(key) else None
        observations.append(told)
    scores = [_score(camel(row)) for row in sample_rows("langfuse_scores")]

    def respond(request: Request) -> Reply:
        if not is_authorized(request):
            return rejected()
        if request.path == "/api/public/projects":
            return Reply({"data": [{"id": "proj_demo", "name": "lantern", "metadata": {},
                                    "organization": {"id": "o", "name": "o"}}]})
        kind = request.path.rpartition("/")[2]
        rows, time = (observations, "Start") if kind == "observations" else (scores, "")
        stamp = "startTime" if time else "timestamp"
        chosen = between(rows, stamp, request.first("fromStartTime") or request.first("fromTimestamp"),
                         request.first("toStartTime") or request.first("toTimestamp"))
        page, cursor = page_of(chosen, request.first("cursor") or None, int(request.first("limit")))
        return Reply({"data": page, "meta": {"limit": 3, **({"cursor": cursor} if cursor else {})}}, is_page=True)

    return Replay(
        "langfuse", respond, {"observations.jsonl": sample_rows("langfuse"), "scores.jsonl": sample_rows("langfuse_scores")},
        {"LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": KEY}, same_shape=False)


def _score(row: Row) -> Row:
    """Return a score in the third API's shape: its target is an object."""
    target: Row = {"kind": "session", "id": row.pop("sessionId")}
    trace_id, observation_id = row.pop("traceId"), row.pop("observationId")
    if observation_id:
        target = {"kind": "observation", "id": observation_id, "traceId": trace_id}
    elif trace_id:
        target = {"kind": "trace", "id": trace_id}
    for key in ("timestamp", "createdAt", "updatedAt"):
        row[key] = f"{row[key].replace(' ', 'T')}Z"
    if row["dataType"] == "BOOLEAN":
        row["value"] = bool(row["value"])
    return {**row, "subject": target}


def copies(rows: list[Row], n: int = 3) -> list[Row]:
    """Return rows several times, as those of other traces and sessions."""
    def renamed(text: str, number: int) -> str:
        def another(match: re.Match[str]) -> str:
            letters = hashlib.sha256(f"{number}{match[0]}".encode()).hexdigest() * 2
            return "".join("-" if each == "-" else letters[place] for place, each in enumerate(match[0]))

        return _ID.sub(another, text).replace("sess_7f3a2c", f"sess_{number}") if number else text

    return [json.loads(renamed(json.dumps(row), number)) for number in range(n) for row in rows]


_ID = re.compile(r"\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{16})\b")


def langsmith() -> Replay:
    """Return LangSmith: runs by cursor, the feedback on some of them."""
    runs = sorted(copies(sample_rows("langsmith")), key=lambda row: row["start_time"])
    feedback = copies(sample_rows("langsmith_feedback"))
    for number, row in enumerate(feedback):
        row["run_id"], row["id"] = runs[number]["id"], str(uuid.UUID(int=number))

    def respond(request: Request) -> Reply:
        if not is_authorized(request):
            return rejected()
        if request.path == "/sessions":
            rows = [{"id": "ec6532ee-8e39-446b-86dd-951025eb92d4", "name": "lantern"}]
            return Reply([row for row in rows if row["name"] == request.first("name")])
        if request.path == "/feedback":
            rows = [row for row in feedback if row["run_id"] in request.query["run"]]
            return Reply(rows[int(request.first("offset")):][:int(request.first("limit"))])
        if request.path != "/runs/query":
            return Reply({}, 404)
        bounds = dict(re.findall(r'(lt|gte)\(start_time, "([^"]+)"\)', request.body["filter"]))
        chosen = between(runs, "start_time", bounds.get("gte", ""), bounds["lt"])
        page, cursor = page_of(chosen, request.body.get("cursor"), request.body["limit"])
        page = [{name: value for name, value in row.items() if name in request.body["select"]} for row in page]
        return Reply({"runs": page, "cursors": {"next": cursor}}, is_page=True)

    return Replay("langsmith", respond, {"runs.jsonl": runs, "feedback.jsonl": feedback}, {"LANGSMITH_API_KEY": KEY},
                  ("--project", "lantern"))


def phoenix() -> Replay:
    """Return Phoenix: spans by cursor, the annotations on some of them."""
    spans, annotations = copies(sample_rows("phoenix_spans")), copies(sample_rows("phoenix_annotations"))
    for number, row in enumerate(annotations):
        row["span_id"], row["id"] = spans[number]["context"]["span_id"], f"annotation-{number}"

    def respond(request: Request) -> Reply:
        if not is_authorized(request):
            return rejected()
        kind = request.path.rpartition("/")[2]
        if kind == "span_annotations":
            rows = [row for row in annotations if row["span_id"] in request.query["span_ids"]]
            page, cursor = page_of(rows, request.first("cursor") or None, 2)
            return Reply({"data": page, "next_cursor": cursor})
        if kind != "spans":
            return Reply({"data": {"id": "p", "name": kind}})
        chosen = between(spans, "start_time", request.first("start_time"), request.first("end_time"))
        page, cursor = page_of(chosen, request.first("cursor") or None, int(request.first("limit")))
        return Reply({"data": page, "next_cursor": cursor}, is_page=True)

    return Replay("phoenix", respond, {"spans.jsonl": spans, "annotations.jsonl": annotations}, {"PHOENIX_API_KEY": KEY},
                  ("--project", "lantern"))


def mlflow() -> Replay:
    """Return MLflow: traces by page token, their spans in a second request, as its server answers in JSON of protobuf."""
    traces = copies(sample_rows("mlflow"), 8)
    for number, trace in enumerate(traces):
        code = base64.b64encode(bytes.fromhex(trace["info"]["trace_id"].removeprefix("tr-"))).decode()
        trace["info"]["request_time"] = f"2026-03-02T10:15:{number:02}Z"
        for span in trace["data"]["spans"]:
            span["trace_id"] = code

    def in_otlp(span: Row) -> Row:
        attributes = [{"key": name, "value": any_value(json.loads(value))} for name, value in span["attributes"].items()]
        kinds = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
        events = [{"name": each["name"], "time_unix_nano": each["time_unix_nano"], "attributes": [
            {"key": name, "value": any_value(value)} for name, value in (each.get("attributes") or {}).items()]}
            for each in span.get("events") or ()]
        return {**{name: span[name] for name in ("trace_id", "span_id", "parent_span_id", "name", "start_time_unix_nano",
                                                 "end_time_unix_nano") if span.get(name)},
                "attributes": attributes, "events": events,
                "status": {"code": kinds[span["status"]["code"]], "message": span["status"].get("message") or ""}}

    def info(trace: Row) -> Row:
        facts = {name: value for name, value in trace["info"].items() if name != "execution_duration_ms"}
        return {**facts, "execution_duration": f"{trace['info']['execution_duration_ms'] / 1000}s"}

    def respond(request: Request) -> Reply:
        if not is_authorized(request):
            return Reply(b"You are not authenticated. Please see https://www.mlflow.org/docs/latest/auth.", 401)
        if request.path.endswith("experiments/get-by-name") or request.path.endswith("experiments/get"):
            return Reply({"experiment": {"experiment_id": "7", "name": "lantern", "lifecycle_stage": "active"}})
        given = request.body or {}
        if request.path.endswith("/batchGet") or request.path.endswith("/get"):
            wanted = given.get("trace_ids") or request.query.get("trace_ids") or request.query.get("trace_id") or []
            return Reply({"traces": [{"trace_info": info(each), "spans": list(map(in_otlp, each["data"]["spans"]))}
                                     for each in traces if each["info"]["trace_id"] in wanted]})
        if not request.path.endswith("/traces/search"):
            return Reply({"error_code": "ENDPOINT_NOT_FOUND", "message": request.path}, 404)
        chosen = []
        for each in traces:
            at = instant_of(each["info"]["request_time"]).timestamp() * 1000
            bounds = dict(re.findall(r"timestamp_ms (<|>=) (\d+)", given["filter"]))
            if at < int(bounds["<"]) and at >= int(bounds.get(">=", 0)):
                chosen.append(each)
        page, token = page_of(chosen, given.get("page_token"), given["max_results"])
        return Reply({"traces": list(map(info, page)), **({"next_page_token": token} if token else {})}, is_page=True)

    return Replay("mlflow", respond, {"traces.jsonl": traces}, {"MLFLOW_TRACKING_TOKEN": KEY}, ("--project", "lantern"),
                  same_shape=False)


def any_value(value: Any) -> Row:
    """Return a JSON value as OpenTelemetry's protobuf has it."""
    if isinstance(value, dict):
        return {"kvlist_value": {"values": [{"key": name, "value": any_value(each)} for name, each in value.items()]}}
    if isinstance(value, list):
        return {"array_value": {"values": [any_value(each) for each in value]}}
    if value is None:
        return {}
    kinds = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}
    return {kinds[type(value)]: value}


def openai() -> Replay:
    """Return OpenAI: stored completions by the last one's id, and the messages that each was asked."""
    document = sample_rows("openai_stored")[0]
    rows = [row for row in document["data"] if row.get("object") == "chat.completion"]
    completions, messages = [], {}
    for number in range(8):
        row = json.loads(json.dumps(rows[number % len(rows)]))
        row |= {"id": f"chatcmpl-n{number}", "created": row["created"] + 100 * number, "metadata": {"session_id": f"s{number}"}}
        completions.append(row)
        messages[row["id"]] = [
            {"id": f"{row['id']}-{place}", "role": role, "content": text, "name": None, "content_parts": None}
            for place, (role, text) in enumerate((("system", "You help."), ("user", f"Where is order {number}?")))]
    completions.sort(key=lambda row: row["created"])
    asked = [{"object": "list", "data": each, "first_id": each[0]["id"], "last_id": each[-1]["id"], "has_more": False}
             for each in messages.values()]

    def respond(request: Request) -> Reply:
        if not is_authorized(request):
            return rejected()
        if request.path.endswith("/messages"):
            chosen = messages[request.path.split("/")[-2]]
            return Reply({"object": "list", "data": chosen, "first_id": chosen[0]["id"], "last_id": chosen[-1]["id"],
                          "has_more": False})
        start = next((place + 1 for place, row in enumerate(completions) if row["id"] == request.first("after")), 0)
        page = completions[start:start + int(request.first("limit"))]
        return Reply({"object": "list", "data": page, "first_id": page[0]["id"] if page else None,
                      "last_id": page[-1]["id"] if page else None, "has_more": start + len(page) < len(completions)},
                     is_page="order" in request.query)

    return Replay("openai", respond, {"completions.jsonl": [*completions, *asked]}, {"OPENAI_API_KEY": KEY})


def logfire() -> Replay:
    """Return Logfire: rows of SQL, each page after the last row of the one before."""
    names = ("start_timestamp", "trace_id", "span_id", "kind")
    rows = sorted(copies(sample_rows("logfire")), key=lambda row: [row[name] for name in names])

    def respond(request: Request) -> Reply:
        if KEY not in request.headers.get("authorization", ""):
            return rejected()
        if request.path == "/v1/read-token-info":
            return Reply({"organization_name": "lumen", "project_name": "lantern"})
        sql = request.body["sql"]
        since, until = (re.search(rf"start_timestamp {sign} '([^']+)'", sql) for sign in (">=", "<"))
        assert since and until and sql.startswith("select * from records where")
        chosen = between(rows, "start_timestamp", since[1], until[1])
        if after := re.search(r"> \('([^']*)', '([^']*)', '([^']*)', '([^']*)'\)", sql):
            chosen = [row for row in chosen if [row[name] for name in names] > list(after.groups())]
        return Reply({"schema": {"fields": []}, "data": chosen[:request.body["limit"]]}, is_page=True)

    return Replay("logfire", respond, {"records.jsonl": rows}, {"LOGFIRE_READ_TOKEN": KEY})


def braintrust() -> Replay:
    """Return Braintrust: rows of BTQL, each page after the last row of the one before."""
    rows = copies(sample_rows("braintrust"))
    for number, row in enumerate(rows):   # the key and the time of a row are those of its insertion
        row["_pagination_key"] = f"p{number:012}"

    def respond(request: Request) -> Reply:
        if not is_authorized(request):
            return rejected()
        if request.path == "/v1/project":
            is_known = request.first("project_name") == "lantern"
            return Reply({"objects": [{"id": rows[0]["project_id"], "name": "lantern"}] if is_known else []})
        if request.path != "/btql" or request.method != "POST":
            return Reply({}, 404)
        clauses = dict(clause.split(": ", 1) for clause in request.body["query"].split(" | "))
        assert clauses["from"] == f"project_logs('{rows[0]['project_id']}') spans" and clauses["select"] == "*"
        assert clauses["sort"] == "_pagination_key asc" and request.body["fmt"] == "json"
        bounds = dict(re.findall(r"(created <|created >=|_pagination_key >) '([^']*)'", clauses["filter"]))
        chosen = between(rows, "created", bounds.get("created >=", ""), bounds["created <"])
        chosen = sorted((row for row in chosen if row["_pagination_key"] > bounds.get("_pagination_key >", "")),
                        key=lambda row: row["_pagination_key"])
        return Reply({"data": chosen[:int(clauses["limit"])], "schema": {}}, is_page=True)

    return Replay("braintrust", respond, {"spans.jsonl": rows}, {"BRAINTRUST_API_KEY": KEY}, ("--project", "lantern"))


def weave() -> Replay:
    """Return Weave: calls as JSON lines, by their offset."""
    calls = copies(sample_rows("weave"))

    def respond(request: Request) -> Reply:
        if not is_authorized(request):
            return rejected()
        if request.path == "/calls/query_stats":
            return Reply({"count": len(calls)})
        bounds = json.dumps(request.body["query"])
        since, until = (re.search(rf'{start}"\$gte": \[{{"\$getField": "started_at"}}, {{"\$literal": ([\d.]+)', bounds)
                        for start in (r"\}, \{", r'"\$not": \[\{'))
        assert until is not None
        chosen = [row for row in sorted(calls, key=lambda row: (row["started_at"], row["id"]))
                  if (since is None or instant_of(row["started_at"]).timestamp() >= float(since[1]))
                  and instant_of(row["started_at"]).timestamp() < float(until[1])]
        page = chosen[request.body["offset"]:][:request.body["limit"]]
        return Reply("".join(f"{json.dumps(row)}\n" for row in page).encode(), is_page=True)

    return Replay("weave", respond, {"calls.jsonl": calls}, {"WANDB_API_KEY": KEY}, ("--project", "lumen/support"))


REPLAYS: dict[str, Callable[[], Replay]] = {
    "braintrust": braintrust, "langfuse": langfuse, "langsmith": langsmith, "logfire": logfire, "mlflow": mlflow,
    "openai": openai, "phoenix": phoenix, "weave": weave}
NO_CLIENT = ("braintrust", "openai", "phoenix", "weave")
"""Platforms that need no client beside what Traceroom has."""
