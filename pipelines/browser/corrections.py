"""Append what a person corrects in the browser to `OUT/corrections`, and list the corrections with their effect.

A form becomes one canonical JSON line, on disk before the answer is sent. Nothing else is written; the next run reads the line
as it reads every log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from env_builder.runtime.canonical import canonical
from extractors.formats.correction import FORMER_OUTCOMES, VERSION, wrong_with
from extractors.formats.instants import microseconds
from pipelines.browser.changes import loaded
from pipelines.browser.library import Library
from pipelines.durable_files import append_durably
from pipelines.inspection.views import SIZE, Paged, begins, paged
from warehouse.errors import InputError

Row = dict[str, Any]
NAME = "corrections.jsonl"
LONGEST = {"by": 100, "why": 2000, "id": 1000, "name": 200, "description": 1000}
"""Characters of what a form says."""


def correct(folder: Path, form: Mapping[str, str], now: datetime) -> Row:
    """Append the line that a form says. Raises InputError where it says too little or too much."""
    subject = {"kind": form.get("kind", ""), "id": text_of(form, "id", "what it is about")}
    return append(folder, subject, _value(form), form, now)


def append(folder: Path, subject: Row, value: Any, form: Mapping[str, str], now: datetime) -> Row:
    """Append a correction by whom a form names, for the reason that it gives. Raises InputError."""
    line: Row = {
        "format": VERSION, "at": now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "by": text_of(form, "by", "who you are"), "why": text_of(form, "why", "why"), "subject": subject, "value": value}
    problem = wrong_with(line)
    if problem is not None:
        raise InputError(f"this is no correction: {problem}", hint="go back, and say it again")
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        append_durably(folder / NAME, canonical(line).encode() + b"\n")
    return line


def text_of(form: Mapping[str, str], name: str, what: str) -> str:
    """Return a field of a form. Raises InputError if it is empty, too long or no text."""
    text = form.get(name, "").strip().replace("\r\n", "\n")
    if not text:
        raise InputError(f"a correction says {what}", hint="go back, and fill it in")
    if len(text) > LONGEST[name]:
        raise InputError(
            f"this is too long ({name}: {len(text)} characters of {LONGEST[name]})", hint="go back, and shorten it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name} is no text", hint="go back, and write it again") from error
    return text


def _value(form: Mapping[str, str]) -> Any:
    if form.get("back_to_built"):
        return None
    kind = form.get("kind")
    if kind == "outcome":
        return form.get("value")
    if kind == "family":
        return " ".join(text_of(form, "name", "a name").split())
    raise InputError("this is no correction of an outcome or a family's name", hint="go back, and say it again")


def waiting(library: Library, folder: Path) -> list[Row]:
    """Lines that no published build has read yet, newest first: {"at", "by", "why", "kind", "id", "value"}."""
    read = library.once("corrections", lambda: library.rows(
        "select kind, subject, author, epoch_us(happened_at) as at from core.corrections"))
    read_keys = {(row["kind"], row["subject"], row["author"], row["at"]) for row in read}
    rows = []
    for text in (text for path in sorted(folder.glob("*.jsonl")) for text in path.read_text("utf-8", "replace").split("\n")):
        line = loaded(text)
        if isinstance(line, dict) and wrong_with(line) is None:
            subject = line["subject"]
            if (subject["kind"], subject["id"], line["by"].strip(), microseconds(line["at"])) not in read_keys:
                rows.append({**line, **subject})
    return rows[::-1]


def corrections_on(library: Library, folder: Path, kind: str, ids: Iterable[str]) -> list[Row]:
    """Return what persons said of these ids, newest first, with what became of it: waiting, or what the build made of it."""
    wanted = sorted(set(ids))
    read = library.rows(_READ.format("kind = $kind and c.subject in (select unnest($ids))", ""), kind=kind, ids=wanted)
    own = [{"author": row["by"], "why": row["why"], "kind": kind, "id": row["id"], "kept": True, "became": "waiting",
            "means": meaning(kind, row["value"]), "happened_at": datetime.fromisoformat(row["at"]), "stands": True}
           for row in waiting(library, folder) if row["kind"] == kind and row["id"] in wanted]
    return [*own, *map(_read, read)]


def corrections(library: Library, after: str | None = None, size: int | None = SIZE) -> Paged:
    """Return a page of the corrections that were read, newest first."""
    key = begins(after, 2)
    where = "(epoch_us(happened_at) < $at or (epoch_us(happened_at) = $at and correction_id > $last))" if key else "true"
    parameters = {"at": key[0], "last": key[1]} if key else {}
    rows = library.rows(_READ.format(where, f"limit {size + 1}" if size else ""), **parameters)
    page = paged(rows, ("at", "correction_id")) if size else Paged(rows, None)
    return page._replace(rows=[_read(row) for row in page.rows])


_READ = (
    "select c.*, epoch_us(happened_at) as at, reason, detail, coalesce(kept, true) as kept from core.corrections c "
    "left join mart.decisions v on v.subject = c.correction_id where {} order by happened_at desc, correction_id {}")


def _read(row: Row) -> Row:
    became = row["reason"] or ("taken_back" if row["value"] == "null" else "followed")
    return {**row, "became": became, "means": meaning(row["kind"], json.loads(row["value"])), "id": row["subject"]}


def meaning(kind: str, value: Any) -> str:
    """Return what a correction says, in a few words."""
    if value is None:
        return "as built"
    if kind == "outcome":
        return f"the session {FORMER_OUTCOMES.get(value, value)}"
    if kind == "family":
        return f"is called “{value}”"
    parts = [f"adds a check of kind {value['kind']}"] if "kind" in value else []
    parts += {True: ["accepted"], False: ["rejected"]}.get(value.get("accepted"), [])
    parts += [f"{name}: {value[name]}" for name in ("role", "weight", "description", "says") if name in value]
    parts += [f"parameters: {canonical(value['parameters'])}"] if "parameters" in value else []
    return "; ".join(parts)
