"""How many shapes of logs are read wrongly, or lose something that `sniff` does not list.

In: files in the shapes that real clients write, and what must come of each (`expected.json` next to them): its format, turns,
feedback, outcomes, row changes, requests, service. Each shape is read as it is and, where it is JSON, once more with an
unknown field in every record. A shape is misread if anything expected is missing or other, or if a value of the records is
in no event, while `sniff` does not list its field.
Sees: values of three letters or more, by their text. Does not see: a value that is held in the wrong place, but for what is
expected.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from extractors.configuration import Source
from extractors.field_uses import pair_name
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import AssembledSessions, assemble
from extractors.sniffing import Sniffed, sniff

UNKNOWN = {"zz_unheard_of": "said nowhere else"}
_SHORTEST = 3


def measure(folder: Path) -> dict[str, Any]:
    """Return {"misread", "n_shapes", "shapes": {name: what is wrong, else an empty list}}."""
    expected = orjson.loads((folder / "expected.json").read_bytes())
    shapes = {name: problems(folder / name, each) for name, each in sorted(expected.items())}
    return {"misread": sum(bool(each) for each in shapes.values()), "n_shapes": len(shapes), "shapes": shapes}


def problems(path: Path, expected: dict[str, Any]) -> list[str]:
    """Return what is wrong with the reading of a file, as it is and with an unknown field."""
    found = _problems(path, expected)
    changed = _with_unknown_field(path)
    if changed is not None:
        with tempfile.TemporaryDirectory() as scratch:
            other = Path(scratch, path.name)
            other.write_bytes(changed)
            found += [f"with an unknown field: {each}" for each in _problems(other, expected)]
    return found


def _problems(path: Path, expected: dict[str, Any]) -> list[str]:
    sniffed = sniff(path)
    source = Source.model_validate({"format": "mapped", "fields": sniffed.fields}) if sniffed.fields else Source()
    reading = read(SourceFile(path, path.name, source))
    made = assemble(reading.events, reading.declarations)
    given = _given(reading, made)
    wrong = [f"{name}: {given[name]!r} instead of {each!r}" for name, each in expected.items() if given[name] != each]
    return wrong + [f"lost without a word: {each}" for each in _lost(path, sniffed, reading)]


def _given(reading: Reading, made: AssembledSessions) -> dict[str, Any]:
    """Return what came of a file, in the shape of `expected.json`."""
    events = reading.events
    services = sorted(set(made.sessions["service"]))

    def opinions(kind: str) -> list[list[str]]:
        return [list(row) for row in events.filter(kind=kind).select("session_id", "name", "value").sort(pl.all()).rows()]

    changes = made.row_changes.sort("happened_at").select("table_name", "operation").rows()
    return {"format": reading.file.format, "turns": list(_turns(made)), "service": ", ".join(services),
            "feedback": opinions("feedback"), "outcomes": opinions("outcome"), "row_changes": [list(row) for row in changes],
            "requests": events.filter(kind="request")["tool"].to_list()}


def _turns(made: AssembledSessions) -> Iterator[list[Any]]:
    """Yield messages as [role, text] and calls as [tool, arguments, answer], in order."""
    for row in made.turns.sort("session_id", "position").to_dicts():
        if row["kind"] == "call":
            yield [row["tool"], orjson.dumps(orjson.loads(row["arguments"] or "null")).decode(), row["content"]]
        else:
            yield [row["role"], row["content"]]


def _lost(path: Path, sniffed: Sniffed, reading: Reading) -> list[str]:
    """Return the fields of which a value is in no event, while they are neither listed as unread nor rejected."""
    if sniffed.layout not in ("lines", "document", "table") or not reading.decisions.filter(~pl.col("kept")).is_empty():
        return []
    held = "\n".join([reading.events.write_json(), reading.declarations.write_json()])
    listed = {each.path for each in sniffed.uses}   # as read, or as not read
    lost = set()
    for field, value in _leaves(_records(path, sniffed.layout), ""):
        text = orjson.dumps(value).decode()[1:-1]
        if len(value) < _SHORTEST or text in held or orjson.dumps(text).decode()[1:-1] in held:
            continue
        # a field that is listed, or is inside one that is, decides something, which need not be its text: a role, a time
        if field not in listed and not any(field.startswith(f"{each}.") for each in listed):
            lost.add(field)
    return sorted(lost)


def _records(path: Path, layout: str) -> list[Any]:
    if layout == "table":
        return pl.read_csv(path, infer_schema=False).to_dicts()
    content = path.read_bytes()
    return [orjson.loads(line) for line in content.splitlines()] if layout == "lines" else [orjson.loads(content)]


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield texts with their paths, as `sniff` writes them."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        name = pair_name(value)
        for each in value:
            yield from _leaves(each, path) if name is None else _leaves({each[name]: each.get("value")}, path)
    elif isinstance(value, str):
        yield path, value


def _with_unknown_field(path: Path) -> bytes | None:
    """Return the file with an unknown field in each record; None where it holds no JSON."""
    content = path.read_bytes()
    try:
        if path.suffix == ".jsonl":
            return b"".join(orjson.dumps({**orjson.loads(line), **UNKNOWN}) + b"\n" for line in content.splitlines())
        document = orjson.loads(content)
        is_list = isinstance(document, list)
        return orjson.dumps([{**each, **UNKNOWN} for each in document] if is_list else {**document, **UNKNOWN})
    except orjson.JSONDecodeError:
        return None
