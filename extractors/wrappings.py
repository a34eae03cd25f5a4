"""Records inside something else: pages of an API, exports of databases and log platforms, brokers' envelopes, tables' cells.

In: what a file begins with, where no format claims it, or one that reads any application's log. Out: a `Wrapping`: the steps
from a record of the file to the records that a format claims, which are then read as if they lay in a file of their own. What
an envelope states and the record does not (session, user, service, trace, time) goes with the record.
Sees: lists and objects under keys, JSON in text, base64 and cells, JSON at the end of a line of text, typed values of MongoDB
and DynamoDB, BigQuery's rows, columns of `{field, value}`, Loki's pairs of time and line. A wrapper that holds words or content
of its own besides the record is none. Does not see: records deeper than `_DEEPEST` keys; several kinds of records in one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from extractors.containers import claims as is_packed
from extractors.content import BOM, Records, parsed, records_of
from extractors.field_uses import FieldReading, shortened_text
from extractors.formats import Emit, Format, Head, LogRecord, recognise
from extractors.formats.envelope import Envelope
from extractors.formats.format import Layout
from extractors.formats.values import json_text
from extractors.notations import Unparsed, is_dump, is_stream, values_in_dump, values_in_stream
from extractors.unwrapping import (
    Cells,
    Columns,
    Decoded,
    Each,
    Elements,
    Entries,
    Members,
    Step,
    Tail,
    Under,
    notation_of,
    spelled,
)

_DEEPEST = 5
_MOST_NODES = 150
_MOST_VALUES = 200
_KEEP = 5
_MOST_AROUND = 50
_GENERAL_RANK = 60
"""From this rank on a format goes by a general shape."""
_CARRIERS = ("cloudwatch", "gcp_logging", "cloudevents", "segment")
"""Formats whose records may hold a record of another one as content."""
_ANY_RANK = 100
_OF_BUSINESS = ("cloudevents", "segment")
"""Formats of events whose payload is an event's own, whatever it looks like, unless a product's names are in it."""
_OF_TEXT = ("text_log", "access_log", "syslog")
_SEEKERS = ("mcp",)
"""Formats that look for their records inside others, and so miss what these state."""
_LEAST_SHARE, _LEAST_CARRIED = 0.5, 0.02
"""Least share of a file's records that hold one of another format: where no format reads the others, and where one does."""
_MOST_POINTS = 50
_LOG_POINTS = 0.1
_PROSE = 4
"""Words of a text that somebody may have said."""
_CONTENT = frozenset((
    "messages", "choices", "content", "role", "parts", "candidates", "tool_calls", "arguments", "output", "outputs",
    "completion", "response", "request", "result", "answer", "text", "input", "inputs", "prompt", "data", "body"))
"""Names under which a record keeps what it is about."""


