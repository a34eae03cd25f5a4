"""Change the text of a file's bytes: a text file, or a PDF whose text can be read without its fonts.

In: bytes, and a function from text to text. Out: bytes of the same kind with the changed text, or None. Of a PDF the strings
that content streams show and those of its information change; streams are packed again as they were, and the table of objects
is new. Abstains (None): from a PDF with packed objects or tables of objects, with encryption or later updates, with glyph
numbers in the place of letters, with text that is drawn in pieces within a word, and where the new text has letters outside of
Latin-1. Does not see: text in pictures, a text that is cut into two strings.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

Change = Callable[[str], str]
PDF = b"%PDF-"
_TABLE = re.compile(rb"xref\s+0 (\d+)\s*\n((?:\d{10} \d{5} [fn][ \r]?\n?)+)\s*trailer")
_ENTRY = re.compile(rb"(\d{10}) (\d{5}) ([fn])")
_STREAM = re.compile(rb"\bstream\r?\n")
_LENGTH = re.compile(rb"/Length\s+(\d+)(?!\s+\d+\s+R)")
_FILTER = re.compile(rb"/Filter\s*(\[[^\]]*\]|/\w+)")
_STRING = rb"\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)"
_SHOWN = re.compile(rb"(" + _STRING + rb")\s*(?:Tj|'|\")|\[((?:\s*(?:" + _STRING + rb"|-?[\d.]+))*\s*)\]\s*TJ", re.DOTALL)
_ONE = re.compile(_STRING, re.DOTALL)
_INFORMATION = re.compile(rb"(/(?:Title|Subject|Keywords)\s*)(" + _STRING + rb")", re.DOTALL)
_HEX_TEXT = re.compile(rb"<[0-9A-Fa-f\s]*>\s*(?:Tj|\]\s*TJ)")
_ESCAPED = re.compile(rb"\\([0-7]{1,3}|\r?\n|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}


class UnreadableDocument(Exception):
    """The text of a document cannot be read or written; its text says why."""


class _PdfStream(NamedTuple):
    """A stream of an object, unpacked."""

    head: bytes
    data: bytes
    tail: bytes
    filters: tuple[bytes, ...]


def rewritten(content: bytes, change: Change) -> bytes | None:
    """Return the bytes with their text changed; the same where nothing changes, None where the text cannot be read."""
    if content.startswith(PDF):
        try:
            return _rewritten_pdf(content, change)
        except UnreadableDocument:
            return None
    if b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    changed = change(text)
    return content if changed == text else changed.encode()


def texts_of(content: bytes) -> tuple[str, ...] | None:
    """Return the texts of a file: its own, or the strings that a PDF shows; None where they cannot be read."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    return None if rewritten(content, note) is None else tuple(texts)


def _rewritten_pdf(content: bytes, change: Change) -> bytes:
    if any(word in content for word in (b"/ObjStm", b"/XRef", b"/Encrypt")) or content.count(b"startxref") != 1:
        raise UnreadableDocument("its objects are packed, encrypted or updated")
    table = _TABLE.search(content, max(content.rfind(b"xref", 0, content.index(b"startxref")), 0))
    if table is None:
        raise UnreadableDocument("it has no table of objects")
    entries = [(int(at), generation, kind) for at, generation, kind in _ENTRY.findall(table[2])]
    starts = sorted({at for at, _, kind in entries if kind == b"n"})
    if not starts or starts[-1] >= table.start():
        raise UnreadableDocument("its table of objects is wrong")
    moved: dict[int, int] = {}
    parts, length, is_changed = [content[:starts[0]]], starts[0], False
    for at, end in zip(starts, [*starts[1:], table.start()], strict=True):
        own = _changed_object(content[at:end], change)
        is_changed |= own != content[at:end]
        moved[at] = length
        parts.append(own)
        length += len(own)
    if not is_changed:
        return content
    rows = b"".join(b"%010d %s %s \n" % (moved[at] if kind == b"n" else at, generation, kind)
                    for at, generation, kind in entries)
    after = content[content.index(b"trailer", table.start()):]
    after = re.sub(rb"startxref\s+\d+", lambda _: b"startxref\n%d" % length, after)
    return b"".join(parts) + b"xref\n0 %d\n" % len(entries) + rows + after


def _changed_object(own: bytes, change: Change) -> bytes:
    begin = _STREAM.search(own)
    if begin is None:
        return _INFORMATION.sub(lambda match: match[1] + _changed(match[2], change), own)
    stream = _unpacked(own, begin)
    if stream is None or b"BT" not in stream.data:
        return own
    if _HEX_TEXT.search(stream.data):
        raise UnreadableDocument("it has glyph numbers in the place of letters")
    data = _SHOWN.sub(lambda match: _changed_text(match, change), stream.data)
    if data == stream.data:
        return own
    packed = data
    for name in reversed(stream.filters):
        packed = zlib.compress(packed) if name == b"/FlateDecode" else base64.a85encode(packed) + b"~>"
    return _LENGTH.sub(b"/Length %d" % len(packed), stream.head, count=1) + packed + stream.tail


def _unpacked(own: bytes, begin: re.Match[bytes]) -> _PdfStream | None:
    """Return the stream of an object; None where it is packed in a way that text is not."""
    head, length, packing = own[:begin.end()], _LENGTH.search(own, 0, begin.start()), _FILTER.search(own, 0, begin.start())
    if length is None:
        raise UnreadableDocument("the length of a stream stands elsewhere")
    end = begin.end() + int(length[1])
    filters = tuple(re.findall(rb"/\w+", packing[1])) if packing is not None else ()
    if b"/DecodeParms" in head or not {*filters} <= {b"/FlateDecode", b"/ASCII85Decode"}:
        return None
    data = own[begin.end():end]
    try:
        for name in filters:
            data = zlib.decompress(data) if name == b"/FlateDecode" else base64.a85decode(data.strip().removesuffix(b"~>"))
    except (ValueError, zlib.error) as error:
        raise UnreadableDocument(f"a stream is damaged ({error})") from error
    return _PdfStream(head, data, own[end:], filters)


def _changed_text(match: re.Match[bytes], change: Change) -> bytes:
    """Return an operator that shows text, with its text changed."""
    if match[1] is not None:
        return _changed(match[1], change) + match[0][len(match[1]):]
    strings = [_read(each) for each in _ONE.findall(match[2])]
    text = "".join(strings)
    if change(text) == text:
        return match[0]
    if any(one[-1:].isalnum() and other[:1].isalnum() for one, other in pairwise(strings)):
        raise UnreadableDocument("a word that changes is drawn in pieces")
    return b"[" + _written(change(text)) + b"] TJ"


def _read(string: bytes) -> str:
    """Return the text of a string in brackets."""
    def letter(match: re.Match[bytes]) -> bytes:
        own = match[1]
        if own[:1].isdigit():
            return bytes([int(own, 8) & 255])
        return b"" if own.endswith(b"\n") else _LETTERS.get(own, own)
    return _ESCAPED.sub(letter, string[1:-1]).decode("latin-1")


def _changed(string: bytes, change: Change) -> bytes:
    """Return a string in brackets with its text changed; itself where that stays."""
    text = _read(string)
    changed = change(text)
    return string if changed == text else _written(changed)


def _written(text: str) -> bytes:
    """Return a text as a string in brackets."""
    try:
        data = text.encode("latin-1")
    except UnicodeEncodeError:
        raise UnreadableDocument("the new text has letters outside of Latin-1") from None
    return b"(" + re.sub(rb"([()\\\r])", lambda match: b"\\" + (b"r" if match[1] == b"\r" else match[1]), data) + b")"
