"""Success of pieces of work: what was written, done, answered and corrected speaks for and against each."""

from __future__ import annotations

import pytest

from extractors.work.finding import STILL_OPEN, CompanyWork, describe_items
from tests.extractors.work.mill import ROLES, Mill, usual_mill


def found(mill: Mill) -> CompanyWork:
    mill.repair(500)   # the exports go on for long
    return describe_items(*reversed(mill.work()), ROLES)


def test_work_as_all_others_do_it_went_well() -> None:
    work = found(usual_mill())
    assert all(outcome.probability is not None and outcome.probability > 0.5 for outcome in work.outcomes.values())


def test_a_value_that_nobody_had_asked_for_speaks_against_an_item() -> None:
    mill = usual_mill()
    wrong = str(mill.lend(30, 99, asked=42))
    outcome = found(mill).outcomes[wrong]
    assert outcome.probability is not None and outcome.probability < 0.6
    assert any(vote.signal == "copied" and vote.vote < 0 and "Sacks" in vote.detail for vote in outcome.votes)


def test_a_wrong_value_that_was_corrected_ended_well_and_is_told() -> None:
    mill = usual_mill()
    corrected, wrong = str(mill.lend(30, 99, 42, asked=42)), str(mill.lend(31, 99, asked=43))
    outcomes = found(mill).outcomes
    assert (outcomes[corrected].probability or 0) > (outcomes[wrong].probability or 1) + 0.2
    assert ("99", "42") in [(each.wrong, each.right) for each in outcomes[corrected].corrections]
    assert not outcomes[wrong].corrections


def test_an_item_in_a_state_that_others_leave_failed_and_near_the_end_is_still_open() -> None:
    mill = usual_mill()
    abandoned, still_open = str(mill.repair(40, ends=False)), str(mill.repair(500, ends=False))
    mill.lend(500, 9, asked=9)
    work = describe_items(*reversed(mill.work()), ROLES)
    assert (work.outcomes[abandoned].probability or 1) < 0.5
    assert work.outcomes[still_open].probability is None
    assert {item.item_id: item.reason for item in work.items}[still_open] == STILL_OPEN


@pytest.mark.parametrize("words", ["that is still not right", "no, this is wrong"])
def test_a_complaint_as_the_last_word_speaks_against_an_item(words: str) -> None:
    mill = usual_mill()
    blamed = str(mill.lend(30, 42, asked=42, last=words))
    outcomes = found(mill).outcomes
    assert (outcomes[blamed].probability or 1) < min(
        outcomes[str(number)].probability or 1 for number in range(0, 24, 2))
