"""Measure how the pages under a folder read: the length of their sentences, and words that the documentation does without.

In: a folder of Markdown pages, `docs/` by default. Out: one JSON object with `words_a_sentence` (mean), `words_a_sentence_p90`
and `banned_words_docs`. Sees words, not whether a sentence is clear.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
BANNED_WORDS = ("mend", "mends", "whoever", "anew", "beside", "is told", "are told", "is none")
SHORTEST = 3
"""Words that make a sentence: fewer are a label, a name in a list, the rest of an abbreviation."""

_PHRASES = "|".join(phrase.replace(" ", r"\s+") for phrase in BANNED_WORDS)
_BANNED = re.compile(rf"\b(?!(?-i:is\s+None))(?:{_PHRASES})\b", re.I)
_FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2", re.M | re.S)
_INLINE_CODE = re.compile(r"`[^`]*`")
_CELL_WITH_SENTENCE = re.compile(r"\.(\s|$)")
_LIST_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[(])")


def measure_docs(folder: Path) -> dict[str, Any]:
    """Measure all pages of a folder, sub-folders included.

    Code blocks (fenced or indented) and headings do not count. Inline code counts as one word. The end of a paragraph or of a
    list item ends a sentence, and so does a full stop, question mark or exclamation mark before a capital letter. A table's
    cell counts only where it holds a full stop. A sentence has at least three words, separated by blanks. Banned words are
    counted in everything but code blocks, in any case, but for the code `is None`.
    """
    pages = [_without_code_blocks(page.read_text("utf-8")) for page in sorted(folder.rglob("*.md"))]
    lengths = sorted(len(sentence.split()) for page in pages for sentence in sentences(page))
    return {
        "words_a_sentence": round(statistics.mean(lengths), 1) if lengths else 0.0,
        "words_a_sentence_p90": lengths[int(0.9 * len(lengths))] if lengths else 0,
        "banned_words_docs": sum(len(_BANNED.findall(page)) for page in pages),
    }


def sentences(text: str) -> list[str]:
    """Split a page that has no code blocks into sentences."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            lines += ["", *(f"{cell}\n" for cell in line.strip().strip("|").split("|") if _CELL_WITH_SENTENCE.search(cell)), ""]
        elif line.startswith("#"):
            lines.append("")
        else:
            lines.append(_LIST_ITEM.sub("\n", line))
    paragraphs = re.split(r"\n\s*\n", _INLINE_CODE.sub("code", "\n".join(lines)))
    split = [sentence for paragraph in paragraphs for sentence in _SENTENCE_END.split(paragraph)]
    return [sentence for sentence in split if len(sentence.split()) >= SHORTEST]


def _without_code_blocks(text: str) -> str:
    return "\n".join(line for line in _FENCED.sub("", text).splitlines() if not line.startswith("    "))


if __name__ == "__main__":
    print(json.dumps(measure_docs(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)))
