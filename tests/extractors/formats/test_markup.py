"""HTML to plain text."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.markup import plain

TEXTS = [
    ("plain text, a\nline", "plain text, a\nline", []),
    ("<p>Hi,</p><p>is the &quot;café&quot; there?</p>", 'Hi,\nis the "café" there?', []),
    ("a &lt;b&gt; &amp; c", "a <b> & c", []), ("<p>a<br>b<br/><br>c</p>", "a\nb\n\nc", []),
    ("<ul><li>one</li>\n<li>two   words</li></ul>", "one\ntwo words", []), ('see <a href="https://x">here</a>', "see here", []),
    ('<p>look</p><img src="https://x/a.png"><script>alert(1)</script>', "look", ["img https://x/a.png"]),
    ("<p>never closed <b>bold", "never closed bold", []), ("3 < 4 and 5 > 4", "3 < 4 and 5 > 4", [])]


@pytest.mark.parametrize("text, expected, lost", TEXTS, ids=[each[0][:20] for each in TEXTS])
def test_texts(text: str, expected: str, lost: list[str]) -> None:
    assert plain(text) == (expected, lost)


@given(st.text(max_size=60))
def test_no_text_breaks_it_and_escaped_words_come_back(text: str) -> None:
    plain(text)
    words = " ".join(text.split())
    texts, lost = plain(f"<p>{html.escape(words)}</p>")
    assert " ".join(texts.split()) == " ".join(html.unescape(html.escape(words)).split()) and lost == []
