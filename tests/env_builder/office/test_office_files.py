"""Workbooks and documents that are written and read with the standard library."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.office.office_files import (
    letters_of,
    read_document,
    read_workbook,
    trimmed,
    write_document,
    write_workbook,
)
from env_builder.runtime.office.sheet_formulas import column_of
from extractors.apps.workbook import document_text, tabs_of

TYPED = st.one_of(st.text(max_size=9).filter(lambda text: not text.startswith("=")), st.integers().map(str),
                  st.floats(allow_nan=False, allow_infinity=False).map(repr), st.sampled_from(
                      ["TRUE", "007", "1.50", "-0", "=SUM(A1:A2)", "=A1&\"<\"", "=NOW()", "_x0041_", "a\r\nb", " x ", "\x0b"]))
TABS = st.dictionaries(st.text("abc &<\"'", min_size=1, max_size=6), st.lists(st.lists(TYPED, max_size=4), max_size=4),
                       min_size=1, max_size=3)
PLAIN = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)


@given(TABS)
def test_a_workbook_that_is_read_has_the_cells_that_were_written(tabs: dict[str, list[list[str]]]) -> None:
    content = write_workbook(tabs)
    back = read_workbook(content)
    assert list(back) == list(tabs)
    assert {name: trimmed(rows) for name, rows in back.items()} == {name: trimmed(rows) for name, rows in tabs.items()}
    assert write_workbook(tabs) == content
    assert write_workbook(back) == write_workbook(read_workbook(write_workbook(back)))


@given(st.lists(st.lists(PLAIN.filter(lambda text: "_x" not in text and not text.startswith("=")), max_size=3), max_size=3))
def test_the_reader_of_exports_reads_the_same_cells(rows: list[list[str]]) -> None:
    content = write_workbook({"T": rows})
    assert tabs_of(content) == read_workbook(content)


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.just("\t"), max_size=12), min_size=1, max_size=4))
def test_a_document_that_is_read_has_the_lines_that_were_written(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert read_document(write_document(text)) == text == document_text(write_document(text))


def test_a_formula_has_the_value_that_it_shows_beside_it() -> None:
    with zipfile.ZipFile(io.BytesIO(write_workbook({"T": [["2", "=A1*3", "=CODE(A1)"]]}))) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    assert '<c r="B1"><f>A1*3</f><v>6</v></c>' in sheet
    assert '<c r="C1"><f>CODE(A1)</f></c>' in sheet, "nobody reckoned it"


@given(st.integers(0, 20_000))
def test_columns_have_letters(column: int) -> None:
    assert column_of(letters_of(column)) == column


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text", write_document("no workbook")])
def test_other_files_are_no_workbooks(content: bytes) -> None:
    with pytest.raises(ValueError, match="no "):
        read_workbook(content)
