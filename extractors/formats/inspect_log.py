"""Logs of Inspect: `.eval` archives (whole or chunked samples, finished or not) and `.json`; each sample is a conversation.

Sees messages with reasoning, tool calls, results and their errors, times, durations and token counts from the model and tool
events, attachments put back in their place, declared tools; scores, errors and limits are outcomes. Others are log events.
A sample is named by its uuid, since its id comes again in every epoch and every log of its dataset.
Does not see: inputs of single model calls (the messages hold them), states and stores, summaries, candidates not taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.inspect_sample import Run, tell
from extractors.formats.samples import sample
from extractors.formats.transcript import Transcript, nameless

_WHOLE = re.compile(r"samples/([^/]+)\.json")
_CHUNK = re.compile(r"samples/([^/]+)/(sample|messages/\d+|events/\d+|attachments/[^/]+)\.json")
_NUMBER = re.compile(r"\d+")


def claims(head: Head) -> bool:
    """An archive with a header or a journal; or a document with a version, a status and what was evaluated."""
    if head.layout == "archive":
        names = head.document if isinstance(head.document, dict) else {}
        return any(name.startswith("_journal/") for name in names) or (
            "header.json" in names and any(name.startswith("samples/") for name in names))
    return head.layout in ("lines", "document") and {"version", "status", "eval"} <= head.first.keys()


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """The samples of a log."""
    for record in records:
        value = record.value
        is_archive = isinstance(value, dict) and any(isinstance(each, bytes) for each in value.values())
        damaged: list[str] = []
        log = _unpacked(value, damaged) if is_archive else value
        for name in damaged:
            emit.reject(record, "damaged_member", f"{name} in the archive is no JSON; copy the log again")
        if not isinstance(log, dict) or not isinstance(log.get("eval"), dict):
            emit.reject(record, "no_evaluation", "the record does not say what was evaluated; copy the log again")
            continue
        with emit.guarded(record):
            _log(record, log, emit)


def _log(record: LogRecord, log: Row, emit: Emit) -> None:
    evaluated = log["eval"]
    task = evaluated.get("task") if isinstance(evaluated.get("task"), str) else None
    plan = log["plan"] if isinstance(log.get("plan"), dict) else {}
    run = Run(emit, emit.envelope.service(log) or task, evaluated.get("model"),
              (plan.get("config"), evaluated.get("model_generate_config")))
    samples = log["samples"] if isinstance(log.get("samples"), list) else []
    for number, each in enumerate(samples):
        with emit.guarded(record):
            name = each.get("uuid") or "/".join(str(part) for part in (
                evaluated.get("eval_id") or nameless(record), each.get("id"), each.get("epoch")))
            tell(Transcript(emit, record, str(name), f"{number}/", service=run.service, name=emit.envelope.identity(each)),
                 each, run)
    if not samples:
        Transcript(emit, record, None, service=run.service).log({key: log[key] for key in log if key != "samples"})


def _unpacked(members: Row, damaged: list[str]) -> Row:
    """An archive as the document that it stands for; the journal's start in place of a header that is not written yet.

    `damaged`: takes the names of members that are no JSON; the others are told without them.
    """
    header = next((_parsed(members, name, damaged) for name in ("header.json", "_journal/start.json") if name in members), None)
    return {**(header if isinstance(header, dict) else {}), "samples": list(_samples(members, damaged))}


def _samples(members: Row, damaged: list[str]) -> Iterator[Any]:
    chunked: dict[str, dict[str, Any]] = {}
    for name in sorted(members, key=_by_number):
        if _WHOLE.fullmatch(name):
            if (whole := _parsed(members, name, damaged)) is not None:
                yield whole
        elif (found := _CHUNK.fullmatch(name)) is not None:
            chunked.setdefault(found[1], {})[found[2]] = _parsed(members, name, damaged)
    for chunks in chunked.values():
        yield _whole(chunks)


def _whole(chunks: dict[str, Any]) -> Row:
    """A chunked sample as one: messages, events and attachments put together in order of their numbers."""
    stated = chunks.get("sample")
    whole: Row = dict(stated) if isinstance(stated, dict) else {}
    for kind in ("messages", "events"):
        parts = [chunks[name] for name in chunks if name.startswith(f"{kind}/")]
        if parts:
            whole[kind] = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    attached = dict(whole["attachments"]) if isinstance(whole.get("attachments"), dict) else {}
    for name in (each for each in chunks if each.startswith("attachments/")):
        stem, held = name.removeprefix("attachments/"), chunks[name]
        if isinstance(held, dict):
            attached.update(held)
        elif isinstance(held, list):
            first = int(stem) if stem.isdecimal() else 0
            attached.update({str(first + i): each for i, each in enumerate(held)})
        else:
            attached[stem] = held
    return {**whole, "attachments": attached}


def _by_number(name: str) -> tuple[str, list[int]]:
    return _NUMBER.sub("", name), [int(each) for each in _NUMBER.findall(name)]


def _parsed(members: Row, name: str, damaged: list[str]) -> Any:
    """Value of a member, None where it is no JSON; NaN and infinities, which Inspect writes, are null."""
    try:
        return orjson.loads(members[name])
    except orjson.JSONDecodeError:
        try:
            return json.loads(members[name], parse_constant=lambda constant: None)
        except (ValueError, RecursionError):
            damaged.append(name)
            return None


FORMAT = Format(name="inspect", claims=claims, read=read, sample=sample("inspect.json"), whole=True, rank=30)
