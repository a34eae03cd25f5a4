"""Names in files change with those on pages: texts of PDFs are rewritten, and hashes follow the bytes."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.canonical import digest
from env_builder.runtime.documents import rewritten, texts_of
from env_builder.runtime.exchanges import NameClasses
from env_builder.runtime.relabelling import Renaming


def pdf(lines: list[bytes], filters: tuple[str, ...] = ("ASCII85Decode", "FlateDecode"), extra: bytes = b"") -> bytes:
    """Return a PDF that shows lines, each an operand of Tj or TJ."""
    data = b"BT /F1 12 Tf " + b" ".join(lines) + b" ET"
    for name in reversed(filters):
        data = zlib.compress(data) if name == "FlateDecode" else base64.a85encode(data) + b"~>"
    packing = b"/Filter [" + b" ".join(b"/" + name.encode() for name in filters) + b"] " if filters else b""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>", b"<< /Title (Sheet 1234) >>",
               b"<< " + packing + extra + b"/Length %d >>\nstream\n" % len(data) + data + b"\nendstream"]
    content, places = b"%PDF-1.4\n", []
    for number, own in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n" % number + own + b"\nendobj\n"
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    return content + b"xref\n0 5\n0000000000 65535 f \n" + rows + (
        b"trailer\n<< /Size 5 /Root 1 0 R /Info 3 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(content))


def change(text: str) -> str:
    return text.replace("1234", "987654")


@pytest.mark.parametrize("filters", [(), ("FlateDecode",), ("ASCII85Decode", "FlateDecode")])
def test_the_text_of_a_pdf_changes_and_its_table_of_objects_is_right(filters: tuple[str, ...]) -> None:
    before = pdf([rb"(Sheet \(1234\)) Tj", rb"[(of 1234) -20 ( items)] TJ"], filters)
    after = rewritten(before, change)
    assert after is not None and after != before
    assert texts_of(after) == ("Sheet 987654", "Sheet (987654)", "of 987654 items")
    begin = after.rindex(b"xref\n0", 0, after.index(b"startxref"))
    assert int(after.split(b"startxref")[1].split()[0]) == begin
    for number, row in enumerate(after[begin:].splitlines()[3:7], 1):
        assert after[int(row.split()[0]):].startswith(b"%d 0 obj" % number)


@pytest.mark.parametrize("content", [
    pdf([b"<0102> Tj"]), pdf([b"[(Sheet 12) -3 (34)] TJ"]), pdf([b"(1234) Tj"])[:-40] + b"/Encrypt startxref",
    b"\x89PNG\0\x01", b"\xff\xfe1234"])
def test_what_cannot_be_read_is_left_alone(content: bytes) -> None:
    assert rewritten(content, change) is None


def test_letters_beyond_latin_cannot_be_written() -> None:
    assert rewritten(pdf([b"(1234) Tj"]), lambda text: text.replace("1234", "Ω")) is None
    assert rewritten(b"1234", lambda text: text.replace("1234", "Ω")) == "Ω".encode()


@given(st.binary(max_size=300))
def test_any_bytes_are_changed_or_left(content: bytes) -> None:
    assert rewritten(content, lambda text: text) in (content, None)
    for around in (b"%PDF-" + content, b"%PDF-" + content + b"startxref", pdf([b"(" + content + b") Tj"], ())):
        assert rewritten(around, lambda text: text) in (around, None)


def test_hashes_are_those_of_the_files_with_this_episodes_names(tmp_path: Path) -> None:
    files = {}
    for content in (b"sheet 1234\n", pdf([b"(of 1234) Tj"]), b"nothing\n", b"\0 1234"):
        (tmp_path / digest(content)).write_bytes(content)
        files[digest(content)] = tmp_path / digest(content)
    renaming = Renaming(frozenset(), 3, NameClasses(numbers=(("1234", "5678"),)), files)
    text, document, plain, binary = files
    assert renaming.shown(f"{text} of 1234") == f"{digest(b'sheet 5678' + bytes([10]))} of 5678"
    assert renaming.shown(plain) == plain and renaming.shown(binary) == binary
    shown = renaming.shown({"sha256": document})
    assert shown["sha256"] != document and renaming.meant(shown) == {"sha256": document}
