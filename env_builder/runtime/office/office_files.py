"""Files of an office: workbooks (`.xlsx`) and documents (`.docx`), written and read with the standard library.

In: tabs as rows of typed texts, or a text. Out: bytes, the same for the same input; and back. A cell's text is a formula if it
begins with "=", a number if a program that reads it as one shows the same text, else a text. Of a formula the value that it
shows is written beside it, where `sheet_formulas` can reckon it. Rows that are read are as wide as the widest one.
Does not see: formats, charts, comments, macros; the dates behind numbers; runs and styles of documents.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from ..company import Undecided
from .sheet_formulas import Recalculation, column_of

Rows = list[list[str]]
MOST_BYTES = 50_000_000
"""Of an office file once it is unpacked."""
_MOST_CELLS = 1_000_000
_NUMBER = re.compile(r"-?\d{1,17}(?:\.\d{1,17})?(?:e[+-]?\d{1,3})?")
_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_x(?=[0-9A-Fa-f]{4}_)")
"""What XML cannot hold, and what would be read as an escape."""
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/"
_FORMAT = "application/vnd.openxmlformats-officedocument."
_BEGINNING = (1980, 1, 1, 0, 0, 0)


def write_workbook(tabs: Mapping[str, Sequence[Sequence[str]]]) -> bytes:
    """Return the `.xlsx` file of tabs, in their order."""
    book = Recalculation(tabs)
    sheets, relations, parts = "", "", {}
    for number, (name, rows) in enumerate(tabs.items(), start=1):
        sheets += f'<sheet name={quoteattr(_UNWRITABLE.sub("", name))} sheetId="{number}" r:id="rId{number}"/>'
        relations += _relation(number, f"{_OFFICE}/worksheet", f"worksheets/sheet{number}.xml")
        lines = "".join(
            f'<row r="{row + 1}">{"".join(_cell(book, name, row, column) for column in range(len(cells)))}</row>'
            for row, cells in enumerate(rows))
        parts[f"xl/worksheets/sheet{number}.xml"] = f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'
    whole = f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{sheets}</sheets></workbook>'
    kinds = {"xl/workbook.xml": "spreadsheetml.sheet.main", **dict.fromkeys(parts, "spreadsheetml.worksheet")}
    return _archive(kinds, {"xl/workbook.xml": whole, "xl/_rels/workbook.xml.rels": _relations(relations), **parts})


def read_workbook(content: bytes) -> dict[str, Rows]:
    """Return the tabs of an `.xlsx` file by name, in its order. Errors: ValueError for any other file."""
    parts = _parts(content)
    try:
        shared = [_unescaped(_text(item)) for item in _tree(parts["xl/sharedStrings.xml"]) if _tag(item) == "si"
                  ] if "xl/sharedStrings.xml" in parts else []
        targets = {each.attrib["Id"]: each.attrib["Target"] for each in _tree(parts["xl/_rels/workbook.xml.rels"])}
        tabs: dict[str, Rows] = {}
        for sheet in _tree(parts["xl/workbook.xml"]).iter():
            if _tag(sheet) == "sheet":
                target = targets[next(value for name, value in sheet.attrib.items() if name.endswith("}id"))]
                tabs[sheet.attrib["name"]] = _rows(parts[target[1:] if target.startswith("/") else f"xl/{target}"], shared)
        return tabs
    except (KeyError, IndexError, StopIteration, ElementTree.ParseError) as error:
        raise ValueError(f"no workbook: {error}") from error


def write_document(text: str) -> bytes:
    """Return the `.docx` file of a text, a paragraph a line."""
    paragraphs = "".join(
        "<w:p><w:r>" + "<w:tab/>".join(f'<w:t xml:space="preserve">{escape(part)}</w:t>' for part in line.split("\t"))
        + "</w:r></w:p>" for line in _UNWRITABLE.sub("", text).split("\n"))
    whole = f'<w:document xmlns:w="{_WORD}"><w:body>{paragraphs}</w:body></w:document>'
    return _archive({"word/document.xml": "wordprocessingml.document.main"}, {"word/document.xml": whole})


def read_document(content: bytes) -> str:
    """Return the paragraphs of a `.docx` file, one a line. Errors: ValueError for any other file."""
    signs = {"tab": "\t", "br": "\n"}
    try:
        tree = _tree(_parts(content)["word/document.xml"])
    except (KeyError, ElementTree.ParseError) as error:
        raise ValueError(f"no document: {error}") from error
    return "\n".join(
        "".join(signs.get(_tag(each)) or each.text or "" for each in paragraph.iter() if _tag(each) in ("t", *signs))
        for paragraph in tree.iter() if _tag(paragraph) == "p")


def trimmed(rows: Sequence[Sequence[str]]) -> Rows:
    """Return rows without the empty cells and rows at their ends: what two tabs of the same cells have in common."""
    cells = [list(map(str, row)) for row in rows]
    for row in cells:
        while row and row[-1] == "":
            row.pop()
    while cells and not cells[-1]:
        cells.pop()
    return cells


def letters_of(column: int) -> str:
    """Return the letters of a column, from 0."""
    letters, number = "", column + 1
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(65 + digit) + letters
    return letters


def _archive(kinds: Mapping[str, str], parts: Mapping[str, str]) -> bytes:
    """Return the zip archive of an office file. `kinds`: path of a part -> its kind; the first one is the main part."""
    overrides = "".join(f'<Override PartName="/{path}" ContentType="{_FORMAT}{kind}+xml"/>' for path, kind in kinds.items())
    types = (f'<Types xmlns="{_PACKAGE}content-types"><Default Extension="rels" ContentType="application/'
             f'vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
             f"{overrides}</Types>")
    whole = {"[Content_Types].xml": types,
             "_rels/.rels": _relations(_relation(1, f"{_OFFICE}/officeDocument", next(iter(kinds)))), **parts}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in whole.items():
            archive.writestr(zipfile.ZipInfo(path, _BEGINNING), _HEAD + text)
    return buffer.getvalue()


def _relation(number: int, kind: str, target: str) -> str:
    return f'<Relationship Id="rId{number}" Type="{kind}" Target="{target}"/>'


def _relations(relations: str) -> str:
    return f'<Relationships xmlns="{_PACKAGE}relationships">{relations}</Relationships>'


def _cell(book: Recalculation, tab: str, row: int, column: int) -> str:
    typed, place = book.typed((tab, row, column)), f"{letters_of(column)}{row + 1}"
    if typed.startswith("=") and len(typed) > 1:
        try:
            value = book.text(tab, row, column)
            kind = "" if _is_number(value) else ' t="str"'
            shown = f"<v>{_escaped(value)}</v>"
        except Undecided:
            kind = shown = ""
        return f'<c r="{place}"{kind}><f>{_escaped(typed[1:])}</f>{shown}</c>'
    if _is_number(typed):
        return f'<c r="{place}"><v>{typed}</v></c>'
    if typed in ("TRUE", "FALSE"):
        return f'<c r="{place}" t="b"><v>{int(typed == "TRUE")}</v></c>'
    text = f'<is><t xml:space="preserve">{_escaped(typed)}</t></is>'
    return f'<c r="{place}" t="inlineStr">{text}</c>' if typed else ""


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and _number_text(float(text)) == text


def _number_text(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _escaped(text: str) -> str:
    return escape(_UNWRITABLE.sub(
        lambda match: "_x005F_x" if match[0] == "_x" else f"_x{ord(match[0]):04X}_", text))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _parts(content: bytes) -> dict[str, bytes]:
    """Return the parts of an office file. Errors: ValueError."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            listed = archive.infolist()
            if sum(each.file_size for each in listed) > MOST_BYTES:
                raise ValueError("the file is too large once it is unpacked")
            return {each.filename: archive.read(each) for each in listed if each.filename.endswith((".xml", ".rels"))}
    except (zipfile.BadZipFile, EOFError, RuntimeError) as error:
        raise ValueError(f"no office file: {error}") from error


