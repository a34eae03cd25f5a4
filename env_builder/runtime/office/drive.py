"""Answer the Drive, Sheets and Docs tools of google_workspace_mcp over the files that a desk's person may read.

In: a desk, arguments; files (`sheet`, by id) with their tabs or text. Out: the server's texts, as calls show them where they
do; `bare` of the conventions says that the server leaves out links and does not fill up short rows.
Sees: who could read a file, as the export's last word has it; to others it does not exist. Does not see: folders, so that
`list_drive_items` is not offered; sizes of tabs and their numbers; a file's link, but by its id. A search without operators
looks for its text in names, whatever their case; Drive itself looks in contents too.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ..company import CompanyDesk, ProductRefusal, Undecided
from .tools import OfficeTool
from .workbooks import (
    FILE,
    TAB,
    append_row,
    clear_range,
    parse_range,
    read_range,
    tabs_of,
    write_range,
)

SERVER, PRODUCT = "google-workspace-mcp", "drive"
SHEET_TYPE, DOCUMENT_TYPE = "application/vnd.google-apps.spreadsheet", "application/vnd.google-apps.document"
_LINKS = {SHEET_TYPE: "https://docs.google.com/spreadsheets/d/{}/edit?usp=drivesdk",
          DOCUMENT_TYPE: "https://docs.google.com/document/d/{}/edit?usp=drivesdk"}
_TERM = re.compile(r"""\s*(?:(?P<field>name|fullText|mimeType|modifiedTime|trashed)\s*(?P<sign>contains|!=|<=|>=|=|<|>)\s*
    (?P<value>'(?:[^'\\]|\\.)*'|true|false)|(?P<owner>'(?:[^'\\]|\\.)*')\s+in\s+owners)""", re.VERBOSE)
_STRUCTURED = re.compile(r"\b(?:contains|in owners)\b|\b(?:name|mimeType|modifiedTime|trashed)\s*(?:[!<>]?=|[<>])")
_PAGE, _LIST = 10, 25
Arguments = dict[str, Any]


def search_files(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `search_drive_files`. Errors: Undecided."""
    query = str(arguments["query"])
    test = _structured(query) if _STRUCTURED.search(query) else _has_name(query)
    matching = sorted((key for key in _files(desk) if test(desk, key)), key=lambda key: (_name(desk, key), key))
    for key in matching:
        desk.must_know_rights(FILE, key)
    if not matching:
        return f"No files found for '{query}'."
    matching = matching[:int(arguments.get("page_size") or _PAGE)]
    return "\n".join([f"Found {len(matching)} files:", *(_line(desk, key) for key in matching)])


def _files(desk: CompanyDesk) -> list[str]:
    """Return the files that the person may read, and those that the person perhaps may read."""
    return [key for key in desk.ids(FILE) if desk.sees(FILE, key) or desk.is_doubtful(FILE, key)]


def _line(desk: CompanyDesk, key: str) -> str:
    tabs = tabs_of(desk, key)
    owner = desk.value(FILE, key, "owner")
    return f'- Name: "{_name(desk, key)}" (ID: {key}, Owner: {owner}' + (f", Sheets: {tabs})" if tabs else ")")


def _name(desk: CompanyDesk, key: str) -> str:
    return str(desk.value(FILE, key, "name") or "")


def _has_name(text: str) -> Callable[[CompanyDesk, str], bool]:
    return lambda desk, key: text.casefold() in _name(desk, key).casefold()


def _structured(query: str) -> Callable[[CompanyDesk, str], bool]:
    """Return the test of a query of Drive's language: terms joined by `and` and `or`, each perhaps with `not`.

    Errors: Undecided."""
    anyone: list[list[Callable[[CompanyDesk, str], bool]]] = [[]]
    rest = query.strip()
    while rest:
        is_not = re.match(r"not\s+", rest)
        rest = rest[is_not.end():] if is_not else rest
        match = _TERM.match(rest)
        if match is None:
            raise Undecided(f"the query {query!r} is outside the grammar at {rest!r}")
        anyone[-1].append(_term(match, is_not is None))
        rest = rest[match.end():].strip()
        joined = re.match(r"(and|or)\s+", rest)
        if rest and joined is None:
            raise Undecided(f"the query {query!r} is outside the grammar at {rest!r}")
        if joined is not None:
            rest = rest[joined.end():]
            anyone += [[]] if joined[1] == "or" else []
    return lambda desk, key: any(all(test(desk, key) for test in every) for every in anyone)


