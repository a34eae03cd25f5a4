"""Make tasks in which trusting a name, an old document or the end of a month is wrong: variants of filing work that was played.

In: work that downloaded documents and filed them, and the bytes of the documents. Out: variants with what the environment holds
for them alone. `stale_file`: where a document belongs, a file of its name lies already, with other bytes. `reissued`: an older
issue of a document lies among the downloads under the name under which the new one would arrive. `last_minute`: the latest
entity of the month asked for happened at the last minute of it. Whoever does the work as before, with the document of now, is
right. The same laws of filing judge a variant: its end is the one that its own play reaches.
Sees: documents whose bytes are on record; amounts in their text; days that lists show. Abstains: from a path that is not free,
a document whose text cannot be rewritten, a month that the ask does not name, a list without days.
"""

from __future__ import annotations

import calendar
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from env_builder.backends import FileVersion
from env_builder.runtime.documents import rewritten
from env_builder.runtime.site.occasions import MovedDay
from env_builder.site.agreement import days_in, months_in
from env_builder.site.played_work import PlayedWork
from env_builder.site.playing import PlayedCall, tree_path
from env_builder.site.work import PieceOfWork

KINDS = ("stale_file", "reissued", "last_minute")
MOST_OF_KIND = 4
"""Variants of one kind that are made of one kind of work."""
_AMOUNT = re.compile(r"(?<![\d.])(?<!\d,)(\d)([\d,]*\.\d\d)(?![\d.])")
_COPY = re.compile(r" \(\d+\)(\.\w+)?$")
_BEFORE = timedelta(days=1)
Stored = Callable[[str], "bytes | None"]
"""sha256 -> bytes."""


class FiledDocument(NamedTuple):
    """A document that work downloaded and filed."""

    arrived: str
    """Path under which it arrived."""
    destination: str
    url: str
    sha256: str
    content: bytes


class TaskVariant(NamedTuple):
    """A variant of work, and what its environment holds for it."""

    kind: str
    piece: PieceOfWork
    files: tuple[FileVersion, ...] = ()
    """Files that it begins with."""
    entity: tuple[str, ...] = ()
    """What happened on another day."""
    day: MovedDay | None = None
    taken: str | None = None
    """Path that has to be made free."""
    renamed: Mapping[str, str] = {}
    """Name of a file -> its name in the variant."""


def variants_of(work: PlayedWork, starts_at: datetime, stored: Stored) -> Iterator[TaskVariant]:
    """Yield the variants of a piece of work, one of each kind at most."""
    documents = filed_documents(work, stored)
    freed = {call.arguments.get("path") for call in work.calls if call.tool == "files_delete"}
    since = (starts_at - _BEFORE).isoformat()
    free = [each for each in documents if each.destination not in freed]
    if free:
        chosen = free[-1]
        others = [each.content for each in documents if each.content != chosen.content]
        content = older_issue(chosen.content) or next(iter(others), None)
        if content is not None:
            yield TaskVariant("stale_file", work.piece, (FileVersion(chosen.destination, content, since=since),),
                              taken=chosen.destination)
    arrivals = Counter(path for path, _ in work.received)
    for each in free:
        content = older_issue(each.content)
        if content is not None and arrivals[each.arrived] == 1 and not _COPY.search(each.arrived):
            yield TaskVariant("reissued", work.piece, (FileVersion(each.arrived, content, since=since),))
            break
    yield from _last_minute(work, documents)


def filed_documents(work: PlayedWork, stored: Stored) -> list[FiledDocument]:
    """Return the documents that were moved from where they arrived, by where they are, as far as their bytes are on record."""
    origins = dict(work.received)
    arrived: dict[str, str] = {}
    for call in work.calls:
        if call.tool == "files_move":
            source = call.arguments["source"]
            arrived[call.arguments["destination"]] = arrived.pop(source, source)
    documents = []
    for destination, source in sorted(arrived.items()):
        origin = json.loads(origins.get(source) or "{}")
        content = stored(origin["sha256"]) if origin.get("sha256") else None
        if content is not None:
            documents.append(FiledDocument(source, destination, origin["url"], origin["sha256"], content))
    return documents


def older_issue(content: bytes) -> bytes | None:
    """Return a document with other amounts; None where its text cannot be rewritten, or has none."""
    issued = rewritten(content, lambda text: _AMOUNT.sub(lambda match: f"{int(match[1]) % 9 + 1}{match[2]}", text))
    return issued if issued != content else None


def _last_minute(work: PlayedWork, documents: Iterable[FiledDocument]) -> Iterator[TaskVariant]:
    """Yield the variant in which the month's latest entity is of its last minute."""
    months = set(months_in(work.piece.ask.text)) if work.piece.ask is not None else set()
    offered = {entity: days_in(words) for each in work.piece.downloads for entity, words in each.offered.items()}
    if len(months) != 1 or not offered or not all(len(days) == 1 for days in offered.values()):
        return
    (year, month), = months
    last = date(year, month, calendar.monthrange(year, month)[1])
    own = {entity: next(iter(days)) for entity, days in offered.items()
           if (next(iter(days)).year, next(iter(days)).month) == (year, month)}
    latest = [entity for entity, day in own.items() if day == max(own.values())]
    if len(latest) != 1 or own[latest[0]] == last:
        return
    day = MovedDay(own[latest[0]], last)
    download = next((each for each in work.piece.downloads if each.entity == latest[0] and each.filed), None)
    if download is None or work.piece.session.requests[download.request_index].url not in {each.url for each in documents}:
        return
    name = tree_path(download.filed or "").rpartition("/")[2]
    yield TaskVariant("last_minute", _renamed_piece(work.piece, {name: day.shown(name)}), (), latest[0], day, None,
                      {name: day.shown(name)})


def _renamed_piece(piece: PieceOfWork, names: Mapping[str, str]) -> PieceOfWork:
    """Return a piece of work whose files have other names."""
    def renamed(text: str) -> str:
        return renamed_text(text, names)
    return piece._replace(
        filed=tuple(map(renamed, piece.filed)), notes=tuple(note._replace(text=renamed(note.text)) for note in piece.notes),
        downloads=tuple(each._replace(filed=renamed(each.filed) if each.filed else None) for each in piece.downloads))


def renamed_text(text: str, names: Mapping[str, str]) -> str:
    """Return a text with other names of files."""
    for name, other in names.items():
        text = text.replace(name, other)
    return text


class VariantSteps:
    """The calls of work, one after the other, as a variant needs them."""

    def __init__(self, work: PlayedWork, variant: TaskVariant) -> None:
        self._work = work
        self._variant = variant
        self._paths: dict[str, str] = {}
        """Path under which a download arrived -> where it did in the variant."""

    def arrived(self, paths: Iterable[str]) -> None:
        """Take where downloads arrived so far in the variant."""
        self._paths = dict(zip((path for path, _ in self._work.received), paths, strict=False))

    def before(self, call: PlayedCall) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the calls in the place of one call."""
        arguments = dict(call.arguments)
        if call.tool.startswith(("files_", "chat_")):
            arguments = {name: renamed_text(value, self._variant.renamed) if isinstance(value, str) else value
                         for name, value in arguments.items()}
        for name in ("source", "path"):
            if call.tool.startswith("files_") and name in arguments:
                arguments[name] = self._paths.get(call.arguments[name], arguments[name])
        if call.tool in ("files_move", "files_copy") and arguments["destination"] == self._variant.taken:
            yield "files_delete", {"path": self._variant.taken}
        yield call.tool, arguments
