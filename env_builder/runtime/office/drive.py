"""Answer the tools of Google Drive and Sheets as a Google Workspace server names and shows them; product `drive` of a company.

In: a desk and a call's arguments. Out: the server's sentences, or its refusal behind "Error: ".
Sees: files with their revisions, tabs of workbooks and their cells, who may read a file (as the last export says); formulas
(sheet_formulas.py). Who may not read a file does not find it.
Does not see: folders, comments, formats of numbers, files without content; saves that one revision merged.
"""

from __future__ import annotations

import re
from typing import Any

from ..company import CompanyDesk, ProductRefusal
from .sheet_formulas import Recalculation, column_of
from .tools import OfficeTool

SERVER = "google-workspace-drive"
FILE = "sheet"
"""Class of files, workbooks and documents alike."""
_RANGE = re.compile(r"(?:(?P<tab>'(?:[^']|'')+'|[^!]+)!)?(?P<cells>\$?[A-Za-z]+\$?\d*(?::\$?[A-Za-z]*\$?\d*)?)?")
_CORNER = re.compile(r"\$?([A-Za-z]*)\$?(\d*)")
_WORKBOOK = "application/vnd.google-apps.spreadsheet"
_MOST = 10_000
Arguments = dict[str, Any]
Rows = list[list[str]]


def refused(sentence: str) -> ProductRefusal:
    """Return a refusal as the server writes it."""
    return ProductRefusal(f"Error: {sentence}")


def file_of(desk: CompanyDesk, given: Any) -> str:
    """Return the id of a file that the person may read. Errors: ProductRefusal."""
    key = str(given or "")
    if not desk.exists(FILE, key) or not desk.sees(FILE, key):
        raise refused(f"File not found: {key}.")
    return key


def tabs_of(desk: CompanyDesk, key: str) -> dict[str, Rows]:
    """Return the tabs of a workbook. Errors: Undecided."""
    return {name[1:]: rows for name in desk.fields(FILE, key) if name.startswith("!")
            and (rows := desk.value(FILE, key, name)) is not None}


def _tab_names(desk: CompanyDesk, key: str) -> list[str]:
    """Return the names of a workbook's tabs, what they hold being known or not."""
    names = (name for name in desk.fields(FILE, key) if name.startswith("!"))
    return [name[1:] for name in names if desk.last_known(FILE, key, name) is not None]


def _search(desk: CompanyDesk, arguments: Arguments) -> str:
    query = str(arguments.get("query") or "")
    wanted = query.casefold()
    keys = [key for key in desk.ids(FILE) if desk.sees(FILE, key) and wanted in _name(desk, key).casefold()]
    if not keys:
        return f"No files found for '{query}'."
    lines = [_line(desk, key) for key in sorted(keys, key=lambda key: (_name(desk, key), key))]
    return "\n".join([f"Found {len(keys)} files:", *lines[:int(arguments.get("page_size") or _MOST)]])


def _name(desk: CompanyDesk, key: str) -> str:
    return str(desk.value(FILE, key, "name", ""))


def _line(desk: CompanyDesk, key: str) -> str:
    tabs = _tab_names(desk, key)
    sheets = f", Sheets: {tabs}" if tabs else ""
    return f'- Name: "{_name(desk, key)}" (ID: {key}, Owner: {desk.value(FILE, key, "owner", "")}{sheets})'


def _list_workbooks(desk: CompanyDesk, arguments: Arguments) -> str:
    keys = [key for key in desk.ids(FILE) if desk.sees(FILE, key) and _tab_names(desk, key)]
    if not keys:
        return "No spreadsheets found."
    return "\n".join([f"Found {len(keys)} spreadsheets:", *(_line(desk, key) for key in sorted(
        keys, key=lambda key: (_name(desk, key), key)))])


def _describe(desk: CompanyDesk, arguments: Arguments) -> str:
    key = file_of(desk, arguments.get("spreadsheet_id"))
    lines = [f'  - "{name}" ({len(rows)}x{max(map(len, rows), default=0)})' for name, rows in tabs_of(desk, key).items()]
    return "\n".join([f'Spreadsheet: "{_name(desk, key)}" (ID: {key})', f"Sheets ({len(lines)}):", *lines])


def _read_content(desk: CompanyDesk, arguments: Arguments) -> str:
    key = file_of(desk, arguments.get("file_id") or arguments.get("document_id"))
    tabs = tabs_of(desk, key)
    if not tabs:
        return str(desk.value(FILE, key, "text", ""))
    book = Recalculation(tabs)
    return "\n".join(",".join(book.text(name, row, column) for column in range(len(rows[row])))
                     for name, rows in tabs.items() for row in range(len(rows)))