@dataclass(frozen=True)
class Wrapping:
    """How to get from a file's own records to those that a format reads."""

    steps: tuple[Step, ...]
    notation: str = ""
    """What the bytes are, where no layout is them: `stream` (JSON values one after the other), `dump` (SQL)."""
    is_gathered: bool = False
    """One record of the file may hold several: the file is one chunk, and its records are numbered."""
    carrier: str = ""
    """Format that reads those of the file's records that hold none for the other one; empty: no format does."""

    @property
    def place(self) -> str:
        """Return where the records lie, as keys joined by dots; empty: in the file's own records."""
        return ".".join(each.key for each in self.steps if isinstance(each, Under))

    @property
    def description(self) -> str:
        """Say where the records lie, for people."""
        notations = {"stream": "values one after the other", "dump": "a dump of SQL"}
        words = [notations.get(self.notation, ""), *(each.description for each in self.steps if not isinstance(each, Under)),
                 f"under {self.place}" if self.place else ""]
        return ", ".join(each for each in words if each)

    def around(self, content: bytes, layout: Layout, document: Any = None) -> list[FieldReading]:
        """Return the fields of the file's own records that hold no record: which go with it, and which are not read."""
        fields: dict[str, FieldReading] = {}
        for value in self.outer_records(content, layout, document).first_values(_MOST_AROUND):
            values, place = [value], ""
            for step in self.steps:
                if isinstance(step, Under):
                    for each in values:
                        for name, other in each.items() if isinstance(each, dict) else ():
                            path = f"{place}.{name}" if place else str(name)
                            if name != step.key and other not in (None, "", [], {}):
                                fields.setdefault(path, FieldReading(path, step.facts_of(each, name), shortened_text(other)))
                    place = f"{place}.{step.key}" if place else step.key
                values = [inner for each in values for inner in step.apply(each)]
        return list(fields.values())

    def values(self, value: Any) -> list[Any]:
        """Return the records inside one of the file's own."""
        values = [value]
        for step in self.steps:
            values = [inner for each in values for inner in step.apply(each)]
        return values

    def records(self, content: bytes, layout: Layout, document: Any = None, header: bytes = b"", line: int = 1,
                byte_offset: int = 0) -> Records:
        """Return the records inside a chunk, as `content.records_of` does those of the file; what holds none has a problem."""
        outer = self.outer_records(content, layout, document, header, line, byte_offset)
        inside = Records([], [], [], [])
        assert inside.values is not None
        for index, own in enumerate(outer.contents):
            value, problem, note = outer.value(index)
            inner = [] if problem else self.values(value)
            if not inner:
                inside.problems[len(inside.lines)] = problem or "it holds no record where the others have theirs" + (
                    f" ({self.place})" if self.place else "")
                inner = [None]
            for each in inner:
                number = len(inside.lines)
                if isinstance(each, Unparsed):
                    inside.problems[number] = each.problem
                if note is not None:
                    inside.notes[number] = note
                inside.lines.append(number + 1 if self.is_gathered else outer.lines[index])
                inside.byte_offsets.append(outer.byte_offsets[index])
                inside.contents.append(own if len(inner) == 1 else json_text(each).encode())
                inside.values.append(each)
        return inside


    def outer_records(self, content: bytes, layout: Layout, document: Any = None, header: bytes = b"", line: int = 1,
                      byte_offset: int = 0) -> Records:
        """Return the file's own records."""
        if not self.notation:
            return records_of(content, layout, is_packed(content) and layout != "table", document, header, line, byte_offset)
        values = values_in_stream(content) if self.notation == "stream" else [values_in_dump(content)]
        outer = Records(list(range(1, len(values) + 1)), [0] * len(values), [json_text(each).encode() for each in values],
                        values)
        outer.problems = {n: each.problem for n, each in enumerate(values) if isinstance(each, Unparsed)}
        return outer


class Wrapped(NamedTuple):
    """A format, and the wrapping in which its records lie."""

    format: Format
    wrapping: Wrapping
    objects: list[Any]
    """The first records inside."""


class _Node(NamedTuple):
    values: list[Any]
    steps: tuple[Step, ...]
    n_keys: int


