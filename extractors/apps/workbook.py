"""Contents of files: workbooks (`.xlsx`) as their tabs' cells, documents (`.docx`) and plain files as text.

In: bytes. Out: tabs as rows of cells, or text. Of a cell its formula (`=SUM(…)`), else its value as text (numbers as typed,
without a format), so that rows read like those of a product's API. Rows are as wide as the widest one; empty rows at the end
are dropped.
Does not see: formats, charts, comments, macros; the dates behind numbers.
"""

from __future__ import annotations

import io
import re
import zipfile
from xml.etree import ElementTree

Rows = list[list[str]]
_CELL = re.compile(r"([A-Z]{1,3})(\d+)")
_MOST_CELLS = 2_000_000
_MOST_BYTES = 200_000_000


def tabs_of(content: bytes) -> dict[str, Rows]:
    """Return the tabs of an `.xlsx` file by name, in its order. Errors: ValueError for any other file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(each.file_size for each in archive.infolist()) > _MOST_BYTES:
                raise ValueError("the workbook is larger than 200 MB")
            names = set(archive.namelist())
            shared = _shared(archive.read("xl/sharedStrings.xml")) if "xl/sharedStrings.xml" in names else []
            targets = _targets(archive.read("xl/_rels/workbook.xml.rels"))
            tabs: dict[str, Rows] = {}
            for sheet in _tree(archive.read("xl/workbook.xml")).iter():
                if _tag(sheet) == "sheet":
                    relation = next((value for name, value in sheet.attrib.items() if name.endswith("}id")), "")
                    path = targets.get(relation, "")
                    if path in names:
                        tabs[sheet.attrib["name"]] = _rows(archive.read(path), shared)
            return tabs
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, EOFError) as error:
        raise ValueError(f"no workbook: {error}") from error


def document_text(content: bytes) -> str:
    """Return the paragraphs of a `.docx` file, one a line. Errors: ValueError for any other file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            tree = _tree(archive.read("word/document.xml"))
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, EOFError) as error:
        raise ValueError(f"no document: {error}") from error
    lines = []
    for paragraph in tree.iter():
        if _tag(paragraph) == "p":
            parts = [("\t" if _tag(each) == "tab" else "\n" if _tag(each) == "br" else each.text or "")
                     for each in paragraph.iter() if _tag(each) in ("t", "tab", "br")]
            lines.append("".join(parts))
    return "\n".join(lines)


def _tree(content: bytes) -> ElementTree.Element:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ValueError("a part of an office file with a document type")
    return ElementTree.fromstring(content)


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _targets(content: bytes) -> dict[str, str]:
    targets = {}
    for relation in _tree(content).iter():
        if "Target" in relation.attrib:
            target = relation.attrib["Target"]
            targets[relation.attrib["Id"]] = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    return targets


def _shared(content: bytes) -> list[str]:
    return [_text(item) for item in _tree(content) if _tag(item) == "si"]


def _text(item: ElementTree.Element) -> str:
    """Return the text of a string item: its runs, without phonetic guides."""
    if _tag(item) == "rPh":
        return ""
    return (item.text or "") if _tag(item) == "t" else "".join(map(_text, item))


def _rows(content: bytes, shared: list[str]) -> Rows:
    cells: dict[tuple[int, int], str] = {}
    for row_number, row in enumerate((each for each in _tree(content).iter() if _tag(each) == "row"), start=1):
        at_row = int(row.attrib.get("r", row_number))
        for column_number, cell in enumerate((each for each in row if _tag(each) == "c"), start=1):
            match = _CELL.fullmatch(cell.attrib.get("r", ""))
            column = _column(match[1]) if match else column_number
            value = _value(cell, shared)
            if value:
                cells[at_row, column] = value
    if not cells:
        return []
    height, width = max(row for row, _ in cells), max(column for _, column in cells)
    if height * width > _MOST_CELLS:
        raise ValueError(f"a tab of {height} rows and {width} columns")
    return [[cells.get((row, column), "") for column in range(1, width + 1)] for row in range(1, height + 1)]


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _value(cell: ElementTree.Element, shared: list[str]) -> str | None:
    parts = {_tag(part): part for part in cell}
    kind = cell.attrib.get("t", "n")
    formula = parts.get("f")
    if formula is not None and formula.text:
        return f"={formula.text}"
    if kind == "inlineStr":
        return _text(parts["is"]) if "is" in parts else None
    text = parts["v"].text if "v" in parts else None
    if text is None:
        return None
    if kind == "s":
        return shared[int(text)]
    if kind == "b":
        return "TRUE" if text == "1" else "FALSE"
    if kind in ("str", "e", "d"):
        return text
    number = float(text)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
