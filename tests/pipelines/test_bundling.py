"""Environments' folders: their names."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pipelines.building.environments import names_of


def test_names_of_services_are_short_plain_and_apart() -> None:
    names = names_of(["Front desk", "front/desk", "../..", "y" * 500, "y" * 400, "Ж"])
    assert list(names.values()) == ["front-desk", "front-desk-2", "service", "y" * 64, "y" * 64 + "-2", "service-2"]


@given(st.lists(st.text(max_size=100), unique=True, max_size=8))
def test_any_services_have_names_that_any_file_system_takes(services: list[str]) -> None:
    names = names_of(services)
    assert list(names) == services and len(set(names.values())) == len(services)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]{0,70}", name) for name in names.values())
