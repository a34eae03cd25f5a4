"""The check that tools of a company do not show the future."""

from __future__ import annotations

from env_builder.company.calls import RecordedCall
from env_builder.company.leaks import FutureWords, leaks_of, tried_calls
from env_builder.runtime.company import CompanyState, CompanyWorld, DeskStart, FieldVersion
from env_builder.runtime.office.company import CompanySetup, CompanySuite

ADA, ONE, TWO = "ada@example.org", "file-one", "file-two"
_EARLY, _LATE = 1_772_440_000_000_000, 1_772_540_000_000_000
_CELLS = [["what", "when"], ["harvest", "2026-04-01"]]


def suite() -> CompanySuite:
    rows = [("person", ADA, "name", "Ada", 0), ("sheet", ONE, "name", "Garden", 0), ("sheet", ONE, "owner", ADA, 0),
            ("sheet", ONE, "!Plan", _CELLS, 0), ("sheet", ONE, "!Plan", [*_CELLS, ["bonfire", "2026-05-01"]], _LATE),
            ("sheet", TWO, "name", "Orchard", _LATE), ("sheet", TWO, "owner", ADA, _LATE)]
    world = CompanyWorld(FieldVersion(*row) for row in rows)
    return CompanySuite("company", CompanySetup(world, products=("drive",)))


def calls() -> list[RecordedCall]:
    return [RecordedCall(_LATE, ADA, "search_drive_files", {"query": "garden"}, "", False),
            RecordedCall(_LATE, ADA, "read_sheet_values", {"spreadsheet_id": ONE, "range_name": "Plan!A1:B9"}, "", False),
            RecordedCall(_LATE, ADA, "append_sheet_row", {"spreadsheet_id": ONE, "sheet": "Plan", "values": ["x"]}, "", False)]


def shown(apps: CompanySuite, start: DeskStart, brought: tuple[str, ...] = ()) -> set[tuple[str, str]]:
    words = FutureWords(apps.world)
    return {(leak.tool, leak.shown) for leak in leaks_of(apps, start, tried_calls(apps, start, calls(), words), words, brought)}


def start_of(apps: CompanySuite) -> DeskStart:
    return apps.start_of("2026-03-02T08:26:40+00:00", ADA)


def test_a_world_that_stops_at_its_instant_shows_nothing_of_later() -> None:
    apps = suite()
    assert start_of(apps).state.instant == _EARLY
    assert shown(apps, start_of(apps), ("bonfire",)) == set()


def test_words_and_days_of_later_are_told() -> None:
    apps = suite()
    honest = start_of(apps)
    late = apps.world.at(_LATE)
    leaky = honest._replace(state=CompanyState(apps.world, _EARLY, late._latest))
    assert {("read_sheet_values", "bonfire"), ("read_sheet_values", "2026-05-01")} <= shown(apps, leaky, ("bonfire",))


def test_calls_that_write_are_not_tried_and_ids_are_exchanged() -> None:
    apps = suite()
    tried = tried_calls(apps, start_of(apps), calls(), FutureWords(apps.world))
    assert {call.tool for call in tried} == {"search_drive_files", "read_sheet_values"}
    assert {"spreadsheet_id": TWO, "range_name": "Plan!A1:B9"} in [call.arguments for call in tried]
    assert {"query": "bonfire"} in [call.arguments for call in tried]
