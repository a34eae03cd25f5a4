"""The platforms as their servers answer, made from the formats' own samples: what they hold, and how they page.

A server accepts a key, and rejects others. Its pages are those of the platform's documented API; the records are what a dump
holds, in the names of the API.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
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
    n_pages: int = 0
    """Pages of a whole pull with three records a page."""
    same_shape: bool = True
    """Whether records have the same names in the dump; else only what they tell is compared."""
    hints: dict[str, str] = field(default_factory=dict)


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


REPLAYS: dict[str, Callable[[], Replay]] = {"langfuse": langfuse}
