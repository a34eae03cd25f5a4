"""Tools of Drive and Sheets over a company's world, and formulas."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import CompanyDesk, CompanyWorld, FieldVersion, Undecided
from env_builder.runtime.office.company import CompanyEpisode, CompanySetup, CompanySuite
from env_builder.runtime.office.sheet_formulas import Recalculation, column_of, shown

_ROWS = [["Who", "Sum"], ["Total", "=SUM(B3:B400)"], ["ada", "3"], ["bob", "4.5"]]
_PEOPLE = {"ada@example.org": ("Finance", "Head of Finance"), "bob@example.org": ("Garden", "Product Manager"),
           "eve@example.org": ("Garden", "Product Manager"), "kim@example.org": ("Kitchen", "Manager")}


def suite() -> CompanySuite:
    rows = [("sheet", "f1", "name", "Ledger"), ("sheet", "f1", "owner", "ada@example.org"), ("sheet", "f1", "!Sums", _ROWS),
            ("sheet", "f1", "readers", ["managers"])]
    for address, (department, title) in _PEOPLE.items():
        rows += [("person", address, "dept", department), ("person", address, "title", title)]
    versions = [FieldVersion(kind, key, name, value, 0) for kind, key, name, value in rows]
    return CompanySuite("company", CompanySetup(CompanyWorld(versions), products=("drive",)))


def desk(address: str) -> CompanyEpisode:
    apps = suite()
    return CompanyEpisode(apps, CompanyDesk(apps.start_of("2026-03-02T09:00:00Z", address)))


def test_a_sum_is_recalculated_after_a_row_was_appended() -> None:
    episode = desk("ada@example.org")
    read = {"spreadsheet_id": "f1", "range_name": "Sums!A1:B2"}
    assert "['Total', '7.5']" in episode.call("read_sheet_values", read).content
    episode.call("append_sheet_row", {"spreadsheet_id": "f1", "sheet": "Sums", "values": ["zoe", "2.5"]})
    assert "['Total', '10']" in episode.call("read_sheet_values", read).content
    episode.call("modify_sheet_values", {"spreadsheet_id": "f1", "range_name": "Sums!B4:C4", "values": [["0", "late"]]})
    answer = episode.call("read_sheet_values", {"spreadsheet_id": "f1", "range_name": "Sums!A4:C5"}).content
    assert answer.splitlines()[1:] == ["Row  1: ['bob', '0', 'late']", "Row  2: ['zoe', '2.5']"]


@pytest.mark.parametrize(("address", "is_reader"), [
    ("ada@example.org", True), ("bob@example.org", False), ("kim@example.org", True)])
def test_a_file_for_managers_is_not_found_by_others(address: str, is_reader: bool) -> None:
    episode = desk(address)
    assert episode.call("search_drive_files", {"query": "led"}).content.startswith("Found 1" if is_reader else "No files found")
    assert episode.call("read_sheet_values", {"spreadsheet_id": "f1"}).is_error is not is_reader


def test_without_a_directory_files_of_groups_are_undecided() -> None:
    rows = [("sheet", "f1", "name", "Ledger"), ("sheet", "f1", "readers", ["Finance"]), ("sheet", "f2", "name", "Menu"),
            ("sheet", "f2", "readers", []), ("slack_user", "U1", "email", "ada@example.org")]
    world = CompanyWorld(FieldVersion(kind, key, name, value, 0) for kind, key, name, value in rows)
    apps = CompanySuite("company", CompanySetup(world, products=("drive",)))
    episode = CompanyEpisode(apps, CompanyDesk(apps.start_of("2026-03-02T09:00:00Z", "ada@example.org")))
    assert episode.call("get_spreadsheet_info", {"spreadsheet_id": "f1"}).tier == "unknown"
    assert episode.call("get_spreadsheet_info", {"spreadsheet_id": "f2"}).tier == "derived"


def test_a_range_that_is_none_is_refused_and_changes_nothing() -> None:
    episode = desk("ada@example.org")
    for name in ("Other!A1", "Sums!?"):
        assert episode.call("modify_sheet_values", {"spreadsheet_id": "f1", "range_name": name, "values": [["x"]]}).is_error
    assert episode.difference()["documents"] == {}


@pytest.mark.parametrize(("formula", "value"), [
    ("=1+2*3^2", "19"), ("=-(2-5)%", "0.03"), ('="a"&1&"b"', "a1b"), ("=A1+$A$2", "5"), ("=SUM(A1:A3,10)", "15"),
    ("=AVERAGE(A1:A2)", "2.5"), ('=COUNTIF(A1:A4,">2")', "1"), ('=COUNTIF(A1:A4,"x")', "1"), ('=SUMIF(A1:A3,">2",A1:A3)', "3"),
    ('=IF(A1<A2,"less","more")', "less"), ("=ROUND(2.345,2)", "2.35"), ("='my tab'!A1*2", "14"), ("=COUNTA(A1:A4)", "3"),
    ("=MAX(A1:A3)-MIN(A1:A3)", "1"), ('="x"=A4', "TRUE")])
def test_formulas_show_what_spreadsheets_show(formula: str, value: str) -> None:
    tabs = {"t": [["2", formula], ["3"], [""], ["x"]], "my tab": [["7"]]}
    assert Recalculation(tabs).text("t", 0, 1) == value


@pytest.mark.parametrize("formula", ["=B1", "=VLOOKUP(A1,A1:B2,2)", "=1/0", "=A4+1", "=A:A", "=SUM(", "=other!A1", "=NOW()"])
def test_what_is_not_recalculated_here_is_undecided(formula: str) -> None:
    with pytest.raises(Undecided):
        Recalculation({"t": [["2", formula], ["3"], [""], ["x"]]}).text("t", 0, 1)


@given(st.lists(st.integers(-10**6, 10**6), min_size=1, max_size=30))
def test_a_sum_is_the_sum(numbers: list[int]) -> None:
    tabs = {"t": [[str(number)] for number in numbers] + [[f"=SUM(A1:A{len(numbers)})"]]}
    assert Recalculation(tabs).text("t", len(numbers), 0) == str(sum(numbers))


@given(st.text(max_size=20))
def test_any_text_is_a_formula_or_undecided(text: str) -> None:
    with contextlib.suppress(Undecided):
        assert isinstance(Recalculation({"t": [[f"={text}"]]}).text("t", 0, 0), str)


def test_columns_are_counted_by_letters() -> None:
    assert [column_of(letters) for letters in ("A", "Z", "AA", "zz")] == [0, 25, 26, 701]
    assert shown(2.0) == "2"
