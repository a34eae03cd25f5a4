"""Goals of tasks of code: the user's words, without what gives the solution away."""

from __future__ import annotations

import pytest

from extractors.workspaces.goal_texts import goal_text


@pytest.mark.parametrize(("words", "goal"), [
    ("Lamp smokes (#12). See PR #40, fixed in 1a2b3c4.", "Lamp smokes. See , fixed in [commit]."),
    ("Same as https://git.example/a/b/pull/12 and #13", "Same as [link] and #13"),
    ("Make test_burns_clean pass, as in tests/test_lamp.py", "Make [a test] pass, as in tests/test_lamp.py"),
    ("The code deadbee is in the decade2 log", "The code deadbee is in the decade2 log"),
    ("1234567 lamps since 20260302", "1234567 lamps since 20260302")])
def test_words_that_lead_to_the_solution_are_taken_out(words: str, goal: str) -> None:
    assert goal_text(words, lambda short: short == "1a2b3c4", [12], ["test_burns_clean"]) == goal