def _term(match: re.Match[str], is_positive: bool) -> Callable[[CompanyDesk, str], bool]:
    value = re.sub(r"\\(.)", r"\1", (match["owner"] or match["value"]).strip("'"))
    field, sign = match["field"], match["sign"]

    def has(desk: CompanyDesk, key: str) -> bool:
        if field is None:
            return str(desk.value(FILE, key, "owner")).lower() == value.lower()
        if field == "trashed":
            return (value == "false") is (sign == "=")
        if field == "modifiedTime":
            moment, at = datetime.fromisoformat(value), float(desk.value(FILE, key, "modified"))
            other = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            order = (at > other) - (at < other)
            return {"<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0, "=": order == 0}.get(sign, order != 0)
        if field == "fullText":
            raise Undecided("which words Drive finds in contents is not worked out")
        text = _name(desk, key) if field == "name" else str(desk.value(FILE, key, "mime_type") or "")
        return value.casefold() in text.casefold() if sign == "contains" else (text == value) is (sign == "=")

    return lambda desk, key: has(desk, key) is is_positive


def show_file(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `get_drive_file_content` and `get_doc_content`. Errors: ProductRefusal, Undecided."""
    key = _file(desk, str(arguments.get("file_id") or arguments.get("document_id")))
    kind = str(desk.value(FILE, key, "mime_type") or "")
    lines = [f'File: "{_name(desk, key)}" (ID: {key}, Type: {kind})']
    lines += [] if _is_bare(desk) or kind not in _LINKS else [f"Link: {_LINKS[kind].format(key)}"]
    tabs = tabs_of(desk, key)
    if tabs:
        text = io.StringIO()
        rows = read_range(desk, key, parse_range(desk, key, tabs[0]))
        width = max(map(len, rows), default=0)
        csv.writer(text).writerows(row + [""] * (width - len(row)) for row in rows)
        content = text.getvalue().removesuffix("\r\n")
    else:
        content = desk.value(FILE, key, "text")
        if content is None:
            raise Undecided(f"the export has no text of the file {key}")
    return "\n".join([*lines, "", "--- CONTENT ---", content])


def list_spreadsheets(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `list_spreadsheets`: the latest changed first. Errors: Undecided."""
    keys = [key for key in _files(desk) if desk.value(FILE, key, "mime_type") == SHEET_TYPE]
    for key in keys:
        desk.must_know_rights(FILE, key)
    keys.sort(key=lambda key: (-float(desk.value(FILE, key, "modified") or 0), key))
    if not keys:
        return f"No spreadsheets found for {desk.address}."
    keys = keys[:int(arguments.get("max_results") or _LIST)]
    return "\n".join([f"Successfully listed {len(keys)} spreadsheets for {desk.address}:", *(
        f'- "{_name(desk, key)}" (ID: {key}) | Modified: {_instant(desk.value(FILE, key, "modified"))}'
        + ("" if _is_bare(desk) else f" | Link: {_LINKS[SHEET_TYPE].format(key)}") for key in keys)])


def read_values(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `read_sheet_values`. Errors: ProductRefusal, Undecided."""
    key, text = _file(desk, str(arguments["spreadsheet_id"])), str(arguments.get("range_name") or "A1:Z1000")
    rows = read_range(desk, key, parse_range(desk, key, text))
    if not rows:
        return f"No data found in range '{text}' for {desk.address}."
    if not _is_bare(desk):
        rows = [row + [""] * (len(rows[0]) - len(row)) for row in rows]
    return "\n".join([f"Successfully read {len(rows)} rows from range '{text}' in spreadsheet {key} for {desk.address}:",
                      *(f"Row {number:2d}: {row}" for number, row in enumerate(rows, start=1))])


def modify_values(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `modify_sheet_values`. Errors: ProductRefusal, Undecided."""
    key, text = _file(desk, str(arguments["spreadsheet_id"])), str(arguments["range_name"])
    block = parse_range(desk, key, text)
    if arguments.get("clear_values"):
        clear_range(desk, key, block)
        return f"Successfully cleared range '{text}' in spreadsheet {key} for {desk.address}."
    values = arguments.get("values")
    try:
        values = json.loads(values) if isinstance(values, str) else values
    except ValueError as error:
        raise ProductRefusal(f"Error: Invalid JSON format for values: {error}") from error
    if not isinstance(values, list) or not values or not all(isinstance(row, list) for row in values):
        raise ProductRefusal("Error: Either 'values' must be provided or 'clear_values' must be True.")
    if (block.top, block.first_column) == (block.bottom, block.last_column):   # a single cell is where the block begins
        block = block._replace(bottom=block.top + len(values) - 1, last_column=block.first_column + max(map(len, values)) - 1)
    count = write_range(desk, key, block, values)
    return (f"Successfully updated range '{text}' in spreadsheet {key} for {desk.address}. Updated: {count} cells, "
            f"{len(values)} rows, {max(map(len, values))} columns.")


def append_values(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `append_sheet_row`, a tool that calls show. Errors: ProductRefusal, Undecided."""
    key, tab = _file(desk, str(arguments["spreadsheet_id"])), str(arguments["sheet"])
    if tab not in tabs_of(desk, key):
        raise ProductRefusal(f"Error: Unable to parse range: {tab}")
    append_row(desk, key, tab, list(arguments["values"]))
    return f"Successfully appended 1 rows to sheet '{tab}' of {key}."


def create_spreadsheet(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `create_spreadsheet`."""
    title = str(arguments["title"])
    tabs = [str(each) for each in arguments.get("sheet_names") or ("Sheet1",)]
    key = _create(desk, title, SHEET_TYPE, {TAB + tab: [] for tab in tabs})
    url = "" if _is_bare(desk) else f" | URL: https://docs.google.com/spreadsheets/d/{key}/edit"
    return f"Successfully created spreadsheet '{title}' for {desk.address}. ID: {key}{url}"


def create_document(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `create_doc`."""
    title = str(arguments["title"])
    key = _create(desk, title, DOCUMENT_TYPE, {"text": str(arguments.get("content") or "")})
    link = "" if _is_bare(desk) else f" Link: https://docs.google.com/document/d/{key}/edit"
    return f"Created Google Doc '{title}' (ID: {key}) for {desk.address}.{link}"


def _create(desk: CompanyDesk, title: str, kind: str, content: dict[str, Any]) -> str:
    key = "1" + desk.made_id(f"file/{title}", 32)
    desk.write(FILE, key, name=title, owner=desk.address, mime_type=kind, readers=[desk.address], modified=desk.now, **content)
    return key


def _file(desk: CompanyDesk, key: str) -> str:
    """Return the id of a file that the person may read. Errors: ProductRefusal."""
    if desk.exists(FILE, key):
        desk.must_know_rights(FILE, key)
    if not desk.exists(FILE, key) or not desk.sees(FILE, key):
        raise ProductRefusal(f"Error: File not found: {key}.")
    return key


def _is_bare(desk: CompanyDesk) -> bool:
    return bool(desk.convention(PRODUCT, "bare", False))


def _instant(seconds: Any) -> str:
    return datetime.fromtimestamp(float(seconds), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


TOOLS: dict[str, OfficeTool] = {
    "search_drive_files": OfficeTool(search_files),
    "get_drive_file_content": OfficeTool(show_file),
    "list_spreadsheets": OfficeTool(list_spreadsheets),
    "read_sheet_values": OfficeTool(read_values),
    "modify_sheet_values": OfficeTool(modify_values, writes=True),
    "append_sheet_row": OfficeTool(append_values, writes=True),
    "create_spreadsheet": OfficeTool(create_spreadsheet, writes=True),
    "get_doc_content": OfficeTool(show_file),
    "create_doc": OfficeTool(create_document, writes=True),
}
