"""Tests of one group are run by one worker: what is expensive is built once for them."""

from __future__ import annotations

import copy

import pytest
from xdist.scheduler import LoadGroupScheduling

from tests.conftest import show_group


@pytest.mark.xdist_group("of one mind")
@pytest.mark.parametrize("value", ["a[b]", "a@b"])
def test_the_scheduler_sees_the_group_of_a_test(value: str, request: pytest.FixtureRequest) -> None:
    item = request.node
    if not getattr(request.config.option, "loadgroup", False):   # without workers there is nothing to deal out
        item = copy.copy(item)
        show_group(item)
    assert LoadGroupScheduling._split_scope(request.config, item.nodeid) == "of one mind"   # type: ignore[arg-type]
    assert item.nodeid.startswith(f"tests/test_groups.py::test_the_scheduler_sees_the_group_of_a_test[{value}]")
