"""Markup without what it can do beyond holding data: the text of HTML, the elements of XML one after another.

HTML as help desks store it becomes plain text: paragraphs and breaks as lines, entities undone, links as their text; a picture
is named by its source in what is lost. A document type declaration in XML is refused before anything is read: entities that
multiply, and files or addresses outside, can only be declared there. Memory is that of one element.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from xml.etree import ElementTree
from xml.parsers import expat

_BLOCKS = frozenset({"p", "div", "br", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre",
                     "hr", "section", "article"})
_SILENT = frozenset({"script", "style", "head", "title"})
_LARGE = 1 << 63


def plain(html: str) -> tuple[str, list[str]]:
    """Return the text of `html`, and what of it is no text. Text without markup comes back as it is."""
    if "<" not in html and "&" not in html:
        return html, []
    reader = _TextParser()
    reader.feed(html)
    reader.close()
    text = re.sub(r"[^\S\n]+", " ", "".join(reader.texts))
    return re.sub(r" ?\n ?", "\n", re.sub(r"\n{3,}", "\n\n", text)).strip(), reader.lost


class _TextParser(HTMLParser):
    """Collects text: blocks begin and end lines, a line end between tags is a blank, a picture is lost."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.lost: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in ("img", "video", "audio", "iframe"):
            self.lost.append(f"{tag} {dict(attrs).get('src') or ''}".rstrip())
        self._line(tag)

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in _SILENT and self._silent > 0
        self._line(tag)

    def handle_data(self, data: str) -> None:
        if not self._silent and (data.strip() or (self.texts and self.texts[-1] != "\n")):
            self.texts.append(data.replace("\n", " "))

    def _line(self, tag: str) -> None:
        if tag in _BLOCKS and (tag == "br" or (self.texts and not self.texts[-1].endswith("\n"))):
            self.texts.append("\n")


_MOST_NAMES = 12


def first_names(content: bytes, is_whole: bool = False) -> list[str]:
    """Names of the first elements, without namespaces; empty where it is no XML, or declares a document type.

    Errors, where it `is_whole`: ValueError where no element begins, or a document type is declared before the first.
    """
    names: list[str] = []
    parser = expat.ParserCreate()

    def begin(name: str, _: dict[str, str]) -> None:
        names.append(name.rpartition("}")[2].rpartition(":")[2])
        if is_whole or len(names) == _MOST_NAMES:
            raise StopIteration

    def refuse(*_: object) -> None:
        raise ValueError("it declares a document type, which may hold entities")

    parser.StartElementHandler = begin
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, is_whole)
    except StopIteration:
        pass
    except (expat.ExpatError, LookupError, ValueError) as error:   # what was seen before the damage still tells
        if is_whole:
            raise ValueError(f"damaged XML ({error})" if isinstance(error, expat.ExpatError) else str(error)) from error
    return names


def number_in(text: str, is_whole: bool) -> int | float | str:
    """Return the number that a text spells; the text where it spells none, or a whole one beyond 64 bits."""
    try:
        number = int(text) if is_whole else float(text)
    except ValueError:
        return text
    return text if isinstance(number, int) and not -_LARGE <= number < _LARGE else number


def elements(content: bytes, *names: str) -> Iterator[ElementTree.Element]:
    """Each element called one of `names`, when it ends; outermost of them only, namespaces removed from tags.

    Errors: ValueError where the XML is damaged or declares a document type.
    """
    first_names(content, is_whole=True)
    wanted, depth = frozenset(names), 0
    path: list[ElementTree.Element] = []
    try:
        for event, element in ElementTree.iterparse(io.BytesIO(content), events=("start", "end")):
            if event == "start":
                element.tag = element.tag.rpartition("}")[2]
                path.append(element)
                depth += element.tag in wanted
                continue
            path.pop()
            if element.tag in wanted:
                depth -= 1
                if not depth:
                    yield element
            if path and not depth:
                path[-1].remove(element)
    except ElementTree.ParseError as error:
        raise ValueError(f"damaged XML ({error})") from error
