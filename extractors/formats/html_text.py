"""HTML as help desks store it, to plain text: paragraphs and breaks as lines, entities undone, links as their text.

Does not see: what a picture shows; it is named by its source in what is lost.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

_BLOCKS = frozenset({"p", "div", "br", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre",
                     "hr", "section", "article"})
_SILENT = frozenset({"script", "style", "head", "title"})


def plain(html: str) -> tuple[str, list[str]]:
    """The text of `html`, and what of it is no text. Text without markup comes back as it is."""
    if "<" not in html and "&" not in html:
        return html, []
    reader = _Reader()
    reader.feed(html)
    reader.close()
    text = re.sub(r"[^\S\n]+", " ", "".join(reader.found))
    return re.sub(r" ?\n ?", "\n", re.sub(r"\n{3,}", "\n\n", text)).strip(), reader.lost


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.lost: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A block begins a line; a picture is lost."""
        if tag in _SILENT:
            self._silent += 1
        elif tag in ("img", "video", "audio", "iframe"):
            self.lost.append(f"{tag} {dict(attrs).get('src') or ''}".rstrip())
        self._line(tag)

    def handle_endtag(self, tag: str) -> None:
        """A block ends a line."""
        self._silent -= tag in _SILENT and self._silent > 0
        self._line(tag)

    def handle_data(self, data: str) -> None:
        """Text between tags; its own line ends are blanks, and none between blocks."""
        if not self._silent and (data.strip() or (self.found and self.found[-1] != "\n")):
            self.found.append(data.replace("\n", " "))

    def _line(self, tag: str) -> None:
        if tag in _BLOCKS and (tag == "br" or (self.found and not self.found[-1].endswith("\n"))):
            self.found.append("\n")