def find_wrapped(head: Head, content: bytes, claimed: Format | None) -> Wrapped | None:
    """Return the format of the records inside a file, None where it has none or `claimed` reads the file as it is."""
    is_carrier = claimed is not None and (_is_general(claimed) or claimed.name in _CARRIERS)
    is_seeker = claimed is not None and claimed.name in _SEEKERS
    for notation, values in _beginnings(head, content, claimed is None):
        root = _Node(values, (), 0)
        if (kind := notation_of(values)) is not None:
            root = next(_node(root, Decoded(kind)), root)
            claimed = recognise(Head("lines", [each for each in root.values if isinstance(each, dict)][:_KEEP]))
        if root.steps or claimed is None or is_carrier:
            # than one that reads any application's log, only a stricter format is better
            is_carried = is_carrier and not root.steps
            for most in (_GENERAL_RANK,) if is_carried else (_GENERAL_RANK, _ANY_RANK):
                best = _search(root, head, notation, most, _LEAST_CARRIED if is_carried else _LEAST_SHARE)
                is_batch = best is not None and best.format is claimed and best.format.name in _OF_BUSINESS
                if is_batch and not root.steps:   # the format knows batches of its own records
                    continue
                if best is not None and is_carried and not best.wrapping.is_gathered and claimed is not None:
                    best = best._replace(wrapping=replace(best.wrapping, carrier=claimed.name))
                if best is not None and (is_batch or not (
                        claimed is not None and claimed.name in _OF_BUSINESS and best.format.rank >= 40)):
                    return best
        if claimed is not None and (is_seeker or head.layout == "text") and not is_carrier and (
                best := _search(root, head, notation, _GENERAL_RANK, _LEAST_SHARE)) is not None:
            inside = [each for value in values for each in best.wrapping.values(value)]
            if best.format is claimed and _points(claimed, inside) > _points(
                    claimed, [each for each in head.text if "{" in each] if head.layout == "text" else values):
                return best
        if claimed is not None and claimed.whole and isinstance(head.document, list) and head.layout == "document" and (
                _points(claimed, values) > _points(claimed, [head.document])):   # a list of what is a file each
            return Wrapped(claimed, Wrapping(root.steps), values[:_KEEP])
        if claimed is not None and head.layout == "table" and (best := _of_cells(root, claimed)) is not None:
            return best
    return None


def _is_general(log_format: Format) -> bool:
    return log_format.rank >= _GENERAL_RANK and log_format.name != "mapped"


def _of_cells(root: _Node, claimed: Format) -> Wrapped | None:
    """Return how a table is read better with its cells opened, None where it is not."""
    objects = [each for each in root.values if isinstance(each, dict)]
    if (cells := Cells.of(objects)) is None:
        return None
    opened = [each for row in objects for each in cells.apply(row)]
    best = _recognised(opened, "table", _ANY_RANK)
    if best is None or not _is_better(best, opened, claimed, objects):
        return None
    return Wrapped(best, Wrapping((cells,)), opened[:_KEEP])


def _is_better(log_format: Format, opened: Sequence[Any], claimed: Format, rows: Sequence[Any]) -> bool:
    """Return whether rows tell more with their cells opened; as much is enough for a format that does not know tables."""
    points, others = _points(log_format, opened), _points(claimed, rows)
    return points > others or (points == others and not claimed.claims(Head("table", [*rows[:_KEEP]])))


def _points(log_format: Format, values: Sequence[Any]) -> tuple[float, int]:
    """Return how much a format reads of records: events by kind less what it rejects, and the values that they hold."""
    emit = Emit("", "", log_format.name, Envelope())
    log_format.read([LogRecord(str(n), n + 1, value) for n, value in enumerate(values[:_MOST_POINTS])
                     if not isinstance(value, Unparsed)], emit)
    n_events = sum(_LOG_POINTS if row["kind"] == "log" else 1 for row in emit.events)
    n_filled = sum(value not in (None, "", [], {}, "{}") for row in emit.events for value in row.values())
    return n_events + len(emit.declarations) - len(emit.rejects), n_filled