def _tree(content: bytes) -> ElementTree.Element:
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ValueError("a part of an office file with a document type")
    return ElementTree.fromstring(content)


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(item: ElementTree.Element) -> str:
    """Return the text of a string item: its runs, without phonetic guides."""
    if _tag(item) == "rPh":
        return ""
    return (item.text or "") if _tag(item) == "t" else "".join(map(_text, item))


def _rows(content: bytes, shared: Sequence[str]) -> Rows:
    cells: dict[tuple[int, int], str] = {}
    for row_number, row in enumerate((each for each in _tree(content).iter() if _tag(each) == "row"), start=1):
        at_row = int(row.attrib.get("r", row_number))
        for column_number, cell in enumerate(each for each in row if _tag(each) == "c"):
            match = _CELL.fullmatch(cell.attrib.get("r", ""))
            value = _value(cell, shared)
            if value:
                cells[at_row, column_of(match[1]) if match else column_number] = value
    height, width = max((row for row, _ in cells), default=0), max((column for _, column in cells), default=-1) + 1
    if height * width > _MOST_CELLS:
        raise ValueError(f"a tab of {height} rows and {width} columns")
    return [[cells.get((row, column), "") for column in range(width)] for row in range(1, height + 1)]


def _value(cell: ElementTree.Element, shared: Sequence[str]) -> str | None:
    parts = {_tag(part): part for part in cell}
    kind = cell.attrib.get("t", "n")
    formula = parts.get("f")
    if formula is not None and formula.text:
        return f"={_unescaped(formula.text)}"
    if kind == "inlineStr":
        return _unescaped(_text(parts["is"])) if "is" in parts else None
    text = parts["v"].text if "v" in parts else None
    if text is None:
        return None
    if kind == "s":
        return shared[int(text)]
    if kind == "b":
        return "TRUE" if text == "1" else "FALSE"
    return _unescaped(text) if kind in ("str", "e", "d") else _number_text(float(text))
