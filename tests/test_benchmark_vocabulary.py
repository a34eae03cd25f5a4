"""The benchmark of words: what it reads of a page, and what it takes for another name of a notion."""

from __future__ import annotations

import pytest

from benchmarks.first_hour_vocabulary import _Texts, count


@pytest.mark.parametrize(("text", "name"), [
    ("3 of 9 good sessions", "succeeded: good"), ("the session went well", "succeeded: well"),
    ("a bad session", "failed: bad"), ("4 sessions untold", "undecided: untold"), ("12 rows dropped", "rejected: drop"),
    ("the task is verified", "published: verify"), ("a task not published", "unverified: not published"),
    ("on two sides of a split", "split: side"), ("its instances", "task: instance"), ("a cluster", "family: cluster"),
    ("a look-up", "read: look"), ("it has side effects", "write: side effect"), ("the side of the road", ""),
    ("it succeeded; a read, and a write", ""), ("look at the family", ""), ("reads nothing", "")])
def test_another_name_of_a_notion_is_counted_where_it_has_that_sense(text: str, name: str) -> None:
    assert list(count([("a page", text)])["others"]) == ([name] if name else [])


def test_the_most_names_of_a_notion_are_the_figure() -> None:
    counted = count([("/", "It succeeded."), ("/rejected", "a good session"), ("core.x", "solved sessions"), ("/", "a task")])
    assert counted["vocabulary"] == 3 and counted["names"]["task"] == ["task"]
    assert counted["others"]["succeeded: good"] == ["/rejected: …a good session…"]


def test_what_a_log_says_is_not_read_and_what_is_spoken_is() -> None:
    page = _Texts()
    page.feed('<p title="a tip">ours <code>theirs</code> too<br>and</p><div class="words">theirs <b>as well</b></div>'
              '<a href="/x" aria-label="said">more</a><pre>theirs</pre><img alt="seen">')
    assert page.texts == ["a tip", "ours", "too", "and", "said", "more", "seen"] and page.links == ["/x"]