def _read_values(desk: CompanyDesk, arguments: Arguments) -> str:
    key, given = file_of(desk, arguments.get("spreadsheet_id")), str(arguments.get("range_name") or "A1:Z1000")
    tabs = tabs_of(desk, key)
    tab, top, first, bottom, last = _place(tabs, given)
    book, rows = Recalculation(tabs), []
    for row in range(top, min(bottom + 1, len(tabs[tab]))):
        cells = [book.text(tab, row, column) for column in range(first, min(last + 1, len(tabs[tab][row])))]
        while cells and cells[-1] == "":
            cells.pop()
        rows.append(cells)
    while rows and not rows[-1]:
        rows.pop()
    if not rows:
        return f"No data found in range '{given}' for {desk.address}."
    lines = [f"Row {number:2}: {cells}" for number, cells in enumerate(rows, start=1)]
    head = f"Successfully read {len(rows)} rows from range '{given}' in spreadsheet {key} for {desk.address}:"
    return "\n".join([head, *lines])


def _place(tabs: dict[str, Rows], given: str) -> tuple[str, int, int, int, int]:
    """Return tab, first row and column, last row and column of a range in A1 notation. Errors: ProductRefusal."""
    match = _RANGE.fullmatch(given.strip())
    named = None if match is None else match["tab"]
    tab = next(iter(tabs), "") if named is None else named[1:-1].replace("''", "'") if named.startswith("'") else named
    if match is None or tab not in tabs:
        raise refused(f"Unable to parse range: {given}")
    begin, _, end = (match["cells"] or "A1:ZZZ").partition(":")
    (left_letters, top), (letters, bottom) = (_CORNER.fullmatch(each).groups() for each in (begin, end or begin))  # type: ignore[union-attr]
    return (tab, int(top or 1) - 1, column_of(left_letters) if left_letters else 0,
            int(bottom) - 1 if bottom else _MOST, column_of(letters) if letters else _MOST)


def _modify(desk: CompanyDesk, arguments: Arguments) -> str:
    key, given = file_of(desk, arguments.get("spreadsheet_id")), str(arguments.get("range_name") or "")
    tabs = tabs_of(desk, key)
    tab, top, first, bottom, last = _place(tabs, given)
    values = [] if arguments.get("clear_values") else arguments.get("values") or []
    rows = [list(row) for row in tabs[tab]]
    if arguments.get("clear_values"):
        values = [[""] * (min(last, len(row) - 1) - first + 1) for row in rows[top:bottom + 1]]
    if any(not isinstance(row, list) for row in values):
        raise refused("Invalid values: a list of rows is expected")
    for index, row in enumerate(values, start=top):
        rows += [[] for _ in range(index + 1 - len(rows))]
        rows[index] += [""] * (first + len(row) - len(rows[index]))
        rows[index][first:first + len(row)] = map(_typed, row)
    desk.write(FILE, key, **{f"!{tab}": rows, "modified": desk.now})
    if arguments.get("clear_values"):
        return f"Successfully cleared range '{given}' in spreadsheet {key} for {desk.address}."
    n_columns = max((len(row) for row in values), default=0)
    return (f"Successfully updated range '{given}' in spreadsheet {key} for {desk.address}. "
            f"Updated: {sum(map(len, values))} cells, {len(values)} rows, {n_columns} columns.")


def _typed(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "" if value is None else str(value)


def _append(desk: CompanyDesk, arguments: Arguments) -> str:
    key, tab = file_of(desk, arguments.get("spreadsheet_id")), str(arguments.get("sheet") or arguments.get("range_name") or "")
    tabs = tabs_of(desk, key)
    if tab not in tabs:
        raise refused(f"Unable to parse range: {tab}")
    given = arguments.get("values") or []
    added = given if given and isinstance(given[0], list) else [given]
    rows = [*tabs[tab], *([_typed(value) for value in row] for row in added)]
    desk.write(FILE, key, **{f"!{tab}": rows, "modified": desk.now})
    return f"Successfully appended {len(added)} rows to sheet '{tab}' of {key}."


def _create(desk: CompanyDesk, arguments: Arguments) -> str:
    title, key = str(arguments.get("title") or ""), desk.made_id("file", 33)
    if not title:
        raise refused("title is required")
    names = arguments.get("sheet_names") or ["Sheet1"]
    tabs: dict[str, Rows] = {f"!{name}": [] for name in names}
    desk.write(FILE, key, name=title, owner=desk.address, mime_type=_WORKBOOK, readers=[], modified=desk.now, **tabs)
    return f"Successfully created spreadsheet '{title}' for {desk.address}. ID: {key}"


TOOLS: dict[str, OfficeTool] = {
    "search_drive_files": OfficeTool(_search),
    "get_drive_file_content": OfficeTool(_read_content),
    "list_spreadsheets": OfficeTool(_list_workbooks),
    "get_spreadsheet_info": OfficeTool(_describe),
    "read_sheet_values": OfficeTool(_read_values),
    "modify_sheet_values": OfficeTool(_modify, writes=(FILE,)),
    "append_sheet_row": OfficeTool(_append, writes=(FILE,)),
    "create_spreadsheet": OfficeTool(_create, writes=(FILE,)),
}
