"""How many people's names privacy leaves in logs, and how many ordinary words it destroys.

In: the corpus of `first_hour_names_corpus`. Each name stands in three logs, in another position in each: beside an e-mail
address in a tool's result, in an identifying field without one, in the middle of a sentence. The logs are read into a
warehouse with privacy on, and its texts are searched. The texts of ordinary words stand in each log too. Does not see:
whether a pseudonym is a good one.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.first_hour_names_corpus import FIELDS, FORMS, GROUPS, RARE, WORDS
from pipelines.ingestion.ingest import ingest
from pipelines.settings import Settings
from warehouse.lock import writing
from warehouse.store import Store

POSITIONS = ("beside an address", "in a field", "in a sentence")
_FIELDS = ("customer", "patient", "recipient", "owner", "kunde", "nom")


class NamedText(NamedTuple):
    """A value, and the text in which it stands."""

    group: str
    value: str
    role: str
    """Of the message that is its text."""
    text: str


def measure() -> dict[str, Any]:
    """Return `names_left`, `fields_left`, `forms_left`, `words_destroyed`, and what is left of each group."""
    os.environ.setdefault("TRACEROOM_KEY", "a key for measuring alone")
    left: dict[str, list[str]] = {group: [] for group in GROUPS}
    destroyed, n_words = [], 0
    for position in POSITIONS:
        planted = list(_names(position))
        texts = _stored([*planted, *_words()])
        for each, text in zip(planted, texts, strict=False):
            if each.value in text:
                left[each.group].append(f"{position}: {each.value}")
        for each, text in zip(_words(), texts[len(planted):], strict=True):
            n_words += len(each.text.split())
            destroyed += [word for word in each.text.split() if word not in text.split()]
    fields = list(_of_fields())
    fields_left = [each.group for each, text in zip(fields, _stored(fields), strict=True) if each.value in text]
    forms = [NamedText("form", value, "user", text) for value, text in FORMS]
    forms_left = [each.value for each, text in zip(forms, _stored(forms), strict=True) if each.value in text]
    sizes = {group: len(POSITIONS) * len(names.split(", ")) for group, (names, _) in GROUPS.items()}
    return {"figures": {"names_left": round(max(len(each) / sizes[group] for group, each in left.items()), 4),
                        "n_groups": len(GROUPS), "n_names": sum(sizes.values()),
                        "words_destroyed": round(len(destroyed) / n_words, 5), "n_words": n_words,
                        "fields_left": len(fields_left), "n_fields": len(FIELDS),
                        "forms_left": len(forms_left), "n_forms": len(FORMS)},
            "left": {"names": {group: each for group, each in left.items() if each}, "fields": fields_left,
                     "forms": forms_left, "words": sorted(set(destroyed))}}


def _names(position: str) -> Iterator[NamedText]:
    number = 0
    for group, (names, sentences) in GROUPS.items():
        for at, name in enumerate(names.split(", ")):
            number += 1
            if position == POSITIONS[0]:
                record = {"id": number, "name": name, "email": f"box{number}@example.org", "status": "active"}
                yield NamedText(group, name, "tool", json.dumps(record, ensure_ascii=False))
            elif position == POSITIONS[1]:
                record = {"order": number, _FIELDS[at % len(_FIELDS)]: name, "status": "active"}
                yield NamedText(group, name, "tool", json.dumps(record, ensure_ascii=False))
            else:
                yield NamedText(group, name, "user", sentences[at % len(sentences)].format(name))


def _words() -> Iterator[NamedText]:
    for text in WORDS:
        yield NamedText("words", "", "tool" if text.startswith("{") else "user", text)


def _of_fields() -> Iterator[NamedText]:
    for number, field in enumerate(FIELDS):
        first, last = RARE[number % len(RARE)].split()
        name = f"{first}{chr(ord('a') + number % 26)} {last}"
        record = {field: name, "email": f"box{number}@example.org", "amount": number}
        yield NamedText(field, name, "tool", json.dumps(record, ensure_ascii=False))


def _stored(planted: list[NamedText]) -> list[str]:
    """Read a log in which each text is a session of its own, and return the texts as they are stored."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        lines = "\n".join(json.dumps(_session(number, each), ensure_ascii=False) for number, each in enumerate(planted))
        (folder / "logs").mkdir()
        (folder / "logs" / "people.jsonl").write_text(lines + "\n", "utf-8")
        (folder / "out").mkdir()
        settings = Settings(logs=(str(folder / "logs"),), out=str(folder / "out"), privacy=True)
        with writing(settings.warehouse, "a benchmark"), Store.open(settings.warehouse) as store:
            ingest(store, settings)
            rows = store.read("select session_id, kind, content from core.events where content is not null order by all")
    texts: dict[int, str] = {}
    for session_id, kind, content in rows.iter_rows():
        number = int(session_id.removeprefix("s-"))
        if kind == ("result" if planted[number].role == "tool" else "message") and content not in ("Next, please.", "Done."):
            texts[number] = content
    return [texts[number] for number in range(len(planted))]


def _session(number: int, each: NamedText) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": each.text if each.role == "user" else "Next, please."}]
    if each.role == "tool":
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": f'{{"n": {number}}}'}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": f"c{number}", "content": each.text}]
    return {"id": f"s-{number:05}", "messages": [*messages, {"role": "assistant", "content": "Done."}]}