def _beginnings(head: Head, content: bytes, is_unclaimed: bool) -> Iterator[tuple[str, list[Any]]]:
    """Yield the file's own first records, in each notation that it may be in."""
    if head.layout == "text" and _is_commented(content):
        yield "stream", [each for each in values_in_stream(content, _MOST_VALUES) if not isinstance(each, Unparsed)]
        return
    if head.layout == "lines":
        values = [value for line in content.removeprefix(BOM).split(b"\n", _MOST_VALUES)[:_MOST_VALUES] if line.strip()
                  for value, problem, _ in [parsed(line.strip())] if problem is None]
        if values:
            yield "", values
    elif head.layout == "document":
        yield "", head.document[:_MOST_VALUES] if isinstance(head.document, list) else [head.document]
    elif head.layout in ("archive", "database"):
        yield "", [head.document]
    elif head.layout == "table":
        yield "", head.document[:_MOST_VALUES] if isinstance(head.document, list) else [*head.objects]
    elif head.layout == "text" and is_dump(content):
        yield "dump", [values_in_dump(content)]
    elif head.layout == "text" and head.text:
        yield "", [line.decode("utf-8", "replace") for line in content.split(b"\n", _MOST_VALUES)[:_MOST_VALUES]]
    if (is_unclaimed or head.layout == "text") and head.layout in ("lines", "text") and is_stream(content):
        values = [each for each in values_in_stream(content, _MOST_VALUES) if not isinstance(each, Unparsed)]
        if values:
            yield "stream", values


def _is_commented(content: bytes) -> bool:
    """Return whether a text is lines of JSON between comments."""
    lines = [line.strip() for line in content.split(b"\n", _MOST_VALUES)[:_MOST_VALUES] if line.strip()]
    values = [line for line in lines if not line.startswith((b"#", b"//"))]
    return is_stream(content) and 0 < len(values) < len(lines) and all(
        parsed(line.rstrip(b","))[1] is None for line in values[:-1])


def _search(root: _Node, head: Head, notation: str, most: int, least: float) -> Wrapped | None:
    """Return what a format of a rank below `most` claims first, from the outermost values inwards."""
    nodes, n_looked_at = [root], 0
    while nodes and n_looked_at < _MOST_NODES:
        node, n_looked_at = nodes.pop(0), n_looked_at + 1
        if not (node.steps and isinstance(node.steps[-1], Decoded)) and (kind := notation_of(node.values)) is not None:
            nodes[:0] = _node(node, Decoded(kind))
            continue
        is_own = not node.steps and not notation and head.layout not in ("document", "table")
        if not is_own and (best := _claimed(node, head, most)) is not None:
            log_format, node = _innermost(*best, head, most)
            is_gathered = bool(notation) or head.layout in ("archive", "database") or any(
                each.is_many for each in node.steps) or (head.layout == "document" and not isinstance(head.document, list))
            return Wrapped(log_format, Wrapping(node.steps, notation, is_gathered), node.values[:_KEEP])
        nodes += _inside(node, head, least)
    return None


def _innermost(log_format: Format, node: _Node, head: Head, most: int) -> tuple[Format, _Node]:
    """Return where a format reads most: some look for their records inside others, and so would miss what these state."""
    for inner in _inside(node, head, _LEAST_CARRIED):
        best = _claimed(inner, head, most)
        if best is not None and best[0] is log_format and (
                _points(log_format, best[1].values) > _points(log_format, node.values)):
            return _innermost(*best, head, most)
    return log_format, node


def _claimed(node: _Node, head: Head, most: int) -> tuple[Format, _Node] | None:
    """Return the format that claims values, as they are or with their cells opened, whichever it reads better."""
    objects = [each for each in node.values if isinstance(each, dict)]
    if not objects or len(objects) < len(node.values) * _LEAST_SHARE:
        return None
    is_table = head.layout in ("table", "database") or isinstance(node.steps[-1] if node.steps else None, Cells)
    layout: Layout = "table" if is_table else "lines"
    best: tuple[Format, _Node] | None = None
    plain = _recognised(objects, layout, most)
    if plain is not None and _fits(plain, node):
        best = plain, node
    cells = None if node.steps and isinstance(node.steps[-1], Cells) else Cells.of(objects)
    if cells is not None and _has_cells(node, head):
        opened = next(_node(node, cells), node)
        other = _recognised([each for each in opened.values if isinstance(each, dict)], "table", most)
        if other is not None and _fits(other, node) and (plain is None or _is_better(other, opened.values, plain, objects)):
            best = other, opened
    return best


