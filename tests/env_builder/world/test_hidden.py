"""Hidden effects from few looks: two changes by amounts that are no chance are enough, two by small ones are not."""

from __future__ import annotations

from typing import Any

import pytest

from env_builder.runtime.expressions import nothing
from env_builder.world import hidden


def sample(amount: float, added: float) -> hidden.Sample:
    bill: dict[str, Any] = {"amount": amount, "of": "p"}
    return hidden.Sample(bill, {}, nothing, {"balance": 70.5}, {"balance": round(70.5 + added, 2)})


@pytest.mark.parametrize(("amounts", "learnt"), [([4803.37, 386.27], 1), ([4803.37, 4803.37], 0), ([3, 7], 0), ([3, 7, 9], 1)])
def test_two_changes_by_numbers_of_many_digits_are_enough(amounts: list[float], learnt: int) -> None:
    found = hidden._learnt([sample(amount, amount) for amount in amounts], ("person", '["before", "of"]'), (), {}, alone=False)
    assert len(found) == learnt and all(one["by"] == ["before", "amount"] for one in found)


def test_one_that_was_seen_otherwise_is_too_many_where_there_are_two() -> None:
    samples = [sample(4803.37, 4803.37), sample(386.27, 386.27), sample(55.12, 0)]
    assert hidden._learnt(samples, ("person", '["before", "of"]'), (), {}, alone=False) == []
