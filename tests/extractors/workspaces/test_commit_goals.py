"""What a commit was for, in words of a request."""

from __future__ import annotations

import pytest

from extractors.workspaces.commit_goals import KnownFix, names_to_use, request_in, says_something, speaks_of, test_words

FIX = KnownFix(("src/lamp/wick.py",), ("burn = _trim_wick(oil)", "def set_flame(height): return height * 2"),
          "def burn(oil): ...", "assert set_flame(2) == 4")


@pytest.mark.parametrize(("message", "request_text"), [
    ("fix(wick): burn with any oil (fixes #3)\n", "wick: burn with any oil"),
    ("feat!: burn with any oil. Closes #3.\n\nSigned-off-by: A <a@example.org>\nReviewed-by: B", "burn with any oil."),
    ("Merge pull request #4 from a/b\n\nBurn with any oil", "Burn with any oil"),
    ("Burn with any oil (#4)\n\n* Burn with any oil\n* Ask a@example.org\n* Keep it\n  clean\n---------\n",
     "Burn with any oil (#4)\n\n* Ask [address]\n* Keep it clean")])
def test_what_belongs_to_git_is_taken_out(message: str, request_text: str) -> None:
    assert request_in(message, FIX) == request_text


@pytest.mark.parametrize("hint", [
    "Calls _trim_wick first.", "Change wick.py for that.", "See src/lamp/wick.py.", "Use `burn = _trim_wick(oil)` there."])
def test_a_sentence_that_gives_the_fix_away_is_taken_out(hint: str) -> None:
    assert request_in(f"It goes out too soon. {hint}\n\nOil is lost then.", FIX) == "It goes out too soon.\n\nOil is lost then."
    assert request_in(hint, FIX) == ""


def test_names_that_tests_use_may_stand_and_are_given_where_they_do_not() -> None:
    text = "The height is given by set_flame."
    assert request_in(text, FIX) == text and names_to_use(FIX, text) == ""
    assert names_to_use(FIX, "Let its height be chosen.") == "Names to use: `set_flame`."


@pytest.mark.parametrize(("text", "says"), [("v1.2.3", False), ("Fix typo", False), ("", False), ("Burn any oil", True)])
def test_versions_and_a_word_or_two_say_nothing(text: str, says: bool) -> None:
    assert says_something(text) is says


def test_a_text_without_a_word_of_the_change_does_not_speak_of_it() -> None:
    assert speaks_of("Trim it first", FIX.lines) and speaks_of("Call do_burn", FIX.lines)
    assert not speaks_of("A hotfix and nothing for sure", FIX.lines)


@pytest.mark.parametrize(("test", "words"), [
    ("tests/test_x.py::TestLamp::test_burns_any_oil[a-1]", "burns any oil"), ("lamp::BurnsAnyOil", "Burns Any Oil")])
def test_names_of_tests_are_read_as_words(test: str, words: str) -> None:
    assert test_words(test) == words