def _has_cells(node: _Node, head: Head) -> bool:
    """Return whether values are rows of a table, a database or a dump."""
    return head.layout in ("table", "database", "text") or any(isinstance(each, Columns) for each in node.steps)


def _fits(log_format: Format, node: _Node) -> bool:
    return log_format.apart or not any(isinstance(each, Members) and not each.is_one for each in node.steps)


def _recognised(objects: Sequence[Any], layout: Layout, most: int) -> Format | None:
    """Return the format of a rank below `most` that claims objects, as lines or else as rows of a table."""
    for each in ("lines", layout) if layout != "lines" else ("lines",):
        best = recognise(Head(each, [*objects[:_KEEP]]))
        if best is not None and (most > _GENERAL_RANK or not _is_general(best)) and best.name not in _OF_TEXT:
            return best
    return None


def _inside(node: _Node, head: Head, least: float = _LEAST_SHARE) -> Iterator[_Node]:
    """Yield what is one step further in, for at least such a share of the values."""
    values = node.values
    if not values or node.n_keys >= _DEEPEST:
        return
    is_root = not node.steps
    if is_root and head.layout == "archive":
        yield from _node(node, Members.of(values[0]))
        return
    if is_root and isinstance(values[0], str):
        yield from _node(node, Tail(), least)
        return
    if all(isinstance(each, list) for each in values):
        yield from _node(node, Elements())
        return
    objects = [each for each in values if isinstance(each, dict)]
    if not objects:
        return
    if Columns.fits(objects[0]):
        yield from _node(node, Columns())
        return
    if len(objects[0]) > 1 and Each.fits(objects[0]):
        yield from _node(node, Each())
    if is_root and head.layout in ("lines", "document") and len(objects) == 1 and Entries.fits(objects[0]):
        yield from _node(node, Entries())
    is_database = is_root and head.layout == "database"
    for key in dict.fromkeys(key for each in objects[:_MOST_POINTS] for key in each):
        holding = [each for each in objects if key in each]
        is_one_of_tables = is_database or (node.n_keys == 0 and head.layout == "text")
        if len(holding) >= len(objects) * least and (
                is_one_of_tables or _is_only_content(_holding_most(holding, key), key)):
            has_lists = any(isinstance(spelled(each[key]), list) for each in holding)
            yield from _node(node, Under(key, has_lists), least)


def _node(node: _Node, step: Step, least: float = 0) -> Iterator[_Node]:
    inner = [value for each in node.values for value in step.apply(each)]
    if inner and (step.is_many or len(inner) >= len(node.values) * least):
        yield _Node(inner[:_MOST_VALUES], (*node.steps, step), node.n_keys + isinstance(step, Under))


def _is_only_content(values: Sequence[dict[str, Any]], key: str) -> bool:
    """Return whether records hold under the key an object or a list, and nothing else that somebody said or did."""
    for value in values:
        inner = spelled(value[key])
        if not isinstance(inner, dict | list) or not inner:
            continue
        within = json_text(inner)
        for name, each in value.items():
            if name == key or each is None:
                continue
            parts = spelled(each)
            if isinstance(parts, dict | list):
                if not _has_no_content(parts):
                    return False
            elif isinstance(each, str) and each and (name in _CONTENT or len(each.split()) >= _PROSE) and (
                    json_text(each)[1:-1] not in within):
                return False
    return any(isinstance(spelled(each[key]), dict | list) and spelled(each[key]) for each in values)


def _holding_most(values: Sequence[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Return the first values that hold an object or a list under a key."""
    return [each for each in values if isinstance(spelled(each[key]), dict | list)][:_KEEP]


def _has_no_content(parts: Any) -> bool:
    if isinstance(parts, dict):
        return _CONTENT.isdisjoint(parts) and all(map(_has_no_content, parts.values()))
    return not isinstance(parts, list) or all(map(_has_no_content, parts[:_KEEP]))

