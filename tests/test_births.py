"""From when records exist: `world/births.py` and the spans cut by it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from env_builder.world.births import existing_since
from env_builder.world.spans import DocumentRead as Read
from env_builder.world.spans import Drift, Event, from_birth, spans

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def _read(day: int, document: dict[str, Any]) -> Read:
    return Read(BEGIN + timedelta(days=day), json.dumps(document), False, f"{day}{document}")


def _world(first_parcel_read: int) -> dict[tuple[str, str], list[Event]]:
    """Six shelves, each with one parcel on day 0 and one more on day 10; all parcels are read on the given day or day 10."""
    shown: dict[tuple[str, str], list[Event]] = {}
    for n in range(6):
        shown["shelf", f"S{n}"] = [_read(0, {"parcels": [f"P{n}"]}), _read(10, {"parcels": [f"P{n}", f"Q{n}"]})]
        shown["parcel", f"P{n}"] = [_read(10, {"weight": n})]
        shown["parcel", f"Q{n}"] = [_read(first_parcel_read, {"weight": n})]
    return shown


def test_a_record_that_its_owner_did_not_name_is_not_known_to_exist_before() -> None:
    since = existing_since(_world(11))
    assert since["parcel", "Q0"] >= BEGIN
    shown = _world(11)["parcel", "Q0"]
    cut = list(from_birth(spans("parcel", shown, Drift([])), since["parcel", "Q0"]))
    assert all(span.since is not None and span.since >= BEGIN for span in cut)
    assert since["parcel", "P0"] < BEGIN, "its owner named it on the first day"


def test_records_that_were_read_before_a_list_gained_them_are_linked_and_not_born() -> None:
    earlier: list[Event] = [_read(-1, {"weight": 1})]
    shown = {name: [*earlier, *events] if name[0] == "parcel" else events for name, events in _world(11).items()}
    assert existing_since(shown) == {}


def test_lists_that_never_grow_say_nothing_of_births() -> None:
    shown = {name: events[:1] for name, events in _world(11).items()}
    assert existing_since(shown) == {}
