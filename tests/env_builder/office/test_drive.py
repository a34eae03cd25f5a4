"""Drive's and Sheets' tools answer over the files that a person may read, with formulas worked out."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import CompanyDesk, FieldVersion, ProductRefusal, Undecided
from env_builder.runtime.office.drive import TOOLS
from env_builder.runtime.office.formulas import column_letters, column_number, shown_value
from tests.small_company import ADA, BEN, CLEO, desk_of, fields_of, is_open, world_of

BARE = {"drive": {"bare": True}}
SHEET = "application/vnd.google-apps.spreadsheet"
CELLS = [["Grain", "Sacks", ""], ["Rye", "3", ""], ["Oats", "4", "x"], ["All", "=SUM(B2:B3)", '=COUNTIF(A2:A3,"R*")']]


def book(
    key: str, name: str, at: float = -50, readers: tuple[str, ...] = ("Flour",), owner: str = BEN, **tabs: list[list[str]]
) -> list[FieldVersion]:
    return fields_of(
        "sheet",
        key,
        at,
        name=name,
        owner=owner,
        mime_type=SHEET,
        readers=list(readers),
        modified=1.0 + at,
        **{f"!{tab}": rows for tab, rows in tabs.items()},
    )


WORLD = world_of(
    book("b1", "Grain store", Store=CELLS),
    book("b2", "Wages", readers=("Sacks",), Pay=[["9"]]),
    book("b3", "Plans", readers=("managers",), Plan=[["1"]]),
    book("b4", "Later grain", at=50, Store=[["1"]]),
)


def ask(desk: CompanyDesk, tool: str, **arguments: Any) -> str:
    return TOOLS[tool].answer(desk, arguments)


def cells(desk: CompanyDesk, text: str, key: str = "b1") -> list[str]:
    return [
        line.partition(": ")[2]
        for line in ask(desk, "read_sheet_values", spreadsheet_id=key, range_name=text).splitlines()[1:]
    ]


def test_a_range_shows_values_of_formulas_without_empty_ends() -> None:
    assert cells(desk_of(WORLD, conventions=BARE), "Store!A2:C9") == [
        "['Rye', '3']",
        "['Oats', '4', 'x']",
        "['All', '7', '1']",
    ]
    assert cells(desk_of(WORLD), "A1:C4")[1:3] == ["['Rye', '3']", "['Oats', '4', 'x']"]
    assert cells(desk_of(world_of(book("b1", "x", T=[["a", "b"], ["c", ""]]))), "T!A:B")[1] == "['c', '']"
    assert ask(desk_of(WORLD), "read_sheet_values", spreadsheet_id="b1", range_name="Store!H1:H9").startswith(
        "No data found in range"
    )
    with pytest.raises(ProductRefusal, match="Unable to parse range"):
        cells(desk_of(WORLD), "Barn!A1")


def test_files_for_others_and_of_the_future_do_not_exist() -> None:
    desk = desk_of(WORLD)
    for key in ("b2", "b3", "b4", "b9"):
        for tool, more in (("read_sheet_values", {}), ("append_sheet_row", {"sheet": "Pay", "values": ["1"]})):
            with pytest.raises(ProductRefusal, match=f"^Error: File not found: {key}.$"):
                ask(desk, tool, spreadsheet_id=key, **more)
    assert ask(desk, "search_drive_files", query="GRAIN") == (
        f"Found 1 files:\n- Name: \"Grain store\" (ID: b1, Owner: {BEN}, Sheets: ['Store'])"
    )
    assert ask(desk, "search_drive_files", query="wages") == "No files found for 'wages'."


def test_whether_a_manager_of_sacks_is_a_manager_is_open() -> None:
    assert cells(desk_of(WORLD, BEN), "A1:A1", "b3") == ["['1']"]
    assert is_open(TOOLS, desk_of(WORLD, CLEO), "read_sheet_values", spreadsheet_id="b3", range_name="A1:A1")
    assert is_open(TOOLS, desk_of(WORLD, CLEO), "search_drive_files", query="plans")
    assert not is_open(TOOLS, desk_of(WORLD, CLEO), "search_drive_files", query="wages")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name contains 'grain' and trashed = false", ["Grain store"]),
        (f"'{BEN}' in owners", ["Grain store"]),
        (f"mimeType != '{SHEET}' or name = 'Grain store'", ["Grain store"]),
        ("not name contains 'grain'", []),
        ("modifiedTime > '2026-01-01T00:00:00'", []),
    ],
)
def test_queries_of_drives_language_are_read(query: str, names: list[str]) -> None:
    answer = ask(desk_of(WORLD), "search_drive_files", query=query)
    assert [line.split('"')[1] for line in answer.splitlines()[1:]] == names


def test_a_query_outside_the_grammar_is_open() -> None:
    for query in ("fullText contains 'rye'", "name contains 'x' xor trashed = true"):
        assert is_open(TOOLS, desk_of(WORLD), "search_drive_files", query=query)


def test_writing_moves_what_formulas_show_and_nothing_else() -> None:
    desk = desk_of(WORLD, conventions=BARE)
    assert ask(desk, "modify_sheet_values", spreadsheet_id="b1", range_name="Store!B2", values=[["30"]]).endswith(
        "Updated: 1 cells, 1 rows, 1 columns."
    )
    assert cells(desk, "Store!A2:C9") == ["['Rye', '30']", "['Oats', '4', 'x']", "['All', '34', '1']"]
    ask(desk, "append_sheet_row", spreadsheet_id="b1", sheet="Store", values=["Wheat", 5])
    assert cells(desk, "Store!A5:C9") == ["['Wheat', '5']"]
    ask(desk, "modify_sheet_values", spreadsheet_id="b1", range_name="Store!A5:C5", clear_values=True)
    assert len(cells(desk, "Store")) == 4
    with pytest.raises(ProductRefusal, match="outside"):
        ask(desk, "modify_sheet_values", spreadsheet_id="b1", range_name="Store!A1:B1", values=[["1"], ["2"]])
    assert cells(desk_of(WORLD, conventions=BARE), "B4:B4") == ["['7']"]


def test_new_files_are_the_persons_own() -> None:
    desk = desk_of(WORLD, conventions=BARE)
    answer = ask(desk, "create_spreadsheet", title="Seeds", sheet_names=["A", "B"])
    key = answer.rpartition("ID: ")[2]
    ask(desk, "modify_sheet_values", spreadsheet_id=key, range_name="B!A1", values='[["=1+1", 2.5]]')
    assert cells(desk, "B!A1:C1", key) == ["['2', '2.5']"]
    document = ask(desk, "create_doc", title="Notes", content="Sow in May.").partition("ID: ")[2].partition(")")[0]
    assert ask(desk, "get_doc_content", document_id=document).endswith("--- CONTENT ---\nSow in May.")
    assert ask(desk, "search_drive_files", query="s").count(ADA) == 2
    assert ask(desk, "get_drive_file_content", file_id="b1").endswith("Grain,Sacks,\r\nRye,3,\r\nOats,4,x\r\nAll,7,1")


def worked_out(formula: str, **others: str) -> str:
    return shown_value(formula, "T", lambda tab, row, column: others.get(f"{column_letters(column)}{row}", ""))


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        ("=1+2*3", "7"),
        ("=(1+2)*3", "9"),
        ("=-2^2", "4"),
        ("=10%*50", "5"),
        ("=1/4", "0.25"),
        ("=A1+B9", "3"),
        ("=A1/B9", "#DIV/0!"),
        ('=A1&"x"', "3x"),
        ("=SUM(A1:A3,1)", "8"),
        ("=SUM(T!A1:A2)", "7"),
        ('=COUNTIF(A1:A3,">3")', "1"),
        ('=COUNTIF(A1:A3;"ry*")', "1"),
        ("=A1>2", "TRUE"),
        ("=A3+1", "#VALUE!"),
        ("=C1", "#REF!"),
        ("plain", "plain"),
    ],
)
def test_formulas_give_what_the_product_shows(formula: str, shown: str) -> None:
    assert worked_out(formula, A1="3", A2="4", A3="rye", C1="=D1", D1="=C1+1") == shown


@pytest.mark.parametrize("formula", ["=VLOOKUP(A1,A1:A3,1)", "=SUM(B1:B2)", "=A4+1", "=1+", "=SUM(1", "=A1:A2", "=#"])
def test_other_functions_and_unknown_formats_are_open(formula: str) -> None:
    with pytest.raises(Undecided):
        worked_out(formula, A1="1", A4="2026-03-02", B1="12.50")


_NUMBERS = st.integers(-50, 50)


@given(st.lists(_NUMBERS, min_size=1, max_size=9), st.integers(-50, 50))
def test_a_sum_is_its_parts_and_a_count_those_above(numbers: list[int], bound: int) -> None:
    column = {f"A{row}": str(number) for row, number in enumerate(numbers, start=1)}
    assert worked_out(f"=SUM(A1:A{len(numbers)})", **column) == str(sum(numbers))
    assert worked_out(f'=COUNTIF(A1:A{len(numbers)},">{bound}")', **column) == str(sum(number > bound for number in numbers))
    assert worked_out("=" + "+".join(column), **column) == str(sum(numbers))


@given(_NUMBERS, _NUMBERS, _NUMBERS)
def test_arithmetic_is_exact(left: int, middle: int, right: int) -> None:
    expected = Decimal(left) - Decimal(middle) * right
    assert worked_out(f"={left}-{middle}*{right}" if middle >= 0 else f"={left}-({middle})*{right}") == str(expected)


@given(st.integers(1, 20000))
def test_columns_have_letters_and_numbers(number: int) -> None:
    assert column_number(column_letters(number)) == number
